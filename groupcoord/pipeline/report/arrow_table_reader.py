"""Queries the tables of a run for the report with Arrow: top rows, aggregates and histograms.

The tables are read batch by batch, in this process or in Spark's tasks. Each batch is reduced to a partial result (its first
rows, or one row for each key), and the partial results are merged. So memory stays small, however long the tables are.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from groupcoord.pipeline.arrow_columns import arrow_schema
from groupcoord.pipeline.errors import PipelineError
from groupcoord.pipeline.report.report_model import TimeBins
from groupcoord.pipeline.schemas import TABLES

MERGE_AT = 200_000
"""Partial results with more rows than this are merged."""
Row = dict[str, Any]
_MERGED_BY = {"count": "sum", "sum": "sum", "min": "min", "max": "max"}
"""By which function each kind of partial result is merged: counts are added up."""
_WIDE = pa.decimal128(38, 0)


class Aggregate(NamedTuple):
    """An aggregate over rows, called ``name`` in the result. ``how`` is ``count`` (of rows), or ``sum``, ``min`` or ``max`` of
    ``column``, which ignore nulls and are null if all values are."""

    name: str
    how: str
    column: str | None = None


Partial = Callable[[Any], Any]
Scan = Callable[[str, Sequence[str], Mapping[str, Collection[str]], Partial], Iterable[Any]]
"""Takes a table, columns, the wanted values of some columns, and a function that makes a partial result of a batch; returns the
partial results of all batches."""


def local_scan(folder: Path) -> Scan:
    """A scan of the tables in the directory ``folder`` in this process. It raises PipelineError if a file cannot be read."""

    def scan(
        table: str, columns: Sequence[str], among: Mapping[str, Collection[str]], partial: Partial
    ) -> Iterator[Any]:
        wanted = None
        for column, values in among.items():
            one = pc.field(column).isin(pa.array(sorted(values), pa.string()))
            wanted = one if wanted is None else wanted & one
        try:
            files = sorted(folder.joinpath(table).glob("*.parquet"))
            scanner = (
                ds.dataset(files, format="parquet").scanner(columns=list(columns), filter=wanted) if files else None
            )
            for batch in scanner.to_batches() if scanner else ():
                if batch.num_rows:
                    yield partial(_in_milliseconds(pa.Table.from_batches([batch])))
        except (OSError, pa.ArrowException) as problem:
            raise PipelineError(f"cannot read the table {table}: {str(problem).splitlines()[0]}") from None

    return scan


def spark_scan(spark: SparkSession, root: str) -> Scan:
    """A scan of the tables below ``root``, any URL that Spark can read, in Spark's tasks."""

    def scan(table: str, columns: Sequence[str], among: Mapping[str, Collection[str]], partial: Partial) -> list[Any]:
        def work(batches: Iterator[Any]) -> Iterator[Any]:
            for batch in filter(len, batches):
                yield from partial(_in_milliseconds(pa.Table.from_batches([batch]))).to_batches()

        frame: DataFrame = spark.read.schema(TABLES[table].ddl).parquet(f"{root}/{table}")
        for column, values in among.items():
            frame = frame.where(F.col(f"`{column}`").isin(sorted(values)))
        # One column at least: a batch of Arrow has no rows once it has no columns.
        wanted = columns or TABLES[table].names[:1]
        chosen = [column for column in TABLES[table].columns if column.name in wanted]
        nothing = _in_milliseconds(arrow_schema(tuple(chosen)).empty_table())
        answer = from_arrow_schema(partial(nothing).schema)
        found = frame.select(*(F.col(f"`{column.name}`") for column in chosen)).mapInArrow(work, answer).toArrow()
        return [found] if found.num_rows else []

    return scan


