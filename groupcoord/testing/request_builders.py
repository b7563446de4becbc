"""Requests that the members and administrators of a test send, and how their responses are read."""

from collections.abc import Iterable, Mapping
from typing import Any

from groupcoord.assignors import TopicPartition
from groupcoord.client.member.actions import TopicsView
from groupcoord.protocol.apis.create_partitions import CreatePartitionsTopic
from groupcoord.protocol.apis.create_topics import CreatableTopic
from groupcoord.protocol.apis.delete_topics import DeleteTopicState
from groupcoord.protocol.apis.leave_group import MemberIdentity
from groupcoord.protocol.apis.metadata import MetadataRequestTopic
from groupcoord.protocol.apis.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MetadataRequest,
    MetadataResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
)

_TIMEOUT_MS = 30_000
BY_NAME = 9
"""The last version of OffsetCommit that names topics; the later ones have ids."""


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


def removal(group: str, member_id: str) -> LeaveGroupRequest:
    """Remove a member as an administrator does, by LeaveGroup in its name."""
    identity = MemberIdentity(member_id=member_id, reason="an administrator removes it")
    return LeaveGroupRequest(group_id=group, members=(identity,), member_id=member_id)


def raise_removal_refusal(response: LeaveGroupResponse, member: str) -> None:
    """Raise ValueError if the broker refused a ``removal``."""
    code = ErrorCode(response.error_code or response.members[0].error_code)
    if code:
        raise ValueError(f"{member} is not removed: {code.name}")


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


def commit_request(
    group: str, generation: int, member_id: str, instance_id: str | None, offsets: Mapping[TopicPartition, int]
) -> OffsetCommitRequest:
    """Commit ``offsets`` as that member of that generation; to be sent in version ``BY_NAME``."""
    by_topic: dict[str, list[OffsetCommitRequestPartition]] = {}
    for (topic, number), offset in offsets.items():
        by_topic.setdefault(topic, []).append(
            OffsetCommitRequestPartition(partition_index=number, committed_offset=offset, committed_metadata="")
        )
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        group_instance_id=instance_id,
        topics=tuple(OffsetCommitRequestTopic(name=name, partitions=tuple(each)) for name, each in by_topic.items()),
    )


def codes_of(response: OffsetCommitResponse) -> dict[TopicPartition, ErrorCode]:
    """What came of each partition."""
    return {
        (topic.name, each.partition_index): ErrorCode(each.error_code)
        for topic in response.topics
        for each in topic.partitions
    }
