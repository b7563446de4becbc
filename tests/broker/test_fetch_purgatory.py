import pytest

from groupcoord.broker.fetch_purgatory import DelayedFetch, FetchPurgatory, WatchedPartition
from groupcoord.broker.partition_log import PartitionLog
from groupcoord.broker.topic_config import LogConfig
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call
from groupcoord.core.events import AdminAction
from groupcoord.core.timers import Timers
from groupcoord.protocol.apis import APIS, ApiKey
from tests.broker.data_plane import NOW_MS, batch

SIZE = len(batch(b"x"))


def log(**settings: int) -> PartitionLog:
    return PartitionLog(LogConfig(**settings), "orders-0")  # type: ignore[arg-type]


class Waiting:
    """A purgatory, and which fetches have been answered."""

    def __init__(self) -> None:
        self.timers = Timers()
        self.purgatory = FetchPurgatory(self.timers)
        self.answered: list[str] = []
        self.ctx = HandlerContext(NOW_MS, AdminAction("a test"))

    def watch(
        self, name: str, *logs: PartitionLog, min_bytes: int = 1, max_bytes: int = 1 << 20, ms: int = 500
    ) -> DelayedFetch:
        call = Call(1, 1, APIS[ApiKey.FETCH], 12, name, "/127.0.0.1")
        watched = tuple(WatchedPartition(one, one.end_position, max_bytes) for one in logs)
        fetch = DelayedFetch(call, watched, min_bytes, lambda ctx: self.answered.append(name))
        self.purgatory.watch(fetch, NOW_MS + ms)
        return fetch

    def append(self, one: PartitionLog) -> None:
        one.append(batch(b"x"), NOW_MS)
        self.purgatory.appended(self.ctx, one)


@pytest.fixture
def waiting() -> Waiting:
    return Waiting()


def test_an_append_answers_who_waits_for_it(waiting: Waiting) -> None:
    one, other = log(), log()
    waiting.watch("one", one)
    waiting.watch("other", other)
    waiting.append(one)
    assert waiting.answered == ["one"]
    assert (len(waiting.purgatory), len(waiting.timers)) == (1, 1)


def test_bytes_are_counted_over_all_partitions(waiting: Waiting) -> None:
    one, other = log(), log()
    waiting.watch("both", one, other, min_bytes=2 * SIZE)
    waiting.append(one)
    assert waiting.answered == []
    waiting.append(other)
    assert waiting.answered == ["both"]


def test_no_partition_counts_for_more_than_it_may_bring(waiting: Waiting) -> None:
    one = log()
    waiting.watch("little", one, min_bytes=SIZE, max_bytes=SIZE - 1)
    waiting.append(one)
    waiting.append(one)
    assert waiting.answered == []


def test_a_closed_segment_is_reason_enough(waiting: Waiting) -> None:
    one = log(segment_bytes=SIZE)
    waiting.append(one)
    fetch = waiting.watch("patient", one, min_bytes=1 << 20)
    assert not fetch.satisfied()
    waiting.append(one)
    assert waiting.answered == ["patient"]


def test_who_waits_long_enough_is_answered(waiting: Waiting) -> None:
    waiting.watch("late", log(), ms=900)
    waiting.watch("soon", log(), ms=400)
    assert waiting.timers.next_deadline() == NOW_MS + 400
    waiting.timers.fire_due(NOW_MS + 899)
    assert waiting.answered == ["soon"]
    waiting.timers.fire_due(NOW_MS + 900)
    assert waiting.answered == ["soon", "late"]
    assert len(waiting.purgatory) == 0


def test_who_waits_for_something_that_goes_is_answered_once(waiting: Waiting) -> None:
    one, other, third = log(), log(), log()
    waiting.watch("both", one, other)
    waiting.watch("third", third)
    waiting.purgatory.logs_deleted(waiting.ctx, [one, other])
    assert waiting.answered == ["both"]
    waiting.append(other)
    assert waiting.answered == ["both"]
    assert (len(waiting.purgatory), len(waiting.timers)) == (1, 1)


def test_many_wait_in_the_order_they_came(waiting: Waiting) -> None:
    one = log()
    for name in "abc":
        waiting.watch(name, one)
    waiting.append(one)
    assert waiting.answered == ["a", "b", "c"]


def test_when_too_many_wait_the_oldest_are_answered(waiting: Waiting, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deviation (bounded-memory)."""
    monkeypatch.setattr("groupcoord.broker.fetch_purgatory.MAX_DELAYED_FETCHES", 3)
    one = log()
    for number in range(5):
        waiting.watch(f"fetch {number}", one, ms=1 << 31)
    assert waiting.timers.next_deadline() == 0
    waiting.timers.fire_due(NOW_MS)
    assert waiting.answered == ["fetch 0", "fetch 1"]
    assert (len(waiting.purgatory), len(waiting.timers)) == (3, 3)
