"""What a cleaning has to know of a log before it can begin: the last offset of each key, and how transactions ended.

A record of an aborted transaction is no record of its key, and how a transaction ends is only known at its marker. Sources:
``Cleaner.buildOffsetMap``; ``CleanedTransactionMetadata``, which looks into Kafka's index of aborted transactions instead.
"""

from collections.abc import Iterable, Iterator

from groupcoord.broker.storage_backend import Segment
from groupcoord.core.background_work import BackgroundWork, run_to_end
from groupcoord.protocol.batches.key_value_reader import BatchKeyValues, collect_key_offsets, read_key_values
from groupcoord.protocol.batches.record_batch import (
    COMPRESSION_MASK,
    CONTROL,
    HEADER_BYTES,
    MAGIC,
    TRANSACTIONAL,
    BatchError,
    BatchHeader,
    read_header,
)
from groupcoord.protocol.errors import ErrorCode

IN_TRANSACTION = TRANSACTIONAL | CONTROL
"""The attributes of which every batch of a transaction has one, its end included."""
_SMALLEST_LENGTH = HEADER_BYTES - 12  # base offset and length, which the length does not count
_COMMIT = b"\x00\x01"
"""The type in the key of the marker of a committed transaction, behind its version."""
PIECE_BYTES = 1 << 20
"""How much is read in one go, unless a batch is larger."""


def batches(segment: Segment) -> Iterator[tuple[BatchHeader, bytes, int]]:
    """(header, the bytes it is in, where it begins there) of each batch. Raises BatchError."""
    start, end = 0, segment.size
    data, position = b"", 0
    while start + position < end:
        if len(data) - position < HEADER_BYTES:
            start += position
            position, data = 0, segment.copy(start, PIECE_BYTES)
        header = read_header(data, position)
        if header.magic != MAGIC or header.length < _SMALLEST_LENGTH or start + position + header.size > end:
            what = f"what begins at offset {header.base_offset}, of length {header.length} and magic {header.magic},"
            raise BatchError(ErrorCode.CORRUPT_MESSAGE, f"{what} is no batch")
        if position + header.size > len(data):
            start += position
            position, data = 0, segment.copy(start, max(header.size, PIECE_BYTES))
        yield header, data, position
        position += header.size


class PieceCounter:
    """Tells when a piece of the work is done: a megabyte of batches, or one that is compressed, however large it becomes."""

    def __init__(self) -> None:
        self._spent = 0

    def is_done(self, header: BatchHeader) -> bool:
        """Has enough been done, with the batch of ``header``?"""
        self._spent += header.size
        if self._spent < PIECE_BYTES and not header.attributes & COMPRESSION_MASK:
            return False
        self._spent = 0
        return True


class _Open:
    """A transaction whose end has not been met."""

    __slots__ = ("base_offsets", "first_offset", "last_offsets")

    def __init__(self, first_offset: int) -> None:
        self.first_offset = first_offset
        self.base_offsets: list[int] = []
        self.last_offsets: dict[bytes, int] = {}


class CleanerOffsetMap:
    """The last offset of each key in ``segments`` from ``from_offset`` on, and what is known of transactions and producers.

    A producer counts if its last marker is later than ``heard_since_ms``. Raises BatchError, InvalidRecordsError.
    """

    def __init__(self, segments: Iterable[Segment], from_offset: int, heard_since_ms: int) -> None:
        self.last_offsets: dict[bytes, int] = {}
        """Key → the offset of its last record."""
        self.aborted: set[int] = set()
        """The base offsets of the batches of aborted transactions."""
        self.markers: dict[int, int] = {}
        """Producer → the epoch of its last marker, if that is not the epoch of a batch before it."""
        self.has_transactions = False
        self.unusual: set[int] = set()
        """The base offsets of the batches with tombstones, records without a key, or gaps between the offsets."""
        self._from_offset = from_offset
        self._heard_since_ms = heard_since_ms
        self._open: dict[int, _Open] = {}
        self._epochs: dict[int, int] = {}
        run_to_end(self.read_segments(segments))

    def read_segments(self, segments: Iterable[Segment]) -> BackgroundWork[None]:
        """Add the keys and transactions of ``segments``, a piece at a time."""
        pieces = PieceCounter()
        for segment in segments:
            for header, data, position in batches(segment):
                if header.attributes & IN_TRANSACTION:
                    self._meet(header, data, position)
                else:
                    self._enter(header, data, position, self.last_offsets)
                if pieces.is_done(header):
                    yield

    def read_later_segments(self, later: Iterable[Segment]) -> BackgroundWork[None]:
        """Find in ``later`` segments how transactions end, a piece at a time; their keys do not count."""
        self._from_offset = 1 << 63
        pieces = PieceCounter()
        for segment in later:
            for header, data, position in batches(segment):
                if header.attributes & IN_TRANSACTION:
                    self._meet(header, data, position)
                if pieces.is_done(header):
                    yield

    @property
    def first_open_offset(self) -> int | None:
        """Where the first transaction begins that has no end, or None."""
        return min((each.first_offset for each in self._open.values()), default=None)

    def _meet(self, header: BatchHeader, data: bytes, position: int) -> None:
        self.has_transactions = True
        if header.control:
            self._end(header, read_key_values(data, position))
            return
        producer_id = header.producer_id
        transaction = self._open.get(producer_id)
        if transaction is None:
            transaction = self._open[producer_id] = _Open(header.base_offset)
        transaction.base_offsets.append(header.base_offset)
        self._epochs[producer_id] = header.producer_epoch
        self.markers.pop(producer_id, None)
        self._enter(header, data, position, transaction.last_offsets)

    def _enter(self, header: BatchHeader, data: bytes, position: int, last_offsets: dict[bytes, int]) -> None:
        start = self._from_offset
        if header.base_offset >= start:
            if not collect_key_offsets(header, data, position, last_offsets):
                self.unusual.add(header.base_offset)
        elif header.last_offset >= start:
            records = read_key_values(data, position).records
            last_offsets.update((key, offset) for offset, key, _ in records if key is not None and offset >= start)

    def _end(self, header: BatchHeader, marker: BatchKeyValues) -> None:
        is_new = self._epochs.get(header.producer_id) != header.producer_epoch
        if is_new and header.max_timestamp_ms > self._heard_since_ms:
            self.markers[header.producer_id] = header.producer_epoch
        transaction = self._open.pop(header.producer_id, None)
        if transaction is None:
            return
        # An earlier cleaning may have left no more of the marker than its header; then it had emptied the batches before.
        if any(bytes(key or b"")[2:4] == _COMMIT for _, key, _ in marker.records):
            for key, offset in transaction.last_offsets.items():
                if self.last_offsets.get(key, -1) < offset:
                    self.last_offsets[key] = offset
        else:
            self.aborted.update(transaction.base_offsets)
