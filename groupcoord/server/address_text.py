"""Addresses as text: in Java's form, and as ``host:port``."""

import socket
import struct


def java_host_text(ip: str) -> str:
    """``ip`` as Java prints an address without a host name: ``/127.0.0.1``, ``/0:0:0:0:0:0:0:1``.

    DescribeGroups has this text. An IPv4 address mapped into IPv6 is printed as IPv4. Source: ``InetAddress.toString`` and
    ``Inet6Address.getHostAddress``.
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
