"""What every kind of group offers to offsets, administration, loading and expiration. Source: ``Group``."""

import enum
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple

from groupcoord.coordinator.config import CoordinatorConfig
from groupcoord.coordinator.offsets.store import CommittedOffset
from groupcoord.coordinator.runtime.shard import ShardTimers
from groupcoord.core.effects import TypedRecord
from groupcoord.core.handler_context import HandlerContext
from groupcoord.protocol.apis.describe_groups import DescribedGroup


class GroupType(enum.StrEnum):
    """Source: ``Group.GroupType``; ListGroups answers these names."""

    CLASSIC = "classic"


class GroupContext(NamedTuple):
    """What a group needs of its coordinator. ``new_uuid`` makes the random part of member ids."""

    config: CoordinatorConfig
    timers: ShardTimers
    new_uuid: Callable[[], str]


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
    ) -> None:
        """Raises ApiError unless this member may commit now in version ``version`` of OffsetCommit; it is alive if it may."""

    @abstractmethod
    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Raises ApiError unless this member may fetch offsets."""

    @abstractmethod
    def validate_offset_delete(self) -> None:
        """Raises ApiError unless offsets of topics to which no member subscribes may be deleted."""

    @abstractmethod
    def validate_delete(self) -> None:
        """Raises ApiError unless the group may be deleted."""

    @abstractmethod
    def describe(self) -> DescribedGroup:
        """What DescribeGroups answers."""

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
    def on_unloaded(self, ctx: HandlerContext) -> None:
        """Another broker coordinates the group from now on: answer requests that wait."""

    @abstractmethod
    def on_removed(self, ctx: HandlerContext, reason: str) -> None:
        """The group is gone; another one may have its name by now."""

    @abstractmethod
    def cancel_timers(self) -> None:
        """Cancel all timers."""
