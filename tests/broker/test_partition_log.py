from typing import Any

import pytest

from groupcoord.broker.partition_log import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    FoundOffset,
    LogOffsetMetadata,
    PartitionLog,
)
from groupcoord.broker.topic_config import LogConfig
from groupcoord.core.effects import LogRecord
from groupcoord.protocol.batches.record_batch import BatchError, read_header, records_in
from groupcoord.protocol.batches.records import Record
from groupcoord.protocol.errors import ErrorCode
from tests.broker.data_plane import NOW_MS, THEN_MS, batch

SIZE = len(batch(bytes(900)))
SEGMENTED = {"segment_bytes": 2 * SIZE, "retention_ms": -1}


def log(**settings: Any) -> PartitionLog:
    return PartitionLog(LogConfig(**settings), "orders-0")


def filled(count: int, *, step_ms: int = 100, **settings: Any) -> PartitionLog:
    """A log of ``count`` batches with one record each, all of SIZE bytes."""
    made = log(**settings)
    for index in range(count):
        made.append(batch(bytes(900), at_ms=THEN_MS + index * step_ms), NOW_MS)
    return made


def refused(made: PartitionLog, offset: int, max_bytes: int = 1 << 20) -> ErrorCode:
    with pytest.raises(BatchError) as refusal:
        made.read(offset, max_bytes, at_least_one=True)
    return refusal.value.error


def offsets(data: bytes) -> list[int]:
    return [record.offset for record in records_in(data)]


class TestAppending:
    def test_offsets_are_given_one_behind_the_other(self) -> None:
        made = log()
        first = made.append(batch(b"a", b"b"), NOW_MS)
        second = made.append(batch(b"c"), NOW_MS)
        assert (first.base_offset, first.last_offset, second.base_offset, second.last_offset) == (0, 1, 2, 2)
        assert (made.log_end_offset, made.high_watermark, made.last_stable_offset) == (3, 3, 3)
        assert repr(made) == f"<PartitionLog orders-0 offsets=0–3 bytes={made.size}>"

    def test_the_time_of_the_append_is_told_where_records_have_it(self) -> None:
        assert log().append(batch(b"a"), NOW_MS).log_append_time_ms == -1
        assert log(message_timestamp_type="LogAppendTime").append(batch(b"a"), NOW_MS).log_append_time_ms == NOW_MS

    def test_nothing_changes_when_a_batch_is_refused(self) -> None:
        made = filled(1, segment_bytes=2_000)
        with pytest.raises(BatchError) as refusal:
            made.append(batch(bytes(3_000)), NOW_MS)
        assert refusal.value.error == ErrorCode.RECORD_LIST_TOO_LARGE
        assert (made.log_end_offset, made.size) == (1, SIZE)

    def test_a_repeated_batch_is_not_stored_again(self) -> None:
        made = log()
        data = batch(b"a", b"b", producer_id=5, producer_epoch=0, base_sequence=0)
        made.append(batch(b"x"), NOW_MS)
        first, again = made.append(data, NOW_MS), made.append(data, NOW_MS)
        assert not first.duplicate
        # Kafka tells the time of the batch here, even where records have their own.
        assert again == (1, 2, THEN_MS, 0, True)
        assert made.log_end_offset == 3

    def test_a_gap_in_the_sequence_is_refused(self) -> None:
        made = log()
        made.append(batch(b"a", producer_id=5, producer_epoch=0, base_sequence=0), NOW_MS)
        with pytest.raises(BatchError) as refusal:
            made.append(batch(b"b", producer_id=5, producer_epoch=0, base_sequence=2), NOW_MS)
        assert refusal.value.error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert "at offset 1 in partition orders-0" in refusal.value.reason

    def test_own_records_are_one_batch_of_this_moment(self) -> None:
        made = filled(1)
        appended = made.append_own([LogRecord(key=b"k", value=b"v"), LogRecord(key=b"k", value=None)], NOW_MS)
        assert appended == (1, 2, -1, 0, False)
        read = made.read(1, 1_000, at_least_one=True)
        assert list(records_in(read.data())) == [Record(1, NOW_MS, b"k", b"v"), Record(2, NOW_MS, b"k", None)]
        assert read_header(read.data()).leader_epoch == 0

    @pytest.mark.parametrize(
        ("settings", "error"),
        [
            ({"max_message_bytes": 100}, ErrorCode.MESSAGE_TOO_LARGE),
            ({"segment_bytes": 100}, ErrorCode.RECORD_LIST_TOO_LARGE),
        ],
    )
    def test_own_records_have_to_fit_too(self, settings: dict[str, int], error: ErrorCode) -> None:
        made = log(**settings)
        with pytest.raises(BatchError) as refusal:
            made.append_own([LogRecord(key=b"k", value=bytes(100))], NOW_MS)
        assert refusal.value.error == error
        assert made.log_end_offset == 0


