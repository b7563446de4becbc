"""What a log remembers of its producers: epochs, their last five batches, and open transactions (KIP-98, KIP-890).

A batch that is among the five is a repetition and is acknowledged with the offset it got then; any other has to follow the last
one's sequence number. A transaction opens with its first batch and ends with its marker; until then nothing from its first
offset on is stable. Source: ``ProducerStateManager``, ``ProducerAppendInfo``, ``ProducerStateEntry``,
``VerificationStateEntry``.
"""

from bisect import insort
from collections.abc import Iterable
from typing import NamedTuple

from groupcoord.core.transactional_write import TransactionMarker
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
"""The transaction.version since which a marker's epoch is larger than that of the records it ends (KIP-890)."""


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


class AbortedTransaction(NamedTuple):
    """A transaction that was aborted, as a log's index of such knows it. Source: ``AbortedTxn``.

    ``first_offset`` is that of its first record, ``last_offset`` that of its marker, and ``last_stable_offset`` the log's when
    it had ended: the first offset of the oldest transaction that was open still, or what follows the marker.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class ProducerStateEntry:
    """One producer as one log knows it: ``batches`` are of ``epoch``, the last at most five of it, oldest first.

    ``last_timestamp_ms`` is that of the last batch or marker, ``coordinator_epoch`` the last marker's, and
    ``current_txn_first_offset`` where the open transaction begins. There are no batches if a marker brought a new epoch.
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
        """``batch`` is its last one."""
        self.batches = (*self.batches, batch)[-BATCHES_TO_RETAIN:]

    def move_to(self, epoch: int) -> None:
        """Its batches are of ``epoch`` from now on."""
        if self.epoch != epoch:
            self.epoch = epoch
            self.batches = ()


class VerificationState:
    """A producer of which the coordinator is asked whether the partition is in its transaction.

    It lasts until a batch of the transaction or its marker is appended. A batch has to show the object that was made when the
    coordinator was asked: if that is another one by then, the transaction has ended meanwhile. What failed and is sent again
    must not be overtaken by what follows it: nothing behind ``lowest_sequence``, the lowest of ``epoch`` that was seen, is
    appended first. ``adds``: partitions are added to the transaction by writing to them (KIP-890, Produce v12).
    """

    __slots__ = ("adds", "epoch", "lowest_sequence", "started_ms")

    def __init__(self, sequence: int, epoch: int, now_ms: int, *, adds: bool) -> None:
        self.lowest_sequence = sequence
        self.epoch = epoch
        self.adds = adds
        self.started_ms = now_ms

    def seen(self, sequence: int, epoch: int) -> None:
        """A batch that begins with ``sequence`` wants to be appended."""
        if epoch > self.epoch or (epoch == self.epoch and sequence < self.lowest_sequence):
            self.epoch, self.lowest_sequence = epoch, sequence


