"""The handlers of DescribeGroups, ListGroups and DeleteGroups (``GroupCoordinatorService``)."""

import dataclasses
from collections.abc import Callable, Iterable, Sequence

from groupcoord.coordinator import records
from groupcoord.coordinator.error_mapping import emit_refusal, response_error
from groupcoord.coordinator.events import OffsetsRemoved
from groupcoord.coordinator.group import Group
from groupcoord.coordinator.group_coordinator_shard import GroupCoordinatorShard, GroupOperation, RuntimeShard
from groupcoord.coordinator.runtime.append_queue import Failed
from groupcoord.coordinator.runtime.coordinator_shard import CoordinatorResult, Operation
from groupcoord.coordinator.runtime.shard import ShardState
from groupcoord.core.api_error import ApiError
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call, TypedRecord
from groupcoord.core.java_hash_order import computed_map_order, hash_set_order, string_hash
from groupcoord.protocol.apis.delete_groups import DeletableGroupResult
from groupcoord.protocol.apis.describe_groups import DescribedGroup
from groupcoord.protocol.apis.list_groups import ListedGroup
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
)

NOT_FOUND_FROM = 6  # KIP-1043
NOT_ASKED_FOR = -2_147_483_648
ALL_GROUP_OPERATIONS = 3400
"""The authorized operations of every client without an authorizer: READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS."""
DEAD = "Dead"
"""The state of a group that does not exist."""


ShardOf = Callable[[str], RuntimeShard]


def describe_groups(shard_of: ShardOf, ctx: HandlerContext, call: Call, request: DescribeGroupsRequest) -> None:
    """Answer ``call`` with the current state of each group, in the order of partitions of ``__consumer_offsets``."""
    answers = tuple(
        _described(shard, group_id, ctx, call, request)
        for shard, group_ids in by_shard(shard_of, request.groups).items()
        for group_id in group_ids
    )
    ctx.reply(call, DescribeGroupsResponse(groups=answers))


def _described(
    shard: RuntimeShard, group_id: str, ctx: HandlerContext, call: Call, request: DescribeGroupsRequest
) -> DescribedGroup:
    try:
        group = shard.committed.group(group_id)
    except ApiError as refusal:
        emit_refusal(ctx, call, group_id, "", refusal)
        return DescribedGroup(
            error_code=refusal.code, group_id=group_id, group_state="", protocol_type="", protocol_data="", members=()
        )
    operations = ALL_GROUP_OPERATIONS if request.include_authorized_operations else NOT_ASKED_FOR
    why = f"Group {group_id} not found."
    if group is not None:
        try:
            described: DescribedGroup = group.describe()
        except ApiError as refusal:
            why = refusal.message or why
        else:
            return dataclasses.replace(described, authorized_operations=operations)
    missing = call.version >= NOT_FOUND_FROM
    return DescribedGroup(
        error_code=ErrorCode.GROUP_ID_NOT_FOUND if missing else ErrorCode.NONE,
        error_message=why if missing else None,
        group_id=group_id,
        group_state=DEAD,
        protocol_type="",
        protocol_data="",
        members=(),
        authorized_operations=NOT_ASKED_FOR if missing else operations,
    )


