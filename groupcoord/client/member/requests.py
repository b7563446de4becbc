"""Requests that several drivers of members send, and how their responses are read."""

from collections.abc import Iterable, Mapping

from groupcoord.assignors import TopicPartition
from groupcoord.client.member.actions import MetadataSnapshot
from groupcoord.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from groupcoord.protocol.apis.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from groupcoord.protocol.errors import ErrorCode

OFFSET_COMMIT_BY_NAME = 9
"""The last version of OffsetCommit that names topics. Later ones have topic ids, and a topic that is deleted meanwhile then has
no name any more."""


def metadata_request(topics: Iterable[str] | None, *, allow_auto_topic_creation: bool = False) -> MetadataRequest:
    """Ask for ``topics``, or for all topics if that is None."""
    return MetadataRequest(
        topics=None if topics is None else tuple(MetadataRequestTopic(name=name) for name in sorted(topics)),
        allow_auto_topic_creation=allow_auto_topic_creation,
    )


def metadata_snapshot(response: MetadataResponse) -> MetadataSnapshot:
    """The topics in ``response`` that have no error."""
    rack_of = {broker.node_id: broker.rack for broker in response.brokers}
    known = {topic.name: topic.partitions for topic in response.topics if topic.name and not topic.error_code}
    return MetadataSnapshot(
        partitions={name: len(partitions) for name, partitions in known.items()},
        racks={
            name: tuple(
                frozenset(rack for node_id in each.replica_nodes if (rack := rack_of.get(node_id)))
                for each in sorted(partitions, key=lambda each: each.partition_index)
            )
            for name, partitions in known.items()
        },
    )


def offset_commit_request(
    group_id: str,
    generation_id: int,
    member_id: str,
    instance_id: str | None,
    offsets: Mapping[TopicPartition, tuple[int, int, str]] | Mapping[TopicPartition, int],
) -> OffsetCommitRequest:
    """Commit ``offsets``, each an offset or (offset, leader epoch, metadata); to be sent up to ``OFFSET_COMMIT_BY_NAME``."""
    by_topic: dict[str, list[OffsetCommitRequestPartition]] = {}
    for (topic, number), given in offsets.items():
        offset, leader_epoch, metadata = (given, -1, "") if isinstance(given, int) else given
        by_topic.setdefault(topic, []).append(
            OffsetCommitRequestPartition(
                partition_index=number,
                committed_offset=offset,
                committed_leader_epoch=leader_epoch,
                committed_metadata=metadata,
            )
        )
    return OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=generation_id,
        member_id=member_id,
        group_instance_id=instance_id,
        topics=tuple(OffsetCommitRequestTopic(name=name, partitions=tuple(each)) for name, each in by_topic.items()),
    )


def commit_errors(response: OffsetCommitResponse) -> dict[TopicPartition, ErrorCode]:
    """The error code of each partition."""
    return {
        (topic.name, each.partition_index): ErrorCode(each.error_code)
        for topic in response.topics
        for each in topic.partitions
    }
