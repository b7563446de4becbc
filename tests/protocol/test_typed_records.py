"""Records of ``__consumer_offsets``, against those of a Kafka 4.3.1 broker."""

import uuid

import pytest

from groupcoord.protocol.coordinator_records.typed import (
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


@pytest.mark.parametrize("record_type", [3, 8, 15, 17, -1])
def test_keys_of_other_groups_are_passed_on(record_type: int) -> None:
    assert read_key(record_type.to_bytes(2, "big", signed=True) + b"anything") == UnknownKey(record_type)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ("", "field record type, offset 0: a record of __consumer_offsets cannot have 0 bytes"),
        ("00", "field record type, offset 0: a record of __consumer_offsets cannot have 1 bytes"),
        ("0001 0001 67 ffff 00000000", "OffsetCommitKey v1, field topic, offset 5: null where there must be a value"),
        ("0002", "GroupMetadataKey v2, field group, offset 2: 2 bytes cannot be in the 0 that are left"),
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
        (OFFSET, "0000 00", "OffsetCommitValue v0, field offset, offset 2: 8 bytes cannot be in the 1 that are left"),
        (GROUP, "0003 ffff", "GroupMetadataValue v3, field protocol_type, offset 2: null where there must be a value"),
    ],
)
def test_what_is_no_value_is_refused(key: Key, data: str, problem: str) -> None:
    with pytest.raises(WireError) as caught:
        read_value(key, bytes.fromhex(data))
    assert str(caught.value) == problem
