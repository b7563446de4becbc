"""Every table of the pipeline: its columns, their types, what they mean and in which unit. The docs are written from this.

A type is written as Spark's DDL writes it, so that nothing here needs Spark. ``*_ts`` and ``at`` are timestamps in UTC, to the
millisecond. A time that a record does not have (-1 in Kafka) is null; one that no calendar has is the nearest that one has.
"""

from typing import NamedTuple


class Column(NamedTuple):
    """One column of a table; ``unit`` is empty where there is none."""

    name: str
    type: str
    meaning: str
    unit: str = ""


class Table(NamedTuple):
    """One table: Parquet files in ``tables/NAME``. ``key`` is what tells its rows apart."""

    name: str
    meaning: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]

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

_PARTITION = Column("log_partition", "int", "partition of `__consumer_offsets` that the record is in")
_OFFSET = Column("log_offset", "bigint", "offset of the record in it; within one group a later record has a higher one")
_APPENDED = Column("append_ts", "timestamp", "when the record was appended", "UTC")
_WHERE = (_PARTITION, _OFFSET, _APPENDED)
_GROUP = Column("group", "string", "group id")
_TOPIC = Column("topic", "string", "topic")
_NUMBER = Column("partition", "int", "partition of the topic")
_VERSION = Column("value_version", "smallint", "version that the value's bytes say; null: a tombstone")
_TOMBSTONE = Column("is_tombstone", "boolean", "is it a null value: what the key names is gone?")

LOG = Table(
    "log",
    "What every source gives: the records of `__consumer_offsets` that a consumer reading committed would see. Not kept.",
    ("log_partition", "log_offset"),
    (
        *_WHERE[:2],
        Column("key", "binary", "key, as it is in the log"),
        Column("value", "binary", "value, as it is in the log; null: a tombstone"),
        _APPENDED,
    ),
)

_COMMITTED = (
    Column("committed_offset", "bigint", "offset that was committed; null: a tombstone"),
    Column("leader_epoch", "int", "leader epoch of the record before it, as the consumer said; -1: not said (KIP-320)"),
    Column("metadata", "string", "what the consumer wrote beside it"),
    Column("commit_ts", "timestamp", "when the coordinator took the commit", "UTC"),
    Column("expire_ts", "timestamp", "when it expires, where the commit said so (value version 1); else null", "UTC"),
    Column("topic_id", "string", "id of the topic, where the value has it (version 4, KIP-848)"),
)

COMMITS = Table(
    "commits",
    "Every commit that the log still has, and every removal of one: record types 0 and 1.",
    ("log_partition", "log_offset"),
    (*_WHERE, _GROUP, _TOPIC, _NUMBER, *_COMMITTED, _VERSION, _TOMBSTONE),
)

_DESCRIBED = (
    Column("protocol_type", "string", "`consumer` for consumers; empty for a group that only commits"),
    Column("generation", "int", "generation of the group"),
    Column("protocol", "string", "assignor that the members agreed on; null: nobody is in it"),
    Column("leader", "string", "member id of the leader; null: nobody is in it"),
    Column("state_ts", "timestamp", "when the group came into the state it was in (value version 2 and higher)", "UTC"),
)
_MEMBERS = Column("members", f"array<{MEMBER}>", "the members, with what they want and what they were given")

GENERATIONS = Table(
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
        Column("problem", "string", "why a member's subscription or assignment could not be read; null: all could"),
    ),
)

CURRENT_OFFSETS = Table(
    "current_offsets",
    "What each group has committed, as the coordinator would know it after reading the log: the last record of each key.",
    ("group", "topic", "partition"),
    (*_WHERE, _GROUP, _TOPIC, _NUMBER, *_COMMITTED, _VERSION),
)

CURRENT_GROUPS = Table(
    "current_groups",
    "The groups there are, as the coordinator would know them after reading the log. "
    "A group that only commits has no record of its own: its generation is 0 and its `log_offset` null.",
    ("group",),
    (
        _PARTITION,
        Column("log_offset", "bigint", "offset of the last record that describes the group; null: none does"),
        _APPENDED,
        _GROUP,
        Column("state", "string", "`Stable` with members, `Empty` without"),
        *_DESCRIBED,
        _MEMBERS,
        _VERSION,
    ),
)