class TestSegments:
    def test_a_segment_is_closed_when_the_next_batch_does_not_fit(self) -> None:
        assert [segment.base_offset for segment in filled(5, **SEGMENTED).segments] == [0, 2, 4]

    def test_a_segment_is_closed_when_it_is_old(self) -> None:
        made = filled(6, step_ms=400, segment_ms=1_000)
        assert [segment.base_offset for segment in made.segments] == [0, 3]

    def test_the_first_batch_of_a_segment_never_closes_it(self) -> None:
        made = log(segment_ms=1)
        made.append(batch(b"a", at_ms=-1), NOW_MS + 10)
        assert len(made.segments) == 1


class TestReading:
    def test_an_empty_log_has_nothing_to_read(self) -> None:
        read = log().read(0, 100, at_least_one=True)
        assert (read.data(), read.start) == (b"", LogOffsetMetadata(0, 0, 0))

    @pytest.mark.parametrize("offset", [-1, 4])
    def test_an_offset_outside_is_out_of_range(self, offset: int) -> None:
        assert refused(filled(3), offset) == ErrorCode.OFFSET_OUT_OF_RANGE

    def test_a_negative_size_is_nobodys_wish(self) -> None:
        assert refused(filled(1), 0, -1) == ErrorCode.UNKNOWN_SERVER_ERROR
        assert filled(1).read(1, -1, at_least_one=True).data() == b""

    def test_reading_starts_with_the_batch_that_holds_the_offset(self) -> None:
        made = log()
        made.append(batch(b"a", b"b", b"c"), NOW_MS)
        made.append(batch(b"d"), NOW_MS)
        read = made.read(2, 1 << 20, at_least_one=False)
        assert offsets(read.data()) == [0, 1, 2, 3]
        assert read.start == LogOffsetMetadata(0, 0, 0)

    @pytest.mark.parametrize(("max_bytes", "length"), [(SIZE, SIZE), (SIZE + 50, SIZE + 50), (5 * SIZE, 3 * SIZE)])
    def test_the_last_batch_may_be_cut_off(self, max_bytes: int, length: int) -> None:
        read = filled(3).read(0, max_bytes, at_least_one=False)
        assert (read.length, len(read.data())) == (length, length)

    def test_the_first_batch_comes_whole_when_it_must(self) -> None:
        read = filled(3).read(1, 10, at_least_one=True)
        assert offsets(read.data()) == [1]

    @pytest.mark.parametrize("max_bytes", [0, 1, SIZE - 1])
    def test_and_not_at_all_otherwise(self, max_bytes: int) -> None:
        read = filled(3).read(1, max_bytes, at_least_one=False)
        assert (read.data(), read.start) == (b"", LogOffsetMetadata(1, 0, SIZE))

    def test_a_read_stays_in_one_segment(self) -> None:
        made = filled(5, **SEGMENTED)
        assert [offsets(made.read(offset, 1 << 20, at_least_one=True).data()) for offset in range(5)] == [
            [0, 1],
            [1],
            [2, 3],
            [3],
            [4],
        ]
        assert made.read(5, 1 << 20, at_least_one=True).start == LogOffsetMetadata(5, 4, SIZE)

    def test_gaps_are_read_over(self) -> None:
        """As compaction leaves them: in a segment, at its end, and at the end of the log."""
        made = filled(6, **SEGMENTED)
        first, second, third = made.segments
        for segment in (second, third):
            segment.__init__(segment.base_offset, NOW_MS)  # type: ignore[misc]
        assert offsets(made.read(0, 1 << 20, at_least_one=True).data()) == [0, 1]
        nothing = made.read(2, 1 << 20, at_least_one=True)
        assert (nothing.data(), nothing.start) == (b"", LogOffsetMetadata(6, 4, 0))
        late = batch(b"late")
        made.append(late, NOW_MS)
        assert offsets(made.read(2, 1 << 20, at_least_one=True).data()) == [6]
        assert first.size == 2 * SIZE


