"""ConsumerRecord, and the decoding of fetched record batches into such records (``CompletedFetch``, KIP-98).

A Fetch response holds whole batches, so the first may begin before the requested offset. Control records and, under
``read_committed``, records of aborted transactions are skipped; the position still moves past them.
"""

import heapq
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from groupcoord.assignors import TopicPartition
from groupcoord.client.client_errors import CorruptRecordsError
from groupcoord.protocol.apis.fetch import AbortedTransaction
from groupcoord.protocol.batches.record_batch import (
    MAGIC,
    BatchError,
    BatchHeader,
    checksum_matches,
    fields_of,
    iter_batch_extents,
    read_header,
    records_of,
)
from groupcoord.protocol.batches.records import Header, InvalidRecordsError

ABORT_MARKER = 0


class ConsumerRecord(NamedTuple):
    """One record as the consumer returns it; ``timestamp_ms`` is in milliseconds since 1970."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: Any
    """Bytes or None, unless there is a ``key_deserializer``."""
    value: Any
    """Bytes or None, unless there is a ``value_deserializer``."""
    headers: tuple[Header, ...] = ()
    leader_epoch: int = -1
    """The epoch of the leader that appended the record; a commit of the next offset carries it (KIP-320)."""


class FetchedRecords(NamedTuple):
    """The decoded records of one partition, and the offset of the next fetch."""

    records: list[ConsumerRecord]
    next_offset: int


class FetchedBatch(NamedTuple):
    """A batch of one partition that has been checked (CRC, transaction) but whose records are not decoded yet."""

    partition: TopicPartition
    header: BatchHeader
    data: bytes
    offset: int
    """Records before this offset are skipped."""

    def read(self) -> list[ConsumerRecord]:
        """Decode its records; compaction may have removed some or all. Raises CorruptRecordsError."""
        (topic, number), header, data, offset = self
        epoch = header.leader_epoch
        new = tuple.__new__  # a third of the time of calling the class
        try:
            return [
                new(ConsumerRecord, (topic, number, at, timestamp_ms, key, value, headers, epoch))
                for at, timestamp_ms, key, value, headers in fields_of(data, header)
                if at >= offset
            ]
        except (BatchError, InvalidRecordsError) as problem:
            raise _corrupt(self.partition, max(offset, header.base_offset), problem) from problem


class FetchedBatches(NamedTuple):
    """The batches of one partition that have records for the user, and the offset of the next fetch."""

    batches: list[FetchedBatch]
    next_offset: int


def decode_records(
    partition: TopicPartition,
    data: bytes,
    offset: int,
    aborted: Iterable[AbortedTransaction] = (),
) -> FetchedRecords:
    """The records in ``data`` from ``offset`` on, without those of the ``aborted`` transactions that the broker listed.

    Raises CorruptRecordsError.
    """
    fetched = check_batches(partition, data, offset, aborted)
    return FetchedRecords([record for batch in fetched.batches for record in batch.read()], fetched.next_offset)


def check_batches(
    partition: TopicPartition,
    data: bytes,
    offset: int,
    aborted: Iterable[AbortedTransaction] = (),
    *,
    check_crcs: bool = True,
) -> FetchedBatches:
    """As ``decode_records``, but the records are not decoded yet. Raises CorruptRecordsError."""
    batches: list[FetchedBatch] = []
    next_offset = offset
    transactions = _Transactions(aborted)
    try:
        for header, batch in _batches(data, check_crcs=check_crcs):
            next_offset = max(next_offset, header.last_offset + 1)
            if not transactions.hide(header, batch) and header.last_offset >= offset:
                batches.append(FetchedBatch(partition, header, batch, offset))
    except (BatchError, InvalidRecordsError) as problem:
        raise _corrupt(partition, next_offset, problem) from problem
    return FetchedBatches(batches, next_offset)


def _corrupt(partition: TopicPartition, offset: int, problem: Exception) -> CorruptRecordsError:
    return CorruptRecordsError(f"{partition[0]}-{partition[1]} at offset {offset} or behind: {problem}")


def _batches(data: bytes, *, check_crcs: bool) -> Iterator[tuple[BatchHeader, bytes]]:
    for position, size, magic in iter_batch_extents(data):
        if magic != MAGIC:
            raise InvalidRecordsError(f"records of format {magic}, which no supported broker writes any more")
        batch = data[position : position + size]
        header = read_header(batch)
        if check_crcs and not checksum_matches(batch, header):
            raise InvalidRecordsError(f"the batch at offset {header.base_offset} does not fit its checksum")
        yield header, batch


class _Transactions:
    """Decides which batches are skipped: control batches, and batches of aborted transactions."""

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._to_come = [(each.first_offset, each.producer_id) for each in aborted]
        heapq.heapify(self._to_come)
        self._hidden_producers: set[int] = set()

    def hide(self, header: BatchHeader, batch: bytes) -> bool:
        """Whether to skip the next batch; call it for every batch in order."""
        while self._to_come and self._to_come[0][0] <= header.last_offset:
            self._hidden_producers.add(heapq.heappop(self._to_come)[1])
        if header.control:
            if _is_abort_marker(header, batch):
                self._hidden_producers.discard(header.producer_id)
            return True
        return header.transactional and header.producer_id in self._hidden_producers


def _is_abort_marker(header: BatchHeader, batch: bytes) -> bool:
    """Is this control batch an ABORT marker? Its key is a version and a type, each of 16 bits."""
    marker = next(records_of(batch, header), None)
    return marker is not None and marker.key is not None and int.from_bytes(marker.key[2:4]) == ABORT_MARKER
