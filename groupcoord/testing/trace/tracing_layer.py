"""Tells all that passes between a server and its node: requests, what happens, answers, in the order of their happening."""

from collections.abc import Callable
from typing import Any, NamedTuple

from groupcoord.config.settings import BrokerConfig
from groupcoord.coordinator.events import GroupEvent
from groupcoord.core.background_work import BackgroundWork, OnWorkDone, SubmitWork
from groupcoord.core.effects import Call, CloseConnection, Effect, EmitEvent, NoReply, RawReply, Reply
from groupcoord.core.events import AdminAction, Cause, Event, Requested, TimerFired
from groupcoord.protocol.errors import ErrorCode
from groupcoord.server.dispatcher import ServedCluster
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
    spoken_of,
)


class _OpenRequest(NamedTuple):
    """A request that waits for its end."""

    at_ms: int
    spoken: RequestSubject


_TIME = AdminAction("a timer")
_CLIENT = AdminAction("a client")


class TracingLayer:
    """``node`` for a server. Whatever happens is told to ``tell``, events of the node included.

    It belongs around everything that changes requests or answers, so that it tells what really came and what really went.
    ``topic_name`` says the names of topics for APIs that speak in ids. What ``tell`` raises is raised on.
    """

    def __init__(
        self, node: ServedCluster, tell: Callable[[Event], None], *, topic_name: TopicName = lambda _: None
    ) -> None:
        self.node = node
        self._tell = tell
        self._topic_name = topic_name
        self._asked: dict[tuple[int, int], _OpenRequest] = {}

    # What a server asks for.

    @property
    def config(self) -> BrokerConfig:
        """The node's."""
        return self.node.config

    def __getattr__(self, name: str) -> Any:
        return getattr(self.node, name)

    def listening_at(self, host: str, port: int) -> None:
        """The server listens there."""
        self.node.listening_at(host, port)

    def next_deadline(self) -> int | None:
        """When ``expire`` is to be called next (ms), or None."""
        return self.node.next_deadline()

    def deadline_lower_bound(self) -> int | None:
        """No later than ``next_deadline``, and cheaper to ask for."""
        return self.node.deadline_lower_bound()

    def handle(self, call: Call, request: Any, now_ms: int) -> list[Effect]:
        """As the node does. An exception of it is told, too, and raised on."""
        cause = _requested(call)
        spoken = spoken_of(request)
        self._asked[_key(call)] = _OpenRequest(now_ms, spoken)
        self._tell(
            RequestReceived(
                at_ms=now_ms,
                cause=cause,
                **_exchange(call, spoken),
                details=request_details(request, self._topic_name),
            )
        )
        try:
            effects = self.node.handle(call, request, now_ms)
        except Exception as error:
            self._failed(error, now_ms, cause)
            raise
        return self.observe(effects, now_ms, cause)

    def expire(self, now_ms: int) -> list[Effect]:
        """As the node does. An exception of it is told, too, and raised on."""
        try:
            effects = self.node.expire(now_ms)
        except Exception as error:
            self._failed(error, now_ms, _TIME)
            raise
        causes = self._causes_of_answers(effects, now_ms)
        for place, effect in enumerate(effects):
            self._observe(effect, now_ms, causes.get(place, _TIME))
        return effects

    def use_worker(self, submit: SubmitWork | None) -> None:
        """As the node does; what follows is told."""
        if submit is None:
            self.node.use_worker(None)
            return

        def ours(call: Call | None, work: BackgroundWork[Any], then: OnWorkDone) -> None:
            cause = _TIME if call is None else _requested(call)
            submit(call, work, lambda result, now_ms: self.observe(then(result, now_ms), now_ms, cause))

        self.node.use_worker(ours)

    # What happens beside requests.

    def observe(self, effects: list[Effect], now_ms: int, cause: Cause) -> list[Effect]:
        """Tell what is in ``effects``, as after an administrative action; returns them, to be carried out."""
        for effect in effects:
            self._observe(effect, now_ms, cause)
        return effects

    def connection_opened(self, connection_id: int, client_host: str, now_ms: int) -> None:
        """A client is connected, from ``client_host`` (``/127.0.0.1``)."""
        self._tell(ConnectionOpened(at_ms=now_ms, cause=_CLIENT, connection_id=connection_id, client_host=client_host))

    def connection_closed(self, connection_id: int, client_host: str, now_ms: int, reason: str = "") -> None:
        """A connection is gone, and nobody waits for the answers to its requests any more."""
        for key in [key for key in self._asked if key[0] == connection_id]:
            del self._asked[key]
        self._tell(
            ConnectionClosed(
                at_ms=now_ms, cause=_CLIENT, connection_id=connection_id, client_host=client_host, reason=reason
            )
        )

    def _observe(self, effect: Effect, now_ms: int, cause: Cause) -> None:
        match effect:
            case EmitEvent(event):
                self._tell(event)
            case Reply(call, response):
                self._answered(call, response, now_ms, cause)
            case RawReply(call, data, hangs_up):
                details: dict[str, Detail] = {"bytes": len(data)}
                if hangs_up:
                    details["hangs_up"] = True
                self._tell_answer(call, None, now_ms, cause, RAW, details)
            case NoReply(call):
                self._unanswered(call, now_ms, cause, "it asked for none")
            case CloseConnection(call, reason):
                self._unanswered(call, now_ms, cause, f"the connection is closed: {reason}")
            case _:
                pass

    def _answered(self, call: Call, response: Any, now_ms: int, cause: Cause) -> None:
        details = response_details(response, self._topic_name)
        self._tell_answer(call, response, now_ms, cause, error_of(response), details)

    def _tell_answer(
        self, call: Call, response: Any, now_ms: int, cause: Cause, error: str, details: dict[str, Detail]
    ) -> None:
        asked = self._asked.pop(_key(call), None)
        if asked is None:
            return  # nobody waits for it: the connection is gone, or the node answers to nobody
        said = spoken_of(response)
        spoken = asked.spoken._replace(
            member=said.member or asked.spoken.member,
            generation=asked.spoken.generation if said.generation == NO_GENERATION else said.generation,
        )
        self._tell(
            ResponseSent(
                at_ms=now_ms,
                cause=cause,
                **_exchange(call, spoken),
                error=error,
                took_ms=now_ms - asked.at_ms,
                details=details,
            )
        )

    def _unanswered(self, call: Call, now_ms: int, cause: Cause, reason: str) -> None:
        asked = self._asked.pop(_key(call), None)
        if asked is not None:
            self._tell(RequestUnanswered(at_ms=now_ms, cause=cause, **_exchange(call, asked.spoken), reason=reason))

    def _failed(self, error: Exception, now_ms: int, cause: Cause) -> None:
        self._tell(ServerFailed(at_ms=now_ms, cause=cause, error=f"{type(error).__name__}: {error}"))

    def _causes_of_answers(self, effects: list[Effect], now_ms: int) -> dict[int, Cause]:
        """Which timer made each answer: by the place of the effect.

        Effects of several timers come in one list, and only notes say of which they are. A timer notes first what happens
        and answers then, but for a member that is out: its parked request is answered right before.
        """
        notes = [
            (place, effect.event)
            for place, effect in enumerate(effects)
            if isinstance(effect, EmitEvent) and isinstance(effect.event, GroupEvent)
        ]
        causes: dict[int, Cause] = {}
        for place, effect in enumerate(effects):
            if not isinstance(effect, Reply | RawReply | NoReply | CloseConnection):
                continue
            call = effect.call
            asked = self._asked.get(_key(call))
            of_group = [] if asked is None else [(at, e) for at, e in notes if e.group == asked.spoken.group]
            before = [event for at, event in of_group if at < place][-1:]
            after = [event for at, event in of_group if at > place][:1]
            is_out = isinstance(effect, Reply) and error_of(effect.response) == ErrorCode.UNKNOWN_MEMBER_ID.name
            nearest = (after or before) if is_out else (before or after)
            waited = TimerFired("wait", f"connection {call.connection_id}", call.api.name, now_ms)
            causes[place] = nearest[0].cause if nearest else waited
        return causes


def _key(call: Call) -> tuple[int, int]:
    return call.connection_id, call.correlation_id


def _requested(call: Call) -> Requested:
    return Requested(
        call.api.name, call.version, call.client_id, call.client_host, call.connection_id, call.correlation_id
    )


def _exchange(call: Call, spoken: RequestSubject) -> dict[str, Any]:
    return {
        "api": call.api.name,
        "version": call.version,
        "client_id": call.client_id,
        "client_host": call.client_host,
        "connection_id": call.connection_id,
        "correlation_id": call.correlation_id,
        "group": spoken.group,
        "member": spoken.member,
        "instance_id": spoken.instance_id,
        "generation": spoken.generation,
    }
