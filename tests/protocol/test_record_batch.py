"""Batches against three other implementations: kafka-python's, aiokafka's and the conformance suite's own."""

import struct
from collections.abc import Sequence

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from hypothesis import given
from hypothesis import strategies as st
from kafka.record import MemoryRecords

from groupcoord.protocol.batches.compression import Compression
from groupcoord.protocol.batches.record_batch import (
    ABORT_MARKER,
    COMMIT_MARKER,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    BatchError,
    BatchHeader,
    add_to_sequence,
    attributes_of,
    build_batch,
    build_own_batch,
    checksum_matches,
    iter_batch_extents,
    marker_type,
    read_header,
    records_in,
    records_of,
    stamp_offsets,
    stamp_time,
    validate_batch_records,
)
from groupcoord.protocol.batches.records import Header, Record
from groupcoord.protocol.errors import ErrorCode
from tests.conformance.batches import Rec, old_message
from tests.conformance.batches import batch as batch_by_hand

THEN_MS = 1_700_000_000_000
RECORDS = [
    Record(0, THEN_MS, b"k", b"one"),
    Record(1, THEN_MS + 5, None, b"two", (Header("trace", b"1"), Header("none", None))),
    Record(2, THEN_MS - 3, b"k", None),
]


def patched(batch: bytes, **fields: int) -> bytes:
    header = read_header(batch)._replace(**fields)
    return struct.pack(">qiibIhiqqqhii", *header) + batch[HEADER_BYTES:]


def read_by_kafka_python(data: bytes) -> list[Record]:
    return [
        Record(record.offset, record.timestamp, record.key, record.value, tuple(map(Header._make, record.headers)))
        for batch in MemoryRecords(data)
        for record in batch
    ]


@pytest.mark.parametrize("codec", list(Compression))
def test_kafka_python_reads_what_is_built(codec: Compression) -> None:
    assert read_by_kafka_python(build_batch(RECORDS, attributes=codec)) == RECORDS


@pytest.mark.parametrize("codec", list(Compression))
def test_what_aiokafka_builds_is_read(codec: Compression) -> None:
    builder = DefaultRecordBatchBuilder(
        magic=2, compression_type=codec, is_transactional=0, producer_id=-1, producer_epoch=-1, base_sequence=-1,
        batch_size=10_000,
    )  # fmt: skip
    for record in RECORDS:
        builder.append(
            record.offset, record.timestamp_ms, record.key, record.value, [tuple(header) for header in record.headers]
        )
    batch = bytes(builder.build())
    header = read_header(batch)
    assert checksum_matches(batch, header)
    assert header.compression == codec
    assert (header.max_timestamp_ms, header.record_count, header.size) == (THEN_MS + 5, 3, len(batch))
    validate_batch_records(batch, header)
    assert list(records_of(batch)) == RECORDS


def test_a_batch_is_the_same_byte_for_byte_when_built_by_hand() -> None:
    by_hand = batch_by_hand(
        [Rec(b"one", b"k", THEN_MS), Rec(b"two", None, THEN_MS + 5, (("trace", b"1"), ("none", None)))],
        producer=(7, 1, 42),
        base_offset=9,
        leader_epoch=3,
    )
    built = build_batch(
        [record._replace(offset=record.offset + 9) for record in RECORDS[:2]],
        leader_epoch=3,
        producer_id=7,
        producer_epoch=1,
        base_sequence=42,
    )
    assert built == by_hand


@pytest.mark.slow
@given(
    timestamps=st.lists(st.integers(-1, 1 << 42), min_size=1, max_size=5),
    first=st.integers(0, 1 << 40),
    codec=st.sampled_from(list(Compression)),
)
def test_what_is_built_is_read(timestamps: Sequence[int], first: int, codec: Compression) -> None:
    records = [Record(first + 2 * at, time, b"k", b"v") for at, time in enumerate(timestamps)]
    batch = build_batch(records, base_offset=first - 1 if first else 0, attributes=codec)
    assert list(records_of(batch)) == records
    assert read_header(batch).last_offset == records[-1].offset


