import gzip
import struct
from typing import Any

import pytest

from groupcoord.broker.log_validator import LogValidator, RecordValidationError, StampedBatch, check_format
from groupcoord.broker.topic_config import INT64_MAX, LogConfig
from groupcoord.protocol.batches.compression import Compression, compress
from groupcoord.protocol.batches.record_batch import (
    HEADER_BYTES,
    TRANSACTIONAL,
    BatchError,
    build_batch,
    checksum_matches,
    read_header,
    records_of,
)
from groupcoord.protocol.batches.records import Header, Record
from groupcoord.protocol.errors import ErrorCode
from tests.broker.data_plane import NOW_MS, THEN_MS, batch, patched
from tests.conformance.batches import old_message

HOUR_MS = 3_600_000


def validate(data: bytes, offset: int = 0, **settings: Any) -> StampedBatch:
    return LogValidator(LogConfig(**settings), "orders-0").check(data, NOW_MS).placed(offset, 0, NOW_MS)


def refused(data: bytes, **settings: Any) -> tuple[ErrorCode, str]:
    with pytest.raises(BatchError) as refusal:
        validate(data, **settings)
    return refusal.value.error, refusal.value.reason


class TestFormat:
    """What a Produce request may carry, before anybody looks inside."""

    def test_one_batch_is_what_is_expected(self) -> None:
        check_format(batch(b"x"), 12)

    def test_what_is_cut_short_behind_it_does_not_count(self) -> None:
        check_format(batch(b"x") + batch(b"y")[:-1], 12)

    @pytest.mark.parametrize("data", [b"", batch(b"x")[:-1]])
    def test_there_has_to_be_a_batch(self, data: bytes) -> None:
        with pytest.raises(BatchError, match="must have at least one record batch") as refusal:
            check_format(data, 9)
        assert refusal.value.error == ErrorCode.INVALID_RECORD

    @pytest.mark.parametrize("magic", [0, 1])
    def test_old_formats_are_refused(self, magic: int) -> None:
        with pytest.raises(BatchError, match="with magic version 2") as refusal:
            check_format(old_message(b"x", magic=magic), 9)
        assert refusal.value.error == ErrorCode.INVALID_RECORD

    def test_there_has_to_be_one_batch_only(self) -> None:
        with pytest.raises(BatchError, match="exactly one record batch") as refusal:
            check_format(batch(b"x") + batch(b"y"), 9)
        assert refusal.value.error == ErrorCode.INVALID_RECORD

    def test_zstandard_came_with_version_7(self) -> None:
        data = batch(b"x", attributes=Compression.ZSTD)
        check_format(data, 7)
        with pytest.raises(BatchError, match="ZStandard") as refusal:
            check_format(data, 6)
        assert refusal.value.error == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE

    def test_an_unknown_compression_is_looked_at_before_version_7_and_before_what_follows(self) -> None:
        data = patched(batch(b"x"), attributes=5) + bytes(30)
        for version, error in ((6, ErrorCode.UNKNOWN_SERVER_ERROR), (7, ErrorCode.CORRUPT_MESSAGE)):
            with pytest.raises(BatchError) as refusal:
                check_format(data, version)
            assert refusal.value.error == error

    def test_other_compressions_are_older(self) -> None:
        check_format(batch(b"x", attributes=Compression.GZIP), 3)


