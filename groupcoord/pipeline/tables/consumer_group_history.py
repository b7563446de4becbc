"""What became of groups of KIP-848: their epochs, the lives of their members, and whose each partition really was.

A target assignment says where partitions should be; who has them is in the records of kind 8, a member at a time: what it has,
and what it was asked to give back and has not yet. The records of each group are played one after the other, in plain Python, a
group a task at the most; with them those of the classic group (kind 2) that it was or became. The log says of nobody why it is
gone. Sources: KIP-848, ``GroupMetadataManager.replay``, ``CurrentAssignmentBuilder``, ``ConsumerGroup``.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from groupcoord.pipeline.arrow_columns import arrow_schema
from groupcoord.pipeline.schemas import (
    MODERN_EPOCHS,
    MODERN_MEMBERS,
    MODERN_OWNERSHIP,
    TableSchema,
    table_schema,
)
from groupcoord.pipeline.tables.modern_groups import CURRENT, EPOCH, FIRST_EPOCH, MEMBER, TARGET, TARGET_EPOCH, TOPICS

CLASSIC_GROUP, EXPRESSION = 2, 16
"""The record types of classic groups, and of the topics that match a regular expression."""
AWAY = -2
"""The epoch of a static member that is away: it keeps its partitions until it is back, or its session has run out."""
STATES = ("settled", "revoking", "waiting")
"""What the numbers of ``CurrentMemberAssignment``'s states are called here (``MemberState``)."""
_WISHES = ("rackId", "subscribedTopicNames", "subscribedTopicRegex", "serverAssignor")
"""What a member says about itself, and what a new epoch begins with if it changes."""

Row = dict[str, Any]
Place = tuple[str, int]
"""The id of a topic and the number of a partition."""

MODERN_HISTORY = (MODERN_EPOCHS, MODERN_MEMBERS, MODERN_OWNERSHIP)
HISTORY = table_schema(
    """
    history by log_partition, log_offset: The rows of all of these tables.
    table string: which one
    metadata_hash bigint: hash of the topics that an epoch is for
    """,
    tuple({column.name: column for table in MODERN_HISTORY for column in table.columns}.values()),
)


def consumer_group_history(modern: DataFrame, generations: DataFrame, names: DataFrame) -> DataFrame:
    """HISTORY of all groups of KIP-848 in ``modern`` (MODERN_RECORDS), with ``names`` of topics where they are known."""
    columns = ("group", "log_partition", "log_offset", "append_ts", "record_type", "member", "value")
    played = modern.where(F.col("record_type").isin(EPOCH, TOPICS, MEMBER, TARGET_EPOCH, TARGET, CURRENT, EXPRESSION))
    classic = (
        generations.join(played.select("group").distinct(), "group", "left_semi")
        .withColumn("record_type", F.lit(CLASSIC_GROUP).cast("smallint"))
        .withColumn("member", F.lit(None).cast("string"))
        .withColumn("value", F.expr("if(is_tombstone, null, to_json(transform(members, m -> m.member_id)))"))
    )
    rows = played.select(*columns).unionByName(classic.select(*columns)).groupBy("group")
    return (
        rows.applyInArrow(_play, HISTORY.ddl)
        .crossJoin(F.broadcast(names))
        .withColumn("topic", F.expr("coalesce(names[topic], topic)"))
        .select(*HISTORY.names)
    )


def table_of_history(history: DataFrame, table: TableSchema) -> DataFrame:
    """The rows of ``table`` in HISTORY."""
    return history.where(F.col("table") == table.name).select(*table.names)


def _play(table: Any) -> Any:
    """The rows of HISTORY that the records of one group give."""
    records = sorted(table.to_pylist(), key=lambda record: record["log_offset"])
    return pa.Table.from_pylist(history_of_group(records), schema=arrow_schema(HISTORY.columns))


def history_of_group(records: Iterable[Mapping[str, Any]]) -> list[Row]:
    """The rows of HISTORY, given the ``records`` of one group in the order of the log."""
    history = _GroupHistory()
    for record in records:
        history.add(record)
    return history.rows


