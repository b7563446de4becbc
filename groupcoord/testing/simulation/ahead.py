"""Heartbeats of one member that are exchanged before they are due, because nothing else happens. See docs/simulation.md."""

from typing import Any, Protocol

from groupcoord.client import actions as a
from groupcoord.client.membership import Membership
from groupcoord.testing.simulation.agenda import Agenda
from groupcoord.testing.simulation.network import LONGEST_USUAL_MS, Connection, Network
from groupcoord.testing.simulation.requests import Requests

MARGIN_MS = 2 * LONGEST_USUAL_MS + 10
"""In this time a heartbeat is there, and its answer is back."""


class SkippedTooMuchError(Exception):
    """A heartbeat that should have changed nothing did: what is simulated is faulty. Without skipping it can be seen why."""


class Quiet(Protocol):
    """Who knows how quiet the world is."""

    agenda: Agenda
    network: Network

    def deadline_lower_bound(self) -> int | None:
        """Nothing but heartbeats happens before that (ms); None if more is going on, or could be."""

    def beat_ahead(self, connection: Connection, number: int, request: Any, at_ms: int) -> Any:
        """What a heartbeat is answered that arrives at ``at_ms``, before which nothing else happens."""


class Ahead:
    """Of one member. ``heard_ms`` is when it sent the last heartbeat that was answered well."""

    def __init__(self, around: Quiet, membership: Membership, requests: Requests) -> None:
        self._around, self._membership, self._requests = around, membership, requests
        self.heard_ms: int | None = None

    def next_beat(self, beat_ms: int, commits_at_ms: int, connection: Connection | None) -> int:
        """When the next heartbeat is to be sent that can make a difference (ms); the next one at all is due at ``beat_ms``.

        While the world is quiet, heartbeats only move the ends of sessions on. So the last of them is exchanged right here,
        at its time and with its delays, and before it the first, if the session would not last so long; those in between would
        change nothing that the last one does not change again. Raises SkippedTooMuchError.
        """
        quiet_ms = None if self.heard_ms is None else self._around.deadline_lower_bound()
        if self.heard_ms is None or quiet_ms is None:
            return beat_ms
        settings, beat_ms = self._membership.settings, max(beat_ms, self._around.agenda.now_ms)
        interval_ms, left_ms = settings.heartbeat_interval_ms, min(quiet_ms, commits_at_ms) - MARGIN_MS - beat_ms
        if left_ms < 0 or interval_ms <= MARGIN_MS:
            return beat_ms
        last_ms = beat_ms + left_ms // interval_ms * interval_ms
        if beat_ms < last_ms > self.heard_ms + settings.session_timeout_ms - MARGIN_MS:
            self._exchange(connection, beat_ms, until_ms=last_ms)
        self._exchange(connection, last_ms)
        return last_ms + interval_ms

    def _exchange(self, connection: Connection | None, at_ms: int, until_ms: int = 0) -> None:
        """Exchange a heartbeat that is due later, and take its answer as that of all before ``until_ms``.

        Raises SkippedTooMuchError if more comes of it than is possible.
        """
        actions = self._membership.expire(at_ms)
        if connection is None or len(actions) != 1 or not isinstance(actions[0], a.Send):
            raise SkippedTooMuchError
        sent, number = actions[0], self._requests.next_number()
        arrived_ms, answered_ms = self._around.network.usual_times(connection, at_ms)
        response = self._around.beat_ahead(connection, number, sent.request, arrived_ms)
        if self._membership.complete(sent.ticket, response, max(answered_ms, until_ms)):
            raise SkippedTooMuchError
        self.heard_ms = at_ms
