"""Group, the interface of classic and consumer groups for offsets, administration, loading and expiration (``Group``)."""

import enum
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, NamedTuple

from groupcoord.config.broker_config import BrokerConfig
from groupcoord.coordinator.offsets.committed_offsets import CommittedOffset
from groupcoord.coordinator.runtime.coordinator_shard import CoordinatorResult
from groupcoord.coordinator.runtime.shard import ShardTimers
from groupcoord.coordinator.runtime.undo import UndoableMap, UndoLog, UndoRecorder
from groupcoord.coordinator.topics_view import SubscribedTopics
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call, TypedRecord
from groupcoord.protocol.apis.describe_groups import DescribedGroup
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest


class GroupType(enum.StrEnum):
    """The type of a group, as in ListGroups (``Group.GroupType``)."""

    CLASSIC = "classic"
    CONSUMER = "consumer"


class ConsumerGroupConfig(NamedTuple):
    """The configs of one consumer group: its group configs, else those of the broker (KIP-848)."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    assignment_interval_ms: int


class GroupContext(NamedTuple):
    """The parts of the coordinator that a group uses.

    ``new_uuid`` returns the random part of member ids; changes that ``undo`` records are undone if their append fails;
    ``config_of`` returns the configs of a consumer group, ``group_version`` the level of the feature; ``groups`` are all groups
    of the shard.
    """

    config: BrokerConfig
    timers: ShardTimers
    new_uuid: Callable[[], str]
    undo: UndoRecorder
    topics: SubscribedTopics
    config_of: Callable[[str], ConsumerGroupConfig]
    group_version: Callable[[], int]
    groups: "GroupTable"


def serves_consumer_groups(config: BrokerConfig, group_version: int) -> bool:
    """Are the consumer protocol (KIP-848) and its feature enabled (``isConsumerGroupProtocolEnabled``)?"""
    return group_version >= 1 and "consumer" in config.group_coordinator_rebalance_protocols


AcceptPartition = Callable[[str, uuid.UUID | None, int], None]
"""Raises ApiError, which refuses the whole request, unless the offset of a partition (topic, id, number) may be committed."""


class Group(ABC):
    """One group. ``state`` is its name in DescribeGroups and ListGroups."""

    type: ClassVar[GroupType]
    group_id: str
    state: str
    protocol_type: str | None

    @property
    @abstractmethod
    def is_empty(self) -> bool:
        """Are there no members?"""

    @abstractmethod
    def is_subscribed_to(self, topic: str) -> bool:
        """Is a member subscribed to ``topic``? Then offsets of the topic are neither deleted nor do they expire."""

    @abstractmethod
    def validate_offset_commit(
        self, ctx: HandlerContext, version: int, member_id: str, instance_id: str | None, generation: int
    ) -> AcceptPartition | None:
        """Raises ApiError unless this member may commit now with OffsetCommit ``version``; a valid commit renews its session.

        The returned function must accept each partition, too; None accepts all.
        """

    @abstractmethod
    def validate_transactional_offset_commit(
        self, member_id: str, instance_id: str | None, generation: int
    ) -> AcceptPartition | None:
        """The same for TxnOffsetCommit, which may also come from a producer that names no member (KIP-447).

        It does not renew the session of the member.
        """

    @abstractmethod
    def validate_offset_fetch(self, member_id: str | None, member_epoch: int, pending: Iterable[UndoLog]) -> None:
        """Raises ApiError unless this member may fetch offsets, in the state without the ``pending`` writes."""

    @abstractmethod
    def validate_offset_delete(self) -> None:
        """Raises ApiError unless offsets of topics to which no member subscribes may be deleted."""

    @abstractmethod
    def validate_delete(self) -> None:
        """Raises ApiError unless the group may be deleted."""

    @abstractmethod
    def describe(self) -> DescribedGroup:
        """The group in a DescribeGroups response. Raises ApiError (GROUP_ID_NOT_FOUND) if this is not a classic group."""

    @abstractmethod
    def state_before(self, pending: Iterable[UndoLog]) -> str:
        """The state without the ``pending`` writes."""

    @abstractmethod
    def tombstones(self) -> Sequence[TypedRecord]:
        """The records that delete the group, except those of its offsets."""

    @abstractmethod
    def expiration_base(self) -> Callable[[CommittedOffset], int] | None:
        """Returns the time at which the retention of an offset begins (ms); None if offsets do not expire now."""

    @abstractmethod
    def on_loaded(self, ctx: HandlerContext) -> None:
        """The group was loaded from the log: start its timers."""

    @abstractmethod
    def on_restored(self, ctx: HandlerContext) -> None:
        """A write that replaced or deleted the group was undone: start its timers again."""

    @abstractmethod
    def on_unloaded(self, ctx: HandlerContext) -> None:
        """Another broker coordinates the group from now on: answer waiting requests."""

    @abstractmethod
    def on_removed(self, ctx: HandlerContext, reason: str) -> None:
        """The group was deleted; another one may have its name by now."""

    @abstractmethod
    def cancel_timers(self) -> None:
        """Cancel all timers."""


class ClassicMembersGroup(Group):
    """A group of another type that accepts members of the classic protocol. All methods raise ApiError."""

    @abstractmethod
    def join(self, ctx: HandlerContext, call: Call, request: JoinGroupRequest) -> CoordinatorResult:
        """JoinGroup."""

    @abstractmethod
    def sync(self, ctx: HandlerContext, call: Call, request: SyncGroupRequest) -> CoordinatorResult:
        """SyncGroup."""

    @abstractmethod
    def heartbeat(self, ctx: HandlerContext, request: HeartbeatRequest) -> CoordinatorResult:
        """Heartbeat."""

    @abstractmethod
    def leave(self, ctx: HandlerContext, call: Call, request: LeaveGroupRequest) -> CoordinatorResult:
        """LeaveGroup."""


class GroupTable(UndoableMap[str, Group]):
    """The groups by id. If the first record of a group cannot be stored, it is removed, and the group it replaced restored."""

    def restore(self, ctx: HandlerContext, key: str, before: Group | None, error: ErrorCode, /) -> None:
        """See UndoTable."""
        group = self.get(key)
        super().restore(ctx, key, before, error)
        if group is not None and group is not before:
            group.cancel_timers()
            if before is None:
                group.on_removed(ctx, f"its first record could not be stored: {error.name}")
        if before is not None and group is not before:
            before.on_restored(ctx)
