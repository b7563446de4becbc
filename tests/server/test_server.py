"""The life of a server over real sockets: ready when it says so, polite at the end, and steady in between."""

import asyncio
import contextlib
import resource
import signal
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from groupcoord.broker.broker_registry import BrokerRegistry
from groupcoord.config.config_def import ConfigError
from groupcoord.core.effects import EmitEvent, Reply, event_listener
from groupcoord.core.events import AdminAction, Event
from groupcoord.partitioners.java_random import JavaRandom
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.apis.join_group import JoinGroupResponseMember
from groupcoord.protocol.messages import JoinGroupResponse
from groupcoord.server import server as server_module
from groupcoord.server.connection import ServerConnection
from groupcoord.server.server import Server
from tests.real_kafka.lone_node import free_port
from tests.server.sockets import Client, Run, counted, running, with_its_ports
from tests.server.support import HEARTBEAT, JOIN_GROUP, JOINED, FakeCluster, frame, heartbeat, join


def test_it_accepts_when_it_is_started(run: Run) -> None:
    async def story() -> None:
        node = FakeCluster()
        async with running(node) as server:
            assert server.port
            assert server.address == f"127.0.0.1:{server.port}"
            assert node.listening == ("127.0.0.1", server.port)
            client = await Client.connect(server)
            assert await client.alive()
            assert server.connection_count == 1
            await client.close()

    run(story())


def test_the_end_closes_connections_and_the_port(run: Run) -> None:
    async def story() -> None:
        async with running() as server:
            client = await Client.connect(server)
            assert await client.alive()
            client.send(JOIN_GROUP, join())
        assert await client.ended()
        assert server.connection_count == 0
        with pytest.raises(ConnectionRefusedError):
            await Client.connect(server)
        await client.close()

    run(story())


def test_a_port_can_be_served_again_at_once(run: Run) -> None:
    async def story() -> None:
        async with running() as server:
            first = await Client.connect(server)
            assert await first.alive()
        async with running(port=server.port) as again:
            second = await Client.connect(again)
            assert await second.alive()
            await second.close()
        await first.close()

    run(story())


def test_a_taken_port_is_an_error(run: Run) -> None:
    async def story() -> None:
        async with running() as server:
            with pytest.raises(OSError, match=r"[Aa]ddress.*in use"):
                await Server(FakeCluster(), port=server.port).startup()

    run(story())


def test_each_broker_listens_on_a_port_of_its_own(run: Run) -> None:
    async def story() -> None:
        node, cluster = FakeCluster(), BrokerRegistry(1, 3, random=JavaRandom(1))
        async with running(node, brokers=cluster) as server:
            assert server.addresses[0] == server.address
            assert len(set(server.addresses)) == 3
            told = [f"{one.host}:{one.port}" for one in cluster.brokers(node.config)[1:]]
            assert told == server.addresses[1:]
            for broker in (2, 0, 1):
                client = await Client.connect(server, broker)
                assert await client.alive()
                assert node.calls[-1].broker == broker
                await client.close()
        again = Server(node, port=server.port, brokers=BrokerRegistry(1))
        async with again:
            assert again.addresses == [server.address]

    run(story())


@pytest.mark.parametrize("brokers", [1, 2])
def test_every_listener_is_served_and_a_call_knows_by_which_it_came(run: Run, brokers: int) -> None:
    async def story() -> None:
        node = FakeCluster(
            listeners="INSIDE://127.0.0.1:0,CONTROLLER://:9093,HOST://127.0.0.1:0",
            listener_security_protocol_map="INSIDE:PLAINTEXT,HOST:PLAINTEXT",
            inter_broker_listener_name="INSIDE",
        )
        cluster = BrokerRegistry(1, brokers, random=JavaRandom(1))
        server = Server(node, brokers=cluster)
        await server.startup()
        first = server.listener_addresses
        for listener, name in enumerate(("INSIDE", "HOST")):
            told = [f"{one.host}:{one.port}" for one in cluster.brokers(node.config, listener)]
            assert sorted(told) == sorted(first[name])
            for broker in range(brokers):
                client = await Client.connect(server, broker, name)
                assert await client.alive()
                assert node.calls[-1][-2:] == (broker, listener)
                await client.close()
        assert server.addresses == first["INSIDE"]
        assert len({*first["INSIDE"], *first["HOST"]}) == 2 * brokers
        await server.shutdown()
        await with_its_ports(server.startup)
        assert server.listener_addresses == first
        await server.shutdown()
        assert server.unexpected_errors == []

    run(story())


