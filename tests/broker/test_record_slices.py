"""Answers refer to records where they lie, and stay whole when the log gives them up."""

import pytest

from groupcoord.broker import storage_backend
from groupcoord.broker.log_segment import (
    DELETED_SEGMENTS,
    DeletedSegments,
    LogSegment,
    RecordSlice,
    SegmentDeletedError,
)
from groupcoord.broker.partition_log import PartitionLog
from groupcoord.broker.topic_config import LogConfig
from groupcoord.protocol.batches.record_batch import read_header
from groupcoord.protocol.codec.flexible_versions import LazyBytes
from tests.broker.data_plane import NOW_MS, DataPlane, batch


def segment(*values: bytes) -> LogSegment:
    made = LogSegment(0, NOW_MS)
    for value in values:
        data = batch(value)
        made.append(data, read_header(data), NOW_MS)
    return made


def log_of(count: int) -> PartitionLog:
    """A log of ``count`` segments with one batch each."""
    made = PartitionLog(LogConfig(segment_bytes=len(batch(b"0")), retention_bytes=0, retention_ms=-1), "orders-0")
    for index in range(count):
        made.append(batch(b"%d" % index), NOW_MS)
    return made


def reading(log: PartitionLog, offset: int) -> LazyBytes:
    return log.read(offset, 1 << 20, at_least_one=True).record_slice()


def kept() -> list[object]:
    return list(DELETED_SEGMENTS._segments)


@pytest.fixture
def departed(monkeypatch: pytest.MonkeyPatch) -> DeletedSegments:
    """One that keeps two segments at most, or 100 bytes."""
    made = DeletedSegments(most_bytes=100, most_segments=2)
    monkeypatch.setattr(storage_backend, "DELETED_SEGMENTS", made)
    return made


class TestReading:
    def test_it_is_the_bytes_whole_or_sliced(self) -> None:
        source = segment(b"first", b"second")
        whole = source.copy(0, source.size)
        record_slice = RecordSlice(source, 10, 90)
        assert (len(record_slice), bytes(record_slice)) == (90, whole[10:100])
        assert record_slice[5:20] == whole[15:30]
        assert record_slice[80:500] == whole[90:100]
        assert repr(record_slice) == f"<RecordSlice of 90 bytes at 10 of {source}>"

    def test_what_is_appended_later_does_not_show(self) -> None:
        log = PartitionLog(LogConfig())
        log.append(batch(b"a"), NOW_MS)
        record_slice, before = reading(log, 0), log.read(0, 1 << 20, at_least_one=True).data()
        log.append(batch(b"b"), NOW_MS)
        assert bytes(record_slice) == before

    def test_there_is_none_of_nothing(self) -> None:
        assert reading(PartitionLog(LogConfig()), 0) == b""


class TestDeparted:
    def test_a_deleted_segment_stays_readable_as_long_as_an_answer_refers_to_it(self) -> None:
        log = log_of(3)
        record_slice, whole = reading(log, 0), log.read(0, 1 << 20, at_least_one=True).data()
        gone = log.segments[0]
        log.apply_retention(NOW_MS)
        assert gone not in log.segments
        assert kept() == [gone]
        assert bytes(record_slice) == whole
        del record_slice
        assert kept() == []
        assert gone.size == 0

    def test_so_does_one_that_is_compacted(self) -> None:
        log = log_of(3)
        record_slice, whole = reading(log, 0), log.read(0, 1 << 20, at_least_one=True).data()
        log.replace_segments(log.segments[:1], [segment()])
        assert bytes(record_slice) == whole
        assert len(kept()) == 1

    def test_so_does_one_of_a_deleted_topic(self) -> None:
        plane = DataPlane()
        plane.topic("orders")
        plane.produced("orders", batch(b"a"))
        record_slice, whole = reading(plane.log("orders"), 0), bytes(plane.fetched("orders", 0).records or b"")
        plane.broker.topics.delete("orders")
        assert bytes(record_slice) == whole
        assert len(kept()) == 1

    def test_one_that_nobody_reads_is_not_kept(self) -> None:
        log = log_of(3)
        log.apply_retention(NOW_MS)
        assert kept() == []

    def test_two_answers_may_refer_to_one(self) -> None:
        log = log_of(2)
        first, second = reading(log, 0), reading(log, 0)
        log.apply_retention(NOW_MS)
        del first
        assert len(bytes(second)) == len(batch(b"0"))

    def test_beyond_a_number_of_segments_the_oldest_is_forgotten(self, departed: DeletedSegments) -> None:
        segments = [segment() for _ in range(3)]
        readers = [RecordSlice(one, 0, 0) for one in segments]
        departed.add(segments[:2])
        departed.add(segments[:2])
        assert list(departed._segments) == segments[:2]
        departed.add(segments[2:])
        assert list(departed._segments) == segments[1:]
        assert bytes(readers[0]) == b""

    def test_beyond_a_number_of_bytes_the_oldest_is_forgotten(self, departed: DeletedSegments) -> None:
        log = log_of(3)
        first, second = reading(log, 0), reading(log, 1)
        log.apply_retention(NOW_MS)
        assert bytes(second)
        with pytest.raises(SegmentDeletedError, match="was deleted before all of it was read"):
            bytes(first)
