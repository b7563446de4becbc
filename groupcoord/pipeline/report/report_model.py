"""The report as data: what the page shows and the JSON document says. Times are milliseconds since 1970 in UTC (``*_ms``).

Fields that end in ``left_out`` say how many more there are than are listed; the tables have them all.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from groupcoord.pipeline.errors import SourceWarning

DETAILED = 30
"""How many groups have a section of their own, unless told. One is 5 to 7 kB of the page."""
_DURATIONS = {"width_ms"}
"""Fields in milliseconds that are no times."""


def is_time(field: str) -> bool:
    """Is a field of that name a time?"""
    return field.endswith("_ms") and field not in _DURATIONS


def column_name(field: str) -> str:
    """What ``field`` is called in tables and in the JSON document, where times are ``_ts``."""
    return f"{field.removesuffix('_ms')}_ts" if is_time(field) else field


@dataclass(frozen=True, kw_only=True)
class RunInfo:
    """What was read: the source as it was asked for, as of when, and the moment that lags were judged at (ISO 8601)."""

    source: str
    as_of: str | None = None
    now: str | None = None


class TimeSpan(NamedTuple):
    """From when to when."""

    start_ms: int
    end_ms: int


class TimeBins(NamedTuple):
    """A span of time, cut into ``pieces`` of ``width_ms``."""

    start_ms: int
    width_ms: int
    pieces: int

    @property
    def end_ms(self) -> int:
        """Where the last piece ends."""
        return self.start_ms + self.width_ms * self.pieces


class CommitHistogram(NamedTuple):
    """The number of commits in each bin, counted in ``table``."""

    bins: TimeBins
    counts: tuple[int, ...]
    table: str


@dataclass(frozen=True, kw_only=True)
class ActivityHistogram:
    """Rebalances (their number in each bin) and commits of the whole cluster over time."""

    bins: TimeBins
    rebalances: tuple[int, ...]
    commits: CommitHistogram


@dataclass(frozen=True, kw_only=True)
class Overview:
    """The whole log in figures. ``groups`` are those that any table names; ``lag`` is the sum of what is known of lags."""

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
    lag: int | None = None
    activity: ActivityHistogram | None = None


@dataclass(frozen=True, kw_only=True)
class GroupSummary:
    """A row of ``group_health``, and what each symptom gives of its score."""

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
    points: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class NamedCount:
    """How often something was there."""

    what: str
    count: int


@dataclass(frozen=True)
class GroupCount:
    """How many rebalances of a group."""

    group: str
    count: int


@dataclass(frozen=True)
class CauseCount:
    """How many rebalances had a cause of this kind, of groups of all kinds together."""

    cause_kind: str
    count: int
    groups: tuple[GroupCount, ...]
    """The groups with most of them."""
    in_other_groups: int
    """How many were in groups that are not listed."""


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
    """A member with the same number of partitions, those among them that it has to give back. ``until_ms`` is when the next
    span begins."""

    from_ms: int
    until_ms: int
    partitions: int
    is_settled: bool = True
    """Is it there, with what the target assignment gives it? Always in a classic group."""


class MemberTimeline(NamedTuple):
    """A member, and the spans of time in which it was in the group."""

    member: str
    client_id: str
    spans: tuple[MembershipSpan, ...]


class OwnershipSpan(NamedTuple):
    """A time in which ``member`` owned a partition; None: it had no owner."""

    from_ms: int
    until_ms: int
    member: str | None
    is_revoking: bool = False
    """Was the owner told to give it back? Never in a classic group."""


class PartitionTimeline(NamedTuple):
    """A partition of a topic, and who owned it."""

    topic: str
    partition: int
    spans: tuple[OwnershipSpan, ...]


class MemberShare(NamedTuple):
    """How many partitions a member had."""

    member: str
    client_id: str
    partitions: int


class GenerationShares(NamedTuple):
    """The members of the newest generation in which a member could have partitions, the one with most first."""

    generation: int
    fair_share: float
    shares: tuple[MemberShare, ...]


class AssignorPauses(NamedTuple):
    """How many partitions an assignor would have stopped, or (``as it was``) how many did stop, each time counted."""

    assignor: str
    pauses: int


class NamedMembers(NamedTuple):
    """A group instance id, or else a client id, and how many members had it at once at most."""

    name: str
    members: int


class RebalanceStorm(NamedTuple):
    """A row of ``storms``, and what ``what_if`` says of its time: the assignors that had an answer for all of it."""

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
    """A row of ``commit_pauses``; ``to_ms`` None: it lasted until the end of the log."""

    group: str
    from_ms: int
    to_ms: int | None
    seconds: float
    partitions: int


class HeldUpPartition(NamedTuple):
    """A partition in which a transaction is open: where a consumer that reads committed stops, and where the partition ends."""

    topic: str
    partition: int
    stable_offset: int
    end_offset: int


class OpenTransaction(NamedTuple):
    """The rows of ``open_transactions`` with one producer (None: it is not known), the first of its ``partitions``, and the
    first of the groups that are in any of them."""

    producer_id: int | None
    since_ms: int | None
    partitions: int
    places: tuple[HeldUpPartition, ...]
    held_up: int
    """The most offsets between the stable one and the end, over all partitions."""
    groups: tuple[str, ...]
    groups_left_out: int


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
    """A row of ``commit_gaps``; ``to_ms`` None: no commit came after it."""

    topic: str
    partition: int
    from_ms: int
    to_ms: int | None
    gap_seconds: float
    usual_seconds: float


@dataclass(frozen=True, kw_only=True)
class GroupDetail:
    """One of the most troubled groups: everything from ``start_ms`` to ``end_ms``, as far as it fits."""

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
    """Owners of partitions before this time are left out; None: none are."""
    shares: GenerationShares | None = None
    shares_left_out: int = 0
    lags: tuple[PartitionLag, ...] = ()
    lags_left_out: int = 0
    gaps: tuple[CommitGap, ...] = ()
    gaps_left_out: int = 0


class ExpiringGroup(NamedTuple):
    """A group that is late, and when the first of its offsets that have lag expires."""

    group: str
    expire_ms: int
    lag: int | None


class LagStatus(NamedTuple):
    """How many partitions have a status of Burrow's, and how far these are behind; None: no end is known."""

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
    """Whether all of the log was read and understood."""

    counts: tuple[NamedCount, ...] = ()
    bad: tuple[NamedCount, ...] = ()
    problems: tuple[NamedCount, ...] = ()
    log_partitions: tuple[LogPartition, ...] = ()
    log_partitions_left_out: int = 0
    warnings: tuple[SourceWarning, ...] = ()
    warnings_left_out: int = 0

    @property
    def adds_up(self) -> bool:
        """Whether as many records went out as came in."""
        counts = {one.what: one.count for one in self.counts}
        return counts.pop("in", 0) == sum(counts.values())


