"""Reads Kafka frames from a network capture (pcap or pcapng): reassembles TCP streams, and splits them into frames.

dpkt reads the file and the packet headers. A stream ends where its bytes are missing in the capture, because the start of the
next frame is then unknown.
"""

import ipaddress
import struct
from collections.abc import Collection, Iterator
from typing import Any, BinaryIO, NamedTuple

import dpkt

_SEQUENCES = 1 << 32
_HALF = 1 << 31
_LINK_LAYERS: dict[int, Any] = {
    dpkt.pcap.DLT_EN10MB: dpkt.ethernet.Ethernet,
    dpkt.pcap.DLT_LINUX_SLL: dpkt.sll.SLL,
    dpkt.pcap.DLT_LINUX_SLL2: dpkt.sll2.SLL2,
    dpkt.pcap.DLT_NULL: dpkt.loopback.Loopback,
    dpkt.pcap.DLT_LOOP: dpkt.loopback.Loopback,
}
_RAW_IP = (12, 101, 228, 229)  # DLT_RAW as BSD and Linux number it, LINKTYPE_RAW, and those of one version alone
_TLS_HANDSHAKE = b"\x16\x03"


class CaptureError(Exception):
    """The file is not a readable capture; the text tells why."""


class Endpoints(NamedTuple):
    """Client and server of a connection: addresses as ``host:port``."""

    client: str
    server: str


class CapturedFrame(NamedTuple):
    """A frame with its length; ``at_s`` is the time of its last byte, in seconds since 1970."""

    at_s: float
    connection: int
    endpoints: Endpoints
    is_request: bool
    data: bytes


class CaptureProblem(NamedTuple):
    """A part of the capture that cannot be read."""

    reason: str


class _Packet(NamedTuple):
    at_s: float
    source: tuple[str, int]
    target: tuple[str, int]
    tcp: Any
    payload: bytes


class _Stream:
    """The bytes that one side of a connection has sent, in order; ``marks`` have the capture times of positions."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.marks: list[tuple[int, float]] = []
        self.next: int | None = None
        self.early: list[_Packet] = []

    def add(self, packet: _Packet) -> None:
        """Add a packet; retransmissions are dropped, early packets wait."""
        sequence = packet.tcp.seq
        if packet.tcp.flags & dpkt.tcp.TH_SYN:
            self.next = (sequence + 1) % _SEQUENCES
        elif packet.payload:
            if self.next is None:
                self.next = sequence
            self.early.append(packet)
            while self._take_one():
                pass

    def _take_one(self) -> bool:
        for packet in self.early:
            ahead = (packet.tcp.seq - (self.next or 0) + _HALF) % _SEQUENCES - _HALF
            if ahead <= 0:
                self.early.remove(packet)
                new = packet.payload[-ahead:]
                if new:
                    self.data += new
                    # Early bytes could not be used before the missing ones came.
                    before = self.marks[-1][1] if self.marks else packet.at_s
                    self.marks.append((len(self.data), max(before, packet.at_s)))
                    self.next = ((self.next or 0) + len(new)) % _SEQUENCES
                return True
        return False

    def frames(self) -> Iterator[tuple[float, bytes]]:
        """The frames, each with the time of its last byte; the last one may be incomplete."""
        at = 0
        marks = iter(self.marks)
        there, at_s = 0, 0.0
        while at < len(self.data):
            end = min(at + 4 + int.from_bytes(self.data[at : at + 4]), len(self.data))
            while there < end:
                there, at_s = next(marks)
            yield at_s, bytes(self.data[at:end])
            at = end


class _Connection:
    def __init__(self, number: int, client: tuple[str, int], server: tuple[str, int]) -> None:
        self.number = number
        self.endpoints = Endpoints(_text(client), _text(server))
        self.client = client
        self.requests, self.responses = _Stream(), _Stream()

    def problems(self) -> Iterator[CaptureProblem]:
        for who, stream in (("the client", self.requests), ("the broker", self.responses)):
            if stream.early:
                missing = min((packet.tcp.seq - (stream.next or 0)) % _SEQUENCES for packet in stream.early)
                yield CaptureProblem(
                    f"{self.name}: {missing} bytes that {who} sent behind byte {len(stream.data)} are not in the capture; "
                    "what followed cannot be read"
                )

    @property
    def name(self) -> str:
        return f"connection {self.number}, {self.endpoints.client} to {self.endpoints.server}"

    def is_tls(self) -> bool:
        return self.requests.data.startswith(_TLS_HANDSHAKE)


def read_capture(file: BinaryIO, ports: Collection[int] = ()) -> Iterator[CapturedFrame | CaptureProblem]:
    """The frames of all connections in order of time, then the problems.

    The server is the side with one of ``ports``, else the one that received the SYN, else the one with the lower port. Raises
    CaptureError for a file that is not a capture.
    """
    counted = _CountingFile(file)
    connections: dict[frozenset[tuple[str, int]], _Connection] = {}
    every: list[_Connection] = []
    problems: list[CaptureProblem] = []
    for packet in _packets(counted, problems):
        if ports and packet.source[1] not in ports and packet.target[1] not in ports:
            continue
        key = frozenset((packet.source, packet.target))
        connection = connections.get(key)
        is_new = packet.tcp.flags & (dpkt.tcp.TH_SYN | dpkt.tcp.TH_ACK) == dpkt.tcp.TH_SYN
        if connection is None or (is_new and connection.requests.data):
            connection = connections[key] = _Connection(len(every) + 1, *_sides(packet, is_new, ports))
            every.append(connection)
        stream = connection.requests if packet.source == connection.client else connection.responses
        stream.add(packet)
    for connection in every:
        if connection.is_tls():
            problems.append(CaptureProblem(f"{connection.name}: this is TLS, which cannot be read"))
            connection.requests, connection.responses = _Stream(), _Stream()
    frames = [
        CapturedFrame(at_s, connection.number, connection.endpoints, is_request, data)
        for connection in every
        for is_request, stream in ((True, connection.requests), (False, connection.responses))
        for at_s, data in stream.frames()
    ]
    yield from sorted(frames, key=lambda frame: frame.at_s)
    for connection in every:
        yield from connection.problems()
    yield from problems


def _sides(packet: _Packet, is_new: bool, ports: Collection[int]) -> tuple[tuple[str, int], tuple[str, int]]:
    """(client, server) of a connection, from its first packet."""
    source, target = packet.source, packet.target
    answers_a_syn = packet.tcp.flags & dpkt.tcp.TH_SYN and not is_new
    is_from_client = target[1] in ports if ports else is_new or (not answers_a_syn and target[1] < source[1])
    return (source, target) if is_from_client else (target, source)


class _CountingFile:
    """Counts reads from a file, because dpkt does not tell whether the file ends inside a packet."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.position = self.reads = 0
        self.short = (0, 0)  # the first incomplete read: its number, the missing bytes

    def read(self, size: int) -> bytes:
        data = self.file.read(max(size, 0))
        self.position += len(data)
        self.reads += 1
        if len(data) < size and not self.short[1]:
            self.short = self.reads, size - len(data)
        return data

    def seek(self, position: int) -> None:
        self.file.seek(position)
        self.position, self.reads, self.short = position, 0, (0, 0)

    def is_cut(self, reader: Any) -> bool:
        """Was a read incomplete? At the end of a file the read of the next packet header is expected to be.

        Packets are read in pairs, their header and then the rest, after one read for the header of a pcap file, two for that of
        a pcapng file.
        """
        number, missing = self.short
        is_pcap = isinstance(reader, dpkt.pcap.Reader)
        is_header = (number - (1 if is_pcap else 2)) % 2 == 1
        return not (is_header and missing == (16 if is_pcap else 8))


