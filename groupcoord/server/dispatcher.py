"""Requests to the node and its effects to connections: the one place where the pure parts meet the loop.

What comes in during one round of the event loop is served together, in its order, at the end of the round: requests are
handled and their effects carried out, then all answers are written, at last the one timer is set if it has to be. There is no
task, future or timer per request; and a hundred requests one after the other, then a hundred writes, take a fifth less time
than both by turns.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol

from groupcoord.config.settings import BrokerConfig
from groupcoord.core.effects import Call, Effect, Hangup, Note, RawReply, Reply, Silence
from groupcoord.core.events import Event
from groupcoord.node.api_versions import SOFTWARE_NAME_FROM, names_its_software
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.errors import ErrorCode, WireError
from groupcoord.server.clock import Clock, SecondsUntil
from groupcoord.server.connection import Connection
from groupcoord.server.connections import Connections
from groupcoord.server.error_responses import error_response
from groupcoord.server.peer import Software

logger = logging.getLogger(__name__)

ERRORS_KEPT = 100
"""Unexpected errors kept for whoever asks; a server that fails for hours must not fill the memory with it."""

RETRY_AFTER_ERROR_SECONDS = 0.1
"""A timer that failed and is still due is tried again so much later: not at once, which would be a busy loop."""

_API_VERSIONS = ApiKey.API_VERSIONS


class ServedNode(Protocol):
    """What a server needs of a node (``groupcoord.node.node.Node``)."""

    @property
    def config(self) -> BrokerConfig:
        """The limits of connections and requests are read from here, each time, for some can be changed."""

    def listening_at(self, host: str, port: int) -> None:
        """The server listens there."""

    def handle(self, call: Call, request: Any, now_ms: int) -> list[Effect]:
        """What follows from ``request``."""

    def expire(self, now_ms: int) -> list[Effect]:
        """What follows from its being ``now_ms``."""

    def next_deadline(self) -> int | None:
        """When ``expire`` is to be called next (ms), or None."""

    def quiet_until(self) -> int | None:
        """No later than ``next_deadline``, and cheaper to ask for."""


class UnexpectedError(NamedTuple):
    """An exception that nobody meant to raise, the call it happened in, if any, and that call's request."""

    error: Exception
    call: Call | None
    request: Any