class TestLookingUp:
    def test_the_ends(self) -> None:
        made = filled(3)
        made.delete_records(1)
        assert made.offset_for_timestamp(EARLIEST) == FoundOffset(-1, 1, 0)
        assert made.offset_for_timestamp(EARLIEST_LOCAL) == FoundOffset(-1, 1, 0)
        assert made.offset_for_timestamp(LATEST) == FoundOffset(-1, 3, 0)

    @pytest.mark.parametrize("timestamp", [LATEST_TIERED, EARLIEST_PENDING_UPLOAD])
    def test_nothing_is_tiered(self, timestamp: int) -> None:
        assert filled(3).offset_for_timestamp(timestamp) == FoundOffset(-1, -1, -1)

    def test_the_latest_record(self) -> None:
        made = filled(6, step_ms=-100, **SEGMENTED)
        assert made.offset_for_timestamp(MAX_TIMESTAMP) == FoundOffset(THEN_MS, 0, 0)
        assert log().offset_for_timestamp(MAX_TIMESTAMP) is None

    @pytest.mark.parametrize(
        ("timestamp", "offset"), [(0, 0), (THEN_MS, 0), (THEN_MS + 1, 1), (THEN_MS + 300, 3), (THEN_MS + 500, 5)]
    )
    def test_the_first_record_since_a_time(self, timestamp: int, offset: int) -> None:
        found = filled(6, **SEGMENTED).offset_for_timestamp(timestamp)
        assert found == FoundOffset(THEN_MS + 100 * offset, offset, 0)

    def test_no_record_since_a_time(self) -> None:
        assert filled(6, **SEGMENTED).offset_for_timestamp(THEN_MS + 501) is None
        assert log().offset_for_timestamp(0) is None

    def test_records_that_were_deleted_are_not_found(self) -> None:
        made = filled(3)
        made.delete_records(2)
        assert made.offset_for_timestamp(0) == FoundOffset(THEN_MS + 200, 2, 0)

    def test_the_end_of_an_epoch(self) -> None:
        made = filled(3)
        made.delete_records(1)
        ends = [made.end_of_epoch(epoch) for epoch in (0, -1, 1, -2)]
        assert ends == [(0, 3), (-1, -1), (-1, -1), (-2, 1)]


