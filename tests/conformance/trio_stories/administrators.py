"""What administrators are answered while brokers are gone: Metadata, DescribeCluster, DescribeTopicPartitions, topics that are
created, enlarged, configured and deleted, and configurations."""

from typing import Any

from groupcoord.protocol.apis.create_partitions import CreatePartitionsAssignment, CreatePartitionsTopic
from groupcoord.protocol.apis.create_topics import CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig
from groupcoord.protocol.apis.delete_topics import DeleteTopicState
from groupcoord.protocol.apis.describe_configs import DescribeConfigsResource
from groupcoord.protocol.apis.describe_topic_partitions import TopicRequest
from groupcoord.protocol.apis.incremental_alter_configs import AlterableConfig, AlterConfigsResource
from groupcoord.protocol.messages import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeTopicPartitionsRequest,
    IncrementalAlterConfigsRequest,
    MetadataRequest,
)
from tests.conformance.trio_requests import metadata
from tests.conformance.trio_story import SESSION_S, Topics, TrioStory

TOPICS: Topics = {"safe": (((1, 2, 3), (3, 1, 2)), {"min.insync.replicas": "2"}), "lone": (((3,),), {})}
TOPIC, BROKER = 2, 4


def create(*placed: tuple[int, ...], name: str, factor: int = -1, partitions: int = -1) -> CreateTopicsRequest:
    assignments = tuple(
        CreatableReplicaAssignment(partition_index=index, broker_ids=brokers) for index, brokers in enumerate(placed)
    )
    topic = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        assignments=assignments,
        configs=(CreatableTopicConfig(name="retention.ms", value="-1"),),
    )
    return CreateTopicsRequest(topics=(topic,), timeout_ms=9000)


def enlarge(name: str, count: int, *placed: tuple[int, ...]) -> CreatePartitionsRequest:
    assignments = tuple(CreatePartitionsAssignment(broker_ids=brokers) for brokers in placed) or None
    return CreatePartitionsRequest(
        topics=(CreatePartitionsTopic(name=name, count=count, assignments=assignments),), timeout_ms=9000
    )


def set_min_isr(value: str) -> IncrementalAlterConfigsRequest:
    change = AlterableConfig(name="min.insync.replicas", config_operation=0, value=value)
    return IncrementalAlterConfigsRequest(
        resources=(AlterConfigsResource(resource_type=TOPIC, resource_name="safe", configs=(change,)),)
    )


def describe(kind: int, name: str, *keys: str) -> DescribeConfigsRequest:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
    return DescribeConfigsRequest(resources=(resource,))


def look_around(story: TrioStory, what: str, broker_id: int, **options: Any) -> None:
    """What an administrator looks at first, at that broker."""
    asks = story.asks
    asks(f"{what}: Metadata", broker_id, metadata("safe", "lone", "nope"), 13, **options)
    asks(f"{what}: Metadata of brokers", broker_id, MetadataRequest(topics=()), 12)
    asks(f"{what}: DescribeCluster", broker_id, DescribeClusterRequest(), 1)
    asks(f"{what}: DescribeCluster, fenced ones too", broker_id, DescribeClusterRequest(include_fenced_brokers=True), 2)
    asked = tuple(TopicRequest(name=name) for name in ("lone", "safe"))
    asks(f"{what}: DescribeTopicPartitions", broker_id, DescribeTopicPartitionsRequest(topics=asked), 0)


def tell(story: TrioStory) -> None:
    """All run; 3 is killed, then 2; both come back."""
    look_around(story, "all run", 1)
    for broker_id in (1, 3):
        story.asks(f"configuration of 3 at {broker_id}", broker_id, describe(BROKER, "3", "node.id"), 4)
    story.asks("configuration of safe at 3", 3, describe(TOPIC, "safe", "min.insync.replicas"), 4)

    story.act("kill", 3)
    look_around(story, "3 is killed", 1)
    story.asks("create with three replicas before it is missed", 1, create((1, 2, 3), name="early"), 7)
    story.passes(SESSION_S)
    story.partitions("3 is fenced", 1, "early", *TOPICS)
    look_around(story, "3 is fenced", 1)
    story.asks("configuration of 3", 1, describe(BROKER, "3", "node.id"), 4)
    for name, factor in (("by-default", -1), ("two-copies", 2), ("three-copies", 3), ("four-copies", 4)):
        story.asks(f"create {name}", 1, create(name=name, factor=factor, partitions=1), 7)
    story.asks("create on the one that is gone", 1, create((3,), name="gone"), 7)
    story.asks("create on it and others", 2, create((3, 1), (1, 3), name="partly"), 7)
    story.asks("create on a broker that there is none of", 1, create((9,), name="nowhere"), 7)
    story.partitions("created", 1, "early", "partly", "gone")
    story.asks("enlarge", 1, enlarge("early", 2), 3)
    story.asks("enlarge on one that runs", 1, enlarge("lone", 2, (2,)), 3)
    story.asks("enlarge with the one that is gone", 1, enlarge("safe", 3, (3, 2, 1)), 3)
    story.asks("enlarge on the one that is gone", 1, enlarge("lone", 3, (3,)), 3)
    story.partitions("enlarged", 1, *TOPICS)

    story.act("kill", 2)
    story.passes(SESSION_S)
    story.partitions("2 is fenced", 1, *TOPICS)
    look_around(story, "2 is fenced", 1)
    story.asks("min.insync.replicas is 1", 1, set_min_isr("1"), 1)
    story.partitions("min.insync.replicas is 1", 1, *TOPICS)
    story.asks("min.insync.replicas is 3", 1, set_min_isr("3"), 1)
    story.partitions("min.insync.replicas is 3", 1, *TOPICS)
    story.asks("create with what is left", 1, create(name="alone", factor=1, partitions=2), 7)
    gone = (DeleteTopicState(name="early"), DeleteTopicState(name="gone"))
    story.asks("delete early and gone", 1, DeleteTopicsRequest(topics=gone, timeout_ms=9000), 6)
    story.asks("Metadata of what was deleted", 1, metadata("early", "gone"), 12, settles=True)

    story.act("start", 2)
    story.act("start", 3)
    story.partitions("2 and 3 are back", 3, "partly", *TOPICS)
    look_around(story, "2 and 3 are back", 3)
