import dataclasses

import pytest

from groupcoord.broker.events import LogCleaned, LogSegmentsDeleted
from groupcoord.broker.log_segment import LogSegment
from groupcoord.broker.storage_backend import LogBackend, Segment
from groupcoord.core.effects import EmitEvent
from groupcoord.core.events import AdminAction, Event
from groupcoord.core.timers import TimerKey
from groupcoord.protocol.batches.record_batch import BatchError
from groupcoord.protocol.errors import ErrorCode
from tests.broker.data_plane import NOW_MS, DataPlane, batch

MINUTE_MS = 60_000


def numbered(sequence: int, producer: int = 5) -> bytes:
    return batch(b"x", at_ms=NOW_MS, producer_id=producer, producer_epoch=0, base_sequence=sequence)


def test_an_idle_broker_has_nothing_to_do() -> None:
    plane = DataPlane()
    plane.topic("orders", 9)
    assert plane.broker.next_deadline() is None


def test_old_records_are_deleted_half_a_minute_after_the_start_and_then_every_five_minutes() -> None:
    plane = DataPlane()
    plane.topic("orders", retention_ms=MINUTE_MS)
    plane.produced("orders", batch(b"x", at_ms=NOW_MS))
    assert plane.broker.next_deadline() == NOW_MS + MINUTE_MS // 2
    plane.wait(MINUTE_MS)
    plane.produced("orders", batch(b"y", at_ms=NOW_MS - 1))
    assert plane.broker.next_deadline() == NOW_MS + 5 * MINUTE_MS + MINUTE_MS // 2
    plane.wait(4 * MINUTE_MS + MINUTE_MS // 2 - 1)
    assert plane.log("orders").log_start_offset == 0
    plane.wait(1)
    assert (plane.log("orders").log_start_offset, plane.log("orders").size) == (2, 0)
    assert plane.broker.next_deadline() is None


SIZE = len(batch(b"x"))


def deletions(plane: DataPlane) -> list[Event]:
    found = [effect.event for effect in plane.later if isinstance(effect, EmitEvent)]
    return [event for event in found if isinstance(event, LogSegmentsDeleted)]


@pytest.mark.parametrize(
    ("settings", "gone", "why"),
    [
        ({"retention_ms": MINUTE_MS}, 4, "they are older than retention.ms, 60000 ms"),
        ({"retention_bytes": SIZE}, 3, f"retention.bytes is {SIZE}"),
    ],
)
def test_it_is_told_which_records_retention_deletes_and_why(settings: dict[str, int], gone: int, why: str) -> None:
    plane = DataPlane()
    plane.topic("orders", internal_segment_bytes=SIZE, **settings)
    for _ in range(4):
        plane.produced("orders", batch(b"x", at_ms=NOW_MS))
    plane.wait(6 * MINUTE_MS)
    (event,) = deletions(plane)
    assert event.text() == f"orders-0 loses the records from offset 0 to {gone - 1}: {why}"


def test_it_is_told_at_once_that_more_does_not_fit_into_memory() -> None:
    plane = DataPlane()
    plane.topic("orders")
    topic = plane.broker.topics["orders"]
    topic.partitions[0].settings = dataclasses.replace(topic.settings, memory_bytes=2 * SIZE)
    for _ in range(4):
        plane.produced("orders", batch(b"x", at_ms=NOW_MS))
    (event,) = deletions(plane)
    why = f"in memory it holds {2 * SIZE} bytes, unless retention.bytes is more"
    assert event.text() == f"orders-0 loses the records from offset 0 to 0: {why}"


def test_the_looking_goes_on_as_long_as_there_is_something() -> None:
    plane = DataPlane(log_initial_task_delay_ms=1_000, log_retention_check_interval_ms=1_000)
    plane.topic("short", retention_ms=2_500)
    plane.topic("long")
    plane.produced("short", batch(b"x", at_ms=NOW_MS))
    plane.produced("long", batch(b"x", at_ms=NOW_MS))
    plane.wait(2_999)
    assert plane.log("short").log_start_offset == 0
    plane.wait(1)
    assert (plane.log("short").log_start_offset, plane.log("long").log_start_offset) == (1, 0)
    assert plane.broker.next_deadline() == NOW_MS + 4_000


def test_a_topic_in_between_is_looked_after_too() -> None:
    plane = DataPlane(log_initial_task_delay_ms=1_000, log_retention_check_interval_ms=1_000)
    plane.topic("first", retention_ms=1)
    plane.produced("first", batch(b"x"))
    plane.wait(1_000)
    assert plane.broker.next_deadline() is None
    plane.topic("second", retention_ms=1)
    plane.produced("second", batch(b"x"))
    plane.wait(1_000)
    assert plane.log("second").log_start_offset == 1


def test_a_producer_that_is_silent_for_a_day_is_forgotten() -> None:
    plane = DataPlane()
    plane.topic("orders")
    plane.produced("orders", numbered(0))
    assert plane.produced("orders", numbered(5)).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    plane.wait(24 * 60 * MINUTE_MS - 1)
    assert len(plane.log("orders").producers) == 1
    plane.wait(1)
    assert len(plane.log("orders").producers) == 0
    assert plane.produced("orders", numbered(5)).error_code == 0


def test_producers_are_looked_after_while_there_are_any() -> None:
    plane = DataPlane(producer_id_expiration_ms=1_000, log_initial_task_delay_ms=1 << 60)
    plane.topic("orders")
    plane.produced("orders", numbered(0))
    assert plane.broker.next_deadline() == NOW_MS + 10 * MINUTE_MS
    plane.wait(10 * MINUTE_MS)
    assert plane.broker.next_deadline() == NOW_MS + (1 << 60)
    plane.produced("orders", numbered(9))
    assert plane.broker.next_deadline() == NOW_MS + 20 * MINUTE_MS


def cleanings(plane: DataPlane) -> list[Event]:
    return [effect.event for effect in plane.later if isinstance(effect, EmitEvent)]


def test_compacted_logs_are_cleaned_when_they_are_dirty_enough() -> None:
    plane = DataPlane()
    plane.topic("compacted", cleanup_policy="compact", segment_ms=1)
    plane.produced("compacted", batch(b"x", at_ms=NOW_MS))
    assert TimerKey("cleaning", "logs") not in plane.broker.timers
    plane.produced("compacted", batch(b"y", at_ms=NOW_MS + 2))
    plane.wait(15_000)
    (event,) = cleanings(plane)
    assert event.text() == "compacted-0 is compacted up to offset 1: 1 of 1 records are kept, 70 bytes"
    for later in (4, 6):
        plane.produced("compacted", batch(b"z", at_ms=NOW_MS + later))
    plane.wait(15_000)
    assert [event.records_kept for event in cleanings(plane) if isinstance(event, LogCleaned)] == [1, 1]
    assert plane.log("compacted").read(0, 1_000, at_least_one=True).start.offset == 2


def test_nothing_is_cleaned_where_that_is_switched_off() -> None:
    plane = DataPlane(log_cleaner_enable="false")
    plane.topic("compacted", cleanup_policy="compact", segment_ms=1)
    for later in (0, 2):
        plane.produced("compacted", batch(b"x", at_ms=NOW_MS + later))
    assert TimerKey("cleaning", "logs") not in plane.broker.timers


def test_what_cannot_be_cleaned_is_said_and_tried_again() -> None:
    plane = DataPlane()
    plane.topic("compacted", cleanup_policy="compact", segment_ms=1)
    for later in (0, 2):
        plane.produced("compacted", batch(b"x", at_ms=NOW_MS + later))
    segment = plane.log("compacted").segments[0]
    assert isinstance(segment, LogSegment)
    segment.data[16] = 9
    plane.wait(30_000)
    first, second = cleanings(plane)
    assert first.text().endswith("what begins with offset 0, length 58 and magic 9 is not a batch")
    assert first.text() == second.text()


def test_the_cleaning_ends_with_the_last_compacted_log() -> None:
    plane = DataPlane()
    plane.topic("compacted", cleanup_policy="compact", segment_ms=1)
    for later in (0, 2):
        plane.produced("compacted", batch(b"x", at_ms=NOW_MS + later))
    plane.broker.topics.delete("compacted")
    plane.wait(15_000)
    assert TimerKey("cleaning", "logs") not in plane.broker.timers


def test_a_log_that_begins_with_an_open_transaction_is_passed_over() -> None:
    plane = DataPlane()
    plane.topic("compacted", cleanup_policy="compact", segment_ms=1)
    transactional = batch(b"x", at_ms=NOW_MS, attributes=0x10, producer_id=1, producer_epoch=0, base_sequence=0)
    plane.log("compacted").append(transactional, NOW_MS)
    plane.produced("compacted", batch(b"x", at_ms=NOW_MS + 2))
    assert len(plane.log("compacted").segments) == 2
    plane.wait(15_000)
    assert cleanings(plane) == []


def test_a_log_is_compacted_on_request_with_all_that_is_in_it() -> None:
    plane = DataPlane()
    plane.topic("compacted", cleanup_policy="compact", min_cleanable_dirty_ratio="1")
    for value in (b"x", b"y", b"z"):
        plane.produced("compacted", batch(value, at_ms=NOW_MS))
    (note,) = plane.broker.compact("compacted", 0, NOW_MS)
    assert isinstance(note, EmitEvent)
    assert isinstance(note.event, LogCleaned)
    assert (note.event.records_read, note.event.records_kept, note.event.end_offset) == (3, 1, 3)
    assert note.event.cause == AdminAction("compacted-0 is to be compacted")
    assert plane.log("compacted").read(0, 1_000, at_least_one=True).start.offset == 2
    assert plane.broker.compact("compacted", 0, NOW_MS) == [], "there is nothing left to do"
    with pytest.raises(KeyError, match="compacted-1"):
        plane.broker.compact("compacted", 1, NOW_MS)


def test_a_log_that_cannot_be_written_to_is_not_compacted(monkeypatch: pytest.MonkeyPatch) -> None:
    plane = DataPlane()
    plane.topic("compacted", cleanup_policy="compact")
    plane.produced("compacted", batch(b"x", at_ms=NOW_MS))

    def full(*_: object) -> Segment:
        raise BatchError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is full")

    monkeypatch.setattr(LogBackend, "new_segment", full)
    (note,) = plane.broker.compact("compacted", 0, NOW_MS)
    assert isinstance(note, EmitEvent)
    assert note.event.text() == "compacted-0 cannot be compacted: the disk is full"
