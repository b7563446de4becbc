"""Frames in captures of network traffic."""

import io
import struct
from collections.abc import Collection

import dpkt
import pytest

from groupcoord.dissect.connection_dissector import ConnectionDissector
from groupcoord.dissect.tcp_capture import CapturedFrame, CaptureError, CaptureProblem, Endpoints, read_capture
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.apis.metadata import MetadataResponseTopic
from groupcoord.protocol.framing import encode_request, encode_response
from groupcoord.protocol.messages import MetadataRequest, MetadataResponse
from tests.dissect.packets import (
    BROKER,
    CLIENT,
    SYN,
    conversation,
    ethernet,
    ip_packet,
    pcap,
    pcapng,
    request,
    response,
)
from tests.dissect.test_frames import TOPIC_ID, fetched_from_consumer_offsets


def frames(data: bytes, ports: Collection[int] = ()) -> list[tuple[bool, bytes]]:
    """The frames; there must be no problem."""
    found = list(read_capture(io.BytesIO(data), ports))
    assert all(isinstance(one, CapturedFrame) for one in found)
    return [(one.is_request, one.data) for one in found if isinstance(one, CapturedFrame)]


def problems(data: bytes) -> list[str]:
    return [one.reason for one in read_capture(io.BytesIO(data)) if isinstance(one, CaptureProblem)]


WHO = "10.0.0.1:40000 to 10.0.0.2:9092"
SAID = [(True, request(1)), (False, response(1)), (True, request(2)), (False, response(2, error_code=27))]


@pytest.mark.parametrize("form", [pcap, pcapng])
def test_frames_come_in_order_of_time(form: object) -> None:
    write = pcap if form is pcap else pcapng
    found = list(read_capture(io.BytesIO(write(conversation(*SAID)))))
    assert [(one.is_request, one.data) for one in found if isinstance(one, CapturedFrame)] == SAID
    assert found[0] == CapturedFrame(3.0, 1, Endpoints("10.0.0.1:40000", "10.0.0.2:9092"), True, request(1))


def test_frames_in_pieces_twice_and_in_the_wrong_order_are_put_together() -> None:
    data = request(1) + request(2)
    _, synack, _, *packets = conversation(*((True, data[at : at + 7]) for at in range(0, len(data), 7)))
    shuffled = [packets[2], packets[0], packets[0], packets[2], packets[1], *reversed(packets[3:])]
    syn = ethernet(ip_packet(CLIENT, BROKER, 1000, flags=SYN))
    overlap = ethernet(ip_packet(CLIENT, BROKER, 1001 + 3, data[3:20]))
    assert frames(pcap([syn, synack, overlap, *shuffled])) == [(True, request(1)), (True, request(2))]


def test_a_capture_may_begin_in_the_middle_of_a_connection() -> None:
    _, _, _, *packets = conversation(*SAID)
    assert frames(pcap(packets)) == SAID
    answers_first = [packets[1], packets[0], *packets[2:]]
    assert sorted(frames(pcap(answers_first))) == sorted(SAID)


def test_a_broker_may_have_the_higher_port() -> None:
    packets = conversation(*SAID, broker=("10.0.0.2", 50_000))
    assert frames(pcap(packets)) == SAID
    assert frames(pcap(packets[1:])) == SAID  # the answer to the request for a connection tells it, too
    assert frames(pcap(packets[3:]), ports=[50_000]) == SAID


def test_other_ports_and_other_traffic_are_left_out() -> None:
    other = conversation((True, b"GET / HTTP/1.1"), broker=("10.0.0.2", 80), client=("10.0.0.1", 40_001))
    udp = dpkt.ip.IP(src=bytes(4), dst=bytes(4), p=17, data=dpkt.udp.UDP(sport=1, dport=2))
    udp.len = len(udp)
    strange = [ethernet(bytes(udp)), ethernet(b"\x45"), bytes(12) + b"\x08\x06" + bytes(28), b""]
    assert frames(pcap([*strange, *other, *conversation(*SAID)]), ports=[9092]) == SAID


def test_a_port_that_is_used_again_is_a_new_connection() -> None:
    packets = conversation(*SAID)
    found = [one for one in read_capture(io.BytesIO(pcap([*packets, *packets]))) if isinstance(one, CapturedFrame)]
    assert [one.connection for one in found] == [1] * 4 + [2] * 4


@pytest.mark.parametrize(
    ("link", "header"),
    [
        (dpkt.pcap.DLT_RAW, b""),
        (101, b""),
        (dpkt.pcap.DLT_NULL, struct.pack("<I", 2)),
        (dpkt.pcap.DLT_LINUX_SLL, bytes(14) + b"\x08\x00"),
        (dpkt.pcap.DLT_LINUX_SLL2, b"\x08\x00" + bytes(18)),
    ],
)
def test_other_link_layers_are_read(link: int, header: bytes) -> None:
    packets = [header + packet[14:] for packet in conversation(*SAID)]
    assert frames(pcap(packets, link)) == SAID


