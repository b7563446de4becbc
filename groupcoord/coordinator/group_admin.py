"""DescribeGroups, ListGroups and DeleteGroups. Sources: ``GroupCoordinatorService`` and ``ClassicGroup``."""

from collections.abc import Callable, Iterable, Sequence

from groupcoord.coordinator import records
from groupcoord.coordinator.availability import is_loading
from groupcoord.coordinator.classic.group import ClassicGroup
from groupcoord.coordinator.classic.states import GroupState
from groupcoord.coordinator.errors import emit_refusal, response_error
from groupcoord.coordinator.events import OffsetsRemoved
from groupcoord.coordinator.pending_appends import Failed
from groupcoord.coordinator.shard import Shard
from groupcoord.core.api_error import ApiError
from groupcoord.core.effects import Call, LogRecord
from groupcoord.core.handler_context import HandlerContext
from groupcoord.core.java import computed_map_order, hash_set_order, string_hash
from groupcoord.protocol.apis.delete_groups import DeletableGroupResult
from groupcoord.protocol.apis.describe_groups import DescribedGroup, DescribedGroupMember
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
"""READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS: what anybody may do to a group where nothing is forbidden."""

ShardOf = Callable[[str], Shard]


def describe_groups(shard_of: ShardOf, ctx: HandlerContext, call: Call, request: DescribeGroupsRequest) -> None:
    """Answer ``call`` with each group as it is now, partition by partition of ``__consumer_offsets``."""
    answers = tuple(
        _described(shard, group_id, ctx, call, request)
        for shard, group_ids in _by_shard(shard_of, request.groups).items()
        for group_id in group_ids
    )
    ctx.reply(call, DescribeGroupsResponse(groups=answers))


def _described(
    shard: Shard, group_id: str, ctx: HandlerContext, call: Call, request: DescribeGroupsRequest
) -> DescribedGroup:
    try:
        return _describe(shard.committed.group(group_id), group_id, call, request)
    except ApiError as refusal:
        emit_refusal(ctx, call, group_id, "", refusal)
        return DescribedGroup(
            error_code=refusal.code, group_id=group_id, group_state="", protocol_type="", protocol_data="", members=()
        )


def _describe(group: ClassicGroup | None, group_id: str, call: Call, request: DescribeGroupsRequest) -> DescribedGroup:
    operations = ALL_GROUP_OPERATIONS if request.include_authorized_operations else NOT_ASKED_FOR
    if group is None:
        missing = call.version >= NOT_FOUND_FROM
        return DescribedGroup(
            error_code=ErrorCode.GROUP_ID_NOT_FOUND if missing else ErrorCode.NONE,
            error_message=f"Group {group_id} not found." if missing else None,
            group_id=group_id,
            group_state=GroupState.DEAD,
            protocol_type="",
            protocol_data="",
            members=(),
            authorized_operations=NOT_ASKED_FOR if missing else operations,
        )
    stable = group.state is GroupState.STABLE
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol_name or "") if stable else "",
        members=tuple(
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                # Until a protocol is chosen nobody knows which of a member's metadata counts.
                member_metadata=member.metadata_of(group.protocol_name) if stable else b"",
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ),
        authorized_operations=operations,
    )


