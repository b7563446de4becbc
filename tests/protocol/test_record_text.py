"""Records as people see them."""

import struct
import uuid

import pytest

from groupcoord.protocol.consumer_protocol import (
    Assignment,
    Subscription,
    TopicPartition,
    write_assignment,
    write_subscription,
)
from groupcoord.protocol.coordinator_records.generic import RecordKey, RecordValue, parse_key, parse_value
from groupcoord.protocol.coordinator_records.schemas import RECORD_TYPES
from groupcoord.protocol.coordinator_records.text import key_text, value_text
from groupcoord.protocol.coordinator_records.typed import (
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    write_key,
    write_value,
)
from tests.protocol.kafkas_records import recorded

TOPIC_ID = uuid.UUID("a7658206-bd5c-4a66-a46c-157ebf801de7")


def told(number: int, **fields: object) -> str:
    """A value of these fields as text."""
    return value_text(RecordValue(RECORD_TYPES[number], 0, fields))


def test_an_offset() -> None:
    key = parse_key(write_key(OffsetCommitKey(group="g", topic="größe\n", partition=3)))
    assert key_text(key) == r'OffsetCommit group="g" topic="größe\n" partition=3'
    said = OffsetCommitValue(
        offset=5, leader_epoch=2, metadata="", commit_timestamp_ms=1_795_265_745_031, topic_id=TOPIC_ID
    )
    assert value_text(parse_value(key.kind, write_value(said, 4))) == (
        'v4 offset=5 leaderEpoch=2 metadata="" commitTimestamp=2026-11-21T12:55:45.031Z topicId=p2WCBr1cSmakbBV-v4Ad5w'
    )


def test_a_tombstone() -> None:
    assert value_text(parse_value(RECORD_TYPES[1], None)) == "tombstone"


@pytest.mark.parametrize(
    ("at_ms", "text"),
    [
        (-1, "-1"),
        (0, "1970-01-01T00:00:00.000Z"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        (253_402_300_800_000, "253402300800000"),
        (2**63 - 1, "9223372036854775807"),
        (-(2**63), "-9223372036854775808"),
    ],
)
def test_a_moment_that_is_none_stays_a_number(at_ms: int, text: str) -> None:
    assert told(16, topics=(), version=1, timestamp=at_ms) == f"v0 topics=[] version=1 timestamp={text}"


def test_what_consumers_told_each_other_is_taken_apart() -> None:
    subscription = Subscription(
        topics=("t", "u"),
        owned_partitions=(TopicPartition(topic="t", partitions=(0, 2)),),
        generation_id=4,
        rack_id="r",
        user_data=b"\1\2",
    )
    assignment = Assignment(assigned_partitions=(TopicPartition(topic="t", partitions=(1,)),))
    assert member("consumer", write_subscription(subscription), write_assignment(assignment)) == (
        'subscription={topics=["t", "u"] ownedPartitions=[{topic="t" partitions=[0, 2]}] generationId=4 rackId="r" '
        'userData=0102} assignment={assignedPartitions=[{topic="t" partitions=[1]}]}'
    )


def test_a_short_subscription_is_short() -> None:
    short = Subscription(version=0, topics=("t",))
    assert member("consumer", write_subscription(short), b"") == 'subscription={topics=["t"]} assignment=""'


def test_what_is_no_consumers_or_cannot_be_read_stays_bytes() -> None:
    readable = write_subscription(Subscription(version=0, topics=("t",)))
    assert member("connect", readable, b"\xff") == f"subscription={readable.hex()} assignment=ff"
    assert member("consumer", b"\0\0\0", b"\0") == "subscription=000000 assignment=00"


def member(protocol_type: str, subscription: bytes, assignment: bytes) -> str:
    """What is told of the subscription and the assignment of the one member of a group."""
    said = MemberMetadata(
        member_id="m",
        client_id="c",
        client_host="/h",
        session_timeout_ms=9,
        subscription=subscription,
        assignment=assignment,
    )
    value = GroupMetadataValue(protocol_type=protocol_type, generation=1, protocol="p", leader="m", members=(said,))
    text = value_text(parse_value(RECORD_TYPES[2], write_value(value, 3)))
    before, after = text.split("sessionTimeout=9 ")
    assert before == (
        f'v3 protocolType="{protocol_type}" generation=1 protocol="p" leader="m" currentStateTimestamp=-1 '
        'members=[{memberId="m" groupInstanceId=null clientId="c" clientHost="/h" rebalanceTimeout=-1 '
    )
    return after.removesuffix("}]")


def test_members_of_consumer_groups_that_speak_the_old_protocol() -> None:
    name = b"\6range"
    blob = write_subscription(Subscription(version=0, topics=("t",)))
    classic = struct.pack(">bib", 1, 45_000, 2) + name + bytes([len(blob) + 1]) + blob + b"\0\0"
    data = b"\0\0" + bytes([0, 0, 2, ord("c"), 2, ord("h"), 1, 0]) + struct.pack(">ib", 5, 0)
    data += b"\1\0" + bytes([len(classic)]) + classic
    assert value_text(parse_value(RECORD_TYPES[5], data)) == (
        'v0 instanceId=null rackId=null clientId="c" clientHost="h" subscribedTopicNames=[] subscribedTopicRegex=null '
        "rebalanceTimeoutMs=5 serverAssignor=null classicMemberMetadata={sessionTimeoutMs=45000 "
        'supportedProtocols=[{name="range" metadata={topics=["t"]}}]}'
    )


@pytest.mark.parametrize(
    ("number", "state", "text"),
    [
        (8, 0, "STABLE"),
        (8, 1, "UNREVOKED_PARTITIONS"),
        (14, 2, "UNRELEASED_PARTITIONS"),
        (22, 1, "STABLE"),
        (22, 3, "UNRELEASED_TASKS"),
        (22, 9, "9"),
    ],
)
def test_states_have_their_names(number: int, state: int, text: str) -> None:
    assert told(number, memberEpoch=1, previousMemberEpoch=0, state=state) == (
        f"v0 memberEpoch=1 previousMemberEpoch=0 state={text}"
    )


def test_ids_that_are_not_known() -> None:
    assert told(13, topicPartitions=({"topicId": None, "partitions": (1, 2)},)) == (
        "v0 topicPartitions=[{topicId=AAAAAAAAAAAAAAAAAAAAAA partitions=[1, 2]}]"
    )


def test_every_record_has_a_text_of_one_line() -> None:
    for record in recorded():
        key = parse_key(record.key)
        assert isinstance(key, RecordKey)
        for text in (key_text(key), value_text(parse_value(key.kind, record.value))):
            assert len(text.splitlines()) == 1
            assert text.isprintable()
