"""Frames and headers."""

import random
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.protocol.api_header import RequestHeader as TheirRequestHeader

from groupcoord.protocol.apis import APIS, Api, ApiKey
from groupcoord.protocol.errors import WireError
from groupcoord.protocol.framing import FrameBuffer, encode_request, encode_response, parse_request, parse_response
from groupcoord.protocol.messages import ApiVersionsResponse, HeartbeatRequest, HeartbeatResponse
from tests.protocol import kafka_python
from tests.protocol.samples import EVERY_VERSION, make

HEARTBEAT = APIS[ApiKey.HEARTBEAT]
OF_ONE_SHAPE = [(api, version) for api, version in EVERY_VERSION if api.downgrade is None]
BEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


@pytest.mark.slow
@given(st.lists(st.binary(max_size=9), max_size=6), st.data())
def test_frames_come_out_whole_however_they_come_in(frames: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=5)))
    buffer = FrameBuffer(max_frame_bytes=9)
    received: list[bytes] = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        buffer.feed(stream[start:end])
        received += buffer.frames()
    assert received == frames
    assert len(buffer) == 0
    assert buffer.next_frame() is None


def test_a_frame_waits_for_its_last_byte() -> None:
    buffer = FrameBuffer(max_frame_bytes=9)
    buffer.feed(b"\0\0\0\3ab")
    assert buffer.next_frame() is None
    assert len(buffer) == 6
    buffer.feed(b"c")
    assert buffer.next_frame() == b"abc"


@pytest.mark.parametrize(
    ("length", "reason"), [(10, "a frame of 10 bytes; socket.request.max.bytes is 9"), (-1, "a frame of -1 bytes")]
)
def test_a_frame_that_cannot_be_is_refused_as_soon_as_it_says_so(length: int, reason: str) -> None:
    buffer = FrameBuffer(max_frame_bytes=9)
    buffer.feed(length.to_bytes(4, "big", signed=True))
    with pytest.raises(WireError) as caught:
        buffer.next_frame()
    assert str(caught.value) == f"field length, offset 0: {reason}"


def test_half_a_frame_costs_what_has_come_and_not_what_it_announces() -> None:
    buffer = FrameBuffer(100 << 20)
    buffer.feed((100 << 20).to_bytes(4))
    for _ in range(100):
        buffer.feed(bytes(1_000))
        assert buffer.next_frame() is None
    assert len(buffer) == 100_004
    assert sys.getsizeof(buffer._buffer) < 120_000


@pytest.mark.slow
@pytest.mark.untraced
def test_kafka_python_frames_requests_as_we_do() -> None:
    for api, version in EVERY_VERSION:
        message = make(api.request_codec(version).schema, random.Random(version))
        frame = encode_request(api, version, -7, "me", message)
        theirs = kafka_python.read(api.request.__name__, version, api.request_codec(version).encode(message))
        theirs._header = TheirRequestHeader(
            request_api_key=api.key, request_api_version=version, correlation_id=-7, client_id="me"
        )
        assert theirs.encode(version=version, header=True, framed=True) == frame
        parsed = parse_request(frame[4:])
        assert (parsed.api, parsed.version, parsed.correlation_id, parsed.client_id) == (api, version, -7, "me")


@pytest.mark.slow
def test_responses_are_read_as_they_were_written() -> None:
    for api, version in OF_ONE_SHAPE:
        message = make(api.response_codec(version).schema, random.Random(version))
        frame = encode_response(api, version, 2**31 - 1, message)
        assert int.from_bytes(frame[:4], "big") == len(frame) - 4
        assert parse_response(api, version, frame[4:]) == (2**31 - 1, message)


def test_responses_have_tags_in_the_header_where_the_body_has() -> None:
    assert encode_response(HEARTBEAT, 3, 1, HeartbeatResponse())[4:10].hex() == "000000010000"
    assert encode_response(HEARTBEAT, 4, 1, HeartbeatResponse())[4:9].hex() == "0000000100"
    unknown_tag = bytes.fromhex("00000001 01 63 02 aabb 00000000 001b 00")
    assert parse_response(HEARTBEAT, 4, unknown_tag) == (1, HeartbeatResponse(error_code=27))


def test_api_versions_is_answered_without_tags_in_the_header() -> None:
    api = APIS[ApiKey.API_VERSIONS]
    assert encode_response(api, 4, 1, ApiVersionsResponse(error_code=35))[8:10].hex() == "0023"


@pytest.mark.parametrize("frame", ["", "000000", "00000001", "0000000101"])
def test_a_response_without_header_is_refused(frame: str) -> None:
    with pytest.raises(WireError) as caught:
        parse_response(HEARTBEAT, 4, bytes.fromhex(frame))
    assert (caught.value.api, caught.value.version, caught.value.reason) == ("Heartbeat", 4, "the header has no end")


def test_a_response_that_is_none_is_refused() -> None:
    with pytest.raises(
        WireError, match="HeartbeatResponse v1, field error_code, offset 8: 2 bytes do not fit in the 1 that are left"
    ):
        parse_response(HEARTBEAT, 1, bytes.fromhex("00000001 00000000 00"))


@pytest.mark.parametrize("client_id", [None, "", "c", "Grüße", "x" * 32767])
@pytest.mark.parametrize("version", [3, 4])
def test_any_client_id_will_do(client_id: str | None, version: int) -> None:
    frame = encode_request(HEARTBEAT, version, 1, client_id, BEAT)[4:]
    assert parse_request(frame) == (HEARTBEAT, version, 1, client_id, BEAT)


@pytest.mark.parametrize("version", [5, 99, 32767, -1, -32768])
def test_api_versions_of_any_version_is_a_request(version: int) -> None:
    """KIP-511: it is answered in version 0, so its body does not matter, and its header is what the client takes for newest."""
    tags = b"\0" if version > 0 else b""
    frame = (
        bytes.fromhex("0012")
        + version.to_bytes(2, "big", signed=True)
        + bytes.fromhex("00000009 0001 63")
        + tags
        + b"\xff"
    )
    assert parse_request(frame) == (APIS[ApiKey.API_VERSIONS], version, 9, "c", None)


@pytest.mark.slow
@given(st.sampled_from(EVERY_VERSION), st.randoms(use_true_random=False))
@settings(max_examples=50)
def test_requests_are_read_as_they_were_written(which: tuple[Api, int], chance: random.Random) -> None:
    api, version = which
    message = make(api.request_codec(version).schema, chance)
    parsed = parse_request(encode_request(api, version, 1, None, message)[4:]).message
    assert api.request_codec(version).encode(parsed) == api.request_codec(version).encode(message)
