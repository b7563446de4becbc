"""The table of broker properties is well formed."""

from groupcoord.config.broker_table import ROWS


def test_every_row_has_five_columns_and_a_name_of_its_own() -> None:
    rows = [row.split() for row in ROWS.splitlines()]
    assert {len(row) for row in rows} == {5}
    assert len({row[0] for row in rows}) == len(rows)
