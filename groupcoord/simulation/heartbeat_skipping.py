"""Skips the heartbeats of a member that change nothing, because nothing else happens. See docs/simulation.md."""

from typing import Any, Protocol

from groupcoord.client.member import actions as a
from groupcoord.client.member.membership import Membership
from groupcoord.simulation.event_queue import EventQueue
from groupcoord.simulation.network import NORMAL_MAX_DELAY_MS, PendingRequests, SimulatedConnection, SimulatedNetwork

MARGIN_MS = 2 * NORMAL_MAX_DELAY_MS + 10
"""A heartbeat and its response take less than this."""


class UnsafeSkipError(Exception):
    """A heartbeat brought more than a plain response, so the run must be repeated without skipping."""


class SkipEnvironment(Protocol):
    """What the skipper needs to know of the world."""

    event_queue: EventQueue
    network: SimulatedNetwork

    def quiet_until(self) -> int | None:
        """Only members at rest act before that time (ms); None if something else is or may be going on."""

    def heartbeat_in_advance(self, connection: SimulatedConnection, number: int, request: Any, at_ms: int) -> Any:
        """The response to a heartbeat that arrives at ``at_ms``. Nothing else happens before that."""


class HeartbeatSkipper:
    """Skips heartbeats of one member. ``last_success_ms``: when it sent the last heartbeat that was answered with no error."""

    def __init__(self, environment: SkipEnvironment, membership: Membership, requests: PendingRequests) -> None:
        self._environment, self._membership, self._requests = environment, membership, requests
        self.last_success_ms: int | None = None

    def next_heartbeat_ms(self, due_ms: int, commits_at_ms: int, connection: SimulatedConnection | None) -> int:
        """When the next heartbeat that can make a difference must be sent (ms); without skipping, one is due at ``due_ms``.

        In quiet times a heartbeat only extends the session. So the last one in the quiet time is exchanged right now, with its
        own time and delays. If the session would end before that, the first one is exchanged as well. Those in between would
        change nothing that the last one does not set again. Raises UnsafeSkipError.
        """
        quiet_ms = None if self.last_success_ms is None else self._environment.quiet_until()
        if self.last_success_ms is None or quiet_ms is None:
            return due_ms
        settings, due_ms = self._membership.settings, max(due_ms, self._environment.event_queue.now_ms)
        interval_ms, left_ms = settings.heartbeat_interval_ms, min(quiet_ms, commits_at_ms) - MARGIN_MS - due_ms
        if left_ms < 0 or interval_ms <= MARGIN_MS:
            return due_ms
        last_ms = due_ms + left_ms // interval_ms * interval_ms
        if due_ms < last_ms > self.last_success_ms + settings.session_timeout_ms - MARGIN_MS:
            self._exchange(connection, due_ms, until_ms=last_ms)
        self._exchange(connection, last_ms)
        return last_ms + interval_ms

    def _exchange(self, connection: SimulatedConnection | None, at_ms: int, until_ms: int = 0) -> None:
        """Exchange the heartbeat of ``at_ms``; its response counts for all heartbeats before ``until_ms``.

        Raises UnsafeSkipError if anything else follows from it.
        """
        actions = self._membership.expire(at_ms)
        if connection is None or len(actions) != 1 or not isinstance(actions[0], a.SendRequest):
            raise UnsafeSkipError
        send, number = actions[0], self._requests.next_number()
        arrived_ms, answered_ms = self._environment.network.normal_times(connection, at_ms)
        response = self._environment.heartbeat_in_advance(connection, number, send.request, arrived_ms)
        if self._membership.complete(send.ticket, response, max(answered_ms, until_ms)):
            raise UnsafeSkipError
        self.last_success_ms = at_ms