def test_the_header_says_what_it_was_given() -> None:
    batch = build_batch(
        RECORDS, leader_epoch=5, producer_id=9, producer_epoch=2, base_sequence=30, attributes=0x10, max_timestamp_ms=77
    )
    header = read_header(batch)
    assert header[:4] == (0, len(batch) - 12, 5, 2)
    assert header[5:] == (0x10, 2, THEN_MS, 77, 9, 2, 30, 3)
    assert (header.last_offset, header.last_sequence, header.has_producer_id) == (2, 32, True)
    assert header.size == len(batch)
    assert (header.transactional, header.control, header.log_append_time) == (True, False, False)


def test_records_have_the_time_of_the_append_when_the_batch_says_so() -> None:
    batch = build_batch(RECORDS, attributes=LOG_APPEND_TIME, max_timestamp_ms=99)
    assert [record.timestamp_ms for record in records_of(batch)] == [99, 99, 99]


def test_a_batch_without_producer_has_no_sequence() -> None:
    header = read_header(build_batch(RECORDS))
    assert (header.has_producer_id, header.last_sequence) == (False, -1)


@pytest.mark.parametrize(
    ("sequence", "increment", "expected"),
    [(0, 5, 5), ((1 << 31) - 1, 1, 0), ((1 << 31) - 2, 4, 2), (2, -4, (1 << 31) - 2), (0, -1, (1 << 31) - 1)],
)
def test_sequence_numbers_start_again_behind_the_largest(sequence: int, increment: int, expected: int) -> None:
    assert add_to_sequence(sequence, increment) == expected


def test_batches_are_found_one_behind_the_other() -> None:
    first, second = build_batch(RECORDS), build_batch(RECORDS[:1])
    data = first + second + old_message(b"x", magic=1)
    assert [(e.position, e.size, e.magic) for e in iter_batch_extents(data)] == [
        (0, len(first), 2),
        (len(first), len(second), 2),
        (len(first + second), len(data) - len(first + second), 1),
    ]


@pytest.mark.parametrize("rest", [1, 11, 12, 16, 17, 60, 70])
def test_an_incomplete_batch_at_the_end_is_left_out(rest: int) -> None:
    batch = build_batch(RECORDS)
    assert len(list(iter_batch_extents(batch + batch[:rest]))) == 1


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (bytes(8) + struct.pack(">i", 13) + bytes(20), "Record size 13 is less than the minimum record overhead (14)"),
        (patched(build_batch(RECORDS), magic=3), "Invalid magic found in record: 3"),
        (patched(build_batch(RECORDS), magic=-1), "Invalid magic found in record: -1"),
    ],
)
def test_bytes_that_are_no_batch_are_corrupt(data: bytes, reason: str) -> None:
    with pytest.raises(BatchError) as refusal:
        list(iter_batch_extents(data))
    assert (refusal.value.error, refusal.value.reason) == (ErrorCode.CORRUPT_MESSAGE, reason)


def test_less_than_a_header_is_corrupt() -> None:
    with pytest.raises(BatchError) as refusal:
        read_header(build_batch(RECORDS)[:60])
    assert refusal.value.error == ErrorCode.CORRUPT_MESSAGE


def test_the_attributes_of_a_batch_are_read_without_its_header() -> None:
    short = patched(build_batch(RECORDS), attributes=0x113)[:26]
    short = b"junk" + short[:8] + (14).to_bytes(4, "big") + short[12:]
    assert attributes_of(short, next(iter_batch_extents(short[4:]))._replace(position=4)) == 0x113


def test_a_compression_that_is_none_is_told() -> None:
    header = read_header(patched(build_batch(RECORDS), attributes=5))
    with pytest.raises(BatchError, match="unknown compression type id: 5") as refusal:
        _ = header.compression
    assert refusal.value.error == ErrorCode.UNKNOWN_SERVER_ERROR


