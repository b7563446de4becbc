"""DescribeTopicPartitions (version 0): topics by name, at most so many partitions, and a cursor for the next request.

Source: ``DescribeTopicPartitionsRequestHandler`` and ``KRaftMetadataCache.describeTopicResponse``.
"""

from groupcoord.broker import topic_names
from groupcoord.broker.broker import Broker
from groupcoord.broker.metadata import TOPIC_OPERATIONS
from groupcoord.broker.topics import Topic
from groupcoord.core.effects import Call
from groupcoord.core.handler_context import HandlerContext
from groupcoord.core.java import compare_key
from groupcoord.protocol.apis.describe_topic_partitions import (
    API,
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from groupcoord.protocol.batches.record_batch import INT32_MAX
from groupcoord.protocol.errors import ErrorCode


def handle_describe_topic_partitions(
    broker: Broker, ctx: HandlerContext, call: Call, request: DescribeTopicPartitionsRequest
) -> None:
    """Answer with the partitions of the topics asked for, or of all topics, from the cursor on."""
    error = _error_of(request)
    if error:
        ctx.reply(call, API.error_response(request, call.version, error))
        return
    cursor = request.cursor or Cursor(topic_name="", partition_index=0)
    asked = {topic.name for topic in request.topics} or {topic.name for topic in broker.topics}
    first = compare_key(cursor.topic_name)
    names = sorted((name for name in asked if compare_key(name) >= first), key=compare_key)
    limit = int(str(broker.config["max.request.partition.size.limit"]))
    remaining = max(min(limit, request.response_partition_limit), 1)
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    next_cursor = None
    for name in names:
        if not remaining:
            next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        topic = broker.topics.get(name)
        if topic is None:
            topics.append(_missing(name))
            continue
        start = cursor.partition_index if name == cursor.topic_name else 0
        end = min(_int32(start + remaining), len(topic.partitions))
        topics.append(_described(topic, range(start, end)))
        if end < len(topic.partitions):
            next_cursor = Cursor(topic_name=name, partition_index=end)
            break
        remaining -= len(topics[-1].partitions)
    ctx.reply(call, DescribeTopicPartitionsResponse(topics=tuple(topics), next_cursor=next_cursor))


def _error_of(request: DescribeTopicPartitionsRequest) -> ErrorCode:
    """The error of the whole request, or NONE."""
    cursor = request.cursor
    if cursor is None:
        # Kafka compares the empty name with that of its missing cursor, and fails.
        unnamed = any(not topic.name for topic in request.topics)
        return ErrorCode.UNKNOWN_SERVER_ERROR if unnamed else ErrorCode.NONE
    is_asked = not request.topics or any(topic.name == cursor.topic_name for topic in request.topics)
    return ErrorCode.NONE if is_asked and cursor.partition_index >= 0 else ErrorCode.INVALID_REQUEST


def _int32(number: int) -> int:
    """``number`` as Java's int: a sum that is too large is negative."""
    return number if number <= INT32_MAX else number - (1 << 32)


def _missing(name: str) -> DescribeTopicPartitionsResponseTopic:
    invalid = topic_names.fault_of(name) is not None
    return DescribeTopicPartitionsResponseTopic(
        error_code=ErrorCode.INVALID_TOPIC_EXCEPTION if invalid else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        name=name,
        is_internal=name in topic_names.INTERNAL,
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _described(topic: Topic, indexes: range) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=tuple(
            DescribeTopicPartitionsResponsePartition(
                partition_index=index,
                leader_id=topic.leaders[index],
                leader_epoch=topic.partitions[index].leader_epoch,
                replica_nodes=topic.replicas[index],
                isr_nodes=topic.replicas[index],
                eligible_leader_replicas=(),  # every replica is in sync
                last_known_elr=(),
            )
            for index in indexes
        ),
        topic_authorized_operations=TOPIC_OPERATIONS,
    )
