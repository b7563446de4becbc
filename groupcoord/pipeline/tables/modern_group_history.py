"""Replays the records of modern groups, as Kafka's package ``group.modern`` calls them: consumer groups (KIP-848), share groups
(KIP-932) and streams groups (KIP-1071).

The log has one record for each change of the group's epoch, a member, the epoch of the target assignment, a member's target, or
the partitions that a member has and was asked to revoke. The three kinds have the same records, with names that begin with the
kind. The records of each group, and those of the classic group that it was or became, are replayed in order in plain Python;
each group is replayed by one task. The result is rows for modern_generations (the target assignments), epochs, members,
ownership (what members really had) and current_groups. The log does not say why a member left. The records have topic ids;
their names are taken from commits with topic ids, and from the records of partition metadata that Kafka 4.0 wrote. Sources:
KIP-848, ``GroupMetadataManager.replay``, ``CurrentAssignmentBuilder``, ``ConsumerGroup``.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from groupcoord.pipeline.arrow_columns import arrow_schema
from groupcoord.pipeline.record_decoder import millis
from groupcoord.pipeline.schemas import (
    CURRENT_GROUPS,
    EPOCHS,
    MEMBERS,
    MODERN_GENERATIONS,
    OWNERSHIP,
    ColumnSchema,
    TableSchema,
    table_schema,
)

CLASSIC_GROUP = "GroupMetadata"
EPOCH = "Metadata"
"""The rest of the name, after the kind of group, of the record with a group's epoch: ``ConsumerGroupMetadata``."""
OF_EPOCHS = [f"{kind}Group{EPOCH}" for kind in ("Consumer", "Share", "Streams")]
FIRST_EPOCH = 2
"""The epoch of a group after its first member joined: Kafka creates a group with epoch 1 and increments it for that member."""
AWAY = -2
"""The epoch of a static member that left temporarily: it keeps its partitions until it rejoins, or its session expires."""
STATES = ("settled", "revoking", "waiting")
"""Our names of the states (``MemberState``) in ``CurrentMemberAssignment``, by number. In streams groups numbers begin with
1."""
_WISHES = ("rackId", "subscribedTopicNames", "subscribedTopicRegex", "serverAssignor", "topologyEpoch")
"""The fields of a member whose change begins a new epoch."""

Row = dict[str, Any]
Place = tuple[str, int]
"""A topic id, or a subtopology of a streams group, and a partition number."""

IN_HISTORY = (MODERN_GENERATIONS, EPOCHS, MEMBERS, OWNERSHIP, CURRENT_GROUPS)
_DESCRIBED = MODERN_GENERATIONS.columns[MODERN_GENERATIONS.names.index("members")]._replace(name="described")


def _is_plain(column: ColumnSchema) -> bool:
    return column.name != "members" or column.type == "int"


HISTORY = table_schema(
    """
    history by log_partition, log_offset: The rows of all tables of IN_HISTORY.
    table string: table that the row belongs to
    """,
    (
        _DESCRIBED,
        *{
            column.name: column for table in reversed(IN_HISTORY) for column in table.columns if _is_plain(column)
        }.values(),
    ),
)


def topic_names(commits: DataFrame, modern: DataFrame) -> DataFrame:
    """One row with a map from topic id to name."""
    by_commits = commits.where("topic_id is not null").select("topic_id", "topic").distinct()
    pairs = "array<struct<topicId:string,topicName:string>>"
    by_records = (
        modern.where((F.col("record") == "ConsumerGroupPartitionMetadata") & ~F.col("is_tombstone"))
        .select(F.inline(F.from_json("value", f"struct<topics:{pairs}>")["topics"]))
        .toDF("topic_id", "topic")
    )
    return (
        by_commits.unionByName(by_records)
        .groupBy("topic_id")
        .agg(F.max("topic").alias("topic"))
        .agg(F.map_from_entries(F.collect_list(F.struct("topic_id", "topic"))).alias("names"))
    )


_PLAYED = ("group", "log_partition", "log_offset", "append_ts", "record", "member", "key", "value", "value_version")


def group_history(modern: DataFrame, generations: DataFrame) -> DataFrame:
    """HISTORY, with topic ids, of all groups in ``modern`` (MODERN_RECORDS); ``generations`` are those of classic groups."""
    nothing = F.lit(None).cast("string")
    classic = (
        generations.join(modern.select("group").distinct(), "group", "left_semi")
        .select("*", F.lit(CLASSIC_GROUP).alias("record"), nothing.alias("member"), nothing.alias("key"))
        .withColumn("value", F.expr("if(is_tombstone, null, to_json(transform(members, m -> m.member_id)))"))
    )
    rows = modern.select(*_PLAYED).unionByName(classic.select(*_PLAYED)).groupBy("group")
    return rows.applyInArrow(_play, HISTORY.ddl)


