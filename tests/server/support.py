"""A scripted node, event loop and transport, which drive the server without sockets."""

import asyncio
import heapq
import itertools
import struct
from collections.abc import Callable
from typing import Any, cast

from groupcoord.config.broker_config import BrokerConfig
from groupcoord.core.background_work import SubmitWork
from groupcoord.core.effects import Call, Effect, EmitEvent, NoReply, Reply, event_listener
from groupcoord.core.events import Event
from groupcoord.protocol.apis import APIS, Api, ApiKey
from groupcoord.protocol.framing import FrameBuffer, encode_request, parse_response
from groupcoord.protocol.messages import (
    ApiVersionsResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    ProduceRequest,
)
from groupcoord.server.connection import Round, ServerConnection
from groupcoord.server.connection_registry import ConnectionRegistry
from groupcoord.server.serving_loop import ServingLoop

HEARTBEAT = APIS[ApiKey.HEARTBEAT]
JOIN_GROUP = APIS[ApiKey.JOIN_GROUP]
PRODUCE = APIS[ApiKey.PRODUCE]
API_VERSIONS = APIS[ApiKey.API_VERSIONS]

ALIVE = HeartbeatResponse()
JOINED = JoinGroupResponse(generation_id=1, protocol_name="range", leader="m", member_id="m", members=())


def heartbeat(member: str = "m") -> HeartbeatRequest:
    return HeartbeatRequest(group_id="g", generation_id=1, member_id=member)


def join() -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id="",
        protocol_type="consumer",
        protocols=(),
    )


def produce(acks: int) -> ProduceRequest:
    return ProduceRequest(acks=acks, timeout_ms=1_000, topic_data=())


def frame(api: Api, message: Any, *, version: int | None = None, correlation_id: int = 1) -> bytes:
    """A request as a client sends it."""
    return encode_request(api, api.max_version if version is None else version, correlation_id, "client-1", message)


class FakeCluster:
    """Answers heartbeats, parks JoinGroups, is silent to a Produce without acks; ``on`` replaces that for one API."""

    def __init__(self, **properties: object) -> None:
        self.config = BrokerConfig.of({name.replace("_", "."): value for name, value in properties.items()})
        self.calls: list[Call] = []
        self.requests: list[Any] = []
        self.times: list[int] = []
        self.listening: tuple[str, int] | None = None
        self.deadline_ms: int | None = None
        self.submit: SubmitWork | None = None
        self.on_expiry: Callable[[int], list[Effect]] = lambda _: []
        self.on_flush: Callable[[int], list[Effect]] = lambda _: []
        self.on: dict[ApiKey, Callable[[Call, Any], list[Effect]]] = {
            ApiKey.HEARTBEAT: lambda call, _: [Reply(call, ALIVE)],
            ApiKey.JOIN_GROUP: lambda _, __: [],
            ApiKey.PRODUCE: lambda call, _: [NoReply(call)],
            ApiKey.API_VERSIONS: lambda call, _: [Reply(call, ApiVersionsResponse(api_keys=()))],
        }

    def listening_at(self, host: str, port: int, listener: int = 0) -> None:
        self.config = self.config.listening_at(host, port, listener)
        if not listener:
            self.listening = (host, port)

    def batch_rounds(self, *, batches: bool) -> None:
        self.batches = batches

    def use_worker(self, submit: SubmitWork | None) -> None:
        self.submit = submit

    def handle(self, call: Call, request: Any, now_ms: int) -> list[Effect]:
        self.calls.append(call)
        self.requests.append(request)
        self.times.append(now_ms)
        return self.on[call.api.key](call, request)

    def expire(self, now_ms: int) -> list[Effect]:
        self.deadline_ms = None
        return self.on_expiry(now_ms)

    def flush(self, now_ms: int) -> list[Effect]:
        return self.on_flush(now_ms)

    def next_deadline(self) -> int | None:
        return self.deadline_ms

    def deadline_lower_bound(self) -> int | None:
        return self.next_deadline()

    def parked(self) -> Call:
        """The last JoinGroup."""
        return next(call for call in reversed(self.calls) if call.api is JOIN_GROUP)


class FakeLoop:
    """Time that passes when told; what is called soon is called by ``settle``."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self._order = itertools.count()
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._soon: list[Callable[[], object]] = []
        self.timers_set = 0

    def time(self) -> float:
        return self.now

    def call_soon(self, callback: Callable[[], object]) -> None:
        self._soon.append(callback)

    def call_at(self, when: float, callback: Callable[[], object]) -> asyncio.TimerHandle:
        self.timers_set += 1
        handle = asyncio.TimerHandle(when, callback, (), cast("asyncio.AbstractEventLoop", self))
        heapq.heappush(self._timers, (when, next(self._order), handle))
        return handle

    def get_debug(self) -> bool:
        return False

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """What a handle tells its loop."""

    @property
    def pending(self) -> list[float]:
        """When timers are set for, from now on."""
        return sorted(when - self.now for when, _, handle in self._timers if not handle.cancelled())

    def ctx(self) -> None:
        """Call what waits now, and not what that asks for."""
        for callback in [self._soon.pop(0) for _ in range(len(self._soon))]:
            callback()

    def settle(self) -> None:
        while self._soon:
            self._soon.pop(0)()

    def advance(self, seconds: float) -> None:
        """Let time pass, and call what falls due on the way."""
        self.settle()
        end = self.now + seconds
        while self._timers and self._timers[0][0] <= end:
            when, _, handle = heapq.heappop(self._timers)
            if not handle.cancelled():
                self.now = max(self.now, when)
                handle._run()
                self.settle()
        self.now = end

    @property
    def is_idle(self) -> bool:
        """Is nothing left to be called before time passes?"""
        return not self._soon

    def fire(self) -> None:
        """Call what is due by now, and nothing else: what is called soon stays so."""
        while self._timers and self._timers[0][0] <= self.now:
            _, _, handle = heapq.heappop(self._timers)
            if not handle.cancelled():
                handle._run()

    def now_ms(self) -> int:
        """A clock for the node that keeps step with the loop's."""
        return round(self.now * 1_000)


