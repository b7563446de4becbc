"""From the bytes of a fetch to what a consumer hands out: data records from an offset on, without what was aborted.

Batches come whole, so the first may begin before the offset asked for. Markers of transactions and gaps that compaction left
hand out nothing, but a consumer goes past them. Sources: ``CompletedFetch``, KIP-98.
"""

import heapq
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from groupcoord.assignors import TopicPartition
from groupcoord.client.errors import CorruptRecordsError
from groupcoord.protocol.batches.record_batch import (
    MAGIC,
    BatchError,
    BatchHeader,
    extents,
    has_right_checksum,
    read_header,
    records_of,
)
from groupcoord.protocol.batches.records import Header, InvalidRecordsError
from groupcoord.protocol.messages.fetch import AbortedTransaction

ABORT_MARKER = 0


class Record(NamedTuple):
    """One record as a consumer gets it; ``timestamp_ms`` since 1970."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
    leader_epoch: int = -1
    """The epoch of the leader that took the record; goes along with a commit (KIP-320)."""


class Decoded(NamedTuple):
    """The records of one partition, and where to go on behind them."""

    records: list[Record]
    next_offset: int


def decode(
    partition: TopicPartition,
    data: bytes,
    offset: int,
    aborted: Iterable[AbortedTransaction] = (),
    *,
    check_crcs: bool = True,
) -> Decoded:
    """The records in ``data`` from ``offset`` on. ``aborted`` are those transactions that a reader of committed records skips.

    Raises CorruptRecordsError.
    """
    records: list[Record] = []
    topic, number = partition
    next_offset = offset
    transactions = _Transactions(aborted)
    try:
        for header, batch in _batches(data, check_crcs=check_crcs):
            next_offset = max(next_offset, header.last_offset + 1)
            if transactions.hide(header, batch) or header.last_offset < offset:
                continue
            epoch = header.leader_epoch
            records += [
                Record(topic, number, *each, epoch) for each in records_of(batch, header) if each.offset >= offset
            ]
    except (BatchError, InvalidRecordsError) as problem:
        raise CorruptRecordsError(f"{topic}-{number} at offset {next_offset} or behind: {problem}") from problem
    return Decoded(records, next_offset)


def _batches(data: bytes, *, check_crcs: bool) -> Iterator[tuple[BatchHeader, bytes]]:
    for position, size, magic in extents(data):
        if magic != MAGIC:
            raise InvalidRecordsError(f"records of format {magic}, which no supported broker writes any more")
        batch = data[position : position + size]
        header = read_header(batch)
        if check_crcs and not has_right_checksum(batch, header):
            raise InvalidRecordsError(f"the batch at offset {header.base_offset} does not fit its checksum")
        yield header, batch


class _Transactions:
    """Which batches are to be hidden: markers always, and those of transactions that were aborted."""

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._to_come = [(each.first_offset, each.producer_id) for each in aborted]
        heapq.heapify(self._to_come)
        self._hidden_producers: set[int] = set()

    def hide(self, header: BatchHeader, batch: bytes) -> bool:
        """Is the next batch none of the consumer's business?"""
        while self._to_come and self._to_come[0][0] <= header.last_offset:
            self._hidden_producers.add(heapq.heappop(self._to_come)[1])
        if header.control:
            if _is_abort(header, batch):
                self._hidden_producers.discard(header.producer_id)
            return True
        return header.transactional and header.producer_id in self._hidden_producers


def _is_abort(header: BatchHeader, batch: bytes) -> bool:
    """Does this marker end a transaction that was aborted? Its key is a version and a type, each of 16 bits."""
    marker = next(records_of(batch, header), None)
    return marker is not None and marker.key is not None and int.from_bytes(marker.key[2:4]) == ABORT_MARKER