def test_bytes_that_are_not_what_their_compression_says_are_told() -> None:
    batch = patched(build_batch(RECORDS), attributes=Compression.ZSTD)
    with pytest.raises(BatchError) as refusal:
        validate_batch_records(batch, read_header(batch))
    assert refusal.value.error == ErrorCode.UNKNOWN_SERVER_ERROR


def test_records_that_are_none_are_told() -> None:
    batch = patched(build_batch(RECORDS), record_count=4)
    with pytest.raises(BatchError) as refusal:
        validate_batch_records(batch, read_header(batch))
    assert refusal.value.error == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("at", range(21, 90, 7))
def test_a_changed_byte_spoils_the_checksum(at: int) -> None:
    batch = bytearray(build_batch(RECORDS))
    batch[at] ^= 1
    assert not checksum_matches(batch, read_header(batch))


def test_offset_and_epoch_can_be_stamped_without_touching_the_checksum() -> None:
    batch = bytearray(build_batch(RECORDS))
    stamp_offsets(batch, 1_000, 4)
    header = read_header(batch)
    assert (header.base_offset, header.last_offset, header.leader_epoch) == (1_000, 1_002, 4)
    assert checksum_matches(batch, header)
    assert [record.offset for record in records_of(batch)] == [1_000, 1_001, 1_002]


def test_attributes_and_time_are_stamped_with_a_new_checksum() -> None:
    batch = bytearray(build_batch(RECORDS))
    stamp_time(batch, LOG_APPEND_TIME, 123)
    header = read_header(batch)
    assert (header.log_append_time, header.max_timestamp_ms) == (True, 123)
    assert checksum_matches(batch, header)


def test_the_records_of_all_batches_are_read_and_markers_left_out() -> None:
    second = build_batch([Record(5, THEN_MS, b"x", b"y")], attributes=Compression.GZIP)
    marker = patched(build_batch([Record(9, THEN_MS, b"m", b"m")]), attributes=0x20)
    data = build_batch(RECORDS) + marker + second
    assert [record.offset for record in records_in(data + second[:-1])] == [0, 1, 2, 5]


def test_a_header_has_as_many_fields_as_the_layout() -> None:
    assert struct.calcsize(">qiibIhiqqqhii") == HEADER_BYTES
    assert len(BatchHeader._fields) == 13


@pytest.mark.parametrize(
    ("key", "said"),
    [(b"\0\0\0\1", COMMIT_MARKER), (b"\0\0\0\0", ABORT_MARKER), (b"\0\0\0\4later", 4), (b"\0\0\0", -1), (None, -1)],
)
def test_the_key_of_a_control_record_says_how_a_transaction_ended(key: bytes | None, said: int) -> None:
    assert marker_type(key) == said


@pytest.mark.parametrize(
    ("key_bytes", "value_bytes"), [(0, 0), (40, 50), (63, 64), (100, 8_079), (100, 8_080), (9_000, 1)]
)
def test_a_batch_of_the_broker_itself_is_as_any_other(key_bytes: int, value_bytes: int) -> None:
    pairs = [(bytes(key_bytes), bytes(value_bytes)), (b"k", None)] * 100
    batch, header = build_own_batch(pairs, 7, 50, leader_epoch=3)
    records = [Record(7 + index, 50, key, value) for index, (key, value) in enumerate(pairs)]
    assert batch == build_batch(records, leader_epoch=3)
    assert header == read_header(batch)


def test_records_far_behind_the_first_one_of_their_batch() -> None:
    pairs = [(b"k", b"v")] * 8_200
    batch, _ = build_own_batch(pairs, 0, 50, leader_epoch=0, producer_id=5, producer_epoch=1, base_sequence=0)
    records = [Record(index, 50, key, value) for index, (key, value) in enumerate(pairs)]
    assert batch == build_batch(records, leader_epoch=0, producer_id=5, producer_epoch=1, base_sequence=0)