class _Current(NamedTuple):
    """What a member has; without an epoch it is not there."""

    epoch: int | None = None
    state: int = 0
    assigned: frozenset[Place] = frozenset()
    revoking: frozenset[Place] = frozenset()


@dataclass
class _SinceEpoch:
    """What happened since the newest epoch began: the members that are new, are gone, or want something else; and so on."""

    came: dict[str, Row] = field(default_factory=dict)
    went: dict[str, Row] = field(default_factory=dict)
    changed: dict[str, Row] = field(default_factory=dict)
    ends: dict[str, Row] = field(default_factory=dict)
    """The last row in the life of each member that is gone."""
    topics_changed: bool = False
    expression_resolved: bool = False


class _GroupHistory:
    """One group, as it is after the records so far, and the rows that they gave."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._where: Row = {}
        self._members: dict[str, Row] = {}
        self._targets: dict[str, frozenset[Place]] = {}
        self._current: dict[str, _Current] = {}
        self._lives: dict[str, Row] = {}
        """The last row of each member that is there."""
        self._owned: dict[Place, Row] = {}
        """The last row of each partition."""
        self._epoch: Row | None = None
        """The row of the newest epoch."""
        self._classic_end: Any = None
        """When the classic group ended that it was just before."""
        self._since = _SinceEpoch()
        self._went_with_group: list[Row] = []
        """The last rows of the members that were gone when the group ended."""
        self._of_group: dict[int, Callable[[Any], None]] = {
            CLASSIC_GROUP: self._classic,
            EPOCH: self._group_epoch,
            TOPICS: self._topics,
            TARGET_EPOCH: self._target_epoch,
            EXPRESSION: self._expression,
        }
        self._of_members: dict[int, Callable[[str, Row | None], None]] = {
            MEMBER: self._described,
            TARGET: self._target,
            CURRENT: self._assignment,
        }

    def add(self, record: Mapping[str, Any]) -> None:
        """Play one record."""
        self._where = {name: record[name] for name in ("log_partition", "log_offset", "append_ts", "group")}
        value = None if record["value"] is None else json.loads(record["value"])
        kind, member = record["record_type"], record["member"]
        if kind in self._of_members:
            self._of_members[kind](member, value)
        else:
            self._of_group[kind](value)

    def _classic(self, members: list[str] | None) -> None:
        epoch = self._epoch
        if members is None:
            self._classic_end = self._where["append_ts"]
        elif epoch and epoch["group_epoch"] is None and epoch["append_ts"] == self._where["append_ts"]:
            epoch["cause_kind"], epoch["cause"] = "became_classic", "the group became a classic one"
            for life in self._went_with_group:
                if life["member"] in members:
                    life["event"] = "converted"

    def _topics(self, value: Row | None) -> None:
        self._since.topics_changed |= value is not None

    def _expression(self, value: Row | None) -> None:
        self._since.expression_resolved |= value is not None

    def _group_epoch(self, value: Row | None) -> None:
        kind, cause = self._cause(value)
        self._epoch = {
            **self._where,
            "table": MODERN_EPOCHS.name,
            "group_epoch": None if value is None else value["epoch"],
            "previous_epoch": self._epoch and self._epoch["group_epoch"],
            "members": len(self._members),
            "classic_members": sum(map(_is_classic, self._members.values())),
            "cause_kind": kind,
            "cause": cause,
            "metadata_hash": None if value is None else value.get("metadataHash", 0),
        }
        self.rows.append(self._epoch)
        self._classic_end = None
        self._went_with_group = list(self._since.ends.values())
        self._since = _SinceEpoch()

    def _cause(self, value: Row | None) -> tuple[str, str]:
        """Which of EPOCH_CAUSES began the epoch, and the same in words."""
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

    def _target_epoch(self, value: Row | None) -> None:
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
            before = self._replaced(value["instanceId"])
        if before is None:
            self._since.came[member] = value
        elif any(before[name] != value[name] for name in _WISHES):
            self._since.changed[member] = value

    def _replaced(self, instance_id: str | None) -> Row | None:
        """The static member that is back under a new member id (KIP-345), if it is one: it is as if it had not been gone."""
        for member, gone in list(self._since.went.items()):
            if instance_id is not None and gone["instanceId"] == instance_id:
                if life := self._since.ends.get(member):
                    life["event"] = "replaced"
                return self._since.went.pop(member)
        return None

    def _target(self, member: str, value: Row | None) -> None:
        before = self._targets.pop(member, frozenset())
        if value is not None:
            self._targets[member] = _places(value["topicPartitions"])
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
            value["state"],
            _places(value["assignedPartitions"]),
            _places(value["partitionsPendingRevocation"]),
        )
        event = STATES[now.state] if now.state < len(STATES) else "unknown"
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
        """Has it reached the newest epoch, and does it have all that it is to have? Who is away does not count."""
        now = self._current.get(member, _Current())
        is_there = self._epoch is not None and now.epoch == self._epoch["group_epoch"] and not now.revoking
        return now.epoch == AWAY or (is_there and now.assigned == self._targets.get(member, frozenset()))

    def _how_gone(self, member: str, before: _Current) -> str:
        """Of MEMBER_EVENTS the end of a member, as far as the log lets it be told."""
        if before.epoch == AWAY:
            return "away_too_long"
        since, now = self._lives[member]["append_ts"], self._where["append_ts"]
        described = self._members.get(member)
        if before.revoking and described and since and now:
            waited_ms = (now - since).total_seconds() * 1000
            return "revoked_too_late" if waited_ms >= described["rebalanceTimeoutMs"] else "left"
        return "left"

    def _live(self, member: str, event: str, now: _Current) -> None:
        """One more row in the life of ``member``."""
        described = self._members.get(member, {})
        if before := self._lives.get(member):
            before["until_ts"] = self._where["append_ts"]
        self._lives[member] = {
            **self._where,
            "table": MODERN_MEMBERS.name,
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
        """``member`` had what it had ``before``, and has something else ``now``."""
        for place in sorted((before.assigned | before.revoking) - now.assigned - now.revoking):
            if self._owned[place]["member"] == member:
                self._owner(place, None, None, is_revoking=False)
        for place in sorted(now.assigned | now.revoking):
            is_revoking = place in now.revoking
            row = self._owned.get(place)
            if row is None or (row["member"], row["is_revoking"]) != (member, is_revoking):
                self._owner(place, member, now.epoch, is_revoking=is_revoking)

    def _owner(self, place: Place, member: str | None, epoch: int | None, *, is_revoking: bool) -> None:
        """One more row for a partition; a member that goes on having it keeps who had it before."""
        before = self._owned.get(place)
        previous = None
        if before is not None:
            before["until_ts"] = self._where["append_ts"]
            is_same = before["member"] in (None, member)
            previous = before["previous_member"] if is_same else before["member"]
        self._owned[place] = {
            **self._where,
            "table": MODERN_OWNERSHIP.name,
            "generation": epoch if epoch is not None else self._epoch and self._epoch["group_epoch"],
            "topic": place[0],
            "partition": place[1],
            "member": member,
            "client_id": None if member is None else self._members.get(member, {}).get("clientId"),
            "previous_member": previous,
            "is_revoking": is_revoking,
        }
        self.rows.append(self._owned[place])


def _places(assigned: Iterable[Row]) -> frozenset[Place]:
    return frozenset((one["topicId"], partition) for one in assigned for partition in one["partitions"])


def _is_classic(described: Row) -> bool:
    return described.get("classicMemberMetadata") is not None


def _names(members: Mapping[str, Row]) -> str:
    """The first three client ids of ``members``, and how many more there are."""
    names = sorted({one["clientId"] or member for member, one in members.items()})
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
