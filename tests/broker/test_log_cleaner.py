"""Compaction beside everything else: one log at a time, and nothing of a log that has changed meanwhile."""

import errno
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from groupcoord.broker import cleaner
from groupcoord.broker.events import LogCleaned, LogNotCleaned
from groupcoord.broker.log_segment import LogSegment
from groupcoord.broker.storage_backend import IN_MEMORY_LOG_BACKEND
from groupcoord.core.background_work import BackgroundWork, run_inline, run_to_end
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call, EmitEvent
from groupcoord.core.events import AdminAction, Event
from groupcoord.core.timers import TimerKey
from groupcoord.protocol.batches.compression import Compression
from groupcoord.protocol.batches.record_batch import BatchError
from tests.broker.data_plane import NOW_MS, DataPlane, batch
from tests.storage.directory import Life, contents, filled
from tests.storage.test_file_log_backend import SIZE

CLEANING = TimerKey("cleaning", "logs")


class Worker:
    """A ``WorkRunner`` that does a piece when it is told to."""

    def __init__(self, plane: DataPlane) -> None:
        self.plane = plane
        self.waiting: list[tuple[BackgroundWork[Any], Callable[[HandlerContext, Any], None]]] = []
        plane.broker.run_work = self

    def __call__(
        self,
        _: HandlerContext,
        __: Call | None,
        work: BackgroundWork[Any],
        then: Callable[[HandlerContext, Any], None],
        /,
    ) -> None:
        self.waiting.append((work, then))

    def piece(self) -> None:
        """Do one."""
        work, then = self.waiting[0]
        try:
            next(work)
        except StopIteration as end:
            self.waiting.pop(0)
            ctx = HandlerContext(self.plane.now_ms, AdminAction("a test"))
            then(ctx, end.value)
            self.plane.later += ctx.effects

    def finish(self) -> int:
        """Do all; how many pieces it took."""
        count = 0
        while self.waiting:
            self.piece()
            count += 1
        return count


def compacted(plane: DataPlane, name: str, batches: int = 4, **configs: Any) -> None:
    """A topic with a segment for each batch."""
    plane.topic(name, **{"cleanup_policy": "compact", "segment_ms": 1, **configs})
    for number in range(batches):
        plane.produced(name, batch(b"%d" % number, at_ms=NOW_MS + 2 * number))


def events(plane: DataPlane) -> list[Event]:
    return [effect.event for effect in plane.later if isinstance(effect, EmitEvent)]


def files(plane: DataPlane, name: str) -> list[bytes]:
    return [segment.copy(0, segment.size) for segment in plane.log(name).segments]


@pytest.fixture
def plane() -> DataPlane:
    return DataPlane()


def test_others_are_served_while_a_log_is_compacted_and_what_is_kept_is_the_same(plane: DataPlane) -> None:
    compacted(plane, "one")
    plane.wait(15_000)
    at_once_kept = files(plane, "one")
    later = DataPlane()
    worker = Worker(later)
    compacted(later, "one")
    before = files(later, "one")
    later.wait(15_000)
    assert events(later) == []
    assert files(later, "one") == before
    assert later.produced("one", batch(b"x", at_ms=NOW_MS + 8)).base_offset == 4
    worker.finish()
    assert files(later, "one")[:-1] == at_once_kept
    (event,) = events(later)
    assert isinstance(event, LogCleaned)
    assert (event.records_read, event.records_kept, event.end_offset) == (3, 1, 3)


def test_a_compressed_batch_is_a_piece_however_small_it_is(plane: DataPlane) -> None:
    worker = Worker(plane)
    plane.topic("bombs", cleanup_policy="compact", segment_ms=1, internal_segment_bytes=1 << 20)
    for _ in range(10):
        plane.produced("bombs", batch(bytes(1_000), at_ms=NOW_MS, attributes=int(Compression.ZSTD)))
    plane.produced("bombs", batch(b"", at_ms=NOW_MS + 2))
    plane.wait(15_000)
    assert worker.finish() == 2 * 11, "the batches are read twice, and each time there is an end"