def _packets(file: _CountingFile, problems: list[CaptureProblem]) -> Iterator[_Packet]:
    try:
        reader = dpkt.pcap.UniversalReader(file)
    except (ValueError, dpkt.UnpackError):
        raise CaptureError("neither pcap nor pcapng") from None
    link = reader.datalink()
    layer = _LINK_LAYERS.get(link)
    if layer is None and link not in _RAW_IP:
        known = "Ethernet, Linux cooked (any), loopback and raw IP"
        raise CaptureError(f"packets of link type {link} cannot be read; those that can are {known}")
    is_damaged = False
    try:
        for at_s, data in reader:
            packet = _packet(float(at_s), layer, data)
            if packet is not None:
                yield packet
    except (dpkt.UnpackError, ValueError, struct.error):
        is_damaged = True
    if is_damaged or file.is_cut(reader):
        problems.append(
            CaptureProblem(f"the capture is cut or damaged at byte {file.position}: no packet is behind it")
        )


def _packet(at_s: float, layer: Any, data: bytes) -> _Packet | None:
    """The packet, if it is TCP."""
    try:
        ip: Any = _raw_ip(data) if layer is None else layer(data).data
    except dpkt.UnpackError:
        return None
    tcp = getattr(ip, "data", None)
    if not isinstance(ip, dpkt.ip.IP | dpkt.ip6.IP6) or not isinstance(tcp, dpkt.tcp.TCP):
        return None
    source, target = str(ipaddress.ip_address(ip.src)), str(ipaddress.ip_address(ip.dst))
    return _Packet(at_s, (source, tcp.sport), (target, tcp.dport), tcp, bytes(tcp.data))


def _raw_ip(data: bytes) -> Any:
    return (dpkt.ip6.IP6 if data[:1] >= b"\x60" else dpkt.ip.IP)(data)


def _text(address: tuple[str, int]) -> str:
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
