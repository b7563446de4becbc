"""Why a generation began, in words: what started the rebalance, who came and who did not, and what ended the waiting."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from groupcoord.coordinator.events import (
    GenerationStarted,
    InitialDelayExtended,
    MemberJoined,
    MemberRejoined,
    MemberRemoved,
    RebalanceStarted,
    RebalanceStuck,
    StateChanged,
    StaticMemberReplaced,
)
from groupcoord.core.events import AdminAction, TimerFired
from groupcoord.testing.trace.chronicle import Birth, Chronicle
from groupcoord.testing.trace.departures import Departures
from groupcoord.testing.trace.entry import Entry
from groupcoord.testing.trace.events import RequestReceived
from groupcoord.testing.trace.names import Names
from groupcoord.testing.trace.words import counted, duration, listed, moment

_COMING = (MemberJoined, MemberRejoined, StaticMemberReplaced)
_TOLD = (*_COMING, MemberRemoved, InitialDelayExtended, RebalanceStuck)


def why(entries: Sequence[Entry], group: str, generation: int | None, *, let_go: int) -> str:
    """Why ``generation`` of ``group``, by default the newest, began. Raises LookupError if its beginning is not known."""
    chronicle = Chronicle(entries, group)
    known = chronicle.generations
    if generation is None and known:
        generation = known[-1]
    birth = None if generation is None else chronicle.birth(generation)
    if birth is None:
        raise LookupError(_unknown(chronicle, generation, let_go))
    names = Names(entries)
    clauses = _Words(chronicle, birth, names).clauses()
    return names.shortened(f"generation {generation}: {'; '.join(clauses)}")


def _unknown(chronicle: Chronicle, generation: int | None, let_go: int) -> str:
    what = "a generation" if generation is None else f"the beginning of generation {generation}"
    text = f"the trace does not have {what} of group {chronicle.group!r}"
    if chronicle.generations:
        text += f", but that of {listed([str(number) for number in chronicle.generations])}"
    elif not chronicle.is_known:
        text += ", of which it knows nothing"
    if let_go:
        text += f"; {let_go} older entries were let go"
    return text


class _Words:
    """The clauses for one birth."""

    def __init__(self, chronicle: Chronicle, birth: Birth, names: Names) -> None:
        self._chronicle = chronicle
        self._birth = birth
        self._names = names
        self._departures = Departures(chronicle, names)

    def clauses(self) -> Iterator[str]:
        birth = self._birth
        start = birth.start
        if start is None or not isinstance(start.event, RebalanceStarted):
            yield "what started its rebalance is not in the trace"
        else:
            yield self._trigger(start, start.event)
            if start.event.initial:
                wait = (
                    f"waited {duration(start.event.waits_ms)} for others"
                    if start.event.waits_ms
                    else "waits for nobody"
                )
                yield f"the group had no members, and it {wait}"
            elif not birth.at_once:
                yield f"{self._others(start)} {duration(start.event.waits_ms)} to join again"
        yield from self._meanwhile(birth.meanwhile)
        yield from self._end()

    # What started it.

    def _trigger(self, start: Entry, started: RebalanceStarted) -> str:
        trigger = self._birth.trigger
        departed = [entry for entry in trigger if isinstance(entry.event, MemberRemoved)]
        if departed:
            return self._departures.told(departed)
        for entry in trigger:
            if isinstance(entry.event, _COMING):
                return self._came(entry)
        at = moment(start.since_start_ms)
        loaded = self._chronicle.loaded_with(start)
        if loaded is not None:
            return f"the group was read back from __consumer_offsets-{loaded.partition} at {at}, and {started.reason}"
        if isinstance(started.cause, AdminAction):
            action = started.cause.action
            return f"an administrator forced it at {at}: " + (
                action if started.reason in action else f"{action} ({started.reason})"
            )
        return f"{started.reason}, at {at}"

    def _came(self, entry: Entry) -> str:
        at = moment(entry.since_start_ms)
        match entry.event:
            case MemberJoined() as joined:
                kind = "static member" if joined.instance_id is not None else "member"
                return f"{kind} {self._names.of(joined.member)} came at {at}{_because(joined.reason)}"
            case MemberRejoined() as again:
                who = self._names.of(again.member)
                leads = self._chronicle.leader_before(entry) == again.member
                what = f" with {self._news(entry, again.member)}" if again.changed else ""
                if leads and not again.changed:
                    what = ", and whenever the leader does, all have to"
                return f"{'leader' if leads else 'member'} {who} joined again at {at}{_because(again.reason)}{what}"
            case StaticMemberReplaced() as replaced:
                started_it = replaced.rebalances and entry in self._birth.trigger and self._began_stable()
                effect = ", and the voted protocol changed with it" if started_it else ""
                name = self._names.of(replaced.new_member)
                return f"static member {replaced.instance_id} came back as a new member ({name}) at {at}{effect}"
            case _:
                raise AssertionError(entry)

    def _began_stable(self) -> bool:
        """Was the group Stable when the rebalance began?"""
        moves = [entry.event for entry in self._birth.meanwhile if isinstance(entry.event, StateChanged)]
        return bool(moves) and moves[0].origin == "Stable"

    def _news(self, entry: Entry, member: str) -> str:
        """What is new about what ``member`` offers, as far as its requests are in the trace."""
        now = self._chronicle.made_by(entry)
        if now is not None and isinstance(now.event, RequestReceived):
            for earlier in self._chronicle.of_member(member, now):
                if isinstance(earlier.event, RequestReceived) and earlier.event.api == "JoinGroup":
                    return _difference(earlier.event, now.event)
        return "new metadata"

    # Who was waited for.

    def _others(self, start: Entry) -> str:
        there = set()
        for entry in self._birth.trigger:
            match entry.event:
                case MemberJoined(member=member) | MemberRejoined(member=member) | MemberRemoved(member=member):
                    there.add(member)
                case StaticMemberReplaced(old_member=member):
                    there.add(member)
                case _:
                    pass
        others = [self._names.of(member) for member in self._chronicle.members_before(start) if member not in there]
        return f"{listed(others)} had" if others else "the others had"

    def _meanwhile(self, entries: Sequence[Entry]) -> Iterator[str]:
        """Who came and went while the group waited, in order; those who came are told together."""
        told = [entry for entry in entries if isinstance(entry.event, _TOLD) and not self._belongs_to_end(entry)]
        for _, of_kind in groupby(told, key=lambda entry: type(entry.event)):
            together = list(of_kind)
            match together[0].event:
                case MemberRejoined():
                    yield self._came_too(together, "joined again")
                case MemberJoined():
                    yield self._came_too(together, "came")
                case StaticMemberReplaced():
                    yield from (self._came(entry) for entry in together)
                case MemberRemoved():
                    yield self._departures.told(together)
                case InitialDelayExtended():
                    yield from (
                        f"because of that it waited {duration(entry.event.by_ms)} more"
                        for entry in together
                        if isinstance(entry.event, InitialDelayExtended) and entry.event.by_ms
                    )
                case _:
                    yield from (
                        f"generation {entry.event.generation} got stuck at {moment(entry.since_start_ms)}: {entry.event.why}"
                        for entry in together
                        if isinstance(entry.event, RebalanceStuck)
                    )

    def _belongs_to_end(self, entry: Entry) -> bool:
        """Is it told with what ended the waiting?"""
        end = self._birth.end
        return isinstance(entry.event, MemberRemoved) and entry.event.cause == end.event.cause

    def _came_too(self, entries: Sequence[Entry], what: str) -> str:
        each = [
            f"{self._names.of(entry.event.member)}{f' {what}' if not place else ''} at {moment(entry.since_start_ms)}"
            for place, entry in enumerate(entries)
            if isinstance(entry.event, MemberJoined | MemberRejoined)
        ]
        return listed(each)

    # What ended it.

    def _end(self) -> Iterator[str]:
        birth = self._birth
        gone = [
            entry for entry in birth.meanwhile if self._belongs_to_end(entry) and isinstance(entry.event, MemberRemoved)
        ]
        if gone:
            yield self._departures.told(gone)
        cause = birth.end.event.cause
        at = moment(birth.end.since_start_ms)
        if isinstance(cause, TimerFired) and cause.kind == "join":
            ended = "then the waiting was over, so" if self._waited() else "so"
            absent = self._absent()
            if absent:
                ended = f"then the waiting was over, and static {listed(absent)}, not there but still in session, stayed, so"
        elif birth.at_once:
            ended = "nobody else had to join again, so"
        else:
            ended = "then nobody was missing any more, so"
        match birth.end.event:
            case GenerationStarted() as begun:
                members = [
                    f"{self._names.of(member)}{' (leader)' if member == begun.leader else ''}"
                    for member in begun.members
                ]
                votes = ", ".join(f"{name} {count}" for name, count in begun.votes.items())
                size = counted(len(members), "member")
                yield f"{ended} it began at {at} with {size}, {listed(members)}"
                yield f"the vote chose {begun.protocol} ({votes})"
                if birth.stuck is not None:
                    yield f"it got stuck, as it would in Kafka: {birth.stuck.why}"
            case RebalanceStuck() as stuck:
                yield f"{ended} it began at {at} and got stuck, as it would in Kafka: {stuck.why}"
            case _:
                yield f"nobody was left, so the group was Empty from {at} on"

    def _waited(self) -> bool:
        """Was there a time to wait for others at all?"""
        start = self._birth.start
        return start is None or not isinstance(start.event, RebalanceStarted) or start.event.waits_ms > 0

    def _absent(self) -> list[str]:
        """The members of the new generation that did not come: static ones are waited for until their sessions end."""
        begun = self._birth.end.event
        if self._birth.start is None or not isinstance(begun, GenerationStarted):
            return []
        came = set()
        for entry in (*self._birth.trigger, *self._birth.meanwhile):
            match entry.event:
                case MemberJoined(member=member) | MemberRejoined(member=member):
                    came.add(member)
                case StaticMemberReplaced(new_member=member):
                    came.add(member)
                case _:
                    pass
        return [self._names.of(member) for member in begun.members if member not in came]


def _because(reason: str) -> str:
    return f" ({reason})" if reason else ""


def _difference(before: RequestReceived, now: RequestReceived) -> str:
    for name, words in (("topics", "another subscription"), ("protocols", "other assignors")):
        old, new = before.details.get(name), now.details.get(name)
        if isinstance(old, tuple) and isinstance(new, tuple) and old != new:
            was, is_now = (", ".join(map(str, each)) or "nothing" for each in (old, new))
            return f"{words}: {is_now} instead of {was}"
    return "other metadata, such as the partitions it owns"