class TestTheBatch:
    """Size, checksum and header."""

    def test_a_good_batch_keeps_its_bytes_but_for_offset_and_epoch(self) -> None:
        data = batch(b"a", b"b", step_ms=5)
        valid = validate(data, offset=40)
        assert bytes(valid.data) == patched(data, base_offset=40, leader_epoch=0)
        assert valid.header == read_header(valid.data)
        assert checksum_matches(valid.data, valid.header)

    def test_what_lies_behind_the_batch_is_dropped(self) -> None:
        data = batch(b"a")
        assert validate(data + b"\0" * 11).data == validate(data).data

    def test_less_than_a_header_is_corrupt(self) -> None:
        error, _ = refused(batch(b"x")[:8] + b"\0\0\0\x20" + b"\0\0\0\0\x02" + bytes(27))
        assert error == ErrorCode.CORRUPT_MESSAGE

    def test_offsets_are_for_the_broker_to_give(self) -> None:
        error, reason = refused(batch(b"x", base_offset=0, leader_epoch=3).replace(bytes(8), bytes(7) + b"\x05", 1))
        assert error == ErrorCode.INVALID_RECORD
        assert reason.startswith(
            "The baseOffset of the record batch in the append to orders-0 should be 0, but it is 5"
        )

    def test_a_batch_may_be_as_large_as_the_topic_says(self) -> None:
        data = batch(bytes(100))
        validate(data, max_message_bytes=len(data))
        error, reason = refused(data, max_message_bytes=len(data) - 1)
        assert error == ErrorCode.MESSAGE_TOO_LARGE
        assert f"is {len(data)} bytes" in reason

    def test_a_wrong_checksum_is_corrupt(self) -> None:
        error, reason = refused(patched(batch(b"x"), crc=123))
        assert (error, reason) == (
            ErrorCode.CORRUPT_MESSAGE,
            "Record is corrupt (stored crc = 123) in topic partition orders-0.",
        )

    @pytest.mark.parametrize("number", [5, 6, 7])
    def test_an_unknown_compression_is_nothing_to_store(self, number: int) -> None:
        error, _ = refused(patched(batch(b"x"), attributes=number))
        assert error == ErrorCode.UNKNOWN_SERVER_ERROR

    @pytest.mark.parametrize(
        ("fields", "reason"),
        [
            ({"last_offset_delta": -1}, "Batch has an invalid offset range: [0, -1]"),
            ({"record_count": 0}, "Invalid reported count for record batch: 0"),
            ({"record_count": -1}, "Invalid reported count for record batch: -1"),
            ({"record_count": 3}, "Inconsistent batch offset range [0, 1] and count of records 3"),
            ({"attributes": 0x20}, "Clients are not allowed to write control records"),
            ({"producer_id": 9}, "Invalid sequence number -1 in record batch with producerId 9"),
        ],
    )
    def test_a_header_that_cannot_be_a_clients_is_refused(self, fields: dict[str, Any], reason: str) -> None:
        error, told = refused(patched(batch(b"x", b"y"), **fields))
        assert (error, told) == (ErrorCode.INVALID_RECORD, f"{reason} in topic partition orders-0")

    def test_records_that_are_not_as_many_as_counted_are_refused(self) -> None:
        error, _ = refused(patched(batch(b"x", b"y"), record_count=3, last_offset_delta=2))
        assert error == ErrorCode.INVALID_RECORD

    def test_uncompressed_records_need_no_consecutive_numbers(self) -> None:
        records = [Record(0, THEN_MS, b"k", b"a"), Record(7, THEN_MS, b"k", b"b")]
        data = patched(build_batch(records), last_offset_delta=1)
        assert [record.offset for record in records_of(validate(data, offset=100).data)] == [100, 107]

    def test_compressed_records_do(self) -> None:
        records = [Record(0, THEN_MS, b"k", b"a"), Record(7, THEN_MS, b"k", b"b")]
        data = patched(build_batch(records, attributes=Compression.GZIP), last_offset_delta=1)
        assert refused(data)[0] == ErrorCode.UNKNOWN_SERVER_ERROR


class TestKeys:
    """A compacted topic is of no use without keys."""

    def test_a_compacted_topic_wants_them(self) -> None:
        records = [Record(0, THEN_MS, None, b"a"), Record(1, THEN_MS, b"k", b"b"), Record(2, THEN_MS, None, b"c")]
        with pytest.raises(RecordValidationError) as refusal:
            validate(build_batch(records), cleanup_policy=frozenset({"compact"}))
        text = "Compacted topic cannot accept message without key in topic partition orders-0"
        assert refusal.value.error == ErrorCode.INVALID_RECORD
        assert refusal.value.record_errors == ((0, text), (2, text))
        assert refusal.value.reason == (
            "One or more records have been rejected due to 2 record errors in total, and only showing the first three "
            f"errors at most: [RecordError(batchIndex=0, message='{text}'), RecordError(batchIndex=2, message='{text}')]"
        )

    def test_three_of_many_are_shown(self) -> None:
        with pytest.raises(RecordValidationError) as refusal:
            validate(batch(*[b"v"] * 5, key=None), cleanup_policy=frozenset({"compact", "delete"}))
        assert len(refusal.value.record_errors) == 5
        assert refusal.value.reason.count("batchIndex=") == 3

    def test_any_other_topic_does_not(self) -> None:
        validate(batch(b"v", key=None))

    def test_with_keys_all_is_well(self) -> None:
        validate(batch(b"v", attributes=Compression.LZ4), cleanup_policy=frozenset({"compact"}))


