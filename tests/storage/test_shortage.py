"""Out of descriptors one request is refused; nothing is half done, the disk has not failed, and the next one goes on."""

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from groupcoord.broker.partition_log import PartitionLog
from groupcoord.core.api_error import ApiError
from groupcoord.protocol.batches.record_batch import BatchError
from groupcoord.protocol.errors import ErrorCode
from groupcoord.storage import file_io
from tests.broker.data_plane import NOW_MS, batch
from tests.storage.directory import Life, contents, filled
from tests.storage.faults import failing

pytestmark = pytest.mark.slow


@contextmanager
def out_of_descriptors(monkeypatch: pytest.MonkeyPatch, *, after: int = 0) -> Iterator[None]:
    """No file can be opened, but for the first ones."""
    with failing(monkeypatch, "open", code=errno.EMFILE, after=after), failing(monkeypatch, "pipe", code=errno.ENFILE):
        yield


@contextmanager
def refused(life: Life) -> Iterator[None]:
    """The block raises KAFKA_STORAGE_ERROR, and the data directory has not failed."""
    error = None
    try:
        yield
    except BatchError as problem:
        error = problem.error
    except ApiError as problem:
        error = problem.code
    assert error == ErrorCode.KAFKA_STORAGE_ERROR
    assert life.storage.failure is None


def is_open(life: Life, partition: int) -> bool:
    """Has the active segment its log file open?"""
    active = life.store("orders", partition)._active
    assert active is not None
    return active._descriptor is not None


def everything_is_there(life: Life, values: int) -> None:
    """After a kill, and again after an end in order."""
    expected = [(number, b"%d" % number) for number in range(values)]
    life.kill()
    for _ in range(2):
        again = Life(life.directory)
        assert contents(again.log()) == expected
        assert again.storage.findings == []
        again.end()


def test_an_append_to_a_quiet_partition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    life = Life(tmp_path)
    log = life.topic()
    with out_of_descriptors(monkeypatch), refused(life):
        filled(log, 1)
    filled(log, 3)
    everything_is_there(life, 3)


def test_an_append_that_is_due_in_the_indexes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    life = Life(tmp_path)
    log = life.topic(index_interval_bytes=0)
    filled(log, 1)
    for there in (0, 1, 2):
        with out_of_descriptors(monkeypatch, after=there), refused(life):
            filled(log, 1, 1)
        life.store().close()
    filled(log, 9, 1)
    everything_is_there(life, 10)


def test_an_append_that_is_to_be_flushed_is_taken_back_from_every_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    life = Life(tmp_path)
    log = life.topic(index_interval_bytes=0, flush_messages=1)
    filled(log, 2)
    before = {path.name: path.read_bytes() for path in life.store().folder.iterdir()}
    with out_of_descriptors(monkeypatch), refused(life):
        log.append(batch(b"x" * 500, b"y", at_ms=NOW_MS), NOW_MS)
    assert {path.name: path.read_bytes() for path in life.store().folder.iterdir()} == before
    assert log.log_end_offset == 2
    filled(log, 3, 2)
    everything_is_there(life, 5)


def test_what_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    life = Life(tmp_path)
    log = life.topic(index_interval_bytes=0)
    filled(log, 9)
    life.store().close()
    reads: list[Callable[[PartitionLog], object]] = [
        lambda log: log.read(5, 100, at_least_one=True),
        lambda log: log.offset_for_timestamp(NOW_MS - 10_000),
        lambda log: log.segments[0].latest_record(),
    ]
    for read in reads:
        with out_of_descriptors(monkeypatch), refused(life):
            read(log)
        with out_of_descriptors(monkeypatch, after=1), refused(life):
            read(log)
        assert read(log)


def test_what_cannot_be_read_for_another_reason_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    life = Life(tmp_path)
    log = life.topic()
    filled(log, 9)
    with failing(monkeypatch, "pread", code=errno.EIO), pytest.raises(OSError, match="Input/output"):
        log.read(5, 100, at_least_one=True)


def test_a_new_segment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    life = Life(tmp_path)
    log = life.topic(internal_segment_bytes=200)
    filled(log, 2)
    with out_of_descriptors(monkeypatch), refused(life):
        log.roll(NOW_MS)
    assert len(log.segments) == 1
    filled(log, 7, 2)
    assert len(log.segments) > 2
    everything_is_there(life, 9)


def test_topics_are_not_created_changed_or_deleted_by_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    life = Life(tmp_path)
    filled(life.topic(), 2)
    topic = life.broker.topics.get("orders")
    assert topic is not None
    with out_of_descriptors(monkeypatch):
        with refused(life):
            life.topic("more")
        with refused(life):
            topic.add_partitions(2)
        with refused(life):
            life.broker.topics.delete("orders")
        with refused(life):
            topic.configure({"retention.ms": "5"}, life.storage.config)
    assert [one.name for one in life.broker.topics] == ["orders"]
    assert len(topic.partitions) == 1
    life.topic("more")
    topic.add_partitions(1)
    life.broker.topics.delete("more")
    everything_is_there(life, 2)


def test_a_compaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    life = Life(tmp_path)
    log = life.topic(cleanup_policy="compact")
    filled(log, 3)
    log.roll(NOW_MS)
    with out_of_descriptors(monkeypatch):
        life.broker.compact("orders", 0, NOW_MS)
    assert life.storage.failure is None
    assert len(contents(log)) == 3
    life.broker.compact("orders", 0, NOW_MS)
    assert len(contents(log)) == 1


def test_a_flush_and_a_checkpoint_are_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    life = Life(tmp_path)
    log = life.topic(flush_ms=0)
    filled(log, 4)
    with out_of_descriptors(monkeypatch):
        assert life.store().flush_if_due(log, NOW_MS)
        life.storage.checkpoint()
        with refused(life):
            log.delete_records(2)
    assert log.log_start_offset == 0
    log.delete_records(2)
    assert not life.store().flush_if_due(log, NOW_MS)
    life.storage.checkpoint()
    life.kill()
    assert Life(tmp_path).log().log_start_offset == 2


def test_it_is_said_once_until_all_is_well_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    life = Life(tmp_path)
    said: list[str] = []
    life.storage.on_shortage = said.append
    log = life.topic()
    for count in (1, 2):
        with out_of_descriptors(monkeypatch):
            for _ in range(3):
                with refused(life):
                    filled(log, 1)
        assert len(said) == count
        life.storage.checkpoint()
    assert said[0].startswith(f"no file could be opened for the data directory {tmp_path}: Too many open files")


def test_who_is_refused_has_all_other_files_closed_for_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    life = Life(tmp_path)
    life.topic(partitions=3)
    for partition in (0, 1):
        filled(life.log("orders", partition), 1)
    before = life.storage.files_to_come()
    with out_of_descriptors(monkeypatch), refused(life):
        filled(life.log("orders", 2), 1)
    assert life.storage.files_to_come() == before + 2 * file_io.FILES_OF_A_LOG
    assert not is_open(life, 0)


def test_more_partitions_than_files_may_be_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_io, "_MOST_LOGS", 2)
    life = Life(tmp_path)
    life.topic(partitions=5)
    for number in range(4):
        for partition in range(5):
            filled(life.log("orders", partition), 1, number)
    assert [is_open(life, partition) for partition in range(5)] == [False, False, False, True, True]
    life.broker.topics.delete("orders")
    assert len(life.storage._open) == 0
