"""Files that a log has removed stay readable for the answers that refer to them, and no longer than that."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from groupcoord.broker.log_segment import DELETED_SEGMENTS, SegmentDeletedError
from groupcoord.broker.partition_log import PartitionLog
from groupcoord.protocol.batches.record_batch import records_in
from groupcoord.protocol.codec.flexible_versions import LazyBytes
from groupcoord.storage.file_segment import FileSegment
from tests.broker.data_plane import NOW_MS
from tests.storage.directory import Life, filled
from tests.storage.faults import failing
from tests.storage.test_file_log_backend import SIZE, cleaned

pytestmark = pytest.mark.slow


@pytest.fixture
def life(tmp_path: Path) -> Life:
    return Life(tmp_path)


@pytest.fixture
def log(life: Life) -> PartitionLog:
    """Four segments, of two batches each but for the last."""
    made = life.topic(internal_segment_bytes=2 * SIZE, retention_bytes=SIZE)
    filled(made, 7, 10, size=50)
    life.storage._background.close()  # it opens files, too
    return made


def reading(log: PartitionLog, offset: int = 0) -> LazyBytes:
    return log.read(offset, 1 << 20, at_least_one=True).record_slice()


def offsets(run: LazyBytes) -> list[int]:
    return [record.offset for record in records_in(bytes(run))]


def kept_open(life: Life) -> int:
    """How many descriptors there are of log files that have been removed."""
    files = [str(one.readlink()) for one in Path("/proc/self/fd").iterdir() if one.is_symlink()]
    return sum(file.startswith(str(life.directory)) and file.endswith(".log (deleted)") for file in files)


def by_retention(_: Life, log: PartitionLog) -> None:
    log.apply_retention(NOW_MS)


def by_compaction(_: Life, log: PartitionLog) -> None:
    log.replace_segments(log.segments[:2], [cleaned(4 * SIZE, [1, 3])])


def with_the_topic(life: Life, _: PartitionLog) -> None:
    life.broker.topics.delete("orders")


WAYS = pytest.mark.parametrize("goes", [by_retention, by_compaction, with_the_topic])
Goes = Callable[[Life, PartitionLog], None]


@WAYS
def test_what_is_removed_stays_readable_for_those_who_were_answered(life: Life, log: PartitionLog, goes: Goes) -> None:
    first, second = reading(log, 0), reading(log, 2)
    goes(life, log)
    assert (offsets(first), offsets(second)) == ([0, 1], [2, 3])


def test_so_does_the_segment_that_was_appended_to(life: Life, log: PartitionLog) -> None:
    last = reading(log, 6)
    with_the_topic(life, log)
    assert offsets(last) == [6]


@WAYS
def test_a_file_is_open_once_for_all_who_read_it_and_closed_with_the_last(
    life: Life, log: PartitionLog, goes: Goes
) -> None:
    readers = [reading(log) for _ in range(10)]
    goes(life, log)
    assert kept_open(life) == 1
    del readers[1:]
    assert kept_open(life) == 1
    readers.clear()
    assert kept_open(life) == 0
    assert not DELETED_SEGMENTS._segments


@WAYS
def test_what_nobody_reads_is_not_kept_open(life: Life, log: PartitionLog, goes: Goes) -> None:
    goes(life, log)
    assert kept_open(life) == 0


@WAYS
def test_without_a_descriptor_left_an_answer_ends_and_never_has_other_records(
    life: Life, log: PartitionLog, goes: Goes, monkeypatch: pytest.MonkeyPatch
) -> None:
    record_slice = reading(log)
    with monkeypatch.context() as broken:
        broken.setattr(FileSegment, "detach", _out_of_files(monkeypatch))
        goes(life, log)
    with pytest.raises(SegmentDeletedError):
        bytes(record_slice)


def _out_of_files(monkeypatch: pytest.MonkeyPatch) -> Callable[[FileSegment], None]:
    detach = FileSegment.detach

    def without(segment: FileSegment) -> None:
        with failing(monkeypatch, "open", code=errno.EMFILE):
            detach(segment)

    return without


def test_a_file_that_is_cut_short_ends_the_answer(log: PartitionLog) -> None:
    record_slice = reading(log)
    segment = log.segments[0]
    assert isinstance(segment, FileSegment)
    os.truncate(segment.path, SIZE)
    with pytest.raises(SegmentDeletedError):
        bytes(record_slice)
