"""How members got out of a group, in words."""

from collections.abc import Sequence
from typing import assert_never

from groupcoord.coordinator.events import Departure, MemberIdAssigned, MemberJoined, MemberRemoved
from groupcoord.core.events import AdminAction, Requested, TimerFired
from groupcoord.testing.trace.chronicle import Chronicle, heard_last_ms
from groupcoord.testing.trace.entry import Entry
from groupcoord.testing.trace.events import Exchange, RequestReceived, ResponseSent
from groupcoord.testing.trace.names import Names
from groupcoord.testing.trace.words import counted, duration, listed, moment, times


class Departures:
    """Tells of departures in the group of ``chronicle``."""

    def __init__(self, chronicle: Chronicle, names: Names) -> None:
        self._chronicle = chronicle
        self._names = names

    def told(self, entries: Sequence[Entry]) -> str:
        """Why each of those in ``entries``, which are of MemberRemoved, is out."""
        removed = [(entry, entry.event) for entry in entries if isinstance(entry.event, MemberRemoved)]
        if len(removed) > 1 and all(event.how is Departure.NOT_SYNCED for _, event in removed):
            return self._not_synced([event for _, event in removed], removed[0][0])
        return ", ".join(self._one(entry, event) for entry, event in removed)

    def _not_synced(self, events: Sequence[MemberRemoved], entry: Entry) -> str:
        who = listed([self._names.of(event.member) for event in events])
        within, at = duration(events[0].timeout_ms or 0), moment(entry.since_start_ms)
        members = f"member {who}" if len(events) == 1 else f"members {who}"
        began = self._chronicle.generation_before(entry)
        since = (
            "" if began is None else f" of the beginning of generation {began[0]} at {moment(began[1].since_start_ms)}"
        )
        return f"{members} did not send SyncGroup within {within}{since}, by {at}"

    def _one(self, entry: Entry, event: MemberRemoved) -> str:
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
                given = self._before(entry, MemberIdAssigned, event.member)
                since = "" if given is None else f" at {moment(given.since_start_ms)}"
                name = self._names.of(event.member)
                return f"{name}, given that id{since}, did not come back with it within {within}, by {at}"
            case Departure.NOT_JOINED:
                return f"{who} did not join again within {within}, by {at}{self._told_to_join(entry, event)}"
            case Departure.NOT_SYNCED:
                return self._not_synced([event], entry)
            case Departure.NO_ROOM:
                return f"{who} came back at {at} when there was no room any more"
            case Departure.LEFT:
                return self._left(entry, event, at)
            case _:
                assert_never(event.how)

    def _told_to_join(self, removed: Entry, event: MemberRemoved) -> str:
        """How often a member that did not join again was told that the group rebalances."""
        since_ms = removed.at_ms - (event.timeout_ms or 0)
        told = [
            entry.event
            for entry in self._chronicle.of_member(event.member, removed)
            if isinstance(entry.event, ResponseSent)
            and entry.event.error == "REBALANCE_IN_PROGRESS"
            and entry.at_ms >= since_ms
        ]
        return f", though it was told to {times(len(told))}" if told else ", and did not ask how the group is"

    def _left(self, entry: Entry, event: MemberRemoved, at: str) -> str:
        """By its own wish, or an administrator's: then the request is of another client than the member."""
        joined = self._before(entry, MemberJoined, event.member)
        name = self._names.of(event.member)
        why = event.reason.removeprefix("it left").strip()
        because = f" {why}" if why else ""
        match event.cause, None if joined is None else joined.event:
            case Requested(client_id=asked_by), MemberJoined(client_id=own) if (asked_by or "") != own:
                return f"member {name} was removed at {at} by {asked_by or 'a client without id'}{because}"
            case _:
                return f"member {name} left at {at}{because}"

    def _last_heard(self, removed: Entry, event: MemberRemoved) -> str:
        """What it was heard of last, and which of its requests since then did not count."""
        heard_ms = heard_last_ms(removed)
        if heard_ms is None:
            return ""
        start_ms = removed.at_ms - removed.since_start_ms
        spoke = self._chronicle.of_member(event.member, removed)
        at_that_moment = [
            entry.event for entry in spoke if entry.at_ms == heard_ms and isinstance(entry.event, Exchange)
        ]
        apis = [each.api for each in at_that_moment if isinstance(each, RequestReceived)] or [
            each.api for each in at_that_moment
        ]
        at = moment(heard_ms - start_ms)
        if self._chronicle.was_loaded_at(heard_ms):
            return f", counted from {at}, when the group was read back"
        heard = f", last heartbeat at {at}" if "Heartbeat" in apis else f", last heard of at {at}"
        if apis and "Heartbeat" not in apis:
            heard += f" by {apis[0]}"
        later = [entry for entry in spoke if entry.at_ms > heard_ms and isinstance(entry.event, RequestReceived)]
        return heard + self._in_vain(later)

    def _in_vain(self, requests: Sequence[Entry]) -> str:
        if not requests:
            return ""
        outcomes = dict.fromkeys(
            "no answer" if (answer := self._chronicle.answer_to(request)) is None else answer.error
            for request in reversed(requests)
        )
        return f" ({counted(len(requests), 'later request')} did not count: {listed(list(outcomes))})"

    def _before(self, entry: Entry, kind: type[MemberIdAssigned] | type[MemberJoined], member: str) -> Entry | None:
        return self._chronicle.last_of(kind, member, entry)
