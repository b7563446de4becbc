"""ConsumerMember: the state of a member of a consumer group that its records define.

Sources: ``ConsumerGroupMember``, ``MemberState``.
"""

import dataclasses
import enum
import uuid
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from groupcoord.core.java_hash_order import hash_map_order, uuid_hash
from groupcoord.core.java_map import int_order
from groupcoord.protocol.coordinator_records.consumer_group_records import (
    ClassicMemberMetadata,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    CurrentPartitions,
)

Assigned: TypeAlias = Mapping[uuid.UUID, Mapping[int, int]]
"""Topic id → partition → member epoch of its assignment (KIP-1251), both in the order of Java's ``HashMap``."""

Target: TypeAlias = Mapping[uuid.UUID, tuple[int, ...]]
"""The target assignment of a member: topic id → partitions, in the order of Java's ``HashMap`` and ``HashSet``."""

NOTHING: Assigned = {}
NO_TARGET: Target = {}

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
AWAY_EPOCH = -2
"""Epochs in a heartbeat with which a member joins, leaves, or leaves temporarily as a static member (KIP-848)."""


class MemberState(enum.IntEnum):
    """The reconciliation state of a member (``MemberState``); the values are those in records."""

    STABLE = 0
    """Its assignment is its target assignment."""
    UNREVOKED_PARTITIONS = 1
    """It has to revoke partitions."""
    UNRELEASED_PARTITIONS = 2
    """It waits for partitions that other members have not released yet."""
    UNKNOWN = 127
    """A state that a newer Kafka wrote."""


_STATES = frozenset(MemberState)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerMember:
    """One member (``ConsumerGroupMember``). ``classic`` is None for a member of the consumer protocol.

    ``assigned`` are the partitions it may consume, ``revoking`` those it must release; no other member gets either.
    """

    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    topic_regex: str | None = ""
    server_assignor: str | None = None
    assigned: Assigned = dataclasses.field(default_factory=dict)
    revoking: Assigned = dataclasses.field(default_factory=dict)
    classic: ClassicMemberMetadata | None = None

    @property
    def is_classic(self) -> bool:
        """Is it a member of the classic protocol?"""
        return self.classic is not None

    @property
    def session_timeout_ms(self) -> int | None:
        """The session timeout of a member of the classic protocol; None for others, for which the group's applies."""
        return None if self.classic is None else self.classic.session_timeout_ms

    def is_reconciled_to(self, epoch: int) -> bool:
        """Is it stable at ``epoch``?"""
        return self.state is MemberState.STABLE and self.member_epoch == epoch

    def with_metadata(self, value: ConsumerGroupMemberMetadataValue) -> "ConsumerMember":
        """The member with the fields of this record."""
        return dataclasses.replace(
            self,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topics=frozenset(value.subscribed_topic_names),
            topic_regex=value.subscribed_topic_regex,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            server_assignor=value.server_assignor,
            classic=value.classic_member_metadata,
        )

    def with_assignment(self, value: ConsumerGroupCurrentMemberAssignmentValue) -> "ConsumerMember":
        """The member with the fields of this record."""
        return dataclasses.replace(
            self,
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=MemberState(value.state) if value.state in _STATES else MemberState.UNKNOWN,
            assigned=_assigned(value.assigned_partitions, value.member_epoch),
            revoking=_assigned(value.partitions_pending_revocation, value.member_epoch),
        )

    def without_assignment(self) -> "ConsumerMember":
        """The member after the tombstone of its current assignment."""
        return dataclasses.replace(self, member_epoch=-1, previous_member_epoch=-1, assigned=NOTHING, revoking=NOTHING)


def _assigned(listed: Iterable[CurrentPartitions], member_epoch: int) -> Assigned:
    """Decode an assignment; partitions without assignment epochs (records before Kafka 4.3) get the member epoch."""
    by_topic: dict[uuid.UUID, dict[int, int]] = {}
    for topic in listed:
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            epochs = (max(member_epoch, 0),) * len(topic.partitions)
        found = dict(zip(topic.partitions, epochs, strict=True))
        by_topic[_topic_id(topic.topic_id)] = {one: found[one] for one in int_order(found)}
    return {topic_id: by_topic[topic_id] for topic_id in hash_map_order(by_topic, uuid_hash)}


def _topic_id(topic_id: uuid.UUID | None) -> uuid.UUID:
    return topic_id or uuid.UUID(int=0)


def current_partitions(assigned: Assigned) -> tuple[CurrentPartitions, ...]:
    """Encode ``assigned`` for a record."""
    return tuple(
        CurrentPartitions(topic_id=topic_id, partitions=tuple(of_topic), assignment_epochs=tuple(of_topic.values()))
        for topic_id, of_topic in assigned.items()
    )
