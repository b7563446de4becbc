"""The records of a fetch, and the state of each partition that a consumer owns: positions, buffered records, pauses.

A fetch brings whole batches, so the first may begin before the offset that was asked for. Markers and aborted transactions hand
out no records, but the position moves past them. Sources: ``CompletedFetch``, ``SubscriptionState``, KIP-98.

Each partition has three offsets. ``fetched_to`` is where the next fetch begins; ``position`` is the next record to hand out;
``settled`` is the first record that the user may not have processed yet: records handed out before the latest poll count as
processed.
"""

import enum
import heapq
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from groupcoord.assignors import TopicPartition
from groupcoord.client.client_errors import CorruptRecordsError
from groupcoord.protocol.apis.fetch import AbortedTransaction
from groupcoord.protocol.batches.record_batch import (
    MAGIC,
    BatchError,
    BatchHeader,
    checksum_matches,
    iter_batch_extents,
    read_header,
    records_of,
)
from groupcoord.protocol.batches.records import Header, InvalidRecordsError

ABORT_MARKER = 0


class ConsumerRecord(NamedTuple):
    """One record as a consumer gets it; ``timestamp_ms`` since 1970."""

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
    """The epoch of the leader that took the record; goes along with a commit (KIP-320)."""


class FetchedRecords(NamedTuple):
    """The records of one partition, and where to go on behind them."""

    records: list[ConsumerRecord]
    next_offset: int


def decode_records(
    partition: TopicPartition,
    data: bytes,
    offset: int,
    aborted: Iterable[AbortedTransaction] = (),
    *,
    check_crcs: bool = True,
) -> FetchedRecords:
    """The records in ``data`` from ``offset`` on. ``aborted`` are those transactions that a reader of committed records skips.

    Raises CorruptRecordsError.
    """
    records: list[ConsumerRecord] = []
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
                ConsumerRecord(topic, number, *each, epoch)
                for each in records_of(batch, header)
                if each.offset >= offset
            ]
    except (BatchError, InvalidRecordsError) as problem:
        raise CorruptRecordsError(f"{topic}-{number} at offset {next_offset} or behind: {problem}") from problem
    return FetchedRecords(records, next_offset)


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
    """Which batches are skipped: markers, and those of aborted transactions."""

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._to_come = [(each.first_offset, each.producer_id) for each in aborted]
        heapq.heapify(self._to_come)
        self._hidden_producers: set[int] = set()

    def hide(self, header: BatchHeader, batch: bytes) -> bool:
        """Is the next batch skipped?"""
        while self._to_come and self._to_come[0][0] <= header.last_offset:
            self._hidden_producers.add(heapq.heappop(self._to_come)[1])
        if header.control:
            if _is_abort_marker(header, batch):
                self._hidden_producers.discard(header.producer_id)
            return True
        return header.transactional and header.producer_id in self._hidden_producers


def _is_abort_marker(header: BatchHeader, batch: bytes) -> bool:
    """Does this marker end a transaction that was aborted? Its key is a version and a type, each of 16 bits."""
    marker = next(records_of(batch, header), None)
    return marker is not None and marker.key is not None and int.from_bytes(marker.key[2:4]) == ABORT_MARKER


class StartPosition(enum.Enum):
    """Where to begin in a partition whose position is not known; the values are Kafka's timestamps that stand for them."""

    COMMITTED = 0
    EARLIEST = -2
    LATEST = -1


