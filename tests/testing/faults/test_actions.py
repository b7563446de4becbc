import struct
from dataclasses import replace
from typing import Any

import pytest

from groupcoord.broker.log_segment import LogSegment, RecordSlice
from groupcoord.core.effects import Call, RawReply, Reply
from groupcoord.protocol.apis.fetch import FetchableTopicResponse, PartitionData
from groupcoord.protocol.errors import ErrorCode, WireError
from groupcoord.protocol.framing import encode_response, parse_response
from groupcoord.protocol.messages import ApiVersionsResponse, FetchResponse, HeartbeatResponse
from groupcoord.testing.faults import Damage, FaultAction, RuleProblems
from groupcoord.testing.faults.actions import damage_reply, error_reply
from tests.testing.faults.support import ApiVersions, Fetch, Heartbeat, requests_of_every_version

CALL = Call(1, 7, Heartbeat, 4, "c", "/127.0.0.1")
REPLY = Reply(CALL, HeartbeatResponse())
WHOLE = encode_response(Heartbeat, 4, 7, REPLY.response)


def data_of(how: Damage, call: Call = CALL, reply: Reply = REPLY) -> bytes:
    made = damage_reply(how, call, reply)
    assert isinstance(made, RawReply)
    assert made == damage_reply(how, call, reply)
    assert made.call is call
    assert made.hangs_up is (how is Damage.CUT)
    return made.data


def test_one_bit_is_flipped() -> None:
    data = data_of(Damage.FLIP)
    assert len(data) == len(WHOLE)
    (at,) = [at for at, (one, other) in enumerate(zip(data, WHOLE, strict=True)) if one != other]
    assert at >= 8
    assert (data[at] ^ WHOLE[at]).bit_count() == 1


def test_the_length_is_too_long() -> None:
    data = data_of(Damage.LENGTH)
    assert struct.unpack_from(">i", data)[0] == len(data) == len(WHOLE)
    assert data[4:] == WHOLE[4:]


def test_half_the_body_is_missing_and_the_frame_is_whole() -> None:
    data = data_of(Damage.TRUNCATED)
    assert struct.unpack_from(">i", data)[0] == len(data) - 4
    assert WHOLE[4:].startswith(data[4:])
    assert 8 <= len(data) < len(WHOLE)
    with pytest.raises(WireError):
        parse_response(Heartbeat, 4, data[4:])


def test_garbage_has_the_right_length_and_correlation_id() -> None:
    data = data_of(Damage.GARBAGE)
    assert len(data) == len(WHOLE)
    assert data[:8] == WHOLE[:8]
    assert data[8:] != WHOLE[8:]


def test_the_correlation_id_is_the_next_one() -> None:
    cases: list[tuple[int, int]] = [(7, 8), ((1 << 31) - 1, -(1 << 31))]
    for correlation_id, said in cases:
        call = CALL._replace(correlation_id=correlation_id)
        data = data_of(Damage.CORRELATION, call, Reply(call, REPLY.response))
        assert parse_response(Heartbeat, 4, data[4:]) == (said, REPLY.response)


