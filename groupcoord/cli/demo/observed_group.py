"""ObservedGroup, the state of the demo's group from observed facts: coordinator events, records read, records produced.

Members are named by their client ids, because member ids are long and random.
"""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from groupcoord.cli.demo.clients.consumer_common import ReadRecord
from groupcoord.coordinator import events
from groupcoord.core.events import Event, Requested


class MemberNames:
    """Readable names for member ids: the client ids."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def learn(self, member: str, name: str) -> None:
        """Use ``name`` for the member id ``member`` from now on, unless either is empty."""
        if member and name:
            self._names[member] = name

    def of(self, member: str) -> str:
        """The name of ``member``, or its id if it has none."""
        return self._names.get(member, member)

    def asking(self, event: Event) -> str:
        """The client whose request caused ``event``."""
        cause = event.cause
        return cause.client_id or "a client" if isinstance(cause, Requested) else "coordinator"

    def friendly(self, text: str) -> str:
        """``text`` with names in place of member ids."""
        for member, name in self._names.items():
            text = text.replace(member, name)
        return text


class RecordPosition(NamedTuple):
    """The partition and offset of a record."""

    partition: int
    offset: int


class ObservedRead(NamedTuple):
    """A record that a consumer has read."""

    reader: str
    record: ReadRecord

    @property
    def place(self) -> RecordPosition:
        """The position of that record."""
        return RecordPosition(self.record.partition, self.record.offset)


class ObservedGroup:
    """The observed state of ``group`` and its topic."""

    def __init__(self, group: str, topic: str) -> None:
        self.group = group
        self.topic = topic
        self.state = "Empty"
        self.generation = 0
        self.members: dict[str, str] = {}
        """Member id → name."""
        self.owners: dict[int, str] = {}
        self.committed: dict[int, int] = {}
        """Partition → the last committed offset."""
        self.commits_in_generation: Counter[str] = Counter()
        """Name → number of commits since the group became Stable."""
        self.produced: dict[RecordPosition, str] = {}
        """The key of every record that the broker acknowledged."""
        self.sightings: list[ObservedRead] = []
        self._names = MemberNames()
        self._assigned: dict[int, str] = {}

    def happened(self, event: Event) -> None:
        """Update the state by an event of the coordinator."""
        if not isinstance(event, events.GroupEvent) or event.group != self.group:
            return
        if isinstance(event, events.MemberIdAssigned):
            self._names.learn(event.member, self._names.asking(event))
        elif isinstance(event, events.MemberJoined):
            self._names.learn(event.member, event.client_id)
            self.members[event.member] = self._names.of(event.member)
        elif isinstance(event, events.MemberRemoved):
            self.members.pop(event.member, None)
        elif isinstance(event, events.AssignmentReceived):
            owners = event.owners or {}
            self._assigned = {n: self._names.of(m) for m, pairs in owners.items() for t, n in pairs if t == self.topic}
        elif isinstance(event, events.StateChanged):
            self.state, self.generation = event.target, event.generation
            self.owners = self._assigned if event.target == "Stable" else {}
            self.commits_in_generation.clear()
        elif isinstance(event, events.OffsetsCommitted):
            self.committed.update({n: offset for topic, n, offset in event.offsets if topic == self.topic})
            self.commits_in_generation[self._names.of(event.member)] += 1

    def read(self, reader: str, records: Iterable[ReadRecord]) -> None:
        """Record that ``reader`` has read ``records``."""
        self.sightings += [ObservedRead(reader, record) for record in records]

    def produced_at(self, place: RecordPosition, key: str) -> None:
        """Record that the broker has acknowledged a record with ``key``."""
        self.produced[place] = key

    def is_stable_with(self, *names: str) -> bool:
        """Is the group Stable, with exactly these members?"""
        return self.state == "Stable" and sorted(self.members.values()) == sorted(names)

    def uncommitted(self, reader: str) -> set[RecordPosition]:
        """The positions of records that ``reader`` has read and not committed, in partitions that it owns."""
        return {
            seen.place
            for seen in self.sightings
            if seen.reader == reader
            and self.owners.get(seen.record.partition) == reader
            and seen.record.offset >= self.committed.get(seen.record.partition, 0)
        }

    def reads(self, since: int) -> Counter[str]:
        """Name → number of records read, from the ``since``-th read on."""
        return Counter(seen.reader for seen in self.sightings[since:])

    def ends(self, partitions: int) -> dict[int, int]:
        """Partition → the offset after the last acknowledged record."""
        ends = dict.fromkeys(range(partitions), 0)
        for partition, offset in self.produced:
            ends[partition] = max(ends[partition], offset + 1)
        return ends
