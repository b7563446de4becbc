"""Actions on groups from outside of the protocol: a forced rebalance, a session that ends at once, a fenced member.

Kafka has no such tools for classic groups; what follows is what follows there when the same happens by itself.
"""

from collections.abc import Callable

from groupcoord.coordinator.classic import static
from groupcoord.coordinator.classic.group import ClassicGroup
from groupcoord.coordinator.classic.states import GroupState
from groupcoord.coordinator.coordinator import GroupCoordinator
from groupcoord.coordinator.errors import UnexpectedBrokerError
from groupcoord.coordinator.group_shard import GroupCoordinatorShard, GroupShard
from groupcoord.coordinator.runtime.state_machine import EMPTY_RESULT, CoordinatorResult
from groupcoord.core.api_error import ApiError
from groupcoord.core.effects import NO_CONNECTION, Call
from groupcoord.core.handler_context import HandlerContext
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.messages import JoinGroupRequest

_JOIN_GROUP = APIS[ApiKey.JOIN_GROUP]


def force_rebalance(coordinator: GroupCoordinator, ctx: HandlerContext, group_id: str, reason: str) -> None:
    """Ask all members to join again, because of ``reason``.

    Raises ValueError for a group without members, and for one that asks them already.
    """
    shard, group = _group(coordinator, group_id)
    if group.state is GroupState.PREPARING_REBALANCE:
        raise ValueError(f"group {group_id!r} is waiting for its members to join already")
    if not len(group.members):
        raise ValueError(f"group {group_id!r} has no members")
    _run(shard, ctx, lambda _: group.prepare_rebalance(ctx, reason))


def expire_member(coordinator: GroupCoordinator, ctx: HandlerContext, group_id: str, member_id: str) -> None:
    """Let the session of ``member_id`` run out now; also the time of a client that was only given that id.

    Raises ValueError for a member that has no session that could run out: it is unknown, or waits for an answer.
    """
    shard, group = _group(coordinator, group_id)
    member = group.members.get(member_id)
    if member is None and member_id not in group.pending_join_members:
        known = ", ".join(map(repr, group.members)) or "none"
        raise ValueError(f"group {group_id!r} has no member {member_id!r}; its members: {known}")
    if member is not None and member.has_satisfied_heartbeat:
        raise ValueError(f"member {member_id!r} waits for an answer, and while it does, its session does not run out")
    shard.machine.timers.fire(group.session_key(member_id), ctx)


def fence_instance(coordinator: GroupCoordinator, ctx: HandlerContext, group_id: str, instance_id: str) -> None:
    """Let another member take ``instance_id``: one that offers and asks the same and is never heard of again.

    The member that had the id is fenced. The newcomer's session runs out in its time. Raises ValueError if no member has it.
    Source: KIP-345.
    """
    shard, group = _group(coordinator, group_id)
    old = group.static_member(instance_id)
    if old is None:
        known = ", ".join(map(repr, group.static_members)) or "none"
        raise ValueError(f"group {group_id!r} has no static member {instance_id!r}; its static members: {known}")
    call = Call(NO_CONNECTION, 0, _JOIN_GROUP, _JOIN_GROUP.max_version, old.client_id, old.client_host)
    request = JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=old.session_timeout_ms,
        rebalance_timeout_ms=old.rebalance_timeout_ms,
        member_id="",
        group_instance_id=instance_id,
        protocol_type=old.protocol_type,
    )
    member_id = f"{instance_id}-{shard.machine.new_uuid()}"
    _run(shard, ctx, lambda _: static.replace(ctx, call, request, group, old, member_id, old.protocols))


def _run(
    shard: GroupShard, ctx: HandlerContext, operation: Callable[[GroupCoordinatorShard], CoordinatorResult]
) -> None:
    def without_error(machine: GroupCoordinatorShard) -> CoordinatorResult:
        try:
            return operation(machine)
        except UnexpectedBrokerError:
            return EMPTY_RESULT

    shard.run(ctx, without_error)


def _group(coordinator: GroupCoordinator, group_id: str) -> tuple[GroupShard, ClassicGroup]:
    """Raises ValueError where there is no such classic group here."""
    shard = coordinator.shard_of(group_id)
    try:
        shard.require_active()
    except ApiError as refusal:
        raise ValueError(refusal.message) from refusal
    group = shard.machine.classic_group(group_id)
    if group is None:
        known = ", ".join(repr(name) for other in coordinator.shards for name in other.machine.groups) or "none"
        raise ValueError(f"there is no group {group_id!r}; groups: {known}")
    return shard, group