def list_groups(shards: Sequence[RuntimeShard], ctx: HandlerContext, call: Call, request: ListGroupsRequest) -> None:
    """Answer ``call`` with the groups that pass both filters; an unknown state or type matches nothing.

    While any partition is loading, the response is an error without groups.
    """
    loading = [shard.partition for shard in shards if shard.state is ShardState.LOADING]
    if loading:
        code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        why = f"of __consumer_offsets still being read: {', '.join(map(str, loading))}"
        emit_refusal(ctx, call, "", "", ApiError(code, why))
        ctx.reply(call, ListGroupsResponse(error_code=code, groups=()))
        return
    states = {state.strip().lower() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    listed: list[ListedGroup] = []
    for view in [shard.committed for shard in shards if shard.state is ShardState.ACTIVE]:
        for group in view.groups():
            state = group.state_before(view.pending)
            if (not states or state.lower() in states) and (not types or group.type in types):
                listed.append(
                    ListedGroup(
                        group_id=group.group_id,
                        protocol_type=group.protocol_type or "",
                        group_state=state,
                        group_type=group.type,
                    )
                )
    ctx.reply(call, ListGroupsResponse(groups=tuple(listed)))


def delete_groups(shard_of: ShardOf, ctx: HandlerContext, call: Call, request: DeleteGroupsRequest) -> None:
    """Answer ``call`` when every group is deleted or refused; groups are independent of each other."""
    doomed = {
        shard: hash_set_order(group_ids, string_hash)  # Kafka iterates over them as a HashSet
        for shard, group_ids in by_shard(shard_of, dict.fromkeys(request.groups_names)).items()
    }
    answers: dict[str, ErrorCode] = {}

    def finish(later: HandlerContext, codes: dict[str, ErrorCode]) -> None:
        answers.update(codes)
        if len(answers) == sum(map(len, doomed.values())):
            results = tuple(
                DeletableGroupResult(group_id=group_id, error_code=answers[group_id])
                for group_ids in doomed.values()
                for group_id in group_ids
            )
            later.reply(call, DeleteGroupsResponse(results=results))

    if not doomed:
        finish(ctx, {})
    for shard, group_ids in doomed.items():
        _delete(shard, ctx, call, group_ids, finish)


def _delete(shard: RuntimeShard, ctx: HandlerContext, call: Call, group_ids: list[str], finish: "_Finish") -> None:
    """Delete groups of one shard after its pending writes, because Kafka looks for share groups of these names first."""

    def refused(later: HandlerContext, _: Call, __: None, refusal: ApiError) -> None:
        emit_refusal(later, call, group_ids[0], "", refusal)
        finish(later, dict.fromkeys(group_ids, refusal.code))

    def failed(later: HandlerContext, error: ErrorCode) -> None:
        finish(later, dict.fromkeys(group_ids, response_error(error)))

    operation: GroupOperation = Operation(
        lambda machine, now, _, __: _run(machine, now, call, group_ids, finish, failed),
        refused,
    )
    shard.after_pending_writes(ctx, lambda later: shard.write(later, call, None, operation), failed)


_Finish = Callable[[HandlerContext, dict[str, ErrorCode]], None]


def _run(
    machine: GroupCoordinatorShard,
    ctx: HandlerContext,
    call: Call,
    group_ids: list[str],
    finish: _Finish,
    failed: Failed,
) -> CoordinatorResult:
    codes: dict[str, ErrorCode] = {}
    doomed: list[tuple[Group, tuple[tuple[str, int], ...]]] = []
    tombstones: list[TypedRecord] = []
    for group_id in group_ids:
        try:
            group = machine.groups.get(group_id)
            if group is None:
                raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, "there is no such group")
            group.validate_delete()
        except ApiError as refusal:
            codes[group_id] = refusal.code
            emit_refusal(ctx, call, group_id, "", refusal)
            continue
        codes[group_id] = ErrorCode.NONE
        offsets = machine.offsets.of_group(group_id)
        committed = [(topic, partition) for topic, partitions in offsets for partition, _ in partitions]
        pairs = tuple(dict.fromkeys([*committed, *machine.pending_offsets.of_group(group_id)]))
        doomed.append((group, pairs))
        tombstones += [records.offset_tombstone(group_id, topic, partition) for topic, partition in pairs]
        tombstones += group.tombstones()

    def stored(later: HandlerContext) -> None:
        reason = "a client asked for it"
        for group, pairs in doomed:
            if pairs:
                later.emit(OffsetsRemoved, group=group.group_id, partitions=pairs, reason=reason)
            group.on_removed(later, reason)
        finish(later, codes)

    return CoordinatorResult(records=tombstones, stored=stored, failed=failed)


def by_shard(shard_of: ShardOf, group_ids: Iterable[str]) -> dict[RuntimeShard, list[str]]:
    """The groups of each shard; shards in the order of a Java HashMap by partition of ``__consumer_offsets``."""
    asked = [(shard_of(group_id), group_id) for group_id in group_ids]
    by_shard: dict[RuntimeShard, list[str]] = {
        shard: [] for shard in computed_map_order((shard for shard, _ in asked), _topic_partition_hash)
    }
    for shard, group_id in asked:
        by_shard[shard].append(group_id)
    return by_shard


def _topic_partition_hash(shard: RuntimeShard) -> int:
    """``TopicPartition.hashCode``."""
    return 31 * (31 + shard.partition) + _OFFSETS_TOPIC_HASH


_OFFSETS_TOPIC_HASH = string_hash("__consumer_offsets")
