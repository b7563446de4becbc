"""What a log remembers of idempotent producers: their epoch and their last five batches (KIP-98).

A batch that is among the five is a repetition and is acknowledged with the offset it got then; any other has to follow the last
one's sequence number. Source: ``ProducerStateManager``, ``ProducerAppendInfo``, ``ProducerStateEntry``.
"""

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from groupcoord.protocol.batches.record_batch import INT32_MAX, BatchError, BatchHeader, add_to_sequence
from groupcoord.protocol.errors import ErrorCode

BATCHES_TO_RETAIN = 5


class BatchMetadata(NamedTuple):
    """A batch that was appended: where its sequence numbers and offsets end, and its largest timestamp (ms)."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int

    @property
    def first_sequence(self) -> int:
        """The sequence number of its first record."""
        return add_to_sequence(self.last_sequence, -self.offset_delta)

    @property
    def first_offset(self) -> int:
        """The offset of its first record."""
        return self.last_offset - self.offset_delta


class ProducerStateEntry:
    """One producer as one log knows it: ``batches`` are of ``epoch``, the last at most five of it, oldest first."""

    __slots__ = ("batches", "epoch", "last_timestamp_ms")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.batches: deque[BatchMetadata] = deque(maxlen=BATCHES_TO_RETAIN)
        self.last_timestamp_ms = -1


class ProducerStateManager:
    """The idempotent producers of one log. ``partition`` is its name, ``topic-0``, for messages."""

    __slots__ = ("_entries", "partition")

    def __init__(self, partition: str) -> None:
        self.partition = partition
        self._entries: dict[int, ProducerStateEntry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, producer_id: int) -> ProducerStateEntry:
        """What is known of the producer. Raises KeyError."""
        return self._entries[producer_id]

    def items(self) -> Iterable[tuple[int, ProducerStateEntry]]:
        """Every producer id, and what is known of it."""
        return self._entries.items()

    def restore(self, producer_id: int, epoch: int, last: BatchMetadata) -> None:
        """Know of a producer what a snapshot has kept: its last batch."""
        entry = self._entries[producer_id] = ProducerStateEntry(epoch)
        entry.batches.append(last)
        entry.last_timestamp_ms = last.timestamp_ms

    def duplicate_of(self, header: BatchHeader) -> BatchMetadata | None:
        """The kept batch that this one repeats: of the same epoch, with exactly its sequence numbers."""
        entry = self._entries.get(header.producer_id)
        if entry is None or entry.epoch != header.producer_epoch:
            return None
        for kept in entry.batches:
            if kept.first_sequence == header.base_sequence and kept.last_sequence == header.last_sequence:
                return kept
        return None

    def check(self, header: BatchHeader) -> None:
        """May the batch, already at its offset, be appended? Raises BatchError.

        A producer that is not known here may start anywhere, because its earlier batches may be gone by retention.
        """
        entry = self._entries.get(header.producer_id)
        if entry is None:
            return
        who = f"producer {header.producer_id} at offset {header.base_offset} in partition {self.partition}"
        if header.producer_epoch < entry.epoch:
            raise BatchError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Epoch of {who} is {header.producer_epoch}, which is < the last seen epoch {entry.epoch}",
            )
        first = header.base_sequence
        if header.producer_epoch > entry.epoch:
            if first != 0:
                raise BatchError(
                    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                    f"Invalid sequence number for new epoch of {who}: {header.producer_epoch} (request epoch), "
                    f"{first} (seq. number), {entry.epoch} (current producer epoch)",
                )
            return
        last = entry.batches[-1].last_sequence
        if first != last + 1 and not (first == 0 and last == INT32_MAX):
            raise BatchError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Out of order sequence number for {who}: {first} (incoming seq. number), "
                f"{last} (current end sequence number)",
            )

    def appended(self, header: BatchHeader) -> None:
        """The batch, at its offset, is in the log."""
        entry = self._entries.get(header.producer_id)
        if entry is None:
            entry = self._entries[header.producer_id] = ProducerStateEntry(header.producer_epoch)
        elif entry.epoch != header.producer_epoch:
            entry.epoch = header.producer_epoch
            entry.batches.clear()
        kept = BatchMetadata(
            header.last_sequence, header.last_offset, header.last_offset_delta, header.max_timestamp_ms
        )
        entry.batches.append(kept)
        entry.last_timestamp_ms = header.max_timestamp_ms

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Forget producers whose last batch has a timestamp ``expiration_ms`` ago or more (producer.id.expiration.ms)."""
        self._entries = {
            producer_id: entry
            for producer_id, entry in self._entries.items()
            if now_ms - entry.last_timestamp_ms < expiration_ms
        }
