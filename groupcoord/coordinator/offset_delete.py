"""OffsetDelete, and the offsets that go with a deleted topic. Source: ``OffsetMetadataManager.deleteOffsets``."""

from collections.abc import Collection

from groupcoord.coordinator import records
from groupcoord.coordinator.classic.group import CONSUMER_PROTOCOL_TYPE
from groupcoord.coordinator.classic.states import GroupState
from groupcoord.coordinator.errors import emit_refusal, response_error
from groupcoord.coordinator.events import OffsetsRemoved
from groupcoord.coordinator.shard import Shard
from groupcoord.coordinator.topics_view import TopicsView
from groupcoord.core.api_error import ApiError
from groupcoord.core.effects import Call
from groupcoord.core.handler_context import HandlerContext
from groupcoord.protocol.apis.offset_delete import OffsetDeleteResponsePartition, OffsetDeleteResponseTopic
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import OffsetDeleteRequest, OffsetDeleteResponse


def offset_delete(
    shard: Shard, ctx: HandlerContext, call: Call, request: OffsetDeleteRequest, topics: TopicsView
) -> None:
    """Answer ``call`` when the tombstones are stored. Unlike a commit, the group is checked even if no partition exists."""
    try:
        _check_group(shard, request.group_id)
    except ApiError as refusal:
        emit_refusal(ctx, call, request.group_id, "", refusal)
        ctx.reply(call, OffsetDeleteResponse(error_code=refusal.code, topics=()))
        return
    missing: dict[str, list[OffsetDeleteResponsePartition]] = {}
    answers: dict[str, list[OffsetDeleteResponsePartition]] = {}
    doomed: list[tuple[str, int]] = []
    group = shard.groups[request.group_id]
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
    response = _merged(missing, answers)
    _bury(shard, ctx, {request.group_id: doomed}, call, response)


def topics_deleted(shard: Shard, ctx: HandlerContext, gone: Collection[str]) -> None:
    """The offsets of topics that are gone go too, in every group."""
    doomed: dict[str, list[tuple[str, int]]] = {}
    for group in shard.offsets.groups():
        for topic, partitions in shard.offsets.of_group(group):
            if topic in gone:
                doomed.setdefault(group, []).extend((topic, index) for index, _ in partitions)
    if doomed:
        _bury(shard, ctx, doomed, None, None)


def _check_group(shard: Shard, group_id: str) -> None:
    """Raises Refused: INVALID_GROUP_ID, GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP."""
    if not group_id:
        raise ApiError(ErrorCode.INVALID_GROUP_ID, "group_id is empty")
    group = shard.groups.get(group_id)
    if group is None:
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group_id!r}")
    if group.state is not GroupState.EMPTY and group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        why = f"the group has members, and what a group of type {group.protocol_type!r} reads cannot be known"
        raise ApiError(ErrorCode.NON_EMPTY_GROUP, why)


def _bury(
    shard: Shard,
    ctx: HandlerContext,
    doomed: dict[str, list[tuple[str, int]]],
    call: Call | None,
    response: OffsetDeleteResponse | None,
) -> None:
    tombstones = tuple(
        records.offset_tombstone(group, topic, partition)
        for group, pairs in doomed.items()
        for topic, partition in pairs
    )

    def stored(later: HandlerContext) -> None:
        reason = "their topic was deleted" if call is None else "a client asked for it"
        for group, pairs in doomed.items():
            if pairs:
                later.emit(OffsetsRemoved, group=group, partitions=tuple(pairs), reason=reason)
        if call is not None:
            later.reply(call, response)

    def failed(later: HandlerContext, error: ErrorCode) -> None:
        if call is not None:
            later.reply(call, OffsetDeleteResponse(error_code=response_error(error), topics=()))

    gone = {(group, topic, partition): None for group, pairs in doomed.items() for topic, partition in pairs}
    shard.store(ctx, tombstones, stored, failed, offsets=gone)


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
