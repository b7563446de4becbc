"""The report as data: what the page shows and the JSON document says. Times are milliseconds since 1970 in UTC (``*_ms``).

``left_out`` says how many more there are than are listed; the tables have them all.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from groupcoord.pipeline.report.reading import Bins


@dataclass(frozen=True, kw_only=True)
class Run:
    """What was read: the source as it was asked for, as of when, and the moment that lags were judged at (ISO 8601)."""

    source: str
    as_of: str | None = None
    now: str | None = None


class Span(NamedTuple):
    """From when to when."""

    start_ms: int
    end_ms: int


class Heat(NamedTuple):
    """So many commits in each piece of time, by ``table``."""

    bins: Bins
    commits: tuple[int, ...]
    table: str


@dataclass(frozen=True, kw_only=True)
class Course:
    """What happened when, in the whole cluster; so many rebalances in each piece of time."""

    bins: Bins
    rebalances: tuple[int, ...]
    heat: Heat


@dataclass(frozen=True, kw_only=True)
class Overview:
    """The whole log in figures. ``groups`` are those that any table names; ``lag`` is the sum of what is known of lags."""

    records: int = 0
    log_partitions: int = 0
    from_ms: int | None = None
    to_ms: int | None = None
    missing: int = 0
    whole_from_ms: int | None = None
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
    lag: int | None = None
    course: Course | None = None


@dataclass(frozen=True, kw_only=True)
class Group:
    """A row of ``trouble``, and what each symptom gives of its score."""

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
    score: float
    points: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Count:
    """How often something was there."""

    what: str
    count: int


class Rebalance(NamedTuple):
    """A row of ``rebalances`` or ``modern_rebalances``, with numbers of members instead of their names."""

    generation: int
    at_ms: int
    likely_cause: str
    members_before: int | None
    members_after: int | None
    partitions_total: int | None
    moved: int | None
    moved_needlessly: int | None
    imbalance: int | None


class Presence(NamedTuple):
    """A member in one generation after the other, with so many partitions. ``until_ms`` is where another begins."""

    from_ms: int
    until_ms: int
    partitions: int


class Member(NamedTuple):
    """A member, and when it was in the group."""

    member: str
    client_id: str
    presence: tuple[Presence, ...]


class Tenure(NamedTuple):
    """A partition in the hands of ``member``; None: of nobody."""

    from_ms: int
    until_ms: int
    member: str | None


class Partition(NamedTuple):
    """A partition of a topic, and whose it was."""

    topic: str
    partition: int
    tenures: tuple[Tenure, ...]


class Share(NamedTuple):
    """How many partitions a member had."""

    member: str
    client_id: str
    partitions: int


class Shares(NamedTuple):
    """The members of the newest generation in which anybody could have any, the fullest first."""

    generation: int
    fair_share: float
    shares: tuple[Share, ...]


class Storm(NamedTuple):
    """A row of ``storms``."""

    group: str
    from_ms: int
    to_ms: int
    rebalances: int
    hidden_generations: int
    members_lowest: int | None
    members_highest: int | None
    moved: int | None
    likely_causes: tuple[str, ...]


class Lag(NamedTuple):
    """A row of ``lag``."""

    group: str
    topic: str
    partition: int
    committed_offset: int | None
    end_offset: int | None
    lag: int | None
    last_commit_ms: int | None
    status: str | None


class Gap(NamedTuple):
    """A row of ``commit_gaps``; ``to_ms`` None: no commit came after it."""

    topic: str
    partition: int
    from_ms: int
    to_ms: int | None
    gap_seconds: float
    usual_seconds: float


@dataclass(frozen=True, kw_only=True)
class Detail:
    """One of the most troubled groups: everything from ``start_ms`` to ``end_ms``, as far as it fits."""

    group: Group
    start_ms: int
    end_ms: int
    rebalances: tuple[Rebalance, ...] = ()
    rebalances_left_out: int = 0
    members: tuple[Member, ...] = ()
    members_left_out: int = 0
    heat: Heat | None = None
    storms: tuple[Storm, ...] = ()
    partitions: tuple[Partition, ...] = ()
    partitions_left_out: int = 0
    shares: Shares | None = None
    shares_left_out: int = 0
    lags: tuple[Lag, ...] = ()
    lags_left_out: int = 0
    gaps: tuple[Gap, ...] = ()
    gaps_left_out: int = 0


class Status(NamedTuple):
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
    missing: int
    first_ms: int | None
    last_ms: int | None
    whole_from_ms: int | None


class Remark(NamedTuple):
    """A row of ``source_remarks``."""

    where: str
    what: str
    log_partition: int | None
    records: int | None
    bytes: int | None


@dataclass(frozen=True, kw_only=True)
class Quality:
    """Whether all of the log was read and understood."""

    counts: tuple[Count, ...] = ()
    bad: tuple[Count, ...] = ()
    problems: tuple[Count, ...] = ()
    log_partitions: tuple[LogPartition, ...] = ()
    log_partitions_left_out: int = 0
    remarks: tuple[Remark, ...] = ()
    remarks_left_out: int = 0

    @property
    def adds_up(self) -> bool:
        """Whether as many records went out as came in."""
        counts = {one.what: one.count for one in self.counts}
        return counts.pop("in", 0) == sum(counts.values())


@dataclass(frozen=True, kw_only=True)
class Alternative:
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
class WhatIf:
    """History with other assignors: all groups together, and each of those that have a section of their own."""

    together: tuple[Alternative, ...]
    groups: dict[str, tuple[Alternative, ...]]


@dataclass(frozen=True, kw_only=True)
class Report:
    """All of it. ``groups`` begin with the most troubled."""

    run: Run
    overview: Overview = field(default_factory=Overview)
    groups: tuple[Group, ...] = ()
    groups_left_out: int = 0
    details: tuple[Detail, ...] = ()
    causes: tuple[Count, ...] = ()
    storms: tuple[Storm, ...] = ()
    storms_left_out: int = 0
    statuses: tuple[Status, ...] = ()
    lags: tuple[Lag, ...] = ()
    what_if: WhatIf | None = None
    quality: Quality = field(default_factory=Quality)
