"""Who is at the other end of a connection: its address as Kafka writes it, and the software it says it is."""

import socket
import struct
from typing import NamedTuple


class Software(NamedTuple):
    """Name and version of a client library, as ApiVersions v3+ brings them (KIP-511)."""

    name: str = "unknown"
    version: str = "unknown"

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


def client_host(ip: str) -> str:
    """``ip`` as Java writes an address that was never looked up: ``/127.0.0.1``, ``/0:0:0:0:0:0:0:1``.

    DescribeGroups shows this text, and members are told apart by it in logs. An IPv4 address inside of an IPv6 one is
    written as what it is. Source: ``InetAddress.toString`` and ``Inet6Address.getHostAddress``.
    """
    if ":" not in ip:
        return f"/{ip}"
    address, mark, scope = ip.partition("%")
    packed = socket.inet_pton(socket.AF_INET6, address)
    if packed.startswith(b"\0" * 10 + b"\xff\xff"):
        return "/" + socket.inet_ntop(socket.AF_INET, packed[12:])
    return "/" + ":".join(f"{group:x}" for group in struct.unpack(">8H", packed)) + mark + scope


def host_and_port(host: str, port: int) -> str:
    """``host:port``, with the brackets that an IPv6 address needs."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
