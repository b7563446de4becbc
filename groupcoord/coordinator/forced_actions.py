"""Forced actions for tests and operators: rebalance a group, expire or fence a member, abort a transaction.

Kafka has no such operations; each has the same effects as the natural event in Kafka.
"""

from collections.abc import Callable, Iterable

from groupcoord.coordinator.classic.classic_group import ClassicGroup
from groupcoord.coordinator.classic.classic_group_state import GroupState
from groupcoord.coordinator.classic.join import replace_static_member
from groupcoord.coordinator.consumer.consumer_group import ConsumerGroup
from groupcoord.coordinator.consumer.consumer_group_sessions import SESSION
from groupcoord.coordinator.consumer.heartbeat import consumer_group_heartbeat
from groupcoord.coordinator.consumer.member import AWAY_EPOCH, JOIN_EPOCH, ConsumerMember
from groupcoord.coordinator.consumer.member_lookup import new_member_id
from groupcoord.coordinator.error_mapping import UnexpectedBrokerError
from groupcoord.coordinator.group_coordinator import GroupCoordinator
from groupcoord.coordinator.group_coordinator_shard import GroupCoordinatorShard, RuntimeShard
from groupcoord.coordinator.runtime.coordinator_shard import EMPTY_RESULT, CoordinatorResult
from groupcoord.coordinator.transaction.events import AbortReason
from groupcoord.coordinator.transaction.metadata import TransactionState
from groupcoord.coordinator.transaction.transaction_coordinator import TransactionCoordinator
from groupcoord.core.api_error import ApiError
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import NO_CONNECTION, Call
from groupcoord.core.timers import TimerKey
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.messages import ConsumerGroupHeartbeatRequest, JoinGroupRequest

_JOIN_GROUP = APIS[ApiKey.JOIN_GROUP]
_CONSUMER_GROUP_HEARTBEAT = APIS[ApiKey.CONSUMER_GROUP_HEARTBEAT]


def force_rebalance(coordinator: GroupCoordinator, ctx: HandlerContext, group_id: str, reason: str) -> None:
    """Start a rebalance because of ``reason``.

    Raises ValueError for a group without members, one that is preparing a rebalance, and a consumer group (KIP-848).
    """
    shard, group = _group(coordinator, group_id)
    if isinstance(group, ConsumerGroup):
        raise ValueError(
            f"group {group_id!r} is a consumer group: its coordinator assigns, and its members never join all together; "
            "partitions move when a member comes or goes, subscribes to something else, or a topic changes"
        )
    if group.state is GroupState.PREPARING_REBALANCE:
        raise ValueError(f"group {group_id!r} is waiting for its members to join already")
    if not len(group.members):
        raise ValueError(f"group {group_id!r} has no members")
    _run(shard, ctx, lambda _: group.prepare_rebalance(ctx, reason))


def expire_member(coordinator: GroupCoordinator, ctx: HandlerContext, group_id: str, member_id: str) -> None:
    """Expire the session of ``member_id`` now, which may also be a pending member.

    Raises ValueError if there is no session to expire: the member is unknown, or a request of it waits.
    """
    shard, group = _group(coordinator, group_id)
    if isinstance(group, ConsumerGroup):
        if member_id not in group.members:
            raise _no_member(group_id, member_id, (each.member_id for each in group.members.values()))
        shard.machine.timers.fire(TimerKey(SESSION, group_id, member_id), ctx)
        return
    member = group.members.get(member_id)
    if member is None and member_id not in group.pending_join_members:
        raise _no_member(group_id, member_id, group.members)
    if member is not None and member.has_satisfied_heartbeat:
        raise ValueError(f"member {member_id!r} waits for an answer, and while it does, its session does not run out")
    shard.machine.timers.fire(group.session_key(member_id), ctx)


def fence_instance(coordinator: GroupCoordinator, ctx: HandlerContext, group_id: str, instance_id: str) -> None:
    """Fence the static member with ``instance_id``: a new member with the same fields takes its place and stays silent.

    The session of the new member times out normally. Raises ValueError if no member has the instance id. In a consumer
    group, the old member appears to have left temporarily first (KIP-848). Source: KIP-345.
    """
    shard, group = _group(coordinator, group_id)
    if isinstance(group, ConsumerGroup):
        member = group.members.get(group.index.static.get(instance_id, ""))
        if member is None:
            raise _no_static_member(group_id, instance_id, group.index.static)
        _replace(shard, ctx, group_id, member)
        return
    old = group.static_member(instance_id)
    if old is None:
        raise _no_static_member(group_id, instance_id, group.static_members)
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
    _run(shard, ctx, lambda _: replace_static_member(ctx, call, request, group, old, member_id, old.protocols))


