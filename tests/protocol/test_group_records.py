"""Records of ``__consumer_offsets``, against those of a Kafka 4.3.1 broker."""

import dataclasses
import uuid

import pytest

from groupcoord.protocol.coordinator_records.consumer_group_records import (
    CONSUMER_GROUP_VALUE_VERSION,
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    CurrentPartitions,
    PartitionRacks,
    SubscribedTopic,
    TargetPartitions,
)
from groupcoord.protocol.coordinator_records.group_records import (
    GROUP_METADATA_VALUE_VERSION,
    OFFSET_COMMIT_VALUE_VERSION,
    OFFSET_COMMIT_VALUE_WITH_EXPIRY_VERSION,
    GroupMetadataKey,
    GroupMetadataValue,
    Key,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    UnknownKey,
    Value,
    read_key,
    read_value,
    write_key,
    write_value,
)
from groupcoord.protocol.errors import WireError
from tests.protocol.kafkas_records import recorded

GROUP = GroupMetadataKey(group="protog-287325")
GROUP_BYTES = "0002 000d70726f746f672d323837333235"
OFFSET = OffsetCommitKey(group="protog-287325", topic="proto-287325", partition=0)
OFFSET_BYTES = "0001 000d70726f746f672d323837333235 000c70726f746f2d323837333235 00000000"
MEMBER = "me-6c74a9cd-9dc1-45c7-bf74-65fc6e579cfe"
MEMBER_BYTES = f"0027{MEMBER.encode().hex()}"

STABLE_BYTES = (
    f"0003 0008636f6e73756d6572 00000001 000572616e6765 {MEMBER_BYTES} 000001a1fe2d51ed 00000001"
    f"{MEMBER_BYTES} ffff 00026d65 000a2f3132372e302e302e31 00004e20 00002710"
    "0000000d 000000000001000174ffffffff 00000003 78797a"
)

# A group's life in the log of a broker: created, stable, three commits (the second with a retention time), and everybody left.
LOG: dict[str, tuple[str, Key, str, int, Value]] = {
    "created": (
        GROUP_BYTES,
        GROUP,
        "0003 0000 00000000 ffff ffff 000001a1fe2d5149 00000000",
        GROUP_METADATA_VALUE_VERSION,
        GroupMetadataValue(
            protocol_type="", generation=0, protocol=None, leader=None, current_state_timestamp_ms=1795265745225
        ),
    ),
    "stable": (
        GROUP_BYTES,
        GROUP,
        STABLE_BYTES,
        GROUP_METADATA_VALUE_VERSION,
        GroupMetadataValue(
            protocol_type="consumer",
            generation=1,
            protocol="range",
            leader=MEMBER,
            current_state_timestamp_ms=1795265745389,
            members=(
                MemberMetadata(
                    member_id=MEMBER,
                    client_id="me",
                    client_host="/127.0.0.1",
                    rebalance_timeout_ms=20_000,
                    session_timeout_ms=10_000,
                    subscription=b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff",
                    assignment=b"xyz",
                ),
            ),
        ),
    ),
    "commit": (
        OFFSET_BYTES,
        OFFSET,
        "0004 0000000000000005 00000003 0768c3a96c6c6f 000001a1fe2d5217 01 00 10 a7658206bd5c4a66a46c157ebf801de7",
        OFFSET_COMMIT_VALUE_VERSION,
        OffsetCommitValue(
            offset=5,
            leader_epoch=3,
            metadata="héllo",
            commit_timestamp_ms=1795265745431,
            topic_id=uuid.UUID("a7658206-bd5c-4a66-a46c-157ebf801de7"),
        ),
    ),
    "commit with retention": (
        OFFSET_BYTES,
        OFFSET,
        "0001 0000000000000005 000668c3a96c6c6f 000001a1fe2d523e 000001a1fe2ed8de",
        OFFSET_COMMIT_VALUE_WITH_EXPIRY_VERSION,
        OffsetCommitValue(
            offset=5, metadata="héllo", commit_timestamp_ms=1795265745470, expire_timestamp_ms=1795265845470
        ),
    ),
    "empty": (
        GROUP_BYTES,
        GROUP,
        "0003 0008636f6e73756d6572 00000002 ffff ffff 000001a1fe2d525c 00000000",
        GROUP_METADATA_VALUE_VERSION,
        GroupMetadataValue(
            protocol_type="consumer", generation=2, protocol=None, leader=None, current_state_timestamp_ms=1795265745500
        ),
    ),
}


