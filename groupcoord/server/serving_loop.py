"""Serves the requests of all connections in fair rounds: passes each to the cluster, whose code has no I/O, and executes the
effects that it returns. Kafka's ``SocketServer.Processor`` and ``KafkaRequestHandler`` in one.

Requests are served in rounds, one in each iteration of the event loop: requests are handled and their effects executed, then
all responses are written, and last the one timer is set if necessary. There is no task, future or timer per request. Handling a
hundred requests and then writing a hundred responses takes a fifth less time than alternating.

**Turns.** A round ends after ``ROUND_SECONDS``, and the loop polls the sockets before the next one. Two queues hold
connections: ``fresh`` those that were idle and have sent a short request, ``backlog`` those that have sent requests ahead.
``fresh`` is served first, for ``FRESH_SECONDS``; the rest of the round is for ``backlog``, at least one of its connections, one
request of each in turn. So a client that sends single requests waits for a round or two at most, even if others have sent
thousands of requests ahead. Kafka's network threads take one request of each readable connection, too (``Selector.poll``; a
channel is muted until it is answered).

**Timers.** A timer that fires while connections are queued is handled after them: it waits at the end of ``fresh``, then at the
end of ``backlog``, so for at most one request of each connection in each queue. If it fires late, because the process was
stopped or got no processor, the loop polls the sockets first, so that no member is removed whose heartbeat is waiting there.
Kafka's timers have threads of their own (``SystemTimerReaper``), so there the order is
random.
"""

import asyncio
import logging
import math
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from groupcoord.cluster.api_versions import SOFTWARE_NAME_FROM, names_its_software
from groupcoord.cluster.layer import ServedCluster
from groupcoord.core.effects import Call, CloseConnection, Effect, EmitEvent, NoReply, RawReply, Reply
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.codec.flexible_versions import StringTooLongError
from groupcoord.protocol.errors import ErrorCode, WireError
from groupcoord.server.background_worker import WorkOutcome
from groupcoord.server.clock_and_random_ids import NowMs, SecondsUntil
from groupcoord.server.connection import Round, ServerConnection, Software
from groupcoord.server.connection_registry import ConnectionRegistry

logger = logging.getLogger(__name__)

ERRORS_KEPT = 100
"""How many unexpected errors are kept; a server that fails for hours must not fill the memory."""

RETRY_AFTER_ERROR_SECONDS = 0.1
"""The delay before a failed timer that is still due is tried again, instead of a busy loop."""

ROUND_SECONDS = 0.004
"""How long requests are served before the loop polls the sockets again. Reading before and writing after take about as long
once more, and a request that has just missed a poll waits for the next one: 10 to 20 ms in all, where Kafka's worst is 38 with
300 clients that send ahead. The cost of an iteration of the loop itself, some 20 µs, is negligible."""

FRESH_SECONDS = 0.003
"""The part of a round that is for ``fresh`` requests, before those that were sent ahead."""

LATE_SECONDS = 0.05
"""A timer that fires that much too late shows that the process was stopped: no round takes as long."""

_API_VERSIONS = ApiKey.API_VERSIONS


class UnexpectedError(NamedTuple):
    """An unexpected exception, with the call and request in which it happened, if any."""

    error: Exception
    call: Call | None
    request: Any


