"""Bytes that are not what they should be: they are refused where a real broker closes the connection, and nowhere else.

Every frame in the two tables was sent to a Kafka 4.3.1 broker, which answered or closed as they say.
"""

import random
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groupcoord.protocol.apis import APIS, Api, ApiKey
from groupcoord.protocol.codec.field_by_field_decoder import iter_fields
from groupcoord.protocol.codec.flexible_versions import varint
from groupcoord.protocol.codec.message_codec import Codec
from groupcoord.protocol.errors import WireError
from groupcoord.protocol.framing import encode_request, parse_request
from groupcoord.protocol.messages import FetchRequest, HeartbeatRequest, MetadataRequest
from tests.protocol.samples import EVERY_VERSION, make

BEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
STRANGE = HeartbeatRequest(group_id="��", generation_id=1, member_id="m")
LONG = HeartbeatRequest(group_id="g" * 32767, generation_id=1, member_id="m")
FETCH = FetchRequest(max_wait_ms=100, min_bytes=1, max_bytes=1000)

ACCEPTED: dict[str, tuple[str, Any]] = {
    "trailing bytes": ("000c0004 0000004d 00026d65 00  0267 00000001 026d 00 00  7a7a7a", BEAT),
    "invalid UTF-8, compact": ("000c0004 0000004d 00026d65 00  03fffe 00000001 026d 00 00", STRANGE),
    "invalid UTF-8": ("000c0000 0000004d 00026d65  0002fffe 00000001 00016d", STRANGE),
    "invalid UTF-8 in the client id": ("000c0004 0000004d 0002ffc3 00  0267 00000001 026d 00 00", BEAT),
    "a length of -2 is null": ("000c0003 0000004d 00026d65  000167 00000001 00016d fffe", BEAT),
    "a compact length of 2^32 - 1 is null": ("000c0004 0000004d 00026d65 00  0267 00000001 026d ffffffff0f 00", BEAT),
    "a compact length of 35 bits": ("000c0004 0000004d 00026d65 00  828080807067 00000001 026d 00 00", BEAT),
    "the longest string": (f"000c0004 0000004d 00026d65 00  808002{'67' * 32767} 00000001 026d 00 00", LONG),
    "an unknown tag": ("000c0004 0000004d 00026d65 00  0267 00000001 026d 00 01 09026162", BEAT),
    "tags twice and in no order": (
        "000c0004 0000004d 00026d65 00  0267 00000001 026d 00 03 090161 050161 050161",
        BEAT,
    ),
    "an unknown tag in the header": ("000c0004 0000004d 00026d65 01 20026162  0267 00000001 026d 00 00", BEAT),
    "no client id": ("000c0004 0000004d ffff 00  0267 00000001 026d 00 00", BEAT),
    "no client id, with a length of -2": ("000c0004 0000004d fffe 00  0267 00000001 026d 00 00", BEAT),
    "an array of -2 items is null": ("00030001 0000004d 00026d65  fffffffe", MetadataRequest(topics=None)),
    "a bool of 2 is true": ("00030004 0000004d 00026d65  00000000 02", MetadataRequest(topics=())),
    "ApiVersions of an unknown version": ("00120063 0000004d 00026d65 00  02610262 00", None),
    "ApiVersions of an unknown version, of anything": ("00120063 0000004d 00026d65 00  ff", None),
    "ApiVersions of a negative version": ("0012ffff 0000004d 00026d65", None),
    "a known tag of wrong size": (
        "0001000c 0000004d 00026d65 00  ffffffff 00000064 00000001 000003e8 00 00000000 ffffffff 01 01 01 01 00 63 0261",
        FetchRequest(max_wait_ms=100, min_bytes=1, max_bytes=1000, cluster_id="a"),
    ),
    "a known tag twice": (
        "0001000c 0000004d 00026d65 00  ffffffff 00000064 00000001 000003e8 00 00000000 ffffffff 01 01 01 02 00020261 00020262",
        FetchRequest(max_wait_ms=100, min_bytes=1, max_bytes=1000, cluster_id="b"),
    ),
}

