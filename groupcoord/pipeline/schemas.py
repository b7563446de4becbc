"""The schemas of all tables of the pipeline: columns, types, meanings and units. The docs are generated from this.

Types are in the syntax of Spark's DDL, so that nothing here needs Spark. ``*_ts`` and ``at`` are timestamps in UTC, to the
millisecond. A time that a record does not have (-1 in Kafka) is null; times outside of the years 1 to 9999 are clamped to
these.
"""

import re
import textwrap
from typing import NamedTuple

from groupcoord.pipeline.health_symptoms import SYMPTOMS


class ColumnSchema(NamedTuple):
    """One column of a table; ``unit`` is empty where there is none."""

    name: str
    type: str
    meaning: str
    unit: str = ""


class TableSchema(NamedTuple):
    """One table: Parquet files in ``tables/NAME``. ``key`` are the columns that identify a row."""

    name: str
    meaning: str
    key: tuple[str, ...]
    columns: tuple[ColumnSchema, ...]

    @property
    def names(self) -> list[str]:
        """The names of the columns, in order."""
        return [column.name for column in self.columns]

    @property
    def ddl(self) -> str:
        """The schema in Spark's DDL; names are quoted, because ``group``, ``from`` and others are keywords of SQL."""
        return ", ".join(f"`{column.name}` {column.type}" for column in self.columns)


def columns(text: str) -> tuple[ColumnSchema, ...]:
    """Parse the columns that ``text`` describes: a line ``name type unit: meaning`` for each, the unit only where there is one.

    A line of names alone, with commas, stands for SHARED columns; a line that is indented further continues the one above.
    A timestamp has the unit UTC.
    """
    found: list[ColumnSchema] = []
    for line in _lines(text):
        head, colon, meaning = line.partition(": ")
        if not colon:
            found += [SHARED[name] for name in head.split(", ") if name]
            continue
        name, kind, *unit = head.split(" ")
        found.append(ColumnSchema(name, kind, meaning, *(["UTC"] if kind == "timestamp" else unit)))
    return tuple(found)


def table_schema(text: str, same_as: tuple[ColumnSchema, ...] = ()) -> TableSchema:
    """Parse the table that ``text`` describes: a line ``name by key, key: meaning``, then the columns, as in ``columns``.
    They are appended to the columns ``same_as``."""
    first, *rest = _lines(text)
    head, _, meaning = first.partition(": ")
    name, _, key = head.partition(" by ")
    return TableSchema(name, meaning, tuple(key.split(", ")), same_as + columns("\n".join(rest)))


def _lines(text: str) -> list[str]:
    """The lines of ``text``; one that is indented further continues the one above."""
    return re.sub(r"\n {4,}", " ", textwrap.dedent(text).strip()).splitlines()


TOPIC_PARTITIONS = "array<struct<topic:string,partitions:array<int>>>"
MEMBER = (
    "struct<member_id:string,instance_id:string,client_id:string,client_host:string,rebalance_timeout_ms:int,"
    f"session_timeout_ms:int,topics:array<string>,owned:{TOPIC_PARTITIONS},assigned:{TOPIC_PARTITIONS},"
    "owned_generation:int,rack:string>"
)
"""A member of a generation. ``topics``, ``owned``, ``owned_generation`` and ``rack`` are from its subscription, ``assigned`` is
from its assignment; null where the group's protocol type is not ``consumer``, or where they cannot be read."""

NAMES = "array<struct<name:string,members:int>>"
"""Group instance ids, or else client ids, each with the highest number of members that had it at the same time."""