class ServingLoop:
    """Connects the connections of a server with its cluster. ``listeners`` are called with every emitted event."""

    def __init__(
        self,
        cluster: ServedCluster,
        connections: ConnectionRegistry[ServerConnection],
        serving: Round,
        loop: asyncio.AbstractEventLoop,
        now_ms: NowMs,
        listeners: Iterable[Callable[[EmitEvent], None]],
        seconds_until: SecondsUntil | None = None,
    ) -> None:
        self.unexpected_errors: list[UnexpectedError] = []
        self._cluster = cluster
        self._connections = connections
        self._serving = serving
        self._loop = loop
        self._now_ms = now_ms
        self._listeners = tuple(listeners)
        self._seconds_until = seconds_until or (lambda at_ms: (at_ms - now_ms()) / 1000)
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at_ms = 0
        self._timer_is_late_at = 0.0  # on the loop's clock
        self._timers_wait = False  # the timer has fired, and the due timers have not run yet
        self._stopped = False
        self._not_before = 0.0  # no timer before that time on the loop's clock, after a failure
        self._tracing = logger.isEnabledFor(logging.DEBUG)
        serving.run = self._run_round

    # Called by the server and the timer.

    def execute_effects(self, effects: Iterable[Effect]) -> None:
        """Execute effects that come from no request."""
        self._apply(effects)
        self._serving.schedule()

    def work_done(self, outcome: WorkOutcome) -> None:
        """Continue the request for which background work is done; its connection may be closed, or there may be no request."""
        call, then, result, error = outcome
        try:
            if error is not None:
                raise error
            effects = then(result, self._now_ms())
        except Exception as problem:  # as for an exception while the request is handled
            connection = None if call is None else self._connections.open.get(call.connection_id)
            if call is None or connection is None or connection.in_flight is not call:
                self.log_unexpected(problem, call, None)
            else:
                self._fail(connection, call, problem)
            self._serving.schedule()
        else:
            self.execute_effects(effects)

    def wake(self) -> None:
        """Fire the due timers now."""
        self._fire_timers()
        self._serving.schedule()

    def stop(self) -> None:
        """Set no more timers."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def log_unexpected(self, error: Exception, call: Call | None, request: Any) -> None:
        """Log an unexpected exception, and keep it for ``unexpected_errors``."""
        where = f"{call.api.name} v{call.version} of {call.client_id} at {call.client_host}" if call else "the server"
        asked = f", request {_short(request)}" if call else ""
        logger.error("unexpected error in %s%s", where, asked, exc_info=error)
        if len(self.unexpected_errors) < ERRORS_KEPT:
            self.unexpected_errors.append(UnexpectedError(error, call, request))

    # A round.

    def _run_round(self) -> None:
        """Serve the queues, write the responses, then schedule the next round and set the timer."""
        serving = self._serving
        serving.is_due = False
        serving.began_at = now = serving.loop_time()
        fresh, backlog, unflushed = serving.fresh, serving.backlog, serving.unflushed
        if fresh:
            self._serve_line(fresh, now + FRESH_SECONDS)
        if backlog:
            self._serve_line(backlog, now + ROUND_SECONDS)
        self._flush_cluster()
        for connection in unflushed:
            connection.flush()
        unflushed.clear()
        if fresh or backlog:
            serving.schedule()
        self._set_timer()

    def _flush_cluster(self) -> None:
        """Let the cluster complete the deferred work of the round, before the responses are written."""
        try:
            effects = self._cluster.flush(self._now_ms())
        except Exception as error:  # the responses of others are still written
            self.log_unexpected(error, None, None)
        else:
            if effects:
                self._apply(effects)

    def _serve_line(self, line: deque[ServerConnection | None], until: float) -> None:
        """Serve the connections in ``line`` until that time on the loop's clock, but at least one."""
        loop_time, serve_one = self._serving.loop_time, self._serve_one
        while line:
            connection = line.popleft()
            if connection is None:
                self._timers_turn(line)
            else:
                serve_one(connection)
            if loop_time() >= until:
                return

    def _timers_turn(self, line: deque[ServerConnection | None]) -> None:
        """The connections in ``line`` before the timers were served; next are those in the other queue."""
        if line is self._serving.fresh:
            self._serving.backlog.append(None)
            return
        self._timers_wait = False
        if not self._stopped:
            self._fire_timers()

    def _fire_timers(self) -> None:
        now_ms = self._now_ms()
        deadline = self._cluster.next_deadline()
        if deadline is not None and deadline <= now_ms:
            try:
                effects = self._cluster.expire(now_ms)
            except Exception as error:  # a failed timer must not stop the others
                self._not_before = self._serving.loop_time() + RETRY_AFTER_ERROR_SECONDS
                self.log_unexpected(error, None, None)
            else:
                self._apply(effects)

    def _serve_one(self, connection: ServerConnection) -> None:
        try:
            call = connection.next_call()
        except WireError as problem:
            self._malformed(connection, problem)
            return
        except Exception as error:  # a bug in the parser must not affect other connections
            self.log_unexpected(error, None, None)
            connection.close()
            return
        if call is None:
            return
        if self._tracing:
            asked = _short(connection.request)
            logger.debug("%s asks v%d %s", connection.peer, call.version, asked, extra={"call": call})
        if call.api.key is _API_VERSIONS:
            self._learn_software(connection, call)
        try:
            effects = self._cluster.handle(call, connection.request, self._now_ms())
            if len(effects) == 1 and not self._tracing:
                (effect,) = effects
                if type(effect) is Reply and effect[0] is call:
                    connection.answer(call, effect[1])  # the fast path for most requests
                    return
        except Exception as error:  # any exception of a handler is answered and logged
            self._fail(connection, call, error)
        else:
            self._apply(effects)

    def _apply(self, effects: Iterable[Effect]) -> None:
        connections = self._connections.open
        for effect in effects:
            if isinstance(effect, Reply):
                call, response, _ = effect
                connection = connections.get(call.connection_id)
                if connection is None:
                    continue
                if connection.in_flight is not call and not _answers(call, connection.in_flight):
                    self.log_unexpected(
                        RuntimeError(f"no request waits for this answer: {_short(response)}"), call, None
                    )
                    continue
                if self._tracing:
                    logger.debug("%s is answered %s", connection.peer, _short(response), extra={"call": call})
                try:
                    connection.answer(call, response)
                except Exception as error:  # a response that cannot be encoded is a bug of its handler
                    self._fail(connection, call, error)
            elif isinstance(effect, EmitEvent):
                if self._listeners:
                    self._notify(effect)
            else:
                self._finish(effect)

    def _finish(self, effect: Effect) -> None:
        """End a call without a response, or with bytes instead of a response."""
        if not isinstance(effect, NoReply | CloseConnection | RawReply):
            self.log_unexpected(RuntimeError(f"an effect that is not the server's: {effect!r}"), None, None)
            return
        connection = self._connections.open.get(effect.call.connection_id)
        if connection is None or connection.in_flight is not effect.call:
            return
        if isinstance(effect, CloseConnection):
            logger.info("closing %s: %s", connection.peer, effect.reason, extra={"call": effect.call})
            connection.close()
        elif isinstance(effect, RawReply):
            connection.answer_bytes(effect.data)
            if effect.hangs_up:
                connection.close()
        else:
            connection.settle()

    def _notify(self, emitted: EmitEvent) -> None:
        for listener in self._listeners:
            try:
                listener(emitted)
            except Exception as error:  # a failing listener must not affect the server
                self.log_unexpected(error, None, None)

    def _learn_software(self, connection: ServerConnection, call: Call) -> None:
        """Store the client's software from ApiVersions, unless the request will be refused for its name or version."""
        request = connection.request
        if call.version >= SOFTWARE_NAME_FROM and request is not None and names_its_software(request):
            connection.software = Software(request.client_software_name, request.client_software_version)
            if self._tracing:
                logger.debug("%s is %s", connection.peer, connection.software, extra={"call": call})

    def _malformed(self, connection: ServerConnection, problem: WireError) -> None:
        place = {"api": problem.api, "version": problem.version, "offset": problem.offset, "field": problem.field}
        logger.warning("closing %s: %s", connection.peer, problem, extra={"place": place, "peer": connection.peer})
        connection.close()

    def _fail(self, connection: ServerConnection, call: Call, error: Exception) -> None:
        """Respond with UNKNOWN_SERVER_ERROR in the API's format, or close the connection if that is impossible.

        If a name is too long to be encoded, Kafka never responds again on that connection, because ``KafkaApis.handleError``
        fails on it, too.
        """
        if isinstance(error, StringTooLongError):
            logger.warning("no answer to %s of %s: %s", call.api.name, connection.peer, error, extra={"call": call})
        else:
            self.log_unexpected(error, call, connection.request)
        try:
            response = call.api.error_response(connection.request, call.version, ErrorCode.UNKNOWN_SERVER_ERROR)
            if response is not None:
                connection.answer(call, response)
                return
        except StringTooLongError:
            return
        except Exception as another:  # not even the error response can be encoded
            self.log_unexpected(another, call, connection.request)
        connection.close()

    def _set_timer(self) -> None:
        """Set the one timer for the cluster's next deadline.

        A timer for an earlier time stays: it will find nothing due and set the next one. So a heartbeat, which delays a
        session's deadline, needs no timer.
        """
        deadline_ms = self._cluster.deadline_lower_bound()
        if deadline_ms is None or self._stopped or self._timers_wait:
            return
        if self._timer is not None and self._timer_at_ms <= deadline_ms:
            return
        if self._timer is not None:
            self._timer.cancel()
        delay = self._seconds_until(deadline_ms)
        if delay is None:
            self._timer = None
            return
        at = max(self._serving.loop_time() + delay, self._not_before)
        self._timer = self._loop.call_at(at, self._timer_fired)
        self._timer_at_ms = deadline_ms
        self._timer_is_late_at = at + LATE_SECONDS if delay > 0 else math.inf

    def _timer_fired(self) -> None:
        """Queue the timers: after a poll of the sockets if they are late."""
        self._timer = None
        self._timers_wait = True
        if self._serving.loop_time() >= self._timer_is_late_at:
            # Callbacks of call_soon run before those of ready sockets in the same iteration, hence twice.
            self._loop.call_soon(lambda: self._loop.call_soon(self._timers_get_in_line))
        else:
            self._timers_get_in_line()

    def _timers_get_in_line(self) -> None:
        """Queue the timers; if no round is scheduled, the queues are empty, and they fire at once."""
        self._serving.fresh.append(None)
        if not self._serving.is_due:
            self._run_round()


def _answers(call: Call, in_flight: Call | None) -> bool:
    """Is ``call`` the one in flight? The response to an ApiVersions request of an unknown version has another version."""
    return in_flight is not None and call._replace(version=in_flight.version) == in_flight


def _short(message: Any) -> str:
    text = repr(message)
    return text if len(text) <= 2_000 else f"{text[:2_000]}…"
