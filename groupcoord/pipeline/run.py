"""The batch job of ``pipeline run``: reads and decodes a source once, derives all tables, and builds the report."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial, reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyspark
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from groupcoord.pipeline import schemas
from groupcoord.pipeline.arrow_columns import arrow_schema
from groupcoord.pipeline.assignor_replay.assignor_choice import AssignorChoice
from groupcoord.pipeline.assignor_replay.what_if_tables import partition_counts, what_if, what_if_summary
from groupcoord.pipeline.columnar_decoder import OF_RECORDS, PLACES
from groupcoord.pipeline.errors import PipelineError, SourceWarning
from groupcoord.pipeline.open_and_hanging_transactions import producer_text, utc_text
from groupcoord.pipeline.parallel_steps import ParallelSteps
from groupcoord.pipeline.progress import RunProgress
from groupcoord.pipeline.record_table_writer import DecodedLog, read_records
from groupcoord.pipeline.report.build_report import build_report
from groupcoord.pipeline.report.report_model import DETAILED
from groupcoord.pipeline.run_output import RunOutput
from groupcoord.pipeline.sources.factory import SourcePlan
from groupcoord.pipeline.spark_session import FOR_SMALL, INTERPRETED, MAP_HERE, SMALL, cancel_jobs, tag_jobs, twin
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
    whole_statistics,
)
from groupcoord.pipeline.tables.current_state import current_groups, current_offsets, latest_places
from groupcoord.pipeline.tables.group_health import group_health, is_long_open
from groupcoord.pipeline.tables.log_coverage import buckets_of, log_partitions, merge_buckets, places_in
from groupcoord.pipeline.tables.member_events import members
from groupcoord.pipeline.tables.modern_group_history import HISTORY, group_history, named, table_of_history, topic_names
from groupcoord.pipeline.tables.offset_expiry import with_expiry
from groupcoord.pipeline.tables.ownership_changes import ASSIGNMENTS, compare_assignments, ownership
from groupcoord.pipeline.tables.rebalances import of_all_kinds, rebalances, skew, storms

MOST_WARNED_OF = 1000
"""The most partitions with an open transaction, and the most topics without ends, that get a row in ``source_warnings``."""
SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Options of a run. ``now`` is the time at which lags are judged, by default when the cluster was asked where the log
    ends, or else the end of the log. ``replay_with`` are the assignors of the tables ``what_if`` and ``what_if_summary``.
    ``details`` is how many groups have a section of the report. ``offsets_retention_ms`` overrides the cluster's retention of
    offsets that the source reports."""

    as_of: datetime | None = None
    window: str = WINDOW
    ends: DataFrame | None = None
    now: datetime | None = None
    replay_with: tuple[AssignorChoice, ...] = ()
    details: int = DETAILED
    offsets_retention_ms: int | None = None


def run_pipeline(
    spark: SparkSession, plan: SourcePlan, output: RunOutput, options: RunOptions, progress: RunProgress
) -> dict[str, Any]:
    """Write all tables and the report; returns the summary (``run.json``). Raises PipelineError."""
    started = datetime.now(UTC)
    with ParallelSteps(lambda: cancel_jobs(spark, _TAG)) as steps:
        job = _Job(spark, output, options, progress, steps)
        plan = job.surveyed(plan)
        job.records(plan)
        job.modern()
        job.current()
        job.rebalances()
        job.commit_habits(plan)
        job.what_if()
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
        report = build_report(output.reader(), summary, options.details)
    output.finish(summary, report)
    return summary


