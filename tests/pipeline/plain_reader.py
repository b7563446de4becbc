"""Tables as lists of rows, and the report's questions answered in the plainest way: the oracle for the readers of files."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from groupcoord.pipeline.report.arrow_table_reader import Aggregate, ArrowTableReader, Row
from groupcoord.pipeline.report.report_model import TimeBins

Tables = dict[str, list[Row]]


class PlainReader(ArrowTableReader):
    """Rows as dicts, times in milliseconds."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def rows(
        self,
        table: str,
        columns: Sequence[str],
        order: str,
        limit: int,
        *,
        among: Mapping[str, Collection[str]] | None = None,
        of_each: str | None = None,
    ) -> list[Row]:
        rows = [{name: row[name] for name in columns} for row in self._among(table, among)]
        return _first(rows, order, limit, of_each=of_each)

    def totals(
        self,
        table: str,
        by: Sequence[str],
        measures: Sequence[Aggregate],
        order: str,
        limit: int,
        *,
        among: Mapping[str, Collection[str]] | None = None,
        of_each: str | None = None,
    ) -> list[Row]:
        found: dict[tuple[Any, ...], list[Row]] = {} if by else {(): []}
        for row in self._among(table, among):
            found.setdefault(tuple(row[name] for name in by), []).append(row)
        made = [dict(zip(by, key, strict=True)) | _measured(rows, measures) for key, rows in found.items()]
        return _first(made, order, limit, of_each=of_each)

    def binned(
        self,
        table: str,
        time: str,
        bins: TimeBins | Mapping[str, TimeBins],
        measures: Sequence[Aggregate],
        *,
        by: Sequence[str] = (),
    ) -> list[Row]:
        found: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
        for row in self._tables[table]:
            cut = bins.get(row["group"]) if isinstance(bins, Mapping) else bins
            if cut is None or row[time] is None or not cut.start_ms <= row[time] < cut.end_ms:
                continue
            number = (row[time] - cut.start_ms) // cut.width_ms
            place = (row["group"], number) if isinstance(bins, Mapping) else (number,)
            found[*place, *(row[name] for name in by)].append(row)
        names = [*(["group", "bin"] if isinstance(bins, Mapping) else ["bin"]), *by]
        made = [dict(zip(names, key, strict=True)) | _measured(rows, measures) for key, rows in found.items()]
        return _first(made, " ".join(names), len(made), of_each=None)

    def _among(self, table: str, among: Mapping[str, Collection[str]] | None) -> list[Row]:
        wanted = (among or {}).items()
        return [row for row in self._tables[table] if all(row[column] in values for column, values in wanted)]


def _measured(rows: list[Row], measures: Sequence[Aggregate]) -> Row:
    made: Row = {}
    for one in measures:
        values = [row[one.column] for row in rows if one.column is not None and row[one.column] is not None]
        if one.how == "count":
            made[one.name] = len(rows)
        else:
            figures: dict[str, Callable[[list[Any]], Any]] = {"sum": sum, "min": min, "max": max}
            made[one.name] = figures[one.how](values) if values else None
    return made


def _first(rows: list[Row], order: str, limit: int, *, of_each: str | None) -> list[Row]:
    for one in reversed(order.split()):
        name = one.removeprefix("-")
        known = [row for row in rows if row[name] is not None]
        known.sort(key=lambda row, column=name: _by_bytes(row[column]), reverse=one != name)  # type: ignore[misc]
        rows = known + [row for row in rows if row[name] is None]
    if of_each is None:
        return rows[:limit]
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row[of_each]].append(row)
    return [row for value in sorted(found, key=_by_bytes) for row in found[value][:limit]]


def _by_bytes(value: Any) -> Any:
    """As files compare: text by its bytes."""
    return value.encode(errors="surrogatepass") if isinstance(value, str) else value