def _replace(shard: RuntimeShard, ctx: HandlerContext, group_id: str, old: ConsumerMember) -> None:
    """``old`` leaves temporarily, which releases its instance id, and a new member joins with the fields of ``old``."""
    api = _CONSUMER_GROUP_HEARTBEAT
    call = Call(NO_CONNECTION, 0, api, api.max_version, old.client_id, old.client_host)
    leaves = ConsumerGroupHeartbeatRequest(
        group_id=group_id, member_id=old.member_id, member_epoch=AWAY_EPOCH, instance_id=old.instance_id
    )
    joins = ConsumerGroupHeartbeatRequest(
        group_id=group_id,
        member_id=new_member_id(shard.machine.new_uuid),
        member_epoch=JOIN_EPOCH,
        instance_id=old.instance_id,
        rack_id=old.rack_id,
        rebalance_timeout_ms=old.rebalance_timeout_ms,
        subscribed_topic_names=tuple(sorted(old.topics)),
        subscribed_topic_regex=old.topic_regex,
        server_assignor=old.server_assignor,
        topic_partitions=(),
    )
    for request in (leaves, joins):
        consumer_group_heartbeat(shard, ctx, call, request)


def _no_member(group_id: str, member_id: str, members: Iterable[str]) -> ValueError:
    known = ", ".join(map(repr, members)) or "none"
    return ValueError(f"group {group_id!r} has no member {member_id!r}; its members: {known}")


def _no_static_member(group_id: str, instance_id: str, static: Iterable[str]) -> ValueError:
    known = ", ".join(map(repr, static)) or "none"
    return ValueError(f"group {group_id!r} has no static member {instance_id!r}; its static members: {known}")


def _run(
    shard: RuntimeShard, ctx: HandlerContext, operation: Callable[[GroupCoordinatorShard], CoordinatorResult]
) -> None:
    def without_error(machine: GroupCoordinatorShard) -> CoordinatorResult:
        try:
            return operation(machine)
        except UnexpectedBrokerError:
            return EMPTY_RESULT

    shard.run(ctx, without_error)


def _group(coordinator: GroupCoordinator, group_id: str) -> tuple[RuntimeShard, ClassicGroup | ConsumerGroup]:
    """The shard of a group, and the group. Raises ValueError if there is none."""
    shard = coordinator.shard_of(group_id)
    try:
        shard.require_active()
    except ApiError as refusal:
        raise ValueError(refusal.message) from refusal
    group = shard.machine.groups.get(group_id)
    if not isinstance(group, ClassicGroup | ConsumerGroup):
        known = ", ".join(repr(name) for machine in coordinator.runtime.machines() for name in machine.groups) or "none"
        raise ValueError(f"there is no group {group_id!r}; groups: {known}")
    return shard, group


def abort_transaction(coordinator: TransactionCoordinator, ctx: HandlerContext, transactional_id: str) -> None:
    """Abort the ongoing transaction of ``transactional_id`` as a timeout does: its producer is fenced.

    Raises ValueError if the id is not coordinated here or unknown, or if its transaction is not ongoing or is being stored.
    """
    shard = coordinator.runtime.shard_of(transactional_id)
    if shard.partition not in coordinator.runtime.deleted:  # a deleted partition has no transactional ids
        try:
            shard.require_active()
        except ApiError as refusal:
            raise ValueError(refusal.message) from refusal
    metadata = shard.machine.transactions.get(transactional_id)
    if metadata is None:
        names = (repr(name) for machine in coordinator.runtime.machines() for name in machine.transactions)
        known = ", ".join(sorted(names)) or "none; a producer has to be initialised with one first"
        raise ValueError(f"there is no transactional id {transactional_id!r}; transactional ids: {known}")
    state = metadata.data.state
    if metadata.pending is not None:
        raise ValueError(f"the last change of {transactional_id!r}, in state {state.value}, is still being stored")
    if state is not TransactionState.ONGOING:
        raise ValueError(f"only an ongoing transaction can be aborted; that of {transactional_id!r} is {state.value}")
    try:
        shard.run(ctx, lambda machine: machine.abort(ctx, metadata, AbortReason.FORCED, lambda _later, _error: None))
    except ApiError as refusal:
        raise ValueError(f"there is no producer id with which {transactional_id!r} could go on: {refusal}") from refusal
