"""OffsetFetch. Sources: ``KafkaApis.handleOffsetFetchRequest`` and ``OffsetMetadataManager.fetchOffsets``."""

from collections.abc import Callable

from groupcoord.coordinator.offset_store import CommittedOffset
from groupcoord.coordinator.shard import Shard
from groupcoord.coordinator.topics_view import TopicsView
from groupcoord.core.effects import Call
from groupcoord.core.turn import Turn
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import OffsetFetchRequest, OffsetFetchResponse
from groupcoord.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

TOPIC_IDS_FROM = 10
NO_OFFSET = -1


def offset_fetch(
    shard_of: Callable[[str], Shard], turn: Turn, call: Call, request: OffsetFetchRequest, topics: TopicsView
) -> None:
    """Answer ``call``. Neither an unknown group nor an unknown topic is an error: they just have no offset."""
    by_id = call.version >= TOPIC_IDS_FROM
    groups = tuple(_group(shard_of(group.group_id), group, topics, by_id) for group in request.groups)
    turn.reply(call, OffsetFetchResponse(groups=groups))


def _group(shard: Shard, asked: OffsetFetchRequestGroup, topics: TopicsView, by_id: bool) -> OffsetFetchResponseGroup:
    if asked.topics is None:
        answers = _all_topics(shard, asked.group_id, topics, by_id)
    else:
        answers = tuple(_topic(shard, asked.group_id, topic, topics, by_id) for topic in asked.topics)
        # Kafka answers topics of unknown ids after the others.
        answers = tuple(sorted(answers, key=lambda answer: by_id and not answer.name))
    return OffsetFetchResponseGroup(group_id=asked.group_id, topics=answers)


def _all_topics(shard: Shard, group_id: str, topics: TopicsView, by_id: bool) -> tuple[OffsetFetchResponseTopics, ...]:
    """Every offset the group has; with ids, those of topics that still have one."""
    answers = []
    for name, partitions in shard.offsets.of_group(group_id):
        topic_id = topics.topic_id(name) if by_id else None
        if by_id and topic_id is None:
            continue
        found = tuple(
            _found(partition, committed)
            for partition, committed in partitions
            if not by_id or committed.topic_id in (None, topic_id)
        )
        if found:
            answers.append(OffsetFetchResponseTopics(name=name, topic_id=topic_id, partitions=found))
    return tuple(answers)


def _topic(
    shard: Shard, group_id: str, asked: OffsetFetchRequestTopics, topics: TopicsView, by_id: bool
) -> OffsetFetchResponseTopics:
    name: str | None = asked.name
    if by_id:
        name = topics.topic_name(asked.topic_id) if asked.topic_id is not None else None
    if name is None:
        unknown = tuple(_missing(partition, ErrorCode.UNKNOWN_TOPIC_ID) for partition in asked.partition_indexes)
        return OffsetFetchResponseTopics(topic_id=asked.topic_id, partitions=unknown)
    partitions = []
    for partition in asked.partition_indexes:
        committed = shard.offsets.get(group_id, name, partition)
        # An offset of a topic of the same name that was deleted since is not this topic's.
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