class _Job:
    """The steps of a run. Each step writes a table, or an intermediate result that other steps read."""

    def __init__(
        self, spark: SparkSession, output: RunOutput, options: RunOptions, progress: RunProgress, steps: ParallelSteps
    ) -> None:
        self._spark = spark
        self._output = output
        self._options = options
        self._progress = progress
        self._steps = steps
        self._many = self._few = spark
        """The sessions for queries over many rows and over few rows."""
        self.now: datetime | None = options.now
        self._log_end: datetime | None = None
        self._warnings: list[SourceWarning] = []

    def surveyed(self, plan: SourcePlan) -> SourcePlan:
        """The plan to use, after a survey of the source if it needs one."""
        if plan.survey is None:
            return plan
        with self._progress.step("look through the source"):
            return plan.surveyed(self._spark)

    def records(self, plan: SourcePlan) -> None:
        """Read the source, and write the tables of records and what is counted over all of them."""
        with self._progress.step("read and decode") as rows:
            records = read_records(self._spark, plan, self._output, self._options.as_of)
            rows(records.read)
        if records.read == 0:
            raise PipelineError(f"{plan.spec} holds no records: no group has ever committed there")
        self._choose_sessions(records.read)
        for table in OF_RECORDS.values():
            found = records.rows[table.name]
            with self._progress.step(table.name) as rows:
                if found:
                    records.table(table)
                else:
                    self._output.put(_arrow(table, []), table.name)
                rows(found)
            self._steps.done(table.name, found)
        self._counts(records)
        self._warnings += plan.warnings + plan.remarks()
        if plan.records is not None and plan.records != records.read:
            what = "records that batches announce and that are not there, or that came while it was read"
            self._warnings.append(SourceWarning(plan.spec, what, None, plan.records - records.read, None))
        with self._progress.step("log_partitions") as rows:
            rows(self._log_partitions(plan, records))
        if records.statistics is None:
            self._step("statistics", partition_statistics, "commits")
        else:
            self._steps.done(records.statistics, 0)
            self._step("statistics", whole_statistics, records.statistics)

    def current(self) -> None:
        """Add the steps of the current offsets and groups, as the coordinator would load them."""
        few = ("statistics", "generations")
        self._step("last-offsets", _last_offsets, "statistics", of=few[:1])
        self._step("last-groups", partial(latest_places, keys=["group"]), "generations", of=few[1:])
        self._step("current_offsets", current_offsets, "commits", "last-offsets")
        groups = ("statistics", "generations", "last-groups", "history")
        self._step("current_groups", _current_groups, *groups, of=few)

    def rebalances(self) -> None:
        """Add the steps of ownership, members, rebalances, storms and skew."""
        files = self._output.files_of_tasks("ownership")
        compare = partial(compare_assignments, ownership_files=files)

        def owners(generations: DataFrame, modern: DataFrame, history: DataFrame, _: DataFrame) -> Any:
            """OWNERSHIP; where tasks write that of classic groups, only the rest of it."""
            if files and not self._steps.rows("history"):
                return _arrow(schemas.OWNERSHIP, [])
            played = table_of_history(history, schemas.OWNERSHIP)
            return played if files else ownership(of_all_kinds(generations, modern)).unionByName(played)

        few = ["assignments", "history"]
        self._step("assignments", _of_all(compare), *GENERATIONS_OF_ALL, only_with=GENERATIONS_OF_ALL)
        self._step("ownership", owners, *GENERATIONS_OF_ALL, "history", "assignments", only_with=few)
        self._step("members", _members, *few, of=few, only_with=few)
        self._step("rebalances", rebalances, *few[:1], only_with=few[:1])
        self._step("storms", storms, "rebalances", of=["rebalances"], only_with=["rebalances"])
        self._step("skew", skew, *few[:1], of=few[:1], only_with=few[:1])

    def commit_habits(self, plan: SourcePlan) -> None:
        """Add the steps of commit rates, gaps, pauses, zombies and lag."""
        self._step("commit_rates", partial(commit_rates, window=self._options.window), "commits", "statistics")
        ends, known = self._ends(plan)
        follow = partial(consecutive_commits, rows=self._steps.rows("commits"), recent=RECENT if ends or known else 0)
        self._step("followed-commits", follow, "commits", "statistics", "ownership")
        until = self._options.as_of or self._log_end
        followed, few = ("followed-commits", "statistics"), ["followed-commits", "statistics"]
        self._step("commit_gaps", partial(commit_gaps, log_end=until), *followed, "current_offsets", of=few)
        self._step("commit_pauses", commit_pauses, "commit_gaps", of=["commit_gaps"], only_with=["commit_gaps"])
        of_zombies = (*GENERATIONS_OF_ALL, *followed, "ownership", "commits")
        self._step("zombies", _zombies, *of_zombies, only_with=followed[:1])

        retention_ms = self._options.offsets_retention_ms or plan.offsets_retention_ms

        def lags(current: DataFrame, groups: DataFrame, *others: DataFrame) -> DataFrame:
            steps, statistics, *ends = others
            expiring = with_expiry(current, groups, retention_ms)
            return lag(expiring, steps, statistics, ends[0] if ends else known, self.now)

        self._step("lag", lags, "current_offsets", "current_groups", *followed, *ends, of=few)

    def modern(self) -> None:
        """Add the steps for consumer, share and streams groups: their history, generations and epochs."""
        if_any = ["modern_records"]

        def play(records: DataFrame, commits: DataFrame, generations: DataFrame) -> DataFrame:
            return named(group_history(records, generations), "described", topic_names(commits, records))

        self._step("history", play, "modern_records", "commits", "generations", only_with=if_any)
        for table in (schemas.MODERN_GENERATIONS, schemas.EPOCHS):
            make = partial(table_of_history, table=table)
            self._step(table.name, make, "history", of=["history"], only_with=if_any)

    def what_if(self) -> None:
        """Add the steps that replay the groups with other assignors, if ``replay_with`` asks for them."""
        chosen = self._options.replay_with
        if not chosen:
            self._rows(schemas.WHAT_IF, [])
            self._rows(schemas.WHAT_IF_SUMMARY, [])
            return
        count = _of_all(partial(_partition_counts, ends=self._ends_until_as_of()))
        self._step("partition-counts", count, *GENERATIONS_OF_ALL, "statistics")
        tasks = int(self._many.conf.get(SHUFFLE_PARTITIONS))
        play = _of_all(partial(what_if, chosen=chosen, tasks=tasks))
        self._step("what_if", play, *GENERATIONS_OF_ALL, "partition-counts")
        self._step("what_if_summary", what_if_summary, "what_if")

    def group_health(self) -> None:
        """Add the steps of source_warnings and group_health."""
        few = ["statistics", "generations"]
        self._step("partitions-of-groups", _partitions_of_groups, "statistics", "generations", "modern_records", of=few)
        few = ["partitions-of-groups", *(("ends", "current_offsets") if self._has_asked_for_ends else ())]
        self._step("source_warnings", self._source_warnings, *few, of=few)

        def health(of_log: DataFrame, *tables: DataFrame) -> DataFrame:
            return group_health(dict(zip(HEALTH_TABLES, tables, strict=True)), of_log, self.now)

        few = ["commit_rates", "lag", "rebalances"]
        self._step("group_health", health, "partitions-of-groups", *HEALTH_TABLES, of=few)

    def _step(
        self,
        name: str,
        make: Callable[..., Any],
        *inputs: str,
        of: Sequence[str] = (),
        only_with: Sequence[str] = (),
    ) -> None:
        """Add a step that writes the result of ``make(*inputs)`` as ``name`` as soon as the inputs are done. If none of
        ``only_with`` has rows, the result is empty and ``make`` is not called. If the tables ``of`` have few rows in all, the
        query is interpreted, not compiled."""

        def work() -> int:
            tag_jobs(self._spark, _TAG)
            counts = {one: self._steps.rows(one) for one in (*inputs, *of)}
            session = self._few if of and sum(counts[one] for one in of) < SMALL else self._many
            with self._progress.step(name) as rows:
                if only_with and not any(map(self._steps.rows, only_with)):
                    found = self._output.put(_arrow(_EMPTY[name], []), name)
                else:
                    found = self._output.put(make(*(self._output.get(one, session) for one in inputs)), name)
                rows(found)
            return found

        self._steps.add(name, work)

    def _rows(self, table: schemas.TableSchema, rows: list[Any]) -> None:
        """Write a table from ``rows`` in memory."""
        with self._progress.step(table.name) as told:
            told(self._output.put(_arrow(table, rows), table.name))
        self._steps.done(table.name, len(rows))

    def _choose_sessions(self, records: int) -> None:
        """Create the sessions of the steps for this number of records; the caller's session is not changed."""
        if records < SMALL:
            self._many = self._few = twin(self._spark, {**FOR_SMALL, MAP_HERE: "true"})
            return
        # The more records, the more tasks: so the memory of a task does not depend on the length of the log.
        tasks = max(int(self._spark.conf.get(SHUFFLE_PARTITIONS)), records // ROWS_A_TASK)
        self._many = twin(self._spark, {SHUFFLE_PARTITIONS: str(tasks)})
        self._few = twin(self._many, INTERPRETED)

    def _counts(self, records: DecodedLog) -> None:
        """Check that every record that was read is in a table or was later than asked for; write ``record_counts``."""
        where = {name: self._steps.rows(name) for name in OF_RECORDS}
        out = sum(where.values()) + records.later
        if out != records.read:
            raise PipelineError(
                f"{records.read:,} records came in and {out:,} went out ({where}): this is a fault of the pipeline"
            )
        self._rows(schemas.RECORD_COUNTS, [("in", records.read), ("later", records.later), *where.items()])

    def _log_partitions(self, plan: SourcePlan, records: DecodedLog) -> int:
        tables = [self._output.get(name, self._many).select(*PLACES) for name in OF_RECORDS]
        of_plan = None if plan.hidden is None else plan.hidden(self._many)
        if of_plan is not None and self._options.as_of is not None:
            of_plan = of_plan.where(self._until_as_of())
        hidden = [one.select(*PLACES) for one in (records.hidden, of_plan) if one is not None]
        parts = [] if records.buckets is None else [records.buckets]
        if records.buckets is None:
            parts += [buckets_of(one, is_hidden=False) for one in tables]
            parts += [buckets_of(one, is_hidden=True) for one in hidden]
        elif of_plan is not None:
            parts.append(buckets_of(of_plan.select(*PLACES), is_hidden=True))

        def places(buckets: Any) -> Any:
            return places_in(
                reduce(DataFrame.unionByName, tables + hidden), self._many.createDataFrame(buckets)
            ).toArrow()

        found = log_partitions(merge_buckets(pa.concat_tables(parts)), places)
        self._log_end = pc.max(found["last_ts"]).as_py()
        self.now = self._options.as_of or self._options.now or plan.asked_at or self._log_end
        rows = self._output.put(found, "log_partitions")
        self._steps.done("log_partitions", rows)
        return rows

    def _until_as_of(self) -> Column:
        return F.col("append_ts").isNull() | (F.col("append_ts") <= F.lit(self._options.as_of))

    def _ends(self, plan: SourcePlan) -> tuple[list[str], DataFrame | None]:
        """The name of the step that asks the cluster for end offsets, if there is one; else END_OFFSETS of ``--end-offsets``,
        if given."""
        known = self._ends_until_as_of()
        # With --as-of the cluster is not asked: it only knows the end offsets of now.
        self._has_asked_for_ends = known is None and plan.ends is not None and self._options.as_of is None
        if not self._has_asked_for_ends or plan.ends is None:
            self._rows(schemas.OPEN_TRANSACTIONS, [])
            return [], known
        self._step("ends", plan.ends, "current_offsets")
        self._step("open_transactions", _open_transactions, "ends", "current_offsets")
        return ["ends"], None

    def _ends_until_as_of(self) -> DataFrame | None:
        """The end offsets of ``--end-offsets`` that were observed up to ``--as-of``."""
        if self._options.ends is None or self._options.as_of is None:
            return self._options.ends
        return self._options.ends.where(F.col("at") <= F.lit(self._options.as_of))

    def _source_warnings(self, of_log: DataFrame, *asked: DataFrame) -> Any:
        split = of_log.groupBy("group").count().where("count > 1").count()
        warnings = list(self._warnings)
        if asked:
            ends, current = asked
            is_told = is_long_open("open_transaction.since", self.now) | F.col("open_transaction.since").isNull()
            held_up = ends.where("open_transaction is not null").where(is_told)
            warnings += map(_held_up, held_up.orderBy("topic", "partition").limit(MOST_WARNED_OF).collect())
            without = current.join(ends, ["topic", "partition"], "left_anti").select("topic", "partition").distinct()
            topics = without.groupBy("topic").count().orderBy("topic").limit(MOST_WARNED_OF)
            warnings += map(_without_ends, topics.collect())
        if split:
            what = (
                f"{split:,} {'group has' if split == 1 else 'groups have'} records in more than one partition of the log, as "
                "after another offsets.topic.num.partitions: of each key the record counts that was appended last"
            )
            warnings.append(SourceWarning("__consumer_offsets", what, None, None, None))
        return _arrow(schemas.SOURCE_WARNINGS, warnings)


_TAG = "groupcoord-pipeline"
"""The Spark job tag of all steps, by which they are cancelled."""
HEALTH_TABLES = (
    "rebalances",
    "storms",
    "commit_pauses",
    "zombies",
    "commit_rates",
    "lag",
    "open_transactions",
    "current_groups",
    "log_partitions",
)
"""The tables that ``group_health`` reads."""


GENERATIONS_OF_ALL = ("generations", "modern_generations")
"""The generations of classic groups, and those of consumer, share and streams groups."""
_EMPTY = {**schemas.TABLES, "history": HISTORY, "assignments": ASSIGNMENTS}
"""The schemas of steps that may be skipped, for their empty results."""


def _of_all(make: Callable[..., Any]) -> Callable[..., Any]:
    """Turn ``make``, which takes the generations of all groups, into a function of the two tables GENERATIONS_OF_ALL."""
    return lambda generations, modern, *more: make(of_all_kinds(generations, modern), *more)


def _members(assignments: DataFrame, history: DataFrame) -> DataFrame:
    return members(assignments, table_of_history(history, schemas.MEMBERS))


def _partition_counts(generations: DataFrame, statistics: DataFrame, ends: DataFrame | None) -> DataFrame:
    return partition_counts(statistics, generations, ends)


def _zombies(
    generations: DataFrame,
    modern: DataFrame,
    followed: DataFrame,
    statistics: DataFrame,
    changes: DataFrame,
    commits: DataFrame,
) -> Any:
    if followed.where("is_suspect").isEmpty():
        return _arrow(schemas.ZOMBIES, [])
    return zombies(followed, statistics, changes, of_all_kinds(generations, modern), commits)


def _last_offsets(statistics: DataFrame) -> DataFrame:
    """The place of the last record of each group, topic and partition."""
    return latest_places(statistics.withColumnRenamed("last_record", "log_offset"), ["group", "topic", "partition"])


def _current_groups(statistics: DataFrame, generations: DataFrame, places: DataFrame, history: DataFrame) -> DataFrame:
    last_commits = statistics.where("last_commit is not null").selectExpr(
        "`group`", "log_partition", "last_commit as log_offset", "append_ts", "false as is_tombstone"
    )
    return current_groups(last_commits, generations, places, table_of_history(history, schemas.CURRENT_GROUPS))


def _partitions_of_groups(*tables: DataFrame) -> DataFrame:
    """The partitions of the log in which each group has records."""
    return reduce(DataFrame.union, (table.select("group", "log_partition") for table in tables)).distinct()


def _arrow(table: schemas.TableSchema, rows: list[Any]) -> Any:
    """``rows`` of ``table`` as an Arrow table."""
    schema = arrow_schema(table.columns)
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _open_transactions(ends: DataFrame, current: DataFrame) -> Any:
    held_up = ends.where("open_transaction is not null")
    return _arrow(schemas.OPEN_TRANSACTIONS, []) if held_up.isEmpty() else open_transactions(held_up, current)


def _held_up(end: Row) -> SourceWarning:
    """The warning about a partition of END_OFFSETS with an open transaction."""
    stable, producer, transactional_id, since = end["open_transaction"]
    behind = end["end_offset"] - stable
    who = "" if producer is None else f" of {producer_text(producer, transactional_id)}"
    when = "" if since is None else f", since {utc_text(since.astimezone(UTC))}"
    what = (
        f"{behind:,} {'offset is' if behind == 1 else 'offsets are'} behind an open transaction{who}{when}: "
        f"consumers that read committed stop at offset {stable:,}"
    )
    return SourceWarning(f"{end['topic']}-{end['partition']}", what, None, None, None)


def _without_ends(of_topic: Row) -> SourceWarning:
    """The warning about a topic of which no broker tells the ends of all partitions that groups have committed offsets for."""
    count = of_topic["count"]
    what = (
        f"where {count:,} of its partitions {'ends' if count == 1 else 'end'} is not known, and so no lag there: the topic is "
        "gone, or has no leader there, or this user may not describe it"
    )
    return SourceWarning(of_topic["topic"], what, None, None, None)
