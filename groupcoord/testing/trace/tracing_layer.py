"""TracingLayer, which reports all requests, responses and events between a server and its cluster to a trace."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from groupcoord.cluster.layer import Layer, ServedCluster
from groupcoord.core.effects import Call, CloseConnection, Effect, EmitEvent, NoReply, Origin, RawReply, Reply
from groupcoord.core.events import AdminAction, Cause, Event
from groupcoord.protocol.framing import encode_request, encode_response
from groupcoord.testing.trace.events import (
    NO_GENERATION,
    RAW,
    ConnectionClosed,
    ConnectionOpened,
    Detail,
    RequestReceived,
    RequestUnanswered,
    ResponseSent,
    ServerFailed,
)
from groupcoord.testing.trace.request_summary import (
    RequestSubject,
    TopicName,
    error_of,
    request_details,
    response_details,
    subject_of,
)
from groupcoord.testing.trace.topic_and_append_recorder import TopicAndAppendRecorder


class _OpenRequest(NamedTuple):
    """A request that has no response yet."""

    at_ms: int
    subject: RequestSubject


_CLIENT = AdminAction("a client")
FRAME_LIMIT = 16_384
"""The longest message (bytes) whose bytes a trace keeps, because it keeps 100,000 entries."""


class TracingLayer(Layer):
    """Calls ``tell`` with every request, event and response, in the order in which they happen.

    It has to be outside of every layer that changes requests or responses. ``topic_name`` finds the names of topic ids. With a
    ``recorder`` the trace is detailed: it also has the recorder's events, and the bytes of requests and responses. Exceptions
    of ``tell`` are not caught.
    """

    def __init__(
        self,
        inner: ServedCluster,
        tell: Callable[[Event], None],
        *,
        topic_name: TopicName = lambda _: None,
        recorder: TopicAndAppendRecorder | None = None,
    ) -> None:
        super().__init__(inner)
        self._tell = tell
        self._recorder = recorder
        self._topic_name = topic_name
        self._open: dict[tuple[int, int], _OpenRequest] = {}

    def handle(self, call: Call, request: Any, now_ms: int) -> list[Effect]:
        """The effects of ``request``. An exception is reported to the trace, and raised again."""
        cause = call.as_cause()
        subject = subject_of(request)
        self._open[_key(call)] = _OpenRequest(now_ms, subject)
        self._tell(
            RequestReceived(
                at_ms=now_ms,
                cause=cause,
                **_request_fields(call, subject),
                details=request_details(request, self._topic_name),
                frame=None if self._recorder is None else _request_frame(call, request),
            )
        )
        try:
            effects = self.inner.handle(call, request, now_ms)
        except Exception as error:
            self._failed(error, now_ms, cause)
            raise
        return self.outgoing(effects, now_ms)

    def expire(self, now_ms: int) -> list[Effect]:
        """The effects of the timers that are due. An exception is reported to the trace, and raised again."""
        try:
            effects = self.inner.expire(now_ms)
        except Exception as error:
            self._failed(error, now_ms, AdminAction("a timer"))
            raise
        return self.outgoing(effects, now_ms)

    def outgoing(self, effects: list[Effect], now_ms: int) -> list[Effect]:
        """Report the events and responses in ``effects``; the events of a ``recorder`` come between them."""
        if self._recorder is None:
            for effect in effects:
                self._tell_effect(effect, now_ms)
            return effects
        answers: list[Effect] = []
        for effect in effects:
            if isinstance(effect, EmitEvent) and not answers:
                self._tell(effect.event)
            else:
                answers.append(effect)
        self.look(now_ms, effects)
        for effect in answers:
            self._tell_effect(effect, now_ms)
        return effects

    def look(self, now_ms: int, effects: Sequence[Effect] = ()) -> None:
        """Report the events of the ``recorder``, if there is one."""
        for event in () if self._recorder is None else self._recorder.news(effects, now_ms):
            self._tell(event)

    def _tell_effect(self, effect: Effect, now_ms: int) -> None:
        match effect:
            case EmitEvent(event):
                self._tell(event)
            case Reply(call, response, origin):
                details = response_details(response, self._topic_name)
                frame = None if self._recorder is None else _response_frame(call, response, details)
                self._answered(call, response, now_ms, origin, error_of(response), details, frame)
            case RawReply(call, data, hangs_up, origin):
                details = {"bytes": len(data)}
                if hangs_up:
                    details["hangs_up"] = True
                frame = None if self._recorder is None else _hex(lambda: data)
                self._answered(call, None, now_ms, origin, RAW, details, frame)
            case NoReply(call, origin):
                self._unanswered(call, now_ms, origin, "it asked for none")
            case CloseConnection(call, reason, origin):
                self._unanswered(call, now_ms, origin, f"the connection is closed: {reason}")
            case _:
                pass

    def connection_opened(self, connection_id: int, client_host: str, now_ms: int) -> None:
        """Report that a client has connected from ``client_host`` (``/127.0.0.1``)."""
        self._tell(ConnectionOpened(at_ms=now_ms, cause=_CLIENT, connection_id=connection_id, client_host=client_host))

    def connection_closed(self, connection_id: int, client_host: str, now_ms: int, reason: str = "") -> None:
        """Report that a connection was closed, and forget its requests that have no response yet."""
        for key in [key for key in self._open if key[0] == connection_id]:
            del self._open[key]
        self._tell(
            ConnectionClosed(
                at_ms=now_ms, cause=_CLIENT, connection_id=connection_id, client_host=client_host, reason=reason
            )
        )

    def _answered(
        self,
        call: Call,
        response: Any,
        now_ms: int,
        origin: Origin | None,
        error: str,
        details: dict[str, Detail],
        frame: str | None,
    ) -> None:
        request = self._open.pop(_key(call), None)
        if request is None:
            return  # the connection was closed, or the request has its response already
        said = subject_of(response)
        subject = request.subject._replace(
            member=said.member or request.subject.member,
            generation=request.subject.generation if said.generation == NO_GENERATION else said.generation,
        )
        self._tell(
            ResponseSent(
                at_ms=now_ms,
                cause=_cause(origin, call),
                **_request_fields(call, subject),
                error=error,
                took_ms=now_ms - request.at_ms,
                details=details,
                frame=frame,
            )
        )

    def _unanswered(self, call: Call, now_ms: int, origin: Origin | None, reason: str) -> None:
        request = self._open.pop(_key(call), None)
        if request is not None:
            self._tell(
                RequestUnanswered(
                    at_ms=now_ms, cause=_cause(origin, call), **_request_fields(call, request.subject), reason=reason
                )
            )

    def _failed(self, error: Exception, now_ms: int, cause: Cause) -> None:
        self._tell(ServerFailed(at_ms=now_ms, cause=cause, error=f"{type(error).__name__}: {error}"))


def _key(call: Call) -> tuple[int, int]:
    return call.connection_id, call.correlation_id


def _cause(origin: Origin | None, call: Call) -> Cause:
    """The cause of the response to ``call``: its own request, unless the effect has another ``origin``."""
    if origin is None:
        origin = call
    return origin.as_cause() if isinstance(origin, Call) else origin


def _request_fields(call: Call, subject: RequestSubject) -> dict[str, Any]:
    return {
        "api": call.api.name,
        "version": call.version,
        "client_id": call.client_id,
        "client_host": call.client_host,
        "connection_id": call.connection_id,
        "correlation_id": call.correlation_id,
        "group": subject.group,
        "member": subject.member,
        "instance_id": subject.instance_id,
        "generation": subject.generation,
    }


def _request_frame(call: Call, request: Any) -> str | None:
    """The bytes of ``request``, as a client sends them, in hexadecimal digits; None if they are too many or unknown."""
    if request is None:  # an ApiVersions of an unknown version
        return None
    return _hex(lambda: encode_request(call.api, call.version, call.correlation_id, call.client_id, request))


def _response_frame(call: Call, response: Any, details: dict[str, Detail]) -> str | None:
    records_size = details.get("bytes")  # of a Fetch
    if isinstance(records_size, int) and records_size > FRAME_LIMIT:
        return None
    return _hex(lambda: encode_response(call.api, call.version, call.correlation_id, response))


def _hex(encode: Callable[[], bytes]) -> str | None:
    try:
        frame = encode()
    except Exception:  # the sender reports what cannot be encoded
        return None
    return frame.hex() if len(frame) <= FRAME_LIMIT else None
