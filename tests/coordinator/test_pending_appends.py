"""Who waits for which append, and for how long."""

from groupcoord.coordinator.pending_appends import PendingAppends
from groupcoord.core.events import AdminAction
from groupcoord.core.handler_context import HandlerContext
from groupcoord.core.timers import Timers


class Bench:
    """Appends that may take 10 ms, and a diary."""

    def __init__(self) -> None:
        self.timers = Timers()
        self.appends = PendingAppends(4, self.timers, 10)
        self.diary: list[str] = []

    def add(self, number: int) -> None:
        self.appends.add(number, AdminAction("the test"))

    def wait(self, name: str, now_ms: int = 0) -> None:
        self.appends.wait(
            HandlerContext(now_ms, AdminAction(name)),
            lambda ctx: self.diary.append(f"{name} stored"),
            lambda ctx, error: self.diary.append(f"{name}: {error.name} at {ctx.now_ms}"),
        )


def test_who_waits_waits_for_the_last_append() -> None:
    bench = Bench()
    bench.add(1)
    bench.wait("a")
    bench.add(2)
    bench.wait("b")
    bench.wait("c")
    assert (len(bench.appends), 1 in bench.appends, 3 in bench.appends) == (2, True, False)
    assert [waiter.origin for waiter in bench.appends.take(1)] == [AdminAction("a")]
    assert [waiter.origin for waiter in bench.appends.take(2)] == [AdminAction("b"), AdminAction("c")]
    assert bench.appends.take(2) == []


def test_there_are_no_timers_until_an_append_is_held() -> None:
    bench = Bench()
    bench.add(1)
    bench.wait("a")
    assert bench.timers.next_deadline() is None
    bench.appends.hold(1, 3)
    bench.wait("b", 5)
    assert [deadline.key for deadline in bench.timers.pending()] == [
        ("append", "__consumer_offsets-4", "1"),
        ("append", "__consumer_offsets-4", "2"),
    ]
    bench.timers.fire_due(13)
    assert bench.diary == ["a: REQUEST_TIMED_OUT at 13"]
    assert [waiter.origin for waiter in bench.appends.take(1)] == [AdminAction("b")]
    assert bench.timers.next_deadline() is None


def test_those_behind_an_append_go_with_it_newest_first() -> None:
    bench = Bench()
    for number, name in enumerate("abc", 1):
        bench.add(number)
        bench.wait(name)
    failed, waiters = bench.appends.take_all_from(2)
    assert [append.append_id for append in failed] == [3, 2]
    assert [waiter.origin for waiter in waiters] == [AdminAction("b"), AdminAction("c")]
    assert bench.appends.take_all_from(2) == ([], [])
    assert [waiter.origin for waiter in bench.appends.take_all()] == [AdminAction("a")]
    assert len(bench.appends) == 0


def test_what_was_there_before_is_told_oldest_first() -> None:
    bench = Bench()
    first = bench.appends.add(1, AdminAction("a")).before
    second = bench.appends.add(2, AdminAction("b")).before
    assert bench.appends.before() == [first, second]
