"""Every damage is what it says, and the same each time."""

import struct
from dataclasses import replace

import pytest

from groupcoord.broker.log_segment import LogSegment
from groupcoord.broker.record_slices import RecordSlice
from groupcoord.core.effects import Call, RawReply, Reply
from groupcoord.protocol.apis.fetch import FetchableTopicResponse, PartitionData
from groupcoord.protocol.errors import WireError
from groupcoord.protocol.framing import encode_response, parse_response
from groupcoord.protocol.messages import FetchResponse, HeartbeatResponse
from groupcoord.testing.faults import Damage, Fetch, Heartbeat
from groupcoord.testing.faults.damage import damaged

CALL = Call(1, 7, Heartbeat, 4, "c", "/127.0.0.1")
REPLY = Reply(CALL, HeartbeatResponse())
WHOLE = encode_response(Heartbeat, 4, 7, REPLY.response)


def data_of(how: Damage, call: Call = CALL, reply: Reply = REPLY) -> bytes:
    made = damaged(how, call, reply)
    assert isinstance(made, RawReply)
    assert made == damaged(how, call, reply)
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


@pytest.mark.parametrize(("correlation_id", "said"), [(7, 8), ((1 << 31) - 1, -(1 << 31))])
def test_the_correlation_id_is_the_next_one(correlation_id: int, said: int) -> None:
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
    made = damaged(Damage.CRC, call, Reply(call, answer))
    assert isinstance(made, Reply)
    records = bytearray(range(61))
    records[17] ^= 0xFF
    wrong = replace(full, records=bytes(records))
    topics = answer.responses
    assert made.response == replace(answer, responses=(topics[0], replace(topics[1], partitions=(empty, wrong, full))))


def test_without_records_there_is_no_checksum() -> None:
    call = Call(1, 7, Fetch, 12, "c", "/127.0.0.1")
    assert damaged(Damage.CRC, call, Reply(call, FetchResponse())) is None


def test_every_damage_is_described() -> None:
    assert all(how.text for how in Damage)
