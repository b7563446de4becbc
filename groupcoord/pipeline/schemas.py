"""Every table of the pipeline: its columns, their types, what they mean and in which unit. The docs are written from this.

A type is written as Spark's DDL writes it, so that nothing here needs Spark. ``*_ts`` and ``at`` are timestamps in UTC, to the
millisecond. A time that a record does not have (-1 in Kafka) is null; one that no calendar has is the nearest that one has.
"""

from typing import NamedTuple


class ColumnSchema(NamedTuple):
    """One column of a table; ``unit`` is empty where there is none."""

    name: str
    type: str
    meaning: str
    unit: str = ""


class TableSchema(NamedTuple):
    """One table: Parquet files in ``tables/NAME``. ``key`` is what tells its rows apart."""

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
        """The schema as Spark reads it; quoted, because ``group``, ``from`` and others are words of SQL."""
        return ", ".join(f"`{column.name}` {column.type}" for column in self.columns)


TOPIC_PARTITIONS = "array<struct<topic:string,partitions:array<int>>>"
MEMBER = (
    "struct<member_id:string,instance_id:string,client_id:string,client_host:string,rebalance_timeout_ms:int,"
    f"session_timeout_ms:int,topics:array<string>,owned:{TOPIC_PARTITIONS},assigned:{TOPIC_PARTITIONS},"
    "owned_generation:int,rack:string>"
)
"""A member of a generation. ``topics``, ``owned``, ``owned_generation`` and ``rack`` are from its subscription, ``assigned`` is
from its assignment; null where the group's protocol type is not ``consumer``, or where they cannot be read."""

_PARTITION = ColumnSchema("log_partition", "int", "partition of `__consumer_offsets` that the record is in")
_OFFSET = ColumnSchema(
    "log_offset", "bigint", "offset of the record in it; within one group a later record has a higher one"
)
_APPENDED = ColumnSchema("append_ts", "timestamp", "when the record was appended", "UTC")
_WHERE = (_PARTITION, _OFFSET, _APPENDED)
_GROUP = ColumnSchema("group", "string", "group id")
_TOPIC = ColumnSchema("topic", "string", "topic")
_NUMBER = ColumnSchema("partition", "int", "partition of the topic")
_VERSION = ColumnSchema("value_version", "smallint", "version that the value's bytes say; null: a tombstone")
_TOMBSTONE = ColumnSchema("is_tombstone", "boolean", "is it a null value: what the key names is gone?")

LOG = TableSchema(
    "log",
    "What every source gives: the records of `__consumer_offsets` that a consumer reading committed would see. Not kept.",
    ("log_partition", "log_offset"),
    (
        *_WHERE[:2],
        ColumnSchema("key", "binary", "key, as it is in the log"),
        ColumnSchema("value", "binary", "value, as it is in the log; null: a tombstone"),
        _APPENDED,
    ),
)

_COMMITTED = (
    ColumnSchema("committed_offset", "bigint", "offset that was committed; null: a tombstone"),
    ColumnSchema(
        "leader_epoch", "int", "leader epoch of the record before it, as the consumer said; -1: not said (KIP-320)"
    ),
    ColumnSchema("metadata", "string", "what the consumer wrote beside it"),
    ColumnSchema("commit_ts", "timestamp", "when the coordinator took the commit", "UTC"),
    ColumnSchema(
        "expire_ts", "timestamp", "when it expires, where the commit said so (value version 1); else null", "UTC"
    ),
    ColumnSchema("topic_id", "string", "id of the topic, where the value has it (version 4, KIP-848)"),
)

COMMITS = TableSchema(
    "commits",
    "Every commit that the log still has, and every removal of one: record types 0 and 1.",
    ("log_partition", "log_offset"),
    (*_WHERE, _GROUP, _TOPIC, _NUMBER, *_COMMITTED, _VERSION, _TOMBSTONE),
)

_DESCRIBED = (
    ColumnSchema("protocol_type", "string", "`consumer` for consumers; empty for a group that only commits"),
    ColumnSchema("generation", "int", "generation of the group"),
    ColumnSchema("protocol", "string", "assignor that the members agreed on; null: the group has no members"),
    ColumnSchema("leader", "string", "member id of the leader; null: the group has no members"),
    ColumnSchema(
        "state_ts", "timestamp", "when the group came into the state it was in (value version 2 and higher)", "UTC"
    ),
)
_MEMBERS = ColumnSchema("members", f"array<{MEMBER}>", "the members, with what they want and what they were given")

