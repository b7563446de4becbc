"""Relays between brokers: what passes, and what waits while they are cut."""

import socket
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.real_kafka.relay import Relay

OTHER_HOST = "127.0.0.2"


@pytest.fixture
def server() -> Iterator[socket.socket]:
    """Somebody who listens at 127.0.0.1."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(60)
        try:
            socket.create_server((OTHER_HOST, 0)).close()
        except OSError:
            pytest.skip(f"{OTHER_HOST} is not an address of this machine, as on macOS")
        yield listening


def port_of(server: socket.socket) -> int:
    port: int = server.getsockname()[1]
    return port


def connected(port: int) -> socket.socket:
    return socket.create_connection((OTHER_HOST, port), 60)


def test_both_sides_hear_each_other(server: socket.socket) -> None:
    with closing(Relay(OTHER_HOST, port_of(server))), connected(port_of(server)) as client, server.accept()[0] as other:
        client.sendall(b"ping")
        assert other.recv(4) == b"ping"
        other.sendall(b"pong")
        assert client.recv(4) == b"pong"
        other.close()
        assert client.recv(4) == b""


def test_what_is_sent_into_a_cut_arrives_when_it_is_mended(server: socket.socket) -> None:
    with closing(Relay(OTHER_HOST, port_of(server))) as relay, connected(port_of(server)) as client:
        other, _ = server.accept()
        with other:
            relay.cut()
            client.sendall(b"ping")
            other.setblocking(False)
            with pytest.raises(BlockingIOError):
                other.recv(4)
            relay.mend()
            other.settimeout(60)
            assert other.recv(4) == b"ping"


def test_who_connects_through_a_cut_is_accepted_and_hears_nothing(server: socket.socket) -> None:
    with closing(Relay(OTHER_HOST, port_of(server))) as relay:
        relay.cut()
        with connected(port_of(server)) as client:
            server.setblocking(False)
            with pytest.raises(BlockingIOError):
                server.accept()
            relay.mend()
            server.settimeout(60)
            with server.accept()[0] as other:
                other.sendall(b"late")
                assert client.recv(4) == b"late"


def test_who_connects_while_nobody_listens_is_hung_up_on(server: socket.socket) -> None:
    port = port_of(server)
    with closing(Relay(OTHER_HOST, port)):
        server.close()
        with connected(port) as client:
            assert client.recv(1) == b""


def test_a_closed_relay_closes_its_connections(server: socket.socket) -> None:
    relay = Relay(OTHER_HOST, port_of(server))
    with connected(port_of(server)) as client, server.accept()[0] as other:
        relay.close()
        assert (client.recv(1), other.recv(1)) == (b"", b"")
        with pytest.raises(ConnectionRefusedError):
            connected(port_of(server))
