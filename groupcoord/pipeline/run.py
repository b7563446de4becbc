"""The whole job: a source is read once, decoded, and made into all tables."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from typing import Any

import pyarrow as pa
import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from groupcoord.pipeline.decode.split import OF_RECORDS, PLACES
from groupcoord.pipeline.errors import PipelineError
from groupcoord.pipeline.output import Output
from groupcoord.pipeline.progress import Progress
from groupcoord.pipeline.records import Records, read_records
from groupcoord.pipeline.report.build import build_report
from groupcoord.pipeline.schemas import (
    MODERN_CURRENT_GROUPS,
    MODERN_GENERATIONS,
    MODERN_REBALANCES,
    MODERN_SKEW,
    RECORD_COUNTS,
    SOURCE_REMARKS,
    TABLES,
    WHAT_IF,
    WHAT_IF_SUMMARY,
    ZOMBIES,
    Table,
)
from groupcoord.pipeline.session import FOR_SMALL, INTERPRETED, SMALL
from groupcoord.pipeline.sources.plan import Plan
from groupcoord.pipeline.sources.remark import Remark
from groupcoord.pipeline.tables.coverage import in_buckets, last_holes, log_partitions
from groupcoord.pipeline.tables.current import current_groups, current_offsets
from groupcoord.pipeline.tables.gaps import commit_gaps
from groupcoord.pipeline.tables.lag import lag
from groupcoord.pipeline.tables.latest import latest_places
from groupcoord.pipeline.tables.modern import modern_current_groups, modern_generations, played, topic_names
from groupcoord.pipeline.tables.ownership import owners, ownership
from groupcoord.pipeline.tables.rates import WINDOW, commit_rates
from groupcoord.pipeline.tables.rebalances import rebalances
from groupcoord.pipeline.tables.skew import skew
from groupcoord.pipeline.tables.steps import RECENT, ROWS_A_TASK, key_statistics, steps
from groupcoord.pipeline.tables.storms import storms
from groupcoord.pipeline.tables.trouble import trouble
from groupcoord.pipeline.tables.zombies import zombies
from groupcoord.pipeline.types import arrow_schema
from groupcoord.pipeline.whatif.choice import Choice
from groupcoord.pipeline.whatif.counts import partition_counts
from groupcoord.pipeline.whatif.tables import what_if, what_if_summary

SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What is asked of a run. ``now``, for the status of lags, is the end of the log unless it is said; ``replay_with`` are the
    assignors of the tables ``what_if``."""

    as_of: datetime | None = None
    window: str = WINDOW
    ends: DataFrame | None = None
    now: datetime | None = None
    replay_with: tuple[Choice, ...] = ()


def run_pipeline(spark: SparkSession, plan: Plan, output: Output, wish: Wish, progress: Progress) -> dict[str, Any]:
    """Write all tables; returns the summary that is written beside them. Raises PipelineError."""
    started = datetime.now(UTC)
    job = _Job(spark, output, wish, progress)
    job.records(plan)
    job.current()
    job.rebalances()
    job.commit_habits(plan)
    job.modern()
    job.what_if()
    job.trouble()
    summary = {
        "source": plan.said,
        "as_of": None if wish.as_of is None else wish.as_of.isoformat(),
        "now": None if job.now is None else job.now.isoformat(),
        "replay_with": [choice.said for choice in wish.replay_with],
        "started_at": started.isoformat(),
        "seconds": round(progress.seconds, 1),
        "spark": pyspark.__version__,
        "rows": {name: progress.rows[name] for name in TABLES},
    }
    with progress.step("report"):
        report = build_report(output.reader(), summary)
    output.finish(summary, report)
    return summary