def named(rows: DataFrame, members: str, names: DataFrame) -> DataFrame:
    """Replace topic ids in ``rows`` by ``names``: in the column called ``members``, and in ``topic`` if there is one."""
    told = f"""transform({members}, m -> struct(m.member_id, m.instance_id, m.client_id, m.client_host, m.rebalance_timeout_ms,
        m.session_timeout_ms, m.topics, m.owned,
        transform(m.assigned, a -> struct(coalesce(names[a.topic], a.topic) as topic, a.partitions as partitions)) as assigned,
        m.owned_generation, m.rack))"""
    found = rows.crossJoin(F.broadcast(names)).withColumn(members, F.expr(told))
    if "topic" in rows.columns:
        found = found.withColumn("topic", F.expr("coalesce(names[topic], topic)"))
    return found.select(*rows.columns)


def table_of_history(history: DataFrame, table: TableSchema) -> DataFrame:
    """The rows of ``table`` in HISTORY."""
    columns = [
        F.col("described" if column.type == _DESCRIBED.type else column.name).alias(column.name)
        for column in table.columns
    ]
    return history.where(F.col("table") == table.name).select(*columns)


def _play(table: Any) -> Any:
    """Replay the records of one group, an Arrow table, into rows of HISTORY."""
    records = sorted(table.to_pylist(), key=lambda record: record["log_offset"])
    return pa.Table.from_pylist(history_of_group(records), schema=arrow_schema(HISTORY.columns))