REBALANCES = Table(
    "rebalances",
    "One row for each new generation of a group, compared with the one before it in the log.",
    ("log_partition", "log_offset"),
    (
        _PARTITION,
        _OFFSET,
        _GROUP,
        Column("generation", "int", "generation that began"),
        Column("previous_generation", "int", "the one before it in the log; null: the log has none"),
        Column(
            "hidden_generations",
            "int",
            "generations between the two that the log does not show: join phases whose leader never sent an assignment, "
            "or records that were compacted away",
            "generations",
        ),
        Column("at", "timestamp", "when its assignment was written", "UTC"),
        Column(
            "assign_and_sync_ms",
            "bigint",
            "from the end of the join phase to the leader's assignment: the assignor's work and one round trip",
            "ms",
        ),
        Column("members_before", "int", "members of the previous generation; null: unknown", "members"),
        Column("members_after", "int", "members of this one", "members"),
        Column("joined", "array<string>", "member ids that are new"),
        Column("left", "array<string>", "member ids that are gone"),
        Column("leader_before", "string", "member id of the leader before"),
        Column("leader_after", "string", "member id of the leader now"),
        Column("protocol_before", "string", "assignor before"),
        Column("protocol_after", "string", "assignor now"),
        Column("partitions_total", "int", "partitions that were assigned", "partitions"),
        Column(
            "moved",
            "int",
            "of these, partitions with another owner than the last they had; the generations of a cooperative rebalance in "
            "which nobody has them do not hide it",
            "partitions",
        ),
        Column("kept", "int", "of these, partitions with the owner that they last had", "partitions"),
        Column(
            "moved_needlessly",
            "int",
            "of those that moved, how many could have stayed while every member gets as many as it got here, or as many as "
            "another member got",
            "partitions",
        ),
        Column("imbalance", "int", "by how many partitions the fullest member exceeds the emptiest", "partitions"),
        Column("seconds_since_previous", "double", "time since the previous generation", "s"),
        Column("likely_cause", "string", "why it looks as if the group rebalanced, in words"),
    ),
)

OWNERSHIP = Table(
    "ownership",
    "Whose each partition was: one row for each change of owner.",
    ("log_partition", "log_offset", "group", "topic", "partition"),
    (
        *_WHERE,
        _GROUP,
        Column("generation", "int", "generation in which it changed"),
        _TOPIC,
        _NUMBER,
        Column("member", "string", "member id of the owner from here on; null: nobody"),
        Column("client_id", "string", "client id of that member"),
        Column("previous_member", "string", "member id of the last owner before; null: none is known"),
        Column("until_ts", "timestamp", "when it changed again; null: it did not", "UTC"),
    ),
)

LAG = Table(
    "lag",
    "How far each group is behind, where the ends of its topics are known.",
    ("group", "topic", "partition"),
    (
        _GROUP,
        _TOPIC,
        _NUMBER,
        Column("committed_offset", "bigint", "what is committed"),
        Column("end_offset", "bigint", "end of the partition; null: unknown", "records"),
        Column("lag", "bigint", "from the one to the other, never below 0; null: unknown", "records"),
        Column("last_commit_ts", "timestamp", "when the last commit was taken", "UTC"),
        Column(
            "status",
            "string",
            "by Burrow's published rules, from the last ten commits: `OK`, `WARN` (lag never fell), `STOP` (no commit for "
            "longer than these ten took), `STALL` (commits, but the same offset), `REWIND` (an offset went back, and what was "
            "committed before is not reached again); null: no end is known",
        ),
    ),
)

COMMIT_GAPS = Table(
    "commit_gaps",
    "Where commits stopped: pauses at least a minute long and ten times as long as is usual for that partition.",
    ("group", "topic", "partition", "from_ts"),
    (
        _PARTITION,
        Column("log_offset", "bigint", "offset of the last commit before the pause"),
        _GROUP,
        _TOPIC,
        _NUMBER,
        Column("from_ts", "timestamp", "last commit before", "UTC"),
        Column("to_ts", "timestamp", "first commit after; null: none came until the end of the log", "UTC"),
        Column("gap_seconds", "double", "how long; where none came after, until the last record of the whole log", "s"),
        Column("usual_seconds", "double", "mean time between two commits of this partition by this group", "s"),
        Column("offset_before", "bigint", "what was committed before"),
        Column("offset_after", "bigint", "what was committed after; null: none came"),
    ),
)