class _Job:
    """The tables that are there so far, by name; each step adds some."""

    def __init__(self, spark: SparkSession, output: Output, wish: Wish, progress: Progress) -> None:
        self._spark = spark
        self._output = output
        self._wish = wish
        self._progress = progress
        self.tables: dict[str, DataFrame] = {}
        self.now: datetime | None = wish.now
        self._log_end: datetime | None = None

    def records(self, plan: Plan) -> None:
        """Read, decode, count."""
        with self._progress.step("read and decode") as rows:
            records = read_records(self._spark, plan, self._output, self._wish.as_of)
            rows(records.read)
        if records.read == 0:
            raise PipelineError(f"{plan.said} holds no records: no group has ever committed there")
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
        self._remarks(plan, records.read)
        places = [self.tables[table.name].select(*PLACES) for table in OF_RECORDS.values()]
        self._log_partitions(reduce(DataFrame.unionByName, places))
        self._log_end = self.tables["log_partitions"].agg(F.max("last_ts")).first()[0]
        self.now = self._wish.as_of or self._wish.now or self._log_end

    def current(self) -> None:
        """What the coordinator would know."""
        commits_, generations = self.tables["commits"], self.tables["generations"]
        with self._progress.step("find the last records"):
            statistics = self._statistics = self._output.stage(key_statistics(commits_), "statistics")
            records = statistics.withColumnRenamed("last_record", "log_offset")
            of_offsets = self._output.stage(latest_places(records, ["group", "topic", "partition"]), "last-offsets")
            with self._few(self._progress.rows["generations"]):
                of_groups = self._output.stage(latest_places(generations, ["group"]), "last-groups")
        few = self._output.staged_rows("statistics") + self._progress.rows["generations"]
        self._table("current_offsets", current_offsets(commits_, of_offsets))
        last_commits = statistics.where("last_commit is not null").selectExpr(
            "`group`", "log_partition", "last_commit as log_offset", "false as is_tombstone"
        )
        modern = self.tables["modern_records"]
        self._table("current_groups", current_groups(last_commits, generations, of_groups, modern), of=few)

    def rebalances(self) -> None:
        """What became of the groups."""
        generations = self.tables["generations"]
        with self._progress.step("follow each partition"):
            owned = self._output.stage(owners(generations), "owners")
        self._table("ownership", ownership(owned))
        self._table("rebalances", rebalances(generations, owned))
        self._table("storms", storms(self.tables["rebalances"]), of=self._progress.rows["rebalances"])
        self._table("skew", skew(generations), of=self._progress.rows["generations"])

    def commit_habits(self, plan: Plan) -> None:
        """How groups commit, and how far behind they are."""
        commits_, current_ = self.tables["commits"], self.tables["current_offsets"]
        statistics, changes = self._statistics, self.tables["ownership"]
        self._table("commit_rates", commit_rates(commits_, statistics, self._wish.window))
        ends = self._ends(plan, current_)
        with self._progress.step("follow each commit"):
            recent, rows = 0 if ends is None else RECENT, self._progress.rows["commits"]
            stepped = self._output.stage(steps(commits_, statistics, changes, rows=rows, recent=recent), "steps")
        few = self._output.staged_rows("steps") + self._output.staged_rows("statistics")
        until = self._wish.as_of or self._log_end
        self._table("commit_gaps", commit_gaps(stepped, statistics, current_, until), of=few)
        if stepped.where("is_suspect").isEmpty():
            self._table("zombies", self._rows(ZOMBIES, []), of=0)
        else:
            self._table("zombies", zombies(stepped, statistics, changes, self.tables["generations"], commits_))
        self._table("lag", lag(current_, stepped, statistics, ends, self.now), of=few)

    def modern(self) -> None:
        """The groups of KIP-848."""
        records = self.tables["modern_records"]
        if not self._progress.rows["modern_records"]:
            for table in (MODERN_GENERATIONS, MODERN_CURRENT_GROUPS, MODERN_REBALANCES, MODERN_SKEW):
                self._table(table.name, self._rows(table, []), of=0)
            return
        with self._progress.step("play the groups of KIP-848"):
            play = self._output.stage(played(records, topic_names(self.tables["commits"], records)), "played")
        self._table("modern_generations", modern_generations(play))
        self._table("modern_current_groups", modern_current_groups(play))
        generations = self.tables["modern_generations"]
        self._table("modern_rebalances", rebalances(generations, owners(generations)))
        self._table("modern_skew", skew(generations))

    def what_if(self) -> None:
        """What other assignors would have done, if that is asked."""
        if not self._wish.replay_with:
            for table in (WHAT_IF, WHAT_IF_SUMMARY):
                self._table(table.name, self._rows(table, []), of=0)
            return
        groups = self.tables["generations"], self.tables["modern_generations"]
        with self._progress.step("count partitions"):
            counts = self._output.stage(partition_counts(self._statistics, *groups, self._ends_until_as_of()), "counts")
        tasks = int(self._spark.conf.get(SHUFFLE_PARTITIONS))
        self._table("what_if", what_if(*groups, counts, self._wish.replay_with, tasks))
        self._table("what_if_summary", what_if_summary(self.tables["what_if"]))

    def trouble(self) -> None:
        """What all of these say of each group."""
        rows = self._progress.rows
        self._table(
            "trouble", trouble(self.tables), of=sum(rows[name] for name in ("commit_rates", "lag", "rebalances"))
        )

    def _table(self, name: str, frame: DataFrame, *, of: int = SMALL) -> None:
        """Write a table. It is made of the rows of others, ``of`` so many: a few are not worth a query in Java."""
        with self._progress.step(name) as rows, self._few(of):
            self.tables[name] = self._output.write(frame, TABLES[name])
            rows(self._output.rows(TABLES[name]))

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
            for name, said in before.items():
                self._spark.conf.set(name, said)

    def _counts(self, records: Records) -> None:
        """What came in must have gone somewhere."""
        where = {table.name: self._progress.rows[table.name] for table in OF_RECORDS.values()}
        out = sum(where.values()) + records.later
        if out != records.read:
            raise PipelineError(
                f"{records.read:,} records came in and {out:,} went out ({where}): this is a fault of the pipeline"
            )
        rows = [("in", records.read), ("later", records.later), *where.items()]
        self._table("record_counts", self._rows(RECORD_COUNTS, rows), of=len(rows))

    def _remarks(self, plan: Plan, read: int) -> None:
        remarks = list(plan.remarks)
        if plan.records is not None and plan.records != read:
            what = "records that batches announce and that are not there, or that came while it was read"
            remarks.append(Remark(plan.said, what, None, plan.records - read, None))
        self._table("source_remarks", self._rows(SOURCE_REMARKS, remarks), of=len(remarks))

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

    def _ends(self, plan: Plan, current: DataFrame) -> DataFrame | None:
        said = self._ends_until_as_of()
        if said is not None:
            return said
        if plan.ends is None or self._wish.as_of is not None:  # how long topics were then, nobody knows
            return None
        return self._output.stage(plan.ends(current), "ends")

    def _ends_until_as_of(self) -> DataFrame | None:
        """What ``--end-offsets`` says of the time until the moment that is asked for."""
        if self._wish.ends is None or self._wish.as_of is None:
            return self._wish.ends
        return self._wish.ends.where(F.col("at") <= F.lit(self._wish.as_of))

    def _rows(self, table: Table, rows: list[Any]) -> DataFrame:
        if not rows:
            nothing = [F.lit(None).cast(column.type).alias(column.name) for column in table.columns]
            return self._spark.range(0).where("false").select(*nothing)
        schema = arrow_schema(table.columns)
        columns = [pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), schema, strict=True)]
        return self._spark.createDataFrame(pa.Table.from_arrays(columns, schema=schema))
