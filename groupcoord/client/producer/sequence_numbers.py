"""The sequence numbers of an idempotent producer, by which brokers detect duplicates and gaps (KIP-98, KIP-360).

A batch gets its number when it is first sent and keeps it in retries, so that it is stored once. A batch that expired in flight
may or may not be stored: until that is resolved, no new batch is sent to its partition; if it cannot be resolved, the producer
bumps its epoch, in which the partition begins at sequence 0.
Source: the idempotent half of ``TransactionManager``, and ``TxnPartitionMap``.
"""

from typing import NamedTuple

from groupcoord.assignors import TopicPartition
from groupcoord.client.producer.producer_batch import ProducerBatch
from groupcoord.protocol.batches.record_batch import NO_PRODUCER_ID, NO_SEQUENCE, add_to_sequence
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.errors import ErrorCode as E

_LAST_EPOCH = (1 << 15) - 1
_NO_OFFSET = -1


class ProducerIdAndEpoch(NamedTuple):
    """The producer id and epoch; ``producer_id`` is -1 as long as there is none."""

    producer_id: int = NO_PRODUCER_ID
    epoch: int = -1


class _PartitionSequences:
    """The numbers of one partition (``TxnPartitionEntry``); ``in_flight`` has the sent, incomplete batches in order."""

    def __init__(self) -> None:
        self.in_flight: list[ProducerBatch] = []
        self.begin_anew(ProducerIdAndEpoch())

    def begin_anew(self, producer: ProducerIdAndEpoch) -> None:
        """Restart at sequence 0; batches in flight are renumbered from 0."""
        self.producer = producer
        self.next = 0
        self.last_acked = NO_SEQUENCE
        self.last_acked_offset = _NO_OFFSET
        for batch in self.in_flight:
            batch.producer_id, batch.producer_epoch = producer
            batch.base_sequence, batch.sequence_was_reset = self.next, True
            self.next = add_to_sequence(self.next, batch.record_count)

    def is_next(self, sequence: int) -> bool:
        """Does ``sequence`` follow the last acknowledged one?"""
        return sequence == add_to_sequence(self.last_acked, 1)


