"""The consumer's state of each assigned partition: position, buffered records, paused or not (``SubscriptionState``).

Each partition has three offsets. ``fetched_to`` is the offset of the next fetch. ``position`` is the offset of the next record
that the user gets. ``settled`` is the offset of the first record that the user may not have processed yet: a poll means that
the records of earlier polls are processed.
"""

import enum
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from groupcoord.assignors import TopicPartition
from groupcoord.client.client_errors import CorruptRecordsError
from groupcoord.client.completed_fetch import ConsumerRecord, FetchedBatch, FetchedBatches


class StartPosition(enum.Enum):
    """How to find the position of a partition that has none; EARLIEST and LATEST have the timestamps of ListOffsets."""

    COMMITTED = 0
    EARLIEST = -2
    LATEST = -1


@dataclass(slots=True)
class PartitionState:
    """The state of one partition that is assigned to the consumer (``TopicPartitionState``)."""

    partition: TopicPartition
    start: StartPosition | None = StartPosition.COMMITTED
    """How to find the position; None if it is known."""
    position: int = -1
    settled: int = -1
    fetched_to: int = -1
    leader_epoch: int = -1
    """The leader epoch of the last record before the position, -1 if it is not known."""
    settled_epoch: int = -1
    unread: deque[FetchedBatch] = field(default_factory=deque)
    """Fetched batches that are not decoded yet."""
    records: list[ConsumerRecord] = field(default_factory=list)
    """The records of the batch that was decoded last."""
    handed_out: int = 0
    """How many of ``records`` the user has got."""
    buffered: int = 0
    """The number of buffered records that the user has not got yet; for undecoded batches, the count in their headers."""
    paused: bool = False
    """The user has paused it."""
    held: bool = False
    """It is about to be revoked, so that no more of its records are returned."""
    version: int = 0
    """Incremented when responses to requests in flight must be ignored, as after a seek."""
    active: bool = True
    """Did the last fetch return records? If so the next fetch does not wait for records (``max_wait_ms`` 0)."""
    asked_version: int | None = None
    """The ``version`` at which the request in flight was sent."""
    ask_again_at_ms: int = 0
    """After an error: the earliest time of the next request."""
    read_replica: int | None = None
    """The preferred read replica: a follower that is nearer than the leader (KIP-392)."""
    high_watermark: int | None = None
    last_stable_offset: int | None = None

    @property
    def in_flight(self) -> bool:
        """Is a request in flight whose response will be used?"""
        return self.asked_version == self.version

    @property
    def deliverable(self) -> bool:
        """May its records be returned to the user?"""
        return not (self.paused or self.held)

    def move_to(self, offset: int, leader_epoch: int = -1) -> None:
        """Set the position to ``offset``, and discard the buffered records."""
        self.start = None
        self.position = self.settled = self.fetched_to = offset
        self.leader_epoch = self.settled_epoch = leader_epoch
        self._drop()

    def find(self, start: StartPosition) -> None:
        """Discard the position; ``start`` says how to find the new one."""
        self.start = start
        self._drop()

    @property
    def has_records(self) -> bool:
        """Is a record buffered that ``take`` would return, or a corrupt one for which it would raise?"""
        return self.handed_out < len(self.records) or bool(self.unread)

    def put(self, fetched: FetchedBatches) -> None:
        """Buffer a fetch from ``fetched_to``."""
        self.unread.extend(fetched.batches)
        self.buffered += sum(batch.header.record_count for batch in fetched.batches)
        self.fetched_to = fetched.next_offset
        if not self._read_ahead() and self.position == self.settled:
            # Only gaps and control records were fetched: no record for the user lies before that offset.
            self.position = self.settled = fetched.next_offset

    def take(self, most: int) -> list[ConsumerRecord]:
        """Return up to ``most`` buffered records, and move the position past them.

        Raises CorruptRecordsError if the next record is corrupt: every time, until a seek moves the position.
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
        """Return the next decoded record; the one before counts as processed from now on."""
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
        """Decode batches until there is a record for the user. Is there one? Raises CorruptRecordsError."""
        while self.handed_out == len(self.records):
            if not self.unread:
                return False
            batch = self.unread[0]
            self.records, self.handed_out = batch.read(), 0
            self.buffered += len(self.records) - batch.header.record_count
            self.unread.popleft()
        return True

    def _read_ahead(self) -> bool:
        """Is there another record for the user, or a corrupt one?"""
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
    """All partitions that are assigned to the consumer."""

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
        """The assigned partitions, in the order in which ``take`` returns their records."""
        return tuple(self._states)

    def get(self, partition: TopicPartition) -> PartitionState | None:
        """The state of ``partition``, or None if it is not assigned."""
        return self._states.get(partition)

    def __getitem__(self, partition: TopicPartition) -> PartitionState:
        """The state of ``partition``. Raises KeyError, with an explanation, if it is not assigned."""
        try:
            return self._states[partition]
        except KeyError:
            raise KeyError(f"{partition[0]}-{partition[1]} is not assigned to this consumer") from None

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Assign exactly ``partitions``; those that were assigned before keep their state."""
        wanted = frozenset(partitions)
        self.changed, self._run = True, None
        for gone in self._states.keys() - wanted:
            self._states.pop(gone).version += 1  # tasks that still hold the state see that it is out of date
            self._unsettled.discard(gone)
        for new in sorted(wanted - self._states.keys()):
            self._states[new] = PartitionState(new)

    def stop_delivery(self, partitions: Iterable[TopicPartition]) -> None:
        """Return no more records of ``partitions``."""
        for partition in partitions:
            if partition in self._states:
                self._states[partition].held = True

    def mark_processed(self) -> None:
        """The user polls, so it has processed the records of earlier polls."""
        for partition in self._unsettled:
            state = self._states[partition]
            state.settled, state.settled_epoch = state.position, state.leader_epoch
        self._unsettled.clear()

    def take(self, most: int) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Return up to ``most`` records, taking the partitions in turn. Raises CorruptRecordsError; no record is lost then."""
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
        """Let ``take_next`` return up to ``length`` records of ``partition``, from which a record was taken."""
        self._run, self._run_left = self._states.get(partition), length

    def end_run(self) -> None:
        """Let ``take_next`` return nothing more, because the state has changed or is about to."""
        self._run = None

    def take_next(self) -> ConsumerRecord | None:
        """The next record of the run, or None; the records before it count as processed."""
        if self._run is None or self._run_left == 0:
            return None
        self._run_left -= 1
        return self._run.take_next()

    def consumed(self, *, settled: bool = False) -> dict[TopicPartition, tuple[int, int]]:
        """(position, leader epoch) of each partition; with ``settled``, the position after the last processed record."""
        return {
            partition: (state.settled, state.settled_epoch) if settled else (state.position, state.leader_epoch)
            for partition, state in self._states.items()
            if state.start is None
        }
