"""Builds Metadata and OffsetCommit requests of group members, and reads their responses.

The members of the consumer, of ``groupcoord.testing`` and of the simulation share it.
"""

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from groupcoord.assignors import TopicPartition
from groupcoord.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from groupcoord.protocol.apis.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from groupcoord.protocol.apis.offset_delete import OffsetDeleteResponse
from groupcoord.protocol.apis.txn_offset_commit import TxnOffsetCommitResponse
from groupcoord.protocol.errors import ErrorCode


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataSnapshot:
    """The existing topics of a Metadata response: number of partitions, racks of the replicas of each partition, topic id."""

    partitions: Mapping[str, int] = field(default_factory=dict)
    racks: Mapping[str, tuple[frozenset[str], ...]] = field(default_factory=dict)
    ids: Mapping[str, uuid.UUID] = field(default_factory=dict)

    def of(self, topics: Iterable[str]) -> "MetadataSnapshot":
        """A copy with only ``topics``, as far as they exist, and without ids, on which no classic assignment depends."""
        wanted = sorted(set(topics) & self.partitions.keys())
        return MetadataSnapshot(
            partitions={topic: self.partitions[topic] for topic in wanted},
            racks={topic: self.racks[topic] for topic in wanted if topic in self.racks},
        )

    def without_racks(self) -> "MetadataSnapshot":
        """A copy without racks, for a member without ``client.rack``."""
        return MetadataSnapshot(partitions=self.partitions)


OFFSET_COMMIT_BY_NAME = 9
"""The last version of OffsetCommit with topic names. Later ones have topic ids, which cannot be resolved to
names once the topic is deleted."""


def metadata_request(
    topics: Iterable[str] | None,
    *,
    topic_ids: Iterable[uuid.UUID] = (),
    allow_auto_topic_creation: bool = False,
) -> MetadataRequest:
    """A Metadata request for ``topics`` (None: all topics) or, if given, for ``topic_ids`` (version 12 or higher)."""
    by_id = tuple(MetadataRequestTopic(name=None, topic_id=topic_id) for topic_id in sorted(topic_ids))
    if by_id:
        return MetadataRequest(topics=by_id, allow_auto_topic_creation=False)
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
        ids={topic.name: topic.topic_id for topic in response.topics if topic.name in known and topic.topic_id},
    )


def offset_commit_request(
    group_id: str,
    generation_id: int,
    member_id: str,
    instance_id: str | None,
    offsets: Mapping[TopicPartition, tuple[int, int, str]] | Mapping[TopicPartition, int],
) -> OffsetCommitRequest:
    """An OffsetCommit of ``offsets``, each an offset or (offset, leader epoch, metadata); send it at
    ``OFFSET_COMMIT_BY_NAME`` or lower.
    """
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


def partition_errors(
    response: OffsetCommitResponse | OffsetDeleteResponse | TxnOffsetCommitResponse,
) -> dict[TopicPartition, ErrorCode]:
    """The error code of each partition."""
    return {
        (topic.name, each.partition_index): ErrorCode(each.error_code)
        for topic in response.topics
        for each in topic.partitions
    }
