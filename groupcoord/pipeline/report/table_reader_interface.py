"""What the report asks of the tables: always for a bounded number of rows, however long the history was.

Rows come as dicts. A timestamp is a number of milliseconds since 1970 in UTC, a sum is an exact integer.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from groupcoord.pipeline.report.report_model import TimeBins

Row = dict[str, Any]
How = Literal["count", "sum", "min", "max"]


class Aggregate(NamedTuple):
    """One figure over several rows, under ``name``: how many rows there are, or the sum, the lowest, the highest of
    ``column``. Nulls count for nothing; over nothing but nulls a measure is null, and a count is 0."""

    name: str
    how: How
    column: str | None = None


class SortOrder(NamedTuple):
    """By which column, and which way; nulls are last either way."""

    column: str
    is_descending: bool = False


def sort_order(text: str) -> list[SortOrder]:
    """The order by the columns in ``text``, with spaces between them; ``-column`` descends."""
    return [SortOrder(name.removeprefix("-"), name.startswith("-")) for name in text.split()]


class TableReader(Protocol):
    """The tables of one run."""

    def rows(
        self,
        table: str,
        columns: Sequence[str],
        order: Sequence[SortOrder],
        limit: int,
        *,
        among: Mapping[str, Collection[str]] | None = None,
        of_each: str | None = None,
    ) -> list[Row]:
        """The first ``limit`` rows in ``order``, of the whole table or for each value of the column ``of_each``; those
        ``among`` whose columns have one of the values."""

    def totals(
        self,
        table: str | tuple[str, ...],
        by: Sequence[str],
        measures: Sequence[Aggregate],
        order: Sequence[SortOrder],
        limit: int,
        *,
        among: Mapping[str, Collection[str]] | None = None,
        of_each: str | None = None,
    ) -> list[Row]:
        """``measures`` over the rows that agree in ``by``, and of these the first ``limit`` as in ``rows``. Several tables
        with the same columns count as one."""

    def binned(
        self,
        table: str,
        time: str,
        bins: TimeBins | Mapping[str, TimeBins],
        measures: Sequence[Aggregate],
        *,
        by: Sequence[str] = (),
    ) -> list[Row]:
        """``measures`` over the rows of each piece of time (``bin``, from 0) of the whole table, or of each ``group`` that
        ``bins`` names; there, over those that agree in ``by``."""