GENERATIONS = TableSchema(
    "generations",
    "Every generation of a classic group that the log still has, and the end of a group: record type 2. "
    "A static member that comes back is a further record of the same generation.",
    ("log_partition", "log_offset"),
    (
        *_WHERE,
        _GROUP,
        *_DESCRIBED,
        _MEMBERS,
        _VERSION,
        _TOMBSTONE,
        ColumnSchema(
            "problem", "string", "why a member's subscription or assignment could not be read; null: all could"
        ),
    ),
)

CURRENT_OFFSETS = TableSchema(
    "current_offsets",
    "What each group has committed, as the coordinator would know it after reading the log: the last record of each key.",
    ("group", "topic", "partition"),
    (*_WHERE, _GROUP, _TOPIC, _NUMBER, *_COMMITTED, _VERSION),
)

CURRENT_GROUPS = TableSchema(
    "current_groups",
    "The groups there are, as the coordinator would know them after reading the log. "
    "A group that only commits has no record of its own: its generation is 0 and its `log_offset` null.",
    ("group",),
    (
        _PARTITION,
        ColumnSchema("log_offset", "bigint", "offset of the last record that describes the group; null: none does"),
        _APPENDED,
        _GROUP,
        ColumnSchema("state", "string", "`Stable` with members, `Empty` without"),
        *_DESCRIBED,
        _MEMBERS,
        _VERSION,
    ),
)

CAUSE_KINDS = {
    "log_begins": "the generation before it is compacted away",
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
    "cooperative_second_step": "partitions that members had given up were handed out",
    "partitions_added": "there are more partitions than before",
    "partitions_removed": "there are fewer partitions than before",
    "member_rejoined": "none of these: a member joined again",
}
"""The values of ``cause_kind``. The first whose condition holds counts, in this order."""

REBALANCES = TableSchema(
    "rebalances",
    "One row for each new generation of a group, compared with the one before it in the log.",
    ("log_partition", "log_offset"),
    (
        _PARTITION,
        _OFFSET,
        _GROUP,
        ColumnSchema("generation", "int", "generation that began"),
        ColumnSchema("previous_generation", "int", "the one before it in the log; null: the log has none"),
        ColumnSchema(
            "hidden_generations",
            "int",
            "generations between the two that the log does not show: join phases whose leader never sent an assignment, "
            "or records that were compacted away",
            "generations",
        ),
        ColumnSchema("at", "timestamp", "when its assignment was written", "UTC"),
        ColumnSchema(
            "assign_and_sync_ms",
            "bigint",
            "from the end of the join phase to the leader's assignment: the assignor's work and one round trip",
            "ms",
        ),
        ColumnSchema("members_before", "int", "members of the previous generation; null: unknown", "members"),
        ColumnSchema("members_after", "int", "members of this one", "members"),
        ColumnSchema("joined", "array<string>", "member ids that are new"),
        ColumnSchema("left", "array<string>", "member ids that are gone"),
        ColumnSchema("leader_before", "string", "member id of the leader before"),
        ColumnSchema("leader_after", "string", "member id of the leader now"),
        ColumnSchema("protocol_before", "string", "assignor before"),
        ColumnSchema("protocol_after", "string", "assignor now"),
        ColumnSchema("partitions_total", "int", "partitions that were assigned", "partitions"),
        ColumnSchema(
            "moved",
            "int",
            "of these, partitions with another owner than the last they had; the generations of a cooperative rebalance in "
            "which they have no owner do not hide it",
            "partitions",
        ),
        ColumnSchema("kept", "int", "of these, partitions with the owner that they last had", "partitions"),
        ColumnSchema(
            "moved_needlessly",
            "int",
            "of those that moved, how many could have stayed while every member gets as many as it got here, or as many as "
            "another member got",
            "partitions",
        ),
        ColumnSchema(
            "imbalance", "int", "by how many partitions the fullest member exceeds the emptiest", "partitions"
        ),
        ColumnSchema("seconds_since_previous", "double", "time since the previous generation", "s"),
        ColumnSchema(
            "cause_kind",
            "string",
            "what kind of cause that is: "
            + ", ".join(f"`{kind}` ({meaning})" for kind, meaning in CAUSE_KINDS.items()),
        ),
        ColumnSchema("likely_cause", "string", "why it looks as if the group rebalanced, in words"),
    ),
)

