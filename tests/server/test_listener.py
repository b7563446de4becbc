"""Which addresses are listened on, and who is taken in."""

import asyncio
import errno
import logging
import socket
from typing import Any

import pytest

from groupcoord.config.broker_config import BrokerConfig
from groupcoord.server import listener
from groupcoord.server.connection import ServerConnection
from groupcoord.server.file_descriptor_limit import SPARE_DESCRIPTORS
from groupcoord.server.listener import bind
from groupcoord.server.server import Server
from tests.server.sockets import Client, Run, running
from tests.server.support import FakeCluster

CONFIG = BrokerConfig.of()


def addresses(monkeypatch: pytest.MonkeyPatch, *found: tuple[socket.AddressFamily, str]) -> None:
    """What looking up any host finds."""

    async def getaddrinfo(_: Any, host: Any, port: int, **__: Any) -> list[Any]:
        tails = {socket.AF_INET: (), socket.AF_INET6: (0, 0)}
        return [(family, 0, 0, "", (ip, port, *tails[family])) for family, ip in found]

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", getaddrinfo)


def bound(host: str, port: int = 0, config: BrokerConfig = CONFIG) -> list[Any]:
    """Where ``bind`` listens."""

    async def story() -> list[Any]:
        sockets = await bind(host, port, config)
        names = [sock.getsockname() for sock in sockets]
        for sock in sockets:
            sock.close()
        return names

    return asyncio.run(story())


async def somebody_is_let_in() -> None:
    async with running() as server:
        client = await Client.connect(server)
        assert await client.alive()
        await client.close()


def test_every_address_of_a_host_has_the_same_port(monkeypatch: pytest.MonkeyPatch) -> None:
    both = (socket.AF_INET, "127.0.0.1"), (socket.AF_INET, "127.0.0.2")
    addresses(monkeypatch, *both, both[0])
    first, second = bound("localhost")
    assert (first[0], second[0]) == ("127.0.0.1", "127.0.0.2")
    assert first[1] == second[1]


def test_an_address_this_machine_does_not_have_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    addresses(monkeypatch, (socket.AF_INET, "192.0.2.1"), (socket.AF_INET, "127.0.0.1"))
    assert [name[0] for name in bound("localhost")] == ["127.0.0.1"]
    addresses(monkeypatch, (socket.AF_INET, "192.0.2.1"))
    with pytest.raises(OSError, match="assign"):
        bound("nowhere")


def test_a_port_that_is_free_on_one_address_only_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    addresses(monkeypatch, (socket.AF_INET, "127.0.0.1"), (socket.AF_INET, "127.0.0.2"))
    listen = listener._listen
    refusals = [1, 2]

    def refusing(family: Any, address: Any, config: Any) -> socket.socket:
        if address[0] == "127.0.0.2" and refusals:
            refusals.pop()
            raise OSError(errno.EADDRINUSE, "Address already in use")
        return listen(family, address, config)

    monkeypatch.setattr(listener, "_listen", refusing)
    assert len(bound("localhost")) == 2
    refusals[:] = range(100)
    with pytest.raises(OSError, match="in use"):
        bound("localhost")
    refusals.clear()
    free = bound("localhost")[0][1]
    refusals.append(1)
    with pytest.raises(OSError, match="in use"):
        bound("localhost", free)


def test_an_unknown_host_is_an_error() -> None:
    with pytest.raises(OSError, match=r"not known|resolution"):
        bound("no-such-host.invalid")


def test_no_host_is_every_interface() -> None:
    assert {name[0] for name in bound("")} <= {"0.0.0.0", "::"}


