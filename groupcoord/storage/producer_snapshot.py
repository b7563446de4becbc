"""What a log remembers of its producers, in Kafka's file: each one's last batch, at an offset that the file's name says.

It spares reading the whole log at a start. Source: ``ProducerStateManager.writeSnapshot`` and ``ProducerSnapshot.json``.
"""

import struct

from crc32c import crc32c

from groupcoord.broker.producer_state_manager import BatchMetadata, ProducerStateManager

_VERSION = 1
_HEAD = struct.Struct(">hIi")  # version, checksum of what follows it, number of entries
_ENTRIES_AT = 6
_ENTRY = struct.Struct(
    ">qhiqiqiq"
)  # id, epoch, last sequence, last offset, offset delta, time, coordinator's, transaction's
_NONE = -1


class SnapshotError(ValueError):
    """A file that is no snapshot, or not all of one."""


def encode(producers: ProducerStateManager) -> bytes:
    """The file's content."""
    entries = [
        _ENTRY.pack(
            producer_id,
            entry.epoch,
            entry.batches[-1].last_sequence,
            entry.batches[-1].last_offset,
            entry.batches[-1].offset_delta,
            entry.last_timestamp_ms,
            _NONE,
            _NONE,
        )
        for producer_id, entry in producers.items()
    ]
    body = struct.pack(">i", len(entries)) + b"".join(entries)
    return struct.pack(">hI", _VERSION, crc32c(body)) + body


def decode(data: bytes, partition: str) -> ProducerStateManager:
    """What the file with that content remembers. Raises SnapshotError.

    A producer of which only the end of a transaction is known is left out: it may go on anywhere.
    """
    producers = ProducerStateManager(partition)
    for producer_id, epoch, last_sequence, last_offset, offset_delta, timestamp_ms, _, _ in _entries(data):
        if last_offset >= 0:
            kept = BatchMetadata(last_sequence, last_offset, offset_delta, timestamp_ms)
            producers.restore(producer_id, epoch, kept)
    return producers


def producer_ids(data: bytes) -> list[int]:
    """The ids of all producers in a snapshot file with the bytes ``data``. Raises SnapshotError."""
    return [entry[0] for entry in _entries(data)]


def _entries(data: bytes) -> list[tuple[int, ...]]:
    try:
        version, checksum, count = _HEAD.unpack_from(data)
        entries = list(_ENTRY.iter_unpack(data[_HEAD.size :]))
    except struct.error:
        raise SnapshotError("it is cut off") from None
    if version != _VERSION:
        raise SnapshotError(f"it is of version {version}")
    if checksum != crc32c(data[_ENTRIES_AT:]) or count != len(entries):
        raise SnapshotError("its checksum is wrong")
    return entries
