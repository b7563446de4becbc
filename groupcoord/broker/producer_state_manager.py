"""The state of the producers of a log: epochs, their last five batches, and open transactions (KIP-98, KIP-890).

A batch that is among the five is a duplicate and is acknowledged with its first offset; any other has to continue the sequence
numbers. A transaction opens with its first batch and ends with its marker; meanwhile the last stable offset does not pass its
first offset. Source: ``ProducerStateManager``, ``ProducerAppendInfo``, ``ProducerStateEntry``, ``VerificationStateEntry``.
"""

from bisect import insort
from collections.abc import Iterable
from typing import NamedTuple

from groupcoord.core.transaction_verification_types import TransactionMarker
from groupcoord.protocol.batches.record_batch import (
    INT32_MAX,
    NO_SEQUENCE,
    BatchError,
    BatchHeader,
    add_to_sequence,
    read_marker,
)
from groupcoord.protocol.batches.records import Buffer
from groupcoord.protocol.errors import ErrorCode

BATCHES_TO_RETAIN = 5
NO_EPOCH = -1
NO_OFFSET = -1
LAST_PRODUCER_EPOCH = (1 << 15) - 1
_UNKNOWN_VERSION = -1
_EPOCH_FOR_EACH_TRANSACTION = 2
"""The transaction.version since which a marker's epoch is larger than that of its transaction's records (KIP-890)."""


class BatchMetadata(NamedTuple):
    """An appended batch: its last sequence number and offset, and its largest timestamp (ms)."""

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


class AbortedTransaction(NamedTuple):
    """An entry of the transaction index. Source: ``AbortedTxn``.

    ``first_offset`` is that of the transaction's first record, ``last_offset`` that of its marker, and ``last_stable_offset``
    the log's after the marker: the first offset of the oldest transaction that was still open, or the offset after the marker.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class ProducerStateEntry:
    """The state of one producer: ``batches`` are its last batches in ``epoch``, at most five, oldest first.

    ``last_timestamp_ms`` is that of the last batch or marker, ``coordinator_epoch`` that of the last marker, and
    ``current_txn_first_offset`` where the open transaction begins. After a marker with a new epoch there are no batches.
    """

    __slots__ = ("batches", "coordinator_epoch", "current_txn_first_offset", "epoch", "last_timestamp_ms")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.coordinator_epoch = NO_EPOCH
        self.batches: tuple[BatchMetadata, ...] = ()  # most producers of a large number have none or one
        self.last_timestamp_ms = -1
        self.current_txn_first_offset: int | None = None

    @property
    def last_sequence(self) -> int:
        """The sequence number of its last record, or -1."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_data_offset(self) -> int:
        """The offset of its last record, or -1."""
        return self.batches[-1].last_offset if self.batches else NO_OFFSET

    def keep(self, batch: BatchMetadata) -> None:
        """Add its last batch."""
        self.batches = (*self.batches, batch)[-BATCHES_TO_RETAIN:]

    def move_to(self, epoch: int) -> None:
        """Set its epoch; batches of another epoch are dropped."""
        if self.epoch != epoch:
            self.epoch = epoch
            self.batches = ()


class VerificationState:
    """A verification by the transaction coordinator whether the partition is in a producer's transaction.

    It lasts until a batch or the marker of the transaction is appended. A batch has to present the object that was created for
    the request to the coordinator: if another one has replaced it, that transaction has ended. A batch must not overtake an
    earlier one that failed and is retried: ``lowest_sequence`` is the lowest of ``epoch`` so far, and has to be appended first.
    ``adds``: the write itself adds the partition to the transaction (KIP-890, Produce v12).
    """

    __slots__ = ("adds", "epoch", "lowest_sequence", "started_ms")

    def __init__(self, sequence: int, epoch: int, now_ms: int, *, adds: bool) -> None:
        self.lowest_sequence = sequence
        self.epoch = epoch
        self.adds = adds
        self.started_ms = now_ms

    def seen(self, sequence: int, epoch: int) -> None:
        """Record that a batch that begins with ``sequence`` is to be appended."""
        if epoch > self.epoch or (epoch == self.epoch and sequence < self.lowest_sequence):
            self.epoch, self.lowest_sequence = epoch, sequence


