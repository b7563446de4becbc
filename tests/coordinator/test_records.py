"""The bytes, against what Kafka 4.3 writes; when they are written is in the tests of what writes them."""

import uuid

from groupcoord.coordinator import records
from groupcoord.coordinator.classic.classic_group_state import Member
from groupcoord.coordinator.offsets.committed_offsets import CommittedOffset
from groupcoord.core.effects import UNWRITABLE, Call
from groupcoord.protocol.apis import APIS, ApiKey
from tests.coordinator.bare_group import bare_group

CALL = Call(1, 1, APIS[ApiKey.JOIN_GROUP], 9, "me", "/127.0.0.1")


def short(text: str) -> bytes:
    return len(text).to_bytes(2, "big") + text.encode()


def test_what_does_not_fit_into_a_record_has_none() -> None:
    for group, topic in (("g" * 40_000, "t"), ("g", "t" * 40_000)):
        assert records.offset_commits(group, topic)(0, CommittedOffset(7, -1, "", 50)).encoded is UNWRITABLE


def test_a_group_that_has_just_come_to_be() -> None:
    record = bare_group("my-group", 77).empty_record().encoded
    assert record.key == b"\x00\x02" + short("my-group")
    assert record.value == (
        b"\x00\x03" + short("") + bytes(4) + b"\xff\xff" + b"\xff\xff" + (77).to_bytes(8, "big") + bytes(4)
    )


def test_a_group_with_a_member() -> None:
    group = bare_group("g", 5)
    member = Member(
        member_id="m-1",
        instance_id="i",
        client_id="c",
        client_host="/1.2.3.4",
        rebalance_timeout_ms=300,
        session_timeout_ms=200,
        protocol_type="consumer",
        protocols=(("sticky", b"S"), ("range", b"R")),
        session_key=group.session_key("m-1"),
    )
    group.add_member(member, CALL)
    group.generation_id, group.protocol_name = 3, "range"
    value = group.metadata_record({"m-1": b"mine"}).encoded.value
    assert value == b"".join(
        [
            b"\x00\x03",
            short("consumer"),
            (3).to_bytes(4, "big"),
            short("range"),
            short("m-1"),
            (5).to_bytes(8, "big"),
            (1).to_bytes(4, "big"),
            short("m-1"),
            short("i"),
            short("c"),
            short("/1.2.3.4"),
            (300).to_bytes(4, "big"),
            (200).to_bytes(4, "big"),
            b"\x00\x00\x00\x01R",
            b"\x00\x00\x00\x04mine",
        ]
    )


def test_a_group_that_everybody_has_left_keeps_its_type() -> None:
    group = bare_group("g", 5)
    group.protocol_type, group.generation_id = "consumer", 2
    value = group.metadata_record({}).encoded.value
    assert value == (
        b"\x00\x03" + short("consumer") + b"\x00\x00\x00\x02" + b"\xff\xff\xff\xff" + (5).to_bytes(8, "big") + bytes(4)
    )


def test_an_offset_is_written_in_version_4_with_the_topic_id_as_a_tag() -> None:
    topic_id = uuid.UUID(int=0x0102030405060708090A0B0C0D0E0F10)
    committed = CommittedOffset(7, 3, "m", 50, topic_id=topic_id)
    record = records.offset_commits("g", "t")(2, committed).encoded
    assert record.key == b"\x00\x01" + short("g") + short("t") + b"\x00\x00\x00\x02"
    assert record.value == (
        b"\x00\x04" + (7).to_bytes(8, "big") + b"\x00\x00\x00\x03" + b"\x02m" + (50).to_bytes(8, "big")
        + b"\x01\x00\x10" + topic_id.bytes
    )  # fmt: skip


def test_an_offset_of_a_topic_of_unknown_id_has_no_tag() -> None:
    value = records.offset_commits("g", "t")(2, CommittedOffset(7, -1, "", 50)).encoded.value
    assert (
        value
        == b"\x00\x04" + (7).to_bytes(8, "big") + b"\xff\xff\xff\xff" + b"\x01" + (50).to_bytes(8, "big") + b"\x00"
    )


def test_an_offset_that_expires_is_written_in_version_1() -> None:
    value = records.offset_commits("g", "t")(2, CommittedOffset(7, 3, "m", 50, expire_timestamp_ms=60)).encoded.value
    assert value == b"\x00\x01" + (7).to_bytes(8, "big") + short("m") + (50).to_bytes(8, "big") + (60).to_bytes(
        8, "big"
    )


def test_tombstones_have_no_value() -> None:
    assert records.group_metadata_tombstone("g").encoded.value is None
    assert records.group_metadata_tombstone("g").encoded.key == b"\x00\x02" + short("g")
    assert records.offset_tombstone("g", "t", 2).encoded.value is None
    assert (
        records.offset_tombstone("g", "t", 2).encoded.key == b"\x00\x01" + short("g") + short("t") + b"\x00\x00\x00\x02"
    )
