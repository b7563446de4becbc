"""Every record of ``__consumer_offsets``, read, as JSON and as text, against Kafka's own classes."""

import json
import struct
import uuid

import pytest

from groupcoord.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    write_assignment,
    write_subscription,
)
from groupcoord.protocol.coordinator_records.group_records import (
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    UnknownKey,
    read_key,
    read_value,
    write_key,
    write_value,
)
from groupcoord.protocol.coordinator_records.record_formatting import (
    RecordError,
    RecordKey,
    RecordValue,
    UnknownRecordTypeError,
    UnknownVersionError,
    id_text,
    key_json,
    key_text,
    parse_key,
    parse_value,
    value_json,
    value_text,
)
from groupcoord.protocol.coordinator_records.schemas import RECORD_TYPES
from tests.protocol.kafkas_records import recorded

RECORDS = recorded()


def test_records_are_shown_as_kafka_shows_them() -> None:
    for record in RECORDS:
        key = parse_key(record.key)
        value = parse_value(key.record_type, record.value)
        # As text, so that the order of fields counts too.
        assert json.dumps({"key": key_json(key), "value": value_json(value)}) == json.dumps(record.shown)


def test_every_kind_and_version_is_among_the_records() -> None:
    seen = {(record.shown["key"]["type"], (record.shown["value"] or {}).get("version")) for record in RECORDS}
    assert seen >= {(kind.number, version) for kind in RECORD_TYPES.values() for version in kind.versions}
    assert any(record.value is None for record in RECORDS)


@pytest.mark.slow
def test_wherever_a_record_ends_too_early_it_is_refused() -> None:
    for record in RECORDS:
        kind = parse_key(record.key).record_type
        for end in range(len(record.key)):
            with pytest.raises(RecordError):
                parse_key(record.key[:end])
        if record.value is not None:
            for end in range(len(record.value)):
                with pytest.raises(RecordError) as caught:
                    parse_value(kind, record.value[:end])
                assert 0 <= caught.value.offset <= end
                assert caught.value.field


def test_the_kinds_of_groups_that_are_coordinated_here_are_read_by_both_readers() -> None:
    for record in RECORDS:
        key = read_key(record.key)
        if isinstance(key, UnknownKey):
            assert key.record_type == record.shown["key"]["type"]
            assert "Share" in RECORD_TYPES[key.record_type].name or "Streams" in RECORD_TYPES[key.record_type].name
        else:
            value = read_value(key, record.value)
            shown = record.shown["value"]
            assert (value is None) == (shown is None)
            for name in ("offset", "epoch", "state", "version") if shown else ():
                if hasattr(value, name):
                    assert getattr(value, name) == shown["data"][name]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (None, "key, field kind, offset 0: 0 bytes are too few for the kind"),
        (b"\0", "key, field kind, offset 0: 1 bytes are too few for the kind"),
        (
            b"\0\3\0\5abc",
            "ConsumerGroupMetadataKey v0, field groupId, offset 2: 5 bytes do not fit in the 3 that are left",
        ),
    ],
)
def test_a_key_that_is_none(data: bytes | None, why: str) -> None:
    with pytest.raises(RecordError) as caught:
        parse_key(data)
    assert str(caught.value) == why


@pytest.mark.parametrize("number", [-1, 9, 18, 24])
def test_a_kind_that_kafka_does_not_know(number: int) -> None:
    with pytest.raises(UnknownRecordTypeError, match=f"there is no record type {number}") as caught:
        parse_key(number.to_bytes(2, "big", signed=True) + b"\0\1g")
    assert caught.value.number == number


@pytest.mark.parametrize(
    ("number", "version", "why"),
    [
        (1, 5, "OffsetCommitValue v5, field version, offset 0: 0 to 4 are known"),
        (1, -1, "OffsetCommitValue, field version, offset 0: 0 to 4 are known"),
        (0, 1, "LegacyOffsetCommitValue v1, field version, offset 0: only 0 is known"),
        (5, 1, "ConsumerGroupMemberMetadataValue v1, field version, offset 0: only 0 is known"),
    ],
)
def test_a_version_that_kafka_does_not_know(number: int, version: int, why: str) -> None:
    with pytest.raises(UnknownVersionError) as caught:
        parse_value(RECORD_TYPES[number], version.to_bytes(2, "big", signed=True) + bytes(30))
    assert str(caught.value) == why