class ProducerStateManager:
    """The producers of one log. ``partition`` is the log's name, ``topic-0``, for messages."""

    __slots__ = ("_entries", "_ongoing", "_unreplicated", "_verifications", "partition")

    def __init__(self, partition: str) -> None:
        self.partition = partition
        self._entries: dict[int, ProducerStateEntry] = {}
        self._verifications: dict[int, VerificationState] = {}
        self._ongoing: list[tuple[int, int]] = []  # (first offset, producer id) of each open transaction, in order
        self._unreplicated: list[
            tuple[int, int]
        ] = []  # (first offset, marker's offset) of ended transactions whose markers may not be replicated

    def __len__(self) -> int:
        """The number of entries that can expire."""
        return len(self._entries) + len(self._verifications)

    def __getitem__(self, producer_id: int) -> ProducerStateEntry:
        """The state of a producer. Raises KeyError."""
        return self._entries[producer_id]

    def items(self) -> Iterable[tuple[int, ProducerStateEntry]]:
        """(producer id, state) of all producers."""
        return self._entries.items()

    @property
    def first_unstable_offset(self) -> int | None:
        """The first offset of the oldest open transaction; None if none is open."""
        return self._ongoing[0][0] if self._ongoing else None

    def first_unstable_at(self, high_watermark: int) -> int | None:
        """The first offset of the oldest transaction that is open, or whose marker is not below ``high_watermark``.

        Source: ``ProducerStateManager.unreplicatedTxns``.
        """
        first = self.first_unstable_offset
        self.replicated(high_watermark)
        if not self._unreplicated:
            return first
        unreplicated = min(self._unreplicated)[0]
        return unreplicated if first is None else min(first, unreplicated)

    def replicated(self, high_watermark: int) -> None:
        """Forget the ended transactions whose markers are below ``high_watermark``."""
        if self._unreplicated:
            self._unreplicated = [ended for ended in self._unreplicated if ended[1] >= high_watermark]

    def has_ongoing_transaction(self, producer_id: int, epoch: int) -> bool:
        """Has the producer an open transaction in this log, in that epoch?"""
        entry = self._entries.get(producer_id)
        return entry is not None and entry.current_txn_first_offset is not None and entry.epoch == epoch

    # --- restoring, appending

    def restore(
        self,
        producer_id: int,
        epoch: int,
        last: BatchMetadata | None,
        *,
        last_timestamp_ms: int = -1,
        coordinator_epoch: int = NO_EPOCH,
        current_txn_first_offset: int | None = None,
    ) -> None:
        """Restore a producer from a snapshot. ``last`` is its last batch, whose timestamp replaces ``last_timestamp_ms``."""
        entry = self._entries[producer_id] = ProducerStateEntry(epoch)
        entry.last_timestamp_ms = last_timestamp_ms
        entry.coordinator_epoch = coordinator_epoch
        if last is not None:
            entry.keep(last)
            entry.last_timestamp_ms = last.timestamp_ms
        if current_txn_first_offset is not None:
            self._open_transaction(producer_id, entry, current_txn_first_offset)

    def replay(self, header: BatchHeader, batch: Buffer) -> AbortedTransaction | None:
        """Apply a batch of the log; returns the transaction that it aborts, if it is such a marker.

        The whole ``batch`` is read only if it is a marker. Compaction may have left only its header. Raises BatchError,
        InvalidRecordsError.
        """
        if not header.has_producer_id:
            return None
        if not header.control:
            self.appended(header)
            return None
        end = read_marker(batch, header)
        if end is None:
            return None
        marker = TransactionMarker(header.producer_id, header.producer_epoch, end.coordinator_epoch, end.committed)
        return self.end_transaction(marker, header.base_offset, end.timestamp_ms)

    def appended(self, header: BatchHeader) -> None:
        """Apply an appended batch, which is not a marker."""
        entry = self._moved_to(header.producer_id, header.producer_epoch)
        kept = BatchMetadata(
            header.last_sequence, header.last_offset, header.last_offset_delta, header.max_timestamp_ms
        )
        entry.keep(kept)
        entry.last_timestamp_ms = header.max_timestamp_ms
        if header.transactional:
            if entry.current_txn_first_offset is None:
                self._open_transaction(header.producer_id, entry, header.base_offset)
            self._verifications.pop(header.producer_id, None)

    def end_transaction(self, marker: TransactionMarker, offset: int, timestamp_ms: int) -> AbortedTransaction | None:
        """Apply ``marker`` at ``offset``; returns the transaction if it was aborted and has records in this log."""
        producer_id = marker.producer_id
        entry = self._moved_to(producer_id, marker.producer_epoch)
        entry.coordinator_epoch = marker.coordinator_epoch
        entry.last_timestamp_ms = timestamp_ms
        verification = self._verifications.get(producer_id)
        # With KIP-890 the marker has the epoch of the next transaction, whose verification may already have started.
        if verification is not None and not (verification.adds and verification.epoch == marker.producer_epoch):
            del self._verifications[producer_id]
        aborted = self.aborted_by(marker, offset)
        if entry.current_txn_first_offset is not None:
            self._ongoing.remove((entry.current_txn_first_offset, producer_id))
            self._unreplicated.append((entry.current_txn_first_offset, offset))
            entry.current_txn_first_offset = None
        return aborted

    def aborted_by(self, marker: TransactionMarker, offset: int) -> AbortedTransaction | None:
        """The open transaction that ``marker`` at ``offset`` aborts; None if it commits, or no transaction is open."""
        entry = self._entries.get(marker.producer_id)
        if marker.committed or entry is None or entry.current_txn_first_offset is None:
            return None
        others = (first for first, producer_id in self._ongoing if producer_id != marker.producer_id)
        stable = next(others, offset + 1)
        return AbortedTransaction(marker.producer_id, entry.current_txn_first_offset, offset, stable)

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Forget producers that have no open transaction and have not written for ``expiration_ms``
        (producer.id.expiration.ms)."""
        self._entries = {
            producer_id: entry
            for producer_id, entry in self._entries.items()
            if entry.current_txn_first_offset is not None or now_ms - entry.last_timestamp_ms < expiration_ms
        }
        self._verifications = {
            producer_id: state
            for producer_id, state in self._verifications.items()
            if now_ms - state.started_ms < expiration_ms
        }

    def _moved_to(self, producer_id: int, epoch: int) -> ProducerStateEntry:
        entry = self._entries.get(producer_id)
        if entry is None:
            entry = self._entries[producer_id] = ProducerStateEntry(epoch)
        entry.move_to(epoch)
        return entry

    def _open_transaction(self, producer_id: int, entry: ProducerStateEntry, first_offset: int) -> None:
        entry.current_txn_first_offset = first_offset
        insort(self._ongoing, (first_offset, producer_id))

    # --- checks before an append

    def duplicate_of(self, header: BatchHeader) -> BatchMetadata | None:
        """The kept batch of which this one is a duplicate: the same epoch and the same sequence numbers."""
        entry = self._entries.get(header.producer_id)
        if entry is None or entry.epoch != header.producer_epoch:
            return None
        for kept in entry.batches:
            if kept.first_sequence == header.base_sequence and kept.last_sequence == header.last_sequence:
                return kept
        return None

    def start_verification(
        self, producer_id: int, epoch: int, sequence: int, now_ms: int, *, adds: bool
    ) -> VerificationState | None:
        """Start the verification of a transactional batch with the coordinator; returns what the batch presents when it is
        appended.

        ``sequence`` is the batch's first. None: the transaction is already open here and needs no verification. Raises
        BatchError(INVALID_PRODUCER_EPOCH).
        """
        self._check_epoch(producer_id, epoch, if_unknown=epoch)
        if self.has_ongoing_transaction(producer_id, epoch):
            return None
        state = self._verifications.get(producer_id)
        if state is None:
            state = self._verifications[producer_id] = VerificationState(sequence, epoch, now_ms, adds=adds)
        state.seen(sequence, epoch)
        return state

    def check_verified(self, header: BatchHeader, shown: VerificationState | None) -> None:
        """Check that the transactional batch belongs to an open transaction or was verified. Raises BatchError.

        ``shown`` is what ``start_verification`` returned.
        """
        if self.has_ongoing_transaction(header.producer_id, header.producer_epoch):
            return
        self._check_epoch(header.producer_id, header.producer_epoch, if_unknown=header.producer_epoch)
        if shown is None or self._verifications.get(header.producer_id) is not shown:
            raise BatchError(ErrorCode.INVALID_TXN_STATE, "Record was not part of an ongoing transaction")

    def check(self, header: BatchHeader) -> None:
        """Check the epoch, sequence and transaction of a client's batch, which is at its offset. Raises BatchError."""
        self._check_epoch(header.producer_id, header.producer_epoch)
        self._check_sequence(header)
        self._check_in_transaction(header)

    def check_own(self, header: BatchHeader) -> None:
        """Check a coordinator's batch for a producer; its sequence numbers are not checked. Raises BatchError."""
        self._check_epoch(header.producer_id, header.producer_epoch)
        self._check_in_transaction(header)

    def check_marker(self, marker: TransactionMarker) -> None:
        """Check a transaction marker. Raises BatchError.

        The error is INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED, or UNKNOWN_SERVER_ERROR for transaction.version -1.
        With transaction.version 2 the marker's epoch must be larger than that of the records, unless it is a duplicate: then no
        transaction is open, or the epoch is the largest.
        """
        entry = self._entries.get(marker.producer_id) or ProducerStateEntry(NO_EPOCH)
        self._check_epoch(marker.producer_id, marker.producer_epoch)
        if marker.transaction_version == _UNKNOWN_VERSION:
            raise BatchError(ErrorCode.UNKNOWN_SERVER_ERROR, "transactionVersion must be explicitly specified")
        if (
            marker.transaction_version >= _EPOCH_FOR_EACH_TRANSACTION
            and marker.producer_epoch == entry.epoch != LAST_PRODUCER_EPOCH
            and entry.current_txn_first_offset is not None
        ):
            who = f"producer {marker.producer_id} in partition {self.partition}"
            raise BatchError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"A marker of {who} has the epoch {entry.epoch} of the records it ends",
            )
        if marker.coordinator_epoch < entry.coordinator_epoch:
            raise BatchError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"Invalid coordinator epoch for producer {marker.producer_id} in partition {self.partition}: "
                f"{marker.coordinator_epoch} (zombie), {entry.coordinator_epoch} (current)",
            )

    def _check_epoch(self, producer_id: int, epoch: int, if_unknown: int = NO_EPOCH) -> None:
        """Check that ``epoch`` is not smaller than the last one, ``if_unknown`` for a producer without state."""
        entry = self._entries.get(producer_id)
        last = if_unknown if entry is None else entry.epoch
        if epoch < last:
            raise BatchError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Epoch of producer {producer_id} in partition {self.partition} is {epoch}, "
                f"which is < the last seen epoch {last}",
            )

    def _check_sequence(self, header: BatchHeader) -> None:
        """Check that the batch continues the sequence numbers. Raises BatchError.

        A producer without state may start anywhere, because retention may have deleted its earlier batches; so may one without
        an epoch. A producer whose writes add partitions to its transactions has to start with 0.
        """
        entry = self._entries.get(header.producer_id)
        verification = self._verifications.get(header.producer_id)
        first = header.base_sequence
        if verification is not None:
            if verification.adds and first != 0 and not (entry and entry.batches):
                raise self._out_of_order(header, "0 is expected, because nothing is known of it")
            if first > verification.lowest_sequence:
                raise self._out_of_order(header, f"{verification.lowest_sequence} (earliest seen sequence)")
        if entry is None or entry.epoch == NO_EPOCH:
            return
        if header.producer_epoch != entry.epoch:
            if first != 0:
                raise self._out_of_order(header, f"0 is expected in the new epoch {header.producer_epoch}")
            return
        last = entry.last_sequence
        if first != last + 1 and not (first == 0 and last == INT32_MAX):
            raise self._out_of_order(header, f"{last} (current end sequence number)")

    def _out_of_order(self, header: BatchHeader, but: str) -> BatchError:
        return BatchError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"Out of order sequence number for producer {header.producer_id} at offset {header.base_offset} "
            f"in partition {self.partition}: {header.base_sequence} (incoming seq. number), {but}",
        )

    def _check_in_transaction(self, header: BatchHeader) -> None:
        entry = self._entries.get(header.producer_id)
        if entry is not None and entry.current_txn_first_offset is not None and not header.transactional:
            raise BatchError(
                ErrorCode.INVALID_TXN_STATE,
                f"Expected transactional write from producer {header.producer_id} at offset {header.base_offset} "
                f"in partition {self.partition}",
            )
