"""A batch of records for one partition, from its first record to its acknowledgement (``ProducerBatch``).

Records are encoded as they are added, so that the size of the batch is known; they are compressed when it is closed.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from groupcoord.assignors import TopicPartition
from groupcoord.client.producer.transaction_manager import TransactionBatch
from groupcoord.protocol.batches.compression import Compression, compress
from groupcoord.protocol.batches.record_batch import (
    HEADER_BYTES,
    MAGIC,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TRANSACTIONAL,
    BatchHeader,
    add_to_sequence,
    frame_batch,
)
from groupcoord.protocol.batches.records import encode_record, read_records

COMPRESSION_ESTIMATE_FACTOR = 1.05
"""``MemoryRecordsBuilder.COMPRESSION_RATE_ESTIMATION_FACTOR``."""
_RECORD_OVERHEAD_BYTES = 21
"""The most bytes of a record besides key, value and headers (``DefaultRecord.MAX_RECORD_OVERHEAD``)."""

HeaderPairs = Sequence[tuple[str, bytes | None]]


def record_size_upper_bound(key: bytes | None, value: bytes | None, headers: HeaderPairs) -> int:
    """The most bytes of an uncompressed batch with only this record (``estimateSizeInBytesUpperBound``)."""
    exact = len(encode_record(0, 0, key, value, headers))
    # ``exact`` counts the size field (one to five bytes), attributes and two deltas of a byte each; the bound has 21 for them.
    body = exact - 3
    size_bytes = next(count for count in range(1, 6) if body + 3 - count < 1 << (7 * count - 1))
    return HEADER_BYTES + _RECORD_OVERHEAD_BYTES + body - size_bytes


class ProducerBatch:
    """A batch under construction or in flight. ``promises`` has, for each record, the caller's value for its completion;
    ``estimated_ratio`` is the expected compression ratio.
    """

    __slots__ = (
        "_body",
        "_compressed",
        "_size_factor",
        "attempts",
        "attempts_at_leader_change",
        "backoff_ms",
        "base_sequence",
        "base_timestamp_ms",
        "compression",
        "created_ms",
        "done",
        "is_full",
        "is_part",
        "last_attempt_ms",
        "leader_epoch",
        "max_timestamp_ms",
        "number",
        "partition",
        "producer_epoch",
        "producer_id",
        "promises",
        "reserved_bytes",
        "sequence_was_reset",
        "size",
        "transaction",
        "write_limit",
    )

    def __init__(
        self,
        partition: TopicPartition,
        number: int,
        now_ms: int,
        write_limit: int,
        compression: Compression = Compression.NONE,
        estimated_ratio: float = 1.0,
    ) -> None:
        self.partition = partition
        self.number = number
        """Its number: the producer numbers its batches from 1."""
        self.created_ms = self.last_attempt_ms = now_ms
        self.write_limit = self.reserved_bytes = write_limit
        self.compression = compression
        self.promises: list[Any] = []
        self.base_timestamp_ms = self.max_timestamp_ms = -1
        self.attempts = 0
        """How often it was put back into its queue."""
        self.backoff_ms = 0
        self.leader_epoch = -1
        self.attempts_at_leader_change = 0
        self.producer_id = NO_PRODUCER_ID
        self.producer_epoch = -1
        self.base_sequence = NO_SEQUENCE
        self.sequence_was_reset = False
        self.transaction: TransactionBatch | None = None
        self.done = False
        self.size = HEADER_BYTES
        """Bytes of the batch; estimated from the expected compression as long as it is not closed."""
        self.is_full = False
        """Is there no room for another record, however small?"""
        self.is_part = False
        """Was it split off a batch that was too large?"""
        self._body = bytearray()
        self._compressed: bytes | None = None
        self._size_factor = 1.0 if compression is Compression.NONE else estimated_ratio * COMPRESSION_ESTIMATE_FACTOR

    def __repr__(self) -> str:
        topic, number = self.partition
        return (
            f"<ProducerBatch {self.number} of {topic}-{number}: {self.record_count} records, attempts={self.attempts}>"
        )

    @property
    def record_count(self) -> int:
        """How many records it has."""
        return len(self.promises)

    @property
    def has_sequence(self) -> bool:
        """Does it have a sequence number yet?"""
        return self.base_sequence != NO_SEQUENCE

    @property
    def last_sequence(self) -> int:
        """The sequence number of its last record."""
        return add_to_sequence(self.base_sequence, self.record_count - 1)

    @property
    def closed(self) -> bool:
        """Is it closed for more records?"""
        return self._compressed is not None

    def waited_ms(self, now_ms: int) -> int:
        """How long it has waited since it was created or reenqueued."""
        return max(0, now_ms - self.last_attempt_ms)

    def try_append(
        self, timestamp_ms: int, key: bytes | None, value: bytes | None, headers: HeaderPairs, promise: Any
    ) -> bool:
        """Add a record if there is room, as there always is for the first (``MemoryRecordsBuilder.hasRoomFor``)."""
        if self.is_full:
            return False
        promises, body = self.promises, self._body
        if promises:
            record = encode_record(len(promises), timestamp_ms - self.base_timestamp_ms, key, value, headers)
            if self.write_limit < self.size + len(record):
                return False
            if timestamp_ms > self.max_timestamp_ms:  # noqa: PLR1730 - max() for every record is slower
                self.max_timestamp_ms = timestamp_ms
        else:
            record = encode_record(0, 0, key, value, headers)
            self.base_timestamp_ms = self.max_timestamp_ms = timestamp_ms
        body += record
        promises.append(promise)
        self.size = size = HEADER_BYTES + int(len(body) * self._size_factor)
        self.is_full = self.write_limit <= size
        return True

    def close(self) -> float:
        """Close it for more records and compress them; returns the compression ratio."""
        if self._compressed is None:
            self._compressed = compress(self.compression, bytes(self._body))
            self.size, self.is_full = HEADER_BYTES + len(self._compressed), True
        return len(self._compressed) / max(len(self._body), 1)

    def data(self) -> bytes:
        """The bytes of the batch, which must be closed."""
        assert self._compressed is not None  # noqa: S101 - the accumulator closes the batches that it drains
        header = BatchHeader(
            base_offset=0,
            length=0,
            leader_epoch=-1,
            magic=MAGIC,
            crc=0,
            attributes=self.compression | (TRANSACTIONAL if self.transaction is not None else 0),
            last_offset_delta=len(self.promises) - 1,
            base_timestamp_ms=self.base_timestamp_ms,
            max_timestamp_ms=self.max_timestamp_ms,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=self.base_sequence,
            record_count=len(self.promises),
        )
        return frame_batch(header, self._compressed)

    def reenqueued(self, now_ms: int, backoff_ms: int) -> None:
        """It was put back into its queue (``reenqueued``), and is sent again after the back-off."""
        self.attempts += 1
        self.backoff_ms = backoff_ms
        self.last_attempt_ms = now_ms

    def saw_leader_epoch(self, epoch: int) -> None:
        """Note the leader epoch of its partition: to a new leader it is retried without back-off (KIP-951)."""
        if epoch > self.leader_epoch:
            self.leader_epoch, self.attempts_at_leader_change = epoch, self.attempts

    @property
    def has_new_leader(self) -> bool:
        """Is it a retry to another leader than before?"""
        return self.attempts > 0 and self.attempts_at_leader_change == self.attempts

    def parts(self, limit: int, numbers: Iterator[int]) -> "list[ProducerBatch]":
        """Split it into batches of at most ``limit`` bytes, uncompressed, or of one record (``ProducerBatch.split``)."""
        made: list[ProducerBatch] = []
        records = read_records(
            self._body, 0, self.record_count, base_offset=0, base_timestamp_ms=self.base_timestamp_ms
        )
        for record, promise in zip(records, self.promises, strict=True):
            content = record.timestamp_ms, record.key, record.value, record.headers, promise
            if not made or not made[-1].try_append(*content):
                made.append(ProducerBatch(self.partition, next(numbers), self.created_ms, limit, self.compression))
                made[-1].try_append(*content)
        sequence = self.base_sequence
        for each in made:
            each.close()
            each.is_part, each.reserved_bytes = True, 0
            each.transaction = self.transaction
            each.producer_id, each.producer_epoch = self.producer_id, self.producer_epoch
            if self.has_sequence:
                each.base_sequence = sequence
                sequence = add_to_sequence(sequence, each.record_count)
        return made