def test_a_value_that_is_none() -> None:
    with pytest.raises(RecordError, match="0 bytes are too few for the version"):
        parse_value(RECORD_TYPES[3], b"")
    with pytest.raises(RecordError) as caught:
        parse_value(RECORD_TYPES[7], bytes.fromhex("0000 02" + "00" * 16 + "09"))
    assert (caught.value.field, caught.value.offset) == ("topicPartitions[0].partitions", 19)


def test_the_id_of_zeros_has_a_text_too() -> None:
    assert id_text(None) == "AAAAAAAAAAAAAAAAAAAAAA"


def test_the_kinds_are_those_of_kafka() -> None:
    assert {number: kind.name for number, kind in RECORD_TYPES.items()} == {
        0: "LegacyOffsetCommit",
        1: "OffsetCommit",
        2: "GroupMetadata",
        3: "ConsumerGroupMetadata",
        4: "ConsumerGroupPartitionMetadata",
        5: "ConsumerGroupMemberMetadata",
        6: "ConsumerGroupTargetAssignmentMetadata",
        7: "ConsumerGroupTargetAssignmentMember",
        8: "ConsumerGroupCurrentMemberAssignment",
        10: "ShareGroupMemberMetadata",
        11: "ShareGroupMetadata",
        12: "ShareGroupTargetAssignmentMetadata",
        13: "ShareGroupTargetAssignmentMember",
        14: "ShareGroupCurrentMemberAssignment",
        15: "ShareGroupStatePartitionMetadata",
        16: "ConsumerGroupRegularExpression",
        17: "StreamsGroupMetadata",
        19: "StreamsGroupMemberMetadata",
        20: "StreamsGroupTargetAssignmentMetadata",
        21: "StreamsGroupTargetAssignmentMember",
        22: "StreamsGroupCurrentMemberAssignment",
        23: "StreamsGroupTopology",
    }


def test_only_offsets_and_classic_groups_have_values_of_several_versions() -> None:
    assert {kind.name: kind.versions for kind in RECORD_TYPES.values() if kind.versions != range(1)} == {
        "OffsetCommit": range(5),
        "GroupMetadata": range(5),
    }


def test_what_a_version_lacks_is_not_in_its_layout() -> None:
    names = [[column.name for column in RECORD_TYPES[1].value.schema(version).fields] for version in range(5)]
    assert names == [
        ["offset", "metadata", "commitTimestamp"],
        ["offset", "metadata", "commitTimestamp", "expireTimestamp"],
        ["offset", "metadata", "commitTimestamp"],
        ["offset", "leaderEpoch", "metadata", "commitTimestamp"],
        ["offset", "leaderEpoch", "metadata", "commitTimestamp", "topicId"],
    ]


def test_keys_are_never_flexible_and_new_values_are() -> None:
    for kind in RECORD_TYPES.values():
        assert not kind.key.schema(0).flexible
        flexible = [kind.value.schema(version).flexible for version in kind.versions]
        assert flexible == [False] if kind.number == 0 else flexible[-1]


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
    assert value_text(parse_value(key.record_type, write_value(said, 4))) == (
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
    subscription = ConsumerProtocolSubscription(
        topics=("t", "u"),
        owned_partitions=(TopicPartition(topic="t", partitions=(0, 2)),),
        generation_id=4,
        rack_id="r",
        user_data=b"\1\2",
    )
    assignment = ConsumerProtocolAssignment(assigned_partitions=(TopicPartition(topic="t", partitions=(1,)),))
    assert member("consumer", write_subscription(subscription), write_assignment(assignment)) == (
        'subscription={topics=["t", "u"] ownedPartitions=[{topic="t" partitions=[0, 2]}] generationId=4 rackId="r" '
        'userData=0102} assignment={assignedPartitions=[{topic="t" partitions=[1]}]}'
    )


def test_a_short_subscription_is_short() -> None:
    short = ConsumerProtocolSubscription(version=0, topics=("t",))
    assert member("consumer", write_subscription(short), b"") == 'subscription={topics=["t"]} assignment=""'


def test_what_is_no_consumers_or_cannot_be_read_stays_bytes() -> None:
    readable = write_subscription(ConsumerProtocolSubscription(version=0, topics=("t",)))
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
    blob = write_subscription(ConsumerProtocolSubscription(version=0, topics=("t",)))
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
        for text in (key_text(key), value_text(parse_value(key.record_type, record.value))):
            assert len(text.splitlines()) == 1
            assert text.isprintable()
