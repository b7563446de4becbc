"""What tests ask of brokers."""

import pytest

from groupcoord.client.member.metadata_and_commit_requests import (
    metadata_request,
    metadata_snapshot,
    offset_commit_request,
    partition_errors,
)
from groupcoord.protocol.apis.create_partitions import CreatePartitionsTopicResult
from groupcoord.protocol.apis.create_topics import CreatableTopicResult
from groupcoord.protocol.apis.delete_topics import DeletableTopicResult
from groupcoord.protocol.apis.metadata import (
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from groupcoord.protocol.apis.offset_commit import OffsetCommitResponsePartition, OffsetCommitResponseTopic
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import (
    CreatePartitionsResponse,
    CreateTopicsResponse,
    DeleteTopicsResponse,
    MetadataResponse,
    OffsetCommitResponse,
)
from groupcoord.testing.abstract_cluster import creation, deletion, growth, raise_refusal
from groupcoord.testing.topic_settings import Topic


def test_requests_name_their_topic() -> None:
    assert [(each.name, each.num_partitions) for each in creation("orders", Topic(3)).topics] == [("orders", 3)]
    assert (growth("orders", 5).topics[0].name, growth("orders", 5).topics[0].count) == ("orders", 5)
    assert deletion("orders").topic_names == (deletion("orders").topics[0].name,) == ("orders",)


def test_a_refusal_is_raised_in_the_broker_s_words_or_in_kafka_s() -> None:
    code = ErrorCode.INVALID_PARTITIONS
    with pytest.raises(ValueError, match="orders: INVALID_PARTITIONS: too few"):
        raise_refusal(
            CreateTopicsResponse(
                topics=(CreatableTopicResult(name="orders", error_code=code, error_message="too few"),)
            )
        )
    with pytest.raises(ValueError, match=f"orders: INVALID_PARTITIONS: {code.text}"):
        raise_refusal(CreatePartitionsResponse(results=(CreatePartitionsTopicResult(name="orders", error_code=code),)))
    with pytest.raises(ValueError, match="INVALID_PARTITIONS"):
        raise_refusal(DeleteTopicsResponse(responses=(DeletableTopicResult(name="orders", error_code=code),)))
    raise_refusal(CreateTopicsResponse(topics=(CreatableTopicResult(name="orders"),)))


def test_what_metadata_says_of_topics() -> None:
    assert metadata_request(None).topics is None
    assert [topic.name for topic in metadata_request({"b", "a"}).topics or ()] == ["a", "b"]
    partitions = tuple(
        MetadataResponsePartition(partition_index=number, leader_id=1, replica_nodes=replicas)
        for number, replicas in ((1, (1, 2)), (0, (3,)))
    )
    response = MetadataResponse(
        brokers=tuple(
            MetadataResponseBroker(node_id=number, host="h", port=1, rack=rack)
            for number, rack in ((1, "east"), (2, "west"), (3, None))
        ),
        topics=(
            MetadataResponseTopic(name="orders", partitions=partitions),
            MetadataResponseTopic(name="gone", error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            MetadataResponseTopic(name=None),
        ),
    )
    view = metadata_snapshot(response)
    assert view.partitions == {"orders": 2}
    assert view.racks == {"orders": (frozenset(), frozenset({"east", "west"}))}


def test_offsets_are_grouped_by_topic() -> None:
    request = offset_commit_request("app", 3, "m", "one", {("b", 1): 5, ("a", 0): 6, ("b", 0): 7})
    assert (request.group_id, request.generation_id_or_member_epoch, request.member_id) == ("app", 3, "m")
    assert request.group_instance_id == "one"
    assert [
        (topic.name, [(each.partition_index, each.committed_offset) for each in topic.partitions])
        for topic in request.topics
    ] == [("b", [(1, 5), (0, 7)]), ("a", [(0, 6)])]


def test_each_partition_has_its_code() -> None:
    partitions = (
        OffsetCommitResponsePartition(partition_index=0),
        OffsetCommitResponsePartition(partition_index=1, error_code=ErrorCode.REBALANCE_IN_PROGRESS),
    )
    response = OffsetCommitResponse(topics=(OffsetCommitResponseTopic(name="a", partitions=partitions),))
    assert partition_errors(response) == {("a", 0): ErrorCode.NONE, ("a", 1): ErrorCode.REBALANCE_IN_PROGRESS}