class FakeTransport:
    """Remembers what was done to it. With ``full`` set, the next write finds that the peer does not read."""

    def __init__(self, protocol: ServerConnection) -> None:
        self.protocol = protocol
        self.writes: list[bytes] = []
        self.full = False
        self.unread = 0
        self.aborted = False
        self._reading = True
        self._closed = False

    def write(self, data: bytes) -> None:
        assert not self._closed, "written to after it was closed"
        self.writes.append(data)
        if self.full:
            self.unread += len(data)
            self.protocol.pause_writing()

    def get_write_buffer_size(self) -> int:
        return self.unread

    def pause_reading(self) -> None:
        assert self._reading
        self._reading = False

    def resume_reading(self) -> None:
        assert not self._reading
        self._reading = True

    def is_reading(self) -> bool:
        return self._reading

    def close(self) -> None:
        self._closed = True

    def is_closing(self) -> bool:
        return self._closed

    def abort(self) -> None:
        self._closed = self.aborted = True


class Peer:
    """A client's end of a connection that is not one."""

    def __init__(self, shell: "Shell", connection: ServerConnection) -> None:
        self.shell = shell
        self.connection = connection
        self.transport = FakeTransport(connection)
        self._frames = FrameBuffer(1 << 31)
        self._read = 0
        connection.connection_made(cast("asyncio.Transport", self.transport))

    def send(self, data: bytes) -> None:
        """Deliver bytes, in a round of their own."""
        assert self.transport.is_reading(), "nobody reads"
        self.connection.data_received(data)
        self.shell.loop.settle()

    def ask(self, api: Api, message: Any, *, version: int | None = None, correlation_id: int = 1) -> None:
        self.send(frame(api, message, version=version, correlation_id=correlation_id))

    def frames(self) -> list[bytes]:
        """The answers since the last look."""
        fresh = self.transport.writes[self._read :]
        self._read = len(self.transport.writes)
        self._frames.feed(b"".join(fresh))
        return list(self._frames.frames())

    def correlation_ids(self) -> list[int]:
        """Those of the answers since the last look."""
        return [struct.unpack_from(">i", answer)[0] for answer in self.frames()]

    def answer(self, api: Api, *, version: int | None = None) -> Any:
        """The one answer since the last look."""
        (answer,) = self.frames()
        return parse_response(api, api.max_version if version is None else version, answer)[1]

    def end(self) -> None:
        """Send nothing more."""
        assert self.connection.eof_received(), "the transport would close at once"
        self.shell.loop.settle()

    def read(self) -> None:
        """Read the answers, after ``transport.full``."""
        self.transport.full = False
        self.read_on()

    def read_on(self) -> None:
        """Read what waits, and no more than that."""
        self.transport.unread = 0
        self.connection.resume_writing()
        self.shell.loop.settle()

    def vanish(self) -> None:
        self.connection.connection_lost(None)


class Shell:
    """A serving_loop with a fake node and a fake loop, and as many peers as asked for."""

    def __init__(self, **properties: object) -> None:
        self.cluster = FakeCluster(**properties)
        self.loop = FakeLoop()
        self.events: list[Event] = []
        loop = cast("asyncio.AbstractEventLoop", self.loop)
        self.connections: ConnectionRegistry[ServerConnection] = ConnectionRegistry(lambda: self.cluster.config, loop)
        self.round = Round(loop)
        listeners = [event_listener(self.events.append)]
        self.serving_loop = ServingLoop(self.cluster, self.connections, self.round, loop, self.loop.now_ms, listeners)
        self._numbers = itertools.count(1)

    def peer(self, ip: str = "127.0.0.1") -> Peer:
        number = next(self._numbers)
        self.connections.reserve(ip)
        limit = self.cluster.config.socket_request_max_bytes
        return Peer(self, ServerConnection(number, (ip, 50_000 + number), self.round, self.connections, limit))

    def slow_peer(self, api: Api, message: Any) -> Peer:
        """One that has asked and does not read."""
        peer = self.peer()
        peer.transport.full = True
        peer.ask(api, message)
        return peer

    def execute_effects(self, *effects: Effect) -> None:
        self.serving_loop.execute_effects(effects)
        self.loop.settle()

    def note(self, event: Event) -> None:
        self.execute_effects(EmitEvent.of(event))