COMMIT_RATES = Table(
    "commit_rates",
    "Commits of each group in each window of time.",
    ("group", "window_start"),
    (
        _GROUP,
        Column("window_start", "timestamp", "begin of the window", "UTC"),
        Column("window_end", "timestamp", "end of the window, which does not belong to it", "UTC"),
        Column("commits", "bigint", "commits taken", "commits"),
        Column("partitions", "bigint", "partitions that they were about", "partitions"),
        Column("advanced", "bigint", "from the lowest to the highest offset, over all partitions", "records"),
    ),
)

STORMS = Table(
    "storms",
    "Rebalances of a group that follow one another: at least five, none more than a minute after the one before.",
    ("group", "from"),
    (
        _PARTITION,
        _GROUP,
        Column("from", "timestamp", "first of them", "UTC"),
        Column("to", "timestamp", "last of them", "UTC"),
        Column("rebalances", "int", "how many the log shows", "rebalances"),
        Column("hidden_generations", "int", "how many generations it does not show", "generations"),
        Column("members_lowest", "int", "fewest members in it", "members"),
        Column("members_highest", "int", "most members in it", "members"),
        Column("moved", "int", "partitions that moved, each time counted", "partitions"),
        Column("likely_causes", "array<string>", "the causes of its rebalances, each once, the most frequent first"),
    ),
)

SKEW = Table(
    "skew",
    "How many partitions each member had in each generation.",
    ("log_partition", "log_offset", "member"),
    (
        *_WHERE,
        _GROUP,
        Column("generation", "int", "generation"),
        Column("member", "string", "member id"),
        Column("client_id", "string", "its client id"),
        Column("partitions", "int", "partitions it was given", "partitions"),
        Column("fair_share", "double", "mean over the members of that generation", "partitions"),
    ),
)

ZOMBIES = Table(
    "zombies",
    "Commits that look as if they came from a member of an older generation, or from one that had left. The log does not say "
    "who committed: the reason says what is odd.",
    ("log_partition", "log_offset"),
    (
        *_WHERE,
        _GROUP,
        _TOPIC,
        _NUMBER,
        Column("committed_offset", "bigint", "what was committed"),
        Column("previous_offset", "bigint", "what was committed before it; null: nothing that the log still has"),
        Column("generation", "int", "generation at that moment"),
        Column("owner", "string", "member id of who had the partition; null: nobody"),
        Column("previous_owner", "string", "member id of who had it before"),
        Column(
            "reason",
            "string",
            "`nobody in the group` (or an administrator set the offset), `nobody has the partition`, or "
            "`back behind its owner` (an offset below one that was committed since the partition moved)",
        ),
    ),
)

WHAT_IF = Table(
    "what_if",
    "What other assignors would have done to the same members: one row for each rebalance that found members and each assignor "
    "of `--replay-with`, and one with the assignor `as it was` for what really happened. Empty unless it is asked for. The "
    "second step of a cooperative rebalance, in which nobody comes or goes, counts in the row of the first. With a `problem` "
    "there are no numbers.",
    ("log_partition", "log_offset", "assignor"),
    (
        _PARTITION,
        _OFFSET,
        _GROUP,
        Column("generation", "int", "generation that began; of a cooperative rebalance, the first of its two"),
        Column("at", "timestamp", "when its assignment was written", "UTC"),
        Column("assignor", "string", "assignor, as `--replay-with` names it; `as it was`: what the log has"),
        Column("members", "int", "members", "members"),
        Column("partitions_total", "int", "partitions that are somebody's at the end", "partitions"),
        Column("moved", "int", "of these, partitions with another owner than the last they had", "partitions"),
        Column("kept", "int", "of these, partitions with the owner that they last had", "partitions"),
        Column(
            "moved_needlessly",
            "int",
            "of those that moved, how many could have stayed, counted as in `rebalances`",
            "partitions",
        ),
        Column("imbalance", "int", "by how many partitions the fullest member exceeds the emptiest", "partitions"),
        Column(
            "pauses",
            "int",
            "partitions that stop: somebody had them and somebody wants them, but nobody read on, because their owner gave "
            "them up to join again, or lost them, or is gone",
            "partitions",
        ),
        Column(
            "rebalances",
            "int",
            "how many it takes: 1, or 2 (seldom more) if cooperative members first have to give something up",
            "rebalances",
        ),
        Column(
            "paused_partition_seconds",
            "double",
            "`pauses` times `assign_and_sync_ms` of `rebalances`, which is the least that a pause can have lasted; null: not "
            "in the log",
            "s",
        ),
        Column(
            "agrees",
            "boolean",
            "does everybody get what they really got? null: the group did not use this assignor then",
        ),
        Column("problem", "string", "why the assignor had no answer; null: it had one"),
    ),
)

