"""Malformed frames, invalid requests, and the ApiVersions handshake."""

import struct

from groupcoord.protocol.messages import (
    ApiVersionsRequest,
    DescribeClusterRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    OffsetFetchRequest,
)
from tests.conformance.actors import Client
from tests.conformance.codec import header, request_frame
from tests.conformance.members import Member, stable
from tests.conformance.settings import SLOW_START
from tests.conformance.story import Story, story


def framed(payload: bytes, length: int | None = None) -> bytes:
    """A frame that says its length, or another one."""
    return struct.pack(">i", len(payload) if length is None else length) + payload


def heartbeat(correlation_id: int = 1, version: int = 3) -> bytes:
    """A whole frame that is answered with UNKNOWN_MEMBER_ID."""
    request = HeartbeatRequest(group_id="hostile", generation_id=1, member_id="m")
    return request_frame(request, version, correlation_id, "c")


@story(sections=["wire"])
def every_version_of_api_versions(s: Story) -> None:
    """The handshake in every version, with valid, empty and invalid software names."""
    c = Client(s, "c", client_id="c")
    for version in range(5):
        c.asks(ApiVersionsRequest(client_software_name="stories", client_software_version="1.0"), version)
    for name, number in (
        ("", ""),
        ("ok", ""),
        ("", "1"),
        ("bad name", "1"),
        ("-bad", "1"),
        ("ok", "1 0"),
        ("a.b-c", "1.0-x"),
    ):
        for version in (3, 4):
            c.asks(ApiVersionsRequest(client_software_name=name, client_software_version=number), version)


@story(sections=["wire"])
def versions_of_api_versions_that_do_not_exist(s: Story) -> None:
    """An unsupported version gets a response in version 0, with the error and one range, so that a client can retry."""
    c = Client(s, "c")
    for version in (5, 99, 32767, -1):
        c.sends_bytes(
            framed(header(18, version, 7, "c", flexible=True) + b"\x04ab\x00"), does=f"sends ApiVersions v{version}"
        )
    c.sends_bytes(framed(header(18, 99, 7, "c", flexible=False)), does="sends ApiVersions v99 without a body")


@story(sections=["wire"])
def every_version_of_describe_cluster(s: Story) -> None:
    """The cluster in every version, brokers and controllers, with operations."""
    c = Client(s, "c")
    for version in range(3):
        c.asks(DescribeClusterRequest(include_cluster_authorized_operations=False), version)
        c.asks(DescribeClusterRequest(include_cluster_authorized_operations=True), version)
    for version in (1, 2):
        for kind in (1, 2, 3, 0):
            c.asks(DescribeClusterRequest(include_cluster_authorized_operations=False, endpoint_type=kind), version)


@story(sections=["wire"])
def frames_that_are_none(s: Story) -> None:
    """Negative, zero and huge lengths; other protocols; truncated headers: only that connection is closed."""
    c = Client(s, "c")
    witness = Member(s, "witness", group_id=s.group())
    stable(witness)
    for name, data in {
        "a length of -1": framed(b"", -1),
        "the smallest length": framed(b"", -2147483648),
        "a length of zero": framed(b""),
        "a length of two gigabytes": framed(b"", 2147483647),
        "a length above 100 MiB": framed(b"", 104857601),
        "one byte": framed(b"\x00"),
        "an API key only": framed(b"\x00\x0c"),
        "a header without a client id": framed(struct.pack(">hhi", 12, 3, 1)),
        "HTTP": b"GET / HTTP/1.1\r\nHost: kafka\r\n\r\n",
        "TLS": bytes.fromhex("16030100c8010000c40303") + b"\x01" * 32,
        "zeros": b"\x00" * 64,
        "ones": b"\xff" * 64,
    }.items():
        c.sends_bytes(data, does=f"sends {name}")
        witness.heartbeats()


