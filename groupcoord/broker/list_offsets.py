"""ListOffsets (versions 1–11): the offset for a timestamp, or the log's start or end.

Source: ``ReplicaManager.fetchOffset``.
"""

from collections import Counter

from groupcoord.broker.broker import Broker
from groupcoord.broker.log_segment import SearchDeferredError, TimestampSearch
from groupcoord.broker.partition_log import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
)
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call
from groupcoord.core.scala_hash_order import grouped_by_topic, mutable_map_order
from groupcoord.protocol.apis.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from groupcoord.protocol.batches.record_batch import BatchError
from groupcoord.protocol.batches.records import InvalidRecordsError
from groupcoord.protocol.errors import ErrorCode

_SUPPORTED_SINCE = {
    EARLIEST: 1,
    LATEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
"""The first version of ListOffsets that supports each negative timestamp."""

_READ_UNCOMMITTED, _READ_COMMITTED = 0, 1
_DEBUGGER = -2  # the replica id of a debugging consumer, which followers serve, too


def handle_list_offsets(broker: Broker, ctx: HandlerContext, call: Call, request: ListOffsetsRequest) -> None:
    """Respond with the offset for the timestamp of each partition; topics and partitions come in the order of Kafka's maps."""
    _list_offsets(broker, ctx, call, request, TimestampSearch())


def _list_offsets(
    broker: Broker, ctx: HandlerContext, call: Call, request: ListOffsetsRequest, search: TimestampSearch
) -> None:
    """Respond if all searches are complete; else run the others in the background, and try again."""
    if request.isolation_level not in (_READ_UNCOMMITTED, _READ_COMMITTED):
        ctx.reply(call, _no_offsets(request, ErrorCode.UNKNOWN_SERVER_ERROR))
        return
    named = Counter((topic.name, part.partition_index) for topic in request.topics for part in topic.partitions)
    answers: dict[tuple[str, int], ListOffsetsPartitionResponse] = {}
    for topic in request.topics:
        for part in topic.partitions:
            index = part.partition_index
            if named[topic.name, index] > 1:
                answer = _no_offset(index, ErrorCode.INVALID_REQUEST)
            elif part.timestamp < 0 and call.version < _SUPPORTED_SINCE.get(part.timestamp, call.version + 1):
                answer = _no_offset(index, ErrorCode.UNSUPPORTED_VERSION)
            else:
                answer = _list_offset(broker, call, request, topic.name, part, search)
            answers[topic.name, index] = answer
    if search.wanted:
        broker.run_work(ctx, call, search.work(), lambda later, _: _list_offsets(broker, later, call, request, search))
        return
    topics = tuple(
        ListOffsetsTopicResponse(name=name, partitions=tuple(answers[partition] for partition in partitions))
        for name, partitions in grouped_by_topic(answers, mutable_map_order).items()
    )
    ctx.reply(call, ListOffsetsResponse(topics=topics))


def _no_offsets(request: ListOffsetsRequest, error: ErrorCode) -> ListOffsetsResponse:
    topics = tuple(
        ListOffsetsTopicResponse(
            name=topic.name, partitions=tuple(_no_offset(part.partition_index, error) for part in topic.partitions)
        )
        for topic in request.topics
    )
    return ListOffsetsResponse(topics=topics)


def _list_offset(
    broker: Broker,
    call: Call,
    request: ListOffsetsRequest,
    name: str,
    part: ListOffsetsPartition,
    search: TimestampSearch,
) -> ListOffsetsPartitionResponse:
    index = part.partition_index
    topic = broker.topics.get(name)
    if topic is None or not 0 <= index < len(topic.partitions):
        return _no_offset(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    leader_only = request.replica_id != _DEBUGGER
    error = broker.check_leader(call, topic, index, part.current_leader_epoch, leader_only=leader_only)
    if error:
        return _no_offset(index, error)
    log = broker.log_here(call, topic, index)
    try:
        committed_only = request.isolation_level == _READ_COMMITTED
        found = log.offset_for_timestamp(part.timestamp, search, committed_only=committed_only)
    except BatchError as problem:
        return _no_offset(index, problem.error)
    except SearchDeferredError:  # not sent: the request is retried after the search
        return _no_offset(index, ErrorCode.NONE)
    except InvalidRecordsError:  # a compressed batch with unreadable records
        return _no_offset(index, ErrorCode.INVALID_RECORD)
    if found is None:
        return _no_offset(index, ErrorCode.NONE)
    return ListOffsetsPartitionResponse(
        partition_index=index, timestamp=found.timestamp_ms, offset=found.offset, leader_epoch=found.leader_epoch
    )


def _no_offset(index: int, error: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=index, error_code=error)