WHAT_IF_SUMMARY = Table(
    "what_if_summary",
    "The same for each group and assignor in one row, rebalances with a problem left out.",
    ("group", "assignor"),
    (
        _GROUP,
        Column("assignor", "string", "assignor, as `--replay-with` names it; `as it was`: what the log has"),
        Column("generations", "bigint", "rows of `what_if` without a problem", "generations"),
        Column("problems", "bigint", "rows of `what_if` with one", "generations"),
        Column("moved", "bigint", "partitions that moved, each time counted", "partitions"),
        Column("moved_needlessly", "bigint", "of these, how many could have stayed", "partitions"),
        Column("pauses", "bigint", "partitions that stopped, each time counted", "partitions"),
        Column("rebalances", "bigint", "rebalances that it took", "rebalances"),
        Column(
            "paused_partition_seconds",
            "double",
            "sum of what is known of them; null: nothing, or no row is without a problem",
            "s",
        ),
        Column("imbalance_mean", "double", "mean of `imbalance`", "partitions"),
        Column("imbalance_worst", "int", "highest `imbalance`", "partitions"),
        Column(
            "agrees", "bigint", "rows that agree with what really was; null: the group never used it", "generations"
        ),
    ),
)

MODERN_RECORDS = Table(
    "modern_records",
    "Every record of the groups of KIP-848 and of those after them (share groups, streams groups), as JSON: record types 3 "
    "and up.",
    ("log_partition", "log_offset"),
    (
        *_WHERE,
        Column("record_type", "smallint", "number of the record type"),
        Column("record", "string", "its name, as Kafka calls it"),
        _GROUP,
        Column("member", "string", "member id, where the key has one"),
        Column("key", "string", "the key's fields", "JSON"),
        Column("value", "string", "the value's fields; null: a tombstone", "JSON"),
        _VERSION,
        _TOMBSTONE,
    ),
)

MODERN_GENERATIONS = Table(
    "modern_generations",
    "Every target assignment of a group of KIP-848, told as a generation: what `generations` is for classic groups. "
    "`generation` is the assignment epoch (0: the group is made), `protocol` the assignor; there is no leader.",
    ("log_partition", "log_offset"),
    GENERATIONS.columns,
)

MODERN_CURRENT_GROUPS = Table(
    "modern_current_groups",
    "The groups of KIP-848 there are at the end of the log.",
    ("group",),
    (
        *_WHERE,
        _GROUP,
        Column("group_epoch", "int", "epoch of the group: goes up with every change of its members or topics"),
        Column("assignment_epoch", "int", "epoch of the newest target assignment"),
        Column("members_at_epoch", "int", "members that have reached that epoch", "members"),
        _MEMBERS,
    ),
)

MODERN_REBALANCES = Table(
    "modern_rebalances",
    "One row for each new target assignment of a group of KIP-848: what `rebalances` is for classic groups.",
    ("log_partition", "log_offset"),
    REBALANCES.columns,
)

MODERN_SKEW = Table(
    "modern_skew",
    "How many partitions each member of a group of KIP-848 was to have in each target assignment: what `skew` is for classic "
    "groups.",
    ("log_partition", "log_offset", "member"),
    SKEW.columns,
)