def history_of_group(records: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Replay the ``records`` of one group, in the order of the log, into rows of HISTORY."""
    history = _GroupHistory()
    for record in records:
        history.add(record)
    return history.rows + history.current()


class _Current(NamedTuple):
    """The current assignment of a member; without an epoch the member does not exist."""

    epoch: int | None = None
    state: int = 0
    assigned: frozenset[Place] = frozenset()
    revoking: frozenset[Place] = frozenset()


@dataclass
class _SinceEpoch:
    """The changes since the newest epoch began: members that joined, left, or changed their subscription; and changes of
    topics."""

    came: dict[str, Row] = field(default_factory=dict)
    went: dict[str, Row] = field(default_factory=dict)
    changed: dict[str, Row] = field(default_factory=dict)
    ends: dict[str, Row] = field(default_factory=dict)
    """The last row of MEMBERS of each member that left."""
    topics_changed: bool = False
    expression_resolved: bool = False


class _GroupHistory:
    """The state of one group after the records so far, and the rows that they gave."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._where: Row = {}
        self._version: int | None = None
        self._members: dict[str, Row] = {}
        self._targets: dict[str, frozenset[Place]] = {}
        self._current: dict[str, _Current] = {}
        self._lives: dict[str, Row] = {}
        """The last row of MEMBERS of each current member."""
        self._owned: dict[Place, Row] = {}
        """The last row of OWNERSHIP of each partition."""
        self._epoch: Row | None = None
        """The row of EPOCHS of the newest epoch."""
        self._assignment_epoch: int | None = None
        """The epoch of the newest target assignment."""
        self._wanted: dict[str, list[str]] = {}
        """The topics that match each regular expression; under the empty string, the topics of a streams group's topology."""
        self._classic_end: Any = None
        """When the classic group ended, if this group was converted from one."""
        self._since = _SinceEpoch()
        self._went_with_group: list[Row] = []
        """The last rows of MEMBERS of the members that left just before the group ended."""
        self._of_group: dict[str, Callable[[Any], None]] = {
            EPOCH: self._group_epoch,
            "PartitionMetadata": self._topics,
            "TargetAssignmentMetadata": self._target_assignment,
            "Topology": self._topology,
        }
        self._of_members: dict[str, Callable[[str, Row | None], None]] = {
            "MemberMetadata": self._described,
            "TargetAssignmentMember": self._target,
            "CurrentMemberAssignment": self._assignment,
        }

    def add(self, record: Mapping[str, Any]) -> None:
        """Replay one record."""
        kind, _, what = record["record"].partition("Group")
        self._where = {name: record[name] for name in ("log_partition", "log_offset", "append_ts", "group")}
        self._where["kind"] = kind.lower()
        self._version = record["value_version"]
        value = None if record["value"] is None else json.loads(record["value"])
        if not kind:
            self._classic(value)
        elif what in self._of_members:
            self._of_members[what](record["member"], value)
        elif what == "RegularExpression":
            self._expression(json.loads(record["key"])["regularExpression"], value)
        elif what in self._of_group:
            self._of_group[what](value)

    def current(self) -> list[Row]:
        """The row of CURRENT_GROUPS, if the group exists."""
        epoch = self._epoch
        if epoch is None or epoch["group_epoch"] is None:
            return []
        return [
            {
                **{name: epoch[name] for name in ("log_partition", "log_offset", "append_ts", "group", "kind")},
                "table": CURRENT_GROUPS.name,
                "state": self._state(epoch["group_epoch"]),
                "protocol_type": epoch["kind"],
                "generation": self._assignment_epoch or 0,
                "protocol": self._assignor(),
                "described": self._described_members({member: one.assigned for member, one in self._current.items()}),
                "value_version": epoch["value_version"],
                "group_epoch": epoch["group_epoch"],
                "members_at_epoch": sum(one.epoch == self._assignment_epoch for one in self._current.values()),
            }
        ]

    def _state(self, group_epoch: int) -> str:
        """The state of the group by Kafka's rules. Source: ``ConsumerGroup.maybeUpdateGroupState``, and those of the other
        kinds."""
        if not self._members:
            return "Empty"
        if self._where["kind"] == "share":
            return "Stable"
        if group_epoch > (self._assignment_epoch or 0):
            return "Assigning"
        members = (self._current.get(member, _Current()) for member in self._members)
        settled = (self._assignment_epoch, STATES.index("settled"))
        return "Stable" if all((one.epoch, one.state) == settled for one in members) else "Reconciling"

    def _generation(self, generation: int | None, state_ts: int | None = None) -> None:
        """Add a row of MODERN_GENERATIONS: the members and their targets; without a ``generation`` the end of the group."""
        row: Row = {"table": MODERN_GENERATIONS.name, "generation": generation, "is_tombstone": generation is None}
        if generation is not None:
            row |= {
                "protocol_type": self._where["kind"],
                "protocol": self._assignor(),
                "state_ts": state_ts,
                "described": self._described_members(self._targets),
                "value_version": self._version,
                "metadata_hash": self._epoch and self._epoch["metadata_hash"],
            }
        self.rows.append(self._where | row)

    def _described_members(self, assigned: Mapping[str, frozenset[Place]]) -> list[Row]:
        return [
            {
                "member_id": member,
                "instance_id": said.get("instanceId"),
                "client_id": said["clientId"],
                "client_host": said["clientHost"],
                "rebalance_timeout_ms": said.get("rebalanceTimeoutMs"),
                "topics": self._topics_of(said),
                "assigned": _by_topic(assigned.get(member, ())),
                "rack": said["rackId"],
            }
            for member, said in self._members.items()
        ]

    def _topics_of(self, said: Row) -> list[str]:
        """The topics that a member subscribes to, by name or by regular expression."""
        wanted = said.get("subscribedTopicNames", self._wanted.get("", []))
        return sorted({*wanted, *self._wanted.get(said.get("subscribedTopicRegex") or "", [])})

    def _assignor(self) -> str | None:
        """The assignor that most members ask for; None: they leave it to the broker."""
        wanted = Counter(one["serverAssignor"] for one in self._members.values() if one.get("serverAssignor"))
        return max(wanted, key=lambda name: (wanted[name], name)) if wanted else None

    def _classic(self, members: list[str] | None) -> None:
        epoch = self._epoch
        if members is None:
            self._classic_end = self._where["append_ts"]
            return
        for place in self._owned.values():
            place.setdefault("until_ts", self._where["append_ts"])
        self._owned = {}
        if epoch and epoch["group_epoch"] is None and epoch["append_ts"] == self._where["append_ts"]:
            epoch["cause_kind"], epoch["cause"] = "became_classic", "the group became a classic one"
            for life in self._went_with_group:
                if life["member"] in members:
                    life["event"] = "converted"

    def _topics(self, value: Row | None) -> None:
        self._since.topics_changed |= value is not None

    def _topology(self, value: Row | None) -> None:
        self._wanted[""] = [topic for one in value["subtopologies"] for topic in one["sourceTopics"]] if value else []

    def _expression(self, expression: str, value: Row | None) -> None:
        self._wanted[expression] = value["topics"] if value else []
        self._since.expression_resolved |= value is not None

    def _group_epoch(self, value: Row | None) -> None:
        kind, cause = self._cause(value)
        is_first = self._epoch is None
        self._epoch = {
            **self._where,
            "table": EPOCHS.name,
            "group_epoch": None if value is None else value["epoch"],
            "previous_epoch": self._epoch and self._epoch["group_epoch"],
            "members": len(self._members),
            "classic_members": sum(map(_is_classic, self._members.values())),
            "cause_kind": kind,
            "cause": cause,
            "metadata_hash": None if value is None else value.get("metadataHash", 0),
            "value_version": self._version,
        }
        self.rows.append(self._epoch)
        # If the beginning of the log is compacted away, the records of members may come after the first epoch.
        if value is None or not (self._members or is_first):
            self._generation(self._epoch["group_epoch"])
        self._classic_end = None
        self._went_with_group = list(self._since.ends.values())
        self._since = _SinceEpoch()

    def _cause(self, value: Row | None) -> tuple[str, str]:
        """The cause of a new epoch: a key of EPOCH_CAUSES, and a description."""
        came, went, changed = map(_names, (self._since.came, self._since.went, self._since.changed))
        if value is None:
            return "group_ended", "the group was deleted"
        if self._epoch is None or self._epoch["group_epoch"] is None:
            if self._classic_end is not None:
                return "became_consumer", "a classic group became a consumer group"
            if value["epoch"] > FIRST_EPOCH:
                return "log_begins", "the log begins here: what was before is compacted away"
            return "group_started", f"the group began: {came} joined" if came else "the group began"
        if came and went:
            return "members_joined_and_left", f"{came} joined; {went} left or was fenced"
        if came:
            return "members_joined", f"{came} joined"
        if went:
            return "members_left", f"{went} left or was fenced"
        if changed:
            return "subscription_changed", f"{changed} asked for other topics or another assignor"
        if self._since.topics_changed or value.get("metadataHash", 0) != self._epoch["metadata_hash"]:
            return "topics_changed", "topics came or went, or have other partitions"
        if self._since.expression_resolved:
            return "expression_resolved", "a regular expression matches other topics than before"
        return "other", "nobody came or went, and nobody asked for anything else"

    def _target_assignment(self, value: Row | None) -> None:
        self._assignment_epoch = None if value is None else value["assignmentEpoch"]
        if value is not None:
            self._generation(self._assignment_epoch, millis(value.get("assignmentTimestamp") or -1))
        epoch = self._epoch
        if value is None or epoch is None or epoch["group_epoch"] != value["assignmentEpoch"]:
            return
        had = {member: one.assigned for member, one in self._current.items()}
        nothing: frozenset[Place] = frozenset()
        epoch["assigned_ts"] = self._where["append_ts"]
        epoch["to_assign"] = sum(len(one - had.get(member, nothing)) for member, one in self._targets.items())
        epoch["to_revoke"] = sum(len(one - self._targets.get(member, nothing)) for member, one in had.items())

    def _described(self, member: str, value: Row | None) -> None:
        before = self._members.get(member)
        if value is None:
            gone = self._members.pop(member, None)
            if gone is not None and self._since.came.pop(member, None) is None:
                self._since.went[member] = gone
            return
        self._members[member] = value
        if before is None:
            before = self._replaced(value.get("instanceId"))
        if before is None:
            self._since.came[member] = value
        elif any(before.get(name) != value.get(name) for name in _WISHES):
            self._since.changed[member] = value

    def _replaced(self, instance_id: str | None) -> Row | None:
        """If this is a static member that rejoined with a new member id (KIP-345), take its old entry back from those that
        left."""
        for member, gone in list(self._since.went.items()):
            if instance_id is not None and gone["instanceId"] == instance_id:
                if life := self._since.ends.get(member):
                    life["event"] = "replaced"
                return self._since.went.pop(member)
        return None

    def _target(self, member: str, value: Row | None) -> None:
        before = self._targets.pop(member, frozenset())
        if value is not None:
            self._targets[member] = _places(value, "topicPartitions", "activeTasks")
        if member in self._lives and value is not None and self._targets[member] != before:
            self._live(member, "retargeted", self._current[member])

    def _assignment(self, member: str, value: Row | None) -> None:
        before = self._current.pop(member, _Current())
        if value is None:
            if member in self._lives:
                self._live(member, self._how_gone(member, before), _Current())
                self._since.ends[member] = self._lives.pop(member)
            self._own(member, before, _Current())
            return
        now = self._current[member] = _Current(
            value["memberEpoch"],
            value["state"] - (self._where["kind"] == "streams"),
            _places(value, "assignedPartitions", "activeTasks"),
            _places(value, "partitionsPendingRevocation", "activeTasksPendingRevocation"),
        )
        event = STATES[now.state] if 0 <= now.state < len(STATES) else "unknown"
        if member not in self._lives:
            event = "joined"
        elif now.epoch == AWAY:
            event = "away"
        self._live(member, event, now)
        self._own(member, before, now)
        epoch = self._epoch
        if (
            epoch
            and "assigned_ts" in epoch
            and "reconciled_ts" not in epoch
            and all(map(self._has_target, self._members))
        ):
            epoch["reconciled_ts"] = self._where["append_ts"]

    def _has_target(self, member: str) -> bool:
        """Has ``member`` reached the newest epoch and its target? True for a static member that is away, which is not waited
        for."""
        now = self._current.get(member, _Current())
        is_there = self._epoch is not None and now.epoch == self._epoch["group_epoch"] and not now.revoking
        return now.epoch == AWAY or (is_there and now.assigned == self._targets.get(member, frozenset()))

    def _how_gone(self, member: str, before: _Current) -> str:
        """How a member left: a key of MEMBER_EVENTS, as far as the log shows it."""
        if before.epoch == AWAY:
            return "away_too_long"
        since, now = self._lives[member]["append_ts"], self._where["append_ts"]
        described = self._members.get(member)
        if before.revoking and described and since and now:
            waited_ms = (now - since).total_seconds() * 1000
            return "revoked_too_late" if waited_ms >= described["rebalanceTimeoutMs"] else "left"
        return "left"

    def _live(self, member: str, event: str, now: _Current) -> None:
        """Add a row of MEMBERS for ``member``."""
        described = self._members.get(member, {})
        if before := self._lives.get(member):
            before["until_ts"] = self._where["append_ts"]
        self._lives[member] = {
            **self._where,
            "table": MEMBERS.name,
            "member": member,
            "client_id": described.get("clientId"),
            "instance_id": described.get("instanceId"),
            "is_classic": _is_classic(described),
            "event": event,
            "member_epoch": now.epoch,
            "partitions": len(now.assigned),
            "revoking": len(now.revoking),
            "target": len(self._targets.get(member, ())) if now.epoch is not None else 0,
            "is_settled": now.epoch is None or (now.epoch != AWAY and self._has_target(member)),
        }
        self.rows.append(self._lives[member])

    def _own(self, member: str, before: _Current, now: _Current) -> None:
        """Add rows of OWNERSHIP for what ``member`` has ``now`` and had not ``before``, or the reverse. None for share
        groups, whose members share partitions."""
        if self._where["kind"] == "share":
            return
        for place in sorted((before.assigned | before.revoking) - now.assigned - now.revoking):
            if place in self._owned and self._owned[place]["member"] == member:
                self._owner(place, None, None, is_revoking=False)
        for place in sorted(now.assigned | now.revoking):
            is_revoking = place in now.revoking
            row = self._owned.get(place)
            if row is None or (row["member"], row["is_revoking"]) != (member, is_revoking):
                self._owner(place, member, now.epoch, is_revoking=is_revoking)

    def _owner(self, place: Place, member: str | None, epoch: int | None, *, is_revoking: bool) -> None:
        """Add a row of OWNERSHIP for a partition; if its owner stays the same, so does its previous owner."""
        before = self._owned.get(place)
        previous = None
        if before is not None:
            before["until_ts"] = self._where["append_ts"]
            is_same = before["member"] in (None, member)
            previous = before["previous_member"] if is_same else before["member"]
        self._owned[place] = {
            **self._where,
            "table": OWNERSHIP.name,
            "generation": epoch if epoch is not None else self._epoch and self._epoch["group_epoch"],
            "topic": place[0],
            "partition": place[1],
            "member": member,
            "client_id": None if member is None else self._members.get(member, {}).get("clientId"),
            "previous_member": previous,
            "is_revoking": is_revoking,
        }
        self.rows.append(self._owned[place])


def _places(value: Row, *names: str) -> frozenset[Place]:
    """The partitions or tasks in the first of the fields ``names`` that ``value`` has."""
    listed = next((value[name] for name in names if name in value), ())
    return frozenset((_topic(one), partition) for one in listed for partition in one["partitions"])


def _topic(one: Row) -> str:
    return one["topicId"] if "topicId" in one else f"subtopology {one['subtopologyId']}"


def _by_topic(places: Iterable[Place]) -> list[Row]:
    found: dict[str, list[int]] = {}
    for topic, partition in sorted(places):
        found.setdefault(topic, []).append(partition)
    return [{"topic": topic, "partitions": partitions} for topic, partitions in found.items()]


def _is_classic(described: Row) -> bool:
    return described.get("classicMemberMetadata") is not None


def _names(members: Mapping[str, Row]) -> str:
    """The first three client ids of ``members``, and how many more there are."""
    names = sorted({one["clientId"] or member for member, one in members.items()})
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