SHARED: dict[str, ColumnSchema] = {}
"""Columns that several tables have, by name."""
_SHARED_COLUMNS = f"""
    log_partition int: partition of `__consumer_offsets` that the record is in
    log_offset bigint: offset of the record in it; within one group a later record has a higher one
    append_ts timestamp: when the record was appended
    group string: group id
    kind string: kind of the group then: `classic`, `consumer` (KIP-848), `share` (KIP-932) or `streams` (KIP-1071)
    topic string: topic
    partition int: partition of the topic
    value_version smallint: schema version of the value; null: a tombstone
    is_tombstone boolean: is the value null? What the key identifies was then removed
    committed_offset bigint: offset that was committed; null: a tombstone
    leader_epoch int: leader epoch of the last record before it, from the consumer; -1: the consumer sent none (KIP-320)
    metadata string: metadata string that the consumer committed with the offset
    commit_ts timestamp: when the coordinator accepted the commit
    expire_ts timestamp: expiration time that the commit requested (value version 1 only); else null
    topic_id string: id of the topic, where the value has it (version 4, KIP-848)
    protocol_type string: `consumer` for consumers; empty for a group that only commits
    generation int: generation of the group
    protocol string: assignor that the members agreed on; null: the group has no members
    leader string: member id of the leader; null: the group has no members
    state_ts timestamp: when the group entered its current state (value version 2 and higher)
    members array<{MEMBER}>: the members, with their subscriptions and assignments
"""
SHARED |= {column.name: column for column in columns(_SHARED_COLUMNS)}

LOG = table_schema("""
    log by log_partition, log_offset: The output of every source: the records of `__consumer_offsets` that a `read_committed`
        consumer would see. Not kept.
    log_partition, log_offset
    key binary: key, as it is in the log
    value binary: value, as it is in the log; null: a tombstone
    append_ts
""")

COMMITS = table_schema("""
    commits by log_partition, log_offset: Every offset commit in the log, and every removal (tombstone) of one: record types 0
        and 1.
    log_partition, log_offset, append_ts, group, topic, partition, committed_offset, leader_epoch, metadata, commit_ts,
        expire_ts, topic_id, value_version, is_tombstone
""")

GENERATIONS = table_schema("""
    generations by log_partition, log_offset: Every generation of a classic group in the log, and the end (tombstone) of a
        group: record type 2. When a static member rejoins there is a further record of the same generation.
    log_partition, log_offset, append_ts, group, protocol_type, generation, protocol, leader, state_ts, members,
        value_version, is_tombstone
    problem string: why a member's subscription or assignment could not be read; null: all could
""")

CURRENT_OFFSETS = table_schema("""
    current_offsets by group, topic, partition: What each group has committed, as the coordinator would know it after
        reading the log: the last record of each key.
    log_partition, log_offset, append_ts, group, topic, partition, committed_offset, leader_epoch, metadata, commit_ts,
        expire_ts, topic_id, value_version
""")

CURRENT_GROUPS = table_schema("""
    current_groups by group: All existing groups of every kind, as the coordinator would know them after reading the log.
        In groups that are not classic, members have their current assignments. A group that only commits has no record
        of its own: its generation is 0 and its `log_offset` null.
    log_partition
    log_offset bigint: offset of the last record of the group's metadata (if it is not classic, of its epoch); null: it has
        none
    append_ts, group
    kind string: `classic`, `consumer`, `share`, `streams`, or `simple`: it only commits
    state string: `Empty` without members, else `Stable`; a `consumer` or `streams` group is `Assigning` while its target
        assignment is older than its epoch, and `Reconciling` until each member has reached it, which a static member that
        is away has not
    protocol_type
    generation int: generation of the group; if it is not classic, epoch of its newest target assignment
    protocol, leader, state_ts, members, value_version
    group_epoch int: epoch of a group that is not classic: goes up with every change of its members or topics
    members_at_epoch int members: members that have reached the epoch of the newest target assignment; null: a classic group
""")

CAUSE_KINDS = {
    "log_begins": "the generation before it is compacted away",
    "became_consumer": "the group was a classic one, and became a consumer group",
    "became_classic": "the group was a consumer group, and became a classic one",
    "empty_join": "a join phase ended without members, and there were none before",
    "group_emptied": "all members left or timed out",
    "group_started": "the first members joined a new group",
    "group_refilled": "members joined a group that was empty",
    "assignor_changed": "the members agreed on another assignor",
    "members_restarted": "the same client ids and hosts came back under new member ids",
    "members_joined_and_left": "some joined, others left or timed out",
    "members_joined": "members joined",
    "members_left": "members left or timed out",
    "subscription_changed": "the members want other topics",
    "static_member_returned": "a static member came back under another member id",
    "cooperative_second_step": "partitions that members had given up were handed out",
    "partitions_added": "there are more partitions than before",
    "partitions_removed": "there are fewer partitions than before",
    "topics_changed": "topics came or went, or have other partitions; not in classic groups, whose log does not say it",
    "other": "none of these, in a group that is not classic",
    "member_rejoined": "nobody came or went in a classic group: the leader joined again, or another member with something new "
    "to say",
}
"""The values of ``cause_kind``. The first whose condition holds counts, in this order."""

