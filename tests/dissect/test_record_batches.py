"""Record batches, dissected: headers, records, markers, and what the coordinators' topics hold."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupcoord.dissect import DissectedField, Dissection, dissect_record_batches
from groupcoord.dissect.dissection import UNREADABLE
from groupcoord.protocol.batches.compression import Compression
from groupcoord.protocol.batches.record_batch import (
    CONTROL,
    DELETE_HORIZON,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    EndTransactionMarker,
    build_batch,
    build_marker,
)
from groupcoord.protocol.batches.records import Header, Record
from groupcoord.protocol.consumer_protocol import ConsumerProtocolSubscription, write_subscription
from groupcoord.protocol.coordinator_records import group_records
from groupcoord.protocol.coordinator_records.group_records import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from groupcoord.protocol.coordinator_records.transaction_log import TransactionLogValue, write_key, write_value
from tests.dissect.test_frames import assert_no_byte_is_left_out, at
from tests.protocol.kafkas_records import Recorded, recorded

FIRST = Record(5, 1_700_000_000_000, b"k", b"v", (Header("h", b"1"), Header("n", None)))
SECOND = Record(6, 1_700_000_000_001, None, None)


def shown(dissection: Dissection, under: str) -> dict[str, object]:
    return {field.path.removeprefix(under): field.value for field in dissection.fields if field.path.startswith(under)}


def test_a_batch_is_shown_field_by_field() -> None:
    data = build_batch([FIRST, SECOND], leader_epoch=3)
    dissection = dissect_record_batches(data * 2)
    assert dissection.problem is None
    assert_no_byte_is_left_out(dissection)
    assert at(dissection, "batches[0].base_offset") == DissectedField(0, 8, "batches[0].base_offset", "int64", 5)
    assert at(dissection, "batches[1].base_offset").start == len(data)
    said = {field.path.removeprefix("batches[0]."): field.meaning for field in dissection.fields}
    assert said["crc"] == "CRC-32C of what follows; it matches"
    assert said["last_offset_delta"] == "the last offset is 6"
    assert said["max_timestamp"] == "2023-11-14T22:13:20.001Z"
    assert (said["producer_id"], said["base_sequence"]) == ("none", "none")
    assert said["records[0].offset_delta"] == "offset 5"
    assert said["records[1].timestamp_delta"] == "2023-11-14T22:13:20.001Z"
    assert said["records[1].value"] == "tombstone"
    assert shown(dissection, "batches[0].records[0].") == {
        "length": 15,
        "attributes": 0,
        "timestamp_delta": 0,
        "offset_delta": 0,
        "key": b"k",
        "value": b"v",
        "headers": 2,
        "headers[0].key": b"h",
        "headers[0].value": b"1",
        "headers[1].key": b"n",
        "headers[1].value": None,
    }


@pytest.mark.parametrize("compression", [one for one in Compression if one != Compression.NONE])
def test_records_of_a_compressed_batch_count_in_the_unpacked_bytes(compression: Compression) -> None:
    dissection = dissect_record_batches(build_batch([FIRST, SECOND], attributes=compression))
    assert dissection.problem is None
    assert_no_byte_is_left_out(dissection)
    packed = at(dissection, "batches[0].packed")
    assert packed.meaning == f"{compression.name.lower()}, unpacks to 23 bytes, whose records follow"
    key = at(dissection, "batches[0].records[0].key")
    assert (key.inside, key.start, key.end, key.value) == ("batches[0].packed", 4, 6, b"k")


@pytest.mark.parametrize(
    ("attributes", "meaning"),
    [
        (0, "not compressed, time of creation"),
        (LOG_APPEND_TIME | Compression.ZSTD, "zstd, time of append"),
        (TRANSACTIONAL | CONTROL, "not compressed, time of creation, transactional, control batch"),
        (DELETE_HORIZON, "not compressed, time of creation, base timestamp is the delete horizon"),
    ],
)
def test_attributes_are_said_in_words(attributes: int, meaning: str) -> None:
    dissection = dissect_record_batches(build_batch([FIRST], attributes=attributes, base_sequence=4))
    assert at(dissection, "batches[0].attributes").meaning == meaning
    assert at(dissection, "batches[0].base_sequence").meaning == ""


@pytest.mark.parametrize(("committed", "kind"), [(True, "COMMIT"), (False, "ABORT")])
def test_a_marker_says_how_the_transaction_ended(committed: bool, kind: str) -> None:
    marker = build_marker(8, EndTransactionMarker(committed, 4, 0), leader_epoch=0, producer_id=1, producer_epoch=2)
    dissection = dissect_record_batches(marker)
    assert at(dissection, "batches[0].records[0].key.type").meaning == kind
    assert at(dissection, "batches[0].records[0].value.coordinator_epoch").value == 4
    assert dissection.problem is None


def test_control_records_of_other_types_stay_bytes() -> None:
    record = Record(0, 0, b"\x00\x00\x00\x02", b"leader")
    dissection = dissect_record_batches(build_batch([record], attributes=CONTROL))
    assert at(dissection, "batches[0].records[0].key.type").meaning == "a control record of the Raft log"
    assert at(dissection, "batches[0].records[0].value").value == b"leader"


@pytest.mark.parametrize("record", recorded(), ids=lambda record: record.name)
def test_records_of_consumer_offsets_are_what_kafka_shows(record: Recorded) -> None:
    data = build_batch([Record(0, 0, record.key, record.value)])
    dissection = dissect_record_batches(data, "__consumer_offsets")
    assert_no_byte_is_left_out(dissection)
    assert not [field for field in dissection.fields if field.type == UNREADABLE]
    for part in ("key", "value"):
        fields = _under(dissection, f"batches[0].records[0].{part}.")
        for name, value in ((record.shown[part] or {}).get("data") or {}).items():
            if isinstance(value, str | int) and "bytes" not in fields[name].type:
                assert fields[name].as_json()["value"] == value


def _under(dissection: Dissection, prefix: str) -> dict[str, DissectedField]:
    return {field.path.removeprefix(prefix): field for field in dissection.fields if field.path.startswith(prefix)}


@pytest.mark.parametrize(("protocol_type", "is_opened"), [("consumer", True), ("connect", False)])
def test_subscriptions_in_the_records_of_classic_groups_are_opened(protocol_type: str, is_opened: bool) -> None:
    member = MemberMetadata(
        member_id="m",
        client_id="c",
        client_host="/127.0.0.1",
        session_timeout_ms=1,
        subscription=write_subscription(ConsumerProtocolSubscription(topics=("orders",))),
        assignment=b"",
    )
    value = GroupMetadataValue(
        protocol_type=protocol_type, generation=1, protocol="range", leader="m", members=(member,)
    )
    key = group_records.write_key(GroupMetadataKey(group="g"))
    data = build_batch([Record(0, 0, key, group_records.write_value(value, 3))])
    dissection = dissect_record_batches(data, "__consumer_offsets")
    assert_no_byte_is_left_out(dissection)
    member_fields = _under(dissection, "batches[0].records[0].value.members[0].")
    assert ("subscription.topics[0]" in member_fields) is is_opened
    assert member_fields["assignment"].value == b""


def test_states_have_their_names() -> None:
    value = TransactionLogValue(
        producer_id=1,
        producer_epoch=0,
        timeout_ms=60_000,
        status=1,
        partitions=(),
        last_update_timestamp_ms=0,
        start_timestamp_ms=0,
    )
    data = build_batch([Record(0, 0, write_key("t"), write_value(value, 1))])
    dissection = dissect_record_batches(data, "__transaction_state")
    assert at(dissection, "batches[0].records[0].value.transactionStatus").meaning == "Ongoing"
    assert at(dissection, "batches[0].records[0].key.record_type").meaning == "TransactionLog"


@pytest.mark.parametrize(
    ("key", "value", "meaning"),
    [
        ("0063", "0000", "no record type that Kafka 4.3 knows"),
        ("00", "0000", "record_type: 1 bytes are too few for the record_type"),
        ("0001 0001 67 0001 74 00000000", "0009", "version: OffsetCommitValue has no version 9; 0 to 4 are known"),
        ("0001 0001 67 0001 74 00000000", "00", "version: 1 bytes are too few for the version"),
    ],
)
def test_records_that_no_kafka_writes_are_shown_with_what_is_wrong(key: str, value: str, meaning: str) -> None:
    data = build_batch([Record(0, 0, bytes.fromhex(key), bytes.fromhex(value))])
    dissection = dissect_record_batches(data, "__consumer_offsets")
    assert_no_byte_is_left_out(dissection)
    assert meaning in [field.meaning for field in dissection.fields]


def test_a_batch_that_goes_on_is_a_problem_of_a_file() -> None:
    data = build_batch([FIRST])
    dissection = dissect_record_batches(data + data[:30])
    assert dissection.problem == (len(data), "the batch continues after these 30 bytes")
    assert_no_byte_is_left_out(dissection)
    assert dissect_record_batches(b"").fields == ()


def test_messages_of_an_older_format_are_one_field() -> None:
    old = bytes(8) + (14).to_bytes(4) + bytes(4) + b"\x01" + bytes(9)
    field = at(dissect_record_batches(old), "batches[0].messages")
    assert field.meaning.startswith("messages of magic 1, older than Kafka 0.11")


def _broken(how: str) -> bytes:
    data = bytearray(build_batch([FIRST, SECOND], attributes=Compression.GZIP if "packed" in how else 0))
    match how:
        case "packed bytes":
            data[61] = 0
        case "packed by nothing known":
            data[22] = 7
        case "too few bytes for a header":
            data[8:12] = (20).to_bytes(4)
            del data[32:]
        case "magic":
            data[16] = 9
        case "a number without an end":
            data[61:] = b"\xff" * (len(data) - 61)
        case "too many records":
            data[57:61] = (3).to_bytes(4)
        case "a key beyond the end":
            data[65] = 0x7E
        case "no attributes":
            data[57:61] = (3).to_bytes(4)
            data += b"\x02"
            data[8:12] = (len(data) - 12).to_bytes(4)
    return bytes(data)


@pytest.mark.parametrize(
    ("how", "offset", "reason"),
    [
        ("packed bytes", 61, "records: "),
        ("packed by nothing known", 61, "records: unknown compression type id: 7"),
        ("too few bytes for a header", 0, "batches[0]: a record batch has at least 61 bytes"),
        ("magic", 0, "batches[0]: Invalid magic found in record: 9"),
        ("a number without an end", 61, "records[0].length: a number of more than 5 bytes"),
        ("too many records", 84, "records[2].length: the bytes end here"),
        ("a key beyond the end", 65, "records[0].key: 63 bytes do not fit in the 18 that are left"),
        ("no attributes", 85, "records[2].attributes: the bytes end here"),
    ],
)
def test_a_broken_batch_is_shown_as_far_as_it_can_be_read(how: str, offset: int, reason: str) -> None:
    dissection = dissect_record_batches(_broken(how))
    assert_no_byte_is_left_out(dissection)
    assert dissection.problem is not None
    assert dissection.problem.offset == offset
    assert dissection.problem.reason.startswith(reason)


def test_a_checksum_that_does_not_match_is_said() -> None:
    data = bytearray(build_batch([FIRST]))
    data[17] ^= 1
    assert at(dissect_record_batches(bytes(data)), "batches[0].crc").meaning == "CRC-32C; does not match"


def test_bytes_that_are_no_text_have_no_meaning() -> None:
    record = Record(0, 0, b"\xff", b"two\nlines")
    fields = _under(dissect_record_batches(build_batch([record])), "batches[0].records[0].")
    assert (fields["key"].meaning, fields["value"].meaning) == ("", "")


@given(st.binary(max_size=120))
def test_any_bytes_are_batches_or_a_problem(data: bytes) -> None:
    assert_no_byte_is_left_out(dissect_record_batches(data, "__consumer_offsets"))


@pytest.mark.slow
@given(st.binary(max_size=60), st.integers(-1, 5))
def test_any_bytes_can_be_the_records_of_a_batch(data: bytes, count: int) -> None:
    batch = bytearray(build_batch([FIRST])[:61] + data)
    batch[8:12], batch[57:61] = (len(batch) - 12).to_bytes(4), count.to_bytes(4, signed=True)
    for topic in (None, "__consumer_offsets", "__transaction_state"):
        assert_no_byte_is_left_out(dissect_record_batches(bytes(batch), topic))