class Dispatcher:
    """Between the connections of one server and its node."""

    def __init__(
        self,
        node: ServedNode,
        connections: Connections,
        loop: asyncio.AbstractEventLoop,
        now_ms: Clock,
        listeners: Iterable[Callable[[Event], None]],
        seconds_until: SecondsUntil | None = None,
    ) -> None:
        self._seconds_until = seconds_until or (lambda at_ms: (at_ms - now_ms()) / 1000)
        self.loop_time = loop.time
        """The loop's clock (seconds), by which idle connections are told."""
        self.round_at = loop.time()
        """When the round that is going on began, on the loop's clock."""
        self.connections = connections
        self.ready: deque[Connection] = deque()
        """Connections whose next request may be there and may be served."""
        self.unflushed: list[Connection] = []
        """Connections with answers that are not written yet."""
        self.on_connection: Callable[[Connection, bool], None] | None = None
        """Told of each connection that is open now (True), or gone (False)."""
        self.unexpected_errors: list[UnexpectedError] = []
        self.now_ms = now_ms
        self._loop = loop
        self._node = node
        self._listeners = tuple(listeners)
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at_ms = 0
        self.round_is_due = False
        """Will there be a round? Then whoever puts something into ``ready`` need not ask for one."""
        self._stopped = False
        self._not_before = 0.0  # on the loop's clock: no timer before that, after a failure
        self._tracing = logger.isEnabledFor(logging.DEBUG)

    # What connections call.

    def opened(self, connection: Connection) -> None:
        """A connection is there."""
        self.connections.add(connection)
        if self.on_connection is not None:
            self.on_connection(connection, True)  # noqa: FBT003 - says which of two
        if self._tracing:
            logger.debug("%s connected", connection.peer)

    def closed(self, connection: Connection) -> None:
        """A connection is gone; a call of it that is still in flight will be answered to nobody, as in Kafka."""
        self.connections.remove(connection)
        if self.on_connection is not None:
            self.on_connection(connection, False)  # noqa: FBT003 - says which of two
        if self._tracing:
            logger.debug("%s disconnected", connection.peer)

    def serve(self, connection: Connection) -> None:
        """See to ``connection`` in this round: something came in, or its turn has come."""
        self.ready.append(connection)
        self.need_round()

    def need_round(self) -> None:
        """Let a round begin when the loop has seen to what is there to read."""
        if not self.round_is_due:
            self.round_is_due = True
            self._loop.call_soon(self._round)

    # What the server and the timer call.

    def carry_out(self, effects: Iterable[Effect]) -> None:
        """Do what the node decided outside of any request."""
        self._apply(effects)
        self.need_round()

    def wake(self) -> None:
        """Let the node do what is due now."""
        now_ms = self.now_ms()
        deadline = self._node.next_deadline()
        if deadline is not None and deadline <= now_ms:
            try:
                effects = self._node.expire(now_ms)
            except Exception as error:  # one failed timer must not stop the others
                self._not_before = self.loop_time() + RETRY_AFTER_ERROR_SECONDS
                self.unexpected(error, None, None)
            else:
                self._apply(effects)
        self.need_round()

    def stop(self) -> None:
        """No timer fires any more."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def unexpected(self, error: Exception, call: Call | None, request: Any) -> None:
        """Log an exception that nobody meant to raise, and keep it for whoever asks."""
        where = f"{call.api.name} v{call.version} of {call.client_id} at {call.client_host}" if call else "the server"
        asked = f", request {_short(request)}" if call else ""
        logger.error("unexpected error in %s%s", where, asked, exc_info=error)
        if len(self.unexpected_errors) < ERRORS_KEPT:
            self.unexpected_errors.append(UnexpectedError(error, call, request))

    # How a round goes.

    def _round(self) -> None:
        """Serve all connections that are ready, then write the answers, then see to the timer."""
        self.round_is_due = False
        self.round_at = self.loop_time()
        ready, unflushed, serve_one = self.ready, self.unflushed, self._serve_one
        while ready:
            serve_one(ready.popleft())
        for connection in unflushed:
            connection.flush()
        unflushed.clear()
        self._see_to_timer()

    def _serve_one(self, connection: Connection) -> None:
        try:
            call = connection.next_call()
        except WireError as problem:
            self._malformed(connection, problem)
            return
        except Exception as error:  # a fault of the parser must not harm other connections
            self.unexpected(error, None, None)
            connection.close()
            return
        if call is None:
            return
        if self._tracing:
            asked = _short(connection.request)
            logger.debug("%s asks v%d %s", connection.peer, call.version, asked, extra={"call": call})
        if call.api.key is _API_VERSIONS:
            self._greet(connection, call)
        try:
            effects = self._node.handle(call, connection.request, self.now_ms())
            if len(effects) == 1 and not self._tracing:
                (effect,) = effects
                if type(effect) is Reply and effect[0] is call:
                    connection.answer(call, effect[1])  # the short way for most requests
                    return
        except Exception as error:  # any fault of a handler is answered and reported
            self._fail(connection, call, error)
        else:
            self._apply(effects)

    def _apply(self, effects: Iterable[Effect]) -> None:
        connections = self.connections.open
        for effect in effects:
            if isinstance(effect, Reply):
                call, response = effect
                connection = connections.get(call.connection_id)
                if connection is None:
                    continue
                if connection.in_flight is not call and not _answers(call, connection.in_flight):
                    self.unexpected(RuntimeError(f"nobody waits for this answer: {_short(response)}"), call, None)
                    continue
                if self._tracing:
                    logger.debug("%s is answered %s", connection.peer, _short(response), extra={"call": call})
                try:
                    connection.answer(call, response)
                except Exception as error:  # a response that cannot be written is a fault of its handler
                    self._fail(connection, call, error)
            elif isinstance(effect, Note):
                self._tell(effect.event)
            else:
                self._end(effect)

    def _end(self, effect: Effect) -> None:
        """A call that ends without an answer, or without a proper one."""
        if not isinstance(effect, Silence | Hangup | RawReply):
            self.unexpected(RuntimeError(f"an effect that is not the server's: {effect!r}"), None, None)
            return
        connection = self.connections.open.get(effect.call.connection_id)
        if connection is None or connection.in_flight is not effect.call:
            return
        if isinstance(effect, Hangup):
            logger.info("closing %s: %s", connection.peer, effect.reason, extra={"call": effect.call})
            connection.close()
        elif isinstance(effect, RawReply):
            connection.answer_bytes(effect.data)
            if effect.hangs_up:
                connection.close()
        else:
            connection.settle()

    def _tell(self, event: Event) -> None:
        for listener in self._listeners:
            try:
                listener(event)
            except Exception as error:  # whoever watches must not disturb what is watched
                self.unexpected(error, None, None)

    def _greet(self, connection: Connection, call: Call) -> None:
        """Learn from ApiVersions what software this is, unless it is about to be refused for what it says of it."""
        request = connection.request
        if call.version >= SOFTWARE_NAME_FROM and request is not None and names_its_software(request):
            connection.software = Software(request.client_software_name, request.client_software_version)
            if self._tracing:
                logger.debug("%s is %s", connection.peer, connection.software, extra={"call": call})

    def _malformed(self, connection: Connection, problem: WireError) -> None:
        place = {"api": problem.api, "version": problem.version, "offset": problem.offset, "field": problem.field}
        logger.warning("closing %s: %s", connection.peer, problem, extra={"place": place, "peer": connection.peer})
        connection.close()

    def _fail(self, connection: Connection, call: Call, error: Exception) -> None:
        """Answer UNKNOWN_SERVER_ERROR in the API's own shape, or close the connection where that cannot be said."""
        self.unexpected(error, call, connection.request)
        try:
            response = error_response(call.api, call.version, connection.request, ErrorCode.UNKNOWN_SERVER_ERROR)
            if response is not None:
                connection.answer(call, response)
                return
        except Exception as another:  # not even the error can be said
            self.unexpected(another, call, connection.request)
        connection.close()

    def _see_to_timer(self) -> None:
        """See that ``wake`` is called when the node next wants it.

        A timer that is set for an earlier moment stays: it will find nothing due and set the next one. So a heartbeat, which
        moves a session's deadline later, costs no timer.
        """
        deadline_ms = self._node.quiet_until()
        if deadline_ms is None or self._stopped or (self._timer is not None and self._timer_at_ms <= deadline_ms):
            return
        if self._timer is not None:
            self._timer.cancel()
        delay = self._seconds_until(deadline_ms)
        if delay is None:
            self._timer = None
            return
        at = self.loop_time() + delay
        self._timer = self._loop.call_at(max(at, self._not_before), self._timer_fired)
        self._timer_at_ms = deadline_ms

    def _timer_fired(self) -> None:
        self._timer = None
        self.wake()


def _answers(call: Call, in_flight: Call | None) -> bool:
    """Does an answer to ``call`` answer what is in flight? ApiVersions of an unknown version is answered in another one."""
    return in_flight is not None and call._replace(version=in_flight.version) == in_flight


def _short(message: Any) -> str:
    text = repr(message)
    return text if len(text) <= 2_000 else f"{text[:2_000]}…"