OWNERSHIP = TableSchema(
    "ownership",
    "Whose each partition was: one row for each change of owner.",
    ("log_partition", "log_offset", "group", "topic", "partition"),
    (
        *_WHERE,
        _GROUP,
        ColumnSchema("generation", "int", "generation in which it changed"),
        _TOPIC,
        _NUMBER,
        ColumnSchema("member", "string", "member id of the owner from here on; null: none"),
        ColumnSchema("client_id", "string", "client id of that member"),
        ColumnSchema("previous_member", "string", "member id of the last owner before; null: none is known"),
        ColumnSchema("until_ts", "timestamp", "when it changed again; null: it did not", "UTC"),
    ),
)

LAG = TableSchema(
    "lag",
    "How far each group is behind, where the ends of its topics are known.",
    ("group", "topic", "partition"),
    (
        _GROUP,
        _TOPIC,
        _NUMBER,
        ColumnSchema("committed_offset", "bigint", "what is committed"),
        ColumnSchema("end_offset", "bigint", "end of the partition; null: unknown", "records"),
        ColumnSchema("lag", "bigint", "from the one to the other, never below 0; null: unknown", "records"),
        ColumnSchema("last_commit_ts", "timestamp", "when the last commit was taken", "UTC"),
        ColumnSchema(
            "status",
            "string",
            "by Burrow's published rules, from the last ten commits: `OK`, `WARN` (lag never fell), `STOP` (no commit for "
            "longer than these ten took), `STALL` (commits, but the same offset), `REWIND` (an offset went back, and what was "
            "committed before is not reached again); null: no end is known",
        ),
    ),
)

COMMIT_GAPS = TableSchema(
    "commit_gaps",
    "Where commits stopped: pauses at least a minute long and ten times as long as is usual for that partition.",
    ("group", "topic", "partition", "from_ts"),
    (
        _PARTITION,
        ColumnSchema("log_offset", "bigint", "offset of the last commit before the pause"),
        _GROUP,
        _TOPIC,
        _NUMBER,
        ColumnSchema("from_ts", "timestamp", "last commit before", "UTC"),
        ColumnSchema("to_ts", "timestamp", "first commit after; null: none came until the end of the log", "UTC"),
        ColumnSchema(
            "gap_seconds", "double", "how long; where none came after, until the last record of the whole log", "s"
        ),
        ColumnSchema("usual_seconds", "double", "mean time between two commits of this partition by this group", "s"),
        ColumnSchema("offset_before", "bigint", "what was committed before"),
        ColumnSchema("offset_after", "bigint", "what was committed after; null: none came"),
    ),
)

COMMIT_RATES = TableSchema(
    "commit_rates",
    "Commits of each group in each window of time.",
    ("group", "window_start"),
    (
        _GROUP,
        ColumnSchema("window_start", "timestamp", "begin of the window", "UTC"),
        ColumnSchema("window_end", "timestamp", "end of the window, which does not belong to it", "UTC"),
        ColumnSchema("commits", "bigint", "commits taken", "commits"),
        ColumnSchema("partitions", "bigint", "partitions that they were about", "partitions"),
        ColumnSchema("advanced", "bigint", "from the lowest to the highest offset, over all partitions", "records"),
    ),
)

STORMS = TableSchema(
    "storms",
    "Rebalances of a group that follow one another: at least five, none more than a minute after the one before.",
    ("group", "from"),
    (
        _PARTITION,
        _GROUP,
        ColumnSchema("from", "timestamp", "first of them", "UTC"),
        ColumnSchema("to", "timestamp", "last of them", "UTC"),
        ColumnSchema("rebalances", "int", "how many the log shows", "rebalances"),
        ColumnSchema("hidden_generations", "int", "how many generations it does not show", "generations"),
        ColumnSchema("members_lowest", "int", "fewest members in it", "members"),
        ColumnSchema("members_highest", "int", "most members in it", "members"),
        ColumnSchema("moved", "int", "partitions that moved, each time counted", "partitions"),
        ColumnSchema(
            "likely_causes", "array<string>", "the causes of its rebalances, each once, the most frequent first"
        ),
    ),
)

