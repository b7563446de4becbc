"""The tables read by PyArrow, where they are files that this process sees: no Spark, batch after batch, little memory."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from groupcoord.pipeline.errors import PipelineError
from groupcoord.pipeline.report.table_reader import Aggregate, Row, SortOrder, TimeBins

_PRUNE_AT = 200_000
"""So many rows are collected before those that cannot be among the first are let go."""
# How partial results are put together: a count is a sum of ones.
_HASHED = {"count": "sum", "sum": "sum", "min": "min", "max": "max"}
_WIDE = pa.decimal128(38, 0)


class ArrowReader:
    """The tables in the directory ``folder``. Raises PipelineError where a file of theirs cannot be read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def has(self, table: str) -> bool:
        """As Reader says."""
        return (self._folder / table).is_dir()

    def rows(
        self,
        table: str,
        columns: Sequence[str],
        order: Sequence[SortOrder],
        limit: int,
        *,
        among: Mapping[str, Collection[str]] | None = None,
        of_each_group: bool = False,
    ) -> list[Row]:
        """As Reader says."""
        kept: list[Any] = []
        size = 0
        for batch in self._batches(table, columns, among):
            kept.append(batch)
            size += batch.num_rows
            if size > _PRUNE_AT:
                kept = [_first(pa.concat_tables(kept), order, limit, of_each_group=of_each_group)]
                size = kept[0].num_rows
        return _python(_first(pa.concat_tables(kept), order, limit, of_each_group=of_each_group)) if kept else []

    def totals(
        self,
        table: str,
        by: Sequence[str],
        measures: Sequence[Aggregate],
        order: Sequence[SortOrder],
        limit: int,
        *,
        among: Mapping[str, Collection[str]] | None = None,
        of_each_group: bool = False,
    ) -> list[Row]:
        """As Reader says."""
        columns = dict.fromkeys([*by, *(one.column for one in measures if one.column is not None)])
        batches = (_prepared(batch, by, measures) for batch in self._batches(table, list(columns), among))
        merged = _merged(batches, by, measures)
        if merged is None:
            return [] if by else [{one.name: 0 if one.how == "count" else None for one in measures}]
        return _python(_first(merged, order, limit, of_each_group=of_each_group))

    def binned(
        self, table: str, time: str, bins: TimeBins | Mapping[str, TimeBins], measures: Sequence[Aggregate]
    ) -> list[Row]:
        """As Reader says."""
        each = isinstance(bins, Mapping)
        by = ["group", "bin"] if each else ["bin"]
        columns = dict.fromkeys([*by[:-1], time, *(one.column for one in measures if one.column is not None)])
        among = {"group": list(bins)} if isinstance(bins, Mapping) else None
        if among is not None and not among["group"]:
            return []
        batches = (
            _prepared(_with_bins(batch, time, bins), by, measures)
            for batch in self._batches(table, list(columns), among)
        )
        merged = _merged(batches, by, measures)
        return [] if merged is None else _python(merged.sort_by([(name, "ascending") for name in by]))

    def _batches(
        self, table: str, columns: Sequence[str], among: Mapping[str, Collection[str]] | None
    ) -> Iterator[Any]:
        """The rows of ``table``, piece by piece as Arrow's tables, with times as milliseconds."""
        wanted = None
        for column, values in (among or {}).items():
            one = pc.field(column).isin(pa.array(sorted(values), pa.string()))
            wanted = one if wanted is None else wanted & one
        try:
            files = sorted(self._folder.joinpath(table).glob("*.parquet"))
            if not files:
                return
            for batch in ds.dataset(files, format="parquet").scanner(columns=list(columns), filter=wanted).to_batches():
                if batch.num_rows:
                    yield _in_milliseconds(pa.Table.from_batches([batch]))
        except (OSError, pa.ArrowException) as problem:
            raise PipelineError(f"cannot read the table {table}: {str(problem).splitlines()[0]}") from None


def _in_milliseconds(table: Any) -> Any:
    for index, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            # Without a zone it is UTC: so Spark writes INT96.
            moments = pc.cast(pc.cast(table.column(index), pa.timestamp("ms", field.type.tz), safe=False), pa.int64())
            table = table.set_column(index, field.name, moments)
    return table


def _with_bins(table: Any, time: str, bins: TimeBins | Mapping[str, TimeBins]) -> Any:
    """``table`` with a column ``bin``, without what is in none."""
    if isinstance(bins, Mapping):
        names = list(bins)
        place = pc.index_in(table["group"], pa.array(names, pa.string()))
        starts, widths, counts = (pa.array([bins[name][index] for name in names]).take(place) for index in range(3))
    else:
        starts, widths, counts = bins
    passed = pc.subtract(table[time], starts)
    number = pc.divide(passed, widths)
    inside = pc.and_(pc.greater_equal(passed, 0), pc.less(number, counts))
    return table.append_column("bin", number).filter(inside)


def _prepared(table: Any, by: Sequence[str], measures: Sequence[Aggregate]) -> Any:
    """The columns of ``by``, and one for each measure, that merging does not change: a count is a sum of ones."""
    columns = {name: table[name] for name in by}
    for one in measures:
        if one.column is None:
            columns[one.name] = pa.repeat(pa.scalar(1, pa.int64()), table.num_rows)
        else:
            values = table[one.column]
            columns[one.name] = pc.cast(values, _WIDE) if one.how == "sum" else values
    return pa.table(columns)


def _merged(tables: Iterator[Any], by: Sequence[str], measures: Sequence[Aggregate]) -> Any:
    """One row for all that agree in ``by``; None: there are none."""
    kept: list[Any] = []
    size = 0
    for table in tables:
        kept.append(_grouped(table, by, measures))
        size += kept[-1].num_rows
        if size > _PRUNE_AT:
            kept = [_grouped(pa.concat_tables(kept), by, measures)]
            size = kept[0].num_rows
    if not kept:
        return None
    merged = _grouped(pa.concat_tables(kept), by, measures)
    return merged if merged.num_rows else None


def _grouped(table: Any, by: Sequence[str], measures: Sequence[Aggregate]) -> Any:
    made = table.group_by(list(by)).aggregate([(one.name, _HASHED[one.how]) for one in measures])
    made = made.rename_columns(
        {**{name: name for name in by}, **{f"{one.name}_{_HASHED[one.how]}": one.name for one in measures}}
    ).select([*by, *(one.name for one in measures)])
    for one in measures:
        if one.how == "sum":
            index = made.schema.get_field_index(one.name)
            made = made.set_column(index, one.name, pc.cast(made[one.name], _WIDE))
    return made


def _first(table: Any, order: Sequence[SortOrder], limit: int, *, of_each_group: bool) -> Any:
    """The first rows of ``table`` in ``order``, of all or of each group."""
    # Arrow puts nulls last whichever way it sorts.
    keys = [(one.column, "descending" if one.is_descending else "ascending") for one in order]
    if not of_each_group:
        return (table.sort_by(keys) if keys else table).slice(0, limit)
    table = table.sort_by([("group", "ascending"), *keys]).combine_chunks()
    wanted: list[int] = []
    start = 0
    for run in pc.run_end_encode(table["group"].combine_chunks()).run_ends.to_pylist() if table.num_rows else []:
        wanted += range(start, min(start + limit, run))
        start = run
    return table.take(pa.array(wanted, pa.int64()))


def _python(table: Any) -> list[Row]:
    rows: list[Row] = table.to_pylist()
    wide = [field.name for field in table.schema if pa.types.is_decimal(field.type)]
    for row in rows:
        for name in wide:
            row[name] = None if row[name] is None else int(row[name])
    return rows
