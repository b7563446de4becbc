"""Computes the next assignment of a member on the way to its target assignment (``CurrentAssignmentBuilder``).

A member first revokes the partitions that are not in its target, then gets those that are free. A partition that a member owns,
or still has to revoke, is not assigned to another member.
"""

import dataclasses
import uuid
from collections.abc import Callable, Container, Mapping, Sequence

from groupcoord.coordinator.consumer.member import NOTHING, Assigned, ConsumerMember, MemberState, Target
from groupcoord.core.api_error import ApiError
from groupcoord.core.java_hash_order import hash_map_order, hash_set_order, uuid_hash
from groupcoord.core.java_map import JavaMap, copied_set, int_order, slots_of_copy
from groupcoord.protocol.errors import ErrorCode

FREE = -1
"""The epoch of a partition without an owner."""

PartitionEpoch = Callable[[uuid.UUID, int], int]
"""Returns the member epoch at which a partition of a topic is owned; FREE if it is not."""

Owned = Sequence[tuple[uuid.UUID, Sequence[int]]] | None
"""The owned partitions that a member reports, by topic id; None if the request leaves them out."""


def reconcile(
    member: ConsumerMember,
    target_epoch: int,
    target: Target,
    *,
    subscribed_ids: Container[uuid.UUID],
    has_subscription_changed: bool,
    partition_epoch: PartitionEpoch,
    owned: Owned,
) -> ConsumerMember:
    """Take ``member`` one step towards ``target``; returns the same object if there is none.

    Raises ApiError (FENCED_MEMBER_EPOCH) for a member in an unknown state, unless it reports that it owns nothing.
    """
    match member.state:
        case MemberState.STABLE if member.member_epoch == target_epoch:
            return _revoke_unsubscribed(member, subscribed_ids, owned) if has_subscription_changed else member
        case MemberState.UNREVOKED_PARTITIONS if _owns(owned, member.revoking):
            return _revoke_unsubscribed(member, subscribed_ids, owned) if has_subscription_changed else member
        case MemberState.UNKNOWN:
            if owned is None or owned:
                why = "The consumer group member is in a unknown state. The member must abandon all its partitions and rejoin."
                raise ApiError(ErrorCode.FENCED_MEMBER_EPOCH, why)
            return _next(member, target_epoch, target_epoch, target, subscribed_ids, partition_epoch, owned)
    return _next(member, member.member_epoch, target_epoch, target, subscribed_ids, partition_epoch, owned)


_NONE: Mapping[int, int] = {}


def _owns(owned: Owned, partitions: Assigned) -> bool:
    """May the member still own some of ``partitions``? If it does not report, it may."""
    if owned is None:
        return True
    return any(partition in partitions.get(topic_id, _NONE) for topic_id, of_topic in owned for partition in of_topic)


def _revoke_unsubscribed(member: ConsumerMember, subscribed_ids: Container[uuid.UUID], owned: Owned) -> ConsumerMember:
    """Revoke partitions of topics to which the member is no longer subscribed; its epoch stays."""
    gone = {topic_id: of_topic for topic_id, of_topic in member.assigned.items() if topic_id not in subscribed_ids}
    if not gone:
        return member
    copied = hash_map_order(member.assigned, uuid_hash, slots_of_copy(len(member.assigned)))
    kept = {topic_id: member.assigned[topic_id] for topic_id in copied if topic_id not in gone}
    all_revoking: JavaMap[uuid.UUID, Mapping[int, int]] = JavaMap(uuid_hash, slots_of_copy(len(member.revoking)))
    for topic_id, of_topic in member.revoking.items():
        all_revoking.put(topic_id, of_topic)
    for topic_id, of_topic in gone.items():
        before = all_revoking.computed(topic_id, dict)
        all_revoking.replace(topic_id, _merged(before, of_topic) if before else of_topic)
    revoking = dict(all_revoking.items())
    if _owns(owned, revoking):
        return dataclasses.replace(
            member,
            state=MemberState.UNREVOKED_PARTITIONS,
            previous_member_epoch=member.member_epoch,
            assigned=kept,
            revoking=revoking,
        )
    return dataclasses.replace(member, previous_member_epoch=member.member_epoch, assigned=kept)


def _merged(before: Mapping[int, int], more: Mapping[int, int]) -> Mapping[int, int]:
    both = {**before, **more}
    return {one: both[one] for one in int_order(both, slots_of_copy(len(before)))}


def _next(
    member: ConsumerMember,
    member_epoch: int,
    target_epoch: int,
    target: Target,
    subscribed_ids: Container[uuid.UUID],
    partition_epoch: PartitionEpoch,
    owned: Owned,
) -> ConsumerMember:
    has_unreleased = False
    kept: dict[uuid.UUID, dict[int, int]] = {}
    revoked: dict[uuid.UUID, dict[int, int]] = {}
    added: dict[uuid.UUID, list[int]] = {}
    slots: dict[uuid.UUID, int] = {}
    for topic_id in hash_set_order(target, uuid_hash, more=member.assigned):
        current = member.assigned.get(topic_id, _NONE)
        wanted = target.get(topic_id, ()) if topic_id in subscribed_ids else ()
        as_set = frozenset(wanted)
        slots[topic_id] = slots_of_copy(len(current))
        copied = int_order(current, slots[topic_id])
        staying = {partition: current[partition] for partition in copied if partition in as_set}
        if staying:
            kept[topic_id] = staying
        if len(staying) < len(current):
            revoked[topic_id] = {partition: current[partition] for partition in copied if partition not in as_set}
        if len(staying) < len(as_set):
            own = member.revoking.get(topic_id, _NONE)
            missing = [partition for partition in copied_set(wanted).listed() if partition not in staying]
            free = [
                partition for partition in missing if partition in own or partition_epoch(topic_id, partition) == FREE
            ]
            has_unreleased = has_unreleased or len(free) < len(missing)
            if free:
                added[topic_id] = free
    if revoked and _owns(owned, revoked):
        return dataclasses.replace(
            member,
            state=MemberState.UNREVOKED_PARTITIONS,
            member_epoch=member_epoch,
            previous_member_epoch=member.member_epoch,
            assigned=_in_order(kept),
            revoking=_in_order(revoked),
        )
    assigned: JavaMap[uuid.UUID, Mapping[int, int]] = JavaMap(uuid_hash)
    for topic_id, of_topic in kept.items():
        assigned.put(topic_id, of_topic)
    for topic_id in hash_map_order(added, uuid_hash):
        had = assigned.computed(topic_id, dict)
        table = slots[topic_id] if had else 16
        both = {**had, **dict.fromkeys(added[topic_id], target_epoch)}
        assigned.replace(topic_id, {partition: both[partition] for partition in int_order(both, table)})
    return dataclasses.replace(
        member,
        state=MemberState.UNRELEASED_PARTITIONS if has_unreleased else MemberState.STABLE,
        member_epoch=target_epoch,
        previous_member_epoch=member.member_epoch,
        assigned=dict(assigned.items()),
        revoking=NOTHING,
    )


def _in_order(by_topic: dict[uuid.UUID, dict[int, int]]) -> Assigned:
    return {topic_id: by_topic[topic_id] for topic_id in hash_map_order(by_topic, uuid_hash)}