def test_a_piece_is_bounded_in_bytes(plane: DataPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cleaner, "PIECE_BYTES", 150)
    worker = Worker(plane)
    compacted(plane, "one", 9)
    plane.wait(15_000)
    assert worker.finish() == 2 * 3, "of 70 bytes each, three batches are a piece"
    (event,) = events(plane)
    assert isinstance(event, LogCleaned)


def test_one_log_is_compacted_at_a_time_and_the_timer_goes_on_when_all_are_done(plane: DataPlane) -> None:
    worker = Worker(plane)
    compacted(plane, "one")
    compacted(plane, "two", 6)
    plane.wait(15_000)
    assert CLEANING not in plane.broker.timers
    for later in (8, 10):
        plane.produced("one", batch(b"x", at_ms=NOW_MS + later))
    for _ in range(3):  # appended to meanwhile: it is looked at again, but not begun
        plane.wait(15_000)
        assert len(worker.waiting) == 1
        assert CLEANING in plane.broker.timers
    while not events(plane):
        worker.piece()
        assert len(worker.waiting) == 1
    worker.finish()
    assert [event.text().split()[0] for event in events(plane)] == ["one-0", "two-0"]
    plane.wait(15_000)
    worker.finish()
    assert [event.text().split()[0] for event in events(plane)] == ["one-0", "two-0", "one-0"]


def delete(plane: DataPlane) -> None:
    plane.broker.topics.delete("one")


def create_anew(plane: DataPlane) -> None:
    delete(plane)
    compacted(plane, "one")


def retain(plane: DataPlane) -> None:
    log = plane.log("one")
    log.delete_records(1)
    log.apply_retention(plane.now_ms)


@pytest.mark.parametrize("pieces", [0, 1])
@pytest.mark.parametrize("change", [delete, create_anew, retain])
def test_what_comes_of_a_log_that_has_changed_is_dropped(
    plane: DataPlane, change: Callable[[DataPlane], None], pieces: int
) -> None:
    worker = Worker(plane)
    compacted(plane, "one", cleanup_policy="compact,delete")
    plane.wait(15_000)
    for _ in range(pieces):
        worker.piece()
    change(plane)
    before = files(plane, "one") if change is not delete else []
    worker.finish()
    assert events(plane) == []
    assert change is delete or files(plane, "one") == before
    if change is not delete:  # the next time all is well
        plane.wait(15_000)
        worker.finish()
        (event,) = events(plane)
        assert isinstance(event, LogCleaned)


@pytest.mark.parametrize("deleted", [True, False])
def test_a_segment_that_cannot_be_read_any_more_is_no_fault_if_it_was_deleted(plane: DataPlane, deleted: bool) -> None:
    worker = Worker(plane)
    compacted(plane, "one", cleanup_policy="compact,delete")
    first = plane.log("one").segments[0]
    assert isinstance(first, LogSegment)
    plane.wait(15_000)
    first.data[16] = 9
    if deleted:
        retain(plane)
    worker.finish()
    assert [type(event) for event in events(plane)] == ([] if deleted else [LogNotCleaned])
    assert CLEANING in plane.broker.timers