class TestForgetting:
    def test_records_are_deleted_up_to_an_offset(self) -> None:
        made = filled(3)
        assert made.delete_records(2) == 2
        assert refused(made, 1) == ErrorCode.OFFSET_OUT_OF_RANGE
        assert made.delete_records(1) == 2
        assert made.delete_records(-1) == 3
        assert made.read(3, 10, at_least_one=True).data() == b""

    @pytest.mark.parametrize("offset", [4, -2])
    def test_there_is_nothing_to_delete_beyond_the_end(self, offset: int) -> None:
        made = filled(3)
        with pytest.raises(BatchError) as refusal:
            made.delete_records(offset)
        assert refusal.value.error == ErrorCode.OFFSET_OUT_OF_RANGE

    def test_what_is_only_compacted_is_not_deleted(self) -> None:
        with pytest.raises(BatchError) as refusal:
            filled(1, cleanup_policy=frozenset({"compact"})).delete_records(0)
        assert refusal.value.error == ErrorCode.POLICY_VIOLATION
        for policy in (frozenset({"compact", "delete"}), frozenset[str]()):
            assert filled(1, cleanup_policy=policy).delete_records(1) == 1

    @pytest.mark.parametrize("policy", [frozenset({"delete"}), frozenset({"compact", "delete"}), frozenset[str]()])
    def test_deleted_segments_go_at_the_next_retention(self, policy: frozenset[str]) -> None:
        made = filled(5, cleanup_policy=policy, **SEGMENTED)
        made.delete_records(3)
        assert made.size == 5 * SIZE
        made.apply_retention(NOW_MS)
        assert (made.size, made.log_start_offset) == (3 * SIZE, 3)

    def test_a_log_is_bounded_by_size(self) -> None:
        made = filled(9, retention_bytes=3 * SIZE, **SEGMENTED)
        assert (made.log_start_offset, made.size) == (0, 9 * SIZE)
        made.apply_retention(NOW_MS)
        # Segments of two batches go as long as three batches are left.
        assert (made.log_start_offset, made.size) == (6, 3 * SIZE)

    def test_memory_is_bounded_at_every_new_segment(self) -> None:
        """Deviation (bounded-memory)."""
        made = filled(9, retention_bytes=-1, memory_bytes=3 * SIZE, **SEGMENTED)
        # Segments are an eighth of the memory at most, so that each batch is one; the new one is not counted yet.
        assert (made.log_start_offset, made.size) == (5, 4 * SIZE)

    def test_memory_does_not_bound_what_is_to_be_kept(self) -> None:
        made = filled(9, retention_bytes=-1, memory_bytes=3 * SIZE, cleanup_policy=frozenset({"compact"}), **SEGMENTED)
        assert made.size == 9 * SIZE

    def test_not_even_the_last_segment_is_spared(self) -> None:
        made = filled(1, retention_bytes=0)
        made.apply_retention(NOW_MS)
        assert (made.log_start_offset, made.log_end_offset, made.size) == (1, 1, 0)
        made.apply_retention(NOW_MS)
        assert made.append(batch(b"x"), NOW_MS).base_offset == 1

    @pytest.mark.parametrize(
        "settings", [{"retention_bytes": -1}, {"retention_bytes": 0, "cleanup_policy": frozenset()}]
    )
    def test_without_a_bound_it_grows(self, settings: dict[str, Any]) -> None:
        made = filled(9, **SEGMENTED, **settings)
        made.apply_retention(NOW_MS)
        assert made.size == 9 * SIZE

    def test_old_segments_go(self) -> None:
        made = filled(6, segment_bytes=2 * SIZE, retention_ms=60_000)
        made.apply_retention(THEN_MS + 60_100)
        assert made.log_start_offset == 0
        made.apply_retention(THEN_MS + 60_101)
        assert made.log_start_offset == 2
        made.apply_retention(THEN_MS + 10 * 60_000)
        assert (made.log_start_offset, made.log_end_offset, made.size) == (6, 6, 0)

    def test_the_age_of_records_without_time_is_that_of_the_last_append(self) -> None:
        made = log(retention_ms=1_000)
        made.append(batch(b"x", at_ms=-1), NOW_MS)
        made.apply_retention(NOW_MS + 1_000)
        assert made.log_start_offset == 0
        made.apply_retention(NOW_MS + 1_001)
        assert made.log_start_offset == 1

    def test_new_settings_count_at_once(self) -> None:
        made = filled(5, **SEGMENTED)
        made.settings = LogConfig(retention_bytes=0, max_message_bytes=10)
        made.apply_retention(NOW_MS)
        assert made.log_start_offset == 5
        with pytest.raises(BatchError):
            made.append(batch(b"x"), NOW_MS)

    def test_what_is_gone_stays_gone_for_searches(self) -> None:
        made = filled(6, **SEGMENTED)
        made.delete_records(4)
        made.apply_retention(NOW_MS)
        assert made.offset_for_timestamp(THEN_MS) == FoundOffset(THEN_MS + 400, 4, 0)
        assert offsets(made.read(4, 1 << 20, at_least_one=True).data()) == [4, 5]