SKEW = TableSchema(
    "skew",
    "How many partitions each member had in each generation.",
    ("log_partition", "log_offset", "member"),
    (
        *_WHERE,
        _GROUP,
        ColumnSchema("generation", "int", "generation"),
        ColumnSchema("member", "string", "member id"),
        ColumnSchema("client_id", "string", "its client id"),
        ColumnSchema("partitions", "int", "partitions it was given", "partitions"),
        ColumnSchema("fair_share", "double", "mean over the members of that generation", "partitions"),
    ),
)

ZOMBIES = TableSchema(
    "zombies",
    "Commits that look as if they came from a member of an older generation, or from one that had left. The log does not say "
    "who committed: the reason says what is odd.",
    ("log_partition", "log_offset"),
    (
        *_WHERE,
        _GROUP,
        _TOPIC,
        _NUMBER,
        ColumnSchema("committed_offset", "bigint", "what was committed"),
        ColumnSchema("previous_offset", "bigint", "what was committed before it; null: nothing that the log still has"),
        ColumnSchema("generation", "int", "generation at that moment"),
        ColumnSchema("owner", "string", "member id of who had the partition; null: none"),
        ColumnSchema("previous_owner", "string", "member id of who had it before"),
        ColumnSchema(
            "reason",
            "string",
            "`nobody in the group` (or an administrator set the offset), `nobody has the partition`, or "
            "`back behind its owner` (an offset below one that was committed since the partition moved)",
        ),
    ),
)

WHAT_IF = TableSchema(
    "what_if",
    "What other assignors would have done to the same members: one row for each rebalance that found members and each assignor "
    "of `--replay-with`, and one with the assignor `as it was` for what really happened. Empty unless it is asked for. The "
    "second step of a cooperative rebalance, in which no member joins or leaves, counts in the row of the first. With a "
    "`problem` there are no numbers.",
    ("log_partition", "log_offset", "assignor"),
    (
        _PARTITION,
        _OFFSET,
        _GROUP,
        ColumnSchema("generation", "int", "generation that began; of a cooperative rebalance, the first of its two"),
        ColumnSchema("at", "timestamp", "when its assignment was written", "UTC"),
        ColumnSchema("assignor", "string", "assignor, as `--replay-with` names it; `as it was`: what the log has"),
        ColumnSchema("members", "int", "members", "members"),
        ColumnSchema("partitions_total", "int", "partitions that have an owner at the end", "partitions"),
        ColumnSchema("moved", "int", "of these, partitions with another owner than the last they had", "partitions"),
        ColumnSchema("kept", "int", "of these, partitions with the owner that they last had", "partitions"),
        ColumnSchema(
            "moved_needlessly",
            "int",
            "of those that moved, how many could have stayed, counted as in `rebalances`",
            "partitions",
        ),
        ColumnSchema(
            "imbalance", "int", "by how many partitions the fullest member exceeds the emptiest", "partitions"
        ),
        ColumnSchema(
            "pauses",
            "int",
            "partitions that stop: they had an owner and are wanted, but are not read meanwhile, because their owner gave "
            "them up to join again, or lost them, or is gone",
            "partitions",
        ),
        ColumnSchema(
            "rebalances",
            "int",
            "how many it takes: 1, or 2 (seldom more) if cooperative members first have to give something up",
            "rebalances",
        ),
        ColumnSchema(
            "paused_partition_seconds",
            "double",
            "`pauses` times `assign_and_sync_ms` of `rebalances`, which is the least that a pause can have lasted; null: not "
            "in the log",
            "s",
        ),
        ColumnSchema(
            "agrees",
            "boolean",
            "does each member get what it really got? null: the group did not use this assignor then",
        ),
        ColumnSchema("problem", "string", "why the assignor had no answer; null: it had one"),
    ),
)

WHAT_IF_SUMMARY = TableSchema(
    "what_if_summary",
    "The same for each group and assignor in one row, rebalances with a problem left out.",
    ("group", "assignor"),
    (
        _GROUP,
        ColumnSchema("assignor", "string", "assignor, as `--replay-with` names it; `as it was`: what the log has"),
        ColumnSchema("generations", "bigint", "rows of `what_if` without a problem", "generations"),
        ColumnSchema("problems", "bigint", "rows of `what_if` with one", "generations"),
        ColumnSchema("moved", "bigint", "partitions that moved, each time counted", "partitions"),
        ColumnSchema("moved_needlessly", "bigint", "of these, how many could have stayed", "partitions"),
        ColumnSchema("pauses", "bigint", "partitions that stopped, each time counted", "partitions"),
        ColumnSchema("rebalances", "bigint", "rebalances that it took", "rebalances"),
        ColumnSchema(
            "paused_partition_seconds",
            "double",
            "sum of what is known of them; null: nothing, or no row is without a problem",
            "s",
        ),
        ColumnSchema("imbalance_mean", "double", "mean of `imbalance`", "partitions"),
        ColumnSchema("imbalance_worst", "int", "highest `imbalance`", "partitions"),
        ColumnSchema(
            "agrees", "bigint", "rows that agree with what really was; null: the group never used it", "generations"
        ),
    ),
)

