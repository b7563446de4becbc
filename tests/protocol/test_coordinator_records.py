"""Records of every kind, against Kafka's own tools."""

import json

import pytest

from groupcoord.protocol.coordinator_records.generic import (
    RecordError,
    UnknownRecordTypeError,
    UnknownVersionError,
    id_text,
    key_json,
    parse_key,
    parse_value,
    value_json,
)
from groupcoord.protocol.coordinator_records.schemas import RECORD_TYPES
from groupcoord.protocol.coordinator_records.typed import UnknownKey, read_key, read_value
from tests.protocol.kafkas_records import Recorded, recorded

RECORDS = recorded()


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_records_are_shown_as_kafka_shows_them(record: Recorded) -> None:
    key = parse_key(record.key)
    value = parse_value(key.kind, record.value)
    # As text, so that the order of fields counts too.
    assert json.dumps({"key": key_json(key), "value": value_json(value)}) == json.dumps(record.shown)


def test_every_kind_and_version_is_among_the_records() -> None:
    seen = {(record.shown["key"]["type"], (record.shown["value"] or {}).get("version")) for record in RECORDS}
    assert seen >= {(kind.number, version) for kind in RECORD_TYPES.values() for version in kind.versions}
    assert any(record.value is None for record in RECORDS)


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_wherever_a_record_ends_too_early_it_is_refused(record: Recorded) -> None:
    kind = parse_key(record.key).kind
    for end in range(len(record.key)):
        with pytest.raises(RecordError):
            parse_key(record.key[:end])
    if record.value is not None:
        for end in range(len(record.value)):
            with pytest.raises(RecordError) as caught:
                parse_value(kind, record.value[:end])
            assert 0 <= caught.value.offset <= end
            assert caught.value.field


def test_the_kinds_of_classic_groups_are_read_by_both_readers() -> None:
    for record in RECORDS:
        key = read_key(record.key)
        if isinstance(key, UnknownKey):
            assert key.record_type == record.shown["key"]["type"] > 2
        else:
            value = read_value(key, record.value)
            shown = record.shown["value"]
            assert (value is None) == (shown is None)
            if shown is not None and "offset" in shown["data"]:
                assert value.offset == shown["data"]["offset"]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (None, "key, field kind, offset 0: 0 bytes have no kind"),
        (b"\0", "key, field kind, offset 0: 1 bytes have no kind"),
        (
            b"\0\3\0\5abc",
            "ConsumerGroupMetadataKey v0, field groupId, offset 2: 5 bytes cannot be in the 3 that are left",
        ),
    ],
)
def test_a_key_that_is_none(data: bytes | None, why: str) -> None:
    with pytest.raises(RecordError) as caught:
        parse_key(data)
    assert str(caught.value) == why


@pytest.mark.parametrize("number", [-1, 9, 18, 24])
def test_a_kind_that_kafka_does_not_know(number: int) -> None:
    with pytest.raises(UnknownRecordTypeError, match=f"there is no kind {number} of records") as caught:
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
    with pytest.raises(RecordError, match="0 bytes have no version"):
        parse_value(RECORD_TYPES[3], b"")
    with pytest.raises(RecordError) as caught:
        parse_value(RECORD_TYPES[7], bytes.fromhex("0000 02" + "00" * 16 + "09"))
    assert (caught.value.field, caught.value.offset) == ("topicPartitions[0].partitions", 19)


def test_the_id_of_zeros_has_a_text_too() -> None:
    assert id_text(None) == "AAAAAAAAAAAAAAAAAAAAAA"