@pytest.mark.parametrize("link", [dpkt.pcap.DLT_EN10MB, dpkt.pcap.DLT_RAW])
def test_ip_version_6_is_read(link: int) -> None:
    packets = conversation(*SAID, client=("::1", 40_000), broker=("::1", 9092))
    data = pcap(packets if link == dpkt.pcap.DLT_EN10MB else [packet[14:] for packet in packets], link)
    assert frames(data) == SAID
    first = next(iter(read_capture(io.BytesIO(data))))
    assert isinstance(first, CapturedFrame)
    assert first.endpoints == ("[::1]:40000", "[::1]:9092")


@pytest.mark.parametrize("from_client", [True, False])
def test_missing_bytes_end_a_direction(from_client: bool) -> None:
    said = [(True, request(1)), (False, response(1)), (from_client, b"lost"), (from_client, b"behind it")]
    packets = conversation(*said)
    del packets[5]
    who, length = ("the client", len(request(1))) if from_client else ("the broker", len(response(1)))
    reason = f"4 bytes that {who} sent behind byte {length} are not in the capture; what followed cannot be read"
    assert problems(pcap(packets)) == [f"connection 1, {WHO}: {reason}"]


def test_tls_is_said() -> None:
    assert problems(pcap(conversation((True, bytes.fromhex("160301 0200 01"))))) == [
        f"connection 1, {WHO}: this is TLS, which cannot be read"
    ]


@pytest.mark.parametrize("form", [pcap, pcapng])
@pytest.mark.parametrize("cut", [1, 20, 60])
def test_a_cut_capture_is_read_as_far_as_it_goes(form: object, cut: int) -> None:
    data = (pcap if form is pcap else pcapng)(conversation(*SAID))[:-cut]
    found = list(read_capture(io.BytesIO(data)))
    assert [one.data for one in found[:3] if isinstance(one, CapturedFrame)] == [frame for _, frame in SAID[:3]]
    assert found[-1] == CaptureProblem(f"the capture is cut or damaged at byte {len(data)}: no packet is behind it")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "neither pcap nor pcapng"),
        (b"hello, this is not a capture at all", "neither pcap nor pcapng"),
        (
            pcap([], link=147),
            "packets of link type 147 cannot be read; those that can are Ethernet, Linux cooked (any), loopback and raw IP",
        ),
    ],
)
def test_what_is_no_capture_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(CaptureError) as refused:
        list(read_capture(io.BytesIO(data)))
    assert str(refused.value) == reason


def test_a_block_that_is_none_ends_the_capture() -> None:
    data = pcapng(conversation(*SAID)) + struct.pack("<II", 6, 4)
    assert list(read_capture(io.BytesIO(data)))[-1] == CaptureProblem(
        f"the capture is cut or damaged at byte {len(data)}: no packet is behind it"
    )


def dissected(data: bytes) -> list[tuple[str, str | None]]:
    dissector = ConnectionDissector()
    found = [one for one in read_capture(io.BytesIO(data)) if isinstance(one, CapturedFrame)]
    parts = [dissector.dissect(frame) for frame in found]
    return [(part.title, part.problem and part.problem.reason) for part in parts]


def test_responses_are_read_as_what_was_asked() -> None:
    assert dissected(pcap(conversation(*SAID))) == [
        ("Heartbeat v0 request", None),
        ("Heartbeat v0 response", None),
        ("Heartbeat v0 request", None),
        ("Heartbeat v0 response", None),
    ]


def test_a_response_that_answers_nothing_known_is_said() -> None:
    assert dissected(pcap(conversation((False, response(9)), (True, b"\0")))) == [
        ("response", "no request with correlation id 9 came before it"),
        ("request without a header", "frame_length_bytes: 4 bytes do not fit in the 1 that are left"),
    ]


def test_the_names_of_topics_are_learnt_from_metadata() -> None:
    metadata = APIS[ApiKey.METADATA]
    fetch, answer = fetched_from_consumer_offsets()
    asked = encode_request(metadata, 12, 1, "c", MetadataRequest(topics=None))
    topics = (
        MetadataResponseTopic(name=None, topic_id=None),
        MetadataResponseTopic(name="__consumer_offsets", topic_id=TOPIC_ID),
    )
    told = encode_response(metadata, 12, 1, MetadataResponse(topics=topics))
    dissector = ConnectionDissector()
    data = pcap(conversation((True, asked), (False, told), (True, fetch), (False, answer)))
    parts = [dissector.dissect(one) for one in read_capture(io.BytesIO(data)) if isinstance(one, CapturedFrame)]
    assert any(field.path.endswith("records[0].key.group") for field in parts[-1].fields)