MODERN_RECORDS = TableSchema(
    "modern_records",
    "Every record of the groups of KIP-848 and of those after them (share groups, streams groups), as JSON: record types 3 "
    "and up.",
    ("log_partition", "log_offset"),
    (
        *_WHERE,
        ColumnSchema("record_type", "smallint", "number of the record type"),
        ColumnSchema("record", "string", "its name, as Kafka calls it"),
        _GROUP,
        ColumnSchema("member", "string", "member id, where the key has one"),
        ColumnSchema("key", "string", "the key's fields", "JSON"),
        ColumnSchema("value", "string", "the value's fields; null: a tombstone", "JSON"),
        _VERSION,
        _TOMBSTONE,
    ),
)

MODERN_GENERATIONS = TableSchema(
    "modern_generations",
    "Every target assignment of a group of KIP-848, told as a generation: what `generations` is for classic groups. "
    "`generation` is the assignment epoch (0: the group is made), `protocol` the assignor; there is no leader.",
    ("log_partition", "log_offset"),
    GENERATIONS.columns,
)

MODERN_CURRENT_GROUPS = TableSchema(
    "modern_current_groups",
    "The groups of KIP-848 there are at the end of the log.",
    ("group",),
    (
        *_WHERE,
        _GROUP,
        ColumnSchema("group_epoch", "int", "epoch of the group: goes up with every change of its members or topics"),
        ColumnSchema("assignment_epoch", "int", "epoch of the newest target assignment"),
        ColumnSchema("members_at_epoch", "int", "members that have reached that epoch", "members"),
        _MEMBERS,
    ),
)

MODERN_REBALANCES = TableSchema(
    "modern_rebalances",
    "One row for each new target assignment of a group of KIP-848: what `rebalances` is for classic groups.",
    ("log_partition", "log_offset"),
    REBALANCES.columns,
)

MODERN_SKEW = TableSchema(
    "modern_skew",
    "How many partitions each member of a group of KIP-848 was to have in each target assignment: what `skew` is for classic "
    "groups.",
    ("log_partition", "log_offset", "member"),
    SKEW.columns,
)

GROUP_HEALTH = TableSchema(
    "group_health",
    "Every group that any of the tables names, in one row: what to look at first. The score is the sum over six symptoms of "
    "points * log2(1 + how many): storms 5 points, late_partitions 4, commit_gaps 3, zombies 3, moved_needlessly 2, "
    "rebalances 1.",
    ("group",),
    (
        _GROUP,
        ColumnSchema("kind", "string", "`classic`, `consumer` (KIP-848), or `simple`: it only commits"),
        ColumnSchema("state", "string", "`Stable` with members, `Empty` without; null: the group is gone"),
        ColumnSchema("protocol", "string", "assignor that the members agreed on; null: the group has no members"),
        ColumnSchema(
            "generation", "int", "generation of the group; assignment epoch of one of KIP-848; null: the group is gone"
        ),
        ColumnSchema("members", "bigint", "members in it; null: the group is gone", "members"),
        ColumnSchema("first_ts", "timestamp", "first rebalance, or begin of the first window of `commit_rates`", "UTC"),
        ColumnSchema(
            "last_ts",
            "timestamp",
            "last rebalance or commit; of commits that are gone, the begin of their window",
            "UTC",
        ),
        ColumnSchema("rebalances", "bigint", "rows of `rebalances` or `modern_rebalances`", "rebalances"),
        ColumnSchema(
            "hidden_generations", "bigint", "generations between them that the log does not show", "generations"
        ),
        ColumnSchema("moved", "bigint", "partitions that moved, each time counted", "partitions"),
        ColumnSchema("moved_needlessly", "bigint", "of these, how many need not have", "partitions"),
        ColumnSchema("storms", "bigint", "rows of `storms`", "storms"),
        ColumnSchema("commits", "bigint", "commits taken, by `commit_rates`", "commits"),
        ColumnSchema("commit_gaps", "bigint", "rows of `commit_gaps`", "pauses"),
        ColumnSchema("zombies", "bigint", "rows of `zombies`", "commits"),
        ColumnSchema("partitions", "bigint", "partitions with a committed offset, by `lag`", "partitions"),
        ColumnSchema(
            "late_partitions", "bigint", "of these, those whose `status` in `lag` is known and not `OK`", "partitions"
        ),
        ColumnSchema(
            "lag", "bigint", "sum of what is known of their lags; null: nothing, or more than fits", "records"
        ),
        ColumnSchema("score", "double", "how troubled it is, see above", "points"),
    ),
)

