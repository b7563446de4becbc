"""The two sides of a connection, driven without sockets: who is read from, and who is written to, when."""

from typing import Any

import pytest

from groupcoord.core.effects import Call
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.proxy.connection import READ_AHEAD_BYTES, BrokerConnection, ClientConnection, Exchange
from groupcoord.proxy.forwarding_cluster import ForwardingCluster
from groupcoord.proxy.group_observer import GroupObserver
from tests.proxy.support import framed

pytestmark = pytest.mark.asyncio


class Side:
    """A transport that notes what is done to it."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.written = b""

    def get_extra_info(self, name: str) -> Any:
        return ("127.0.0.1", 5 if name == "peername" else 6)

    def write(self, data: bytes) -> None:
        self.written += data

    def __getattr__(self, name: str) -> Any:
        return lambda: self.done.append(name)


class Told:
    """What the connections tell."""

    in_flight = 2

    def __init__(self) -> None:
        self.requests: list[bytes] = []
        self.closed_with: list[str] = []

    def request(self, connection: ClientConnection, frame: bytes) -> None:
        self.requests.append(frame)
        exchange = Exchange(frame, 0, len(self.requests))
        connection.exchanges.append(exchange)
        connection.send(exchange, awaits_answer=True)

    def closed(self, _: ClientConnection, reason: str) -> None:
        self.closed_with.append(reason)

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


class Pair:
    """A client's connection whose broker has accepted."""

    def __init__(self) -> None:
        self.told = Told()
        self.client_side, self.broker_side = Side(), Side()
        self.client = ClientConnection(self.told, 1, ("127.0.0.1", 1))
        self.client.connection_made(self.client_side)  # type: ignore[arg-type]
        self.client._connecting.cancel()
        self.broker = BrokerConnection(self.client)

    def connect(self) -> None:
        self.broker.connection_made(self.broker_side)  # type: ignore[arg-type]
        self.client._take_requests()


async def test_nothing_is_read_before_the_broker_is_there() -> None:
    pair = Pair()
    assert pair.client_side.done == ["pause_reading"]
    pair.connect()
    assert pair.client_side.done == ["pause_reading", "resume_reading"]


async def test_a_client_with_many_requests_in_flight_is_not_read_from() -> None:
    pair = Pair()
    pair.connect()
    long = bytes(READ_AHEAD_BYTES)
    pair.client.data_received(framed(b"one") + framed(b"two"))
    assert pair.client_side.done[-1] == "resume_reading"
    pair.client.data_received(framed(long))
    assert pair.told.requests == [b"one", b"two"]
    assert pair.client_side.done[-1] == "pause_reading"
    pair.client.finish(pair.client.exchanges[1], b"2")
    assert pair.client_side.written == b""  # the first comes first
    pair.client.finish(pair.client.exchanges[0], b"1")
    assert pair.client_side.written == b"12"
    assert pair.told.requests == [b"one", b"two", long]
    assert pair.client_side.done[-1] == "resume_reading"


async def test_who_does_not_read_stops_the_other_side() -> None:
    pair = Pair()
    pair.connect()
    pair.broker.pause_writing()
    assert pair.client_side.done[-1] == "pause_reading"
    pair.client.data_received(framed(b"one"))
    assert pair.told.requests == []
    pair.broker.resume_writing()
    assert pair.told.requests == [b"one"]
    assert pair.client_side.done[-1] == "resume_reading"
    pair.client.pause_writing()
    assert pair.broker_side.done == ["pause_reading"]
    pair.client.resume_writing()
    assert pair.broker_side.done == ["pause_reading", "resume_reading"]


async def test_a_client_that_left_meanwhile_needs_no_broker() -> None:
    pair = Pair()
    pair.client.connection_lost(OSError("reset"))
    assert pair.told.closed_with == ["reset"]
    pair.connect()
    assert pair.broker_side.done == ["abort"]


async def test_the_end_of_the_client_is_passed_on_once() -> None:
    pair = Pair()
    pair.connect()
    pair.client.eof_received()
    assert pair.broker_side.done == ["write_eof"]
    pair.broker.connection_lost(None)
    pair.broker.connection_lost(OSError("reset"))
    assert pair.client_side.done.count("close") == 1
    pair.client.connection_lost(None)
    assert pair.told.closed_with == [""]


async def test_an_exchange_is_found_by_its_call() -> None:
    pair = Pair()
    pair.connect()
    pair.client.data_received(framed(b"one"))
    call = Call(1, 1, APIS[ApiKey.HEARTBEAT], 0, None, "/127.0.0.1")
    assert pair.client.find(call) is pair.client.exchanges[0]
    assert pair.client.find(call._replace(correlation_id=9)) is None


async def test_a_cluster_that_only_forwards_has_nothing_to_do_by_itself() -> None:
    cluster = ForwardingCluster(lambda _: None, GroupObserver())
    assert (cluster.next_deadline(), cluster.deadline_lower_bound()) == (None, None)
    assert cluster.expire(0) == cluster.flush(0) == []
