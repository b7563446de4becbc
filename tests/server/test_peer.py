"""Addresses are written as Java writes them."""

import pytest

from groupcoord.server.peer import Software, client_host, host_and_port


@pytest.mark.parametrize(
    ("ip", "java"),
    [
        ("127.0.0.1", "/127.0.0.1"),
        ("::1", "/0:0:0:0:0:0:0:1"),
        ("2001:db8::a:0:ff", "/2001:db8:0:0:0:a:0:ff"),
        ("fe80::1%eth0", "/fe80:0:0:0:0:0:0:1%eth0"),
        ("::ffff:10.1.2.3", "/10.1.2.3"),
    ],
)
def test_client_host(ip: str, java: str) -> None:
    assert client_host(ip) == java


def test_host_and_port() -> None:
    assert host_and_port("localhost", 9092) == "localhost:9092"
    assert host_and_port("::1", 9092) == "[::1]:9092"


def test_software_prints_as_name_and_version() -> None:
    assert str(Software("apache-kafka-java", "4.3.1")) == "apache-kafka-java 4.3.1"
    assert str(Software()) == "unknown unknown"
