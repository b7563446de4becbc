"""Explains why a generation of a classic group began: what started the rebalance, which members joined or did not, and what
completed the join phase. Also why members left (DepartureReasons)."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import assert_never

from groupcoord.coordinator.events import (
    ConsumerMemberJoined,
    Departure,
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
from groupcoord.core.events import AdminAction, Requested, TimerFired, counted
from groupcoord.testing.trace.events import (
    CONSUMER_GROUP_HEARTBEAT,
    RequestEvent,
    RequestReceived,
    ResponseSent,
    TraceEntry,
)
from groupcoord.testing.trace.generation_history import GenerationHistory, GenerationStart, heard_last_ms
from groupcoord.testing.trace.short_member_names import ShortMemberNames
from groupcoord.testing.trace.times_and_lists_in_words import duration, listed, moment, times

_COMING = (MemberJoined, MemberRejoined, StaticMemberReplaced)
NEW_SUBSCRIPTION, NEW_ASSIGNORS = "another subscription", "other assignors"
_TOLD = (*_COMING, MemberRemoved, InitialDelayExtended, RebalanceStuck)


def why(entries: Sequence[TraceEntry], group: str, generation: int | None) -> str:
    """Why ``generation`` of ``group``, by default the newest, began. Raises LookupError if the trace does not have that."""
    history = GenerationHistory(entries, group)
    known = history.generations
    if generation is None and known:
        generation = known[-1]
    origin = None if generation is None else history.generation_start(generation)
    if origin is None:
        raise LookupError(_unknown(history, generation))
    names = ShortMemberNames(entries)
    return names.shortened(explain_generation(history, names, origin))


def explain_generation(history: GenerationHistory, names: ShortMemberNames, origin: GenerationStart) -> str:
    """Why a generation began, in one line that starts with its number."""
    clauses = _GenerationExplanation(history, origin, names).clauses()
    return f"generation {origin.generation}: {'; '.join(clauses)}"


def _unknown(history: GenerationHistory, generation: int | None) -> str:
    what = "a generation" if generation is None else f"the beginning of generation {generation}"
    text = f"the trace does not have {what} of group {history.group!r}"
    if history.generations:
        text += f", but that of {listed([str(number) for number in history.generations])}"
    elif history.epochs:
        text += f", but that of the epochs {listed([str(number) for number in history.epochs])}"
    else:
        text += history.unknown_text()
    return text


class _GenerationExplanation:
    """Builds the clauses for one generation."""

    def __init__(self, history: GenerationHistory, origin: GenerationStart, names: ShortMemberNames) -> None:
        self._history = history
        self._origin = origin
        self._names = names
        self._departures = DepartureReasons(history, names)

    def clauses(self) -> Iterator[str]:
        origin = self._origin
        start = origin.start
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
            elif not origin.at_once:
                yield f"{self._others(start)} {duration(start.event.waits_ms)} to join again"
        yield from self._meanwhile(origin.meanwhile)
        yield from self._end()

    # What started it.

    def _trigger(self, start: TraceEntry, started: RebalanceStarted) -> str:
        trigger = self._origin.trigger
        departed = [entry for entry in trigger if isinstance(entry.event, MemberRemoved)]
        if departed:
            return self._departures.explain(departed)
        for entry in trigger:
            if isinstance(entry.event, _COMING):
                return self._came(entry)
        at = moment(start.since_start_ms)
        loaded = self._history.loaded_with(start)
        if loaded is not None:
            return f"the group was read back from __consumer_offsets-{loaded.partition} at {at}, and {started.reason}"
        if isinstance(started.cause, AdminAction):
            action = started.cause.action
            return f"an administrator forced it at {at}: " + (
                action if started.reason in action else f"{action} ({started.reason})"
            )
        return f"{started.reason}, at {at}"

    def _came(self, entry: TraceEntry) -> str:
        started_it = entry in self._origin.trigger and self._began_stable()
        return arrival(self._history, self._names, entry, started_it=started_it)

    def _began_stable(self) -> bool:
        """Was the group Stable when the rebalance began?"""
        moves = [entry.event for entry in self._origin.meanwhile if isinstance(entry.event, StateChanged)]
        return bool(moves) and moves[0].origin == "Stable"

    # Who was waited for.

    def _others(self, start: TraceEntry) -> str:
        there = {
            entry.event.old_member if isinstance(entry.event, StaticMemberReplaced) else entry.event.member
            for entry in self._origin.trigger
            if isinstance(entry.event, (*_COMING, MemberRemoved))
        }
        others = [self._names.of(member) for member in self._history.members_before(start) if member not in there]
        return f"{listed(others)} had" if others else "the others had"

    def _meanwhile(self, entries: Sequence[TraceEntry]) -> Iterator[str]:
        """Which members came and left while the group waited, in order."""
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
                    yield self._departures.explain(together)
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

    def _belongs_to_end(self, entry: TraceEntry) -> bool:
        """Is ``entry`` told together with the end of the waiting, because it has the same cause?"""
        end = self._origin.end
        return isinstance(entry.event, MemberRemoved) and entry.shares_cause(end)

    def _came_too(self, entries: Sequence[TraceEntry], what: str) -> str:
        each = [
            f"{self._names.of(entry.event.member)}{f' {what}' if not place else ''} at {moment(entry.since_start_ms)}"
            for place, entry in enumerate(entries)
            if isinstance(entry.event, MemberJoined | MemberRejoined)
        ]
        return listed(each)

    # What ended it.

    def _end(self) -> Iterator[str]:
        origin = self._origin
        gone = [
            entry
            for entry in origin.meanwhile
            if self._belongs_to_end(entry) and isinstance(entry.event, MemberRemoved)
        ]
        if gone:
            yield self._departures.explain(gone)
        cause = origin.end.event.cause
        at = moment(origin.end.since_start_ms)
        if isinstance(cause, TimerFired) and cause.kind == "join":
            ended = "then the waiting was over, so" if self._waited() else "so"
            absent = self._absent()
            if absent:
                ended = f"then the waiting was over, and static {listed(absent)}, not there but still in session, stayed, so"
        elif origin.at_once:
            ended = "nobody else had to join again, so"
        else:
            ended = "then nobody was missing any more, so"
        match origin.end.event:
            case GenerationStarted() as begun:
                members = [
                    f"{self._names.of(member)}{' (leader)' if member == begun.leader else ''}"
                    for member in begun.members
                ]
                votes = ", ".join(f"{name} {count}" for name, count in begun.votes.items())
                size = counted(len(members), "member")
                yield f"{ended} it began at {at} with {size}, {listed(members)}"
                yield f"the vote chose {begun.protocol} ({votes})"
                if origin.stuck is not None:
                    yield f"it got stuck, as it would in Kafka: {origin.stuck.why}"
            case RebalanceStuck() as stuck:
                yield f"{ended} it began at {at} and got stuck, as it would in Kafka: {stuck.why}"
            case _:
                yield f"nobody was left, so the group was Empty from {at} on"

    def _waited(self) -> bool:
        """Did the group wait for others at all?"""
        start = self._origin.start
        return start is None or not isinstance(start.event, RebalanceStarted) or start.event.waits_ms > 0

    def _absent(self) -> list[str]:
        """The members of the new generation that did not join: static members stay until their sessions time out."""
        begun = self._origin.end.event
        if self._origin.start is None or not isinstance(begun, GenerationStarted):
            return []
        came = {
            entry.event.new_member if isinstance(entry.event, StaticMemberReplaced) else entry.event.member
            for entry in (*self._origin.trigger, *self._origin.meanwhile)
            if isinstance(entry.event, _COMING)
        }
        return [self._names.of(member) for member in begun.members if member not in came]


def arrival(history: GenerationHistory, names: ShortMemberNames, entry: TraceEntry, *, started_it: bool = False) -> str:
    """How a member joined, rejoined or was replaced; ``started_it``: this started the rebalance of a stable group."""
    at = moment(entry.since_start_ms)
    match entry.event:
        case MemberJoined() as joined:
            kind = "static member" if joined.instance_id is not None else "member"
            return f"{kind} {names.of(joined.member)} came at {at}{_because(joined.reason)}"
        case MemberRejoined() as again:
            who = names.of(again.member)
            leads = history.leader_before(entry) == again.member
            what = f" with {news_of(history, entry, again.member)}" if again.changed else ""
            if leads and not again.changed:
                what = ", and whenever the leader does, all have to"
            return f"{'leader' if leads else 'member'} {who} joined again at {at}{_because(again.reason)}{what}"
        case StaticMemberReplaced() as replaced:
            effect = ", and the voted protocol changed with it" if replaced.rebalances and started_it else ""
            name = names.of(replaced.new_member)
            return f"static member {replaced.instance_id} came back as a new member ({name}) at {at}{effect}"
        case _:
            raise AssertionError(entry)


def _because(reason: str) -> str:
    return f" ({reason})" if reason else ""


def news_of(history: GenerationHistory, entry: TraceEntry, member: str) -> str:
    """What has changed in the metadata of ``member`` since its JoinGroup before, as far as it is in the trace."""
    now = history.made_by(entry)
    if now is not None and isinstance(now.event, RequestReceived):
        for earlier in history.of_member(member, now):
            if isinstance(earlier.event, RequestReceived) and earlier.event.api == "JoinGroup":
                return _difference(earlier.event, now.event)
    return "new metadata"


def _difference(before: RequestReceived, now: RequestReceived) -> str:
    for name, words in (("topics", NEW_SUBSCRIPTION), ("protocols", NEW_ASSIGNORS)):
        old, new = before.details.get(name), now.details.get(name)
        if isinstance(old, tuple) and isinstance(new, tuple) and old != new:
            was, is_now = (", ".join(map(str, each)) or "nothing" for each in (old, new))
            return f"{words}: {is_now} instead of {was}"
    return "other metadata, such as the partitions it owns"


class DepartureReasons:
    """Explains why members left the group of ``history``."""

    def __init__(self, history: GenerationHistory, names: ShortMemberNames) -> None:
        self._history = history
        self._names = names

    def explain(self, entries: Sequence[TraceEntry]) -> str:
        """Why each member was removed; ``entries`` are those of MemberRemoved."""
        removed = [(entry, entry.event) for entry in entries if isinstance(entry.event, MemberRemoved)]
        if len(removed) > 1 and all(event.how is Departure.NOT_SYNCED for _, event in removed):
            return self._not_synced([event for _, event in removed], removed[0][0])
        return ", ".join(self._one(entry, event) for entry, event in removed)

    def _not_synced(self, events: Sequence[MemberRemoved], entry: TraceEntry) -> str:
        who = listed([self._names.of(event.member) for event in events])
        within, at = duration(events[0].timeout_ms or 0), moment(entry.since_start_ms)
        members = f"member {who}" if len(events) == 1 else f"members {who}"
        began = self._history.generation_before(entry)
        since = (
            "" if began is None else f" of the beginning of generation {began[0]} at {moment(began[1].since_start_ms)}"
        )
        return f"{members} did not send SyncGroup within {within}{since}, by {at}"

    def _one(self, entry: TraceEntry, event: MemberRemoved) -> str:
        at = moment(entry.since_start_ms)
        who = f"member {self._names.of(event.member)}"
        within = duration(event.timeout_ms or 0)
        if isinstance(event.cause, AdminAction):
            return (
                f"an administrator ended the membership of {self._names.of(event.member)} at {at}: {event.cause.action}"
            )
        match event.how:
            case Departure.SESSION_OVER:
                early = isinstance(event.cause, TimerFired) and event.cause.due_ms > event.at_ms
                ended = "was ended early," if early else "ran out"
                return f"{who}'s session of {within} {ended} at {at}{self._last_heard(entry, event)}"
            case Departure.FIRST_JOIN_OVER:
                return f"{who} waited for its first generation until {at}, which is {within}, the most a new member may"
            case Departure.NEVER_CAME_BACK:
                given = self._history.id_assigned_before(event.member, entry)
                since = "" if given is None else f" at {moment(given.since_start_ms)}"
                name = self._names.of(event.member)
                return f"{name}, given that id{since}, did not come back with it within {within}, by {at}"
            case Departure.NOT_JOINED:
                return f"{who} did not join again within {within}, by {at}{self._told_to_join(entry, event)}"
            case Departure.NOT_REVOKED:
                return f"{who} did not give back what it had to within {within}, by {at}"
            case Departure.NOT_SYNCED:
                return self._not_synced([event], entry)
            case Departure.NO_ROOM:
                return f"{who} came back at {at} when there was no room any more"
            case Departure.LEFT:
                return self._left(entry, event, at)
            case _:
                assert_never(event.how)

    def _told_to_join(self, removed: TraceEntry, event: MemberRemoved) -> str:
        """How often a member that did not rejoin got REBALANCE_IN_PROGRESS."""
        since_ms = removed.at_ms - (event.timeout_ms or 0)
        told = [
            entry.event
            for entry in self._history.of_member(event.member, removed)
            if isinstance(entry.event, ResponseSent)
            and entry.event.error == "REBALANCE_IN_PROGRESS"
            and entry.at_ms >= since_ms
        ]
        return f", though it was told to {times(len(told))}" if told else ", and did not ask how the group is"

    def _left(self, entry: TraceEntry, event: MemberRemoved, at: str) -> str:
        """The member left by itself, or an administrator removed it, whose request has another client id."""
        joined = self._history.joined_before(event.member, entry)
        name = self._names.of(event.member)
        why = event.reason.removeprefix("it left").strip()
        because = f" {why}" if why else ""
        match event.cause, joined:
            case Requested(client_id=asked_by), (MemberJoined(client_id=own) | ConsumerMemberJoined(client_id=own)) if (
                asked_by or ""
            ) != own:
                return f"member {name} was removed at {at} by {asked_by or 'a client without id'}{because}"
            case _:
                return f"member {name} left at {at}{because}"

    def _last_heard(self, removed: TraceEntry, event: MemberRemoved) -> str:
        """The last request that restarted its session, and how many requests since then did not."""
        heard_ms = heard_last_ms(removed)
        if heard_ms is None:
            return ""
        start_ms = removed.at_ms - removed.since_start_ms
        spoke = self._history.of_member(event.member, removed)
        at_that_moment = [
            entry.event for entry in spoke if entry.at_ms == heard_ms and isinstance(entry.event, RequestEvent)
        ]
        apis = [each.api for each in at_that_moment if isinstance(each, RequestReceived)] or [
            each.api for each in at_that_moment
        ]
        at = moment(heard_ms - start_ms)
        if self._history.was_loaded_at(heard_ms):
            return f", counted from {at}, when the group was read back"
        is_heartbeat = not {"Heartbeat", CONSUMER_GROUP_HEARTBEAT}.isdisjoint(apis)
        heard = f", last heartbeat at {at}" if is_heartbeat else f", last heard of at {at}"
        if apis and not is_heartbeat:
            heard += f" by {apis[0]}"
        later = [entry for entry in spoke if entry.at_ms > heard_ms and isinstance(entry.event, RequestReceived)]
        return heard + self._in_vain(later)

    def _in_vain(self, requests: Sequence[TraceEntry]) -> str:
        if not requests:
            return ""
        outcomes = dict.fromkeys(
            "no answer" if (answer := self._history.answer_to(request)) is None else answer.error
            for request in reversed(requests)
        )
        return f" ({counted(len(requests), 'later request')} did not count: {listed(list(outcomes))})"
