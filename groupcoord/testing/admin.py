"""What a test asks of a broker beside what members ask: topics made, changed, deleted and looked up."""

from collections.abc import Iterable
from typing import Any

from groupcoord.client.topics_view import TopicsView
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    MetadataRequest,
    MetadataResponse,
)
from groupcoord.protocol.messages.create_partitions import CreatePartitionsTopic
from groupcoord.protocol.messages.create_topics import CreatableTopic
from groupcoord.protocol.messages.delete_topics import DeleteTopicState
from groupcoord.protocol.messages.metadata import MetadataRequestTopic

_TIMEOUT_MS = 30_000


def creation(topic: str, partitions: int) -> CreateTopicsRequest:
    """Create ``topic``, with as many replicas as the broker likes."""
    wanted = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=-1)
    return CreateTopicsRequest(topics=(wanted,), timeout_ms=_TIMEOUT_MS)


def growth(topic: str, total: int) -> CreatePartitionsRequest:
    """Let ``topic`` have ``total`` partitions."""
    return CreatePartitionsRequest(topics=(CreatePartitionsTopic(name=topic, count=total),), timeout_ms=_TIMEOUT_MS)


def deletion(topic: str) -> DeleteTopicsRequest:
    """Delete ``topic``."""
    return DeleteTopicsRequest(topic_names=(topic,), topics=(DeleteTopicState(name=topic),), timeout_ms=_TIMEOUT_MS)


def raise_refusal(response: Any) -> None:
    """Raise ValueError if the response to one of the above says that Kafka refuses it."""
    for name in ("topics", "results", "responses"):
        for result in getattr(response, name, ()):
            if result.error_code:
                code = ErrorCode(result.error_code)
                raise ValueError(f"{result.name}: {code.name}: {result.error_message or code.text}")


def question(topics: Iterable[str] | None) -> MetadataRequest:
    """What is known of ``topics``, or of all of them? None is made by asking."""
    return MetadataRequest(
        topics=None if topics is None else tuple(MetadataRequestTopic(name=name) for name in sorted(topics)),
        allow_auto_topic_creation=False,
    )


def topics_view(response: MetadataResponse) -> TopicsView:
    """The topics of which a broker told."""
    rack_of = {broker.node_id: broker.rack for broker in response.brokers}
    known = {topic.name: topic.partitions for topic in response.topics if topic.name and not topic.error_code}
    return TopicsView(
        partitions={name: len(partitions) for name, partitions in known.items()},
        racks={
            name: tuple(
                frozenset(rack for node_id in each.replica_nodes if (rack := rack_of.get(node_id)))
                for each in sorted(partitions, key=lambda each: each.partition_index)
            )
            for name, partitions in known.items()
        },
    )
