"""Which listeners are served, and what clients are told."""

import pytest

from groupcoord.config.listeners import (
    Endpoint,
    advertised_endpoints,
    check_inter_broker_listener,
    check_ports,
    kafka_text,
    kafka_text_of_protocols,
    parse_endpoint,
    parse_endpoints,
    parse_protocols,
    rewritten,
    served_endpoints,
)

PROTOCOLS = {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT", "BROKER": "PLAINTEXT", "TLS": "SSL"}


def serve(*listeners: str) -> list[str]:
    served = served_endpoints(parse_endpoints(listeners), controllers=("controller",), protocols=PROTOCOLS)
    return list(map(str, served))


def advertise(served: tuple[str, ...], *advertised: str) -> list[str]:
    told = advertised_endpoints(parse_endpoints(served), parse_endpoints(advertised), controllers=("controller",))
    return list(map(str, told))


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


@pytest.mark.parametrize(
    ("texts", "fault"),
    [
        (["A://h:1", "x"], "Unable to parse x to a broker endpoint"),
        (["A://h:2147483648"], 'For input string: "2147483648"'),
        (["://h:1"], "The provided listener name is null or empty string"),
        (["c://[h:1", "x"], "No security protocol defined for listener C"),
        (["A://h:1", "a://h:2"], "Each listener must have a different name, listeners: [A://h:1, a://h:2]"),
    ],
)
def test_what_kafka_says_of_listeners(texts: list[str], fault: str) -> None:
    assert kafka_text(texts, {"A"}) == f"Error creating broker listeners from '[{', '.join(texts)}]': {fault}"
    assert kafka_text(["A://h:1"], {"A"}) == ""


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "A:PLAINTEXT,B",
            "Error parsing configuration property 'listener.security.protocol.map': begin 0, end -1, length 1",
        ),
        ("A:X,A:Y,,", "Invalid security protocol `Y` defined in listener.security.protocol.map"),
        (":X", "The provided listener name is null or empty string"),
    ],
)
def test_what_kafka_says_of_protocols(text: str, says: str) -> None:
    assert kafka_text_of_protocols(text) == says


def test_all_listeners_but_a_controllers_are_served() -> None:
    """Deviation (scope-of-a-stand-in): in plain text."""
    assert serve("CONTROLLER://:9093", "PLAINTEXT://:9092", "broker://:9094") == ["PLAINTEXT://:9092", "BROKER://:9094"]


@pytest.mark.parametrize(
    ("listener", "reason"),
    [
        ("CONTROLLER://:9093", "must be at least one broker advertised listener"),
        (
            "OTHER://:9092",
            "No security protocol defined for listener OTHER; listener.security.protocol.map=OTHER:PLAINTEXT",
        ),
        ("TLS://:9092", "TLS speaks SSL; only PLAINTEXT can be served"),
    ],
)
def test_a_listener_that_cannot_be_served_is_refused(listener: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        serve(listener)
    if not listener.startswith("CONTROLLER"):
        with pytest.raises(ValueError, match=reason):
            serve("PLAINTEXT://:1", listener)


def test_each_listener_has_a_name_of_its_own() -> None:
    with pytest.raises(ValueError, match=r"must have a different name, listeners: \[A://:1, a://:2\]"):
        parse_endpoints(("A://:1", "a://:2"))


@pytest.mark.parametrize(
    "listeners",
    [("A://:1", "B://:2"), ("A://:0", "B://:0"), ("A://127.0.0.1:1", "B://[::1]:1"), ("A://[::]:1", "B://0.0.0.0:1")],
)
def test_listeners_on_ports_of_their_own(listeners: tuple[str, ...]) -> None:
    check_ports(parse_endpoints(listeners))


@pytest.mark.parametrize(
    ("listeners", "reason"),
    [
        (("A://:1", "B://host:1"), r"Each listener must have a different port, listeners: \[A://:1, B://host:1\]"),
        (
            ("A://1.2.3.4:1", "B://1.2.3.5:1"),
            "on the same port then one needs to be IPv4 and the other IPv6, .*, port: 1",
        ),
        (("A://1.2.3.4:1", "B://[::1]:1", "C://:1"), "one needs to be IPv4 and the other IPv6"),
        (("A://1.2.3.4:1", "B://:1"), "one needs to be IPv4 and the other IPv6"),
        (("A://1.2.3.4:1", "B://[::1]:1", "C://1.2.3.5:1"), "unless exactly one listener has an IPv4 address"),
    ],
)
def test_listeners_that_want_the_same_port_are_refused(listeners: tuple[str, ...], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        check_ports(parse_endpoints(listeners))


def test_listeners_leave_room_for_every_broker() -> None:
    listeners = parse_endpoints(("A://:9094", "B://:9092", "C://:0"))
    check_ports(listeners, brokers=2)
    with pytest.raises(ValueError, match=r"the 3 brokers listen .* B://:9092 and A://:9094 would meet; leave 3 ports"):
        check_ports(listeners, brokers=3)


@pytest.mark.parametrize(
    ("host", "told"), [("10.0.0.1", "10.0.0.1"), ("", "localhost"), ("0.0.0.0", "localhost"), ("::", "localhost")]
)
def test_clients_are_told_an_address_they_can_use(host: str, told: str) -> None:
    assert advertised_endpoints([Endpoint("A", host, 5)], None) == (Endpoint("A", told, 5),)


def test_what_is_advertised_for_each_listener_is_told() -> None:
    served = ("A://0.0.0.0:5", "B://:6")
    assert advertise(served, "B://b:1", "A://a:2", "CONTROLLER://c:3") == ["A://a:2", "B://b:1"]
    assert advertise(served, "A://:0", "B://[::1]:0") == ["A://localhost:5", "B://[::1]:6"]
    assert advertise(served, "B://b:1") == ["None", "B://b:1"]


@pytest.mark.parametrize(
    ("advertised", "reason"),
    [
        (("A://0.0.0.0:1",), "cannot use the nonroutable meta-address 0.0.0.0. Use a routable IP address."),
        (("A://a:1", "C://c:1"), "equal to or a subset of the ones defined in listeners. Found A,C. .* are A,B"),
    ],
)
def test_an_address_nobody_can_use_is_refused(advertised: tuple[str, ...], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        advertise(("A://a:5", "B://b:6"), *advertised)


def test_brokers_would_speak_by_a_listener_that_is_advertised() -> None:
    advertised = (*parse_endpoints(("A://a:1", "B://b:1")), None)
    check_inter_broker_listener("a", advertised)
    with pytest.raises(
        ValueError, match=r"must be a listener name defined in advertised.listeners. The valid .* are A,B"
    ):
        check_inter_broker_listener("PLAINTEXT", advertised)


def test_endpoints_are_rewritten_in_their_places() -> None:
    assert rewritten(("C://:3", "a://:1"), [Endpoint("A", "h", 2)]) == "C://:3,A://h:2"
