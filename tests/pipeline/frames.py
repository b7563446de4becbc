"""Small frames for tests: rows as dicts with the columns that matter, the others null."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from groupcoord.pipeline.arrow_columns import arrow_schema
from groupcoord.pipeline.columnar_decoder import is_of_places
from groupcoord.pipeline.schemas import LOG, TableSchema
from groupcoord.pipeline.sources.factory import SourcePlan

START = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    """A moment, so many seconds after the beginning."""
    return START + timedelta(seconds=seconds)


def since(moment: datetime | None) -> float | None:
    """The same, back. Spark gives times without a zone, in that of the session's user; both are UTC here."""
    return None if moment is None else (moment.astimezone(UTC) - START).total_seconds()


def frame(spark: SparkSession, table: TableSchema, rows: Iterable[Mapping[str, Any]]) -> DataFrame:
    """``rows`` with all columns of ``table``. Through Arrow they are part of the plan, and no task of Python gives them."""
    return spark.createDataFrame(pa.Table.from_pylist(list(rows), arrow_schema(table.columns)))


def once(found: DataFrame) -> DataFrame:
    """``found``, made once, however often it is used: as between two steps of a run."""
    return found.sparkSession.createDataFrame(found.toArrow())


def log_of(spark: SparkSession, plan: SourcePlan) -> DataFrame:
    """The records of ``plan`` as LOG."""
    surveyed = plan.surveyed(spark)
    return surveyed.read(spark).mapInArrow(
        lambda batches: (batch for batch in surveyed.open_batches(batches) if not is_of_places(batch)), LOG.ddl
    )


def member(member_id: str, assigned: Mapping[str, list[int]], **said: Any) -> tuple[Any, ...]:
    """One member of a generation."""
    topics = said.get("topics", sorted(assigned))
    partitions = [(topic, numbers) for topic, numbers in assigned.items()]
    return (
        member_id,
        said.get("instance"),
        said.get("client", member_id),
        said.get("host", "/10.0.0.1"),
        60_000,
        45_000,
        topics,
        [],
        partitions,
        None,
        None,
    )


def generation(offset: int, number: int | None, *members: tuple[Any, ...], **said: Any) -> dict[str, Any]:
    """One row of the generations of all kinds of groups, of group ``g``; without a number, a tombstone."""
    return {
        "log_partition": 0,
        "log_offset": offset,
        "append_ts": said.get("appended", at(offset)),
        "group": said.get("group", "g"),
        "kind": said.get("kind", "classic"),
        "protocol_type": "consumer",
        "generation": number,
        "protocol": said.get("protocol", "range") if members else None,
        "leader": members[0][0] if members else None,
        "state_ts": said.get("state_ts"),
        "members": None if number is None else list(members),
        "value_version": 3,
        "is_tombstone": number is None,
    }


def commit(offset: int, committed: int | None, **said: Any) -> dict[str, Any]:
    """One row of ``commits`` of group ``g`` for ``t-0``; without an offset, a tombstone."""
    return {
        "log_partition": 0,
        "log_offset": offset,
        "append_ts": said.get("when", at(offset)),
        "group": said.get("group", "g"),
        "topic": said.get("topic", "t"),
        "partition": said.get("partition", 0),
        "committed_offset": committed,
        "leader_epoch": None if committed is None else -1,
        "metadata": None if committed is None else "",
        "commit_ts": None if committed is None else said.get("when", at(offset)),
        "topic_id": said.get("topic_id"),
        "value_version": None if committed is None else 3,
        "is_tombstone": committed is None,
    }


def rows(found: DataFrame, *names: str) -> list[tuple[Any, ...]]:
    """The columns ``names`` of all rows, in order; times as seconds since the beginning."""
    collected = [tuple(row[name] for name in names) for row in found.collect()]
    plain = [tuple(since(value) if isinstance(value, datetime) else value for value in row) for row in collected]
    return sorted(plain, key=lambda row: [(value is None, str(type(value)), value) for value in row])