class SequenceNumbers:
    """The sequence numbers of one producer. With ``transactional``, the transaction coordinator bumps the epoch instead."""

    def __init__(self, *, transactional: bool = False) -> None:
        self.producer = ProducerIdAndEpoch()
        self._transactional = transactional
        self._partitions: dict[TopicPartition, _PartitionSequences] = {}
        self._unresolved: set[TopicPartition] = set()
        self._begin_anew: set[TopicPartition] = set()

    def _of(self, partition: TopicPartition) -> _PartitionSequences:
        found = self._partitions.get(partition)
        if found is None:
            found = self._partitions[partition] = _PartitionSequences()
        return found

    # Sending.

    def may_send(self, batch: ProducerBatch) -> bool:
        """May the first batch of its queue be sent now (``shouldStopDrainBatchesForPartition``)?

        A retried batch waits until it is the oldest in flight. A new batch waits while batches of an older epoch are in
        flight, and while it is unresolved whether an expired batch is stored.
        """
        sequences = self._of(batch.partition)
        if batch.has_sequence:
            return not sequences.in_flight or sequences.in_flight[0] is batch
        if sequences.in_flight and sequences.producer != self.producer:
            return False
        return batch.partition not in self._unresolved

    def assign(self, batch: ProducerBatch) -> None:
        """Give ``batch``, which is sent for the first time, its sequence number."""
        sequences = self._of(batch.partition)
        if sequences.producer != self.producer:
            sequences.begin_anew(self.producer)
        batch.producer_id, batch.producer_epoch = self.producer
        batch.base_sequence = sequences.next
        sequences.next = add_to_sequence(sequences.next, batch.record_count)
        sequences.in_flight.append(batch)

    # Answers.

    def acknowledged(self, batch: ProducerBatch, base_offset: int) -> None:
        """``batch`` is stored; ``base_offset`` is that of its first record, -1 if it is not known."""
        sequences = self._of(batch.partition)
        sequences.last_acked = max(sequences.last_acked, batch.last_sequence)
        if base_offset >= 0:
            sequences.last_acked_offset = max(sequences.last_acked_offset, base_offset + batch.record_count - 1)
        self._remove(batch)

    def may_retry(self, batch: ProducerBatch, code: ErrorCode, log_start_offset: int) -> bool:
        """May ``batch`` be retried after the error ``code``? Source: ``TransactionManager.canRetry``."""
        partition = batch.partition
        sequences, unresolved = self._of(partition), partition in self._unresolved
        if code is E.UNKNOWN_PRODUCER_ID:
            # The broker lost the state of the producer, for example because retention deleted all its records.
            if log_start_offset == -1 or batch.sequence_was_reset:
                return True
            if not self._transactional:
                self._begin_anew.add(partition)
                return True
            if sequences.last_acked_offset < log_start_offset:
                sequences.begin_anew(self.producer)
                return True
        elif code is E.OUT_OF_ORDER_SEQUENCE_NUMBER:
            is_next = sequences.is_next(batch.base_sequence)
            if not unresolved and (batch.sequence_was_reset or not is_next):
                return True  # an earlier batch is being retried
            if not self._transactional:
                if not unresolved or is_next:
                    self._begin_anew.add(partition)
                return True
        return code.retriable

    def failed(self, batch: ProducerBatch, code: ErrorCode, *, retries_left: bool) -> None:
        """``batch`` failed for good with ``code`` (``handleFailedBatch``).

        If it ran out of retries, it may or may not be stored.
        """
        self._remove(batch)
        if not self._transactional:
            if retries_left or code is E.OUT_OF_ORDER_SEQUENCE_NUMBER:
                self._begin_anew.add(batch.partition)
        elif retries_left:
            self._close_gap(batch)

    def expired(self, batch: ProducerBatch) -> None:
        """``batch`` expired; if it was sent, it may or may not be stored."""
        if batch.has_sequence:
            self._remove(batch)
            self._unresolved.add(batch.partition)

    def split(self, batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """``parts`` have the records and the numbers of ``batch``, which was too large."""
        in_flight = self._of(batch.partition).in_flight
        place = in_flight.index(batch)
        in_flight[place : place + 1] = parts

    def _close_gap(self, failed: ProducerBatch) -> None:
        """Renumber the batches after ``failed`` to close the gap (``adjustSequencesDueToFailedBatch``)."""
        sequences = self._of(failed.partition)
        for batch in sequences.in_flight:
            if batch.base_sequence > failed.base_sequence:
                batch.base_sequence, batch.sequence_was_reset = batch.base_sequence - failed.record_count, True
        sequences.next = add_to_sequence(sequences.next, -failed.record_count)

    def _remove(self, batch: ProducerBatch) -> None:
        self._of(batch.partition).in_flight.remove(batch)

    # Epochs.

    def resolve(self) -> None:
        """Resolve whether expired batches are stored, where later responses tell (``maybeResolveSequences``)."""
        for partition in sorted(self._unresolved):
            sequences = self._of(partition)
            if sequences.in_flight:
                continue
            self._unresolved.discard(partition)
            if not self._transactional and not sequences.is_next(sequences.next):
                self._begin_anew.add(partition)

    def next_epoch(self) -> tuple[TopicPartition, ...]:
        """Bump the epoch if needed; returns the partitions that restart at sequence 0.

        After the last epoch the producer needs a new id (``producer.producer_id`` is -1).
        """
        if not self._begin_anew:
            return ()
        partitions, self._begin_anew = tuple(sorted(self._begin_anew)), set()
        producer_id, epoch = self.producer
        self.producer = ProducerIdAndEpoch(producer_id, epoch + 1) if epoch < _LAST_EPOCH else ProducerIdAndEpoch()
        for partition in partitions:
            self._of(partition).begin_anew(self.producer)
            self._unresolved.discard(partition)
        return partitions

    def has_new_id(self, producer: ProducerIdAndEpoch) -> None:
        """Use the new id ``producer``; batches in flight without an id get it."""
        before, self.producer = self.producer, producer
        for sequences in self._partitions.values():
            if sequences.in_flight and sequences.producer == before:
                sequences.begin_anew(producer)
