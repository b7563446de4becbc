"""Builds network captures of TCP connections, packet by packet."""

import io
import ipaddress
import struct
from collections.abc import Iterable

import dpkt

from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.framing import encode_request, encode_response
from groupcoord.protocol.messages import HeartbeatRequest, HeartbeatResponse

CLIENT, BROKER = ("10.0.0.1", 40_000), ("10.0.0.2", 9092)
SYN, ACK = dpkt.tcp.TH_SYN, dpkt.tcp.TH_ACK
HEARTBEAT = APIS[ApiKey.HEARTBEAT]
Address = tuple[str, int]


def request(correlation_id: int) -> bytes:
    message = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    return encode_request(HEARTBEAT, 0, correlation_id, "c", message)


def response(correlation_id: int, error_code: int = 0) -> bytes:
    return encode_response(HEARTBEAT, 0, correlation_id, HeartbeatResponse(error_code=error_code))


def ip_packet(source: Address, target: Address, sequence: int, payload: bytes = b"", flags: int = ACK) -> bytes:
    tcp = dpkt.tcp.TCP(sport=source[1], dport=target[1], seq=sequence % (1 << 32), flags=flags, data=payload)
    if ":" in source[0]:
        return bytes(dpkt.ip6.IP6(src=_ip(source), dst=_ip(target), p=6, nxt=6, hlim=64, plen=len(tcp), data=tcp))
    return bytes(dpkt.ip.IP(src=_ip(source), dst=_ip(target), p=6, len=20 + len(tcp), data=tcp))


def _ip(address: Address) -> bytes:
    return ipaddress.ip_address(address[0]).packed


def ethernet(ip: bytes) -> bytes:
    kind = dpkt.ethernet.ETH_TYPE_IP6 if ip[:1] >= b"\x60" else dpkt.ethernet.ETH_TYPE_IP
    return bytes(12) + struct.pack(">H", kind) + ip


def pcap(packets: Iterable[bytes], link: int = dpkt.pcap.DLT_EN10MB) -> bytes:
    """A pcap file, a packet a second."""
    file = io.BytesIO()
    writer = dpkt.pcap.Writer(file, linktype=link)
    for at_s, packet in enumerate(packets):
        writer.writepkt(packet, ts=at_s)
    return file.getvalue()


def pcapng(packets: Iterable[bytes]) -> bytes:
    """The same as pcapng."""
    file = io.BytesIO()
    writer = dpkt.pcapng.Writer(file)
    for at_s, packet in enumerate(packets):
        writer.writepkt(packet, ts=at_s)
    return file.getvalue()


def conversation(*said: tuple[bool, bytes], client: Address = CLIENT, broker: Address = BROKER) -> list[bytes]:
    """The packets of a connection: a handshake, and a packet for each (from the client?, bytes)."""
    there, back = 1000, (1 << 32) - 3
    packets = [ip_packet(client, broker, there, flags=SYN), ip_packet(broker, client, back, flags=SYN | ACK)]
    there, back = there + 1, back + 1
    packets.append(ip_packet(client, broker, there))
    for from_client, data in said:
        if from_client:
            packets.append(ip_packet(client, broker, there, data))
            there += len(data)
        else:
            packets.append(ip_packet(broker, client, back, data))
            back += len(data)
    return [ethernet(packet) for packet in packets]