class ProducerStateManager:
    """The producers of one log. ``partition`` is its name, ``topic-0``, for messages."""

    __slots__ = ("_entries", "_ongoing", "_unreplicated", "_verifications", "partition")

    def __init__(self, partition: str) -> None:
        self.partition = partition
        self._entries: dict[int, ProducerStateEntry] = {}
        self._verifications: dict[int, VerificationState] = {}
        self._ongoing: list[tuple[int, int]] = []  # first offset and producer id of each open transaction, in order
        self._unreplicated: list[
            tuple[int, int]
        ] = []  # first and last offset of each that has ended, as far as is known

    def __len__(self) -> int:
        """How much there is that can be forgotten one day."""
        return len(self._entries) + len(self._verifications)

    def __getitem__(self, producer_id: int) -> ProducerStateEntry:
        """What is known of the producer. Raises KeyError."""
        return self._entries[producer_id]

    def items(self) -> Iterable[tuple[int, ProducerStateEntry]]:
        """Every producer id, and what is known of it."""
        return self._entries.items()

    @property
    def first_unstable_offset(self) -> int | None:
        """Where the oldest open transaction begins; None if none is open."""
        return self._ongoing[0][0] if self._ongoing else None

    def first_unstable_at(self, high_watermark: int) -> int | None:
        """Where the oldest transaction begins that is open, or whose marker is not below ``high_watermark``.

        Source: ``ProducerStateManager.unreplicatedTxns``.
        """
        first = self.first_unstable_offset
        self.replicated(high_watermark)
        if not self._unreplicated:
            return first
        unreplicated = min(self._unreplicated)[0]
        return unreplicated if first is None else min(first, unreplicated)

    def replicated(self, high_watermark: int) -> None:
        """All replicas in sync have what lies before ``high_watermark``: transactions whose markers are there are over."""
        if self._unreplicated:
            self._unreplicated = [ended for ended in self._unreplicated if ended[1] >= high_watermark]

    def has_ongoing_transaction(self, producer_id: int, epoch: int) -> bool:
        """Has the producer a transaction open here, in that epoch?"""
        entry = self._entries.get(producer_id)
        return entry is not None and entry.current_txn_first_offset is not None and entry.epoch == epoch

    # --- what a log has

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
        """Know of a producer what a snapshot has kept. ``last`` is its last batch, whose time counts if there is one."""
        entry = self._entries[producer_id] = ProducerStateEntry(epoch)
        entry.last_timestamp_ms = last_timestamp_ms
        entry.coordinator_epoch = coordinator_epoch
        if last is not None:
            entry.keep(last)
            entry.last_timestamp_ms = last.timestamp_ms
        if current_txn_first_offset is not None:
            self._open_transaction(producer_id, entry, current_txn_first_offset)

    def replay(self, header: BatchHeader, batch: Buffer) -> AbortedTransaction | None:
        """A batch that the log has, from ``header`` on: the transaction that it ends, if it was aborted.

        Only of a marker the whole ``batch`` is looked at. Compaction may have left no more of one than its header.
        Raises BatchError, InvalidRecordsError.
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
        """The batch, at its offset, is in the log; it is no marker."""
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
        """``marker`` is in the log at ``offset``: the transaction that it ends, if it was aborted and had records here."""
        producer_id = marker.producer_id
        entry = self._moved_to(producer_id, marker.producer_epoch)
        entry.coordinator_epoch = marker.coordinator_epoch
        entry.last_timestamp_ms = timestamp_ms
        verification = self._verifications.get(producer_id)
        # The marker may come when the next transaction, whose epoch it has, is about to begin.
        if verification is not None and not (verification.adds and verification.epoch == marker.producer_epoch):
            del self._verifications[producer_id]
        aborted = self.aborted_by(marker, offset)
        if entry.current_txn_first_offset is not None:
            self._ongoing.remove((entry.current_txn_first_offset, producer_id))
            self._unreplicated.append((entry.current_txn_first_offset, offset))
            entry.current_txn_first_offset = None
        return aborted

    def aborted_by(self, marker: TransactionMarker, offset: int) -> AbortedTransaction | None:
        """The open transaction that ``marker`` aborts when it is at ``offset``; None if it commits, or nothing is open."""
        entry = self._entries.get(marker.producer_id)
        if marker.committed or entry is None or entry.current_txn_first_offset is None:
            return None
        others = (first for first, producer_id in self._ongoing if producer_id != marker.producer_id)
        stable = next(others, offset + 1)
        return AbortedTransaction(marker.producer_id, entry.current_txn_first_offset, offset, stable)

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Forget producers without a transaction that have not written for ``expiration_ms`` (producer.id.expiration.ms)."""
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

    # --- what may be appended

    def duplicate_of(self, header: BatchHeader) -> BatchMetadata | None:
        """The kept batch that this one repeats: of the same epoch, with exactly its sequence numbers."""
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
        """What a transactional batch has to show when it is appended, for which the coordinator is to be asked first.

        ``sequence`` is the batch's first. None: the transaction is open here already, and nobody is to be asked.
        Raises BatchError(INVALID_PRODUCER_EPOCH).
        """
        self._check_epoch(producer_id, epoch)
        if self.has_ongoing_transaction(producer_id, epoch):
            return None
        state = self._verifications.get(producer_id)
        if state is None:
            state = self._verifications[producer_id] = VerificationState(sequence, epoch, now_ms, adds=adds)
        state.seen(sequence, epoch)
        return state

    def check_verified(self, header: BatchHeader, shown: VerificationState | None) -> None:
        """May the transactional batch be appended, as far as its transaction goes? Raises BatchError.

        ``shown`` is what ``start_verification`` gave.
        """
        if self.has_ongoing_transaction(header.producer_id, header.producer_epoch):
            return
        self._check_epoch(header.producer_id, header.producer_epoch)
        if shown is None or self._verifications.get(header.producer_id) is not shown:
            raise BatchError(ErrorCode.INVALID_TXN_STATE, "Record was not part of an ongoing transaction")

    def check(self, header: BatchHeader) -> None:
        """May the batch of a client, already at its offset, be appended? Raises BatchError."""
        self._check_epoch(header.producer_id, header.producer_epoch)
        self._check_sequence(header)
        self._check_in_transaction(header)

    def check_own(self, header: BatchHeader) -> None:
        """May a coordinator's batch for a producer be appended? Sequence numbers do not count. Raises BatchError."""
        self._check_epoch(header.producer_id, header.producer_epoch)
        self._check_in_transaction(header)

    def check_marker(self, marker: TransactionMarker) -> None:
        """May the end of a transaction be appended? Raises BatchError.

        The error is INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED, or UNKNOWN_SERVER_ERROR for transaction.version -1.
        Where each transaction has an epoch of its own the marker's is larger than that of the records, unless it is a
        repetition: then nothing is open, or there is no larger epoch.
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

    def _check_epoch(self, producer_id: int, epoch: int) -> None:
        entry = self._entries.get(producer_id)
        if entry is not None and epoch < entry.epoch:
            raise BatchError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Epoch of producer {producer_id} in partition {self.partition} is {epoch}, "
                f"which is < the last seen epoch {entry.epoch}",
            )

    def _check_sequence(self, header: BatchHeader) -> None:
        """A producer that is not known here may start anywhere, because its earlier batches may be gone by retention.

        One that has written without an epoch may go on anywhere, and one whose partitions are added by its writes starts with
        0 nevertheless. Raises BatchError.
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