REBALANCES = table_schema(f"""
    rebalances by log_partition, log_offset: One row for each new generation of a group of any kind, compared with the one
        before it in the log. Of groups that are not classic a generation is a target assignment and has the number of its
        epoch; an epoch in which the group has no members is one, too.
    log_partition, log_offset, group, kind
    generation int: generation that began
    previous_generation int: the one before it in the log; null: the log has none
    hidden_generations int generations: generations between the two that the log does not show: join phases whose leader
        never sent an assignment, epochs for which no target assignment was made, or records that were compacted away
    at timestamp: when its assignment was written
    assign_and_sync_ms bigint ms: from the end of the join phase to the leader's assignment: the time of the assignor and one
        round trip; null: the group is not classic
    members_before int members: members of the previous generation; null: unknown
    members_after int members: members of this one
    joined array<string>: member ids that are new
    left array<string>: member ids that are gone
    came_and_went {NAMES}: the same members by name, each name once: the group instance id, or else the client id, and how
        many members had it, before or after, whichever were more
    leader_before string: member id of the leader before
    leader_after string: member id of the leader now
    protocol_before string: assignor before
    protocol_after string: assignor now
    partitions_total int partitions: partitions that were assigned
    moved int partitions: of these, partitions whose owner is not their last owner. Generations of a cooperative rebalance in
        which a partition has no owner are skipped for this. Null, as the next two columns, in share groups, whose members share
        partitions
    kept int partitions: of these, partitions with the owner that they last had
    moved_needlessly int partitions: of those that moved, how many could have stayed if the same numbers of partitions were
        distributed over the members in the best way
    imbalance int partitions: by how many partitions the fullest member exceeds the emptiest
    seconds_since_previous double s: time since the previous generation
    cause_kind string: kind of the likely cause, one of [these](#kinds-of-causes)
    likely_cause string: likely cause of the rebalance, in words
""")

OWNERSHIP = table_schema("""
    ownership by log_partition, log_offset, group, topic, partition: The owner of each partition over time: one row for
        each change. In classic groups the owner is the member it was assigned to, in others the member that really had it.
        Share groups are not here: their members share partitions.
    log_partition, log_offset, append_ts, group, kind
    generation int: generation in which it changed; in groups that are not classic the epoch of the member (of the group, if
        nobody has it)
    topic string: topic; its id where the log does not have the name; of a streams group `subtopology N`, of whose tasks
        `partition` is one
    partition
    member string: member id of the owner from here on; null: none
    client_id string: client id of that member
    previous_member string: member id of the last owner before; null: none is known
    until_ts timestamp: when it changed again; null: it did not
    is_revoking boolean: was the owner told to revoke it? Never in a classic group
""")

LAG = table_schema("""
    lag by group, topic, partition: The lag of each group in each partition; unknown where no end offset is known.
    group, topic, partition
    committed_offset bigint: what is committed
    end_offset bigint records: log end offset of the partition; null: unknown
    lag bigint records: `end_offset` minus `committed_offset`, never below 0; null: unknown
    last_commit_ts timestamp: when the coordinator accepted the last commit
    status string: by Burrow's published rules, from the last ten commits: `OK`, `WARN` (lag never fell), `STOP` (no commit
        for longer than these ten took), `STALL` (commits, but the same offset), `REWIND` (an offset went back, and what was
        committed before is not reached again); null: no end is known
    lag_seconds double s: age of the first record that the group has not read; 0: there is none, or there are only transaction
        markers; null: unknown. The source `kafka:` asks for the time of that record where the lag is among the 1,000
        longest. Where it is not asked, and the end was observed before and after that record, it is interpolated between these
        two observations: wrong by no more than they are apart
    log_start_offset bigint: offset of the first record that the partition still has; null: unknown
    records_lost bigint offsets: how many offsets from `committed_offset` to `log_start_offset` the group has not read: their
        records were deleted, by retention or by an administrator, before the group could read them; null: unknown
    expire_ts timestamp: when the offset expires, if the group remains as it is; null: never, because a member subscribes to the
        topic, or the group is rebalancing
""")