BAD_RECORDS = TableSchema(
    "bad_records",
    "Records that could not be decoded: they are in no other table.",
    ("log_partition", "log_offset"),
    (
        *_WHERE,
        ColumnSchema("reason", "string", "what is wrong with it"),
        ColumnSchema("key", "binary", "key, as it is in the log"),
        ColumnSchema("value", "binary", "value, as it is in the log"),
    ),
)

LOG_PARTITIONS = TableSchema(
    "log_partitions",
    "What was read of each partition of `__consumer_offsets`, and how much of its history compaction has taken.",
    ("log_partition",),
    (
        _PARTITION,
        ColumnSchema("first_offset", "bigint", "lowest offset that was read"),
        ColumnSchema("last_offset", "bigint", "highest offset that was read"),
        ColumnSchema("records", "bigint", "records that were read", "records"),
        ColumnSchema(
            "missing",
            "bigint",
            "offsets between these two without a record: compacted away, or markers and aborted records of transactions",
            "offsets",
        ),
        ColumnSchema("first_ts", "timestamp", "earliest append", "UTC"),
        ColumnSchema("last_ts", "timestamp", "latest append", "UTC"),
        ColumnSchema(
            "whole_from_offset",
            "bigint",
            "from this offset on none is missing: history before it may have holes",
        ),
        ColumnSchema("whole_from_ts", "timestamp", "when the record at that offset was appended", "UTC"),
    ),
)

RECORD_COUNTS = TableSchema(
    "record_counts",
    "How many records went where; `in` is the sum of the others, which the job checks.",
    ("what",),
    (
        ColumnSchema("what", "string", "`in`, `later` (than `--as-of`), or the name of the table they are in"),
        ColumnSchema("records", "bigint", "how many", "records"),
    ),
)

SOURCE_WARNINGS = TableSchema(
    "source_warnings",
    "What the source has to say: torn tails, records of transactions that were aborted or are still open, files passed over.",
    ("where", "what"),
    (
        ColumnSchema("where", "string", "file or partition"),
        ColumnSchema("what", "string", "what was seen, in words"),
        ColumnSchema("log_partition", "int", "partition of `__consumer_offsets`, where it is about one"),
        ColumnSchema("records", "bigint", "how many records it is about; null: cannot be known", "records"),
        ColumnSchema("bytes", "bigint", "how many bytes it is about; null: does not apply", "bytes"),
    ),
)

END_OFFSETS = TableSchema(
    "end_offsets",
    "Where topics end: from the cluster, or from the file of `--end-offsets`. Not kept.",
    ("topic", "partition", "at"),
    (
        _TOPIC,
        _NUMBER,
        ColumnSchema("end_offset", "bigint", "offset behind the last record"),
        ColumnSchema("at", "timestamp", "when that was so; null: at the end of the log", "UTC"),
    ),
)

TABLES: dict[str, TableSchema] = {
    table.name: table
    for table in (
        COMMITS,
        GENERATIONS,
        CURRENT_OFFSETS,
        CURRENT_GROUPS,
        REBALANCES,
        OWNERSHIP,
        LAG,
        COMMIT_GAPS,
        COMMIT_RATES,
        STORMS,
        SKEW,
        ZOMBIES,
        WHAT_IF,
        WHAT_IF_SUMMARY,
        MODERN_RECORDS,
        MODERN_GENERATIONS,
        MODERN_CURRENT_GROUPS,
        MODERN_REBALANCES,
        MODERN_SKEW,
        GROUP_HEALTH,
        BAD_RECORDS,
        LOG_PARTITIONS,
        RECORD_COUNTS,
        SOURCE_WARNINGS,
    )
}
"""The tables that a run writes, by name, in the order of the docs."""
