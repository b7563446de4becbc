"""Writes one batch of the stream: decodes, counts and stages it, updates the views, and commits all of it atomically.

Each batch is applied exactly once. Spark repeats a batch that it does not know to be done, with the same number and the same
offsets, which it records before the batch starts. A batch whose number is in the manifest is already in the tables and is
skipped. Of any other batch nothing is visible, even if a killed process had written some files.

The views after a batch are computed from the stored state and the new records, and have the same rows as if they were computed
from the whole log. The state has only what the functions of ``tables/`` need of the past:

- ``current_offsets``: the last record of each key;
- ``recent`` (RECENT_COMMITS): the last ten commits of each key, for Burrow's rules, and because a group without a record of its
  own exists if it has committed; ``ends`` (END_OFFSETS): the last observed end offsets of topics;
- ``modern`` (MODERN_RECORDS): the last record of each key of consumer, share and streams groups, as their coordinator loads
  them;
- ``generations``: of each group the last one of each kind, and those in which some partition was last assigned;
- ``rebalances``: of each group the newest ones that follow one another closely, which may be part of a storm.

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
from groupcoord.pipeline.open_and_hanging_transactions import HANGING_AFTER_S, open_transactions, open_transactions_text
from groupcoord.pipeline.progress import RunningTasks, report_while_running
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
from groupcoord.pipeline.sources.end_offsets import EarlierEnds
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
from groupcoord.pipeline.tables.ownership_changes import compare_assignments
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
"""The tables to which each batch appends rows."""
VIEWS = (CURRENT_OFFSETS, CURRENT_GROUPS, LAG, STORMS, OPEN_TRANSACTIONS)
"""The tables that are replaced by each batch."""


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(eq=False)
class BatchWriter:
    """The function that Spark's ``foreachBatch`` calls.

    - ``say`` is called with a line for each batch, and with ``tasks`` also while a batch takes long.
    - ``merge_every``: see ``merge_directories``.
    - ``hanging_after_s``: the age from which an open transaction counts as hanging.
    - ``tell`` are called with the outcome of each batch and of each refresh of end offsets.
    - ``note_lost`` is called before a batch is committed, with the warnings about records that were deleted from the log before
      they were read, and the time.

    ``problem`` is the error of a batch that failed; ``is_resumed`` is true until the first batch of a watch that continues an
    earlier one.
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
        """When a batch or a refresh was last written."""
        self._storms: list[datetime] | None = None
        self._has_open_transactions = True
        """Does the view open_transactions have rows? At the start that is unknown; true means that it will be written."""
        self._turn = threading.Lock()
        self._is_closed = False

    def __call__(self, records: DataFrame, batch: int) -> None:
        """Write the batch number ``batch``; does nothing if it was written already."""
        with self._turn:
            if self._is_closed:
                raise PipelineError("the watch has ended")
            if batch <= self.manifest.batch:
                return
            try:
                with report_while_running(f"batch {batch}", self.say, self.tasks):
                    self._take(records, batch)
            except BaseException as problem:
                self.problem = problem
                raise

    def refresh(self, spark: SparkSession, after_s: float = 0.0) -> None:
        """Ask for end offsets again and update the view lag, although no commits came: lags may have grown. Does nothing if a
        batch or a refresh ended less than ``after_s`` ago, such as the batch that this has waited for."""
        with self._turn:
            if self.manifest.batch == NONE or time.monotonic() - self.last < after_s:
                return
            _fit(spark, 0)
            self.output.use(spark)
            now, ends = self.now(), self._log_ends()
            step = _BatchTables(self.output, self.manifest)
            step.lag(self.stream, now, partitions_behind(ends, self.manifest.positions, Counter()))
            has_open_transactions = step.open_transactions(self.stream, now, had_any=self._has_open_transactions)
            self.manifest = self.output.commit(step.manifest(now))
            self._has_open_transactions = has_open_transactions
            self.output.tidy()
            self._tell_all(now, behind=_behind(ends, self.manifest.positions))
            self.last = time.monotonic()

    def close(self) -> None:
        """Wait for the batch that is being written, and refuse further ones."""
        with self._turn:
            self._is_closed = True

    def _take(self, records: DataFrame, batch: int) -> None:
        began, now = time.monotonic(), self.now()
        spark = records.sparkSession
        _fit(spark, 0)
        self.output.use(spark)
        first_log_ends, first_ends = self._log_ends(), self._known_ends()
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
            counted, log_ends = commits + others, self._log_ends()
            # What the batch has is compared with the ends of when it began, however long it took since then.
            earlier = EarlierEnds(first_ends, has_others=not partitions_behind(log_ends, positions, counted))
            lag = step.lag(self.stream, now, partitions_behind(first_log_ends, positions, counted), earlier)
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
        behind, took_s = _behind(log_ends, positions), self.last - began
        self.say(
            f"batch {batch}: {read:,} records, lag {'unknown' if lag is None else f'{lag:,}'}, "
            f"{storms} {'storm' if storms == 1 else 'storms'}, {self._open_transactions(now)}"
            f"{behind:,} behind the end of the log, {took_s:.1f} s"
        )
        self._tell_all(now, behind=behind, took_s=took_s, rebalances=step.rebalances, lost=lost)

    def _tell_all(self, now: datetime, **more: Any) -> None:
        knows = self.stream.knows_transactions
        outcome = BatchOutcome(manifest=self.manifest, now=now, view=self.output.view, knows_transactions=knows, **more)
        for tell in self.tell:
            tell(outcome)

    def _open_transactions(self, now: datetime) -> str:
        """The text about open transactions in the line of a batch."""
        if not self._has_open_transactions:
            return ""
        found = open_transactions(self.output.view(OPEN_TRANSACTIONS).to_pylist())
        text = open_transactions_text(found, now, self.hanging_after_s)
        return text and f"{text}, "

    def _log_ends(self) -> dict[int, int]:
        """The end offset of each partition of the log."""
        return {partition: end for partition, (_, end) in self.stream.bounds().items()}

    def _known_ends(self) -> dict[tuple[str, int], int]:
        """The ends of the partitions that groups have committed before, in the first batch of all."""
        if self.manifest.batch == NONE:
            return self.stream.latest_ends(None)
        found = self.output.view(CURRENT_OFFSETS, [*PARTITION, "log_partition"])
        topics, partitions, log_partitions = (column.to_pylist() for column in found.columns)
        in_log = {(self.stream.topic, partition) for partition in log_partitions}
        return self.stream.latest_ends(in_log.union(zip(topics, partitions, strict=True)))

    def _remarks(self, positions: Positions, counted: Counter[str]) -> list[SourceWarning]:
        """The warnings of a batch; the first batch of a resumed watch also reports offsets that have no record."""
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
"""A partition with at most this many offsets left is not behind, however small the batch was."""


