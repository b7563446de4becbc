"""One batch of the stream: it is decoded, counted, staged, merged into the views, and committed in one step.

Spark repeats a batch unless it knows that the batch is done, with the same number and the same offsets, which it records
before it begins. A batch whose number is in the manifest is in the tables and is skipped. Any other batch is not in the tables:
what a killed process had written of it cannot be seen.

The views after a batch are made from what they were made of before it and what came: the same rows as from the whole log.
Only as much of the past is kept as the functions of ``tables/`` need when the records of a batch follow it:

- ``current_offsets`` is kept as it is: of each key the last record counts;
- ``recent`` (RECENT_COMMITS): of each key the last ten commits, for Burrow's rules, and because a group that has no record of
  its own is there if it has committed; ``ends`` (END_OFFSETS): where topics ended at the last observations;
- ``modern`` (MODERN_RECORDS): of each key of a group that is not classic the last record, as its coordinator loads them;
- ``generations``: of each group the last one of each kind, and those in which some partition was assigned for the last time;
- ``rebalances``: of each group those that follow one another up to now, which may be part of a storm.

So the state grows with the number of groups and partitions that ever existed, not with the number of records.
"""

import dataclasses
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from groupcoord.pipeline.columnar_decoder import SPLIT, commits, decode_rest, split_batches, table_of_rest, undecoded
from groupcoord.pipeline.errors import PipelineError, SourceWarning
from groupcoord.pipeline.hanging_transactions import HANGING_AFTER_S, open_transactions, open_transactions_text
from groupcoord.pipeline.progress import RunningTasks, told_while_it_lasts
from groupcoord.pipeline.schemas import (
    BAD_RECORDS,
    COMMITS,
    CURRENT_GROUPS,
    CURRENT_OFFSETS,
    END_OFFSETS,
    GENERATIONS,
    LAG,
    MODERN_GENERATIONS,
    MODERN_RECORDS,
    OPEN_TRANSACTIONS,
    REBALANCES,
    SOURCE_WARNINGS,
    STORMS,
    TableSchema,
    table_schema,
)
from groupcoord.pipeline.sources.factory import Positions, StreamSource
from groupcoord.pipeline.spark_session import FOR_SMALL, SMALL
from groupcoord.pipeline.tables import current_state
from groupcoord.pipeline.tables.commit_tables import PARTITION
from groupcoord.pipeline.tables.commit_tables import lag as lag_of
from groupcoord.pipeline.tables.commit_tables import open_transactions as open_transactions_of
from groupcoord.pipeline.tables.consecutive_commits import RECENT, key
from groupcoord.pipeline.tables.current_state import PLACE, at_places, latest_places
from groupcoord.pipeline.tables.modern_group_history import (
    HISTORY,
    OF_EPOCHS,
    group_history,
    named,
    table_of_history,
    topic_names,
)
from groupcoord.pipeline.tables.offset_expiry import with_expiry
from groupcoord.pipeline.tables.ownership_changes import find_ownership_changes
from groupcoord.pipeline.tables.rebalances import APART_S, of_all_kinds
from groupcoord.pipeline.tables.rebalances import rebalances as rebalances_of
from groupcoord.pipeline.tables.rebalances import storms as storms_of
from groupcoord.pipeline.watch.batch_outcome import BatchOutcome
from groupcoord.pipeline.watch.output_directory import (
    FILE,
    NONE,
    STATE,
    TABLES,
    BatchDirectory,
    WatchDirectory,
    WatchManifest,
    merge_directories,
    view_path,
)

