"""MemberUpdate: applies a join or heartbeat of a member to its consumer group, and collects the records in Kafka's order.

Shared by ConsumerGroupHeartbeat and by JoinGroup of classic members. Sources: ``GroupMetadataManager``:
``consumerGroupHeartbeat``, ``classicGroupJoinToConsumerGroup``, ``maybeUpdateRegularExpressions``,
``updateSubscriptionMetadata``, ``maybeUpdateTargetAssignment``, ``maybeReconcile``; ``TargetAssignmentBuilder``.
"""

import enum
import uuid
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from groupcoord.assignors.server_side import (
    SERVER_ASSIGNORS,
    GroupSpec,
    MemberSubscription,
    PartitionAssignorError,
    SubscriptionType,
)
from groupcoord.coordinator.consumer import records, regular_expressions
from groupcoord.coordinator.consumer.consumer_group_sessions import REBALANCE, ConsumerGroupSessions
from groupcoord.coordinator.consumer.member import NO_TARGET, ConsumerMember, MemberState, Target
from groupcoord.coordinator.consumer.member_aggregates import SubscriptionCounts
from groupcoord.coordinator.consumer.reconciliation import Owned, reconcile
from groupcoord.coordinator.error_mapping import UnexpectedBrokerError
from groupcoord.coordinator.events import (
    ConsumerMemberJoined,
    GroupEpochBumped,
    GroupEvent,
    MemberReconciled,
    Owners,
    StaticMemberReplaced,
    SubscriptionChanged,
    TargetAssignmentComputed,
)
from groupcoord.coordinator.topics_view import TopicsView
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import TypedRecord
from groupcoord.core.java_hash_order import compare_key, hash_order, hash_set_order, string_hash


class _RegexChange(enum.Enum):
    """How the regular expressions have changed (``UpdateRegularExpressionStatus``)."""

    NONE = "no change"
    UPDATED = "updated"
    RESOLVED = "updated and resolved"


class TargetOfMember(NamedTuple):
    """The target assignment of a member at ``epoch``."""

    epoch: int
    partitions: Target


