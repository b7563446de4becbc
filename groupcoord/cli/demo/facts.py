"""What is known while the story runs: what the coordinator said, what consumers read, what was produced."""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from groupcoord.cli.demo.clients.application import Read
from groupcoord.cli.demo.names import Names
from groupcoord.coordinator.events import (
    AssignmentReceived,
    GroupEvent,
    MemberIdAssigned,
    MemberJoined,
    MemberRemoved,
    OffsetsCommitted,
    StateChanged,
)
from groupcoord.core.events import Event


class Place(NamedTuple):
    """Where a record is."""

    partition: int
    offset: int


class Sighting(NamedTuple):
    """Somebody read a record."""

    reader: str
    record: Read

    @property
    def place(self) -> Place:
        """Where that record is."""
        return Place(self.record.partition, self.record.offset)


class Facts:
    """The facts about ``group`` and its topic. Members go by their names."""

    def __init__(self, group: str, topic: str) -> None:
        self.group = group
        self.topic = topic
        self.state = "Empty"
        self.generation = 0
        self.members: dict[str, str] = {}
        """Member id → name."""
        self.owners: dict[int, str] = {}
        self.committed: dict[int, int] = {}
        """Partition → what the last commit said."""
        self.commits_in_generation: Counter[str] = Counter()
        """How often each has committed since the group became Stable."""
        self.produced: dict[Place, str] = {}
        """The key of every record that the broker acknowledged."""
        self.sightings: list[Sighting] = []
        self._names = Names()
        self._assigned: dict[int, str] = {}

    def happened(self, event: Event) -> None:
        """The coordinator says ``event``."""
        if not isinstance(event, GroupEvent) or event.group != self.group:
            return
        if isinstance(event, MemberIdAssigned):
            self._names.learn(event.member, self._names.asking(event))
        elif isinstance(event, MemberJoined):
            self._names.learn(event.member, event.client_id)
            self.members[event.member] = self._names.of(event.member)
        elif isinstance(event, MemberRemoved):
            self.members.pop(event.member, None)
        elif isinstance(event, AssignmentReceived):
            owners = event.owners or {}
            self._assigned = {n: self._names.of(m) for m, pairs in owners.items() for t, n in pairs if t == self.topic}
        elif isinstance(event, StateChanged):
            self.state, self.generation = event.target, event.generation
            self.owners = self._assigned if event.target == "Stable" else {}
            self.commits_in_generation.clear()
        elif isinstance(event, OffsetsCommitted):
            self.committed.update({n: offset for topic, n, offset in event.offsets if topic == self.topic})
            self.commits_in_generation[self._names.of(event.member)] += 1

    def read(self, reader: str, records: Iterable[Read]) -> None:
        """``reader`` says that it read ``records``."""
        self.sightings += [Sighting(reader, record) for record in records]

    def produced_at(self, place: Place, key: str) -> None:
        """A record with ``key`` was acknowledged."""
        self.produced[place] = key

    def is_stable_with(self, *names: str) -> bool:
        """Is the group Stable, with exactly these members?"""
        return self.state == "Stable" and sorted(self.members.values()) == sorted(names)

    def uncommitted(self, reader: str) -> set[Place]:
        """What ``reader`` owns and read, and nobody has committed."""
        return {
            seen.place
            for seen in self.sightings
            if seen.reader == reader
            and self.owners.get(seen.record.partition) == reader
            and seen.record.offset >= self.committed.get(seen.record.partition, 0)
        }

    def reads(self, since: int) -> Counter[str]:
        """How many records each has read, from the ``since``-th sighting on."""
        return Counter(seen.reader for seen in self.sightings[since:])

    def ends(self, partitions: int) -> dict[int, int]:
        """Partition → the offset behind the last record that was acknowledged."""
        ends = dict.fromkeys(range(partitions), 0)
        for partition, offset in self.produced:
            ends[partition] = max(ends[partition], offset + 1)
        return ends
