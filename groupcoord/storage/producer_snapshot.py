"""The ``.snapshot`` file of a log: the state of its producers at the offset in the file's name, in Kafka's format.

With it a start need not replay the whole log.
Source: ``ProducerStateManager.writeSnapshot`` and ``ProducerSnapshot.json``.
"""

import struct

from crc32c import crc32c

from groupcoord.broker.producer_state_manager import BatchMetadata, ProducerStateManager

_VERSION = 1
_HEAD = struct.Struct(">hIi")  # version, checksum of what follows it, number of entries
_ENTRIES_AT = 6
_ENTRY = struct.Struct(">qhiqiqiq")
"""Id, epoch, last sequence, last offset, offset delta, time, epoch of the coordinator, first offset of the open transaction."""
_NONE = -1


class SnapshotError(ValueError):
    """The file is not a complete snapshot."""


def encode(producers: ProducerStateManager) -> bytes:
    """The bytes of the file."""
    entries = [
        _ENTRY.pack(
            producer_id,
            entry.epoch,
            entry.last_sequence,
            entry.last_data_offset,
            entry.batches[-1].offset_delta if entry.batches else 0,
            entry.last_timestamp_ms,
            entry.coordinator_epoch,
            _NONE if entry.current_txn_first_offset is None else entry.current_txn_first_offset,
        )
        for producer_id, entry in producers.items()
    ]
    body = struct.pack(">i", len(entries)) + b"".join(entries)
    return struct.pack(">hI", _VERSION, crc32c(body)) + body


def decode(data: bytes, partition: str) -> ProducerStateManager:
    """The producers in a file with the bytes ``data``. Raises SnapshotError."""
    producers = ProducerStateManager(partition)
    for producer_id, epoch, sequence, offset, offset_delta, timestamp_ms, coordinator_epoch, first in _entries(data):
        producers.restore(
            producer_id,
            epoch,
            BatchMetadata(sequence, offset, offset_delta, timestamp_ms) if offset >= 0 else None,
            last_timestamp_ms=timestamp_ms,
            coordinator_epoch=coordinator_epoch,
            current_txn_first_offset=first if first >= 0 else None,
        )
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
