"""The whole job: a source is read once, decoded, and made into all tables."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from typing import Any

import pyarrow as pa
import pyspark
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from groupcoord.pipeline import schemas
from groupcoord.pipeline.arrow_columns import arrow_schema
from groupcoord.pipeline.assignor_replay.assignor_choice import AssignorChoice
from groupcoord.pipeline.assignor_replay.what_if_tables import partition_counts, what_if, what_if_summary
from groupcoord.pipeline.columnar_decoder import OF_RECORDS, PLACES
from groupcoord.pipeline.errors import PipelineError, SourceWarning
from groupcoord.pipeline.progress import RunProgress
from groupcoord.pipeline.record_table_writer import DecodedLog, read_records
from groupcoord.pipeline.report.build_report import build_report
from groupcoord.pipeline.run_output import RunOutput
from groupcoord.pipeline.sources.factory import SourcePlan
from groupcoord.pipeline.spark_session import FOR_SMALL, INTERPRETED, SMALL
from groupcoord.pipeline.tables.commit_tables import (
    WINDOW,
    commit_gaps,
    commit_pauses,
    commit_rates,
    lag,
    open_transactions,
    zombies,
)
from groupcoord.pipeline.tables.consecutive_commits import (
    RECENT,
    ROWS_A_TASK,
    consecutive_commits,
    partition_statistics,
)
from groupcoord.pipeline.tables.current_state import current_groups, current_offsets, latest_places
from groupcoord.pipeline.tables.group_health import group_health
from groupcoord.pipeline.tables.group_history import HISTORY, group_history, named, table_of_history, topic_names
from groupcoord.pipeline.tables.log_coverage import in_buckets, last_holes, log_partitions
from groupcoord.pipeline.tables.member_lives import members
from groupcoord.pipeline.tables.ownership_changes import find_ownership_changes, ownership
from groupcoord.pipeline.tables.rebalances import of_all_kinds, rebalances, skew, storms

MOST_HELD_UP = 1000
"""The most partitions with an open transaction that are told one by one."""
SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What a run is to do. ``now``, for the status of lags, is the end of the log by default; ``replay_with`` are the
    assignors of the tables ``what_if``."""

    as_of: datetime | None = None
    window: str = WINDOW
    ends: DataFrame | None = None
    now: datetime | None = None
    replay_with: tuple[AssignorChoice, ...] = ()


def run_pipeline(
    spark: SparkSession, plan: SourcePlan, output: RunOutput, options: RunOptions, progress: RunProgress
) -> dict[str, Any]:
    """Write all tables; returns the summary that is written beside them. Raises PipelineError."""
    started = datetime.now(UTC)
    job = _Job(spark, output, options, progress)
    job.records(plan)
    job.modern()
    job.current()
    job.rebalances()
    job.commit_habits(plan)
    job.what_if()
    job.remarks()
    job.group_health()
    summary = {
        "source": plan.spec,
        "as_of": None if options.as_of is None else options.as_of.isoformat(),
        "now": None if job.now is None else job.now.isoformat(),
        "replay_with": [choice.spec for choice in options.replay_with],
        "started_at": started.isoformat(),
        "seconds": round(progress.seconds, 1),
        "spark": pyspark.__version__,
        "rows": {name: progress.rows[name] for name in schemas.TABLES},
    }
    with progress.step("report"):
        report = build_report(output.reader(), summary)
    output.finish(summary, report)
    return summary