def test_the_answer_ends_in_the_middle() -> None:
    assert data_of(Damage.CUT) == WHOLE[: len(WHOLE) // 2]


def test_an_answer_in_another_version_than_asked_is_damaged_in_that() -> None:
    call = CALL._replace(version=99)
    assert data_of(Damage.TRUNCATED, call) == data_of(Damage.TRUNCATED)


def test_the_checksum_of_the_first_batch_is_wrong() -> None:
    empty = PartitionData(partition_index=0, high_watermark=0, records=b"")
    segment = LogSegment(0, 0)
    segment.data += bytes(range(61))
    full = PartitionData(partition_index=1, high_watermark=0, records=RecordSlice(segment, 0, 61))
    answer = FetchResponse(
        responses=(
            FetchableTopicResponse(topic="a", partitions=(empty,)),
            FetchableTopicResponse(topic="b", partitions=(empty, full, full)),
        )
    )
    call = Call(1, 7, Fetch, 12, "c", "/127.0.0.1")
    made = damage_reply(Damage.CRC, call, Reply(call, answer))
    assert isinstance(made, Reply)
    records = bytearray(range(61))
    records[17] ^= 0xFF
    wrong = replace(full, records=bytes(records))
    topics = answer.responses
    assert made.response == replace(answer, responses=(topics[0], replace(topics[1], partitions=(empty, wrong, full))))


def test_without_records_there_is_no_checksum() -> None:
    call = Call(1, 7, Fetch, 12, "c", "/127.0.0.1")
    assert damage_reply(Damage.CRC, call, Reply(call, FetchResponse())) is None


def test_every_damage_is_described() -> None:
    assert all(how.text for how in Damage)


CODE = ErrorCode.COORDINATOR_NOT_AVAILABLE


@pytest.mark.slow
def test_every_api_and_version_says_the_error_if_it_has_a_place_for_it() -> None:
    silent = set()
    for api, version, request in requests_of_every_version():
        call = Call(1, 2, api, version, "c", "/127.0.0.1")
        reply = error_reply(call, request, CODE)
        if reply is None:
            silent.add((api.name, version))
        else:
            frame = encode_response(api, version, 2, reply.response)
            assert f"error_code={int(CODE)}" in repr(parse_response(api, version, frame[4:])[1]).replace(
                repr(CODE), str(int(CODE))
            )
    # Each has a sample that names nothing, or wants no answer; what it has a place for is among the others.
    assert silent == {
        *(("Produce", version) for version in range(3, 14)),
        *(("Fetch", version) for version in range(4, 7)),
        *(("Metadata", version) for version in range(13)),
        *(("OffsetCommit", version) for version in range(2, 11)),
        ("OffsetFetch", 1),
        ("DescribeTopicPartitions", 0),
        ("ElectLeaders", 0),
        ("DescribeLogDirs", 1),
        ("DescribeLogDirs", 2),
    }


def test_an_unknown_version_of_api_versions_is_refused_in_version_0() -> None:
    reply = error_reply(Call(1, 2, ApiVersions, 99, "c", "/127.0.0.1"), None, CODE)
    assert reply is not None
    assert reply.call.version == 0
    assert reply.response == ApiVersionsResponse(error_code=CODE)


def named(request: Any) -> Any:
    return request


def test_a_verb_with_its_argument() -> None:
    cases: list[tuple[str, object, str, str]] = [
        ("refuse", "NOT_COORDINATOR", ".refuse('NOT_COORDINATOR')", "is refused with NOT_COORDINATOR"),
        ("refuse", ErrorCode.NOT_COORDINATOR, ".refuse('NOT_COORDINATOR')", "is refused with NOT_COORDINATOR"),
        ("refuse", 16, ".refuse('NOT_COORDINATOR')", "is refused with NOT_COORDINATOR"),
        ("refuse", 999, ".refuse(999)", "is refused with UNKNOWN_999"),
        ("refuse_answer", -1, ".refuse_answer('UNKNOWN_SERVER_ERROR')", "is handled, but gets UNKNOWN_SERVER_ERROR"),
        ("delay", 20, ".delay(20)", "is handled 20 ms late"),
        ("drop", None, ".drop()", "is lost"),
        ("corrupt", "crc", ".corrupt('crc')", "gets a response with damaged bytes (CRC)"),
        ("answer", named, ".answer(named)", "gets a response of the rule"),
        ("after", max, ".after(max)", "is handled, and gets a response changed by the rule"),
    ]
    for name, argument, text, event_text in cases:
        action = FaultAction(name, argument)
        assert (repr(action), action.event_text) == (text, event_text)
        assert action == FaultAction(name, argument)


def test_what_a_verb_cannot_have() -> None:
    cases: list[tuple[str, object, str]] = [
        ("refuse", "NOT_COORD", "code: there is no error 'NOT_COORD'; did you mean NOT_COORDINATOR?"),
        ("refuse", "NONE", "code: NONE is no error"),
        ("refuse", 0, "code: NONE is no error"),
        *(
            (
                "refuse",
                code,
                f"code: {code!r} is not an error: give its name, an ErrorCode, or a number that an int16 can carry",
            )
            for code in (40_000, -40_000, True, None, 1.5)
        ),
        *(("delay", ms, f"ms: {ms!r} is not a number of milliseconds above 0") for ms in (0, -1, True, "5", 1.5, None)),
        ("answer", 3, "fn: 3 is not a function"),
        ("corrupt", "x", "how: 'x' is no damage; there is flip, crc, length, truncated, garbage, correlation, cut"),
    ]
    for name, argument, problem in cases:
        with pytest.raises(RuleProblems) as found:
            FaultAction(name, argument)
        assert str(found.value) == problem


def test_the_argument_as_data() -> None:
    assert FaultAction("refuse", 16).plain_argument == "NOT_COORDINATOR"
    assert FaultAction("refuse", 999).plain_argument == 999
    assert FaultAction("corrupt", Damage.CUT).plain_argument == "cut"
    for action in (FaultAction("answer", named), FaultAction("drop")):
        with pytest.raises(ValueError, match="has no data to write"):
            _ = action.plain_argument