@dataclass(frozen=True, kw_only=True)
class AssignorResult:
    """What one assignor would have done with the memberships of history, or (``as it was``) what was done: as the columns of
    ``what_if_summary``, over one group or all."""

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
    """History with other assignors: all groups together, and each of those that have a section of their own."""

    together: tuple[AssignorResult, ...]
    groups: dict[str, tuple[AssignorResult, ...]]


@dataclass(frozen=True, kw_only=True)
class Report:
    """All of it. ``groups`` begin with the most troubled."""

    run: RunInfo
    overview: Overview = field(default_factory=Overview)
    groups: tuple[GroupSummary, ...] = ()
    groups_left_out: int = 0
    details: tuple[GroupDetail, ...] = ()
    causes: tuple[CauseCount, ...] = ()
    """Every rebalance counts under one; the most frequent is first."""
    storms: tuple[RebalanceStorm, ...] = ()
    storms_left_out: int = 0
    pauses: tuple[CommitPause, ...] = ()
    pauses_left_out: int = 0
    open_transactions: tuple[OpenTransaction, ...] = ()
    open_transactions_left_out: int = 0
    losses: tuple[PartitionLag, ...] = ()
    """Where records were deleted before the group read them; most of them are first."""
    losses_left_out: int = 0
    expiring: tuple[ExpiringGroup, ...] = ()
    """Groups with lag whose offsets expire within a day; the first to expire is first."""
    expiring_left_out: int = 0
    statuses: tuple[LagStatus, ...] = ()
    lags: tuple[PartitionLag, ...] = ()
    what_if: WhatIfResults | None = None
    quality: DataQuality = field(default_factory=DataQuality)
