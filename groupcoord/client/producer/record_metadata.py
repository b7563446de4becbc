"""RecordMetadata, the result of ``Producer.send``."""

from typing import NamedTuple


class RecordMetadata(NamedTuple):
    """The topic, partition, offset and timestamp of an acknowledged record."""

    topic: str
    partition: int
    offset: int
    """-1 if it is not known: with ``acks=0``, or if the record was a duplicate whose offset the broker no longer has."""
    timestamp_ms: int
    """The record's own timestamp or, with ``message.timestamp.type=LogAppendTime``, the time of the append at the broker."""