class TestTime:
    """Create time is checked, append time is stamped."""

    @pytest.mark.parametrize("codec", list(Compression))
    def test_a_record_may_be_an_hour_ahead_of_the_clock(self, codec: Compression) -> None:
        validate(batch(b"x", at_ms=NOW_MS + HOUR_MS, attributes=codec))
        with pytest.raises(RecordValidationError) as refusal:
            validate(batch(b"x", b"y", at_ms=NOW_MS + HOUR_MS, step_ms=1, attributes=codec))
        assert refusal.value.error == ErrorCode.INVALID_TIMESTAMP
        assert refusal.value.reason == "One or more records have been rejected due to invalid timestamp"
        low, high = NOW_MS - INT64_MAX, NOW_MS + HOUR_MS
        range_text = "The timestamp should be within"
        assert refusal.value.record_errors == (
            (1, f"Timestamp {high + 1} of message with offset 1 is out of range. {range_text} [{low}, {high}]"),
        )

    def test_how_far_back_it_may_be_can_be_limited(self) -> None:
        validate(batch(b"x", at_ms=NOW_MS - 1_000), message_timestamp_before_max_ms=1_000)
        error, _ = refused(batch(b"x", at_ms=NOW_MS - 1_001), message_timestamp_before_max_ms=1_000)
        assert error == ErrorCode.INVALID_TIMESTAMP

    def test_no_timestamp_is_never_out_of_range(self) -> None:
        assert validate(batch(b"x", at_ms=-1), message_timestamp_before_max_ms=1_000).header.max_timestamp_ms == -1

    def test_the_range_in_the_message_overflows_as_javas(self) -> None:
        with pytest.raises(RecordValidationError, match="invalid timestamp") as refusal:
            validate(
                batch(b"x", at_ms=NOW_MS - 9),
                message_timestamp_after_max_ms=INT64_MAX,
                message_timestamp_before_max_ms=5,
            )
        assert f"[{NOW_MS - 5}, {NOW_MS - INT64_MAX - 2}]" in refusal.value.record_errors[0].message

    def test_both_errors_of_a_batch_are_told_and_the_time_wins(self) -> None:
        records = [Record(0, NOW_MS, None, b"a"), Record(1, NOW_MS - 10, b"k", b"b"), Record(2, NOW_MS, b"k", b"c")]
        with pytest.raises(RecordValidationError) as refusal:
            validate(build_batch(records), cleanup_policy=frozenset({"compact"}), message_timestamp_before_max_ms=5)
        assert refusal.value.error == ErrorCode.INVALID_TIMESTAMP
        assert [index for index, _ in refusal.value.record_errors] == [0, 1]

    def test_a_suspicion_that_proves_wrong_does_no_harm(self) -> None:
        records = [Record(0, NOW_MS, b"k", b"a"), Record(1, -1, b"k", b"b")]
        validate(build_batch(records), message_timestamp_before_max_ms=5)

    @pytest.mark.parametrize("codec", list(Compression))
    def test_a_wrong_largest_timestamp_is_put_right(self, codec: Compression) -> None:
        data = batch(b"a", b"b", step_ms=-7, attributes=codec, max_timestamp_ms=5)
        valid = validate(data)
        assert valid.header.max_timestamp_ms == THEN_MS
        assert checksum_matches(valid.data, valid.header)

    def test_times_before_1970_count_as_none(self) -> None:
        assert validate(batch(b"a", at_ms=-50, step_ms=-1)).header.max_timestamp_ms == -1

    def test_the_largest_timestamp_stays_a_long(self) -> None:
        data = patched(batch(b"a", b"b", step_ms=5), base_timestamp_ms=INT64_MAX)
        valid = validate(data, message_timestamp_after_max_ms=INT64_MAX)
        assert valid.header.max_timestamp_ms == INT64_MAX

    @pytest.mark.parametrize("codec", list(Compression))
    def test_append_time_is_stamped(self, codec: Compression) -> None:
        data = batch(b"a", b"b", at_ms=NOW_MS + 10 * HOUR_MS, step_ms=5, attributes=codec)
        valid = validate(data, message_timestamp_type="LogAppendTime")
        assert (valid.header.log_append_time, valid.header.max_timestamp_ms) == (True, NOW_MS)
        assert [record.timestamp_ms for record in records_of(valid.data)] == [NOW_MS, NOW_MS]
        assert checksum_matches(valid.data, valid.header)

    def test_a_producer_does_not_say_append_time_where_the_broker_does(self) -> None:
        data = patched(batch(b"xyz"), attributes=8)
        with pytest.raises(RecordValidationError) as refusal:
            validate(data, message_timestamp_type="LogAppendTime")
        assert refusal.value.error == ErrorCode.INVALID_TIMESTAMP
        record = f"DefaultRecord(offset=0, timestamp={THEN_MS}, key=1 bytes, value=3 bytes)"
        rule = "Producer should not set timestamp type to LogAppendTime."
        assert refusal.value.record_errors == ((0, f"Invalid timestamp type in message {record}. {rule}"),)

    def test_elsewhere_it_is_taken_back(self) -> None:
        valid = validate(patched(batch(b"x"), attributes=8))
        assert not valid.header.log_append_time
        assert checksum_matches(valid.data, valid.header)

    def test_but_not_without_a_time(self) -> None:
        error, _ = refused(patched(batch(b"x"), attributes=8, max_timestamp_ms=-1))
        assert error == ErrorCode.INVALID_TIMESTAMP

    def test_bits_without_a_meaning_stay_until_something_is_stamped(self) -> None:
        assert validate(patched(batch(b"x"), attributes=0x4100)).header.attributes == 0x4100
        assert validate(patched(batch(b"x"), attributes=0x4150, max_timestamp_ms=1)).header.attributes == 0x50


