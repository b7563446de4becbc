"""OffsetForLeaderEpoch (KIP-101, KIP-320): the end offset of a leader epoch, by which a follower detects that its log has
diverged, and a consumer that the log was truncated below its position.

Source: ``ReplicaManager.lastOffsetForLeaderEpoch``.
"""

from groupcoord.broker.broker import Broker
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call
from groupcoord.protocol.apis.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from groupcoord.protocol.errors import ErrorCode


def handle_offset_for_leader_epoch(
    broker: Broker, ctx: HandlerContext, call: Call, request: OffsetForLeaderEpochRequest
) -> None:
    """Respond with the end offset of a leader epoch in each partition."""
    topics = tuple(
        OffsetForLeaderTopicResult(
            topic=topic.topic,
            partitions=tuple(_end_of_epoch(broker, call, topic.topic, partition) for partition in topic.partitions),
        )
        for topic in request.topics
    )
    ctx.reply(call, OffsetForLeaderEpochResponse(topics=topics))


def _end_of_epoch(broker: Broker, call: Call, name: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    topic, log = broker.topics.get(name), broker.log(name, asked.partition)
    if topic is None or log is None:
        return EpochEndOffset(partition=asked.partition, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    error = broker.check_leader(call, topic, asked.partition, asked.current_leader_epoch, leader_only=True)
    if error:
        return EpochEndOffset(partition=asked.partition, error_code=error)
    epoch, end_offset = log.end_of_epoch(asked.leader_epoch)
    return EpochEndOffset(partition=asked.partition, leader_epoch=epoch, end_offset=end_offset)