COMMIT_GAPS = table_schema("""
    commit_gaps by group, topic, partition, from_ts: Where commits stopped: pauses at least a minute long and ten times as
        long as is usual for that partition.
    log_partition
    log_offset bigint: offset of the last commit before the pause
    group, topic, partition
    from_ts timestamp: last commit before
    to_ts timestamp: first commit after; null: none came until the end of the log
    gap_seconds double s: how long; where none came after, until the last record of the whole log
    usual_seconds double s: mean time between two commits of this partition by this group
    offset_before bigint: what was committed before
    offset_after bigint: what was committed after; null: none came
""")

COMMIT_PAUSES = table_schema("""
    commit_pauses by group, from_ts: Where a group stopped to commit: rows of `commit_gaps` that overlap in time, as one.
    group
    from_ts timestamp: begin of the first of them
    to_ts timestamp: end of the last of them; null: one lasted until the end of the log
    seconds double s: from the one to the other, or to the last record of the whole log
    partitions bigint partitions: partitions of topics that they are about
""")

COMMIT_RATES = table_schema("""
    commit_rates by group, window_start: Commits of each group in each window of time.
    group
    window_start timestamp: begin of the window
    window_end timestamp: end of the window, which does not belong to it
    commits bigint commits: commits accepted
    partitions bigint partitions: distinct partitions that were committed
    advanced bigint records: from the lowest to the highest offset, over all partitions
""")

STORMS = table_schema(f"""
    storms by group, from: Rebalances of a group that follow one another: at least five, none more than a minute after the
        one before. A group that only starts is none: its first members, and further ones, and nothing else.
    log_partition, group, kind
    from timestamp: first of them
    to timestamp: last of them
    rebalances int rebalances: how many the log shows
    hidden_generations int generations: how many generations it does not show
    members_lowest int members: fewest members in it
    members_highest int members: most members in it
    moved int partitions: partitions that moved, each time counted
    cause_kind string: the most frequent of the [kinds of causes](#kinds-of-causes) of its rebalances
    of_cause_kind int rebalances: how many of them have a cause of that kind
    likely_causes array<string>: the causes of its rebalances, each once, the most frequent first
    came_and_went {NAMES}: who came or went in those of that kind, as in `rebalances`, the most frequent first, at most
        four names
""")

SKEW = table_schema("""
    skew by log_partition, log_offset, member: How many partitions each member was given in each generation; in groups that
        are not classic in each target assignment, of a streams group active tasks.
    log_partition, log_offset, append_ts, group, kind
    generation int: generation
    member string: member id
    client_id string: its client id
    partitions int partitions: partitions it was given
    fair_share double partitions: mean over the members of that generation
""")

ZOMBIES = table_schema("""
    zombies by log_partition, log_offset: Commits that look as if they came from a member of an older generation, or from
        one that had left. The log does not say who committed: the reason says what is odd. Streams groups, whose partitions
        belong to tasks, and share groups, which commit nothing, are not here.
    log_partition, log_offset, append_ts, group, kind, topic, partition
    committed_offset bigint: what was committed
    previous_offset bigint: what was committed before it; null: nothing that the log still has
    generation int: generation at that moment
    owner string: member id of who had the partition; null: none
    previous_owner string: member id of who had it before
    reason string: `nobody in the group` (or an administrator set the offset), `nobody has the partition`, or `back behind
        its owner` (an offset below one that was committed since the partition moved)
""")

