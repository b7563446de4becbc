"""The files of a log follow the log: append, roll, flush, delete, clean."""

import contextlib
import errno
import os
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

import pytest

from groupcoord.broker.log_segment import LogSegment
from groupcoord.protocol.batches.record_batch import BatchError, read_header
from groupcoord.protocol.errors import ErrorCode
from groupcoord.storage import file_log_backend, file_segment
from groupcoord.storage.file_io import sync
from tests.broker.data_plane import NOW_MS, batch
from tests.storage.directory import Life, contents, filled
from tests.storage.faults import failing, filling_up

SIZE = len(batch(b"0" * 100))


@pytest.fixture
def life(tmp_path: Path) -> Life:
    return Life(tmp_path)


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The log files that were flushed, in order."""
    names: list[str] = []

    def note(path: Path) -> None:
        if path.suffix == ".log":
            names.append(path.name.lstrip("0") or ".log")
        sync(path)

    monkeypatch.setattr(file_segment, "sync", note)
    return names


def files(life: Life) -> list[str]:
    return sorted(path.name[18:] for path in (life.directory / "orders-0").glob("*.*") if path.name[0] == "0")


def test_a_new_partition_has_kafkas_files(life: Life) -> None:
    life.topic()
    folder = life.directory / "orders-0"
    assert files(life) == ["00.index", "00.log", "00.timeindex"]
    assert (folder / "leader-epoch-checkpoint").read_text() == "0\n1\n0 0\n"
    assert (folder / "partition.metadata").read_text().startswith("version: 0\ntopic_id: ")


def test_a_batch_is_in_the_file_when_it_is_appended(life: Life) -> None:
    log = life.topic()
    filled(log, 3)
    [segment] = log.segments
    assert (life.directory / "orders-0" / f"{0:020d}.log").read_bytes() == segment.copy(0, segment.size)
    assert contents(log) == [(0, b"0"), (1, b"1"), (2, b"2")]


def test_rolling_completes_the_segment_and_flushes_it_in_the_background(life: Life, synced: list[str]) -> None:
    log = life.topic(internal_segment_bytes=2 * SIZE)
    filled(log, 5, 10, size=50)
    assert files(life) == [
        *("00.index", "00.log", "00.timeindex"),
        *("02.index", "02.log", "02.snapshot", "02.timeindex"),
        *("04.index", "04.log", "04.snapshot", "04.timeindex"),
    ]
    assert (life.directory / "orders-0" / f"{0:020d}.timeindex").stat().st_size == 12
    life.storage._background.close()
    assert synced[0] == ".log"
    assert set(synced) == {".log", "2.log"}
    assert life.store().recovery_point == 4
    synced.clear()
    filled(log, 2, 20, size=50)
    life.storage._background.close()
    assert synced == ["4.log"]


@pytest.mark.parametrize("messages", [1, 3])
def test_flush_messages(life: Life, synced: list[str], messages: int) -> None:
    log = life.topic(flush_messages=messages)
    filled(log, 6)
    assert synced == [".log"] * (6 // messages)
    assert life.store().recovery_point == 6


def test_flush_ms_is_looked_at_by_the_scheduler(tmp_path: Path, synced: list[str]) -> None:
    life = Life(tmp_path, **{"log.flush.scheduler.interval.ms": 100})
    log = life.topic(flush_ms=250)
    filled(log, 1)
    life.broker._log_manager.appended(log, NOW_MS)
    deadlines = []
    while (at := life.broker.next_deadline()) is not None and at <= NOW_MS + 1000:
        deadlines.append(at - NOW_MS)
        life.broker.expire(at)
    assert deadlines == [100, 200, 300]  # by then it has waited long enough, and nothing waits any more
    assert synced == [".log"]
    assert life.store().recovery_point == 1


def test_without_the_scheduler_there_is_no_flush_by_time(life: Life) -> None:
    log = life.topic(flush_ms=0)
    filled(log, 1)
    life.broker._log_manager.appended(log, NOW_MS)
    kinds = {deadline.key.kind for deadline in life.broker.timers.pending()}
    assert kinds == {"retention", "checkpoint"}


def test_retention_removes_files(life: Life) -> None:
    log = life.topic(internal_segment_bytes=2 * SIZE, retention_bytes=3 * SIZE)
    filled(log, 7, 10, size=50)
    log.apply_retention(NOW_MS)
    assert (log.log_start_offset, [segment.base_offset for segment in log.segments]) == (4, [4, 6])
    assert [name for name in files(life) if name.endswith(".log")] == ["04.log", "06.log"]
    assert life.store().first_base_offset == 4


@pytest.mark.parametrize("flushed", [False, True])
def test_a_new_segment_is_on_the_disk_before_those_before_it_go(
    life: Life, monkeypatch: pytest.MonkeyPatch, flushed: bool
) -> None:
    """Else a power cut could bring a log that begins at zero again, with offsets that were consumed."""
    log = life.topic(internal_segment_bytes=2 * SIZE, retention_bytes=SIZE, flush_messages=1 if flushed else 1000)
    filled(log, 4, 10, size=50)
    log.roll(NOW_MS)
    if flushed:
        filled(log, 1)
    life.storage._background.close()
    there: list[list[str]] = []
    monkeypatch.setattr(
        file_log_backend, "sync", lambda folder: there.append(sorted(p.name for p in folder.glob("*.log")))
    )
    log.apply_retention(NOW_MS)
    expected = [f"{offset:020}.log" for offset in (0, 2, 4)]
    assert there == ([] if flushed else [expected])
    assert not (life.directory / "orders-0" / expected[0]).exists()


@pytest.mark.parametrize("flushed", [True, False])
def test_what_compaction_leaves_out_has_a_later_record_on_the_disk(
    life: Life, synced: list[str], monkeypatch: pytest.MonkeyPatch, flushed: bool
) -> None:
    log = life.topic(internal_segment_bytes=2 * SIZE)
    if not flushed:
        monkeypatch.setattr(life.storage, "submit", lambda work: Future())
    filled(log, 6, 10, size=50)
    life.storage._background.close()
    synced.clear()
    log.replace_segments(log.segments[:1], [cleaned(2 * SIZE, [1])])
    assert synced == ([] if flushed else [".log", "2.log"])


def test_everything_may_be_too_old(life: Life) -> None:
    log = life.topic(internal_segment_bytes=2 * SIZE, retention_ms=1)
    filled(log, 3, 10, size=50)
    log.apply_retention(NOW_MS)
    assert files(life) == ["03.index", "03.log", "03.snapshot", "03.timeindex"]
    assert (log.log_start_offset, log.log_end_offset) == (3, 3)
    filled(log, 1)
    assert contents(log) == [(3, b"0")]


def test_deleting_records_is_remembered_at_once(life: Life) -> None:
    log = life.topic()
    filled(log, 5)
    assert log.delete_records(3) == 3
    assert log.delete_records(2) == 3
    life.kill()
    again = Life(life.directory)
    assert contents(again.log()) == [(3, b"3"), (4, b"4")]


def cleaned(log_size: int, offsets: list[int]) -> LogSegment:
    """What a cleaner leaves of a log of ``filled`` batches: those at ``offsets``."""
    segment = LogSegment(0, NOW_MS)
    for offset in offsets:
        data = batch(b"%d" % (10 + offset) * 50, at_ms=NOW_MS - 10_000 + 10 + offset, base_offset=0)
        data = offset.to_bytes(8) + data[8:]
        segment.append(data, read_header(data), NOW_MS)
    assert segment.size < log_size
    return segment


def test_cleaned_segments_take_the_place_of_others(life: Life) -> None:
    log = life.topic(internal_segment_bytes=2 * SIZE)
    filled(log, 7, 10, size=50)
    first, second, third, fourth = log.segments
    log.replace_segments([first, second], [cleaned(4 * SIZE, [1, 3])])
    log.cleaned_to = 4
    life.storage.checkpoint()
    assert (life.directory / "cleaner-offset-checkpoint").read_text() == "0\n1\norders 0 4\n"
    assert [segment.base_offset for segment in log.segments] == [0, 4, 6]
    assert log.segments[1:] == [third, fourth]
    assert [offset for offset, _ in contents(log)] == [1, 3, 4, 5, 6]
    assert [name for name in files(life) if name.endswith((".log", ".cleaned", ".swap", ".deleted"))] == [
        "00.log",
        "04.log",
        "06.log",
    ]
    life.kill()
    again = Life(life.directory)
    assert [offset for offset, _ in contents(again.log())] == [1, 3, 4, 5, 6]
    assert again.log().cleaned_to == again.store().cleaned_to == 4


@pytest.mark.slow
@pytest.mark.parametrize("step", range(40))
def test_a_kill_at_any_step_of_cleaning_leaves_the_old_or_the_new(
    life: Life, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = life.topic(internal_segment_bytes=2 * SIZE)
    filled(log, 7, 10, size=50)
    life.storage._background.close()
    taken = [0]

    def counted(real: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object, **named: object) -> object:
            taken[0] += 1
            if taken[0] > step:
                raise OSError(errno.EIO, "killed")
            return real(*arguments, **named)

        return call

    with monkeypatch.context() as broken:
        for owner, name in ((os, "pwrite"), (os, "fsync"), (Path, "rename"), (Path, "unlink")):
            broken.setattr(owner, name, counted(getattr(owner, name)))
        with contextlib.suppress(BatchError):  # the last steps are beyond what there is to do
            log.replace_segments(log.segments[:2], [cleaned(4 * SIZE, [1, 3])])
    life.kill()
    again = Life(life.directory)
    assert [offset for offset, _ in contents(again.log())] in ([1, 3, 4, 5, 6], [0, 1, 2, 3, 4, 5, 6])
    assert not list((life.directory / "orders-0").glob("*.swap")) + list(
        (life.directory / "orders-0").glob("*.cleaned")
    )


# --- disks that fail


def test_a_disk_that_fills_up(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    told = []
    life.storage.on_failure = lambda: told.append(life.storage.failure)
    log = life.topic()
    filled(log, 3, 10, size=50)
    before = contents(log)
    with filling_up(monkeypatch, SIZE + 10):
        filled(log, 1, 13, size=50)
        with pytest.raises(BatchError, match="No space left on device") as caught:
            filled(log, 1, 14, size=50)
    assert caught.value.error == ErrorCode.KAFKA_STORAGE_ERROR
    assert told == [f"the data directory {life.directory} has failed: No space left on device"]
    assert (log.log_end_offset, log.size) == (4, 4 * SIZE)
    with pytest.raises(BatchError, match="No space left on device"):  # there is room again, but it is too late
        filled(log, 1, 14, size=50)
    assert len(told) == 1
    assert contents(log)[:3] == before
    life.storage.close()
    assert not (life.directory / ".kafka_cleanshutdown").exists()
    again = Life(life.directory)
    assert contents(again.log())[:3] == before
    assert again.log().log_end_offset == 4
    assert again.storage.findings == []


@pytest.mark.parametrize("call", ["pwrite", "fsync"])
def test_an_append_that_fails_changes_nothing(life: Life, call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    log = life.topic(flush_messages=2)
    filled(log, 3)
    before = (log.log_end_offset, log.size, log.segments[-1].max_timestamp_ms, contents(log))
    with failing(monkeypatch, call, code=errno.EIO), pytest.raises(BatchError, match="Input/output error"):
        filled(log, 1, 3)
    assert (log.log_end_offset, log.size, log.segments[-1].max_timestamp_ms, contents(log)) == before


def test_a_roll_that_fails(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    log = life.topic(internal_segment_bytes=2 * SIZE)
    filled(log, 2, 10, size=50)
    with failing(monkeypatch, "open"), pytest.raises(BatchError, match="No space"):
        filled(log, 1, 12, size=50)
    assert len(contents(log)) == 2
    with pytest.raises(BatchError, match="No space"):
        filled(log, 1, 12, size=50)


def test_retention_on_a_failed_disk_is_no_surprise(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    log = life.topic(internal_segment_bytes=2 * SIZE, retention_bytes=3 * SIZE)
    filled(log, 7, 10, size=50)
    with failing(monkeypatch, "unlink"):
        log.apply_retention(NOW_MS)
    assert life.storage.failure is not None
    log.settings = log.settings.__class__(retention_ms=1)
    life.broker._log_manager.appended(log, NOW_MS)
    assert life.broker.expire(NOW_MS + 10**9) == []  # all of it is too old, but a new segment cannot be made
    assert (log.log_start_offset, log.log_end_offset) == (4, 7)


def test_a_scheduled_flush_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    life = Life(tmp_path, **{"log.flush.scheduler.interval.ms": 100})
    log = life.topic(flush_ms=0)
    filled(log, 1)
    with failing(monkeypatch, "fsync"):
        assert not life.store().flush_if_due(log, NOW_MS)
    assert life.storage.failure is not None
    assert not life.store().flush_if_due(log, NOW_MS)


def test_a_background_flush_that_fails_fails_the_next_checkpoint(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    log = life.topic(internal_segment_bytes=2 * SIZE)
    filled(log, 2, 10, size=50)
    with failing(monkeypatch, "fsync", after=2):  # the first two are the snapshot's
        filled(log, 1, 12, size=50)
        life.storage._background.close()
    failures = [life.storage.failure]
    for _ in range(2):
        life.storage.checkpoint()
        failures.append(life.storage.failure)
    said = f"the data directory {life.directory} has failed: No space left on device"
    assert failures == [None, said, said]


def test_a_segment_that_is_not_the_last_is_not_appended_to(life: Life) -> None:
    log = life.topic(internal_segment_bytes=2 * SIZE)
    filled(log, 3, 10, size=50)
    data = batch(b"a")
    with pytest.raises(AssertionError, match="is not the last segment of"):
        log.backend.append(log, log.segments[0], data, read_header(data), NOW_MS)
