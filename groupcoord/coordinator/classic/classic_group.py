"""ClassicGroup: the offset checks, description, deletion and loading of a classic group (interface ``Group``).

Its members, generation and state are in ``classic_group_state``; the requests of members in ``join``, ``sync``, ``heartbeat``
and ``leave``.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar

from groupcoord.coordinator import records
from groupcoord.coordinator.classic.classic_group_state import (
    COMMIT_ANSWERS,
    CONSUMER_PROTOCOL_TYPE,
    GroupState,
    Member,
    current_generation,
    known_member,
)
from groupcoord.coordinator.classic.rebalance import RebalancingGroup
from groupcoord.coordinator.events import GroupRemoved
from groupcoord.coordinator.group import GroupType
from groupcoord.coordinator.offsets.committed_offsets import CommittedOffset
from groupcoord.coordinator.runtime.undo import UndoLog
from groupcoord.core.api_error import ApiError
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import TypedRecord
from groupcoord.protocol.apis.describe_groups import DescribedGroup, DescribedGroupMember
from groupcoord.protocol.coordinator_records.group_records import GroupMetadataValue
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import JoinGroupResponse, SyncGroupResponse


class ClassicGroup(RebalancingGroup):
    """One classic group."""

    type: ClassVar[GroupType] = GroupType.CLASSIC

    @property
    def is_empty(self) -> bool:
        """See Group."""
        return self.state is GroupState.EMPTY

    # --- offsets

    def validate_offset_commit(
        self, ctx: HandlerContext, _version: int, member_id: str, instance_id: str | None, generation: int
    ) -> None:
        """See Group; renews the session of the member."""
        if generation < 0 and self.is_empty:
            return
        if generation < 0 and not member_id and instance_id is None:
            why = f"the group is {self.state}: only its members may commit, and member_id is empty"
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, why)
        member = known_member(self, member_id, instance_id)
        current_generation(self, generation)
        code = COMMIT_ANSWERS[self.state]
        if code:
            raise ApiError(code, "the assignment of this generation is not known yet")
        self.restart_session(ctx, member)

    def validate_transactional_offset_commit(self, member_id: str, instance_id: str | None, generation: int) -> None:
        """See Group; a commit is accepted even before the members have their assignment."""
        names_member = generation >= 0 or member_id or instance_id is not None
        if names_member and not (generation < 0 and self.is_empty):
            known_member(self, member_id, instance_id)
            current_generation(self, generation)

    def validate_offset_fetch(self, _member_id: str | None, _member_epoch: int, _pending: Iterable[UndoLog]) -> None:
        """See Group; offsets of a classic group may always be fetched."""

    def validate_offset_delete(self) -> None:
        """See Group."""
        if not self.is_empty and self.protocol_type != CONSUMER_PROTOCOL_TYPE:
            why = f"the group has members, and what a group of type {self.protocol_type!r} reads cannot be known"
            raise ApiError(ErrorCode.NON_EMPTY_GROUP, why)

    def expiration_base(self) -> Callable[[CommittedOffset], int] | None:
        """See Group. Source: ``ClassicGroup.offsetExpirationCondition``."""
        if self.protocol_type is None:
            return lambda committed: committed.commit_timestamp_ms
        if self.is_empty:
            since_ms = self.state_since_ms
            return lambda committed: committed.commit_timestamp_ms if since_ms is None else since_ms
        consumers = self.protocol_type == CONSUMER_PROTOCOL_TYPE
        if consumers and self.state is GroupState.STABLE and self.subscribed_topics is not None:
            return lambda committed: committed.commit_timestamp_ms
        return None

    # --- administration

    def validate_delete(self) -> None:
        """See Group."""
        if not self.is_empty:
            raise ApiError(ErrorCode.NON_EMPTY_GROUP, f"it has members: it is {self.state}")

    def state_before(self, _pending: Iterable[UndoLog]) -> str:
        """See Group. State changes are not undone, because records do not cause them."""
        return self.state

    def describe(self) -> DescribedGroup:
        """See Group."""
        stable = self.state is GroupState.STABLE
        return DescribedGroup(
            group_id=self.group_id,
            group_state=self.state,
            protocol_type=self.protocol_type or "",
            protocol_data=(self.protocol_name or "") if stable else "",
            members=tuple(
                DescribedGroupMember(
                    member_id=member.member_id,
                    group_instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    # Before a protocol is chosen, it is not known which metadata of a member applies.
                    member_metadata=member.metadata_of(self.protocol_name) if stable else b"",
                    member_assignment=member.assignment,
                )
                for member in self.members.values()
            ),
        )

    def tombstones(self) -> Sequence[TypedRecord]:
        """See Group."""
        return (records.group_metadata_tombstone(self.group_id),)

    # --- loading and the end

    def set_from(self, value: GroupMetadataValue) -> None:
        """Set all fields from ``value``. Raises UnexpectedBrokerError for subscriptions that make Kafka fail."""
        self.generation_id = value.generation
        self.protocol_type = value.protocol_type or None
        self.protocol_name = value.protocol
        self.leader_id = value.leader
        self.state_since_ms = None if value.current_state_timestamp_ms == -1 else value.current_state_timestamp_ms
        if value.members:
            self.state = self.previous_state = GroupState.STABLE
        for stored in value.members:
            member = Member(
                member_id=stored.member_id,
                instance_id=stored.group_instance_id,
                client_id=stored.client_id,
                client_host=stored.client_host,
                rebalance_timeout_ms=stored.session_timeout_ms
                if stored.rebalance_timeout_ms == -1
                else stored.rebalance_timeout_ms,
                session_timeout_ms=stored.session_timeout_ms,
                protocol_type=value.protocol_type,
                # The record has only the chosen protocol. If the member sends more when it joins again, that is a change.
                protocols=((value.protocol or "", stored.subscription),),
                session_key=self.session_key(stored.member_id),
                assignment=stored.assignment,
            )
            self.add_member(member, None)
        self.subscribed_topics = self.compute_subscribed_topics()

    def on_loaded(self, ctx: HandlerContext) -> None:
        """See Group. The session of every member starts now; a group larger than ``group.max.size`` rebalances."""
        for member in self.members.values():
            self.restart_session(ctx, member)
        size, limit = len(self.members), self.config.group_max_size
        if size > limit:
            # No member has joined yet, so this returns no records.
            self.prepare_rebalance(ctx, f"the group has {size} members, and group.max.size is {limit} now")

    def on_restored(self, ctx: HandlerContext) -> None:
        """See Group."""
        for member in self.members.values():
            self.restart_session(ctx, member)
        if self.pending_sync_members:
            self._schedule_sync(ctx)

    def on_unloaded(self, ctx: HandlerContext) -> None:
        """See Group."""
        code = ErrorCode.NOT_COORDINATOR
        for member in self.members.values():
            if member.parked_join is not None:
                response = JoinGroupResponse(error_code=code, leader="", member_id=member.member_id, members=())
                ctx.reply(member.parked_join, response)
            if member.parked_sync is not None:
                ctx.reply(member.parked_sync, SyncGroupResponse(error_code=code, assignment=b""))

    def on_removed(self, ctx: HandlerContext, reason: str) -> None:
        """See Group."""
        self.move_to(GroupState.DEAD, ctx.now_ms)
        self._cancel_sessions()
        ctx.emit(GroupRemoved, group=self.group_id, reason=reason)

    def on_upgraded(self) -> None:
        """A consumer group takes the place of this one. The timer of the join phase keeps running, as in Kafka: it is about the
        group of this id, which may be a classic one again by then."""
        self.timers.cancel(self.sync_key)
        self._cancel_sessions()

    def cancel_timers(self) -> None:
        """See Group."""
        self.timers.cancel(self.join_key)
        self.on_upgraded()

    def _cancel_sessions(self) -> None:
        for member_id in (*self.members, *self.pending_join_members):
            self.timers.cancel(self.session_key(member_id))
