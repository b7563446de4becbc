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
    fields_of,
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


class FetchedBatch(NamedTuple):
    """A batch of one partition that has been checked, and is read when its turn comes."""

    partition: TopicPartition
    header: BatchHeader
    data: bytes
    offset: int
    """Records before it are not handed out."""

    def read(self) -> list[ConsumerRecord]:
        """Its records, which compaction may have taken away. Raises CorruptRecordsError."""
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
    """The batches of one partition that have something to hand out, and where to go on behind them."""

    batches: list[FetchedBatch]
    next_offset: int


def decode_records(
    partition: TopicPartition,
    data: bytes,
    offset: int,
    aborted: Iterable[AbortedTransaction] = (),
) -> FetchedRecords:
    """The records in ``data`` from ``offset`` on. ``aborted`` are those transactions that a reader of committed records skips.

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
    """As ``decode_records``, with the records unread. Raises CorruptRecordsError."""
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
    unread: deque[FetchedBatch] = field(default_factory=deque)
    """Batches that have come and wait for their turn to be read."""
    records: list[ConsumerRecord] = field(default_factory=list)
    """Those of the last batch that was read."""
    handed_out: int = 0
    """How many of these have been handed out."""
    buffered: int = 0
    """Records to be handed out, as far as their batches say how many they have."""
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

    @property
    def has_records(self) -> bool:
        """Is there a record to be handed out, or one that cannot be read?"""
        return self.handed_out < len(self.records) or bool(self.unread)

    def put(self, fetched: FetchedBatches) -> None:
        """Records have come, those at ``fetched_to``."""
        self.unread.extend(fetched.batches)
        self.buffered += sum(batch.header.record_count for batch in fetched.batches)
        self.fetched_to = fetched.next_offset
        if not self._read_ahead() and self.position == self.settled:
            # Nothing but gaps and markers: there is nothing to hand out before it.
            self.position = self.settled = fetched.next_offset

    def take(self, most: int) -> list[ConsumerRecord]:
        """Hand out up to ``most`` records of those that are there.

        Raises CorruptRecordsError if the next cannot be read: each time, until the position is another.
        """
        taken: list[ConsumerRecord] = []
        try:
            while len(taken) < most and self._read():
                more = self.records[self.handed_out : self.handed_out + most - len(taken)]
                self.handed_out += len(more)
                taken += more
        except CorruptRecordsError:
            if not taken:
                raise
        self.buffered -= len(taken)
        self.leader_epoch = taken[-1].leader_epoch
        self.position = taken[-1].offset + 1 if self._read_ahead() else self.fetched_to
        return taken

    def take_next(self) -> ConsumerRecord | None:
        """Hand out the next record of those that have been read; the one before has been processed."""
        at = self.handed_out
        if at == len(self.records):
            return None
        record = self.records[at]
        self.settled, self.settled_epoch = self.position, self.leader_epoch
        self.handed_out = at + 1
        self.buffered -= 1
        self.leader_epoch = record.leader_epoch
        self.position = record.offset + 1 if self._read_ahead() else self.fetched_to
        return record

    def _read(self) -> bool:
        """Read batches until there is a record to be handed out. Is there one? Raises CorruptRecordsError."""
        while self.handed_out == len(self.records):
            if not self.unread:
                return False
            batch = self.unread[0]
            self.records, self.handed_out = batch.read(), 0
            self.buffered += len(self.records) - batch.header.record_count
            self.unread.popleft()
        return True

    def _read_ahead(self) -> bool:
        """Is there another record to be handed out, or one that cannot be read?"""
        try:
            return self._read()
        except CorruptRecordsError:
            return True

    def _drop(self) -> None:
        self.unread.clear()
        self.records, self.handed_out, self.buffered = [], 0, 0
        self.version += 1
        self.active = True
        self.read_replica = None


class AssignedPartitions:
    """All partitions that the consumer owns."""

    def __init__(self) -> None:
        self._states: dict[TopicPartition, PartitionState] = {}
        self.changed = True
        """Has the assignment changed since somebody set this to False?"""
        self._unsettled: set[TopicPartition] = set()
        self._run: PartitionState | None = None
        self._run_left = 0

    def __iter__(self) -> Iterator[PartitionState]:
        return iter(tuple(self._states.values()))

    def __contains__(self, partition: object) -> bool:
        return partition in self._states

    def owned(self) -> tuple[TopicPartition, ...]:
        """Their names, those first that are next to hand out records."""
        return tuple(self._states)

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
        self.changed, self._run = True, None
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
        """Hand out up to ``most`` records, from partitions in rotation. Raises CorruptRecordsError, and loses nothing then."""
        self._run = None
        taken: dict[TopicPartition, list[ConsumerRecord]] = {}
        for partition, state in self._states.items():
            if state.has_records and state.deliverable:
                try:
                    taken[partition] = state.take(most)
                except CorruptRecordsError:
                    if taken:
                        continue  # the next call raises it
                    self._states[partition] = self._states.pop(partition)
                    raise
                most -= len(taken[partition])
                if most == 0:
                    break
        for partition in taken:
            self._states[partition] = self._states.pop(partition)
        self._unsettled.update(taken)
        return taken

    def begin_run(self, partition: TopicPartition, length: int) -> None:
        """Let ``take_next`` hand out up to ``length`` records of ``partition``, from which a record was taken."""
        self._run, self._run_left = self._states.get(partition), length

    def end_run(self) -> None:
        """Something may have changed, or is to change: ``take_next`` has nothing more."""
        self._run = None

    def take_next(self) -> ConsumerRecord | None:
        """The next record of the run, if there is one; those before it have been processed."""
        if self._run is None or self._run_left == 0:
            return None
        self._run_left -= 1
        return self._run.take_next()

    def consumed(self, *, settled: bool = False) -> dict[TopicPartition, tuple[int, int]]:
        """(offset, leader epoch) of each partition: up to where the user was given records, or has surely processed them."""
        return {
            partition: (state.settled, state.settled_epoch) if settled else (state.position, state.leader_epoch)
            for partition, state in self._states.items()
            if state.start is None
        }
