"""The replicas of a partition, each reduced to its log end offset and batch headers, for the invariants to compare."""

from typing import NamedTuple, cast

from groupcoord.broker.log_segment import LogSegment
from groupcoord.broker.topic_store import Topic
from groupcoord.protocol.batches.record_batch import BatchHeader, iter_batch_extents, read_header


class ReplicaSnapshot(NamedTuple):
    """The log of a partition on one broker: end offset, and batch headers by base offset."""

    end_offset: int
    batches: dict[int, BatchHeader]


def replica_snapshot(topic: Topic, partition: int, broker_id: int) -> ReplicaSnapshot:
    """The replica of a partition on that broker."""
    log = topic.copies[partition][broker_id]
    headers = (header for segment in log.segments for _, header in cast("LogSegment", segment).batches())
    return ReplicaSnapshot(log.log_end_offset, {header.base_offset: header for header in headers})


def batch_headers(data: bytes) -> dict[int, BatchHeader]:
    """The headers of the batches in ``data``, by base offset."""
    return {
        header.base_offset: header
        for position, size, _ in iter_batch_extents(data)
        for header in (read_header(data[position : position + size]),)
    }