WHAT_IF = table_schema("""
    what_if by log_partition, log_offset, assignor: What other assignors would have assigned to the same members: one row for
        each rebalance with members and each assignor of `--replay-with`, and one with the assignor `as it was` for
        what really happened. Empty unless it is asked for. The second step of a cooperative rebalance, in which no member
        joins or leaves, counts in the row of the first. With a `problem` there are no numbers.
    log_partition, log_offset, group
    generation int: generation that began; of a cooperative rebalance, the first of its two
    at timestamp: when its assignment was written
    assignor string: assignor, as `--replay-with` names it; `as it was`: what the log has
    members int members: members
    partitions_total int partitions: partitions that have an owner at the end
    moved int partitions: of these, partitions with another owner than the last they had
    kept int partitions: of these, partitions with the owner that they last had
    moved_needlessly int partitions: of those that moved, how many could have stayed, counted as in `rebalances`
    imbalance int partitions: by how many partitions the fullest member exceeds the emptiest
    pauses int partitions: partitions whose consumption pauses: they had an owner and are subscribed to, but are not read during
        the rebalance, because their owner revoked them before it rejoined, or lost them, or left
    rebalances int rebalances: how many it takes: 1, or 2 (seldom more) if cooperative members first have to revoke
        partitions
    paused_partition_seconds double s: `pauses` times `assign_and_sync_ms` of `rebalances`, which is the least that a pause
        can have lasted; null: not in the log
    agrees boolean: does each member get its real assignment? null: the group did not use this assignor then
    problem string: why there is no assignment of this assignor; null: there is one
""")

WHAT_IF_SUMMARY = table_schema("""
    what_if_summary by group, assignor: The same for each group and assignor in one row, rebalances with a problem left out.
    group
    assignor string: assignor, as `--replay-with` names it; `as it was`: what the log has
    generations bigint generations: rows of `what_if` without a problem
    problems bigint generations: rows of `what_if` with one
    moved bigint partitions: partitions that moved, each time counted
    moved_needlessly bigint partitions: of these, how many could have stayed
    pauses bigint partitions: partitions that stopped, each time counted
    rebalances bigint rebalances: rebalances that it took
    paused_partition_seconds double s: sum of what is known of them; null: nothing, or no row is without a problem
    imbalance_mean double partitions: mean of `imbalance`
    imbalance_worst int partitions: highest `imbalance`
    agrees bigint generations: rows that agree with the real assignment; null: the group never used this assignor
""")

MODERN_RECORDS = table_schema("""
    modern_records by log_partition, log_offset: Every record of groups that are not classic (consumer, share and streams
        groups), as JSON: record types 3 and up.
    log_partition, log_offset, append_ts
    record_type smallint: number of the record type
    record string: its name, as Kafka calls it
    group
    member string: member id, where the key has one
    key string JSON: the key's fields
    value string JSON: the value's fields; null: a tombstone
    value_version, is_tombstone
""")

MODERN_GENERATIONS = table_schema(
    """
    modern_generations by log_partition, log_offset: Every target assignment of a group that is not classic, in the
        form of `generations`; and every epoch without members. `generation` is the epoch,
        `protocol` the assignor that members ask for; there is no leader.
    kind
    metadata_hash bigint: hash of the topics that it is for
    """,
    GENERATIONS.columns,
)

EPOCH_CAUSES = {
    "log_begins": "the epoch before it is compacted away",
    "became_consumer": "the group was a classic one, and became a consumer group",
    "group_started": "the first members joined a new group",
    "members_joined_and_left": "some joined, others left or were fenced",
    "members_joined": "members joined",
    "members_left": "members left or were fenced",
    "subscription_changed": "a member asks for other topics or another assignor, or is in another rack",
    "topics_changed": "topics came or went, or have other partitions",
    "expression_resolved": "a regular expression matches other topics",
    "other": "none of these",
    "became_classic": "the group became a classic one",
    "group_ended": "the group was deleted",
}
"""The values of ``cause_kind`` of epochs. Of several, the first one counts."""

EPOCHS = table_schema(f"""
    epochs by log_partition, log_offset: Every epoch of a group that is not classic, with its cause and when all members
        had reached it; and the end of a group.
    log_partition, log_offset, append_ts, group, kind
    group_epoch int: the epoch that began; null: the group ended
    previous_epoch int: the one before it; null: the log has none, or the group had ended
    members int members: members then
    classic_members int members: of these, those that speak the classic protocol
    cause_kind string: what began it: {", ".join(f"`{kind}` ({meaning})" for kind, meaning in EPOCH_CAUSES.items())}
    cause string: the same in words
    assigned_ts timestamp: when the target assignment of this epoch was written; null: none was
    to_revoke int partitions: partitions that members had then and that are not in their targets
    to_assign int partitions: partitions that are in the targets of members and that they did not have then
    reconciled_ts timestamp: when every member had reached this epoch and had its whole target; null: not before the next epoch
""")

