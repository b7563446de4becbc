"""Builds requests for the stories of three brokers: about one partition, one group, one transaction."""

from collections.abc import Sequence
from typing import Any

from groupcoord.protocol.apis.fetch import FetchPartition, FetchRequest, FetchTopic
from groupcoord.protocol.apis.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from groupcoord.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from groupcoord.protocol.apis.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from groupcoord.protocol.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from groupcoord.protocol.batches.record_batch import build_batch
from groupcoord.protocol.batches.records import Record
from tests.conformance.batches import THEN_MS

LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3


def produce(
    topic: str, partition: int, value: str, *, acks: int = -1, timeout_ms: int = 60_000, **producer: Any
) -> ProduceRequest:
    """A record, from a producer that is, perhaps, idempotent or transactional (``transactional_id``)."""
    transactional_id = producer.pop("transactional_id", None)
    records = build_batch([Record(0, THEN_MS, b"key", value.encode())], **producer)
    data = (PartitionProduceData(index=partition, records=records),)
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=(TopicProduceData(name=topic, partition_data=data),),
    )


def fetch(
    topic: str,
    partition: int,
    offset: int,
    *,
    epoch: int = -1,
    fetched_epoch: int = -1,
    isolation: int = 0,
    topic_id: Any = None,
) -> FetchRequest:
    """What is there from ``offset`` on, asked by a consumer that takes ``epoch`` to be the leader's."""
    wanted = FetchPartition(
        partition=partition,
        fetch_offset=offset,
        current_leader_epoch=epoch,
        last_fetched_epoch=fetched_epoch,
        partition_max_bytes=1 << 20,
    )
    topics = (FetchTopic(topic=topic, topic_id=topic_id, partitions=(wanted,)),)
    return FetchRequest(max_wait_ms=0, min_bytes=0, isolation_level=isolation, topics=topics)


def offset_at(
    topic: str, partition: int, timestamp: int = LATEST, *, epoch: int = -1, isolation: int = 0
) -> ListOffsetsRequest:
    """The offset at ``timestamp``: by default, where the partition ends for consumers."""
    wanted = ListOffsetsPartition(partition_index=partition, timestamp=timestamp, current_leader_epoch=epoch)
    topics = (ListOffsetsTopic(name=topic, partitions=(wanted,)),)
    return ListOffsetsRequest(replica_id=-1, isolation_level=isolation, topics=topics)


def end_of_epoch(topic: str, partition: int, of: int, *, epoch: int = -1) -> OffsetForLeaderEpochRequest:
    """Where the leader epoch ``of`` ends, asked by a consumer that takes ``epoch`` to be the leader's."""
    wanted = OffsetForLeaderPartition(partition=partition, leader_epoch=of, current_leader_epoch=epoch)
    return OffsetForLeaderEpochRequest(topics=(OffsetForLeaderTopic(topic=topic, partitions=(wanted,)),), replica_id=-1)


def metadata(*topics: str) -> MetadataRequest:
    """What clients ask first."""
    asked: Sequence[MetadataRequestTopic] = [MetadataRequestTopic(name=name) for name in topics]
    return MetadataRequest(topics=tuple(asked), allow_auto_topic_creation=False)
