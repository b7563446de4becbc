"""Transactions in one log: what is stable, what was aborted, and what may be appended."""

import pytest

from groupcoord.broker.partition_log import LATEST, MAX_TIMESTAMP, LogAppendInfo, LogOffsetMetadata, PartitionLog
from groupcoord.broker.producer_state_manager import AbortedTransaction
from groupcoord.broker.storage_backend import IN_MEMORY_LOG_BACKEND, LogBackend, LogState, Segment
from groupcoord.broker.topic_config import LogConfig
from groupcoord.core.effects import LogRecord
from groupcoord.protocol.batches.compression import Compression
from groupcoord.protocol.batches.record_batch import (
    CONTROL,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    NO_SEQUENCE,
    TRANSACTIONAL,
    BatchError,
    BatchHeader,
    read_header,
)
from groupcoord.protocol.errors import ErrorCode
from tests.broker.data_plane import NOW_MS, THEN_MS, batch
from tests.broker.transactions import end, part, write

ALL = 1 << 20
MARKER_BYTES = HEADER_BYTES + 17


def log(*steps: object, **settings: object) -> PartitionLog:
    made = PartitionLog(LogConfig(**settings), "orders-0")  # type: ignore[arg-type]
    write(made, *steps)  # type: ignore[arg-type]
    return made


def refused(made: PartitionLog, step: object) -> ErrorCode:
    before = made.log_end_offset
    with pytest.raises(BatchError) as refusal:
        write(made, step)  # type: ignore[arg-type]
    assert made.log_end_offset == before
    return refusal.value.error


class TestStability:
    def test_nothing_behind_an_open_transaction_is_stable(self) -> None:
        made = log(batch(b"a"), part(0), batch(b"b"), part(1))
        assert (made.last_stable_offset, made.high_watermark) == (1, 4)
        write(made, end(committed=True))
        assert (made.last_stable_offset, made.high_watermark) == (5, 5)

    def test_the_oldest_one_counts(self) -> None:
        made = log(part(producer=1), part(producer=2), end(producer=1))
        assert made.last_stable_offset == 1
        write(made, end(producer=2))
        assert made.last_stable_offset == 4

    def test_what_is_deleted_does_not_count(self) -> None:
        made = log(part(0), batch(b"a"), batch(b"b"))
        made.delete_records(2)
        assert made.last_stable_offset == 2
        made.delete_records(-1)
        assert (made.last_stable_offset, made.last_stable_position) == (3, made.end_position)

    def test_of_what_is_deleted_in_part_the_batch_counts(self) -> None:
        made = log(part(0), part(1, 5))
        made.delete_records(3)
        assert made.last_stable_offset == 1

    def test_its_place_is_known(self) -> None:
        made = log(batch(b"a"), part(0), segment_bytes=len(part(0)))
        assert made.last_stable_position == LogOffsetMetadata(1, 1, 0)

    def test_who_looks_for_a_time_does_not_find_what_is_open(self) -> None:
        made = log(batch(b"a", at_ms=THEN_MS), part(0, at_ms=THEN_MS + 5))
        for asked in (THEN_MS + 5, MAX_TIMESTAMP):
            found = made.offset_for_timestamp(asked)
            assert found is not None
            assert found.offset == 1
            assert made.offset_for_timestamp(asked, committed_only=True) is None
        latest = made.offset_for_timestamp(LATEST, committed_only=True)
        assert latest is not None
        assert latest.offset == 1
        assert made.offset_for_timestamp(THEN_MS, committed_only=True) == made.offset_for_timestamp(THEN_MS)