def test_a_server_that_starts_again_has_the_same_ports(run: Run) -> None:
    async def story() -> None:
        server = Server(FakeCluster(), brokers=BrokerRegistry(1, 2, random=JavaRandom(1)))
        await server.startup()
        first = list(server.addresses)
        await server.shutdown()
        await with_its_ports(server.startup)
        assert server.addresses == first
        await server.shutdown()

    run(story())


def test_a_start_that_fails_for_one_port_holds_none_and_forgets_none(run: Run) -> None:
    async def story() -> None:
        server = Server(FakeCluster(), brokers=BrokerRegistry(1, 2, random=JavaRandom(1)))
        await server.startup()
        first = list(server.addresses)
        await server.shutdown()
        with contextlib.closing(socket.socket()) as other:
            other.bind(("127.0.0.1", int(first[1].rpartition(":")[2])))
            other.listen()
            with pytest.raises(OSError, match=r"[Aa]ddress.*in use"):
                await server.startup()
            assert server.addresses == first
            with pytest.raises(ConnectionRefusedError):
                await Client.connect(server)
        await with_its_ports(server.startup)
        assert server.addresses == first
        await server.shutdown()

    run(story())


@contextlib.contextmanager
def two_neighbours() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Listening sockets at one port and at the next, below those that sockets of clients get: none can take one meanwhile."""
    while True:
        try:
            lower = socket.create_server(("127.0.0.1", free_port()))
        except OSError:
            continue  # somebody has it already
        with lower:
            try:
                upper = socket.create_server(("127.0.0.1", lower.getsockname()[1] + 1))
            except OSError:
                continue
            with upper:
                yield lower, upper
            return


def test_the_ports_lie_one_behind_the_other_and_one_that_is_taken_is_named(run: Run) -> None:
    async def story() -> None:
        cluster = BrokerRegistry(1, 2, random=JavaRandom(1))
        with two_neighbours() as (free, taken):
            port = taken.getsockname()[1]
            free.close()
            server = Server(FakeCluster(), port=port - 1, brokers=cluster)
            with pytest.raises(OSError, match=r"[Aa]ddress.*in use") as raised:
                await server.startup()
            assert raised.value.filename == f"127.0.0.1:{port}"
        async with running(port=port - 1, brokers=cluster) as server:
            assert server.addresses == [f"127.0.0.1:{port - 1}", f"127.0.0.1:{port}"]
        with pytest.raises(OSError, match="no port above 65535") as raised:
            await Server(FakeCluster(), port=65_535, brokers=cluster).startup()
        assert raised.value.filename == "127.0.0.1:65536"

    run(story())


def test_what_cannot_be_advertised_is_not_served(run: Run) -> None:
    async def story() -> None:
        class Unhappy(FakeCluster):
            def listening_at(self, host: str, port: int, listener: int = 0) -> None:
                raise ConfigError("", "advertised.listeners", None, "no")

        server = Server(Unhappy())
        with pytest.raises(ConfigError):
            await server.startup()
        with pytest.raises(ConnectionRefusedError):
            await Client.connect(server)

    run(story())


def test_a_parked_call_is_answered_when_its_timer_fires(run: Run) -> None:
    async def story() -> None:
        node = FakeCluster()
        events: list[Event] = []
        event = Event(at_ms=0, cause=AdminAction("a test"))
        async with running(node, listeners=[event_listener(events.append)]) as server:

            def park(*_: Any) -> list[Any]:
                node.deadline_ms = node.times[-1] + 20
                return []

            node.on[ApiKey.JOIN_GROUP] = park
            node.on_expiry = lambda _: [EmitEvent.of(event), Reply(node.parked(), JOINED)]
            client = await Client.connect(server)
            client.send(JOIN_GROUP, join(), correlation_id=5)
            assert await client.answer(JOIN_GROUP) == (5, JOINED)
            assert events == [event]
            await client.close()

    run(story())


def test_a_clock_moved_by_hand(run: Run) -> None:
    async def story() -> None:
        node, now = FakeCluster(), [0]
        node.deadline_ms = 60_000
        node.on_expiry = lambda _: [Reply(node.parked(), JOINED)]
        joined = counted(node, 1)
        async with running(node, now_ms=lambda: now[0]) as server:
            client = await Client.connect(server)
            client.send(JOIN_GROUP, join())
            await joined.wait()
            now[0] = 60_000
            server.wake()
            assert (await client.answer(JOIN_GROUP))[1] == JOINED
            await client.close()

    run(story())


def test_effects_from_outside_are_carried_out(run: Run) -> None:
    async def story() -> None:
        node = FakeCluster()
        joined = counted(node, 1)
        async with running(node) as server:
            client = await Client.connect(server)
            client.send(JOIN_GROUP, join())
            await joined.wait()
            server.execute_effects([Reply(node.parked(), JOINED)])
            assert (await client.answer(JOIN_GROUP))[1] == JOINED
            await client.close()

    run(story())


def test_who_vanishes_while_parked_is_forgotten(run: Run) -> None:
    async def story() -> None:
        node = FakeCluster()
        joined = counted(node, 1)
        async with running(node) as server:
            vanishing, other = await Client.connect(server), await Client.connect(server)
            vanishing.send(JOIN_GROUP, join())
            await joined.wait()
            vanishing.reset()
            while server.connection_count == 2:
                assert await other.alive()
            server.execute_effects([Reply(node.parked(), JOINED)])
            assert await other.alive()
            await other.close()

    run(story())


def test_a_half_closed_connection_gets_its_answers(run: Run) -> None:
    async def story() -> None:
        node = FakeCluster()
        joined = counted(node, 1)
        async with running(node) as server:
            client = await Client.connect(server)
            client.send(JOIN_GROUP, join(), correlation_id=1)
            client.send(HEARTBEAT, heartbeat(), correlation_id=2)
            client.writer.write_eof()
            await joined.wait()
            server.execute_effects([Reply(node.parked(), JOINED)])
            assert (await client.answer(JOIN_GROUP))[0] == 1
            assert (await client.answer(HEARTBEAT))[0] == 2
            assert await client.ended()
            await client.close()

    run(story())


def test_a_slow_reader_is_waited_for(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        node = FakeCluster()
        long = JoinGroupResponse(protocol_name="range", leader="m" * 30_000, member_id="m" * 30_000, members=())
        node.on[ApiKey.JOIN_GROUP] = lambda call, _: [Reply(call, long)]
        blocked = asyncio.Event()
        pause_writing = ServerConnection.pause_writing

        def pausing(connection: ServerConnection) -> None:
            pause_writing(connection)
            blocked.set()

        monkeypatch.setattr(ServerConnection, "pause_writing", pausing)
        async with running(node) as server:
            slow, other = await Client.connect(server), await Client.connect(server)
            for number in range(400):
                slow.send(JOIN_GROUP, join(), correlation_id=number)
            await blocked.wait()
            assert await other.alive()
            served = len(node.calls)
            assert served < 350
            for number in range(400):
                assert (await slow.answer(JOIN_GROUP))[0] == number
            await slow.close()
            await other.close()

    run(story())


def test_hostile_bytes_end_that_connection_alone(run: Run) -> None:
    async def story() -> None:
        async with running() as server:
            good = await Client.connect(server)
            for hostile in (
                b"\x7f\xff\xff\xff",
                b"\0\0\0\0",
                b"GET / HTTP/1.1\r\n\r\n",
                frame(HEARTBEAT, heartbeat())[:4] * 50,
            ):
                bad = await Client.connect(server)
                bad.writer.write(hostile)
                assert await bad.ended()
                assert await good.alive()
                await bad.close()
            await good.close()

    run(story())


class TestServe:
    """``serve`` ends with a signal, or when it is told to."""

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_a_signal_ends_it(self, run: Run, number: signal.Signals) -> None:
        async def story() -> None:
            server = Server(FakeCluster())
            before = signal.getsignal(number)
            client: list[Client] = []

            async def connect_and_end() -> None:
                client.append(await Client.connect(server))
                assert await client[0].alive()
                signal.raise_signal(number)

            tasks = []
            received = await server.serve(lambda _: tasks.append(asyncio.create_task(connect_and_end())))
            assert received is number
            assert signal.getsignal(number) is before
            assert await client[0].ended()
            await client[0].close()

        run(story())

    def test_it_can_be_told_in_another_thread(self) -> None:
        ready = threading.Event()
        server: list[tuple[Server, asyncio.AbstractEventLoop]] = []
        outcome: list[Any] = []

        def announce(started: Server) -> None:
            server.append((started, asyncio.get_running_loop()))
            ready.set()

        async def serve() -> None:
            outcome.append(await Server(FakeCluster()).serve(announce))

        thread = threading.Thread(target=lambda: asyncio.run(serve()))
        thread.start()
        assert ready.wait(20)
        started, loop = server[0]
        loop.call_soon_threadsafe(started.stop)
        thread.join(20)
        assert outcome == [None]

    def test_an_announcement_that_fails_ends_it(self, run: Run) -> None:
        async def story() -> None:
            def announce(_: Server) -> None:
                raise ZeroDivisionError("a bug")

            server = Server(FakeCluster())
            with pytest.raises(ZeroDivisionError):
                await server.serve(announce)
            with pytest.raises(ConnectionRefusedError):
                await Client.connect(server)

        run(story())


class TestGrace:
    """At the end, peers get a while to read what they were answered."""

    async def stuck(self, server: Server) -> Client:
        """A client that does not read megabytes of answers."""
        client = await Client.connect(server)
        client.send(JOIN_GROUP, join())
        return client

    def cluster(self) -> FakeCluster:
        node = FakeCluster()
        long = JoinGroupResponse(
            protocol_name="range",
            leader="m",
            member_id="m",
            members=tuple(_member(number) for number in range(400)),
        )
        node.on[ApiKey.JOIN_GROUP] = lambda call, _: [Reply(call, long)]
        return node

    def test_but_not_for_ever(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(server_module, "GRACE_SECONDS", 0.05)

        async def story() -> None:
            node = self.cluster()
            joined = counted(node, 1)
            async with running(node) as server:
                client = await self.stuck(server)
                await joined.wait()
            assert server.connection_count == 0
            client.reset()

        run(story())

    def test_and_a_second_signal_ends_it(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(server_module, "GRACE_SECONDS", 1_000)

        async def story() -> None:
            node = self.cluster()
            joined = counted(node, 1)
            server = Server(node)
            clients = []

            async def impatient() -> None:
                clients.append(await self.stuck(server))
                await joined.wait()
                signal.raise_signal(signal.SIGINT)
                await shutting_down.wait()
                signal.raise_signal(signal.SIGINT)

            shutting_down = asyncio.Event()
            shutdown = server.shutdown

            async def watched() -> None:
                shutting_down.set()
                await shutdown()

            monkeypatch.setattr(server, "shutdown", watched)
            tasks = []
            assert await server.serve(lambda _: tasks.append(asyncio.create_task(impatient()))) is signal.SIGINT
            assert server.connection_count == 0
            clients[0].reset()

        run(story())


def _member(number: int) -> JoinGroupResponseMember:
    return JoinGroupResponseMember(member_id=f"m-{number}", metadata=bytes(20_000))


@pytest.mark.untraced
@pytest.mark.slow
def test_two_thousand_connections(run: Run) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 4_200
    if hard != resource.RLIM_INFINITY and hard < needed:
        pytest.skip(f"only {hard} files may be open")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, needed), hard))

    async def story() -> None:
        async with running() as server:
            clients = [await Client.connect(server) for _ in range(2_000)]
            assert all(await asyncio.gather(*[client.alive() for client in clients]))
            assert server.connection_count == 2_000
            await asyncio.gather(*[client.close() for client in clients])

    try:
        run(story(), patience_s=120)  # some ten thousand rounds of the loop, where the others take ten
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
