"""Serialization of subscriptions and assignments in JoinGroup and SyncGroup. Source: ``ConsumerProtocol``."""

from collections.abc import Iterable, Sequence

from groupcoord.assignors.interface import Subscription, TopicPartition
from groupcoord.assignors.java_order import java_sorted
from groupcoord.core.grouping import grouped
from groupcoord.core.java_hash_order import compare_key
from groupcoord.protocol import consumer_protocol


def write_subscription(subscription: Subscription, version: int = consumer_protocol.HIGHEST_VERSION) -> bytes:
    """The bytes of ``subscription``, with topics and owned partitions sorted as by Kafka."""
    owned = sorted(subscription.owned_partitions, key=lambda partition: (compare_key(partition[0]), partition[1]))
    return consumer_protocol.write_subscription(
        consumer_protocol.ConsumerProtocolSubscription(
            version=version,
            topics=tuple(java_sorted(subscription.topics)),
            user_data=subscription.user_data,
            owned_partitions=by_topic(owned),
            generation_id=-1 if subscription.generation_id is None else subscription.generation_id,
            rack_id=subscription.rack_id,
        )
    )


def read_subscription(data: bytes, instance_id: str | None = None) -> Subscription:
    """The subscription in ``data``; the instance id comes from JoinGroup. Raises WireError."""
    read = consumer_protocol.read_subscription(data)
    return Subscription(
        topics=read.topics,
        user_data=read.user_data,
        owned_partitions=_flat(read.owned_partitions),
        generation_id=read.generation_id if read.generation_id >= 0 else None,
        rack_id=read.rack_id or None,
        instance_id=instance_id,
    )


def write_assignment(
    partitions: Iterable[TopicPartition],
    user_data: bytes | None = None,
    version: int = consumer_protocol.HIGHEST_VERSION,
) -> bytes:
    """The bytes of an assignment of ``partitions``."""
    return consumer_protocol.write_assignment(
        consumer_protocol.ConsumerProtocolAssignment(
            version=version, assigned_partitions=by_topic(partitions), user_data=user_data
        )
    )


def read_assignment(data: bytes) -> list[TopicPartition]:
    """The partitions in ``data``. Raises WireError, also for no bytes: the leader did not assign anything to the member."""
    return _flat(consumer_protocol.read_assignment(data).assigned_partitions)


def by_topic(partitions: Iterable[TopicPartition]) -> tuple[consumer_protocol.TopicPartition, ...]:
    """``partitions`` grouped by topic, in order of appearance."""
    return tuple(
        [
            consumer_protocol.TopicPartition(topic=topic, partitions=tuple(numbers))
            for topic, numbers in grouped(partitions).items()
        ]
    )


def _flat(topics: Sequence[consumer_protocol.TopicPartition]) -> list[TopicPartition]:
    return [(topic.topic, partition) for topic in topics for partition in topic.partitions]