MEMBER_EVENTS = {
    "joined": "it is new",
    "retargeted": "it is to have other partitions than before",
    "revoking": "it was told to give partitions back",
    "waiting": "it has given back what it was to; others still have partitions that it is to have",
    "settled": "it has what the assignment of its epoch or generation gives it",
    "away": "a static member left, and may come back to its partitions",
    "unknown": "its state is none that is known here",
    "left": "it left or was fenced: the log does not say which",
    "revoked_too_late": "it was fenced: it did not give partitions back within its rebalance timeout",
    "away_too_long": "a static member did not come back in time",
    "replaced": "a static member came back, under another member id",
    "converted": "the group became one of another kind: consumer or classic",
}
"""The values of ``event`` in ``members``, and what they mean. The last five are the end of a member."""
END_EVENTS = tuple(MEMBER_EVENTS)[-5:]

MEMBERS = table_schema(f"""
    members by log_partition, log_offset, member: The history of each member of a group of any kind: one row for each change of
        its assignment or of its target.
    log_partition, log_offset, append_ts, group, kind
    member string: member id
    client_id string: its client id
    instance_id string: its group instance id, if it is a static member
    is_classic boolean: does it speak the classic protocol?
    event string: what happened: {", ".join(f"`{event}` ({meaning})" for event, meaning in MEMBER_EVENTS.items())}
    member_epoch int: its epoch from here on, in a classic group the generation; -2: away; null: it is gone
    partitions int partitions: partitions it has and keeps, in a streams group active tasks; null: its assignment cannot be
        read
    revoking int partitions: partitions it was told to revoke and still has
    target int partitions: partitions of its target assignment; null: its assignment cannot be read
    is_settled boolean: is it in the epoch of the group, and has it exactly its target? Also true if it is gone
    until_ts timestamp: when the next change of this member came; null: none came
""")


_POINTS = ", ".join(f"{one.column} {one.points}{' points' * (one is SYMPTOMS[0])}" for one in SYMPTOMS)
GROUP_HEALTH = table_schema(f"""
    group_health by group: Every group that any of the tables names, in one row: what to look at first. The score is the sum
        over eight symptoms of points * log2(1 + count), or, for partitions, points * log2(1 + share of them): {_POINTS}.
    group
    kind string: `classic`, `consumer` (KIP-848), `share` (KIP-932), `streams` (KIP-1071), or `simple`: it only commits
    state string: as in `current_groups`; null: the group is gone
    protocol
    generation int: generation of the group, or epoch of its newest target assignment; null: the group is gone
    members bigint members: members in it; null: the group is gone
    first_ts timestamp: first rebalance, or begin of the first window of `commit_rates`
    last_ts timestamp: last rebalance or commit; of commits that are gone, the begin of their window
    rebalances bigint rebalances: rows of `rebalances`
    hidden_generations bigint generations: generations between them that the log does not show
    moved bigint partitions: partitions that moved, each time counted
    moved_needlessly bigint partitions: of these, how many need not have
    storms bigint storms: rows of `storms`
    commits bigint commits: commits accepted, by `commit_rates`
    commit_gaps bigint pauses: how often commits stopped: rows of `commit_pauses`
    zombies bigint commits: rows of `zombies`
    partitions bigint partitions: partitions with a committed offset, by `lag`
    late_partitions bigint partitions: of these, those whose `status` in `lag` is known and not `OK`, and which do not wait
        for an open transaction
    lost_partitions bigint partitions: of these, those in which `lag` has `records_lost`
    awaited_transactions bigint transactions: transactions in `open_transactions` that began more than a minute ago and that it
        is `waiting` for, each counted once, however many partitions it is in
    lag bigint records: sum of their known lags; null: none is known, or the sum overflows
    max_lag_seconds double s: highest of their `lag_seconds`; null: none is known
    expire_ts timestamp: when the first of the offsets with lag expires; null: none does
    whole_from_ts timestamp: from when on nothing is missing in the partition of the log that the group is in; null: nothing is
    score double points: the score described above: the higher, the more troubled the group
""")

