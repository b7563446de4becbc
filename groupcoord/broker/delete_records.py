"""DeleteRecords (KIP-107): advances the log start offset of partitions.

Source: ``ReplicaManager.deleteRecords``.
"""

from collections.abc import Iterable, Mapping, Sequence

from groupcoord.broker.broker import Broker
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call
from groupcoord.core.java_hash_order import partition_hash
from groupcoord.core.scala_hash_order import grouped_by_topic, mutable_map_order, set_order
from groupcoord.core.transaction_verification_types import TopicPartition
from groupcoord.protocol.apis.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from groupcoord.protocol.batches.record_batch import BatchError
from groupcoord.protocol.errors import ErrorCode


def handle_delete_records(broker: Broker, ctx: HandlerContext, call: Call, request: DeleteRecordsRequest) -> None:
    """Advance the log start offset of each partition."""
    # For a partition that is named twice, only the last offset counts.
    offsets = {
        (topic.name, partition.partition_index): partition.offset
        for topic in request.topics
        for partition in topic.partitions
    }
    results = {
        (name, index): _delete_records(broker, call, name, index, offset) for (name, index), offset in offsets.items()
    }
    topics = tuple(
        DeleteRecordsTopicResult(name=name, partitions=tuple(results[partition] for partition in partitions))
        for name, partitions in _in_order(broker, offsets).items()
    )
    ctx.reply(call, DeleteRecordsResponse(topics=topics))


def _in_order(broker: Broker, partitions: Iterable[TopicPartition]) -> Mapping[str, Sequence[TopicPartition]]:
    """The partitions by topic, in the order of Kafka's maps: if no partition exists, those are immutable."""
    in_order = mutable_map_order(partitions, partition_hash)
    exists = any(broker.log(*partition) is not None for partition in in_order)
    return grouped_by_topic(in_order, mutable_map_order if exists else set_order)


def _delete_records(broker: Broker, call: Call, name: str, index: int, offset: int) -> DeleteRecordsPartitionResult:
    topic, log = broker.topics.get(name), broker.log(name, index)
    if topic is None or log is None:
        return _not_deleted(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if topic.metadata.is_internal:
        return _not_deleted(index, ErrorCode.INVALID_TOPIC_EXCEPTION)
    if not broker.leads(call, topic, index):
        return _not_deleted(index, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    try:
        return DeleteRecordsPartitionResult(partition_index=index, low_watermark=log.delete_records(offset))
    except BatchError as problem:
        return _not_deleted(index, problem.error)


def _not_deleted(index: int, error: ErrorCode) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=-1, error_code=error)
