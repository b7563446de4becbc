"""SyncGroup: the leader brings the assignment, everybody is told theirs. Source: ``GroupMetadataManager.classicGroupSync``."""

from collections.abc import Mapping

from groupcoord.coordinator import records
from groupcoord.coordinator.classic import rebalance
from groupcoord.coordinator.classic.group import CONSUMER_PROTOCOL_TYPE, ClassicGroup
from groupcoord.coordinator.classic.member import Member
from groupcoord.coordinator.classic.states import GroupState
from groupcoord.coordinator.classic.validate import current_generation, known_member
from groupcoord.coordinator.errors import UnexpectedBrokerError, emit_refusal, response_error
from groupcoord.coordinator.events import AssignmentReceived, Owners
from groupcoord.coordinator.shard import Shard
from groupcoord.core.api_error import ApiError
from groupcoord.core.effects import Call
from groupcoord.core.handler_context import HandlerContext
from groupcoord.protocol.consumer_protocol import read_assignment
from groupcoord.protocol.errors import ErrorCode, WireError
from groupcoord.protocol.messages import SyncGroupRequest, SyncGroupResponse

PROTOCOL_REQUIRED_FROM = 5  # KIP-559


def sync_group(shard: Shard, ctx: HandlerContext, call: Call, request: SyncGroupRequest) -> None:
    """Answer ``call``, now or when the leader's assignment is stored."""
    try:
        group, member = _check(shard, call, request)
    except ApiError as refusal:
        emit_refusal(ctx, call, request.group_id, request.member_id, refusal)
        ctx.reply(call, SyncGroupResponse(error_code=refusal.code, assignment=b""))
        return
    group.pending_sync_members.discard(member.member_id)
    if not group.pending_sync_members:
        shard.cancel(group.sync_key)
    if group.state is GroupState.STABLE:
        ctx.reply(
            call,
            SyncGroupResponse(
                protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=member.assignment
            ),
        )
        return
    member.parked_sync = call
    if group.leader_id == member.member_id:
        try:
            _store_assignment(shard, ctx, group, member, request)
        except UnexpectedBrokerError as problem:
            emit_refusal(ctx, call, request.group_id, request.member_id, problem)
            ctx.reply(call, SyncGroupResponse(error_code=problem.code, assignment=b""))
            group.answered_already(call)
            return

    def failed(later: HandlerContext, error: ErrorCode) -> None:
        """Appends that were before it failed, or take too long, and it still waits for the leader: it is refused."""
        if member.parked_sync is call:
            later.reply(call, SyncGroupResponse(error_code=response_error(error), assignment=b""))
            group.answered_already(call)

    if not shard.is_idle:
        shard.store(ctx, (), lambda _: None, failed)


def _check(shard: Shard, call: Call, request: SyncGroupRequest) -> tuple[ClassicGroup, Member]:
    """Raises Refused, in Kafka's order."""
    if call.version >= PROTOCOL_REQUIRED_FROM and (request.protocol_type is None or request.protocol_name is None):
        name = "protocol_type" if request.protocol_type is None else "protocol_name"
        raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"{name} is null, which v5 does not allow")
    if not request.group_id:
        raise ApiError(ErrorCode.INVALID_GROUP_ID, "group_id is empty")
    group = shard.groups.get(request.group_id)
    if group is None or group.state is GroupState.EMPTY:
        what = "there is no group" if group is None else "nobody is in group"
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"{what} {request.group_id!r}")
    member = known_member(group, request.member_id, request.group_instance_id)
    current_generation(group, request.generation_id)
    for field, asked, actual in (
        ("protocol_type", request.protocol_type, group.protocol_type),
        ("protocol_name", request.protocol_name, group.protocol_name),
    ):
        if asked is not None and actual is not None and asked != actual:
            raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"{field} is {asked!r}, the group's is {actual!r}")
    if group.state is GroupState.PREPARING_REBALANCE:
        raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS, "the group is rebalancing: join again")
    return group, member


def _store_assignment(
    shard: Shard, ctx: HandlerContext, group: ClassicGroup, leader: Member, request: SyncGroupRequest
) -> None:
    """Members that the leader forgot get nothing; assignments of strangers are dropped; of two for one, the last counts."""
    given = {assignment.member_id: assignment.assignment for assignment in request.assignments}
    assignments = {member_id: given.get(member_id, b"") for member_id in group.members}
    generation = group.generation_id
    ctx.emit(
        AssignmentReceived,
        group=group.group_id,
        generation=generation,
        leader=leader.member_id,
        owners=_owners(group, assignments),
    )

    def is_current() -> bool:
        """Somebody may have joined while the record was on its way; then the syncs are answered already."""
        return group.state is GroupState.COMPLETING_REBALANCE and group.generation_id == generation

    def stored(later: HandlerContext) -> None:
        if is_current():
            for member in group.members.values():
                member.assignment = assignments.get(member.member_id, b"")
            rebalance.answer_syncs(shard, later, group, ErrorCode.NONE)
            shard.move(later, group, GroupState.STABLE)

    def failed(later: HandlerContext, error: ErrorCode) -> None:
        if is_current():
            told = response_error(error)
            for member in group.members.values():
                member.assignment = b""
            rebalance.answer_syncs(shard, later, group, told)
            rebalance.prepare(shard, later, group, f"the assignment could not be stored: {error.name}")

    shard.store(ctx, (records.group(group, assignments),), stored, failed)


def _owners(group: ClassicGroup, assignments: Mapping[str, bytes]) -> Owners | None:
    """Who gets which partitions, for people; None if the bytes are not a consumer's assignment."""
    if group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        return None
    owners: dict[str, tuple[tuple[str, int], ...]] = {}
    for member_id, data in assignments.items():
        try:
            assigned = read_assignment(data).assigned_partitions if data else ()
        except WireError:
            return None
        owners[member_id] = tuple((topic.topic, number) for topic in assigned for number in topic.partitions)
    return owners
