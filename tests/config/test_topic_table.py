"""The table of topic configurations is well formed."""

from groupcoord.config.topic_table import ROWS


def test_every_row_has_its_columns_and_a_name_of_its_own() -> None:
    rows = [row.split() for row in ROWS.splitlines()]
    assert all(len(row) >= 4 for row in rows)
    assert len({row[0] for row in rows}) == len(rows)