GROWING = (COMMITS, GENERATIONS, MODERN_RECORDS, BAD_RECORDS, REBALANCES, SOURCE_WARNINGS)
"""The tables that get the rows of each batch."""
VIEWS = (CURRENT_OFFSETS, CURRENT_GROUPS, LAG, STORMS, OPEN_TRANSACTIONS)
"""The tables that are replaced."""


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(eq=False)
class BatchWriter:
    """What ``foreachBatch`` calls. ``say`` takes a line for each batch; ``merge_every`` 0 merges nothing; of a batch
    that takes long a line says how far it is, if ``tasks`` tells of Spark's. An open transaction hangs after
    ``hanging_after_s`` seconds. ``tell`` are told how things are after each batch and after each look at the ends of topics;
    ``note_lost`` hears, before a batch is in, what was deleted from the log before it was read, and when that was seen.

    ``problem`` is why a batch failed; ``is_resumed`` means that no watch ran for a while before this one.
    """

    output: WatchDirectory
    stream: StreamSource
    manifest: WatchManifest
    say: Callable[[str], None]
    _: KW_ONLY
    merge_every: int = 0
    hanging_after_s: int = HANGING_AFTER_S
    tell: Sequence[Callable[[BatchOutcome], None]] = ()
    note_lost: Callable[[Sequence[SourceWarning], str], None] | None = None
    tasks: Callable[[], RunningTasks] | None = None
    now: Callable[[], datetime] = _now

    def __post_init__(self) -> None:
        self.problem: BaseException | None = None
        self.is_resumed = self.manifest.batch > NONE
        self.warnings: list[SourceWarning] = []
        self.last = time.monotonic()
        """When something was written last."""
        self._storms: list[datetime] | None = None
        self._has_open_transactions = True
        """Has the view any? At first that is unknown, and it is written."""
        self._turn = threading.Lock()
        self._is_closed = False

    def __call__(self, records: DataFrame, batch: int) -> None:
        """Write ``batch``."""
        with self._turn:
            if self._is_closed:
                raise PipelineError("the watch has ended")
            if batch <= self.manifest.batch:
                return
            try:
                with told_while_it_lasts(f"batch {batch}", self.say, self.tasks):
                    self._take(records, batch)
            except BaseException as problem:
                self.problem = problem
                raise

    def refresh(self, spark: SparkSession) -> None:
        """Ask for the ends of topics again although no commits came, because lags may have grown."""
        with self._turn:
            if self.manifest.batch == NONE:
                return
            _fit(spark, 0)
            self.output.use(spark)
            now, ends = self.now(), self._log_ends()
            if self.stream.ends is not None:
                step = _BatchTables(self.output, self.manifest)
                step.lag(self.stream, now, partitions_behind(ends or {}, self.manifest.positions, Counter()))
                has_open_transactions = step.open_transactions(self.stream, now, had_any=self._has_open_transactions)
                self.manifest = self.output.commit(step.manifest(now))
                self._has_open_transactions = has_open_transactions
                self.output.tidy()
            self._tell_all(now, behind=_behind(ends, self.manifest.positions))
            self.last = time.monotonic()

    def close(self) -> None:
        """Wait for the batch that is being written, and accept no more."""
        with self._turn:
            self._is_closed = True

    def _take(self, records: DataFrame, batch: int) -> None:
        began = time.monotonic()
        spark = records.sparkSession
        _fit(spark, 0)
        self.output.use(spark)
        decoded = records.mapInArrow(split_batches, SPLIT.ddl).persist()
        try:
            commits, others = _counted(decoded)
            read = commits.total() + others.total()
            _fit(spark, read)
            step = _BatchTables(self.output, self.manifest)
            positions = self.stream.positions(self.output.ends_of_batch(batch))
            step.records(decoded, batch, read, others.total())
            if warnings := self._remarks(positions, commits + others):
                rows = spark.createDataFrame([tuple(remark) for remark in warnings], SOURCE_WARNINGS.ddl)
                step.grow(rows, SOURCE_WARNINGS, batch, len(warnings))
            if self.manifest.batch == NONE:
                step.begin_tables(batch)
            now = self.now()
            ends = self._log_ends()
            lag = step.lag(self.stream, now, partitions_behind(ends or {}, positions, commits + others))
            has_open_transactions = step.open_transactions(self.stream, now, had_any=self._has_open_transactions)
            if self._storms is None or step.has_new_storms:
                self._storms = step.storms(now)
            storms = sum(now - last <= timedelta(seconds=APART_S) for last in self._storms)
        finally:
            decoded.unpersist()
        if self.warnings and self.note_lost is not None:
            self.note_lost(self.warnings, now.isoformat())
        manifest = dataclasses.replace(
            step.manifest(now), batch=batch, records=self.manifest.records + read, positions=positions
        )
        self.manifest = merge_directories(self.output, self.output.commit(manifest), GROWING, self.merge_every)
        self.output.tidy()
        self._has_open_transactions = has_open_transactions
        lost = tuple(self.warnings)
        self.is_resumed = False
        self.warnings.clear()
        self.last = time.monotonic()
        behind, took_s = _behind(ends, positions), self.last - began
        self.say(
            f"batch {batch}: {read:,} records, lag {'unknown' if lag is None else f'{lag:,}'}, "
            f"{storms} {'storm' if storms == 1 else 'storms'}, {self._open_transactions(now)}{_behind_text(behind)}, "
            f"{took_s:.1f} s"
        )
        self._tell_all(now, behind=behind, took_s=took_s, rebalances=step.rebalances, lost=lost)

    def _tell_all(self, now: datetime, **more: Any) -> None:
        outcome = BatchOutcome(manifest=self.manifest, now=now, view=self.output.view, **more)
        for tell in self.tell:
            tell(outcome)

    def _open_transactions(self, now: datetime) -> str:
        """What the line of a batch says of them."""
        if not self._has_open_transactions:
            return ""
        found = open_transactions(self.output.view(OPEN_TRANSACTIONS).to_pylist())
        text = open_transactions_text(found, now, self.hanging_after_s)
        return text and f"{text}, "

    def _log_ends(self) -> dict[int, int] | None:
        """Where each partition of the log ends; None if there is no way to ask."""
        if self.stream.bounds is None:
            return None
        return {partition: end for partition, (_, end) in self.stream.bounds().items()}

    def _remarks(self, positions: Positions, counted: Counter[str]) -> list[SourceWarning]:
        """The warnings of a batch: in the first one after a time without a watch, which offsets have no record."""
        found = list(self.warnings)
        if not self.is_resumed:
            return found
        for partition, end in sorted(positions.items(), key=lambda item: int(item[0])):
            start = self.manifest.positions.get(partition, 0)
            if missing := max(0, end - start - counted[partition]):
                what = (
                    f"{missing} offsets between {start} and {end - 1} without a record, after no watch ran: compacted away, "
                    "or markers and aborted records of transactions"
                )
                found.append(SourceWarning(self.stream.spec, what, int(partition), None, None))
        return found


