"""The registry in the layout of ZooKeeper, made of answers: paths and JSON as ``kafka.zk.ZkData`` wrote them."""

import json
import uuid
from typing import Any

import pytest

from groupcoord.client.metadata_as_zookeeper_paths import ZooKeeperTree, zookeeper_tree
from groupcoord.protocol.apis.describe_quorum import (
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseTopicData,
)
from groupcoord.protocol.apis.list_partition_reassignments import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from groupcoord.protocol.apis.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from groupcoord.protocol.errors import ErrorCode

TOPIC_ID = uuid.UUID("8a7e1f7c-54a5-4f0e-8a2e-4d9f6a1b2c3d")


def metadata(**changes: Any) -> MetadataResponse:
    partition = MetadataResponsePartition(
        partition_index=0, leader_id=2, leader_epoch=4, replica_nodes=(2, 10, 1), isr_nodes=(2, 10)
    )
    without_leader = MetadataResponsePartition(
        error_code=ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=10,
        leader_id=-1,
        leader_epoch=7,
        replica_nodes=(3,),
        isr_nodes=(),
    )
    topic = MetadataResponseTopic(name="orders", topic_id=TOPIC_ID, partitions=(without_leader, partition))
    brokers = (
        MetadataResponseBroker(node_id=10, host="::1", port=9094),
        MetadataResponseBroker(node_id=2, host="kafka-2", port=9093, rack="b"),
    )
    given: dict[str, Any] = {"brokers": brokers, "cluster_id": "abc", "controller_id": 2, "topics": (topic,)}
    return MetadataResponse(**(given | changes))


def quorum(error: ErrorCode = ErrorCode.NONE) -> DescribeQuorumResponse:
    partition = DescribeQuorumResponsePartitionData(
        partition_index=0, error_code=error, leader_id=3000, leader_epoch=5, high_watermark=70
    )
    topic = DescribeQuorumResponseTopicData(topic_name="__cluster_metadata", partitions=(partition,))
    return DescribeQuorumResponse(topics=(topic,))


def test_the_paths_are_those_of_zookeeper() -> None:
    assert list(zookeeper_tree(metadata(), quorum())) == [
        "/",
        "/brokers",
        "/brokers/ids",
        "/brokers/ids/2",
        "/brokers/ids/10",
        "/brokers/topics",
        "/brokers/topics/orders",
        "/brokers/topics/orders/partitions",
        "/brokers/topics/orders/partitions/0",
        "/brokers/topics/orders/partitions/0/state",
        "/brokers/topics/orders/partitions/10",
        "/brokers/topics/orders/partitions/10/state",
        "/cluster",
        "/cluster/id",
        "/controller",
        "/controller_epoch",
    ]


def test_a_broker_is_told_with_its_endpoint_and_rack() -> None:
    tree = zookeeper_tree(metadata(), quorum())
    assert tree["/brokers/ids/2"] == {
        "version": 5,
        "host": "kafka-2",
        "port": 9093,
        "endpoints": ["PLAINTEXT://kafka-2:9093"],
        "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"},
        "rack": "b",
        "jmx_port": -1,
        "timestamp": "-1",
        "features": {},
    }
    assert "rack" not in tree["/brokers/ids/10"]
    assert tree["/brokers/ids/10"]["endpoints"] == ["PLAINTEXT://[::1]:9094"]


def test_topics_have_their_assignment_and_partitions_their_state() -> None:
    ongoing = OngoingPartitionReassignment(
        partition_index=0, replicas=(2, 10, 1), adding_replicas=(10,), removing_replicas=(1,)
    )
    other = OngoingPartitionReassignment(partition_index=10, replicas=(3,), adding_replicas=(3,), removing_replicas=())
    reassignments = ListPartitionReassignmentsResponse(
        topics=(OngoingTopicReassignment(name="orders", partitions=(ongoing, other)),)
    )
    tree = zookeeper_tree(metadata(), quorum(), reassignments)
    assert tree["/brokers/topics/orders"] == {
        "version": 3,
        "topic_id": "in4ffFSlTw6KLk2fahssPQ",
        "partitions": {"0": [2, 10, 1], "10": [3]},
        "adding_replicas": {"0": [10], "10": [3]},
        "removing_replicas": {"0": [1]},
    }
    state = {"controller_epoch": 5, "leader": 2, "version": 1, "leader_epoch": 4, "isr": [2, 10]}
    assert tree["/brokers/topics/orders/partitions/0/state"] == state
    assert tree["/brokers/topics/orders/partitions/10/state"]["leader"] == -1
    assert zookeeper_tree(metadata())["/brokers/topics/orders"]["adding_replicas"] == {}


def test_a_topic_of_an_old_broker_has_no_id() -> None:
    topic = MetadataResponseTopic(name="orders", topic_id=None, partitions=())
    assert "topic_id" not in zookeeper_tree(metadata(topics=(topic,)))["/brokers/topics/orders"]


def test_the_controller_is_the_leader_of_the_quorum_or_the_broker_that_metadata_names() -> None:
    for asked, expected in (
        (quorum(), (3000, 5)),
        (None, (2, -1)),
        (quorum(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), (2, -1)),
    ):
        tree = zookeeper_tree(metadata(), asked)
        assert (tree["/controller"]["brokerid"], tree["/controller_epoch"]) == expected
    assert "/controller" not in zookeeper_tree(metadata(controller_id=-1))
    assert zookeeper_tree(metadata(), quorum())["/cluster/id"] == {"version": "1", "id": "abc"}


def test_a_part_of_the_tree() -> None:
    tree = zookeeper_tree(metadata(), quorum())
    assert tree.children() == ["brokers", "cluster", "controller", "controller_epoch"]
    assert tree.children("/brokers/ids") == ["2", "10"]
    assert list(tree.tree("/brokers/ids")) == ["/brokers/ids", "/brokers/ids/2", "/brokers/ids/10"]
    first, second = tree.text("/cluster").splitlines()
    assert first == "/cluster"
    assert second == '/cluster/id {"version":"1","id":"abc"}'
    assert repr(tree) == "<ZooKeeperTree of 16 paths>"
    assert json.loads(json.dumps(tree.tree())) == tree


def test_what_is_not_there_says_what_is() -> None:
    tree = zookeeper_tree(metadata(), quorum())
    assert "/brokers/ids/3" not in tree
    for path, there in {
        "/brokers/ids/3": "/brokers/ids has 2, 10",
        "/brokers/ids/3/state": "/brokers/ids has 2, 10",
        "/nope": "/ has brokers, cluster, controller, controller_epoch",
        "/cluster/id/x": "/cluster/id has nothing below it",
    }.items():
        with pytest.raises(KeyError, match=f"there is no {path}; {there}"):
            tree.tree(path)
    assert isinstance(tree, ZooKeeperTree)
