"""GenerationHistory: the events of one group in a trace, and which of them led to each of its generations and epochs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from groupcoord.coordinator.events import (
    ConsumerMemberJoined,
    Departure,
    GenerationStarted,
    GroupEpochBumped,
    GroupEvent,
    GroupRemoved,
    LeaderElected,
    MemberIdAssigned,
    MemberJoined,
    MemberRemoved,
    RebalanceStarted,
    RebalanceStuck,
    ShardLoaded,
    StateChanged,
    StaticMemberReplaced,
)
from groupcoord.core.events import TimerFired
from groupcoord.testing.trace.events import RequestReceived, ResponseSent, TraceEntry
from groupcoord.testing.trace.times_and_lists_in_words import listed

_NEWS = (MemberJoined, MemberRemoved, StaticMemberReplaced)
"""Events that belong to a generation even if its rebalance had started before."""


class Beginning(NamedTuple):
    """``entry`` is the beginning of generation ``number``, or of that epoch of a consumer group (KIP-848)."""

    number: int
    entry: TraceEntry
    is_epoch: bool

    def text(self) -> str:
        """``generation 3``."""
        return f"{'epoch' if self.is_epoch else 'generation'} {self.number}"


@dataclass(frozen=True, slots=True)
class GenerationStart:
    """The rebalance that led to a generation.

    ``start`` is the entry of its RebalanceStarted, None if the trace does not have it; ``trigger`` are the entries of the same
    cause just before it; ``end`` is the entry with which the generation began, was empty, or got stuck; ``meanwhile`` are the
    entries between ``start`` and ``end``.
    """

    start: TraceEntry | None
    trigger: tuple[TraceEntry, ...]
    meanwhile: tuple[TraceEntry, ...]
    end: TraceEntry
    stuck: RebalanceStuck | None

    @property
    def generation(self) -> int:
        """The number of the generation."""
        return _generation(self.end) or 0

    @property
    def at_once(self) -> bool:
        """Did the cause that started the rebalance also end it?"""
        return self.start is not None and self.start.shares_cause(self.end)


class GenerationHistory:
    """The history of ``group`` in ``entries``."""

    def __init__(self, entries: Sequence[TraceEntry], group: str) -> None:
        self.group = group
        self._all = entries
        self.entries = [
            entry for entry in entries if isinstance(entry.event, GroupEvent) and entry.event.group == group
        ]
        """The entries of the group's events."""
        self._by_seq = {entry.seq: entry for entry in entries}
        self._places = {entry.seq: place for place, entry in enumerate(self.entries)}

    def unknown_text(self) -> str:
        """The text that the trace has no events of the group, and of which groups it has some; ``""`` if it has."""
        if self.entries:
            return ""
        others = groups_of(self._all)
        known = f" but of {listed([repr(name) for name in others])}" if others else ""
        return f", of which it knows nothing{known}"

    @property
    def generations(self) -> tuple[int, ...]:
        """The generations whose beginning is in the trace, in order."""
        return tuple(dict.fromkeys(begun.number for begun in self.beginnings() if not begun.is_epoch))

    @property
    def epochs(self) -> tuple[int, ...]:
        """The epochs whose beginning is in the trace, in order."""
        return tuple(dict.fromkeys(begun.number for begun in self.beginnings() if begun.is_epoch))

    def beginnings(self) -> Iterator[Beginning]:
        """The generations and epochs whose beginning is in the trace, in order."""
        last: Beginning | None = None
        for entry in self.entries:
            if isinstance(entry.event, GroupEpochBumped):
                last = Beginning(entry.event.epoch, entry, is_epoch=True)
                yield last
            elif (generation := _generation(entry)) is not None:
                got_stuck = last is not None and last.number == generation and last.entry.shares_cause(entry)
                if not got_stuck:
                    last = Beginning(generation, entry, is_epoch=False)
                    yield last

    def led_to(self, made_by: TraceEntry) -> tuple[Beginning, ...]:
        """The generations and epochs that began because of ``made_by``: a request, timer or action, or a consequence of one.

        Members that came and went while the group waited for its members count as causes of a generation, too.
        """
        root = made_by.seq if made_by.cause is None else made_by.cause
        return tuple(
            begun
            for begun in self.beginnings()
            if begun.entry is made_by or any(root in (each.seq, each.cause) for each in self._reasons(begun))
        )

    def _reasons(self, begun: Beginning) -> Iterator[TraceEntry]:
        if begun.is_epoch:
            yield begun.entry
            return
        end = self._places[begun.entry.seq]
        start = self._start_before(end)
        if start is not None:
            yield self.entries[start]
            yield from (entry for entry in self.entries[start + 1 : end] if isinstance(entry.event, _NEWS))

    def generation_start(self, generation: int, *, until: TraceEntry | None = None) -> GenerationStart | None:
        """What led to ``generation``, the last one with that number up to ``until``; None if the trace does not have it."""
        places = [
            place
            for place, entry in enumerate(self.entries)
            if _generation(entry) == generation
            and (until is None or entry.seq <= until.seq or entry.shares_cause(until))
        ]
        if not places:
            return None
        # A generation may get stuck after it has begun; then there are two such entries, of one cause.
        end, last = places[-1], self.entries[places[-1]]
        stuck = last.event if isinstance(last.event, RebalanceStuck) else None
        if stuck is not None and len(places) > 1 and self.entries[places[-2]].shares_cause(last):
            end = places[-2]
        start = self._start_before(end)
        if start is None:
            return GenerationStart(None, (), (), self.entries[end], stuck)
        first = start
        while first and self.entries[first - 1].shares_cause(self.entries[start]):
            first -= 1
        return GenerationStart(
            self.entries[start],
            tuple(self.entries[first:start]),
            tuple(self.entries[start + 1 : end]),
            self.entries[end],
            stuck,
        )

    def _start_before(self, end: int) -> int | None:
        for place in range(end - 1, -1, -1):
            event = self.entries[place].event
            if isinstance(event, RebalanceStarted):
                return place
            if isinstance(event, GroupRemoved):
                return None
        return None

    def generation_before(self, entry: TraceEntry) -> tuple[int, TraceEntry] | None:
        """The last generation that began before ``entry``, and the entry of its beginning."""
        for earlier in reversed(self.entries):
            if earlier.seq < entry.seq and isinstance(earlier.event, GenerationStarted):
                return earlier.event.generation, earlier
        return None

    def members_before(self, entry: TraceEntry) -> tuple[str, ...]:
        """The members of the generation before ``entry``."""
        before = self.generation_before(entry)
        begun = None if before is None else before[1].event
        return begun.members if isinstance(begun, GenerationStarted) else ()

    def leader_before(self, entry: TraceEntry) -> str:
        """The leader before ``entry``; ``""`` if it is not in the trace."""
        for earlier in reversed(self.entries):
            if earlier.seq < entry.seq and isinstance(earlier.event, GenerationStarted | LeaderElected):
                return earlier.event.leader
        return ""

    def id_assigned_before(self, member: str, before: TraceEntry) -> TraceEntry | None:
        """The last MemberIdAssigned of ``member`` before the entry ``before``."""
        for entry in reversed(self.entries):
            if entry.seq < before.seq and isinstance(entry.event, MemberIdAssigned) and entry.event.member == member:
                return entry
        return None

    def joined_before(self, member: str, before: TraceEntry) -> MemberJoined | ConsumerMemberJoined | None:
        """The last join event of ``member`` before the entry ``before``."""
        for entry in reversed(self.entries):
            event = entry.event
            if (
                entry.seq < before.seq
                and isinstance(event, MemberJoined | ConsumerMemberJoined)
                and event.member == member
            ):
                return event
        return None

    def made_by(self, entry: TraceEntry) -> TraceEntry | None:
        """The entry that caused ``entry``, if the trace has it."""
        return None if entry.cause is None else self._by_seq.get(entry.cause)

    def of_member(self, member: str, before: TraceEntry) -> list[TraceEntry]:
        """The requests and responses of ``member`` before the entry ``before``, the last one first."""
        return [
            entry
            for entry in reversed(self._all)
            if entry.seq < before.seq
            and isinstance(entry.event, RequestReceived | ResponseSent)
            and (entry.event.group, entry.event.member) == (self.group, member)
        ]

    def answer_to(self, request: TraceEntry) -> ResponseSent | None:
        """The response to ``request``, if there is one."""
        for entry in self._all:
            if entry.answers == request.seq and isinstance(entry.event, ResponseSent):
                return entry.event
        return None

    def loaded_with(self, entry: TraceEntry) -> ShardLoaded | None:
        """The ShardLoaded event that has the same cause as ``entry``, if there is one."""
        for other in self._all:
            if isinstance(other.event, ShardLoaded) and other.shares_cause(entry):
                return other.event
        return None

    def was_loaded_at(self, at_ms: int) -> bool:
        """Was a shard loaded at that time on the clock?"""
        return any(isinstance(entry.event, ShardLoaded) and entry.at_ms == at_ms for entry in self._all)


def groups_of(entries: Sequence[TraceEntry]) -> tuple[str, ...]:
    """The groups of which ``entries`` have coordinator events, in the order of their first events."""
    return tuple(dict.fromkeys(entry.event.group for entry in entries if isinstance(entry.event, GroupEvent)))


def heard_last_ms(removed: TraceEntry) -> int | None:
    """When the session of a removed member was last restarted (ms on the clock); None if it did not time out."""
    match removed.event:
        case MemberRemoved(how=Departure.SESSION_OVER, cause=TimerFired(due_ms=due_ms), timeout_ms=int(timeout_ms)):
            return due_ms - timeout_ms
        case _:
            return None


def _generation(entry: TraceEntry) -> int | None:
    """The generation whose beginning ``entry`` is; None if it is not one."""
    match entry.event:
        case GenerationStarted(generation=generation) | RebalanceStuck(generation=generation):
            return generation
        case StateChanged(origin="PreparingRebalance", target="Empty", generation=generation):
            return generation
        case _:
            return None