@pytest.mark.parametrize("record", LOG)
def test_records_are_those_of_a_broker(record: str) -> None:
    key_bytes, key, value_bytes, version, value = LOG[record]
    assert write_key(key) == bytes.fromhex(key_bytes)
    assert read_key(bytes.fromhex(key_bytes)) == key
    assert write_value(value, version) == bytes.fromhex(value_bytes)
    assert read_value(key, bytes.fromhex(value_bytes)) == value


def test_the_older_type_of_offset_keys_means_the_same() -> None:
    assert read_key(bytes.fromhex("0000" + OFFSET_BYTES[4:])) == OFFSET


def test_a_null_value_is_a_tombstone() -> None:
    assert read_value(GROUP, None) is None
    assert read_value(OFFSET, None) is None


COMMIT = LOG["commit"][4]
STABLE = LOG["stable"][4]


TOPIC = uuid.UUID("a7658206-bd5c-4a66-a46c-157ebf801de7")
CONSUMER_GROUP: list[tuple[Key, Value]] = [
    (ConsumerGroupMetadataKey(group_id="g"), ConsumerGroupMetadataValue(epoch=2, metadata_hash=-77)),
    (ConsumerGroupMetadataKey(group_id="g"), ConsumerGroupMetadataValue(epoch=3)),
    (
        ConsumerGroupPartitionMetadataKey(group_id="g"),
        ConsumerGroupPartitionMetadataValue(
            topics=(
                SubscribedTopic(
                    topic_id=TOPIC,
                    topic_name="t",
                    num_partitions=1,
                    partition_metadata=(PartitionRacks(partition=0, racks=("a", "b")),),
                ),
            )
        ),
    ),
    (
        ConsumerGroupMemberMetadataKey(group_id="g", member_id="m"),
        ConsumerGroupMemberMetadataValue(
            instance_id=None,
            rack_id=None,
            client_id="c",
            client_host="/127.0.0.1",
            subscribed_topic_names=("a", "b"),
            subscribed_topic_regex=None,
            rebalance_timeout_ms=45_000,
            server_assignor="uniform",
            classic_member_metadata=None,
        ),
    ),
    (
        ConsumerGroupMemberMetadataKey(group_id="g", member_id="m"),
        ConsumerGroupMemberMetadataValue(
            instance_id="i",
            rack_id="r",
            client_id="c",
            client_host="/127.0.0.1",
            subscribed_topic_regex="a.*",
            rebalance_timeout_ms=45_000,
            server_assignor=None,
            classic_member_metadata=ClassicMemberMetadata(
                session_timeout_ms=6_000, supported_protocols=(ClassicProtocol(name="range", metadata=b"x"),)
            ),
        ),
    ),
    (
        ConsumerGroupTargetAssignmentMetadataKey(group_id="g"),
        ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=2, assignment_timestamp_ms=1795265745431),
    ),
    (
        ConsumerGroupTargetAssignmentMemberKey(group_id="g", member_id="m"),
        ConsumerGroupTargetAssignmentMemberValue(
            topic_partitions=(TargetPartitions(topic_id=TOPIC, partitions=(0, 1)),)
        ),
    ),
    (
        ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="m"),
        ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=3,
            previous_member_epoch=2,
            state=1,
            assigned_partitions=(CurrentPartitions(topic_id=TOPIC, partitions=(0, 2), assignment_epochs=(2, 3)),),
            partitions_pending_revocation=(CurrentPartitions(topic_id=TOPIC, partitions=(1,)),),
        ),
    ),
    (
        ConsumerGroupRegularExpressionKey(group_id="g", regular_expression="a.*"),
        ConsumerGroupRegularExpressionValue(topics=("a", "ab"), version=7, timestamp_ms=1795265745431),
    ),
]


def test_the_records_of_consumer_groups_come_back_as_they_were() -> None:
    for key, value in CONSUMER_GROUP:
        assert read_key(write_key(key)) == key
        assert read_value(key, write_value(value, CONSUMER_GROUP_VALUE_VERSION)) == value
        assert read_value(key, None) is None


def test_the_records_of_consumer_groups_are_written_as_kafka_writes_them() -> None:
    found = set()
    for record in recorded():
        key = read_key(record.key)
        if record.shown["key"]["type"] in {3, 4, 5, 6, 7, 8, 16}:
            assert not isinstance(key, UnknownKey)
            found.add(type(key))
            assert write_key(key) == record.key
            value = read_value(key, record.value)
            assert (value and write_value(value, CONSUMER_GROUP_VALUE_VERSION)) == record.value
    assert found == {type(key) for key, _ in CONSUMER_GROUP}