@pytest.mark.parametrize("size", [-1, 65_536])
def test_socket_buffers_are_as_configured(run: Run, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    setsockopt = socket.socket.setsockopt

    class Watched(socket.socket):
        def setsockopt(self, *arguments: Any) -> None:
            if arguments[1] in {socket.SO_RCVBUF, socket.SO_SNDBUF}:
                asked.append(arguments[1])
                assert arguments[2] == size
            setsockopt(self, *arguments)

    monkeypatch.setattr(socket, "socket", Watched)

    async def story() -> None:
        node = FakeCluster(socket_receive_buffer_bytes=size, socket_send_buffer_bytes=size)
        async with running(node) as server:
            client = await Client.connect(server)
            assert await client.alive()
            await client.close()

    run(story())
    assert set(asked) == (set() if size == -1 else {socket.SO_RCVBUF, socket.SO_SNDBUF})


def test_the_last_piece_of_an_answer_waits_for_no_acknowledgement(run: Run) -> None:
    """Without this Linux holds a small last piece back for 40 ms."""

    async def story() -> int:
        async with running() as server:
            client = await Client.connect(server)
            assert await client.alive()
            (connection,) = server._connections.open.values()
            sock = connection._transport.get_extra_info("socket")
            await client.close()
            return int(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

    assert run(story()) == 1


def test_one_connection_too_many_from_an_address_is_closed(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        async with running(FakeCluster(max_connections_per_ip=2)) as server:
            clients = [await Client.connect(server) for _ in range(3)]
            assert await clients[0].alive()
            assert await clients[1].alive()
            assert await clients[2].ended()
            for client in clients[1:]:
                await client.close()
            while server.connection_count == 2:
                assert await clients[0].alive()
            again = await Client.connect(server)
            assert await again.alive()
            await again.close()
            await clients[0].close()

    run(story())
    assert "closing a connection from 127.0.0.1: it has 2 already" in caplog.text


def test_when_all_places_are_taken_the_next_one_waits(run: Run) -> None:
    async def story() -> None:
        async with running(FakeCluster(max_connections=1)) as server:
            first, second = await Client.connect(server), await Client.connect(server)
            assert await first.alive()
            waiting = asyncio.create_task(second.alive())
            assert await first.alive()
            assert not waiting.done()
            await first.close()
            assert await waiting
            await second.close()

    run(story())


def failing_accept(monkeypatch: pytest.MonkeyPatch, *codes: int) -> None:
    """The next calls to accept fail like this, one each."""
    accept = socket.socket.accept
    left = list(codes)

    def failing(sock: socket.socket) -> Any:
        if left:
            raise OSError(left.pop(0), "Too many open files")
        return accept(sock)

    monkeypatch.setattr(socket.socket, "accept", failing)


def test_out_of_files_accepting_pauses_with_one_line(
    run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(listener, "_RETRY_SECONDS", 0.001)
    failing_accept(monkeypatch, *[errno.EMFILE] * 5)

    run(somebody_is_let_in())
    lines = [record.getMessage() for record in caplog.records if record.name == listener.__name__]
    assert lines == [
        "cannot accept more than the 0 connections there are: Too many open files",
        "accepting connections again",
    ]


@pytest.mark.parametrize("left", [SPARE_DESCRIPTORS + 5, 0])
def test_the_last_descriptors_are_not_for_connections(
    run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, left: int
) -> None:
    descriptors = [SPARE_DESCRIPTORS + 6]
    monkeypatch.setattr(listener, "descriptors_left", lambda _: descriptors[0])
    monkeypatch.setattr(listener, "_RETRY_SECONDS", 1_000)

    async def story() -> None:
        async with running(files_to_come=lambda: 5) as server:
            first = await Client.connect(server)
            assert await first.alive()
            descriptors[0] = left
            second = await Client.connect(server)
            waiting = asyncio.create_task(second.alive())
            assert await first.alive()
            assert not waiting.done()
            descriptors[0] = SPARE_DESCRIPTORS + 6
            await first.close()
            assert await waiting
            await second.close()

    run(story())
    assert f"1 connections there are: {left} file descriptors are left, and they are kept for files" in caplog.text


def test_where_nobody_knows_how_many_descriptors_are_left_all_are_let_in(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "descriptors_left", lambda _: None)

    run(somebody_is_let_in())


def test_a_connection_that_goes_makes_room_at_once(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "_RETRY_SECONDS", 1_000)

    async def story() -> None:
        async with running() as server:
            first = await Client.connect(server)
            assert await first.alive()
            failing_accept(monkeypatch, errno.EMFILE)
            second = await Client.connect(server)
            waiting = asyncio.create_task(second.alive())
            assert await first.alive()
            assert not waiting.done()
            await first.close()
            assert await waiting
            await second.close()

    run(story())


def test_who_left_before_being_accepted_is_passed_over(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    failing_accept(monkeypatch, errno.ECONNABORTED, errno.ECONNABORTED)

    run(somebody_is_let_in())


def fail_once(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """Making a ServerConnection of the next socket fails like this."""
    errors = [error]

    def failing(*arguments: Any) -> ServerConnection:
        if errors:
            raise errors.pop()
        return ServerConnection(*arguments)

    monkeypatch.setattr(listener, "ServerConnection", failing)


def test_who_left_while_being_taken_in_is_passed_over(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_once(monkeypatch, OSError(errno.EINVAL, "Invalid argument"))

    async def story() -> None:
        async with running(FakeCluster(max_connections=1)) as server:
            first = await Client.connect(server)
            assert await first.ended()
            await first.close()
            second = await Client.connect(server)
            assert await second.alive()
            await second.close()

    run(story())


def test_a_fault_of_the_acceptor_ends_the_server(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_once(monkeypatch, ZeroDivisionError("a bug"))

    async def story() -> None:
        server = Server(FakeCluster())
        tasks = []
        await server.serve(lambda _: tasks.append(asyncio.create_task(Client.connect(server))))
        (unexpected,) = server.unexpected_errors
        assert isinstance(unexpected.error, ZeroDivisionError)
        await (await tasks[0]).close()

    run(story())


def test_who_knocks_at_the_last_moment_is_closed_too(run: Run) -> None:
    async def story() -> None:
        async with running() as server:
            clients = [await Client.connect(server) for _ in range(5)]
        for client in clients:
            assert await client.ended()
            await client.close()

    run(story())


def test_out_of_files_halfway_those_before_are_taken_in(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "_RETRY_SECONDS", 1_000)
    accept = socket.socket.accept
    accepted: list[Any] = []

    def failing(sock: socket.socket) -> Any:
        if len(accepted) == 1:
            accepted.append(None)
            raise OSError(errno.EMFILE, "Too many open files")
        accepted.append(accept(sock))
        return accepted[-1]

    monkeypatch.setattr(socket.socket, "accept", failing)

    async def story() -> None:
        async with running() as server:
            first, second = await Client.connect(server), await Client.connect(server)
            assert await first.alive()
            assert await second.alive()
            for client in (first, second):
                await client.close()

    run(story())