class TestCompression:
    """compression.type of the topic."""

    @pytest.mark.parametrize("codec", list(Compression))
    def test_producers_choose_unless_the_topic_does(self, codec: Compression) -> None:
        data = batch(b"a" * 500, attributes=codec)
        assert validate(data, offset=0).data[HEADER_BYTES:] == data[HEADER_BYTES:]

    @pytest.mark.parametrize("source", list(Compression))
    @pytest.mark.parametrize("target", list(Compression))
    def test_a_topic_that_chooses_has_batches_built_anew(self, source: Compression, target: Compression) -> None:
        records = [
            Record(0, THEN_MS, b"k", b"a" * 500, (Header("h", None),)),
            Record(1, THEN_MS + 1, None, None),
        ]
        data = build_batch(records, attributes=source, producer_id=7, producer_epoch=1, base_sequence=5)
        valid = validate(data, offset=30, compression_type="uncompressed" if target == 0 else target.name.lower())
        header = valid.header
        assert (header.compression, header.base_offset, header.last_offset, header.leader_epoch) == (target, 30, 31, 0)
        assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 1, 5)
        assert header.max_timestamp_ms == THEN_MS + 1
        assert list(records_of(valid.data)) == [record._replace(offset=record.offset + 30) for record in records]
        assert checksum_matches(valid.data, header)

    def test_gaps_go_when_a_batch_is_built_anew(self) -> None:
        records = [Record(0, THEN_MS, b"k", b"a"), Record(7, THEN_MS, b"k", b"b")]
        data = patched(build_batch(records, attributes=Compression.GZIP), last_offset_delta=1)
        valid = validate(data, offset=10, compression_type="zstd")
        assert [record.offset for record in records_of(valid.data)] == [10, 11]

    def test_a_level_is_used(self) -> None:
        data = batch(b"".join(struct.pack(">I", number * number) for number in range(20_000)))
        sizes = [validate(data, compression_type="gzip", compression_gzip_level=level).header.size for level in (1, 9)]
        assert sizes[1] < sizes[0]
        best = validate(data, compression_type="gzip", compression_gzip_level=-1)
        assert gzip.decompress(bytes(best.data[HEADER_BYTES:])) == data[HEADER_BYTES:]

    def test_append_time_goes_with_it(self) -> None:
        valid = validate(batch(b"a"), compression_type="lz4", message_timestamp_type="LogAppendTime")
        assert (valid.header.log_append_time, valid.header.max_timestamp_ms) == (True, NOW_MS)

    def test_the_new_batch_may_be_too_large(self) -> None:
        data = batch(bytes(5_000), attributes=Compression.ZSTD)
        error, reason = refused(data, compression_type="uncompressed", max_message_bytes=1_000)
        assert error == ErrorCode.MESSAGE_TOO_LARGE
        assert "exceeds the maximum configured size of 1000" in reason

    @pytest.mark.parametrize(
        "how", [{"attributes": TRANSACTIONAL}, {"producer_id": 7, "producer_epoch": -1, "base_sequence": 0}]
    )
    def test_a_batch_that_does_not_say_whose_it_is_cannot_be_rebuilt(self, how: dict[str, Any]) -> None:
        data = batch(b"a", **how)
        assert refused(data, compression_type="gzip")[0] == ErrorCode.UNKNOWN_SERVER_ERROR
        assert validate(data).header.size == len(data)

    def test_times_before_1970_cannot_be_built_anew(self) -> None:
        error, _ = refused(batch(b"a", at_ms=-50), compression_type="gzip")
        assert error == ErrorCode.UNKNOWN_SERVER_ERROR

    def test_bytes_that_are_not_compressed_as_they_say_are_refused(self) -> None:
        data = batch(b"a")
        spoilt = data[:HEADER_BYTES] + compress(Compression.LZ4, b"a")[:-2]
        spoilt = patched(spoilt, attributes=Compression.LZ4, length=len(spoilt) - 12)
        assert refused(spoilt)[0] == ErrorCode.UNKNOWN_SERVER_ERROR
