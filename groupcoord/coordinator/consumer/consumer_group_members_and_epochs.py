"""The data of a consumer group that its records define: members, epochs, target assignment, regular expressions.

Sources: ``ConsumerGroup``, ``ModernGroup``, ``GroupMetadataManager.replay``.
"""

import enum
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from groupcoord.assignors.server_side.group_spec import SubscriptionType
from groupcoord.coordinator.consumer import records
from groupcoord.coordinator.consumer.member import NO_TARGET, ConsumerMember, Target
from groupcoord.coordinator.consumer.member_aggregates import MemberIndex, ResolvedRegex, SubscriptionCounts
from groupcoord.coordinator.consumer.reconciliation import FREE
from groupcoord.coordinator.error_mapping import UnexpectedBrokerError
from groupcoord.coordinator.group import AcceptPartition, Group, GroupContext, GroupType
from groupcoord.coordinator.offsets.committed_offsets import CommittedOffset
from groupcoord.coordinator.runtime.undo import UndoableTimelineMap, UndoableValue, UndoLog, values_before
from groupcoord.core.api_error import ApiError
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import TypedRecord
from groupcoord.core.java_hash_order import hash_map_order, uuid_hash
from groupcoord.core.java_map import copied_set
from groupcoord.protocol.coordinator_records import consumer_group_records as stored
from groupcoord.protocol.errors import ErrorCode, WireError

MEMBER_EPOCHS_FROM = 9
"""The first version of OffsetCommit with member epochs."""

NO_MEMBER_EPOCH = -1
"""The epoch in a TxnOffsetCommit without group metadata of a member."""

REFRESH_INTERVAL_MS = 2_147_483_647
"""The interval at which a group refreshes its topic metadata even without a notification of changes."""


class ConsumerGroupState(enum.StrEnum):
    """The state of a consumer group (``ConsumerGroup.ConsumerGroupState``)."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    """The group epoch is ahead of the target assignment."""
    RECONCILING = "Reconciling"
    """Some members have not reached the target assignment yet."""
    STABLE = "Stable"


class Epochs(NamedTuple):
    """The group epoch, the epoch of the target assignment, and other fields of the whole group.

    ``metadata_hash`` is over the subscribed topics; ``assigned_at_ms`` is when the target assignment was computed, 0 if never;
    ``has_topics_record``: the log has a ConsumerGroupPartitionMetadata record, as Kafka up to 4.0 wrote.
    """

    group: int = 1
    assignment: int = 1
    assigned_at_ms: int = 0
    metadata_hash: int = 0
    has_topics_record: bool = False


class GroupSnapshot(NamedTuple):
    """The committed state of a group, without pending writes. ``members`` are in Kafka's order."""

    epochs: Epochs
    members: Sequence[ConsumerMember]
    targets: Mapping[str, Target]

    @property
    def state(self) -> ConsumerGroupState:
        """The group state that these fields imply."""
        epoch = self.epochs.assignment
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epochs.group > epoch:
            return ConsumerGroupState.ASSIGNING
        stable = all(member.is_reconciled_to(epoch) for member in self.members)
        return ConsumerGroupState.STABLE if stable else ConsumerGroupState.RECONCILING