@story(sections=["wire"], settings=SLOW_START)
def frames_above_the_limit(s: Story) -> None:
    """socket.request.max.bytes is 20000 here: a frame of that size is read, one byte more closes the connection."""
    c = Client(s, "c")
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    frame = request_frame(request, 3, 1, "c")
    for size in (20_000, 20_001):
        padded = frame[4:] + b"\x00" * (size - len(frame) + 4)
        c.sends_bytes(
            framed(padded), does=f"sends a frame of {size} bytes", shown=f"a Heartbeat and zeros, {size} bytes"
        )
        c.sends_bytes(framed(b"", size), does=f"says {size} bytes and sends none", within_ms=300)


@story(sections=["wire"])
def apis_and_versions_that_do_not_exist(s: Story) -> None:
    """Unknown APIs and versions beyond either end close the connection without a response."""
    c = Client(s, "c")
    body = heartbeat()[4 + 8 :]
    for key in (-1, 93, 999, 32767, 4, 5, 6, 7):
        c.sends_bytes(framed(struct.pack(">hhi", key, 0, 1) + body), does=f"sends API {key}")
    for key, version in (
        (12, 5),
        (12, -1),
        (11, 10),
        (8, 1),
        (8, 11),
        (9, 0),
        (1, 3),
        (0, 2),
        (0, 14),
        (3, 14),
        (19, 1),
        (47, 1),
    ):
        c.sends_bytes(framed(struct.pack(">hhi", key, version, 1) + body), does=f"sends version {version} of API {key}")


@story(sections=["wire"])
def requests_that_are_cut_or_too_long(s: Story) -> None:
    """A truncated body closes the connection; bytes after a body are ignored."""
    c = Client(s, "c")
    whole = heartbeat()[4:]
    for size in (8, 10, 11, 15, len(whole) - 3, len(whole) - 1):
        c.sends_bytes(framed(whole[:size]), does=f"sends the first {size} of {len(whole)} bytes")
    c.sends_bytes(framed(whole + b"more"), does="sends four bytes too many")
    c.sends_bytes(framed(heartbeat(version=4)[4:] + b"more"), does="sends four bytes too many in a flexible version")
    c.sends_bytes(framed(whole, len(whole) - 5), does="says five bytes fewer than it sends", within_ms=500)


@story(sections=["wire"])
def lengths_and_counts_that_lie(s: Story) -> None:
    """Strings, arrays and tags with lengths that are too large or negative; text that is not UTF-8."""
    c = Client(s, "c")
    start = header(12, 3, 1, "c", flexible=False)
    flexible = header(12, 4, 1, "c", flexible=True)
    generation_and_member = struct.pack(">ih", 1, 1) + b"m" + struct.pack(">h", -1)
    for name, payload in {
        "a client id of -2 bytes": struct.pack(">hhih", 12, 3, 1, -2) + heartbeat()[4 + 11 :],
        "a client id that is too long": struct.pack(">hhih", 12, 3, 1, 3000) + b"c",
        "a client id that is no text": struct.pack(">hhih", 12, 3, 1, 2) + b"\xff\xfe" + heartbeat()[4 + 11 :],
        "a null group id": start + struct.pack(">hih", -1, 1, 1) + b"m" + struct.pack(">h", -1),
        "a group id that is too long": start + struct.pack(">h", 3000) + b"g",
        "a group id of -5 bytes": start + struct.pack(">h", -5) + b"g",
        "a group id that is no text": start + struct.pack(">h", 2) + b"\xff\xfe" + generation_and_member,
        "a null group id, flexible": flexible + b"\x00" + struct.pack(">i", 1) + b"\x02m\x00\x00",
        "a string length that never ends": flexible + b"\xff" * 12,
        "a string of two gigabytes": flexible + b"\xff\xff\xff\xff\x07",
        "an unknown tag": flexible + b"\x02g" + struct.pack(">i", 1) + b"\x02m\x00" + b"\x01\x63\x02hi",
        "an unknown tag twice": flexible + b"\x02g" + struct.pack(">i", 1) + b"\x02m\x00" + b"\x02\x63\x01a\x63\x01b",
        "tags in falling order": flexible + b"\x02g" + struct.pack(">i", 1) + b"\x02m\x00" + b"\x02\x63\x01a\x62\x01b",
        "a tag that is too long": flexible + b"\x02g" + struct.pack(">i", 1) + b"\x02m\x00" + b"\x01\x63\x7fhi",
        "more tags than there are": flexible + b"\x02g" + struct.pack(">i", 1) + b"\x02m\x00" + b"\x05\x63\x01a",
        "an unknown tag in the header": header(12, 4, 1, "c", flexible=False) + b"\x01\x63\x02hi"
        + b"\x02g" + struct.pack(">i", 1) + b"\x02m\x00\x00",
    }.items():  # fmt: skip
        c.sends_bytes(framed(payload), does=f"sends {name}")
    describe = header(15, 0, 1, "c", flexible=False)
    for name, payload in {
        "an array of two thousand million": describe + struct.pack(">i", 2_000_000_000),
        "an array of -2": describe + struct.pack(">i", -2),
        "a null array": describe + struct.pack(">i", -1),
        "an array of one that is missing": describe + struct.pack(">i", 1),
    }.items():
        c.sends_bytes(framed(payload), does=f"sends {name}")


