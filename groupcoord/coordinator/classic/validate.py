"""The checks that several requests of a member share. Source: ``ClassicGroup.validateMember``."""

from groupcoord.coordinator.classic.member import Member
from groupcoord.coordinator.classic.members import ClassicGroupMembers
from groupcoord.core.api_error import ApiError
from groupcoord.protocol.errors import ErrorCode


def known_member(group: ClassicGroupMembers, member_id: str, instance_id: str | None) -> Member:
    """The member that a request speaks for.

    A mapped instance id with another member id is fenced, whether that member id is known or not (KIP-345).
    Raises ApiError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
    """
    if instance_id is not None:
        mapped = group.static_members.get(instance_id)
        if mapped is None:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"group_instance_id {instance_id!r} is of no member")
        if mapped != member_id:
            why = f"group_instance_id {instance_id!r} now belongs to member_id {mapped!r}, not {member_id!r}"
            raise ApiError(ErrorCode.FENCED_INSTANCE_ID, why)
    member = group.members.get(member_id)
    if member is None:
        waiting = " yet: it was handed out and has not joined" if member_id in group.pending_join_members else ""
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"member_id {member_id!r} is not in the group{waiting}")
    return member


def current_generation(group: ClassicGroupMembers, generation_id: int) -> None:
    """Raises ApiError: ILLEGAL_GENERATION unless ``generation_id`` is the group's."""
    if generation_id != group.generation_id:
        why = f"generation_id is {generation_id}, the group is at {group.generation_id}"
        raise ApiError(ErrorCode.ILLEGAL_GENERATION, why)