def partitions_behind(ends: Mapping[int, int], positions: Positions, counted: Counter[str]) -> dict[int, int]:
    """The partitions of the log that the watch still has to catch up with, and the number of offsets left in each.

    Offsets left are not a backlog if they are at most a tenth of the records that the batch had of the partition, or at most
    MUCH: they came while the batch was being written.
    """
    left = {partition: end - positions.get(str(partition), 0) for partition, end in ends.items()}
    return {one: amount for one, amount in left.items() if amount > max(MUCH, counted[str(one)] // 10)}


def _behind(ends: Mapping[int, int], positions: Positions) -> int:
    """The number of offsets of the log that are still to be read."""
    return sum(max(0, end - positions.get(str(one), 0)) for one, end in ends.items())


def _counted(decoded: DataFrame) -> tuple[Counter[str], Counter[str]]:
    """The numbers of commits and of other records in ``decoded`` (SPLIT), by partition of the log."""
    commits_, others = Counter[str](), Counter[str]()
    for row in decoded.groupBy("log_partition", "is_commit").count().collect():  # two numbers a partition of the log
        (commits_ if row["is_commit"] else others)[str(row["log_partition"])] = row["count"]
    return commits_, others


def _fit(spark: SparkSession, records: int) -> None:
    """Configure Spark to interpret queries over few records, and to compile those over many."""
    for name, value in FOR_SMALL.items():
        if records < SMALL:
            spark.conf.set(name, value)
        else:
            spark.conf.unset(name)


class _BatchTables:
    """Stages the tables of one batch, and collects where they are to be moved and how many rows they have."""

    def __init__(self, output: WatchDirectory, before: WatchManifest) -> None:
        self._output = output
        self._before = before
        self._moves: list[tuple[str, str]] = []
        self._directories = {name: list(directories) for name, directories in before.directories.items()}
        self._views: dict[str, DataFrame] = {}
        self.rebalances = Counter[str]()
        """The number of rebalances in this batch, by group."""

    def manifest(self, now: datetime) -> WatchManifest:
        """The manifest with the staged tables."""
        return dataclasses.replace(self._before, at=now.isoformat(), directories=self._directories, moves=self._moves)

    def grow(self, frame: DataFrame, table: TableSchema, batch: int, rows: int) -> DataFrame:
        """Stage rows to be appended to ``table``; returns them, read back."""
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
        """Stage the tables of records, and all views but ``lag`` and ``open_transactions``."""
        if read == 0 and self._before.batch > NONE:
            return  # the batch has only markers and aborted records
        rest = decode_rest(undecoded(decoded)).persist()
        try:
            rows = {COMMITS.name: read - others}
            if others:
                for row in rest.groupBy("table").count().collect():  # at most four rows
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
        """Stage empty tables for those to which the first batch appends no rows, so that every table exists."""
        for table in GROWING:
            if table.name not in self._directories:
                self._grown(self._output.stage(self._output.empty(table), table), table, batch, 0)

    def lag(
        self, stream: StreamSource, now: datetime, behind: Collection[int], earlier: EarlierEnds | None = None
    ) -> int | None:
        """Stage the view ``lag`` as of ``now``; returns the sum of all lags, None if no end offset is known.

        Groups in partitions of the log that the watch is ``behind`` in get no lag: they may have committed more than was read.
        ``earlier`` has the ends as of ``now``, if that was before.
        """
        groups, recent = self._view(CURRENT_GROUPS), self._view(RECENT_COMMITS)
        offsets = with_expiry(self._view(CURRENT_OFFSETS), groups, stream.offsets_retention_ms)
        asked_ms = int(now.timestamp() * 1000)
        observed = stream.ends(with_log_partitions(offsets, stream.topic), asked_ms, earlier)
        ends = self._replace(ends_after(self._view(END_OFFSETS), observed), END_OFFSETS)
        found = self._replace(lag_after(offsets, recent, ends, now, behind), LAG)
        [total] = found.agg(F.sum("lag")).collect()
        return total[0]

    def open_transactions(self, stream: StreamSource, now: datetime, *, had_any: bool) -> bool:
        """Stage the view ``open_transactions`` from the end offsets that ``lag`` asked for; returns whether it has rows."""
        latest = F.unix_millis("at") == int(now.timestamp() * 1000)
        held_up = self._view(END_OFFSETS).where(latest & F.col("open_transaction").isNotNull())
        has_any = not held_up.isEmpty()
        if has_any or had_any:
            places = with_log_partitions(self._view(CURRENT_OFFSETS), stream.topic)
            self._replace(open_transactions_of(held_up, places), OPEN_TRANSACTIONS)
        return has_any

    @property
    def has_new_storms(self) -> bool:
        """Has this batch changed the view ``storms``?"""
        return STORMS.name in self._views

    def storms(self, now: datetime) -> list[datetime]:
        """The time of the last rebalance of each storm that may still go on."""
        still = F.col("to") >= F.lit(now) - F.expr(f"interval {APART_S} seconds")
        found = (
            self._view(STORMS).where(still).select(F.unix_millis("to").alias("ms")).collect()
        )  # at most one row a group
        return [datetime.fromtimestamp(row["ms"] / 1000, UTC) for row in found]

    def _offsets(self, came: DataFrame, rows: int) -> None:
        if not rows:
            return
        self._replace(offsets_after(self._view(CURRENT_OFFSETS), came), CURRENT_OFFSETS)
        self._replace(recent_after(self._view(RECENT_COMMITS), came), RECENT_COMMITS)

    def _modern(self, came: DataFrame, rows: int) -> DataFrame:
        """The HISTORY of the new records ``came`` of consumer, share and streams groups; their state tables are replaced."""
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
"""How many end offsets of each partition are kept: those of twenty batches, twice the time of ten commits that come one a
batch."""

RECENT_COMMITS = table_schema("""
    recent by log_partition, log_offset: The last ten commits of each group, topic and partition.
    log_partition, log_offset, group, topic, partition, committed_offset, commit_ts
""")


def offsets_after(before: DataFrame, commits: DataFrame) -> DataFrame:
    """The new ``current_offsets``."""
    known = before.selectExpr("*", "false as is_tombstone")
    records = known.unionByName(commits.select(*COMMITS.names))
    return current_state.current_offsets(records, latest_places(records, ["group", *PARTITION]))


def modern_after(records: DataFrame) -> DataFrame:
    """The new state ``modern`` from ``records``: the old state and the new records. The tombstone of a group is kept, too."""
    last = at_places(records, latest_places(records, ["record", "key"]))
    return last.where(~F.col("is_tombstone") | F.col("record").isin(OF_EPOCHS))


def _newest(rows: DataFrame, keys: Sequence[str], time: str, most: int) -> DataFrame:
    """The ``most`` rows with the highest ``time`` for each value of ``keys``."""
    backwards = Window.partitionBy(*keys).orderBy(F.desc(time))
    numbered = rows.select("*", F.row_number().over(backwards).alias("number"))
    return numbered.where(F.col("number") <= most).select(*rows.columns)


def groups_after(recent: DataFrame, generations: DataFrame, modern: DataFrame) -> DataFrame:
    """The new ``current_groups``, from the new state."""
    commits = recent.selectExpr("*", "commit_ts as append_ts", "false as is_tombstone")
    classic = generations.where("kind = 'classic'")
    return current_state.current_groups(commits, classic, latest_places(classic, ["group"]), modern)


def generations_after(records: DataFrame) -> DataFrame:
    """The new state ``generations`` from ``records``: the old state and the new records."""
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
    """The ``rebalances`` of the new generations ``came``, of all kinds of groups, compared with those that were ``kept``. In
    generations of groups that are not classic, topic ids are replaced by ``names``."""
    records = named(kept.unionByName(came), "members", names)
    return at_places(rebalances_of(compare_assignments(records)), came.select(*PLACE))


def storms_after(before: DataFrame, kept: DataFrame, came: DataFrame) -> DataFrame:
    """The new ``storms``: those that were over ``before``, and those of the rebalances that were ``kept`` together with those
    that ``came``."""
    going_on = kept.groupBy("group").agg(F.max("at").alias("to"))
    ended = before.join(going_on, ["group", "to"], "left_anti").select(*STORMS.names)
    return ended.unionByName(storms_of(kept.unionByName(came)))


def open_runs(rebalances: DataFrame) -> DataFrame:
    """The new state ``rebalances``: of each group the newest ones that follow one another closely."""
    backwards = Window.partitionBy("group").orderBy(F.desc("log_offset"))
    begins = F.expr(f"if(seconds_since_previous <= {APART_S}, 0, 1)")
    behind = rebalances.select("*", (F.sum(begins).over(backwards) - begins).alias("runs_behind"))
    return behind.where("runs_behind = 0").select(*rebalances.columns)


def recent_after(before: DataFrame, commits: DataFrame) -> DataFrame:
    """The new state ``recent``."""
    came = commits.where("not is_tombstone").select(*RECENT_COMMITS.names)
    return _newest(before.unionByName(came), ["group", *PARTITION, "log_partition"], "log_offset", RECENT)


def with_log_partitions(offsets: DataFrame, log_topic: str) -> DataFrame:
    """The topic partitions of ``offsets`` (CURRENT_OFFSETS), and the partitions of the log that these offsets are in: a
    transaction that commits offsets is open there, too, and blocks the watch itself."""
    places = offsets.select("group", *PARTITION, "committed_offset")
    in_log = offsets.select("group", F.lit(log_topic).alias("topic"), F.col("log_partition").alias("partition"))
    return places.unionByName(in_log, allowMissingColumns=True)


def ends_after(before: DataFrame, observed: DataFrame) -> DataFrame:
    """The new state ``ends``, without partitions that no longer exist."""
    known = before.join(observed, PARTITION, "left_semi").select(*END_OFFSETS.names)
    return _newest(known.unionByName(observed), PARTITION, "at", OBSERVATIONS)


def lag_after(
    offsets: DataFrame, recent: DataFrame, ends: DataFrame | None, now: datetime, behind: Collection[int] = ()
) -> DataFrame:
    """The new view ``lag``, from the new state; ``ends`` is None if end offsets are unknown.

    Groups in partitions of the log that the watch is ``behind`` in get no lag.
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