def list_groups(shards: Sequence[Shard], ctx: HandlerContext, call: Call, request: ListGroupsRequest) -> None:
    """Answer ``call`` with the groups that pass both filters; an unknown state or type matches nothing.

    While one partition is being read there is no list at all.
    """
    loading = [shard.partition for shard in shards if is_loading(shard)]
    if loading:
        code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        why = f"of __consumer_offsets still being read: {', '.join(map(str, loading))}"
        emit_refusal(ctx, call, "", "", ApiError(code, why))
        ctx.reply(call, ListGroupsResponse(error_code=code, groups=()))
        return
    states = {state.strip().lower() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    listed = tuple(
        ListedGroup(
            group_id=group.group_id,
            protocol_type=group.protocol_type or "",
            group_state=group.state,
            group_type="classic",
        )
        for shard in shards
        for group in shard.committed.groups()
        if (not states or group.state.lower() in states) and (not types or "classic" in types)
    )
    ctx.reply(call, ListGroupsResponse(groups=listed))


def delete_groups(shard_of: ShardOf, ctx: HandlerContext, call: Call, request: DeleteGroupsRequest) -> None:
    """Answer ``call`` when every group is deleted or refused; one that fails does not keep the others."""
    by_shard = {
        shard: hash_set_order(group_ids, string_hash)  # Kafka goes through them as a set
        for shard, group_ids in _by_shard(shard_of, dict.fromkeys(request.groups_names)).items()
    }
    answers: dict[str, ErrorCode] = {}

    def finish(later: HandlerContext, codes: dict[str, ErrorCode]) -> None:
        answers.update(codes)
        if len(answers) == sum(map(len, by_shard.values())):
            results = tuple(
                DeletableGroupResult(group_id=group_id, error_code=answers[group_id])
                for group_ids in by_shard.values()
                for group_id in group_ids
            )
            later.reply(call, DeleteGroupsResponse(results=results))

    if not by_shard:
        finish(ctx, {})
    for shard, group_ids in by_shard.items():
        _delete(shard, ctx, call, group_ids, finish)


def _delete(
    shard: Shard,
    ctx: HandlerContext,
    call: Call,
    group_ids: list[str],
    finish: Callable[[HandlerContext, dict[str, ErrorCode]], None],
) -> None:
    """Kafka looks for share groups of these names first, and goes on when nothing is on its way in the partition any more."""

    def failed(later: HandlerContext, error: ErrorCode) -> None:
        finish(later, dict.fromkeys(group_ids, response_error(error)))

    shard.store(ctx, (), lambda later: _delete_now(shard, later, call, group_ids, finish, failed), failed)


def _delete_now(
    shard: Shard,
    ctx: HandlerContext,
    call: Call,
    group_ids: list[str],
    finish: Callable[[HandlerContext, dict[str, ErrorCode]], None],
    failed: Failed,
) -> None:
    codes: dict[str, ErrorCode] = {}
    doomed: dict[str, tuple[tuple[str, int], ...]] = {}
    groups: list[ClassicGroup] = []
    tombstones: list[LogRecord] = []
    for group_id in group_ids:
        try:
            group = shard.groups.get(group_id)
        except ApiError as refusal:
            emit_refusal(ctx, call, group_id, "", refusal)
            finish(ctx, dict.fromkeys(group_ids, refusal.code))
            return
        codes[group_id] = _deletable(group)
        if group is None or codes[group_id]:
            why = "there is no such group" if group is None else f"it has members: it is {group.state}"
            emit_refusal(ctx, call, group_id, "", ApiError(codes[group_id], why))
            continue
        offsets = shard.offsets.of_group(group_id)
        pairs = tuple((topic, partition) for topic, partitions in offsets for partition, _ in partitions)
        groups.append(group)
        doomed[group_id] = pairs
        tombstones += [records.offset_tombstone(group_id, topic, partition) for topic, partition in pairs]
        tombstones.append(records.group_tombstone(group_id))

    def stored(later: HandlerContext) -> None:
        reason = "a client asked for it"
        for group in groups:
            pairs = doomed[group.group_id]
            if pairs:
                later.emit(OffsetsRemoved, group=group.group_id, partitions=pairs, reason=reason)
            shard.end_group(later, group, reason)
        finish(later, codes)

    gone = {(group_id, topic, partition): None for group_id, pairs in doomed.items() for topic, partition in pairs}
    shard.store(ctx, tuple(tombstones), stored, failed, offsets=gone, removed=groups)


def _deletable(group: ClassicGroup | None) -> ErrorCode:
    if group is None:
        return ErrorCode.GROUP_ID_NOT_FOUND
    return ErrorCode.NONE if group.state is GroupState.EMPTY else ErrorCode.NON_EMPTY_GROUP


def _by_shard(shard_of: ShardOf, group_ids: Iterable[str]) -> dict[Shard, list[str]]:
    """The groups of each shard; shards in the order of a Java map whose keys are the partitions of ``__consumer_offsets``."""
    asked = [(shard_of(group_id), group_id) for group_id in group_ids]
    by_shard: dict[Shard, list[str]] = {
        shard: [] for shard in computed_map_order((shard for shard, _ in asked), _topic_partition_hash)
    }
    for shard, group_id in asked:
        by_shard[shard].append(group_id)
    return by_shard


def _topic_partition_hash(shard: Shard) -> int:
    """``TopicPartition.hashCode``."""
    return 31 * (31 + shard.partition) + _OFFSETS_TOPIC_HASH


_OFFSETS_TOPIC_HASH = string_hash("__consumer_offsets")