REFUSED = {
    "null, compact": (
        "000c0004 0000004d 00026d65 00  00 00000001 026d 00 00",
        "Heartbeat v4, field group_id, offset 13",
    ),
    "null": ("000c0000 0000004d 00026d65  ffff 00000001 00016d", "Heartbeat v0, field group_id, offset 12"),
    "a string that is too long": (
        f"000c0004 0000004d 00026d65 00  818002{'67' * 32768} 00000001 026d 00 00",
        "Heartbeat v4, field group_id, offset 13",
    ),
    "a string beyond the end": ("000c0004 0000004d 00026d65 00  7f67", "Heartbeat v4, field group_id, offset 13"),
    "a varint without end": (
        "000c0004 0000004d 00026d65 00  ffffffffffffff",
        "Heartbeat v4, field group_id, offset 13",
    ),
    "a tag beyond the end": (
        "000c0004 0000004d 00026d65 00  0267 00000001 026d 00 01 097f6162",
        "Heartbeat v4, field tag 9, offset 25",
    ),
    "2^31 - 1 tags": (
        "000c0004 0000004d 00026d65 00  0267 00000001 026d 00 ffffffff07",
        "Heartbeat v4, field tagged fields, offset 27",
    ),
    "a tag in the header beyond the end": (
        "000c0004 0000004d 00026d65 01 207f6162",
        "Heartbeat v4, field tagged fields, offset 12",
    ),
    "no tags in the header": ("00120063 0000004d 00026d65", "ApiVersions v99, field tagged fields, offset 12"),
    "a client id beyond the end": ("00120000 0000004d 0063", "ApiVersions v0, field client_id, offset 8"),
    "no client id": ("00120000 0000004d", "ApiVersions v0, field client_id, offset 8"),
    "no correlation id": ("00120000", "ApiVersions v0, field correlation_id, offset 4"),
    "no version": ("00", "field request_api_key, offset 0"),
    "nothing": ("", "field request_api_key, offset 0"),
    "an unknown API": ("00630000 0000004d 00026d65", "field request_api_key, offset 0"),
    "an unknown version": (
        "000c0063 0000004d 00026d65 00  0267 00000001 026d 00 00",
        "Heartbeat v99, field request_api_version, offset 2",
    ),
    "a null array, compact": ("002a0002 0000004d 00026d65 00  00 00", "DeleteGroups v2, field groups_names, offset 13"),
    "a null array": ("002a0000 0000004d 00026d65  ffffffff", "DeleteGroups v0, field groups_names, offset 12"),
    "an array of -2 items": ("002a0000 0000004d 00026d65  fffffffe", "DeleteGroups v0, field groups_names, offset 12"),
    "an array of 2^31 - 2 items, compact": (
        "002a0002 0000004d 00026d65 00  ffffffff07",
        "DeleteGroups v2, field groups_names, offset 13",
    ),
    "an array of 2^31 - 1 items": (
        "002a0000 0000004d 00026d65  7fffffff",
        "DeleteGroups v0, field groups_names, offset 12",
    ),
    "more items than bytes": (
        "002a0000 0000004d 00026d65  00000003 0000",
        "DeleteGroups v0, field groups_names, offset 12",
    ),
    "null in an array": (
        "00030004 0000004d 00026d65  00000001 ffff 00",
        "Metadata v4, field topics[0].name, offset 16",
    ),
    "a known tag that ends too late": (
        "0001000c 0000004d 00026d65 00  ffffffff 00000064 00000001 000003e8 00 00000000 ffffffff 01 01 01 01 00 02 0761",
        "Fetch v12, field cluster_id, offset 44",
    ),
    "null bytes": (
        "000b0000 0000004d 00026d65  000167 00002710 0000 000163 00000001 000172 ffffffff",
        "JoinGroup v0, field protocols[0].metadata, offset 31",
    ),
    "bytes beyond the end": (
        "000b0000 0000004d 00026d65  000167 00002710 0000 000163 00000001 000172 00000009 61",
        "JoinGroup v0, field protocols[0].metadata, offset 31",
    ),
}


@pytest.mark.parametrize("frame", ACCEPTED)
def test_what_a_broker_accepts_is_accepted(frame: str) -> None:
    data, message = ACCEPTED[frame]
    assert parse_request(bytes.fromhex(data)).message == message


@pytest.mark.parametrize("frame", REFUSED)
def test_what_a_broker_refuses_is_refused_and_explained(frame: str) -> None:
    data, place = REFUSED[frame]
    with pytest.raises(WireError) as caught:
        parse_request(bytes.fromhex(data))
    assert str(caught.value) == f"{place}: {caught.value.reason}"


@pytest.mark.slow
@given(st.sampled_from(EVERY_VERSION), st.randoms(use_true_random=False))
@settings(max_examples=100)
def test_spoiled_requests_are_refused_with_their_place_or_read(which: tuple[Api, int], chance: random.Random) -> None:
    api, version = which
    codec = api.request_codec(version)
    frame = encode_request(api, version, 1, "c", make(codec.schema, chance))[4:]
    start = 12 if codec.flexible else 11
    spoiled = bytearray(frame)
    for _ in range(chance.randrange(1, 4)):
        _spoil(spoiled, start, chance)
    refusal = _refusal(bytes(spoiled))
    if refusal is None:
        assert _can_be_dissected(codec, bytes(spoiled), start)
    else:
        assert not _can_be_dissected(codec, bytes(spoiled), start)
        assert (refusal.api, refusal.version) == (api.name, version)
        assert refusal.field
        assert start <= refusal.offset <= len(spoiled)


def _refusal(frame: bytes) -> WireError | None:
    try:
        parse_request(frame)
    except WireError as problem:
        return problem
    return None


def _spoil(data: bytearray, start: int, chance: random.Random) -> None:
    if len(data) == start:
        return
    at = chance.randrange(start, len(data))
    match chance.randrange(4):
        case 0:
            data[at] = chance.choice((0, 1, 0x7F, 0x80, 0xFF))
        case 1:
            del data[at:]
        case 2:
            del data[at]
        case _:
            data[at:at] = chance.choice((b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x07", b"\x00"))


def _can_be_dissected(codec: Codec[Any], data: bytes, start: int) -> bool:
    try:
        list(iter_fields(codec.schema, data, start))
    except WireError:
        return False
    return True


@pytest.mark.slow
@given(st.binary(max_size=60))
def test_any_bytes_are_a_request_or_a_wire_error(data: bytes) -> None:
    refusal = _refusal(data)
    assert refusal is None or refusal.field


@pytest.mark.parametrize("count", [b"\x7f\xff\xff\xff", varint(2**31 - 1), b"\x00\x0f\x42\x40"])
def test_nothing_is_made_for_a_length_that_is_only_claimed(count: bytes) -> None:
    """However long the claim, the memory used is that of the bytes that came."""
    api = APIS[ApiKey.DELETE_GROUPS]
    frame = encode_request(api, 2 if count[0] == 0xFF else 0, 1, "c", api.request())[4:-5] + count + bytes(10_000)
    with pytest.raises(WireError):
        parse_request(frame)
    tracemalloc.start()
    with pytest.raises(WireError):
        parse_request(frame)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 * len(frame)
