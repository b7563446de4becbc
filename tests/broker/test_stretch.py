"""Answers refer to records where they lie, and stay whole when the log gives them up."""

import pytest

from groupcoord.broker import journal
from groupcoord.broker.log_segment import LogSegment
from groupcoord.broker.log_settings import LogSettings
from groupcoord.broker.partition_log import PartitionLog
from groupcoord.broker.stretch import DEPARTED, Departed, SegmentGoneError, Stretch
from groupcoord.protocol.batches.record_batch import read_header
from groupcoord.protocol.codec.primitives import LazyBytes
from tests.broker.data_plane import NOW_MS, DataPlane, batch


def segment(*values: bytes) -> LogSegment:
    made = LogSegment(0, NOW_MS)
    for value in values:
        data = batch(value)
        made.append(data, read_header(data), NOW_MS)
    return made


def log_of(count: int) -> PartitionLog:
    """A log of ``count`` segments with one batch each."""
    made = PartitionLog(LogSettings(segment_bytes=len(batch(b"0")), retention_bytes=0, retention_ms=-1), "orders-0")
    for index in range(count):
        made.append(batch(b"%d" % index), NOW_MS)
    return made


def reading(log: PartitionLog, offset: int) -> LazyBytes:
    return log.read(offset, 1 << 20, at_least_one=True).stretch()


def kept() -> list[object]:
    return list(DEPARTED._segments)


@pytest.fixture
def departed(monkeypatch: pytest.MonkeyPatch) -> Departed:
    """One that keeps two segments at most, or 100 bytes."""
    made = Departed(most_bytes=100, most_segments=2)
    monkeypatch.setattr(journal, "DEPARTED", made)
    return made


class TestReading:
    def test_it_is_the_bytes_whole_or_sliced(self) -> None:
        source = segment(b"first", b"second")
        whole = source.copy(0, source.size)
        stretch = Stretch(source, 10, 90)
        assert (len(stretch), bytes(stretch)) == (90, whole[10:100])
        assert stretch[5:20] == whole[15:30]
        assert stretch[80:500] == whole[90:100]
        assert repr(stretch) == f"<Stretch 90 bytes at 10 of {source}>"

    def test_what_is_appended_later_does_not_show(self) -> None:
        log = PartitionLog(LogSettings())
        log.append(batch(b"a"), NOW_MS)
        stretch, before = reading(log, 0), log.read(0, 1 << 20, at_least_one=True).data()
        log.append(batch(b"b"), NOW_MS)
        assert bytes(stretch) == before

    def test_there_is_none_of_nothing(self) -> None:
        assert reading(PartitionLog(LogSettings()), 0) == b""


class TestDeparted:
    def test_a_deleted_segment_stays_readable_as_long_as_an_answer_refers_to_it(self) -> None:
        log = log_of(3)
        stretch, whole = reading(log, 0), log.read(0, 1 << 20, at_least_one=True).data()
        gone = log.segments[0]
        log.apply_retention(NOW_MS)
        assert gone not in log.segments
        assert kept() == [gone]
        assert bytes(stretch) == whole
        del stretch
        assert kept() == []
        assert gone.size == 0

    def test_so_does_one_that_is_compacted(self) -> None:
        log = log_of(3)
        stretch, whole = reading(log, 0), log.read(0, 1 << 20, at_least_one=True).data()
        log.replace_segments(log.segments[:1], [segment()])
        assert bytes(stretch) == whole
        assert len(kept()) == 1

    def test_so_does_one_of_a_deleted_topic(self) -> None:
        plane = DataPlane()
        plane.topic("orders")
        plane.produced("orders", batch(b"a"))
        stretch, whole = reading(plane.log("orders"), 0), bytes(plane.fetched("orders", 0).records or b"")
        plane.broker.topics.delete("orders")
        assert bytes(stretch) == whole
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

    def test_beyond_a_number_of_segments_the_oldest_is_forgotten(self, departed: Departed) -> None:
        segments = [segment() for _ in range(3)]
        readers = [Stretch(one, 0, 0) for one in segments]
        departed.add(segments[:2])
        departed.add(segments[:2])
        assert list(departed._segments) == segments[:2]
        departed.add(segments[2:])
        assert list(departed._segments) == segments[1:]
        assert bytes(readers[0]) == b""

    def test_beyond_a_number_of_bytes_the_oldest_is_forgotten(self, departed: Departed) -> None:
        log = log_of(3)
        first, second = reading(log, 0), reading(log, 1)
        log.apply_retention(NOW_MS)
        assert bytes(second)
        with pytest.raises(SegmentGoneError, match="was deleted before all of it was read"):
            bytes(first)