def test_that_a_member_does_not_speak_the_classic_protocol_takes_bytes() -> None:
    key, value = CONSUMER_GROUP[3]
    assert isinstance(value, ConsumerGroupMemberMetadataValue)
    assert write_value(value, CONSUMER_GROUP_VALUE_VERSION).endswith(bytes.fromhex("01 00 01 00"))
    absent = dataclasses.replace(value, classic_member_metadata=ClassicMemberMetadata())
    assert write_value(absent, CONSUMER_GROUP_VALUE_VERSION).endswith(b"uniform\0")
    assert read_value(key, write_value(absent, CONSUMER_GROUP_VALUE_VERSION)) == absent


@pytest.mark.parametrize(
    ("version", "lost"),
    [
        (0, {"leader_epoch", "topic_id"}),
        (1, {"leader_epoch", "topic_id"}),
        (2, {"leader_epoch", "topic_id"}),
        (3, {"topic_id"}),
        (4, set()),
    ],
)
def test_older_versions_of_offsets_lose_what_they_lack(version: int, lost: set[str]) -> None:
    back = read_value(OFFSET, write_value(COMMIT, version))
    assert {name for name in ("offset", "leader_epoch", "metadata", "commit_timestamp_ms", "topic_id")
            if getattr(back, name) != getattr(COMMIT, name)} == lost  # fmt: skip


@pytest.mark.parametrize("version", range(5))
def test_older_versions_of_groups_lose_what_they_lack(version: int) -> None:
    back = read_value(GROUP, write_value(STABLE, version))
    assert isinstance(back, GroupMetadataValue)
    assert (back.protocol_type, back.generation, back.protocol, back.leader) == ("consumer", 1, "range", MEMBER)
    assert back.current_state_timestamp_ms == (1795265745389 if version >= 2 else -1)
    assert back.members[0].rebalance_timeout_ms == (20_000 if version >= 1 else -1)
    assert (back.members[0].session_timeout_ms, back.members[0].assignment) == (10_000, b"xyz")


def test_static_members_are_there_from_version_3_on() -> None:
    member = MemberMetadata(
        member_id="m",
        group_instance_id="i",
        client_id="",
        client_host="",
        session_timeout_ms=1,
        subscription=b"",
        assignment=b"",
    )
    group = GroupMetadataValue(protocol_type="consumer", generation=1, protocol="range", leader="m", members=(member,))
    ids = []
    for version in range(5):
        back = read_value(GROUP, write_value(group, version))
        assert isinstance(back, GroupMetadataValue)
        ids.append(back.members[0].group_instance_id)
    assert ids == [None, None, None, "i", "i"]


@pytest.mark.parametrize("record_type", [9, 10, 15, 17, 23, -1])
def test_keys_of_share_and_streams_groups_are_passed_on(record_type: int) -> None:
    assert read_key(record_type.to_bytes(2, "big", signed=True) + b"anything") == UnknownKey(record_type)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ("", "field record type, offset 0: a record of __consumer_offsets cannot have 0 bytes"),
        ("00", "field record type, offset 0: a record of __consumer_offsets cannot have 1 bytes"),
        ("0001 0001 67 ffff 00000000", "OffsetCommitKey v1, field topic, offset 5: null where there must be a value"),
        ("0002", "GroupMetadataKey v2, field group, offset 2: 2 bytes do not fit in the 0 that are left"),
    ],
)
def test_what_is_no_key_is_refused(data: str, problem: str) -> None:
    with pytest.raises(WireError) as caught:
        read_key(bytes.fromhex(data))
    assert str(caught.value) == problem


@pytest.mark.parametrize(
    ("key", "data", "problem"),
    [
        (OFFSET, "00", "field version, offset 0: a record of __consumer_offsets cannot have 1 bytes"),
        (OFFSET, "0005", "OffsetCommitValue v5, field version, offset 0: versions 0 to 4 are known"),
        (GROUP, "ffff", "GroupMetadataValue, field version, offset 0: versions 0 to 4 are known"),
        (
            ConsumerGroupMetadataKey(group_id="g"),
            "0001",
            "ConsumerGroupMetadataValue v1, field version, offset 0: only version 0 is known",
        ),
        (OFFSET, "0000 00", "OffsetCommitValue v0, field offset, offset 2: 8 bytes do not fit in the 1 that are left"),
        (GROUP, "0003 ffff", "GroupMetadataValue v3, field protocol_type, offset 2: null where there must be a value"),
    ],
)
def test_what_is_no_value_is_refused(key: Key, data: str, problem: str) -> None:
    with pytest.raises(WireError) as caught:
        read_value(key, bytes.fromhex(data))
    assert str(caught.value) == problem
