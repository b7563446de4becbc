"""The SyncGroup handler of classic groups (``GroupMetadataManager.classicGroupSync``)."""

from collections.abc import Mapping

from groupcoord.coordinator.classic.classic_group import ClassicGroup
from groupcoord.coordinator.classic.classic_group_state import (
    CONSUMER_PROTOCOL_TYPE,
    GroupState,
    Member,
    current_generation,
    known_member,
)
from groupcoord.coordinator.error_mapping import UnexpectedBrokerError, emit_refusal, response_error
from groupcoord.coordinator.events import AssignmentReceived, Owners
from groupcoord.coordinator.group import ClassicMembersGroup
from groupcoord.coordinator.group_coordinator_shard import GroupCoordinatorShard, GroupOperation, RuntimeShard
from groupcoord.coordinator.runtime.coordinator_shard import EMPTY_RESULT, CoordinatorResult
from groupcoord.core.api_error import ApiError
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call
from groupcoord.protocol.consumer_protocol import read_assignment
from groupcoord.protocol.errors import ErrorCode, WireError
from groupcoord.protocol.messages import SyncGroupRequest, SyncGroupResponse

PROTOCOL_REQUIRED_FROM = 5  # KIP-559


def sync_group(shard: RuntimeShard, ctx: HandlerContext, call: Call, request: SyncGroupRequest) -> None:
    """Answer ``call``, now or when the leader's assignment is stored."""
    invalid = _invalid(call, request)
    if invalid is None:
        shard.write(ctx, call, request, _OPERATION)
    else:
        _refused(ctx, call, request, invalid)


def _run(
    machine: GroupCoordinatorShard, ctx: HandlerContext, call: Call, request: SyncGroupRequest
) -> CoordinatorResult:
    other = machine.groups.get(request.group_id)
    if isinstance(other, ClassicMembersGroup) and not other.is_empty:
        return other.sync(ctx, call, request)
    group, member = _check(machine, request)
    group.pending_sync_members.discard(member.member_id)
    if not group.pending_sync_members:
        machine.timers.cancel(group.sync_key)
    if group.state is GroupState.STABLE:
        response = SyncGroupResponse(
            protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=member.assignment
        )
        ctx.reply(call, response)
        return EMPTY_RESULT
    member.parked_sync = call
    result = EMPTY_RESULT
    if group.leader_id == member.member_id:
        try:
            result = _store_assignment(ctx, group, member, request)
        except UnexpectedBrokerError as problem:
            _refused(ctx, call, request, problem)
            group.answered_already(call)
            return EMPTY_RESULT

    def failed(later: HandlerContext, error: ErrorCode) -> None:
        """An append failed or timed out while the request waits for the leader: refuse it."""
        if result.failed is not None:
            result.failed(later, error)
        if member.parked_sync is call:
            later.reply(call, SyncGroupResponse(error_code=response_error(error), assignment=b""))
            group.answered_already(call)

    return CoordinatorResult(records=result.records, stored=result.stored, failed=failed, replay_records=False)


def _invalid(call: Call, request: SyncGroupRequest) -> ApiError | None:
    """The error of an invalid request, or None."""
    if call.version >= PROTOCOL_REQUIRED_FROM and (request.protocol_type is None or request.protocol_name is None):
        name = "protocol_type" if request.protocol_type is None else "protocol_name"
        return ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"{name} is null, which v5 does not allow")
    return None if request.group_id else ApiError(ErrorCode.INVALID_GROUP_ID, "group_id is empty")


def _check(machine: GroupCoordinatorShard, request: SyncGroupRequest) -> tuple[ClassicGroup, Member]:
    """Validate the request, in Kafka's order. Raises ApiError."""
    group = machine.classic_group(request.group_id)
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
    ctx: HandlerContext, group: ClassicGroup, leader: Member, request: SyncGroupRequest
) -> CoordinatorResult:
    """Store the leader's assignment. Members that it leaves out get an empty one; unknown ids are ignored; the last wins.

    Raises UnexpectedBrokerError.
    """
    given = {assignment.member_id: assignment.assignment for assignment in request.assignments}
    assignments = {member_id: given.get(member_id, b"") for member_id in group.members}
    generation, protocol_type = group.generation_id, group.protocol_type
    ctx.emit_with(
        AssignmentReceived,
        lambda: {"owners": _owners(protocol_type, assignments)},
        group=group.group_id,
        generation=generation,
        leader=leader.member_id,
    )

    def is_current() -> bool:
        """Is it still this generation? If a member joined while the record was pending, every SyncGroup is answered already."""
        return group.state is GroupState.COMPLETING_REBALANCE and group.generation_id == generation

    def stored(later: HandlerContext) -> None:
        if is_current():
            for member in group.members.values():
                member.assignment = assignments.get(member.member_id, b"")
            group.answer_syncs(later, ErrorCode.NONE)
            group.transition_to(later, GroupState.STABLE)

    def failed(later: HandlerContext, error: ErrorCode) -> None:
        if is_current():
            for member in group.members.values():
                member.assignment = b""
            group.answer_syncs(later, response_error(error))
            # No member has rejoined yet, so this returns no records.
            group.prepare_rebalance(later, f"the assignment could not be stored: {error.name}")

    return CoordinatorResult(
        records=(group.metadata_record(assignments),), stored=stored, failed=failed, replay_records=False
    )


def _refused(ctx: HandlerContext, call: Call, request: SyncGroupRequest, refusal: ApiError) -> None:
    emit_refusal(ctx, call, request.group_id, request.member_id, refusal)
    ctx.reply(call, SyncGroupResponse(error_code=refusal.code, assignment=b""))


_OPERATION = GroupOperation(_run, _refused)


def _owners(protocol_type: str | None, assignments: Mapping[str, bytes]) -> Owners | None:
    """The decoded assignment, for the event; None if the bytes are not a consumer's assignment."""
    if protocol_type != CONSUMER_PROTOCOL_TYPE:
        return None
    owners: dict[str, tuple[tuple[str, int], ...]] = {}
    for member_id, data in assignments.items():
        try:
            assigned = read_assignment(data).assigned_partitions if data else ()
        except WireError:
            return None
        owners[member_id] = tuple((topic.topic, number) for topic in assigned for number in topic.partitions)
    return owners
