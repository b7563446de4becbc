"""The tables read by Spark, wherever it can read: the same questions, and only their answers come to the driver."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from groupcoord.pipeline.report.table_reader import Aggregate, Row, SortOrder, TimeBins
from groupcoord.pipeline.schemas import TABLES


class SparkTableReader:
    """The tables under ``root``, a directory or a URL."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        self._spark = spark
        self._root = root

    def has(self, table: str) -> bool:
        """As Reader says."""
        try:
            path = self._spark._jvm.org.apache.hadoop.fs.Path(f"{self._root}/{table}")  # noqa: SLF001 - the way there is
            files = path.getFileSystem(self._spark._jsc.hadoopConfiguration())  # noqa: SLF001
            return bool(files.exists(path))
        except Py4JError:
            return False

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
        frame = self._frame(table, among).select(*(_quoted(name) for name in columns))
        return _collected(_first(frame, order, limit, of_each_group=of_each_group), columns)

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
        frame = self._frame(table, among).groupBy(*(_quoted(name) for name in by)).agg(*map(_measured, measures))
        names = [*by, *(one.name for one in measures)]
        return _collected(_first(frame, order, limit, of_each_group=of_each_group), names)

    def binned(
        self, table: str, time: str, bins: TimeBins | Mapping[str, TimeBins], measures: Sequence[Aggregate]
    ) -> list[Row]:
        """As Reader says."""
        if isinstance(bins, Mapping):
            if not bins:
                return []
            rows = [(group, *one) for group, one in bins.items()]
            spans = self._spark.createDataFrame(rows, "group string, start bigint, width bigint, pieces bigint")
            frame = self._frame(table, {"group": list(bins)}).join(F.broadcast(spans), "group")
            by = ["group", "bin"]
        else:
            start, width, pieces = (F.lit(number) for number in bins)
            frame = self._frame(table, None).withColumns({"start": start, "width": width, "pieces": pieces})
            by = ["bin"]
        passed = F.unix_millis(time) - F.col("start")
        cut = frame.withColumn("bin", F.floor(passed / F.col("width")).cast("bigint")).where(
            (passed >= 0) & (F.col("bin") < F.col("pieces"))
        )
        made = cut.groupBy(*by).agg(*map(_measured, measures)).orderBy(*by)
        return _collected(made, [*by, *(one.name for one in measures)])

    def _frame(self, table: str, among: Mapping[str, Collection[str]] | None) -> DataFrame:
        reader = self._spark.read
        if table in TABLES:
            reader = reader.schema(TABLES[table].ddl)
        frame = reader.parquet(f"{self._root}/{table}")
        for column, values in (among or {}).items():
            frame = frame.where(_quoted(column).isin(sorted(values)))
        return frame


def _quoted(name: str) -> Column:
    return F.col(f"`{name}`")


def _measured(one: Aggregate) -> Column:
    if one.column is None:
        return F.count("*").alias(one.name)
    column = _quoted(one.column)
    if one.how == "sum":
        return F.sum(column.cast("decimal(38,0)")).alias(one.name)
    return (F.min(column) if one.how == "min" else F.max(column)).alias(one.name)


def _first(frame: DataFrame, order: Sequence[SortOrder], limit: int, *, of_each_group: bool) -> DataFrame:
    keys = [
        _quoted(one.column).desc_nulls_last() if one.is_descending else _quoted(one.column).asc_nulls_last()
        for one in order
    ]
    if not of_each_group:
        return (frame.orderBy(*keys) if keys else frame).limit(limit)
    place = F.row_number().over(Window.partitionBy("group").orderBy(*keys))
    return frame.withColumn("place", place).where(F.col("place") <= limit).orderBy("group", "place").drop("place")


def _collected(frame: DataFrame, names: Sequence[str]) -> list[Row]:
    kinds = dict(frame.dtypes)
    columns = [
        (F.unix_millis(_quoted(name)) if kinds[name] == "timestamp" else _quoted(name)).alias(name) for name in names
    ]
    wide = {name for name in names if kinds[name].startswith("decimal")}
    rows: list[Row] = [row.asDict() for row in frame.select(*columns).collect()]
    return [{name: _plain(value, is_wide=name in wide) for name, value in row.items()} for row in rows]


def _plain(value: Any, *, is_wide: bool) -> Any:
    return int(value) if is_wide and value is not None else value