def test_an_exception_that_nobody_meant_ends_the_compaction_and_not_the_compacting(
    plane: DataPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = Worker(plane)
    compacted(plane, "one")
    plane.wait(15_000)

    def fail(*_: Any) -> None:
        raise RuntimeError("a fault")

    with monkeypatch.context() as broken:
        broken.setattr(cleaner, "collect_key_offsets", fail)
        with pytest.raises(RuntimeError, match="a fault"):
            worker.finish()
    plane.produced("one", batch(b"x", at_ms=NOW_MS + 20))
    plane.wait(15_000)
    worker.finish()
    assert len(events(plane)) == 1


def test_a_wish_is_done_at_once_but_not_while_that_log_is_being_compacted(plane: DataPlane) -> None:
    worker = Worker(plane)
    compacted(plane, "one")
    compacted(plane, "two", 3)
    plane.wait(15_000)
    (note,) = plane.broker.compact("one", 0, plane.now_ms)
    assert isinstance(note, EmitEvent)
    assert note.event.text() == "one-0 cannot be compacted: it is being compacted"
    (note,) = plane.broker.compact("two", 0, plane.now_ms)
    assert isinstance(note, EmitEvent)
    assert isinstance(note.event, LogCleaned)
    worker.finish()
    assert len(plane.broker.compact("one", 0, plane.now_ms)) == 1


def test_a_topic_that_is_deleted_before_its_turn_is_passed_over(plane: DataPlane) -> None:
    worker = Worker(plane)
    compacted(plane, "one")
    compacted(plane, "two")
    plane.wait(15_000)
    plane.broker.topics.delete("two")
    worker.finish()
    assert [event.text().split()[0] for event in events(plane)] == ["one-0"]


def test_who_had_the_work_may_be_gone(plane: DataPlane) -> None:
    Worker(plane)
    compacted(plane, "one")
    plane.wait(15_000)
    plane.broker.run_work = run_inline
    plane.produced("one", batch(b"x", at_ms=NOW_MS + 20))
    plane.wait(15_000)
    assert len(events(plane)) == 1


def test_whoever_moves_the_clock_can_have_it_at_once(plane: DataPlane) -> None:
    worker = Worker(plane)
    plane.broker.compacts_at_once = True
    compacted(plane, "one")
    plane.wait(15_000)
    assert not worker.waiting
    assert len(events(plane)) == 1


def test_however_many_segments_there_are_nothing_is_too_deep(plane: DataPlane) -> None:
    compacted(plane, "one", 400, internal_segment_bytes=100)
    plane.wait(15_000)
    assert len(events(plane)) == 1


def to_the_end(steps: Generator[BackgroundWork[Any], Any, Any], work: BackgroundWork[Any]) -> None:
    while True:
        work = steps.send(run_to_end(work))


@pytest.mark.parametrize("change", ["nothing", "retention", "a full disk", "a failed disk", "the end"])
def test_files_are_written_aside_and_those_of_nothing_are_removed(tmp_path: Path, change: str) -> None:
    life = Life(tmp_path)
    log = life.topic(cleanup_policy="compact,delete", internal_segment_bytes=2 * SIZE)
    filled(log, 7, 10, size=50)
    steps = cleaner.cleaning(log, cleaner.cleanable(log, NOW_MS), NOW_MS)
    work = steps.send(run_to_end(next(steps)))
    folder = tmp_path / "orders-0"
    while not list(folder.glob("*.log.cleaned")):
        next(work)
    match change:
        case "nothing":
            with pytest.raises(StopIteration) as end:
                to_the_end(steps, work)
            assert isinstance(end.value.value, cleaner.Cleaned)
            assert len(contents(log)) == 2
        case "retention":
            log.delete_records(2)
            log.apply_retention(NOW_MS)
            made = run_to_end(work)
            with pytest.raises(StopIteration) as end:
                steps.send(made)
            assert end.value.value is None
            assert len(contents(log)) == 5
        case "a full disk":
            with pytest.raises(BatchError, match="No space left"):
                steps.throw(OSError(errno.ENOSPC, "No space left on device"))
            assert life.storage.failure is not None
            with pytest.raises(BatchError, match="No space left"):
                next(life.store().writing(log, LogSegment(0, NOW_MS)))
        case "a failed disk":
            made = run_to_end(work)
            life.storage.failed(OSError(errno.EIO, "broken"))
            with pytest.raises(BatchError, match="broken"):
                steps.send(made)
            assert len(contents(log)) == 7
        case _:
            work.close()
    if change in {"nothing", "retention"}:
        assert not list(folder.glob("*.cleaned"))
    life.kill()
    again = Life(tmp_path)
    assert len(contents(again.log())) == {"nothing": 2, "retention": 5}.get(change, 7)
    assert not list(folder.glob("*.cleaned"))
    again.kill()


def test_a_copy_in_memory_says_of_a_file_what_the_system_says() -> None:
    IN_MEMORY_LOG_BACKEND.discard(0)
    assert str(IN_MEMORY_LOG_BACKEND.failed(OSError(5, "broken"))) == "[Errno 5] broken"
