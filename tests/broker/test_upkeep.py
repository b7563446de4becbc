from groupcoord.protocol.errors import ErrorCode
from tests.broker.data_plane import NOW_MS, DataPlane, batch

MINUTE_MS = 60_000


def numbered(sequence: int, producer: int = 5) -> bytes:
    return batch(b"x", at_ms=NOW_MS, producer_id=producer, producer_epoch=0, base_sequence=sequence)


def test_an_idle_broker_has_nothing_to_do() -> None:
    plane = DataPlane()
    plane.topic("orders", 9)
    assert plane.broker.next_deadline() is None


def test_old_records_are_deleted_every_five_minutes() -> None:
    plane = DataPlane()
    plane.topic("orders", retention_ms=MINUTE_MS)
    plane.produced("orders", batch(b"x", at_ms=NOW_MS))
    plane.wait(MINUTE_MS)
    plane.produced("orders", batch(b"y", at_ms=NOW_MS - 1))
    assert plane.broker.next_deadline() == NOW_MS + 5 * MINUTE_MS
    plane.wait(4 * MINUTE_MS - 1)
    assert plane.log("orders").log_start_offset == 0
    plane.wait(1)
    assert (plane.log("orders").log_start_offset, plane.log("orders").size) == (2, 0)
    assert plane.broker.next_deadline() is None


def test_the_looking_goes_on_as_long_as_there_is_something() -> None:
    plane = DataPlane(log_retention_check_interval_ms=1_000)
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
    plane = DataPlane(log_retention_check_interval_ms=1_000)
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
    plane = DataPlane(producer_id_expiration_ms=1_000, log_retention_check_interval_ms=1 << 60)
    plane.topic("orders")
    plane.produced("orders", numbered(0))
    assert plane.broker.next_deadline() == NOW_MS + 10 * MINUTE_MS
    plane.wait(10 * MINUTE_MS)
    assert plane.broker.next_deadline() == NOW_MS + (1 << 60)
    plane.produced("orders", numbered(9))
    assert plane.broker.next_deadline() == NOW_MS + 20 * MINUTE_MS