@story(sections=["wire"])
def requests_one_after_the_other(s: Story) -> None:
    """Three requests in one packet are handled in order; one that is sent byte by byte is handled normally."""
    c = Client(s, "c")
    step = s.begin("c", "sends three requests in one packet")
    line = s.line()
    line.wire.send(heartbeat(1) + heartbeat(2, 0) + heartbeat(-3, 4))
    step["gets"] = [repr(line.wire.receive(3000))[2:-1] for _ in range(3)]
    s.end()
    step = s.begin("c", "sends a request byte by byte")
    for byte in heartbeat(5):
        line.wire.send(bytes([byte]))
    step["gets"] = repr(line.wire.receive(3000))[2:-1]
    s.end()
    c.sends_bytes(heartbeat() + framed(b"", -1), does="sends a good request and a bad frame")
    c.sends_bytes(heartbeat() + heartbeat()[:9], does="sends a good request and half of another")


@story(sections=["wire"])
def a_parked_request_holds_up_its_connection(s: Story) -> None:
    """One request at a time: requests after a waiting JoinGroup on the same connection wait for its response."""
    group = s.group()
    a, b = Member(s, "a", group_id=group), Member(s, "b", group_id=group)
    stable(a, b)
    pending = a.joins_parked(does="rejoins and waits")
    pending.line.wire.send(
        request_frame(HeartbeatRequest(group_id=group, generation_id=2, member_id=a.member_id), 4, 999, "a")
    )
    step = s.begin("a", "sends a Heartbeat behind it on the same connection")
    frame = pending.line.wire.receive(300)
    step["gets"] = "no answer within 300 ms" if frame is None else repr(frame)
    s.end()
    b.joins(does="rejoins")
    a.is_answered()
    step = s.begin("a", "is answered: Heartbeat")
    step["gets"] = repr(pending.line.wire.receive(3000))[2:-1]
    s.end()


@story(sections=["wire"])
def correlation_ids_come_back(s: Story) -> None:
    """Any correlation id is returned, including negative ones; a null client id is allowed."""
    c = Client(s, "c")
    for number in (0, -1, 2147483647, -2147483648):
        c.sends_bytes(heartbeat(number), does=f"says correlation id {number}")
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    c.sends_bytes(request_frame(request, 4, 1, None), does="says no client id")


@story(sections=["wire"])
def long_names(s: Story) -> None:
    """Group ids, member ids and client ids of 30000 characters are accepted, and so are unusual characters."""
    c = Client(s, "c", client_id="c" * 30_000)
    long = "x" * 30_000
    c.asks(HeartbeatRequest(group_id=long, generation_id=1, member_id=long), 4)
    c.asks(OffsetFetchRequest(group_id="\u0000\ud7ff\U0001f642", topics=None), 7)
    join = JoinGroupRequest(group_id="", session_timeout_ms=10_000, member_id=long, protocol_type=long, protocols=())
    c.asks(join, 9)
