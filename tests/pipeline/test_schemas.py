"""The tables as they are described."""

import pytest

from groupcoord.pipeline.schemas import TABLES, TableSchema


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_table_says_what_every_column_means(table: TableSchema) -> None:
    assert len(set(table.names)) == len(table.names)
    assert set(table.key) <= set(table.names)
    assert all(column.meaning and not column.meaning.endswith(".") for column in table.columns)
    assert all(column.unit == "UTC" for column in table.columns if column.type == "timestamp")


def test_every_table_of_histories_says_of_which_kind_the_group_was() -> None:
    histories = ("current_groups", "rebalances", "ownership", "storms", "skew", "zombies", "epochs", "members")
    assert all("kind" in TABLES[name].names for name in histories)
    assert TABLES["modern_generations"].columns[:-2] == TABLES["generations"].columns


def test_ddl_quotes_the_words_of_sql() -> None:
    assert TABLES["storms"].ddl.startswith(
        "`log_partition` int, `group` string, `kind` string, `from` timestamp, `to` timestamp"
    )
