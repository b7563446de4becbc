"""What each broker has of a partition."""

from typing import NamedTuple, cast

from groupcoord.broker.log_segment import LogSegment
from groupcoord.broker.topic_store import Topic
from groupcoord.protocol.batches.record_batch import BatchHeader, iter_batch_extents, read_header


class Copy(NamedTuple):
    """The copy of one broker: where it ends, and the headers of its batches by their first offset."""

    end_offset: int
    batches: dict[int, BatchHeader]


def copy_of(topic: Topic, partition: int, broker_id: int) -> Copy:
    """What that broker has of a partition."""
    log = topic.copies[partition][broker_id]
    headers = (header for segment in log.segments for _, header in cast("LogSegment", segment).batches())
    return Copy(log.log_end_offset, {header.base_offset: header for header in headers})


def headers_in(data: bytes) -> dict[int, BatchHeader]:
    """The headers of batches by their first offset."""
    return {
        header.base_offset: header
        for position, size, _ in iter_batch_extents(data)
        for header in (read_header(data[position : position + size]),)
    }
