"""How addresses are written."""

import pytest

from groupcoord.server.address_text import host_and_port, java_host_text


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
    assert java_host_text(ip) == java


def test_host_and_port() -> None:
    assert host_and_port("localhost", 9092) == "localhost:9092"
    assert host_and_port("::1", 9092) == "[::1]:9092"
