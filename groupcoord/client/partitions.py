"""What a consumer knows of each partition that it owns: where it is, what it has in store, and what it must not do.

Three offsets tell how far it is. ``fetched_to`` is where the next fetch begins; ``position`` is the next record to hand out;
``settled`` is the first record that the user may not have processed yet: what was handed out before the latest poll is done.
"""

import enum
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from groupcoord.assignors import TopicPartition
from groupcoord.client.decoding import Decoded, Record


class Start(enum.Enum):
    """Where to begin in a partition whose position is not known; the values are Kafka's timestamps that stand for them."""

    COMMITTED = 0
    EARLIEST = -2
    LATEST = -1


@dataclass(slots=True)
class PartitionState:
    """One partition while the consumer owns it."""

    partition: TopicPartition
    start: Start | None = Start.COMMITTED
    """How its position is to be found; None if it is known."""
    position: int = -1
    settled: int = -1
    fetched_to: int = -1
    leader_epoch: int = -1
    """Of the last record before the position, if it is known."""
    settled_epoch: int = -1
    store: deque[Record] = field(default_factory=deque)
    paused: bool = False
    """The user wants no records of it for now."""
    held: bool = False
    """It is about to be revoked."""
    version: int = 0
    """Goes up when what is on its way is of no use any more."""
    active: bool = True
    """Did it have records when it was asked last? If so it is asked again without waiting."""
    asked_version: int | None = None
    """The version for which somebody is being asked right now."""
    ask_again_at_ms: int = 0
    """After an error: not before."""
    read_replica: int | None = None
    """A broker that is nearer than the leader and has the records, too (KIP-392)."""
    high_watermark: int | None = None
    log_start: int | None = None

    @property
    def in_flight(self) -> bool:
        """Is something on its way that will be of use?"""
        return self.asked_version == self.version

    @property
    def deliverable(self) -> bool:
        """May its records be handed out?"""
        return not (self.paused or self.held)

    def move_to(self, offset: int, leader_epoch: int = -1) -> None:
        """Go on at ``offset``, whatever was fetched."""
        self.start = None
        self.position = self.settled = self.fetched_to = offset
        self.leader_epoch = self.settled_epoch = leader_epoch
        self._drop()

    def find(self, start: Start) -> None:
        """Forget the position; it is to be found as ``start`` says."""
        self.start = start
        self._drop()

    def put(self, decoded: Decoded) -> None:
        """Records have come, those at ``fetched_to``."""
        self.store.extend(decoded.records)
        self.fetched_to = decoded.next_offset
        if not self.store and self.position == self.settled:
            # Nothing but gaps and markers: there is nothing to hand out before it.
            self.position = self.settled = decoded.next_offset

    def take(self, most: int) -> list[Record]:
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


class Partitions:
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

    def own(self, partitions: Iterable[TopicPartition]) -> None:
        """Exactly ``partitions`` are owned from now on; those that stay go on undisturbed."""
        wanted = frozenset(partitions)
        for gone in self._states.keys() - wanted:
            self._states.pop(gone).version += 1  # whoever still holds its state sees that it is out of date
            self._unsettled.discard(gone)
        for new in sorted(wanted - self._states.keys()):
            self._states[new] = PartitionState(new)

    def hold(self, partitions: Iterable[TopicPartition]) -> None:
        """Hand out no more of ``partitions``."""
        for partition in partitions:
            if partition in self._states:
                self._states[partition].held = True

    def settle(self) -> None:
        """The user polls: it is done with what it was handed out before."""
        for partition in self._unsettled:
            state = self._states[partition]
            state.settled, state.settled_epoch = state.position, state.leader_epoch
        self._unsettled.clear()

    def take(self, most: int) -> dict[TopicPartition, list[Record]]:
        """Hand out up to ``most`` records; whose turn it was is the last to have it again."""
        taken: dict[TopicPartition, list[Record]] = {}
        for partition, state in tuple(self._states.items()):
            if most <= 0:
                break
            if state.store and state.deliverable:
                taken[partition] = state.take(most)
                most -= len(taken[partition])
                self._states[partition] = self._states.pop(partition)
                self._unsettled.add(partition)
        return taken

    def take_one(self) -> Record | None:
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
