"""Finds the member that sent a request, and validates its ids and epoch. Sources: ``GroupMetadataManager``:
``getOrMaybeSubscribeDynamicConsumerGroupMember``, ``getOrMaybeSubscribeStaticConsumerGroupMember``, ``throwIf…``.
"""

import base64
import dataclasses
import uuid
from collections.abc import Callable

from groupcoord.coordinator.consumer import records
from groupcoord.coordinator.consumer.consumer_group_sessions import ConsumerGroupSessions
from groupcoord.coordinator.consumer.member import AWAY_EPOCH, JOIN_EPOCH, ConsumerMember
from groupcoord.coordinator.consumer.reconciliation import Owned
from groupcoord.core.api_error import ApiError
from groupcoord.core.effects import TypedRecord
from groupcoord.protocol.errors import ErrorCode


def new_member_id(new_uuid: Callable[[], str]) -> str:
    """A random member id: 22 characters of base64, the first not a dash (``Uuid.randomUuid``)."""
    while (text := base64.urlsafe_b64encode(uuid.UUID(new_uuid()).bytes).decode().rstrip("=")).startswith("-"):
        pass
    return text


def require_room(group: ConsumerGroupSessions, member_id: str) -> None:
    """Raises ApiError (GROUP_MAX_SIZE_REACHED) for a new member of a full group."""
    limit = group.context.config.group_consumer_max_size
    if len(group.members) >= limit and member_id not in group.members:
        why = f"The consumer group has reached its maximum capacity of {limit} members."
        raise ApiError(ErrorCode.GROUP_MAX_SIZE_REACHED, why)


def dynamic_member(group: ConsumerGroupSessions, member_id: str, *, joins: bool) -> ConsumerMember:
    """The dynamic member; a new one if it ``joins``. Raises ApiError (UNKNOWN_MEMBER_ID)."""
    return group.members.get(member_id) or ConsumerMember(member_id=member_id) if joins else group.member(member_id)


def static_member(
    group: ConsumerGroupSessions,
    member_id: str,
    instance_id: str,
    written: list[TypedRecord],
    *,
    joins: bool,
    is_classic: bool = False,
) -> ConsumerMember:
    """The static member with ``instance_id``. A member that ``joins`` replaces the former one, with records in ``written``.

    Raises ApiError: UNRELEASED_INSTANCE_ID, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID. A member of the classic protocol may
    replace another, and be replaced, at any time.
    """
    existing = group.static_member(instance_id)
    if not joins:
        return require_instance(existing, member_id, instance_id)
    if existing is None:
        return dynamic_member(group, member_id, joins=True)
    if not is_classic and not existing.is_classic and existing.member_epoch != AWAY_EPOCH:
        why = (
            f"Static member {member_id} with instance id {instance_id} cannot join the group because the instance id is "
            f"owned by {existing.member_id} member."
        )
        raise ApiError(ErrorCode.UNRELEASED_INSTANCE_ID, why)
    member = dataclasses.replace(existing, member_id=member_id, member_epoch=JOIN_EPOCH, previous_member_epoch=0)
    written += group.removal(existing.member_id)
    written.append(records.member_metadata(group.group_id, member))
    written.append(records.target_assignment(group.group_id, member_id, group.target(existing.member_id)))
    written.append(records.current_assignment(group.group_id, member))
    return member


def require_instance(existing: ConsumerMember | None, member_id: str, instance_id: str) -> ConsumerMember:
    """The static member. Raises ApiError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID."""
    if existing is None:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if existing.member_id != member_id:
        why = f"Static member {member_id} with instance id {instance_id} was fenced by member {existing.member_id}."
        raise ApiError(ErrorCode.FENCED_INSTANCE_ID, why)
    return existing


def require_epoch(member: ConsumerMember, epoch: int, owned: Owned) -> None:
    """Raises ApiError (FENCED_MEMBER_EPOCH) unless ``epoch`` is valid for the member.

    Its previous epoch is valid if it owns no more than its assignment: then it missed the last response.
    """
    if epoch in (JOIN_EPOCH, member.member_epoch):
        return
    is_greater = epoch > member.member_epoch
    if not is_greater and epoch == member.previous_member_epoch and _has_all(member, owned):
        return
    why = (
        f"The consumer group member has a {'greater' if is_greater else 'smaller'} member epoch ({epoch}) than the one known "
        f"by the group coordinator ({member.member_epoch}). The member must abandon all its partitions and rejoin."
    )
    raise ApiError(ErrorCode.FENCED_MEMBER_EPOCH, why)


def _has_all(member: ConsumerMember, owned: Owned) -> bool:
    return owned is not None and all(
        topic_id in member.assigned and all(partition in member.assigned[topic_id] for partition in partitions)
        for topic_id, partitions in owned
    )