GROUP_COUNTS = GROUP_HEALTH.names[GROUP_HEALTH.names.index("rebalances") : GROUP_HEALTH.names.index("lag")]
"""The columns of ``group_health`` that are counts."""

BAD_RECORDS = table_schema("""
    bad_records by log_partition, log_offset: Records that could not be decoded: they are in no other table.
    log_partition, log_offset, append_ts
    reason string: what is wrong with it
    key binary: key, as it is in the log
    value binary: value, as it is in the log
""")

LOG_PARTITIONS = table_schema("""
    log_partitions by log_partition: What was read of each partition of `__consumer_offsets`, and how much of its history
        compaction has taken.
    log_partition
    first_offset bigint: lowest offset that was read
    last_offset bigint: highest offset that was read
    records bigint records: records that were read
    hidden bigint offsets: offsets of transaction markers, and of records of aborted or open transactions
    missing bigint offsets: offsets between these two where nothing is: compacted away, or, where the source cannot tell
        (`connector:`), hidden by transactions
    first_ts timestamp: earliest append
    last_ts timestamp: latest append
    whole_from_offset bigint: from this offset on no offset is missing; the history before it may be incomplete
    whole_from_ts timestamp: when the record at that offset was appended
""")

RECORD_COUNTS = table_schema("""
    record_counts by what: How many records went where; `in` is the sum of the others, which the job checks.
    what string: `in`, `later` (than `--as-of`), or the name of the table they are in
    records bigint records: how many
""")

SOURCE_WARNINGS = table_schema("""
    source_warnings by where, what: What the source has to say: torn tails, records of transactions that were aborted or are
        still open, files passed over, topics whose ends are not known.
    where string: file, topic or partition
    what string: what was seen, in words
    log_partition int: partition of `__consumer_offsets`, where it is about one
    records bigint records: how many records it is about; null: cannot be known
    bytes bigint bytes: how many bytes it is about; null: does not apply
""")

OPEN_TRANSACTIONS = table_schema("""
    open_transactions by topic, partition: Partitions of the groups' topics in which a transaction is open, so that
        `read_committed` consumers stop at its begin; in `watch` also partitions of `__consumer_offsets` in which it commits
        offsets. Only the source `kafka:` knows of them.
    topic, partition
    stable_offset bigint: last stable offset, where such a consumer stops
    end_offset bigint: offset behind the last record
    producer_id bigint: producer that began it; null: not known, as before Kafka 2.8, or if the topic may not be
        read
    transactional_id string: transactional id of that producer, by which its application is found; null: not known, as before
        Kafka 3.0
    since timestamp: when it wrote the first record of it; null: not known
    groups array<string>: groups that have committed offsets for this partition or, of `__consumer_offsets`, in it; sorted
    waiting array<string>: of these, the groups that have read every record before the transaction and none behind it, as
        consumers that read committed do until it ends; sorted
""")

END_OFFSETS = table_schema("""
    end_offsets by topic, partition, at: The log end offsets of topics: from the cluster, or from the file of
        `--end-offsets`. Not kept.
    topic, partition
    end_offset bigint: offset behind the last record
    log_start_offset bigint: offset of the first record that there is; null: unknown
    at timestamp: when that was so; null: at the end of the log
    unread array<struct<committed_offset:bigint,at:timestamp>>: for offsets that groups have committed, the time of the first
        record from there on; null: there is none. Offsets for which that is not known are missing
    open_transaction struct<stable_offset:bigint,producer_id:bigint,transactional_id:string,since:timestamp>: where a
        consumer that reads committed stops before that end, who began the transaction that it waits for, and when; null: it
        does not, or it is not known
""")

TABLES: dict[str, TableSchema] = {
    table.name: table
    for table in list(globals().values())
    if isinstance(table, TableSchema) and table not in (LOG, END_OFFSETS)
}
"""The tables that a run writes, by name, in the order of the docs."""
