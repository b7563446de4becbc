"""What every kind of group offers to offsets, administration, loading and expiration. Source: ``Group``."""

import enum
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, NamedTuple

from groupcoord.coordinator.config import CoordinatorConfig
from groupcoord.coordinator.offsets.committed_offsets import CommittedOffset
from groupcoord.coordinator.runtime.coordinator_shard import CoordinatorResult
from groupcoord.coordinator.runtime.shard import ShardTimers
from groupcoord.coordinator.runtime.undo import UndoableMap, UndoLog, UndoRecorder
from groupcoord.coordinator.topics import SubscribedTopics
from groupcoord.core.effects import Call, TypedRecord
from groupcoord.core.handler_context import HandlerContext
from groupcoord.protocol.apis.describe_groups import DescribedGroup
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest


class GroupType(enum.StrEnum):
    """Source: ``Group.GroupType``; ListGroups answers these names."""

    CLASSIC = "classic"
    CONSUMER = "consumer"


class ConsumerGroupConfig(NamedTuple):
    """What applies to one consumer group: the broker's properties, unless it has some of its own (KIP-848)."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    assignment_interval_ms: int


class GroupContext(NamedTuple):
    """What a group needs of its coordinator.

    ``new_uuid`` makes the random part of member ids; what ``undo`` records is undone if its append fails; ``config_of`` is what
    applies to a consumer group; ``groups`` are all groups of the shard.
    """

    config: CoordinatorConfig
    timers: ShardTimers
    new_uuid: Callable[[], str]
    undo: UndoRecorder
    topics: SubscribedTopics
    config_of: Callable[[str], ConsumerGroupConfig]
    groups: "GroupTable"


AcceptPartition = Callable[[str, uuid.UUID | None, int], None]
"""Raises ApiError unless the offset of a partition (topic, its id, number) may be committed; that refuses the whole request."""


class Group(ABC):
    """One group. ``state`` is the name that DescribeGroups and ListGroups answer."""

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
        """Does a member read ``topic``? Its offsets are then neither deleted nor do they expire."""

    @abstractmethod
    def validate_offset_commit(
        self, ctx: HandlerContext, version: int, member_id: str, instance_id: str | None, generation: int
    ) -> AcceptPartition | None:
        """Raises ApiError unless this member may commit now in version ``version`` of OffsetCommit; it is alive if it may.

        What is returned has to accept every partition, too; None accepts all.
        """

    @abstractmethod
    def validate_transactional_offset_commit(
        self, member_id: str, instance_id: str | None, generation: int
    ) -> AcceptPartition | None:
        """The same for TxnOffsetCommit, which may also come from a producer that says nothing of a member (KIP-447).

        It shows nothing of whether the member is alive.
        """

    @abstractmethod
    def validate_offset_fetch(self, member_id: str | None, member_epoch: int, pending: Iterable[UndoLog]) -> None:
        """Raises ApiError unless this member may fetch offsets, without the writes that are ``pending``."""

    @abstractmethod
    def validate_offset_delete(self) -> None:
        """Raises ApiError unless offsets of topics to which no member subscribes may be deleted."""

    @abstractmethod
    def validate_delete(self) -> None:
        """Raises ApiError unless the group may be deleted."""

    @abstractmethod
    def describe(self) -> DescribedGroup:
        """What DescribeGroups answers. Raises ApiError (GROUP_ID_NOT_FOUND) if this is no classic group."""

    @abstractmethod
    def state_before(self, pending: Iterable[UndoLog]) -> str:
        """The state without the writes that are ``pending``."""

    @abstractmethod
    def tombstones(self) -> Sequence[TypedRecord]:
        """The records that remove the group, without its offsets."""

    @abstractmethod
    def expiration_base(self) -> Callable[[CommittedOffset], int] | None:
        """From when the retention of an offset counts (ms); None if offsets of this group do not expire now."""

    @abstractmethod
    def on_loaded(self, ctx: HandlerContext) -> None:
        """The group was read from the log: start its timers."""

    @abstractmethod
    def on_restored(self, ctx: HandlerContext) -> None:
        """A write that put another group in its place, or none, is undone: start its timers again."""

    @abstractmethod
    def on_unloaded(self, ctx: HandlerContext) -> None:
        """Another broker coordinates the group from now on: answer requests that wait."""

    @abstractmethod
    def on_removed(self, ctx: HandlerContext, reason: str) -> None:
        """The group is gone; another one may have its name by now."""

    @abstractmethod
    def cancel_timers(self) -> None:
        """Cancel all timers."""


class ClassicMembersGroup(Group):
    """A group of another kind that members of the classic protocol can be in. All raise ApiError."""

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
    """The groups by id. A group whose first record could not be stored is removed again, and one that it replaced is back."""

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