class ArrowTableReader:
    """Queries the tables of one run, read by ``scan``. The number of rows of a result does not depend on the length of the
    tables.

    Rows are dicts. Timestamps are milliseconds since 1970 in UTC; sums are exact integers. An ``order`` is a list of column
    names separated by spaces; ``-column`` is descending. Nulls are last either way.
    """

    def __init__(self, scan: Scan) -> None:
        self._scan = scan

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
        """The first ``limit`` rows in ``order``, of the whole table or for each value of the column ``of_each``. ``among`` maps
        columns to the values that rows must have one of."""

        def first(found: Any) -> Any:
            return _first(found.select(list(columns)), order, limit, of_each=of_each)

        found = _merged(self._scan(table, columns, among or {}, first), first)
        return [] if found is None else _python(found)

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
        """``measures`` grouped by the columns ``by``; of these groups the first ``limit``, chosen as in ``rows``."""
        merge, columns = _grouping(by, measures), _columns(by, measures)
        partials = self._scan(table, columns, among or {}, lambda batch: merge(_prepared(batch, by, measures)))
        found = _merged(partials, merge)
        if found is None:
            return [] if by else [{one.name: 0 if one.how == "count" else None for one in measures}]
        return _python(_first(found, order, limit, of_each=of_each))

    def binned(
        self,
        table: str,
        time: str,
        bins: TimeBins | Mapping[str, TimeBins],
        measures: Sequence[Aggregate],
        *,
        by: Sequence[str] = (),
    ) -> list[Row]:
        """``measures`` grouped by time bin (column ``bin``, from 0) and the columns ``by``. If ``bins`` maps consumer groups to
        their bins, only these are read, and the result is also grouped by ``group``."""
        of_groups = not isinstance(bins, TimeBins)
        if of_groups and not bins:
            return []
        by = [*(["group", "bin"] if of_groups else ["bin"]), *by]
        merge = _grouping(by, measures)
        columns = _columns([*(name for name in by if name != "bin"), time], measures)
        among = {"group": list(bins)} if isinstance(bins, Mapping) else {}
        found = _merged(
            self._scan(
                table, columns, among, lambda batch: merge(_prepared(_with_bins(batch, time, bins), by, measures))
            ),
            merge,
        )
        return [] if found is None else _python(found.sort_by([(name, "ascending") for name in by]))


def _columns(names: Sequence[str], measures: Sequence[Aggregate]) -> list[str]:
    return list(dict.fromkeys([*names, *(one.column for one in measures if one.column is not None)]))


def _merged(partials: Iterable[Any], merge: Partial) -> Any:
    """Merge ``partials`` into one table; None if there are none."""
    kept: list[Any] = []
    size = 0
    for partial in partials:
        kept.append(partial)
        size += partial.num_rows
        if size > MERGE_AT:
            kept = [merge(pa.concat_tables(kept))]
            size = kept[0].num_rows
    return merge(pa.concat_tables(kept)) if size else None


def _in_milliseconds(table: Any) -> Any:
    for index, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            # A timestamp without a time zone is in UTC: it comes from Spark's INT96.
            times = pc.cast(pc.cast(table.column(index), pa.timestamp("ms", field.type.tz), safe=False), pa.int64())
            table = table.set_column(index, field.name, times)
    return table


def _with_bins(table: Any, time: str, bins: TimeBins | Mapping[str, TimeBins]) -> Any:
    """``table`` with a column ``bin``, without the rows outside of all bins."""
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
    """The columns ``by`` and one for each measure. A count is a column of ones, to be added up like other partial results."""
    columns = {name: table[name] for name in by}
    for one in measures:
        if one.column is None:
            columns[one.name] = pa.repeat(pa.scalar(1, pa.int64()), table.num_rows)
        else:
            columns[one.name] = pc.cast(table[one.column], _WIDE) if one.how == "sum" else table[one.column]
    return pa.table(columns)


def _grouping(by: Sequence[str], measures: Sequence[Aggregate]) -> Partial:
    """A function that groups a table by the columns ``by`` and merges the measures."""

    def group(table: Any) -> Any:
        made = table.group_by(list(by)).aggregate([(one.name, _MERGED_BY[one.how]) for one in measures])
        columns = {name: made[name] for name in by}
        for one in measures:
            column = made[f"{one.name}_{_MERGED_BY[one.how]}"]
            columns[one.name] = pc.cast(column, _WIDE) if one.how == "sum" else column
        return pa.table(columns)

    return group


def _first(table: Any, order: str, limit: int, *, of_each: str | None) -> Any:
    """The first rows of ``table`` in ``order``, of all or for each value of the column ``of_each``."""
    # Arrow puts nulls last whichever way it sorts.
    keys = [(one.removeprefix("-"), "descending" if one.startswith("-") else "ascending") for one in order.split()]
    if of_each is None:
        return (table.sort_by(keys) if keys else table).slice(0, limit)
    table = table.sort_by([(of_each, "ascending"), *keys]).combine_chunks()
    wanted: list[int] = []
    start = 0
    for run in pc.run_end_encode(table[of_each].combine_chunks()).run_ends.to_pylist() if table.num_rows else []:
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