@dataclass(slots=True)
class PartitionState:
    """One partition while the consumer owns it."""

    partition: TopicPartition
    start: StartPosition | None = StartPosition.COMMITTED
    """How its position is to be found; None if it is known."""
    position: int = -1
    settled: int = -1
    fetched_to: int = -1
    leader_epoch: int = -1
    """Of the last record before the position, if it is known."""
    settled_epoch: int = -1
    store: deque[ConsumerRecord] = field(default_factory=deque)
    paused: bool = False
    """The user wants no records of it for now."""
    held: bool = False
    """It is about to be revoked."""
    version: int = 0
    """Goes up when responses under way must be ignored."""
    active: bool = True
    """Did it have records when it was asked last? If so it is asked again without waiting."""
    asked_version: int | None = None
    """The version at which the request under way was sent."""
    ask_again_at_ms: int = 0
    """After an error: not before."""
    read_replica: int | None = None
    """A broker that is nearer than the leader and has the records, too (KIP-392)."""
    high_watermark: int | None = None
    last_stable_offset: int | None = None
    log_start: int | None = None

    @property
    def in_flight(self) -> bool:
        """Is a request under way whose response will be used?"""
        return self.asked_version == self.version

    @property
    def deliverable(self) -> bool:
        """May its records be handed out?"""
        return not (self.paused or self.held)

    def move_to(self, offset: int, leader_epoch: int = -1) -> None:
        """Set the position to ``offset``, and drop the buffer."""
        self.start = None
        self.position = self.settled = self.fetched_to = offset
        self.leader_epoch = self.settled_epoch = leader_epoch
        self._drop()

    def find(self, start: StartPosition) -> None:
        """Forget the position; it is to be found as ``start`` says."""
        self.start = start
        self._drop()

    def put(self, decoded: FetchedRecords) -> None:
        """Records have come, those at ``fetched_to``."""
        self.store.extend(decoded.records)
        self.fetched_to = decoded.next_offset
        if not self.store and self.position == self.settled:
            # Nothing but gaps and markers: there is nothing to hand out before it.
            self.position = self.settled = decoded.next_offset

    def take(self, most: int) -> list[ConsumerRecord]:
        """Hand out up to ``most`` records of those in store, of which there are some."""
        taken = [self.store.popleft() for _ in range(min(most, len(self.store)))]
        self.leader_epoch = taken[-1].leader_epoch
        self.position = taken[-1].offset + 1 if self.store else self.fetched_to
        return taken

    def _drop(self) -> None:
        self.store.clear()
        self.version += 1
        self.active = True
        self.read_replica = None


class AssignedPartitions:
    """All partitions that the consumer owns."""

    def __init__(self) -> None:
        self._states: dict[TopicPartition, PartitionState] = {}
        self._unsettled: set[TopicPartition] = set()

    def __iter__(self) -> Iterator[PartitionState]:
        return iter(tuple(self._states.values()))

    def __contains__(self, partition: object) -> bool:
        return partition in self._states

    def get(self, partition: TopicPartition) -> PartitionState | None:
        """Its state, if it is owned."""
        return self._states.get(partition)

    def __getitem__(self, partition: TopicPartition) -> PartitionState:
        """Its state. Raises KeyError, with a text for people, if it is not owned."""
        try:
            return self._states[partition]
        except KeyError:
            raise KeyError(f"{partition[0]}-{partition[1]} is not assigned to this consumer") from None

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Exactly ``partitions`` are owned from now on; those that stay go on undisturbed."""
        wanted = frozenset(partitions)
        for gone in self._states.keys() - wanted:
            self._states.pop(gone).version += 1  # tasks that still hold the state see that it is out of date
            self._unsettled.discard(gone)
        for new in sorted(wanted - self._states.keys()):
            self._states[new] = PartitionState(new)

    def stop_delivery(self, partitions: Iterable[TopicPartition]) -> None:
        """Hand out no more of ``partitions``."""
        for partition in partitions:
            if partition in self._states:
                self._states[partition].held = True

    def mark_processed(self) -> None:
        """The user polls: it has processed the records it was handed out before."""
        for partition in self._unsettled:
            state = self._states[partition]
            state.settled, state.settled_epoch = state.position, state.leader_epoch
        self._unsettled.clear()

    def take(self, most: int) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Hand out up to ``most`` records, from partitions in rotation."""
        taken: dict[TopicPartition, list[ConsumerRecord]] = {}
        for partition, state in tuple(self._states.items()):
            if most <= 0:
                break
            if state.store and state.deliverable:
                taken[partition] = state.take(most)
                most -= len(taken[partition])
                self._states[partition] = self._states.pop(partition)
                self._unsettled.add(partition)
        return taken

    def take_one(self) -> ConsumerRecord | None:
        """Hand out one record, of the same partition as the last if it has more: in runs, as a batch would come."""
        for partition in self._unsettled or ():
            state = self._states[partition]
            if state.store and state.deliverable:
                return state.take(1)[0]
        taken = self.take(1)
        return next(iter(taken.values()))[0] if taken else None

    def consumed(self, *, settled: bool = False) -> dict[TopicPartition, tuple[int, int]]:
        """(offset, leader epoch) of each partition: up to where the user was given records, or has surely processed them."""
        return {
            partition: (state.settled, state.settled_epoch) if settled else (state.position, state.leader_epoch)
            for partition, state in self._states.items()
            if state.start is None
        }