MUCH = 100
"""So few offsets of a partition may be left, however few it has in a batch."""


def partitions_behind(ends: Mapping[int, int], positions: Positions, counted: Counter[str]) -> dict[int, int]:
    """How much is left of those partitions of the log that the watch is still to catch up with.

    A tenth of what a batch has of a partition comes while it is written, or MUCH: that is no backlog.
    """
    left = {partition: end - positions.get(str(partition), 0) for partition, end in ends.items()}
    return {one: amount for one, amount in left.items() if amount > max(MUCH, counted[str(one)] // 10)}


def _behind(ends: Mapping[int, int] | None, positions: Positions) -> int | None:
    """How much of the log is still to be read; None if its end is unknown."""
    return None if ends is None else sum(max(0, end - positions.get(str(one), 0)) for one, end in ends.items())


def _behind_text(behind: int | None) -> str:
    return "end of the log unknown" if behind is None else f"{behind:,} behind the end of the log"


def _counted(decoded: DataFrame) -> tuple[Counter[str], Counter[str]]:
    """How many commits and other records each partition of the log has in ``decoded`` (SPLIT)."""
    commits_, others = Counter[str](), Counter[str]()
    for row in decoded.groupBy("log_partition", "is_commit").count().collect():  # two numbers a partition of the log
        (commits_ if row["is_commit"] else others)[str(row["log_partition"])] = row["count"]
    return commits_, others


def _fit(spark: SparkSession, records: int) -> None:
    """Let Spark interpret queries over few records and compile those over many."""
    for name, value in FOR_SMALL.items():
        if records < SMALL:
            spark.conf.set(name, value)
        else:
            spark.conf.unset(name)


class _BatchTables:
    """The tables of one batch while they are staged: where they will go, and how many rows they have."""

    def __init__(self, output: WatchDirectory, before: WatchManifest) -> None:
        self._output = output
        self._before = before
        self._moves: list[tuple[str, str]] = []
        self._directories = {name: list(directories) for name, directories in before.directories.items()}
        self._views: dict[str, DataFrame] = {}
        self.rebalances = Counter[str]()
        """How many rebalances of each group came."""

    def manifest(self, now: datetime) -> WatchManifest:
        """The manifest with what was written."""
        return dataclasses.replace(self._before, at=now.isoformat(), directories=self._directories, moves=self._moves)

    def grow(self, frame: DataFrame, table: TableSchema, batch: int, rows: int) -> DataFrame:
        """Rows for a table that grows; returns what can be read back."""
        if rows == 0:
            return self._output.empty(table)
        path = self._output.stage(frame, table, rows)
        self._grown(path, table, batch, rows)
        return self._output.read(table, path)

    def _grown(self, path: str, table: TableSchema, batch: int, rows: int) -> None:
        directory = BatchDirectory(batch, batch, rows)
        self._directories.setdefault(table.name, []).append(directory)
        self._moves.append((path, f"{TABLES}/{table.name}/{directory.folder}"))

    def records(self, decoded: DataFrame, batch: int, read: int, others: int) -> None:
        """The tables of records, and the views but ``lag``."""
        if read == 0 and self._before.batch > NONE:
            return  # markers and aborted records alone
        rest = decode_rest(undecoded(decoded)).persist()
        try:
            rows = {COMMITS.name: read - others}
            if others:
                for row in rest.groupBy("table").count().collect():  # four numbers
                    rows[row["table"]] = rows.get(row["table"], 0) + row["count"]
            if sum(rows.values()) != read:
                raise PipelineError(f"{read:,} records came in and {rows} went out: this is a fault of the pipeline")
            made = commits(decoded, rest) if others else decoded.where("is_commit").select(*COMMITS.names)
            came = {COMMITS: self.grow(made, COMMITS, batch, rows[COMMITS.name])}
            for table in (GENERATIONS, MODERN_RECORDS, BAD_RECORDS):
                came[table] = self.grow(table_of_rest(rest, table), table, batch, rows.get(table.name, 0))
        finally:
            rest.unpersist()
        self._offsets(came[COMMITS], rows[COMMITS.name])
        modern = self._modern(came[MODERN_RECORDS], rows.get(MODERN_RECORDS.name, 0))
        generations = of_all_kinds(came[GENERATIONS], table_of_history(modern, MODERN_GENERATIONS))
        names = topic_names(self._view(CURRENT_OFFSETS), self._view(_MODERN))
        self._generations(generations, names, batch, rows.get(GENERATIONS.name, 0) + rows.get(MODERN_RECORDS.name, 0))
        if read:
            groups = named(self._view(_MODERN_GROUPS), "members", names)
            known = self._view(RECENT_COMMITS), self._view(_GENERATIONS), groups
            self._replace(groups_after(*known), CURRENT_GROUPS)
        if self._before.batch == NONE:
            replaced = {target for _, target in self._moves}
            for table in VIEWS:
                if _path(table) not in replaced:
                    self._replace(self._output.empty(table), table)

    def begin_tables(self, batch: int) -> None:
        """Tables that grow, and of which the first batch has no rows, are there without any."""
        for table in GROWING:
            if table.name not in self._directories:
                self._grown(self._output.stage(self._output.empty(table), table), table, batch, 0)

    def lag(self, stream: StreamSource, now: datetime, behind: Collection[int]) -> int | None:
        """The view ``lag``, as of ``now``; returns how much that is in all, None if no end is known.

        Of groups in partitions of the log that the watch is ``behind`` with, lags are unknown: they have committed more.
        """
        groups, recent, ends = self._view(CURRENT_GROUPS), self._view(RECENT_COMMITS), None
        offsets = with_expiry(self._view(CURRENT_OFFSETS), groups, stream.offsets_retention_ms)
        if stream.ends is not None:
            observed = stream.ends(with_log_partitions(offsets, stream.topic), int(now.timestamp() * 1000))
            ends = self._replace(ends_after(self._view(END_OFFSETS), observed), END_OFFSETS)
        found = self._replace(lag_after(offsets, recent, ends, now, behind), LAG)
        [total] = found.agg(F.sum("lag")).collect()
        return total[0]

    def open_transactions(self, stream: StreamSource, now: datetime, *, had_any: bool) -> bool:
        """The view ``open_transactions``, from what ``lag`` has asked of the ends of topics; returns whether it has any."""
        if END_OFFSETS.name not in self._views:
            return False
        latest = F.unix_millis("at") == int(now.timestamp() * 1000)
        held_up = self._view(END_OFFSETS).where(latest & F.col("open_transaction").isNotNull())
        has_any = not held_up.isEmpty()
        if has_any or had_any:
            places = with_log_partitions(self._view(CURRENT_OFFSETS), stream.topic)
            self._replace(open_transactions_of(held_up, places), OPEN_TRANSACTIONS)
        return has_any

    @property
    def has_new_storms(self) -> bool:
        """Can this batch have begun or continued a storm?"""
        return STORMS.name in self._views

    def storms(self, now: datetime) -> list[datetime]:
        """The last rebalance of each storm that may not be over."""
        still = F.col("to") >= F.lit(now) - F.expr(f"interval {APART_S} seconds")
        found = self._view(STORMS).where(still).select(F.unix_millis("to").alias("ms")).collect()  # one a group at most
        return [datetime.fromtimestamp(row["ms"] / 1000, UTC) for row in found]

    def _offsets(self, came: DataFrame, rows: int) -> None:
        if not rows:
            return
        self._replace(offsets_after(self._view(CURRENT_OFFSETS), came), CURRENT_OFFSETS)
        self._replace(recent_after(self._view(RECENT_COMMITS), came), RECENT_COMMITS)

    def _modern(self, came: DataFrame, rows: int) -> DataFrame:
        """What ``came`` of groups that are not classic, as HISTORY; what is kept of them is replaced."""
        if not rows:
            return self._output.empty(HISTORY)
        played = self._view(_MODERN).unionByName(came)
        history = group_history(played, self._output.empty(GENERATIONS))
        lived = self._output.read(HISTORY, self._output.stage(history, HISTORY))
        changed = came.select("group").distinct()
        others = self._view(_MODERN_GROUPS).join(changed, "group", "left_anti").select(*CURRENT_GROUPS.names)
        groups = table_of_history(lived, CURRENT_GROUPS).join(changed, "group", "left_semi")
        self._replace(others.unionByName(groups.select(*CURRENT_GROUPS.names)), _MODERN_GROUPS)
        self._replace(modern_after(played), _MODERN)
        return at_places(lived, came.select(*PLACE))

    def _generations(self, came: DataFrame, names: DataFrame, batch: int, rows: int) -> None:
        if not rows:
            return
        kept, run = self._view(_GENERATIONS), self._view(_REBALANCES)
        path = self._output.stage(rebalances_in(kept, came, names), REBALANCES)
        rebalanced = self._output.read(REBALANCES, path)
        self.rebalances = Counter(dict(rebalanced.groupBy("group").count().collect()))  # one row a group
        if found := self.rebalances.total():
            self._grown(path, REBALANCES, batch, found)
            self._replace(storms_after(self._view(STORMS), run, rebalanced), STORMS)
            self._replace(open_runs(run.unionByName(rebalanced)), _REBALANCES)
        self._replace(generations_after(kept.unionByName(came)), _GENERATIONS)

    def _replace(self, frame: DataFrame, table: TableSchema) -> DataFrame:
        """Write a view or a state table; later steps read the new one."""
        path = self._output.stage_file(frame, table, rows=self._before.records)
        self._moves.append((path, _path(table)))
        self._views[table.name] = self._output.read(table, path)
        return self._views[table.name]

    def _view(self, table: TableSchema) -> DataFrame:
        if table.name not in self._views:
            self._views[table.name] = self._output.read(table, _path(table))
        return self._views[table.name]


def _path(table: TableSchema) -> str:
    return view_path(table) if table in VIEWS else f"{STATE}/{table.name}/{FILE}"


_GENERATIONS = MODERN_GENERATIONS._replace(name="last_generations")
_MODERN = MODERN_RECORDS._replace(name="last_modern_records")
_MODERN_GROUPS = CURRENT_GROUPS._replace(name="last_modern_groups")
_REBALANCES = REBALANCES._replace(name="last_rebalances")


OBSERVATIONS = 20
"""How many ends of each partition are remembered: about as many batches as there are between the first and the last of ten
commits that come once a batch, twice."""

RECENT_COMMITS = table_schema("""
    recent by log_partition, log_offset: The last ten commits of each group, topic and partition.
    log_partition, log_offset, group, topic, partition, committed_offset, commit_ts
""")


def offsets_after(before: DataFrame, commits: DataFrame) -> DataFrame:
    """``current_offsets``."""
    known = before.selectExpr("*", "false as is_tombstone")
    records = known.unionByName(commits.select(*COMMITS.names))
    return current_state.current_offsets(records, latest_places(records, ["group", *PARTITION]))


def modern_after(records: DataFrame) -> DataFrame:
    """``modern``, of ``records``: what was kept, and what came. That a group ended is kept, too."""
    last = at_places(records, latest_places(records, ["record", "key"]))
    return last.where(~F.col("is_tombstone") | F.col("record").isin(OF_EPOCHS))


def _newest(rows: DataFrame, keys: Sequence[str], time: str, most: int) -> DataFrame:
    """Of ``rows`` those with the highest ``time``, so many with the same ``keys``."""
    backwards = Window.partitionBy(*keys).orderBy(F.desc(time))
    numbered = rows.select("*", F.row_number().over(backwards).alias("number"))
    return numbered.where(F.col("number") <= most).select(*rows.columns)


def groups_after(recent: DataFrame, generations: DataFrame, modern: DataFrame) -> DataFrame:
    """``current_groups``, from what is kept after the batch."""
    commits = recent.selectExpr("*", "commit_ts as append_ts", "false as is_tombstone")
    classic = generations.where("kind = 'classic'")
    return current_state.current_groups(commits, classic, latest_places(classic, ["group"]), modern)


def generations_after(records: DataFrame) -> DataFrame:
    """``generations``, of ``records``: what was kept, and what came."""
    last = latest_places(records, ["group", "kind"]).unionByName(
        latest_places(records.where("not is_tombstone"), ["group"])
    )
    given = (
        records.where("not is_tombstone")
        .selectExpr(
            "`group`", *PLACE, "append_ts", "inline(flatten(transform(members, m -> coalesce(m.assigned, array()))))"
        )
        .select("group", *PLACE, "append_ts", "topic", F.explode("partitions").alias("partition"))
    )
    return at_places(records, last.unionByName(latest_places(given, ["group", *PARTITION])).distinct())


def rebalances_in(kept: DataFrame, came: DataFrame, names: DataFrame) -> DataFrame:
    """``rebalances`` that ``came`` (generations of all kinds) brought, behind the generations that were ``kept``; those of
    groups that are not classic have ids of topics, which have ``names``."""
    records = named(kept.unionByName(came), "members", names)
    return at_places(rebalances_of(records, find_ownership_changes(records)), came.select(*PLACE))


def storms_after(before: DataFrame, kept: DataFrame, came: DataFrame) -> DataFrame:
    """``storms``: those of runs that had ended, and those of the rebalances that were ``kept`` with those that ``came``."""
    going_on = kept.groupBy("group").agg(F.max("at").alias("to"))
    ended = before.join(going_on, ["group", "to"], "left_anti").select(*STORMS.names)
    return ended.unionByName(storms_of(kept.unionByName(came)))


def open_runs(rebalances: DataFrame) -> DataFrame:
    """``rebalances`` to be kept: of each group the last that follow one another."""
    backwards = Window.partitionBy("group").orderBy(F.desc("log_offset"))
    begins = F.expr(f"if(seconds_since_previous <= {APART_S}, 0, 1)")
    behind = rebalances.select("*", (F.sum(begins).over(backwards) - begins).alias("runs_behind"))
    return behind.where("runs_behind = 0").select(*rebalances.columns)


def recent_after(before: DataFrame, commits: DataFrame) -> DataFrame:
    """``recent``."""
    came = commits.where("not is_tombstone").select(*RECENT_COMMITS.names)
    return _newest(before.unionByName(came), ["group", *PARTITION, "log_partition"], "log_offset", RECENT)


def with_log_partitions(offsets: DataFrame, log_topic: str) -> DataFrame:
    """Where groups have ``offsets`` (CURRENT_OFFSETS), and in which partitions of the log these are: a transaction that commits
    offsets is open there, too, and the watch itself stops before it."""
    places = offsets.select("group", *PARTITION, "committed_offset")
    in_log = offsets.select("group", F.lit(log_topic).alias("topic"), F.col("log_partition").alias("partition"))
    return places.unionByName(in_log, allowMissingColumns=True)


def ends_after(before: DataFrame, observed: DataFrame) -> DataFrame:
    """``ends``, of those partitions that there still are."""
    known = before.join(observed, PARTITION, "left_semi").select(*END_OFFSETS.names)
    return _newest(known.unionByName(observed), PARTITION, "at", OBSERVATIONS)


def lag_after(
    offsets: DataFrame, recent: DataFrame, ends: DataFrame | None, now: datetime, behind: Collection[int] = ()
) -> DataFrame:
    """``lag``, from what is kept after the batch; ``ends`` is None if the ends of topics are unknown.

    Partitions of the log that the watch is ``behind`` with have no lags.
    """
    if behind:
        is_behind = F.col("log_partition").isin(*behind)
        unknown = lag_after(offsets.where(is_behind), recent, None, now)
        return lag_after(offsets.where(~is_behind), recent, ends, now).unionByName(unknown)
    keyed = recent.select("*", key())
    consecutive_commits = keyed.selectExpr(
        *("key", "log_offset", "unix_millis(commit_ts) as commit_ms", "committed_offset", "true as is_recent")
    )
    statistics = keyed.select("key", "group", *PARTITION).distinct()
    return lag_of(offsets, consecutive_commits, statistics, ends, now)
