"""Record batches, dissected: headers, records, markers, and what the coordinators' topics hold."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupcoord.dissect import DissectedField, Dissection, dissect_record_batches
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
from groupcoord.protocol.coordinator_records.transaction_log import TransactionLogValue, write_key, write_value
from tests.dissect.test_frames import assert_no_byte_is_left_out, at

FIRST = Record(5, 1_700_000_000_000, b"k", b"v", (Header("h", b"1"), Header("n", None)))
SECOND = Record(6, 1_700_000_000_001, None, None)


def shown(dissection: Dissection, under: str) -> dict[str, object]:
    return {
        field.path.removeprefix(under): field.value for field in dissection.fields if field.path.startswith(under)
    }


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


def _records_of_kafka() -> list[tuple[bytes, bytes | None]]:
    lines = Path("tests/protocol/records_of_kafka.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    return [(bytes.fromhex(row["key"]), row["value"] and bytes.fromhex(row["value"])) for row in rows]
