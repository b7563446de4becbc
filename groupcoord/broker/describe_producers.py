"""DescribeProducers (KIP-664): the producers of partitions, and the first offsets of their open transactions.

Source: ``KafkaApis.handleDescribeProducersRequest``, ``UnifiedLog.activeProducers``.
"""

from groupcoord.broker.broker import Broker
from groupcoord.broker.leader_epoch_cache import UNDEFINED_EPOCH
from groupcoord.broker.partition_log import PartitionLog
from groupcoord.broker.producer_state_manager import NO_OFFSET
from groupcoord.broker.topic_names import fault_text
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call
from groupcoord.core.java_hash_order import hash_map_order
from groupcoord.protocol.apis.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from groupcoord.protocol.errors import ErrorCode

_NO_SUCH_TOPIC = "This server does not host this topic-partition."


def handle_describe_producers(
    broker: Broker, ctx: HandlerContext, call: Call, request: DescribeProducersRequest
) -> None:
    """Respond with the producers of each partition; followers answer as leaders do."""
    topics = tuple(
        TopicResponse(
            name=topic.name,
            partitions=tuple(_producers(broker, call, topic.name, index) for index in topic.partition_indexes),
        )
        for topic in request.topics
    )
    ctx.reply(call, DescribeProducersResponse(topics=topics))


def _producers(broker: Broker, call: Call, name: str, index: int) -> PartitionResponse:
    fault = fault_text(name)
    if fault is not None:
        return _refused(index, ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
    topic = broker.topics.get(name)
    if topic is None:
        return _refused(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, _NO_SUCH_TOPIC)
    if not 0 <= index < len(topic.partitions):
        return _refused(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    error = broker.check_leader(call, topic, index, UNDEFINED_EPOCH, leader_only=False)
    if error:
        return _refused(index, error)
    return PartitionResponse(partition_index=index, active_producers=_states(broker.log_here(call, topic, index)))


def _refused(index: int, error: ErrorCode, message: str | None = None) -> PartitionResponse:
    return PartitionResponse(partition_index=index, error_code=error, error_message=message)


def _states(log: PartitionLog) -> tuple[ProducerState, ...]:
    """The producers of ``log``, in the order of Kafka's map."""
    entries = dict(log.producers.items())
    return tuple(
        ProducerState(
            producer_id=producer_id,
            producer_epoch=entry.epoch,
            last_sequence=entry.last_sequence,
            last_timestamp=entry.last_timestamp_ms,
            coordinator_epoch=entry.coordinator_epoch,
            current_txn_start_offset=(
                NO_OFFSET if entry.current_txn_first_offset is None else entry.current_txn_first_offset
            ),
        )
        for producer_id in hash_map_order(entries, _long_hash)
        for entry in (entries[producer_id],)
    )


def _long_hash(number: int) -> int:
    """``Long.hashCode``."""
    return (number ^ number >> 32) & 0xFFFFFFFF
