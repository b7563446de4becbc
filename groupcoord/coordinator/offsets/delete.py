"""OffsetDelete, and the offsets that go with a deleted topic. Source: ``OffsetMetadataManager.deleteOffsets``."""

from collections.abc import Collection

from groupcoord.coordinator import records
from groupcoord.coordinator.errors import emit_refusal, response_error
from groupcoord.coordinator.events import OffsetsRemoved
from groupcoord.coordinator.group_shard import GroupCoordinatorShard, GroupOperation, GroupShard
from groupcoord.coordinator.runtime.state_machine import CoordinatorResult
from groupcoord.coordinator.topics_view import TopicsView
from groupcoord.core.api_error import ApiError
from groupcoord.core.effects import Call
from groupcoord.core.handler_context import HandlerContext
from groupcoord.protocol.apis.offset_delete import OffsetDeleteResponsePartition, OffsetDeleteResponseTopic
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import OffsetDeleteRequest, OffsetDeleteResponse


def offset_delete(
    shard: GroupShard, ctx: HandlerContext, call: Call, request: OffsetDeleteRequest, topics: TopicsView
) -> None:
    """Answer ``call`` when the tombstones are stored. Unlike a commit, the group is checked even if no partition exists."""

    def run(
        machine: GroupCoordinatorShard, _ctx: HandlerContext, _call: Call, asked: OffsetDeleteRequest
    ) -> CoordinatorResult:
        return _run(machine, asked, topics)

    if request.group_id:
        shard.write(ctx, call, request, GroupOperation(run, _refused, _failed))
    else:
        _refused(ctx, call, request, ApiError(ErrorCode.INVALID_GROUP_ID, "group_id is empty"))


def _run(shard: GroupCoordinatorShard, request: OffsetDeleteRequest, topics: TopicsView) -> CoordinatorResult:
    """Raises ApiError: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP."""
    group = shard.groups.get(request.group_id)
    if group is None:
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {request.group_id!r}")
    group.validate_offset_delete()
    missing: dict[str, list[OffsetDeleteResponsePartition]] = {}
    answers: dict[str, list[OffsetDeleteResponsePartition]] = {}
    doomed: list[tuple[str, int]] = []
    for topic in request.topics:
        count = topics.partition_count(topic.name)
        if count is None:
            missing.setdefault(topic.name, [])
        code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if group.is_subscribed_to(topic.name) else ErrorCode.NONE
        for partition in topic.partitions:
            index = partition.partition_index
            if count is None or not 0 <= index < count:
                unknown = OffsetDeleteResponsePartition(
                    partition_index=index, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                )
                missing.setdefault(topic.name, []).append(unknown)
                continue
            answers.setdefault(topic.name, []).append(
                OffsetDeleteResponsePartition(partition_index=index, error_code=code)
            )
            if not code and shard.offsets.get(request.group_id, topic.name, index) is not None:
                doomed.append((topic.name, index))
    result = tombstones({request.group_id: doomed}, "a client asked for it")
    result.response = _merged(missing, answers)
    return result


def _refused(ctx: HandlerContext, call: Call, request: OffsetDeleteRequest, refusal: ApiError) -> None:
    emit_refusal(ctx, call, request.group_id, "", refusal)
    ctx.reply(call, OffsetDeleteResponse(error_code=refusal.code, topics=()))


def _failed(ctx: HandlerContext, call: Call, _request: OffsetDeleteRequest, error: ErrorCode) -> None:
    ctx.reply(call, OffsetDeleteResponse(error_code=response_error(error), topics=()))


def topics_deleted(shard: GroupCoordinatorShard, names: Collection[str]) -> CoordinatorResult:
    """The offsets of deleted topics are removed from every group."""
    doomed: dict[str, list[tuple[str, int]]] = {}
    for group in shard.offsets.groups():
        for topic, partitions in shard.offsets.of_group(group):
            if topic in names:
                doomed.setdefault(group, []).extend((topic, index) for index, _ in partitions)
    result = tombstones(doomed, "their topic was deleted")
    result.is_atomic = False
    return result


def tombstones(doomed: dict[str, list[tuple[str, int]]], reason: str) -> CoordinatorResult:
    """Remove the offsets of these (topic, partition) pairs of each group."""

    def stored(later: HandlerContext) -> None:
        for group, pairs in doomed.items():
            if pairs:
                later.emit(OffsetsRemoved, group=group, partitions=tuple(pairs), reason=reason)

    found = [records.offset_tombstone(group, *pair) for group, pairs in doomed.items() for pair in pairs]
    return CoordinatorResult(records=found, stored=stored)


def _merged(
    first: dict[str, list[OffsetDeleteResponsePartition]], then: dict[str, list[OffsetDeleteResponsePartition]]
) -> OffsetDeleteResponse:
    """What does not exist is answered before what the coordinator says."""
    merged = {name: list(partitions) for name, partitions in first.items()}
    for name, partitions in then.items():
        merged.setdefault(name, []).extend(partitions)
    return OffsetDeleteResponse(
        topics=tuple(OffsetDeleteResponseTopic(name=name, partitions=tuple(found)) for name, found in merged.items())
    )
