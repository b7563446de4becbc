"""Messages taken apart."""

import random
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groupcoord.protocol.apis import APIS, Api, ApiKey
from groupcoord.protocol.apis.fetch import FetchPartition, FetchTopic
from groupcoord.protocol.codec.field_by_field_decoder import DecodedField, explain_decode_error, iter_fields
from groupcoord.protocol.messages import FetchRequest
from tests.protocol.samples import EVERY_VERSION, codecs_of, make
from tests.protocol.test_compiler import layout_of_everything, write


def test_fields_come_with_path_offset_size_and_value() -> None:
    codec = APIS[ApiKey.FETCH].request_codec(12)
    partition = FetchPartition(partition=3, fetch_offset=77, partition_max_bytes=1000)
    request = FetchRequest(
        max_wait_ms=500, min_bytes=1, topics=(FetchTopic(topic="orders", partitions=(partition,)),), cluster_id="c"
    )
    fields = list(iter_fields(codec.schema, b"...." + codec.encode(request), 4))
    assert fields[0] == DecodedField("replica_id", 4, 4, -1, "int32")
    assert fields[7:11] == [
        DecodedField("topics", 29, 1, 1, "compact array of struct"),
        DecodedField("topics[0].topic", 30, 7, "orders", "compact string"),
        DecodedField("topics[0].partitions", 37, 1, 1, "compact array of struct"),
        DecodedField("topics[0].partitions[0].partition", 38, 4, 3, "int32"),
    ]
    assert fields[-1] == DecodedField("cluster_id", 77, 2, "c", "compact nullable string, tag 0")


def test_unknown_tags_are_shown() -> None:
    codec = APIS[ApiKey.HEARTBEAT].response_codec(4)
    *_, last = iter_fields(codec.schema, bytes.fromhex("00000000 0000 01 63 02 aabb"))
    assert last == DecodedField("tag 99", 9, 2, b"\xaa\xbb", "unknown tagged field")


def test_nulls_are_shown() -> None:
    schema = layout_of_everything(flexible=True)
    nothing = schema.message()
    shown = {field.path: field.value for field in iter_fields(schema, write(schema, nothing))}
    assert [shown[name] for name in ("maybe_text", "maybe_data", "maybe_pair", "maybe_numbers", "identity")] == [
        None
    ] * 5
    assert (shown["numbers"], shown["text"], shown["pair.right"]) == (0, "", "")


@pytest.mark.slow
@given(st.sampled_from(EVERY_VERSION), st.booleans(), st.randoms(use_true_random=False))
@settings(max_examples=100)
def test_every_message_is_shown_as_it_is(which: tuple[Api, int], is_response: bool, chance: random.Random) -> None:
    codec = codecs_of(*which)[is_response]
    message = make(codec.schema, chance)
    written = codec.encode(message)
    end = 0
    for path, offset, size, value, _ in iter_fields(codec.schema, written):
        at_path = _at(message, path)
        assert value == (len(at_path) if isinstance(at_path, tuple) else at_path)
        assert offset >= end
        end = offset + size
    assert written[end:] == bytes(len(written) - end)  # counts of tagged fields, if there are none
    assert codec.flexible or end == len(written)


def _at(message: Any, path: str) -> Any:
    for name, index in re.findall(r"(\w+)|\[(\d+)\]", path):
        message = getattr(message, name) if name else message[int(index)]
    return message


UP_TO_TEXT = "00" * 46
UP_TO_NUMBERS = UP_TO_TEXT + "01 01 01 01 00000000 01 00 ff"
UP_TO_TAGS = UP_TO_NUMBERS + "01 01 01 01 01 01"


@pytest.mark.parametrize(
    ("flexible", "data", "field", "offset", "reason"),
    [
        (False, "", "flag", 0, "1 bytes do not fit in the 0 that are left"),
        (False, "00" * 47, "text", 46, "2 bytes do not fit in the 1 that are left"),
        (False, UP_TO_TEXT + "ffff", "text", 46, "null where there must be a value"),
        (False, UP_TO_TEXT + "0005 6161", "text", 46, "5 bytes do not fit in the 2 that are left"),
        (True, UP_TO_TEXT + "00", "text", 46, "null where there must be a value"),
        (True, UP_TO_TEXT, "text", 46, "the bytes end here"),
        (True, UP_TO_TEXT + "ffffffffff01", "text", 46, "a varint of more than 5 bytes"),
        (True, UP_TO_TEXT + "818002" + "61" * 32768, "text", 46, "a string of 32768 bytes; it can have 32767"),
        (True, UP_TO_NUMBERS + "09 00", "numbers", 57, "8 items do not fit in the 1 bytes that are left"),
        (True, UP_TO_TAGS + "01 63 09 aa", "tag 99", 66, "9 bytes do not fit in the 1 that are left"),
        (True, UP_TO_TAGS + "01 07 09 09 aa", "tagged_text", 66, "8 bytes do not fit in the 1 that are left"),
    ],
)
def test_an_error_says_what_and_where(flexible: bool, data: str, field: str, offset: int, reason: str) -> None:
    problem = explain_decode_error(layout_of_everything(flexible=flexible), bytes.fromhex(data))
    assert (problem.api, problem.version, problem.field, problem.offset) == ("Everything", 1, field, offset)
    assert problem.reason == reason


def test_a_good_message_needs_no_explanation() -> None:
    codec = APIS[ApiKey.HEARTBEAT].response_codec(0)
    assert (
        str(explain_decode_error(codec.schema, b"\x00\x1b"))
        == "HeartbeatResponse v0, field error_code, offset 0: nothing is wrong with it"
    )
    assert explain_decode_error(APIS[ApiKey.LIST_GROUPS].request_codec(0).schema, b"").offset == 0


def test_an_explanation_has_an_end() -> None:
    """Ten thousand fields are gone through, however many there are before the error."""
    codec = APIS[ApiKey.DELETE_GROUPS].request_codec(2)
    long = codec.encode(codec.schema.message(groups_names=("",) * 20_000))[:-1]
    problem = explain_decode_error(codec.schema, long)
    assert str(problem) == "DeleteGroups v2, field groups_names[9999], offset 10002: here or behind, something is wrong"