class ConsumerGroupTables(Group):
    """The tables of one group, which only ``apply`` changes."""

    type: ClassVar[GroupType] = GroupType.CONSUMER
    protocol_type: str | None = "consumer"

    def __init__(self, group_id: str, context: GroupContext) -> None:
        self.group_id = group_id
        self.context = context
        self._epochs = UndoableValue(context.undo, Epochs())
        self.members: UndoableTimelineMap[ConsumerMember] = UndoableTimelineMap(
            context.undo, self._member_changed, self._restored
        )
        self.targets: UndoableTimelineMap[Target] = UndoableTimelineMap(context.undo, _ignore, _nothing)
        self.regexes: UndoableTimelineMap[ResolvedRegex] = UndoableTimelineMap(
            context.undo, self._regex_changed, self._restored
        )
        self._index: MemberIndex | None = MemberIndex()
        self._type_of_members: SubscriptionType | None = None
        """The subscription type after the last change of a member, if a regular expression was removed since, which in Kafka
        does not change it."""
        # When, at which epoch and in which version the group last refreshed its topic metadata; this is not in any record.
        self._refresh_at_ms = self._refreshed_epoch = 0
        self._topics_version: int | None = None
        self._topics_hash = 0
        """The hash of the subscribed topics in that version; the one in the record can also have topics of a regular expression
        that was replaced since."""

    def __repr__(self) -> str:
        epochs = self.epochs
        return f"<ConsumerGroup {self.group_id} {self.state} epoch={epochs.group} members={len(self.members)}>"

    # --- what is known

    @property
    def epochs(self) -> Epochs:
        """The epochs of the group."""
        return self._epochs.value

    @property
    def index(self) -> MemberIndex:
        """The aggregates of the members."""
        if self._index is None:  # reset, because a write was undone
            self._index = MemberIndex()
            for member in self.members.values():
                self._index.add(member)
            for resolved in self.regexes.values():
                self._index.counts.add_matches(resolved)
        return self._index

    @property
    def state(self) -> str:  # type: ignore[override]
        """See Group."""
        epochs = self.epochs
        if not len(self.members):
            return ConsumerGroupState.EMPTY
        if epochs.group > epochs.assignment:
            return ConsumerGroupState.ASSIGNING
        stable = self.index.stable_at.get(epochs.assignment, 0) == len(self.members)
        return ConsumerGroupState.STABLE if stable else ConsumerGroupState.RECONCILING

    @property
    def is_empty(self) -> bool:
        """See Group."""
        return not len(self.members)

    @property
    def counts(self) -> SubscriptionCounts:
        """The subscription counts."""
        return self.index.counts

    @property
    def subscription_type(self) -> SubscriptionType:
        """Do all members have the same subscription? Source: ``ConsumerGroup.subscriptionType``."""
        of_members = self._type_of_members
        return self.counts.subscription_type(len(self.members)) if of_members is None else of_members

    def member(self, member_id: str) -> ConsumerMember:
        """The member. Raises ApiError (UNKNOWN_MEMBER_ID)."""
        member = self.members.get(member_id)
        if member is None:
            raise self.unknown_member(member_id)
        return member

    def unknown_member(self, member_id: str) -> ApiError:
        """The error for a member that does not exist."""
        return ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}.")

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        """The static member with ``instance_id``, or None. Raises ApiError (UNKNOWN_MEMBER_ID) if it is gone, and only its last
        instance id with it."""
        member_id = None if instance_id is None else self.index.static.get(instance_id)
        return None if member_id is None else self.member(member_id)

    def target(self, member_id: str, instance_id: str | None = None) -> Target:
        """The target assignment of the member; of a static member, that of its instance id."""
        if instance_id is not None:
            member_id = self.index.static.get(instance_id, "")
        return self.targets.get(member_id, NO_TARGET)

    def partition_epoch(self, topic_id: uuid.UUID, partition: int) -> int:
        """The member epoch at which a partition is owned; FREE if it is not."""
        return self.index.partition_epochs.get(topic_id, _NONE).get(partition, FREE)

    def subscribed_topics(self, member: ConsumerMember) -> frozenset[str]:
        """The topics that ``member`` subscribes to by name, and those that its regular expression matched."""
        resolved = self.regexes.get(member.topic_regex) if member.topic_regex else None
        return member.topics if resolved is None else member.topics | resolved.topics

    def has_metadata_expired(self, now_ms: int) -> bool:
        """Must the group refresh its topic metadata? Also true if the write of the last refresh failed."""
        return self._topics_have_changed() or now_ms >= self._refresh_at_ms or self.epochs.group < self._refreshed_epoch

    def _topics_have_changed(self) -> bool:
        """Have any of the subscribed topics?"""
        topics, seen = self.context.topics, self._topics_version
        if (
            seen is not None
            and seen != topics.view.version
            and topics.group_hash(self.counts.topics()) == self._topics_hash
        ):
            self._topics_version = topics.view.version
        return self._topics_version != topics.view.version

    def refreshed(self, now_ms: int, epoch: int, topics_hash: int) -> None:
        """Note that the group refreshed its topic metadata, whose hash is ``topics_hash``, and is at ``epoch`` then."""
        self._refresh_at_ms, self._refreshed_epoch = now_ms + REFRESH_INTERVAL_MS, epoch
        self._topics_version = self.context.topics.view.version
        self._topics_hash = topics_hash

    def resubscribed(self, topics_hash: int) -> None:
        """Note the hash of the topics to which the group is now subscribed, without a refresh, unless that is due."""
        if not self._topics_have_changed():
            self._topics_hash = topics_hash

    def named(self, partitions: Mapping[uuid.UUID, Iterable[int]]) -> tuple[tuple[str, int], ...]:
        """Convert topic ids to (topic name, partition) pairs, for events."""
        name_of = self.context.topics.view.topic_name
        named = [(name_of(topic_id) or str(topic_id), of_topic) for topic_id, of_topic in partitions.items()]
        return tuple((name, partition) for name, of_topic in named for partition in sorted(of_topic))

    def snapshot(self, pending: Iterable[UndoLog]) -> GroupSnapshot:
        """The group without the ``pending`` writes, oldest first."""
        logs = list(pending)
        members = [member for _, member in self.members.in_order_before(logs)]
        return GroupSnapshot(self._epochs.before(logs), members, dict(self.targets.in_order_before(logs)))

    # --- offsets

    def is_subscribed_to(self, topic: str) -> bool:
        """See Group."""
        return topic in self.counts.by_name or topic in self.counts.by_regex

    def validate_offset_commit(
        self, _ctx: HandlerContext, version: int, member_id: str, _instance_id: str | None, generation: int
    ) -> AcceptPartition | None:
        """See Group."""
        if generation < 0 and self.is_empty:
            return None
        member = self.member(member_id)
        if version < MEMBER_EPOCHS_FROM and not member.is_classic:
            why = "OffsetCommit version 9 or above must be used by members using the consumer group protocol"
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION, why)
        code = ErrorCode.ILLEGAL_GENERATION if member.is_classic else ErrorCode.STALE_MEMBER_EPOCH
        return _accept_at(member, generation, code)

    def validate_transactional_offset_commit(
        self, member_id: str, instance_id: str | None, generation: int
    ) -> AcceptPartition | None:
        """See Group. The error is ILLEGAL_GENERATION, because producers do not know STALE_MEMBER_EPOCH."""
        names_nobody = generation == NO_MEMBER_EPOCH and not member_id and instance_id is None
        if names_nobody or (generation < 0 and self.is_empty):
            return None
        return _accept_at(self.member(member_id), generation, ErrorCode.ILLEGAL_GENERATION)

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int, pending: Iterable[UndoLog] = ()) -> None:
        """See Group."""
        if member_id is None and member_epoch < 0:
            return
        if member_id is None:
            raise UnexpectedBrokerError("member_id is null, and member_epoch is not")
        member = values_before(self.members, pending).get(member_id, self.members.get(member_id))
        if member is None:
            raise self.unknown_member(member_id)
        if member_epoch != member.member_epoch:
            code = ErrorCode.ILLEGAL_GENERATION if member.is_classic else ErrorCode.STALE_MEMBER_EPOCH
            what = "generation id" if member.is_classic else "member epoch"
            why = f"The received {what} {member_epoch} does not match the expected member epoch {member.member_epoch}."
            raise ApiError(code, why)

    def validate_offset_delete(self) -> None:
        """See Group; offsets of topics without subscribers may always be deleted."""

    def expiration_base(self) -> Callable[[CommittedOffset], int] | None:
        """See Group."""
        return lambda committed: committed.commit_timestamp_ms

    # --- administration

    def validate_delete(self) -> None:
        """See Group."""
        if not self.is_empty:
            raise ApiError(ErrorCode.NON_EMPTY_GROUP, f"it has members: it is {self.state}")

    def tombstones(self) -> Sequence[TypedRecord]:
        """See Group."""
        return self.tombstones_but()

    def tombstones_but(self, replaced: str = "", by: str = "") -> Sequence[TypedRecord]:
        """The records that delete the group, after member ``replaced`` was replaced ``by`` another."""
        members = [by if member_id == replaced else member_id for member_id, _ in self.members.in_order()]
        group_id = self.group_id
        return [
            *(records.current_assignment_tombstone(group_id, member_id) for member_id in members),
            *(records.target_assignment_tombstone(group_id, member_id) for member_id in members),
            records.assignment_epoch_tombstone(group_id),
            *(records.member_tombstone(group_id, member_id) for member_id in members),
            *(records.regex_tombstone(group_id, regex) for regex, _ in self.regexes.in_order()),
            records.topics_tombstone(group_id),
            records.group_epoch_tombstone(group_id),
        ]

    # --- records

    def apply(self, record: TypedRecord) -> bool:  # noqa: C901, PLR0912 - one case for each type of record
        """Apply ``record`` to the tables; returns whether the group is deleted.

        Raises WireError for a tombstone that comes too early, which makes Kafka fail, too.
        """
        key, value = record.key, record.value
        match key:
            case stored.ConsumerGroupMetadataKey():
                if value is None:
                    self._require(not len(self.members), "the group", f"there are {len(self.members)} members")
                    self._require(not len(self.targets), "the group", f"{len(self.targets)} members have targets")
                    self._require(self.epochs.assignment == -1, "the group", "there is a target assignment")
                    return True
                self.set_epochs(group=value.epoch, metadata_hash=value.metadata_hash)
            case stored.ConsumerGroupPartitionMetadataKey():
                self.set_epochs(has_topics_record=value is not None)
            case stored.ConsumerGroupMemberMetadataKey():
                if value is None:
                    member = self.members.get(key.member_id)
                    if member is not None:
                        what = f"member {key.member_id}"
                        self._require(member.member_epoch == -1, what, "there is a current assignment of it")
                        self._require(key.member_id not in self.targets, what, "there is a target assignment of it")
                        self.members.pop(key.member_id)
                else:
                    self.members.put(key.member_id, self._member_or_new(key.member_id).with_metadata(value))
            case stored.ConsumerGroupTargetAssignmentMetadataKey():
                if value is None:
                    self._require(
                        not len(self.targets), "the target assignment", f"{len(self.targets)} members have one"
                    )
                    self.set_epochs(assignment=-1, assigned_at_ms=0)
                else:
                    self.set_epochs(assignment=value.assignment_epoch, assigned_at_ms=value.assignment_timestamp_ms)
            case stored.ConsumerGroupTargetAssignmentMemberKey():
                if value is None:
                    self.targets.pop(key.member_id)
                else:
                    self.targets.put(key.member_id, _target(value))
            case stored.ConsumerGroupCurrentMemberAssignmentKey():
                if value is not None:
                    self.members.put(key.member_id, self._member_or_new(key.member_id).with_assignment(value))
                elif key.member_id in self.members:
                    self.members.put(key.member_id, self.members[key.member_id].without_assignment())
            case _:  # ConsumerGroupRegularExpressionKey
                if value is None:
                    self.regexes.pop(key.regular_expression)
                else:
                    resolved = ResolvedRegex(frozenset(value.topics), value.version, value.timestamp_ms)
                    self.regexes.put(key.regular_expression, resolved)
        return False

    def _require(self, holds: bool, what: str, why_not: str) -> None:
        if not holds:
            raise WireError(f"it removes {what} of consumer group {self.group_id}, and {why_not}")

    def _member_or_new(self, member_id: str) -> ConsumerMember:
        return self.members.get(member_id) or ConsumerMember(member_id=member_id)

    def set_epochs(self, **changes: Any) -> None:
        """Replace some fields of the epochs."""
        self._epochs.set(self.epochs._replace(**changes))

    def _member_changed(self, before: ConsumerMember | None, after: ConsumerMember | None) -> None:
        self._type_of_members = None
        if self._index is not None:
            if before is not None:
                self._index.remove(before)
            if after is not None:
                self._index.add(after)
            elif before is not None and before.instance_id is not None:
                self._index.static.pop(before.instance_id, None)

    def _regex_changed(self, before: ResolvedRegex | None, after: ResolvedRegex | None) -> None:
        if self._index is not None:
            if before is not None:
                self._type_of_members = self.subscription_type
                self._index.counts.add_matches(before, -1)
            if after is not None:
                self._index.counts.add_matches(after)

    def _restored(self) -> None:
        self._index = self._type_of_members = None