class _Job:
    """The tables that are there so far, by name; each step adds some."""

    def __init__(self, spark: SparkSession, output: RunOutput, options: RunOptions, progress: RunProgress) -> None:
        self._spark = spark
        self._output = output
        self._options = options
        self._progress = progress
        self.tables: dict[str, DataFrame] = {}
        self.now: datetime | None = options.now
        self._log_end: datetime | None = None
        self._warnings: list[SourceWarning] = []

    def records(self, plan: SourcePlan) -> None:
        """Read, decode, count."""
        if plan.survey is not None:
            with self._progress.step("look through the source"):
                plan = plan.surveyed(self._spark)
        with self._progress.step("read and decode") as rows:
            records = read_records(self._spark, plan, self._output, self._options.as_of)
            rows(records.read)
        if records.read == 0:
            raise PipelineError(f"{plan.spec} holds no records: no group has ever committed there")
        if records.read < SMALL:
            for name, value in FOR_SMALL.items():
                self._spark.conf.set(name, value)
        else:  # what a task has to hold stays the same, however long the log is
            tasks = int(self._spark.conf.get(SHUFFLE_PARTITIONS))
            self._spark.conf.set(SHUFFLE_PARTITIONS, str(max(tasks, records.read // ROWS_A_TASK)))
        for table in OF_RECORDS.values():
            found = records.rows[table.name]
            with self._progress.step(table.name) as rows, self._few(found):
                if found:
                    self.tables[table.name] = records.table(table)
                else:
                    self.tables[table.name] = self._output.write(self._rows(table, []), table)
                rows(found)
        self._counts(records)
        self._warnings += plan.warnings + plan.remarks()
        if plan.records is not None and plan.records != records.read:
            what = "records that batches announce and that are not there, or that came while it was read"
            self._warnings.append(SourceWarning(plan.spec, what, None, plan.records - records.read, None))
        places = [
            self.tables[table.name].select(*PLACES, F.expr("false as is_hidden")) for table in OF_RECORDS.values()
        ]
        for hidden in (records.hidden, None if plan.hidden is None else plan.hidden(self._spark)):
            if hidden is not None:
                asked = hidden if self._options.as_of is None else hidden.where(self._until_as_of())
                places.append(asked.select(*PLACES, F.expr("true as is_hidden")))
        self._log_partitions(reduce(DataFrame.unionByName, places))
        self._log_end = self.tables["log_partitions"].agg(F.max("last_ts")).first()[0]
        self.now = self._options.as_of or self._options.now or self._log_end

    def current(self) -> None:
        """What the coordinator would know."""
        commits_, generations = self.tables["commits"], self.tables["generations"]
        with self._progress.step("find the last records"):
            statistics = self._statistics = self._output.stage(partition_statistics(commits_), "statistics")
            records = statistics.withColumnRenamed("last_record", "log_offset")
            of_offsets = self._output.stage(latest_places(records, ["group", "topic", "partition"]), "last-offsets")
            with self._few(self._progress.rows["generations"]):
                of_groups = self._output.stage(latest_places(generations, ["group"]), "last-groups")
        few = self._output.staged_rows("statistics") + self._progress.rows["generations"]
        self._table("current_offsets", current_offsets(commits_, of_offsets))
        last_commits = statistics.where("last_commit is not null").selectExpr(
            "`group`", "log_partition", "last_commit as log_offset", "append_ts", "false as is_tombstone"
        )
        modern = table_of_history(self._history, schemas.CURRENT_GROUPS)
        self._table("current_groups", current_groups(last_commits, generations, of_groups, modern), of=few)

    def rebalances(self) -> None:
        """What became of the groups."""
        modern = self.tables["modern_generations"]
        self._generations = of_all_kinds(self.tables["generations"], modern)
        few = self._progress.rows["generations"] + self._output.staged_rows("history")
        with self._progress.step("follow each partition"):
            owned = self._output.stage(find_ownership_changes(self._generations), "owners")
        played = {table: table_of_history(self._history, table) for table in (schemas.OWNERSHIP, schemas.MEMBERS)}
        self._table("ownership", ownership(owned, played[schemas.OWNERSHIP]))
        self._table("members", members(self._generations, played[schemas.MEMBERS]), of=few)
        self._table("rebalances", rebalances(self._generations, owned))
        self._table("storms", storms(self.tables["rebalances"]), of=self._progress.rows["rebalances"])
        self._table("skew", skew(self._generations), of=few)

    def commit_habits(self, plan: SourcePlan) -> None:
        """How groups commit, and how far behind they are."""
        commits_, current_ = self.tables["commits"], self.tables["current_offsets"]
        statistics, changes = self._statistics, self.tables["ownership"]
        self._table("commit_rates", commit_rates(commits_, statistics, self._options.window))
        ends = self._ends(plan, current_)
        with self._progress.step("follow each commit"):
            recent, rows = 0 if ends is None else RECENT, self._progress.rows["commits"]
            stepped = self._output.stage(
                consecutive_commits(commits_, statistics, changes, rows=rows, recent=recent), "steps"
            )
        few = self._output.staged_rows("steps") + self._output.staged_rows("statistics")
        until = self._options.as_of or self._log_end
        self._table("commit_gaps", commit_gaps(stepped, statistics, current_, until), of=few)
        self._table("commit_pauses", commit_pauses(self.tables["commit_gaps"]), of=self._progress.rows["commit_gaps"])
        if stepped.where("is_suspect").isEmpty():
            self._empty(schemas.ZOMBIES)
        else:
            self._table("zombies", zombies(stepped, statistics, changes, self._generations, commits_))
        self._table("lag", lag(current_, stepped, statistics, ends, self.now), of=few)

    def modern(self) -> None:
        """What became of the groups that are not classic."""
        records = self.tables["modern_records"]
        if not self._progress.rows["modern_records"]:
            self._history = self._rows(HISTORY, [])
            self._empty(schemas.MODERN_GENERATIONS, schemas.EPOCHS)
            return
        with self._progress.step("play the groups that are not classic"):
            names = topic_names(self.tables["commits"], records)
            lived = named(group_history(records, self.tables["generations"]), "described", names)
            self._history = self._output.stage(lived, "history")
        for table in (schemas.MODERN_GENERATIONS, schemas.EPOCHS):
            self._table(table.name, table_of_history(self._history, table), of=self._output.staged_rows("history"))

    def what_if(self) -> None:
        """What other assignors would have done, if that is asked."""
        if not self._options.replay_with:
            self._empty(schemas.WHAT_IF, schemas.WHAT_IF_SUMMARY)
            return
        with self._progress.step("count partitions"):
            counts = self._output.stage(
                partition_counts(self._statistics, self._generations, self._ends_until_as_of()), "counts"
            )
        tasks = int(self._spark.conf.get(SHUFFLE_PARTITIONS))
        self._table("what_if", what_if(self._generations, counts, self._options.replay_with, tasks))
        self._table("what_if_summary", what_if_summary(self.tables["what_if"]))

    def remarks(self) -> None:
        """What is to be said of the source."""
        of_log = reduce(
            DataFrame.union,
            (
                frame.select("group", "log_partition")
                for frame in (self._statistics, self.tables["generations"], self.tables["modern_records"])
            ),
        ).distinct()
        with self._few(self._output.staged_rows("statistics") + self._progress.rows["generations"]):
            self._of_log = self._output.stage(of_log, "log-partitions-of-groups")
            split = self._of_log.groupBy("group").count().where("count > 1").count()
        if split:
            what = (
                f"{split:,} {'group has' if split == 1 else 'groups have'} records in more than one partition of the log, as "
                "after another offsets.topic.num.partitions: of each key the record counts that was appended last"
            )
            self._warnings.append(SourceWarning("__consumer_offsets", what, None, None, None))
        rows = self._rows(schemas.SOURCE_WARNINGS, self._warnings)
        self._table("source_warnings", rows, of=len(self._warnings))

    def group_health(self) -> None:
        """What all of these say of each group."""
        rows = self._progress.rows
        self._table(
            "group_health",
            group_health(self.tables, self._of_log),
            of=sum(rows[name] for name in ("commit_rates", "lag", "rebalances")),
        )

    def _empty(self, *tables: schemas.TableSchema) -> None:
        """Write tables without rows."""
        for table in tables:
            self._table(table.name, self._rows(table, []), of=0)

    def _table(self, name: str, frame: DataFrame, *, of: int = SMALL) -> None:
        """Write a table. It is made of the rows of others, ``of`` so many: a few are not worth a query in Java."""
        with self._progress.step(name) as rows, self._few(of):
            self.tables[name] = self._output.write(frame, schemas.TABLES[name])
            rows(self._output.rows(schemas.TABLES[name]))

    @contextmanager
    def _few(self, rows: int) -> Iterator[None]:
        """Queries in here, over so many rows, are interpreted if that takes less time."""
        before = {name: self._spark.conf.get(name) for name in INTERPRETED}
        try:
            if rows < SMALL:
                for name, value in INTERPRETED.items():
                    self._spark.conf.set(name, value)
            yield
        finally:
            for name, value in before.items():
                self._spark.conf.set(name, value)

    def _counts(self, records: DecodedLog) -> None:
        """What came in must have gone somewhere."""
        where = {table.name: self._progress.rows[table.name] for table in OF_RECORDS.values()}
        out = sum(where.values()) + records.later
        if out != records.read:
            raise PipelineError(
                f"{records.read:,} records came in and {out:,} went out ({where}): this is a fault of the pipeline"
            )
        rows = [("in", records.read), ("later", records.later), *where.items()]
        self._table("record_counts", self._rows(schemas.RECORD_COUNTS, rows), of=len(rows))

    def _log_partitions(self, places: DataFrame) -> None:
        with self._progress.step("look for holes"):
            buckets = self._output.stage(in_buckets(places), "buckets")
            few = self._output.staged_rows("buckets")
            with self._few(few):
                last = self._output.stage(last_holes(buckets), "last-holes")
                is_any_holed = not last.where("is_holed").isEmpty()
        self._table(
            "log_partitions",
            log_partitions(buckets, last, places if is_any_holed else None),
            of=SMALL if is_any_holed else few,
        )

    def _until_as_of(self) -> Column:
        return F.col("append_ts").isNull() | (F.col("append_ts") <= F.lit(self._options.as_of))

    def _ends(self, plan: SourcePlan, current: DataFrame) -> DataFrame | None:
        known = self._ends_until_as_of()
        if known is not None or plan.ends is None or self._options.as_of is not None:  # then the ends are unknown
            self._empty(schemas.OPEN_TRANSACTIONS)
            return known
        ends = self._output.stage(plan.ends(current), "ends")
        held_up = ends.where("open_transaction is not null")
        told = held_up.orderBy("topic", "partition").limit(MOST_HELD_UP).collect()
        self._warnings += map(_held_up, told)
        if told:
            self._table("open_transactions", open_transactions(held_up, current))
        else:
            self._empty(schemas.OPEN_TRANSACTIONS)
        return ends

    def _ends_until_as_of(self) -> DataFrame | None:
        """What ``--end-offsets`` says of the time until the moment that is asked for."""
        if self._options.ends is None or self._options.as_of is None:
            return self._options.ends
        return self._options.ends.where(F.col("at") <= F.lit(self._options.as_of))

    def _rows(self, table: schemas.TableSchema, rows: list[Any]) -> DataFrame:
        if not rows:
            nothing = [F.lit(None).cast(column.type).alias(column.name) for column in table.columns]
            return self._spark.range(0).where("false").select(*nothing)
        schema = arrow_schema(table.columns)
        columns = [pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), schema, strict=True)]
        return self._spark.createDataFrame(pa.Table.from_arrays(columns, schema=schema))


def _held_up(end: Row) -> SourceWarning:
    """What is to be said of a partition of END_OFFSETS with an open transaction."""
    stable, producer, since = end["open_transaction"]
    behind = end["end_offset"] - stable
    who = "" if producer is None else f" of producer {producer}"
    when = "" if since is None else f", since {since.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    what = (
        f"{behind:,} {'offset is' if behind == 1 else 'offsets are'} behind an open transaction{who}{when}: "
        f"consumers that read committed stop at offset {stable:,}"
    )
    return SourceWarning(f"{end['topic']}-{end['partition']}", what, None, None, None)