class TestMarkers:
    def test_one_is_a_control_batch(self) -> None:
        made = log(part(0))
        assert made.append_marker(end(committed=True, coordinator=3), NOW_MS) == LogAppendInfo(1, 1, -1, 0, False)
        data = made.read(1, ALL, at_least_one=True).data()
        header = read_header(data)
        assert header._replace(crc=0) == BatchHeader(
            base_offset=1,
            length=MARKER_BYTES - 12,
            leader_epoch=0,
            magic=2,
            crc=0,
            attributes=TRANSACTIONAL | CONTROL,
            last_offset_delta=0,
            base_timestamp_ms=NOW_MS,
            max_timestamp_ms=NOW_MS,
            producer_id=7,
            producer_epoch=0,
            base_sequence=NO_SEQUENCE,
            record_count=1,
        )
        assert data[HEADER_BYTES:].hex(" ") == "20 00 00 00 08 00 00 00 01 0c 00 00 00 00 00 03 00"

    def test_it_has_the_time_of_the_append_where_records_have(self) -> None:
        made = log(message_timestamp_type="LogAppendTime")
        assert made.append_marker(end(), NOW_MS).log_append_time_ms == NOW_MS
        header = read_header(made.read(0, ALL, at_least_one=True).data())
        assert header.attributes == TRANSACTIONAL | CONTROL | LOG_APPEND_TIME
        assert header.max_timestamp_ms == NOW_MS

    def test_it_is_never_compressed(self) -> None:
        made = log(end(), compression_type="gzip")
        assert read_header(made.read(0, ALL, at_least_one=True).data()).compression == Compression.NONE

    @pytest.mark.parametrize(
        ("settings", "error"),
        [
            ({"max_message_bytes": MARKER_BYTES - 1}, ErrorCode.MESSAGE_TOO_LARGE),
            ({"segment_bytes": MARKER_BYTES - 1}, ErrorCode.RECORD_LIST_TOO_LARGE),
        ],
    )
    def test_it_can_be_too_large(self, settings: dict[str, object], error: ErrorCode) -> None:
        assert refused(log(**settings), end()) == error

    def test_not_every_one_may_come(self) -> None:
        made = log(part(0, epoch=2), end(epoch=2, coordinator=4))
        assert refused(made, end(epoch=1, coordinator=4)) == ErrorCode.INVALID_PRODUCER_EPOCH
        assert refused(made, end(epoch=2, coordinator=3)) == ErrorCode.TRANSACTION_COORDINATOR_FENCED

    def test_of_an_id_that_no_producer_has_nothing_is_kept(self) -> None:
        made = log(end(producer=-2), end(producer=-2, epoch=5), end(producer=-2))
        assert made.log_end_offset == 3
        assert not len(made.producers)

    def test_if_it_cannot_be_stored_the_transaction_stays_open(self) -> None:
        class FullDisk(LogBackend):
            def append(self, *_arguments: object) -> None:
                raise BatchError(ErrorCode.KAFKA_STORAGE_ERROR, "full")

        made = log(part(0))
        made.backend = FullDisk()
        assert refused(made, end()) == ErrorCode.KAFKA_STORAGE_ERROR
        made.backend = IN_MEMORY_LOG_BACKEND
        assert made.last_stable_offset == 0
        write(made, end())
        assert made.segments.aborted_transactions(0, 9) == [AbortedTransaction(7, 0, 1, 2)]

    def test_the_storage_is_told_what_it_aborts_together_with_the_marker(self) -> None:
        told = []

        class Storage(LogBackend):
            def append(
                self,
                _log: LogState,
                segment: Segment,
                batch: bytes | bytearray,
                header: BatchHeader,
                now_ms: int,
                aborted: AbortedTransaction | None = None,
            ) -> None:
                told.append((header.base_offset, aborted))
                super().append(_log, segment, batch, header, now_ms, aborted)

        made = PartitionLog(LogConfig(), "orders-0", Storage())
        write(made, part(0), end(), part(1), end(committed=True), end())
        aborted = AbortedTransaction(7, 0, 1, 2)
        assert told == [(0, None), (1, aborted), (2, None), (3, None), (4, None)]