def _target(value: stored.ConsumerGroupTargetAssignmentMemberValue) -> Target:
    by_topic = {
        topic.topic_id or uuid.UUID(int=0): tuple(copied_set(dict.fromkeys(topic.partitions)).listed())
        for topic in value.topic_partitions
    }
    return {topic_id: by_topic[topic_id] for topic_id in hash_map_order(by_topic, uuid_hash)}


def _accept_at(member: ConsumerMember, generation: int, code: ErrorCode) -> AcceptPartition | None:
    """The check of each partition that ``member`` commits at that epoch; None accepts all. Raises ApiError (``code``).

    An older epoch is accepted for partitions that the member has owned since that epoch (KIP-1251).
    """
    if generation == member.member_epoch:
        return None
    what = "generation id" if member.is_classic else "member epoch"
    if generation > member.member_epoch:
        why = f"Received {what} {generation} is newer than current member epoch {member.member_epoch}."
        raise ApiError(code, why)

    def accept(topic: str, topic_id: uuid.UUID | None, partition: int) -> None:
        key = topic_id or uuid.UUID(int=0)
        pending = member.revoking.get(key, _NONE).get(partition)
        epoch = member.assigned.get(key, _NONE).get(partition, pending)
        if epoch is None:
            raise ApiError(code, f"Partition {topic}-{partition} is not assigned or pending revocation for member.")
        if generation < epoch:
            where = f"assignment epoch {epoch} for partition {topic}-{partition}"
            raise ApiError(code, f"Received {what} {generation} is older than {where}.")

    return accept


_NONE: Mapping[int, int] = {}


def _ignore(_: Target | None, __: Target | None) -> None:
    """Targets have no aggregates."""


def _nothing() -> None:
    """Targets have no aggregates."""