TROUBLE = Table(
    "trouble",
    "Every group that any of the tables names, in one row: what to look at first. The score is the sum over six symptoms of "
    "points * log2(1 + how many): storms 5 points, late_partitions 4, commit_gaps 3, zombies 3, moved_needlessly 2, "
    "rebalances 1.",
    ("group",),
    (
        _GROUP,
        Column("kind", "string", "`classic`, `consumer` (KIP-848), or `simple`: it only commits"),
        Column("state", "string", "`Stable` with members, `Empty` without; null: the group is gone"),
        Column("protocol", "string", "assignor that the members agreed on; null: nobody is in it"),
        Column(
            "generation", "int", "generation of the group; assignment epoch of one of KIP-848; null: the group is gone"
        ),
        Column("members", "bigint", "members in it; null: the group is gone", "members"),
        Column("first_ts", "timestamp", "first rebalance, or begin of the first window of `commit_rates`", "UTC"),
        Column(
            "last_ts",
            "timestamp",
            "last rebalance or commit; of commits that are gone, the begin of their window",
            "UTC",
        ),
        Column("rebalances", "bigint", "rows of `rebalances` or `modern_rebalances`", "rebalances"),
        Column("hidden_generations", "bigint", "generations between them that the log does not show", "generations"),
        Column("moved", "bigint", "partitions that moved, each time counted", "partitions"),
        Column("moved_needlessly", "bigint", "of these, how many need not have", "partitions"),
        Column("storms", "bigint", "rows of `storms`", "storms"),
        Column("commits", "bigint", "commits taken, by `commit_rates`", "commits"),
        Column("commit_gaps", "bigint", "rows of `commit_gaps`", "pauses"),
        Column("zombies", "bigint", "rows of `zombies`", "commits"),
        Column("partitions", "bigint", "partitions with a committed offset, by `lag`", "partitions"),
        Column(
            "late_partitions", "bigint", "of these, those whose `status` in `lag` is known and not `OK`", "partitions"
        ),
        Column("lag", "bigint", "sum of what is known of their lags; null: nothing, or more than fits", "records"),
        Column("score", "double", "how troubled it is, see above", "points"),
    ),
)

BAD_RECORDS = Table(
    "bad_records",
    "Records that could not be decoded: they are in no other table.",
    ("log_partition", "log_offset"),
    (
        *_WHERE,
        Column("reason", "string", "what is wrong with it"),
        Column("key", "binary", "key, as it is in the log"),
        Column("value", "binary", "value, as it is in the log"),
    ),
)

LOG_PARTITIONS = Table(
    "log_partitions",
    "What was read of each partition of `__consumer_offsets`, and how much of its history compaction has taken.",
    ("log_partition",),
    (
        _PARTITION,
        Column("first_offset", "bigint", "lowest offset that was read"),
        Column("last_offset", "bigint", "highest offset that was read"),
        Column("records", "bigint", "records that were read", "records"),
        Column(
            "missing",
            "bigint",
            "offsets between these two without a record: compacted away, or markers and aborted records of transactions",
            "offsets",
        ),
        Column("first_ts", "timestamp", "earliest append", "UTC"),
        Column("last_ts", "timestamp", "latest append", "UTC"),
        Column(
            "whole_from_offset",
            "bigint",
            "from this offset on none is missing: history before it may have holes",
        ),
        Column("whole_from_ts", "timestamp", "when the record at that offset was appended", "UTC"),
    ),
)

RECORD_COUNTS = Table(
    "record_counts",
    "How many records went where; `in` is the sum of the others, which the job checks.",
    ("what",),
    (
        Column("what", "string", "`in`, `later` (than `--as-of`), or the name of the table they are in"),
        Column("records", "bigint", "how many", "records"),
    ),
)

SOURCE_REMARKS = Table(
    "source_remarks",
    "What the source has to say: torn tails, records of transactions that were aborted or are still open, files passed over.",
    ("where", "what"),
    (
        Column("where", "string", "file or partition"),
        Column("what", "string", "what was seen, in words"),
        Column("log_partition", "int", "partition of `__consumer_offsets`, where it is about one"),
        Column("records", "bigint", "how many records it is about; null: cannot be known", "records"),
        Column("bytes", "bigint", "how many bytes it is about; null: does not apply", "bytes"),
    ),
)

END_OFFSETS = Table(
    "end_offsets",
    "Where topics end: from the cluster, or from the file of `--end-offsets`. Not kept.",
    ("topic", "partition", "at"),
    (
        _TOPIC,
        _NUMBER,
        Column("end_offset", "bigint", "offset behind the last record"),
        Column("at", "timestamp", "when that was so; null: at the end of the log", "UTC"),
    ),
)

TABLES: dict[str, Table] = {
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
        TROUBLE,
        BAD_RECORDS,
        LOG_PARTITIONS,
        RECORD_COUNTS,
        SOURCE_REMARKS,
    )
}
"""The tables that a run writes, by name, in the order of the docs."""
