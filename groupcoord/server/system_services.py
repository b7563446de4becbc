"""Operating system services: the clock, random ids, file descriptor limits, and the text form of addresses."""

import os
import socket
import struct
import time
import uuid
from collections.abc import Callable

NowMs = Callable[[], int]
"""Returns the current time in milliseconds since 1970; never decreases."""

SecondsUntil = Callable[[int], float | None]
"""In how many seconds of the event loop a clock will reach that time; None if a test moves the clock."""

PLENTY_OF_DESCRIPTORS = 65_536

SPARE_DESCRIPTORS = 32
"""Descriptors that are left free for short use, such as an import."""

_READINGS = 10
"""How often a new clock compares the wall clock with the monotonic clock."""


def wall_clock() -> NowMs:
    """A clock that starts at the wall clock's time and then follows the monotonic clock.

    A change of the machine's clock must not lengthen sessions. Kafka measures timers with the monotonic clock, too, and stamps
    records with the wall clock; one clock for both keeps them consistent.
    """
    monotonic_ns, origin_ns = time.monotonic_ns, monotonic_origin_ns()
    return lambda: (monotonic_ns() + origin_ns) // 1_000_000


def monotonic_origin_ns() -> int:
    """The wall clock's time (nanoseconds since 1970) at which the monotonic clock was 0."""
    # If the thread is interrupted between the two readings, the difference is too small: the largest is the true one.
    return max(time.time_ns() - time.monotonic_ns() for _ in range(_READINGS))


class SystemRandomSource:
    """Random ids that cannot be guessed, for a cluster that serves real clients; see ``cluster_core.RandomSource``."""

    def uuid(self) -> uuid.UUID:
        """A random id whose text in Kafka's form does not start with a dash.

        Such an id would look like a command-line option, so Kafka draws another one (``Uuid.randomUuid``).
        """
        while (drawn := uuid.uuid4()).bytes[0] >> 2 == 0b111110:
            pass
        return drawn

    def session_id(self) -> int:
        """A random int32 above 0."""
        while (drawn := int.from_bytes(os.urandom(4)) >> 1) == 0:
            pass
        return drawn

    def next_int(self, bound: int) -> int:
        """A random int from 0 below ``bound``."""
        return int.from_bytes(os.urandom(8)) % bound


def raise_descriptor_limit() -> int | None:
    """Raise the soft limit of open files to the hard limit, at most ``PLENTY_OF_DESCRIPTORS``; returns the limit, None without
    one.

    The usual soft limit is 1,024, which a test with a thousand clients reaches; raising it needs no privilege. If the system
    refuses, the old limit stays, and the server logs an error when it runs out.
    """
    try:
        import resource  # noqa: PLC0415 - Unix only
    except ImportError:
        return None
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = PLENTY_OF_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, PLENTY_OF_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):  # macOS allows less than its hard limit says
            return soft
        return wanted
    return soft


def descriptors_left(descriptor: int) -> int | None:
    """About how many more files and connections can be opened; None if there is no limit, or it is unknown.

    A new descriptor gets the lowest free number (POSIX), which a duplicate of ``descriptor``, any open one, shows. If
    connections are accepted only while more than N are left, the N highest ones stay free for other uses: log files, and
    modules that are imported by the first request that needs them.
    """
    try:
        import resource  # noqa: PLC0415 - Unix only
    except ImportError:
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return None
    try:
        copy = os.dup(descriptor)
    except OSError:
        return 0
    os.close(copy)
    return soft - copy


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
