"""The tables as they are described."""

import pytest

from groupcoord.pipeline.schemas import TABLES, TableSchema


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_table_says_what_every_column_means(table: TableSchema) -> None:
    assert len(set(table.names)) == len(table.names)
    assert set(table.key) <= set(table.names)
    assert all(column.meaning and not column.meaning.endswith(".") for column in table.columns)
    assert all(column.unit == "UTC" for column in table.columns if column.type == "timestamp")


def test_the_tables_of_both_kinds_of_groups_have_the_same_columns() -> None:
    assert TABLES["modern_generations"].columns == TABLES["generations"].columns
    assert TABLES["modern_rebalances"].columns == TABLES["rebalances"].columns


def test_ddl_quotes_the_words_of_sql() -> None:
    assert TABLES["storms"].ddl.startswith("`log_partition` int, `group` string, `from` timestamp, `to` timestamp")
