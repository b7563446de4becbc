"""The OffsetFetch handler. Sources: ``KafkaApis.handleOffsetFetchRequest`` and ``OffsetMetadataManager.fetchOffsets``."""

from collections.abc import Callable
from functools import partial

from groupcoord.coordinator.error_mapping import emit_refusal, offset_fetch_error
from groupcoord.coordinator.group_coordinator_shard import CommittedView, RuntimeShard
from groupcoord.coordinator.offsets.committed_offsets import CommittedOffset
from groupcoord.coordinator.topics_view import TopicsView
from groupcoord.core.api_error import ApiError
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call
from groupcoord.protocol.apis.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import OffsetFetchRequest, OffsetFetchResponse

GROUP_ERRORS_FROM = 2
TOPIC_IDS_FROM = 10
NO_OFFSET = -1


def offset_fetch(
    shard_of: Callable[[str], RuntimeShard],
    ctx: HandlerContext,
    call: Call,
    request: OffsetFetchRequest,
    topics: TopicsView,
) -> None:
    """Answer ``call``. An unknown group or topic is no error: it has no offsets.

    The response has stored offsets. With ``require_stable`` it has the latest, and waits until they are stored; a partition
    with a pending offset of an open transaction has UNSTABLE_OFFSET_COMMIT (KIP-447).
    """
    by_id = call.version >= TOPIC_IDS_FROM
    answers: list[OffsetFetchResponseGroup] = []
    waiting: list[tuple[int, RuntimeShard]] = []
    for asked in request.groups:
        shard = shard_of(asked.group_id)
        try:
            view = shard.latest if request.require_stable else shard.committed
            group = view.group(asked.group_id)
            if group is not None:
                group.validate_offset_fetch(asked.member_id, asked.member_epoch, view.pending)
        except ApiError as refusal:
            emit_refusal(ctx, call, asked.group_id, "", refusal)
            answers.append(_refused(asked, refusal.code, call.version))
            continue
        if request.require_stable and not shard.is_idle:
            waiting.append((len(answers), shard))
        is_unstable = view.is_unstable if request.require_stable else _never
        answers.append(_group(view, asked, topics, by_id, is_unstable))
    if waiting:
        _reply_when_stored(ctx, call, request, answers, waiting)
    else:
        ctx.reply(call, OffsetFetchResponse(groups=tuple(answers)))


def _reply_when_stored(
    ctx: HandlerContext,
    call: Call,
    request: OffsetFetchRequest,
    answers: list[OffsetFetchResponseGroup],
    waiting: list[tuple[int, RuntimeShard]],
) -> None:
    left = {number for number, _ in waiting}

    def finish(later: HandlerContext, number: int) -> None:
        left.remove(number)
        if not left:
            later.reply(call, OffsetFetchResponse(groups=tuple(answers)))

    def fail(later: HandlerContext, error: ErrorCode, number: int) -> None:
        answers[number] = _refused(request.groups[number], offset_fetch_error(error), call.version)
        finish(later, number)

    for number, shard in waiting:
        shard.after_pending_writes(ctx, partial(finish, number=number), partial(fail, number=number))


def _refused(asked: OffsetFetchRequestGroup, code: ErrorCode, version: int) -> OffsetFetchResponseGroup:
    """The response of a refused group: from v2 on with a group error, before with the error in every partition."""
    topics = () if version >= GROUP_ERRORS_FROM else asked.topics or ()
    return OffsetFetchResponseGroup(
        group_id=asked.group_id,
        error_code=code,
        topics=tuple(
            OffsetFetchResponseTopics(
                name=topic.name, partitions=tuple(_missing(partition, code) for partition in topic.partition_indexes)
            )
            for topic in topics
        ),
    )


_IsUnstable = Callable[[str, str, int], bool]
"""Is ``require_stable`` set and an offset of (group, topic, partition) pending in a transaction?"""


def _never(_: str, __: str, ___: int) -> bool:
    return False


def _group(
    view: CommittedView, asked: OffsetFetchRequestGroup, topics: TopicsView, by_id: bool, is_unstable: _IsUnstable
) -> OffsetFetchResponseGroup:
    if asked.topics is None:
        answers = _all_topics(view, asked.group_id, topics, by_id, is_unstable)
    else:
        answers = tuple(_topic(view, asked.group_id, topic, topics, by_id, is_unstable) for topic in asked.topics)
        # Kafka lists topics with unknown ids after the others.
        answers = tuple(sorted(answers, key=lambda answer: by_id and not answer.name))
    return OffsetFetchResponseGroup(group_id=asked.group_id, topics=answers)


def _all_topics(
    view: CommittedView, group_id: str, topics: TopicsView, by_id: bool, is_unstable: _IsUnstable
) -> tuple[OffsetFetchResponseTopics, ...]:
    """All offsets of the group, except those only pending; by topic id only those of topics that exist."""
    answers = []
    for name, partitions in view.offsets_of(group_id):
        topic_id = topics.topic_id(name) if by_id else None
        if by_id and topic_id is None:
            continue
        found = tuple(
            _missing(partition, ErrorCode.UNSTABLE_OFFSET_COMMIT)
            if is_unstable(group_id, name, partition)
            else _found(partition, committed)
            for partition, committed in partitions
            if not by_id or committed.topic_id in (None, topic_id)
        )
        if found:
            answers.append(OffsetFetchResponseTopics(name=name, topic_id=topic_id, partitions=found))
    return tuple(answers)


def _topic(
    view: CommittedView,
    group_id: str,
    asked: OffsetFetchRequestTopics,
    topics: TopicsView,
    by_id: bool,
    is_unstable: _IsUnstable,
) -> OffsetFetchResponseTopics:
    name: str | None = asked.name
    if by_id:
        name = topics.topic_name(asked.topic_id) if asked.topic_id is not None else None
    if name is None:
        unknown = tuple(_missing(partition, ErrorCode.UNKNOWN_TOPIC_ID) for partition in asked.partition_indexes)
        return OffsetFetchResponseTopics(topic_id=asked.topic_id, partitions=unknown)
    partitions = []
    for partition in asked.partition_indexes:
        if is_unstable(group_id, name, partition):
            partitions.append(_missing(partition, ErrorCode.UNSTABLE_OFFSET_COMMIT))
            continue
        committed = view.offset(group_id, name, partition)
        # The offset belongs to a deleted topic of the same name.
        stale = by_id and committed is not None and committed.topic_id not in (None, asked.topic_id)
        partitions.append(
            _missing(partition, ErrorCode.NONE) if committed is None or stale else _found(partition, committed)
        )
    return OffsetFetchResponseTopics(name=name, topic_id=asked.topic_id, partitions=tuple(partitions))


def _found(partition: int, committed: CommittedOffset) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=partition,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
    )


def _missing(partition: int, code: ErrorCode) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=partition, committed_offset=NO_OFFSET, committed_leader_epoch=-1, metadata="", error_code=code
    )