class TestOwnRecords:
    RECORDS = (LogRecord(key=b"k", value=b"v"), LogRecord(key=b"l", value=None))

    def test_they_can_be_part_of_a_transaction(self) -> None:
        made = log()
        made.append_own(self.RECORDS, NOW_MS, producer_id=7, producer_epoch=2)
        header = read_header(made.read(0, ALL, at_least_one=True).data())
        assert (header.attributes, header.producer_id, header.producer_epoch) == (TRANSACTIONAL, 7, 2)
        assert (header.base_sequence, made.last_stable_offset) == (0, 0)
        made.append_own(self.RECORDS, NOW_MS, producer_id=7, producer_epoch=2)
        write(made, end(epoch=2))
        assert made.segments.aborted_transactions(0, 9) == [AbortedTransaction(7, 0, 4, 5)]

    def test_an_old_epoch_is_refused(self) -> None:
        made = log(end(epoch=3))
        with pytest.raises(BatchError) as refusal:
            made.append_own(self.RECORDS, NOW_MS, producer_id=7, producer_epoch=2)
        assert (refusal.value.error, made.log_end_offset) == (ErrorCode.INVALID_PRODUCER_EPOCH, 1)

    def test_without_a_producer_they_are_as_ever(self) -> None:
        made = log()
        made.append_own(self.RECORDS, NOW_MS)
        header = read_header(made.read(0, ALL, at_least_one=True).data())
        assert (header.attributes, header.producer_id, header.base_sequence) == (0, -1, NO_SEQUENCE)
        assert len(made.producers) == 0


class TestVerifying:
    def test_what_opens_a_transaction_has_to_be_verified(self) -> None:
        made = log()
        with pytest.raises(BatchError) as refusal:
            made.append(part(0), NOW_MS, verifies=True)
        assert (refusal.value.error, made.log_end_offset) == (ErrorCode.INVALID_TXN_STATE, 0)
        shown = made.producers.start_verification(7, 0, 0, NOW_MS, adds=False)
        made.append(part(0), NOW_MS, verifies=True, shown=shown)
        made.append(part(1), NOW_MS, verifies=True)
        assert made.log_end_offset == 2

    def test_a_repetition_and_what_is_not_transactional_need_not_be(self) -> None:
        made = log(part(0), end(committed=True))
        assert made.append(part(0), NOW_MS, verifies=True).duplicate
        made.append(part(1, transactional=False), NOW_MS, verifies=True)
        made.append(part(0, producer=-1, epoch=-1), NOW_MS, verifies=True)
        assert (made.log_end_offset, made.last_stable_offset) == (4, 4)


class TestReadingWhatIsCommitted:
    def test_it_ends_before_what_is_open(self) -> None:
        made = log(batch(b"a"), batch(b"b"), part(0), batch(b"c"))
        read = made.read(0, ALL, at_least_one=True, committed_only=True)
        assert (read.length, read.aborted) == (2 * len(batch(b"a")), [])
        assert made.read(0, ALL, at_least_one=True).aborted is None

    def test_in_an_older_segment_it_goes_on_to_its_end(self) -> None:
        made = log(batch(b"a"), part(0), segment_bytes=len(part(0)))
        assert made.read(0, ALL, at_least_one=True, committed_only=True).length == len(batch(b"a"))

    @pytest.mark.parametrize(("offset", "start"), [(1, 1), (2, 1), (3, 3), (4, 4)])
    def test_from_there_on_there_is_nothing(self, offset: int, start: int) -> None:
        made = log(batch(b"a"), part(0, 2), part(2))
        read = made.read(offset, ALL, at_least_one=True, committed_only=True)
        assert (read.start.offset, read.length, read.aborted) == (start, 0, ())

    def test_a_batch_that_is_cut_short_tells_of_nothing(self) -> None:
        made = log(batch(b"a"))
        read = made.read(0, 5, at_least_one=False, committed_only=True)
        assert (read.length, read.aborted) == (0, None)
        assert made.read(0, 0, at_least_one=False, committed_only=True).aborted == []

    def test_a_deleted_beginning_is_still_told(self) -> None:
        made = log(part(0), part(1), batch(b"a"), end())
        made.delete_records(2)
        read = made.read(2, ALL, at_least_one=True, committed_only=True)
        assert read.aborted == [AbortedTransaction(7, 0, 3, 4)]


