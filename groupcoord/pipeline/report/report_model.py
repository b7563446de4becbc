"""The data model of the report, which the HTML page shows and the JSON document contains.

Times are milliseconds since 1970 in UTC (``*_ms``). Lists are limited; a field that ends in ``left_out`` is the number of
entries that are not listed, which the tables have.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from groupcoord.pipeline.errors import SourceWarning
from groupcoord.pipeline.open_and_hanging_transactions import LONG_OPEN_AFTER_S

DETAILED = 30
"""The default number of groups with a section of their own. A section takes 5 to 7 kB of the page."""
_DURATIONS = {"width_ms"}
"""Fields in milliseconds that are durations, not times."""


def is_time(field: str) -> bool:
    """Is ``field`` the name of a field that is a time?"""
    return field.endswith("_ms") and field not in _DURATIONS


def column_name(field: str) -> str:
    """The name of ``field`` in the tables and the JSON document, where times end in ``_ts``."""
    return f"{field.removesuffix('_ms')}_ts" if is_time(field) else field


@dataclass(frozen=True, kw_only=True)
class RunInfo:
    """What was read: ``--source``, ``--as-of``, and the time that lags were judged at (both ISO 8601).

    A transaction that is open at that time counts as long open after ``long_open_after_s`` seconds.
    """

    source: str
    as_of: str | None = None
    now: str | None = None
    long_open_after_s: int = LONG_OPEN_AFTER_S


class TimeSpan(NamedTuple):
    """The time from ``start_ms`` to ``end_ms``."""

    start_ms: int
    end_ms: int


class TimeBins(NamedTuple):
    """A span of time, divided into ``pieces`` bins of ``width_ms``."""

    start_ms: int
    width_ms: int
    pieces: int

    @property
    def end_ms(self) -> int:
        """The end of the last bin."""
        return self.start_ms + self.width_ms * self.pieces


class CommitHistogram(NamedTuple):
    """The number of commits in each bin. ``table`` is where they were counted: ``commits`` or ``commit_rates``."""

    bins: TimeBins
    counts: tuple[int, ...]
    table: str


@dataclass(frozen=True, kw_only=True)
class ActivityHistogram:
    """The number of rebalances, and of commits, of the whole cluster in each bin of time."""

    bins: TimeBins
    rebalances: tuple[int, ...]
    commits: CommitHistogram


@dataclass(frozen=True, kw_only=True)
class Overview:
    """Figures about the whole log. ``groups`` counts the groups that any table names; ``lag`` is the sum of all known lags."""

    records: int = 0
    log_partitions: int = 0
    from_ms: int | None = None
    to_ms: int | None = None
    missing: int = 0
    whole_from_ms: int | None = None
    groups_with_gaps: int = 0
    groups: int = 0
    groups_with_members: int = 0
    groups_gone: int = 0
    commits: int = 0
    rebalances: int = 0
    hidden_generations: int = 0
    moved: int = 0
    moved_needlessly: int = 0
    storms: int = 0
    commit_gaps: int = 0
    zombies: int = 0
    partitions: int = 0
    late_partitions: int = 0
    lost_partitions: int = 0
    awaited_transactions: int = 0
    lag: int | None = None
    activity: ActivityHistogram | None = None


@dataclass(frozen=True, kw_only=True)
class GroupSummary:
    """A row of ``group_health``; ``points`` are what each symptom adds to the score."""

    group: str
    kind: str
    state: str | None
    protocol: str | None
    generation: int | None
    members: int | None
    first_ms: int | None
    last_ms: int | None
    rebalances: int
    hidden_generations: int
    moved: int
    moved_needlessly: int
    storms: int
    commits: int
    commit_gaps: int
    zombies: int
    partitions: int
    late_partitions: int
    lag: int | None
    whole_from_ms: int | None
    score: float
    max_lag_seconds: float | None = None
    expire_ms: int | None = None
    lost_partitions: int = 0
    awaited_transactions: int = 0
    points: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class NamedCount:
    """A name and how often it occurred."""

    what: str
    count: int


@dataclass(frozen=True)
class GroupCount:
    """The number of rebalances of a group."""

    group: str
    count: int


@dataclass(frozen=True)
class CauseCount:
    """How many rebalances, of groups of all kinds, had a cause of this kind."""

    cause_kind: str
    count: int
    groups: tuple[GroupCount, ...]
    """The groups with the most of these rebalances."""
    in_other_groups: int
    """How many of these rebalances were in groups that are not listed."""


class RebalanceSummary(NamedTuple):
    """A row of ``rebalances``, with numbers of members instead of their names."""

    kind: str
    generation: int
    at_ms: int
    cause_kind: str
    likely_cause: str
    members_before: int | None
    members_after: int | None
    partitions_total: int | None
    moved: int | None
    moved_needlessly: int | None
    imbalance: int | None


class GroupEpoch(NamedTuple):
    """A row of ``epochs``."""

    group_epoch: int | None
    at_ms: int
    cause_kind: str
    cause: str
    members: int
    classic_members: int
    assigned_ms: int | None
    to_revoke: int | None
    to_assign: int | None
    reconciled_ms: int | None


class MemberChange(NamedTuple):
    """A row of ``members``."""

    at_ms: int
    member: str
    client_id: str | None
    instance_id: str | None
    is_classic: bool
    event: str
    member_epoch: int | None
    partitions: int | None
    revoking: int
    target: int | None


class MembershipSpan(NamedTuple):
    """A time in which a member had the same number of partitions, counting those that it was told to revoke. ``until_ms`` is
    the begin of the next span."""

    from_ms: int
    until_ms: int
    partitions: int
    is_settled: bool = True
    """Had the member reached its target assignment? Always true in a classic group."""


class MemberTimeline(NamedTuple):
    """A member, and the spans of time in which it was in the group."""

    member: str
    client_id: str
    spans: tuple[MembershipSpan, ...]


class OwnershipSpan(NamedTuple):
    """A time in which ``member`` owned a partition; if that is None, the partition had no owner."""

    from_ms: int
    until_ms: int
    member: str | None
    is_revoking: bool = False
    """Was the owner told to revoke it? Always false in a classic group."""


class PartitionTimeline(NamedTuple):
    """A topic partition and its owners over time."""

    topic: str
    partition: int
    spans: tuple[OwnershipSpan, ...]


class MemberShare(NamedTuple):
    """The number of partitions of a member."""

    member: str
    client_id: str
    partitions: int


class GenerationShares(NamedTuple):
    """The members of the newest generation in ``skew``, those with the most partitions first."""

    generation: int
    fair_share: float
    shares: tuple[MemberShare, ...]


class AssignorPauses(NamedTuple):
    """How many partition pauses an assignor would have caused; ``as it was``: how many there really were."""

    assignor: str
    pauses: int


class NamedMembers(NamedTuple):
    """A group instance id, or else a client id, and the highest number of members that had it at the same time."""

    name: str
    members: int


class RebalanceStorm(NamedTuple):
    """A row of ``storms``. ``what_if`` has the assignors that could be replayed for the whole storm."""

    group: str
    kind: str
    from_ms: int
    to_ms: int
    rebalances: int
    hidden_generations: int
    members_lowest: int | None
    members_highest: int | None
    moved: int | None
    cause_kind: str
    of_cause_kind: int
    likely_causes: tuple[str, ...]
    came_and_went: tuple[NamedMembers, ...] = ()
    what_if: tuple[AssignorPauses, ...] = ()


class CommitPause(NamedTuple):
    """A row of ``commit_pauses``. If ``to_ms`` is None, the pause lasted until the end of the log."""

    group: str
    from_ms: int
    to_ms: int | None
    seconds: float
    partitions: int


class HeldUpPartition(NamedTuple):
    """A partition with an open transaction: its last stable offset, where read_committed consumers stop, and its end offset."""

    topic: str
    partition: int
    stable_offset: int
    end_offset: int


class OpenTransaction(NamedTuple):
    """An open transaction: all rows of ``open_transactions`` of one producer (None: unknown). ``places`` are the first of its
    ``partitions``, ``groups`` the first groups with offsets in any of them, and ``waiting`` the first groups that wait for its
    end."""

    producer_id: int | None
    transactional_id: str | None
    since_ms: int | None
    partitions: int
    places: tuple[HeldUpPartition, ...]
    held_up: int
    """The number of offsets between the last stable offset and the end, in the partition where it is highest."""
    groups: tuple[str, ...]
    groups_left_out: int
    waiting: tuple[str, ...] = ()
    waiting_left_out: int = 0


class PartitionLag(NamedTuple):
    """A row of ``lag``."""

    group: str
    topic: str
    partition: int
    committed_offset: int | None
    end_offset: int | None
    lag: int | None
    last_commit_ms: int | None
    status: str | None
    lag_seconds: float | None = None
    log_start_offset: int | None = None
    records_lost: int | None = None
    expire_ms: int | None = None


class CommitGap(NamedTuple):
    """A row of ``commit_gaps``. If ``to_ms`` is None, no commit came after the gap."""

    topic: str
    partition: int
    from_ms: int
    to_ms: int | None
    gap_seconds: float
    usual_seconds: float


@dataclass(frozen=True, kw_only=True)
class GroupDetail:
    """The section of one of the groups with the highest scores: what happened from ``start_ms`` to ``end_ms``, up to the
    limits."""

    group: GroupSummary
    start_ms: int
    end_ms: int
    rebalances: tuple[RebalanceSummary, ...] = ()
    rebalances_left_out: int = 0
    epochs: tuple[GroupEpoch, ...] = ()
    epochs_left_out: int = 0
    members: tuple[MemberTimeline, ...] = ()
    members_left_out: int = 0
    changes: tuple[MemberChange, ...] = ()
    changes_left_out: int = 0
    commits: CommitHistogram | None = None
    storms: tuple[RebalanceStorm, ...] = ()
    partitions: tuple[PartitionTimeline, ...] = ()
    partitions_left_out: int = 0
    owned_from_ms: int | None = None
    """Owners of partitions before this time are left out; None if all are there."""
    shares: GenerationShares | None = None
    shares_left_out: int = 0
    lags: tuple[PartitionLag, ...] = ()
    lags_left_out: int = 0
    gaps: tuple[CommitGap, ...] = ()
    gaps_left_out: int = 0
    awaited: tuple[OpenTransaction, ...] = ()
    """The open transactions that the group waits for, with only the partitions in which it does."""


class ExpiringGroup(NamedTuple):
    """A group with lag, and when the first of its offsets with lag expires."""

    group: str
    expire_ms: int
    lag: int | None


class LagStatus(NamedTuple):
    """How many partitions have a status by Burrow's rules, and the sum of their lags. ``status`` is None where no end is
    known."""

    status: str | None
    partitions: int
    lag: int | None


class LogPartition(NamedTuple):
    """A row of ``log_partitions``."""

    log_partition: int
    first_offset: int
    last_offset: int
    records: int
    hidden: int
    missing: int
    first_ms: int | None
    last_ms: int | None
    whole_from_ms: int | None


@dataclass(frozen=True, kw_only=True)
class DataQuality:
    """Whether all of the log was read and decoded."""

    counts: tuple[NamedCount, ...] = ()
    bad: tuple[NamedCount, ...] = ()
    problems: tuple[NamedCount, ...] = ()
    log_partitions: tuple[LogPartition, ...] = ()
    log_partitions_left_out: int = 0
    warnings: tuple[SourceWarning, ...] = ()
    warnings_left_out: int = 0

    @property
    def adds_up(self) -> bool:
        """Are the records in the tables as many as were read?"""
        counts = {one.what: one.count for one in self.counts}
        return counts.pop("in", 0) == sum(counts.values())


@dataclass(frozen=True, kw_only=True)
class AssignorResult:
    """The result of one assignor over one group or all, as in ``what_if_summary``; ``as it was``: what really happened."""

    assignor: str
    generations: int
    problems: int
    moved: int
    moved_needlessly: int
    pauses: int
    rebalances: int
    imbalance_worst: int | None


@dataclass(frozen=True, kw_only=True)
class WhatIfResults:
    """The what-if results: of all groups together, and of each group with a section of its own."""

    together: tuple[AssignorResult, ...]
    groups: dict[str, tuple[AssignorResult, ...]]


@dataclass(frozen=True, kw_only=True)
class Report:
    """The whole report. ``groups`` are in descending order of their scores."""

    run: RunInfo
    overview: Overview = field(default_factory=Overview)
    groups: tuple[GroupSummary, ...] = ()
    groups_left_out: int = 0
    details: tuple[GroupDetail, ...] = ()
    causes: tuple[CauseCount, ...] = ()
    """Every rebalance has one cause; the most frequent kind is first."""
    storms: tuple[RebalanceStorm, ...] = ()
    storms_left_out: int = 0
    pauses: tuple[CommitPause, ...] = ()
    pauses_left_out: int = 0
    open_transactions: tuple[OpenTransaction, ...] = ()
    open_transactions_left_out: int = 0
    losses: tuple[PartitionLag, ...] = ()
    """The partitions in which records were deleted before the group read them, those with the most first."""
    losses_left_out: int = 0
    expiring: tuple[ExpiringGroup, ...] = ()
    """The groups with lag whose offsets expire within a day, the first to expire first."""
    expiring_left_out: int = 0
    statuses: tuple[LagStatus, ...] = ()
    lags: tuple[PartitionLag, ...] = ()
    what_if: WhatIfResults | None = None
    quality: DataQuality = field(default_factory=DataQuality)