class MemberUpdate:
    """One request of one member: ``member`` is the member before the request, ``updated`` after it, and ``written`` are the
    records that store the change.

    The tables of ``group`` do not change before the records are applied.
    """

    def __init__(
        self, ctx: HandlerContext, group: ConsumerGroupSessions, member: ConsumerMember, written: list[TypedRecord]
    ) -> None:
        self.ctx = ctx
        self.group = group
        self.member = self.updated = member
        self.written = written
        self.group_epoch = group.epochs.group
        self._events: list[tuple[type[GroupEvent], Mapping[str, Any]]] = []
        self._kind: SubscriptionType | None = None

    # --- 1. the subscription

    def subscribe(self, updated: ConsumerMember, *, is_classic_join: bool = False) -> bool:
        """Set the new fields of the member; returns whether its subscription has changed.

        Raises ApiError (INVALID_REGULAR_EXPRESSION).
        """
        group, member = self.group, self.member
        self.updated = updated
        names_changed = updated.topics != member.topics
        if updated is not member and updated != member:
            self.written.append(records.member_metadata(group.group_id, updated))
            self._tell_subscription(updated, names_changed=names_changed)
        regex_change = self._update_regex(updated)
        changed = names_changed or regex_change is not _RegexChange.NONE
        bumps = changed if is_classic_join else names_changed or regex_change is _RegexChange.RESOLVED
        if bumps or group.has_metadata_expired(self.ctx.now_ms):
            self._update_topics(bumps=bumps)
        elif regex_change is _RegexChange.UPDATED:
            group.resubscribed(group.context.topics.group_hash(self._counts().topics()))
        return changed

    def _tell_subscription(self, updated: ConsumerMember, *, names_changed: bool) -> None:
        member, old = self.member, self.group.static_member(updated.instance_id)
        topics, regex = tuple(sorted(updated.topics)), updated.topic_regex or None
        if old is not None and old.member_id != updated.member_id:
            self._tell(
                StaticMemberReplaced,
                instance_id=updated.instance_id,
                old_member=old.member_id,
                new_member=updated.member_id,
                rebalances=names_changed,
            )
        elif updated.member_id not in self.group.members:
            self._tell(
                ConsumerMemberJoined,
                member=updated.member_id,
                instance_id=updated.instance_id,
                client_id=updated.client_id,
                client_host=updated.client_host,
                topics=topics,
                regex=regex,
                assignor=updated.server_assignor,
                rack=updated.rack_id,
                protocol="classic" if updated.is_classic else "consumer",
            )
        elif names_changed or updated.topic_regex != member.topic_regex:
            self._tell(SubscriptionChanged, member=updated.member_id, topics=topics, regex=regex)

    def _update_regex(self, updated: ConsumerMember) -> _RegexChange:
        group, old, new = self.group, self.member.topic_regex, updated.topic_regex
        counts = group.counts.regexes
        change, is_new = _RegexChange.NONE, False
        if old != new:
            change = _RegexChange.UPDATED
            if old and counts.get(old) == 1:
                self.written.append(records.regex_tombstone(group.group_id, old))
            if new:
                if not counts.get(new):
                    regular_expressions.require_valid(new)
                    is_new = True
                elif group.regexes.get(new) is not None:
                    change = _RegexChange.RESOLVED
            elif old:
                change = _RegexChange.RESOLVED
        if is_new or counts:
            regular_expressions.schedule(self.ctx, group, old, new, is_new=is_new)
        return change

    def _update_topics(self, *, bumps: bool) -> None:
        """Refresh the subscribed topics of the group; if they or the subscriptions have changed, bump the group epoch."""
        group, updated = self.group, self.updated
        counts = self._counts()
        metadata_hash = group.context.topics.group_hash(counts.topics())
        is_new = updated.member_id not in group.members and group.static_member(updated.instance_id) is None
        self._kind = counts.subscription_type(len(group.members) + is_new)
        changed = metadata_hash != group.epochs.metadata_hash
        if bumps or changed:
            self.group_epoch += 1
            self.written.append(records.group_epoch(group.group_id, self.group_epoch, metadata_hash))
            self._tell(GroupEpochBumped, epoch=self.group_epoch, reason=self._why_bumped(bumps=bumps))
        group.refreshed(self.ctx.now_ms, self.group_epoch, metadata_hash)
        if group.epochs.has_topics_record:
            self.written.append(records.topics_tombstone(group.group_id))

    def _counts(self) -> SubscriptionCounts:
        """The subscriptions of the group with that of the updated member."""
        group, gone = self.group, self.member.topic_regex
        counts = group.counts.copy()
        if gone and gone != self.updated.topic_regex and counts.regexes.get(gone) == 1:
            resolved = group.regexes.get(gone)
            if resolved is not None:
                counts.add_matches(resolved, -1)
        counts.add(self.member, -1)
        counts.add(self.updated)
        return counts

    def _why_bumped(self, *, bumps: bool) -> str:
        name = self.updated.member_id
        if not bumps:
            return "topics that it subscribes to changed"
        return f"{name} subscribes to something else" if name in self.group.members else f"{name} joined"

    # --- 2. the target assignment

    def assign(self) -> TargetOfMember:
        """The target assignment of the member; computes that of the group first if it is outdated and due.

        Raises ApiError (UNKNOWN_SERVER_ERROR) if the assignor fails.
        """
        group, updated, now_ms = self.group, self.updated, self.ctx.now_ms
        epochs, config = group.epochs, group.context.config_of(group.group_id)
        interval_ms = config.assignment_interval_ms
        too_early = epochs.assigned_at_ms and interval_ms and now_ms < epochs.assigned_at_ms + interval_ms
        if epochs.assignment >= self.group_epoch or too_early:
            return TargetOfMember(epochs.assignment, group.target(updated.member_id, updated.instance_id))
        name = group.index.preferred_assignor(without=self.member, plus=updated)
        name = name or group.context.config.group_consumer_assignors[0]
        spec = self._spec()
        try:
            assigned = SERVER_ASSIGNORS[name](spec)
        except PartitionAssignorError as problem:
            why = f"Failed to compute a new target assignment for epoch {self.group_epoch}: {problem}"
            raise UnexpectedBrokerError(why) from problem
        for member_id in hash_order(spec.members):
            before, after = group.targets.get(member_id), assigned.get(member_id, NO_TARGET)
            if before is None or not _is_same(before, after):
                target = {topic_id: tuple(of_topic) for topic_id, of_topic in after.items()}
                self.written.append(records.target_assignment(group.group_id, member_id, target))
        self.written.append(records.assignment_epoch(group.group_id, self.group_epoch, now_ms))
        self._tell(TargetAssignmentComputed, epoch=self.group_epoch, assignor=name, owners=_owners(assigned, group))
        own = assigned.get(updated.member_id, NO_TARGET)
        return TargetOfMember(self.group_epoch, {topic_id: tuple(of_topic) for topic_id, of_topic in own.items()})

    def _spec(self) -> GroupSpec:
        group, updated = self.group, self.updated
        members = dict(group.members.in_order())
        replaced = group.static_member(updated.instance_id)
        inherited = updated.member_id
        if replaced is not None and replaced.member_id != updated.member_id:
            inherited = replaced.member_id
            members.pop(replaced.member_id, None)
        members[updated.member_id] = updated
        view = group.context.topics.view
        wanted: dict[frozenset[str], tuple[tuple[uuid.UUID, ...], int]] = {}
        subscriptions: dict[str, MemberSubscription] = {}
        for member_id, member in members.items():
            names = group.subscribed_topics(member)
            if names not in wanted:
                ids = [view.topic_id(name) for name in hash_set_order(sorted(names), string_hash)]
                known = tuple(topic_id for topic_id in ids if topic_id is not None)
                wanted[names] = known, len(ids) - len(known)
            topic_ids, unknown = wanted[names]
            subscriptions[member_id] = MemberSubscription(
                topic_ids=topic_ids,
                unknown_topics=unknown,
                assigned=group.targets.get(inherited if member is updated else member_id, NO_TARGET),
                instance_id=member.instance_id,
                rack_id=member.rack_id,
            )
        partitions = {
            topic_id: view.partition_count(view.topic_name(topic_id) or "") or 0
            for topic_ids, _ in wanted.values()
            for topic_id in topic_ids
        }
        kind = self._kind or group.subscription_type
        return GroupSpec(members=subscriptions, partitions=partitions, subscription_type=kind)

    # --- 3. the member's own assignment

    def reconcile(self, target: TargetOfMember, owned: Owned, *, has_subscription_changed: bool) -> ConsumerMember:
        """Take the member one step towards its target assignment. Raises ApiError (FENCED_MEMBER_EPOCH)."""
        group, member = self.group, self.updated
        if not has_subscription_changed and member.is_reconciled_to(target.epoch):
            return member
        after = reconcile(
            member,
            target.epoch,
            target.partitions,
            subscribed_ids=_SubscribedIds(group.context.topics.view, group.subscribed_topics(member)),
            has_subscription_changed=has_subscription_changed,
            partition_epoch=group.partition_epoch,
            owned=owned,
        )
        if after != member:
            self.updated = after
            self.written.append(records.current_assignment(group.group_id, after))
            self._tell(
                MemberReconciled,
                member=after.member_id,
                epoch=after.member_epoch,
                state=after.state.name,
                assigned=group.named(after.assigned),
                revoking=group.named(after.revoking),
            )
            if not after.is_classic:
                if after.state is MemberState.UNREVOKED_PARTITIONS:
                    group.start_revocation_timer(self.ctx, after)
                else:
                    group.cancel_timer(REBALANCE, after.member_id)
        return self.updated

    # --- events

    def _tell(self, event: type[GroupEvent], **fields: Any) -> None:
        self._events.append((event, fields))

    def emit(self, ctx: HandlerContext) -> None:
        """Emit the events, once the records are stored."""
        for event, fields in self._events:
            ctx.emit(event, group=self.group.group_id, **fields)


def _owners(assigned: Mapping[str, Mapping[uuid.UUID, Iterable[int]]], group: ConsumerGroupSessions) -> Owners:
    return {member_id: group.named(assigned[member_id]) for member_id in sorted(assigned, key=compare_key)}


def _is_same(one: Target, other: Mapping[uuid.UUID, Iterable[int]]) -> bool:
    return one is other or (
        one.keys() == other.keys() and all(set(one[topic_id]) == set(other[topic_id]) for topic_id in one)
    )


class _SubscribedIds:
    """The ids of the topics with these names. Source: ``TopicIds``."""

    def __init__(self, view: TopicsView, names: frozenset[str]) -> None:
        self._view, self._names = view, names

    def __contains__(self, topic_id: object) -> bool:
        return isinstance(topic_id, uuid.UUID) and self._view.topic_name(topic_id) in self._names