class TestAborted:
    def test_they_are_in_the_order_of_their_ends(self) -> None:
        made = log(part(producer=1), part(producer=2), end(producer=2), end(producer=1), part(1), end(committed=True))
        assert made.segments.aborted_transactions(0, 99) == [
            AbortedTransaction(2, 1, 2, 0),
            AbortedTransaction(1, 0, 3, 4),
        ]

    def test_those_that_end_before_or_begin_behind_are_left_out(self) -> None:
        made = log(part(0), end(), part(1), end(), part(2), end())
        found = [each.first_offset for each in made.segments.aborted_transactions(2, 4)]
        assert found == [2]
        assert [each.first_offset for each in made.segments.aborted_transactions(3, 5)] == [2, 4]

    def test_what_was_stable_at_the_end_ends_the_search(self) -> None:
        made = log(part(0), end(), part(1), end(), part(2), end())
        assert made.segments.aborted_transactions(0, 2) == [AbortedTransaction(7, 0, 1, 2)]

    def test_they_are_found_in_later_segments(self) -> None:
        made = log(part(0), end(), part(1), end(), segment_bytes=MARKER_BYTES)
        assert len(made.segments) == 4
        assert [each.last_offset for each in made.segments.aborted_transactions(0, 99)] == [1, 3]
        read = made.read(0, ALL, at_least_one=True, committed_only=True)
        assert read.aborted == [AbortedTransaction(7, 0, 1, 2)]

    def test_they_go_with_their_segments(self) -> None:
        made = log(part(0), end(), part(1), end(), segment_bytes=MARKER_BYTES)
        made.delete_records(2)
        made.apply_retention(NOW_MS)
        assert [each.last_offset for each in made.segments.aborted_transactions(0, 99)] == [3]

    def test_of_a_short_read_more_are_told_than_are_in_it(self) -> None:
        """The index of offsets has an entry every few kilobytes only."""
        small = log(part(0), end(), part(1), end())
        read = small.read(0, 1, at_least_one=True, committed_only=True)
        assert [each.first_offset for each in read.aborted or ()] == [0, 2]

    @pytest.mark.parametrize(("interval", "told"), [(4096, [0, 2]), (100, [0])])
    def test_what_is_behind_an_entry_of_the_index_is_not(self, interval: int, told: list[int]) -> None:
        made = log(part(0), end(), part(1), end(), index_interval_bytes=interval)
        read = made.read(0, 1, at_least_one=True, committed_only=True)
        assert [each.first_offset for each in read.aborted or ()] == told

    def test_an_entry_at_the_very_end_counts_unless_it_is_the_first(self) -> None:
        """As a real broker has it."""
        made = log(*(step for number in range(5) for step in (part(number), end())), index_interval_bytes=100)
        size = len(part(0)) + MARKER_BYTES
        read = [made.segments[0].upper_bound(position) for position in (size - 1, size, 2 * size - 1, 2 * size)]
        assert read == [2, 4, 4, 4]
        assert log(part(0)).segments[0].upper_bound(0) is None


class TestTruncation:
    def test_transactions_are_what_the_batches_that_stay_say_of_them(self) -> None:
        made = log(part(0), end(committed=False), batch(b"a"), part(1), batch(b"b"), segment_bytes=MARKER_BYTES * 3)
        assert len(made.segments) > 1
        assert made.last_stable_offset == 3
        made.truncate_to(3, NOW_MS)
        assert (made.log_end_offset, made.last_stable_offset) == (3, 3)
        assert [each.last_offset for each in made.segments.aborted_transactions(0, 3)] == [1]
        assert all(segment.base_offset < 3 for segment in made.segments)
        write(made, part(1))
        assert (made.log_end_offset, made.last_stable_offset) == (4, 3)
