"""Which listener is served, and what clients are told."""

import pytest

from groupcoord.config.listeners import Endpoint, advertised_endpoint, parse_endpoint, parse_protocols, served_endpoint

PROTOCOLS = {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT", "BROKER": "PLAINTEXT", "TLS": "SSL"}


def serve(*listeners: str, between_brokers: str | None = None) -> Endpoint:
    return served_endpoint(listeners, controllers=("CONTROLLER",), between_brokers=between_brokers, protocols=PROTOCOLS)


@pytest.mark.parametrize(
    ("text", "endpoint"),
    [
        ("PLAINTEXT://localhost:9092", ("PLAINTEXT", "localhost", 9092)),
        ("plaintext://:0", ("PLAINTEXT", "", 0)),
        ("A://[::1]:1", ("A", "::1", 1)),
        ("A://my_host.example-1:65535", ("A", "my_host.example-1", 65535)),
    ],
)
def test_an_endpoint_is_read(text: str, endpoint: tuple[str, str, int]) -> None:
    assert parse_endpoint(text) == Endpoint(*endpoint)


@pytest.mark.parametrize("text", ["localhost:9092", "A://localhost", "A://::1:9092", "A://b c:1", ""])
def test_what_is_no_endpoint_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="NAME://HOST:PORT"):
        parse_endpoint(text)


@pytest.mark.parametrize("port", [65536, -1])
def test_a_port_has_bounds(port: int) -> None:
    with pytest.raises(ValueError, match="between 0 and 65535"):
        parse_endpoint(f"A://localhost:{port}")


def test_an_endpoint_is_written_as_it_is_read() -> None:
    for text in ("PLAINTEXT://localhost:9092", "A://[::1]:1", "B://:0"):
        assert str(parse_endpoint(text)) == text


def test_protocols_are_read() -> None:
    assert parse_protocols("a:PLAINTEXT, B : ssl,") == {"A": "PLAINTEXT", "B": "SSL"}
    with pytest.raises(ValueError, match="LISTENER:PROTOCOL"):
        parse_protocols("A")
    with pytest.raises(ValueError, match="FOO is not a security protocol; PLAINTEXT, SASL_PLAINTEXT"):
        parse_protocols("A:FOO")


def test_the_first_listener_for_clients_is_served() -> None:
    """Deviation (scope-of-a-stand-in)."""
    assert serve("CONTROLLER://:9093", "PLAINTEXT://:9092", "BROKER://:9094").port == 9092
    assert serve("BROKER://:9094", "PLAINTEXT://:9092", between_brokers="broker").port == 9092
    assert serve("BROKER://:9094", "CONTROLLER://:9093", between_brokers="BROKER").port == 9094


@pytest.mark.parametrize(
    ("listener", "reason"),
    [
        ("CONTROLLER://:9093", "no listener for clients"),
        ("OTHER://:9092", "listener.security.protocol.map does not name OTHER"),
        ("TLS://:9092", "TLS speaks SSL; only PLAINTEXT can be served"),
    ],
)
def test_a_listener_that_cannot_be_served_is_refused(listener: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        serve(listener)


@pytest.mark.parametrize(
    ("host", "told"), [("10.0.0.1", "10.0.0.1"), ("", "localhost"), ("0.0.0.0", "localhost"), ("::", "localhost")]
)
def test_clients_are_told_an_address_they_can_use(host: str, told: str) -> None:
    assert advertised_endpoint(Endpoint("A", host, 5), None) == Endpoint("A", told, 5)


def test_what_is_advertised_for_the_served_listener_is_told() -> None:
    served = Endpoint("A", "0.0.0.0", 5)
    assert advertised_endpoint(served, ("B://b:1", "A://a:2")) == Endpoint("A", "a", 2)
    assert advertised_endpoint(served, ("A://:0",)) == Endpoint("A", "localhost", 5)


@pytest.mark.parametrize(
    ("advertised", "reason"),
    [("A://0.0.0.0:1", "no address that a client could connect to"), ("B://b:1", "A is what is served, and only B")],
)
def test_an_address_nobody_can_use_is_refused(advertised: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        advertised_endpoint(Endpoint("A", "a", 5), (advertised,))
