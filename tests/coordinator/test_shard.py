"""Storing: what waits for which append."""

from groupcoord.coordinator.config import CoordinatorConfig
from groupcoord.coordinator.coordinator import GroupCoordinator
from groupcoord.coordinator.shard import Shard
from groupcoord.core.effects import Append, LogRecord
from groupcoord.core.events import AdminAction
from groupcoord.core.handler_context import HandlerContext
from groupcoord.protocol.errors import ErrorCode
from tests.coordinator.world import Topics

RECORD = LogRecord(key=b"k", value=None)


class Bench:
    """One shard, and a diary of what was called."""

    def __init__(self) -> None:
        coordinator = GroupCoordinator(CoordinatorConfig(), new_uuid=str, topics=Topics({}), now_ms=0)
        self.shard: Shard = coordinator.shards[3]
        self.diary: list[str] = []

    def store(self, name: str, *records: LogRecord) -> list[Append]:
        ctx = HandlerContext(0, AdminAction(name))
        self.shard.store(
            ctx,
            records,
            lambda later: self.diary.append(f"{name} stored because {later.cause}"),
            lambda later, error: self.diary.append(f"{name} failed: {error.name}"),
        )
        assert all(isinstance(effect, Append) for effect in ctx.effects)
        return ctx.effects  # type: ignore[return-value]


def test_without_records_and_with_nothing_on_its_way_it_is_done_at_once() -> None:
    bench = Bench()
    assert bench.store("a") == []
    assert bench.diary == ["a stored because a"]


def test_records_become_one_append_for_the_partition_of_the_shard() -> None:
    bench = Bench()
    (append,) = bench.store("a", RECORD, RECORD)
    assert (append.partition, append.records) == (3, (RECORD, RECORD))
    assert bench.diary == []


def test_appends_are_numbered() -> None:
    bench = Bench()
    numbers = [append.append_id for name in "abc" for append in bench.store(name, RECORD)]
    assert numbers == [1, 2, 3]


def test_what_has_no_records_waits_for_the_last_append_and_keeps_its_place() -> None:
    bench = Bench()
    (first,) = bench.store("a", RECORD)
    (second,) = bench.store("b", RECORD)
    bench.store("c")
    bench.shard.appended(first.append_id, 1)
    assert bench.diary == ["a stored because a"]
    bench.shard.appended(second.append_id, 2)
    assert bench.diary[1:] == ["b stored because b", "c stored because c"]
    bench.store("d")
    assert bench.diary[-1] == "d stored because d"


def test_with_an_append_fails_all_that_is_behind_it() -> None:
    bench = Bench()
    (first,) = bench.store("a", RECORD)
    bench.store("b")
    (second,) = bench.store("c", RECORD)
    bench.shard.append_failed(first.append_id, ErrorCode.REQUEST_TIMED_OUT, 1)
    assert bench.diary == [f"{name} failed: REQUEST_TIMED_OUT" for name in "abc"]
    assert not bench.shard.awaits(second.append_id)
    assert bench.shard.is_idle


def test_an_append_is_finished_once() -> None:
    bench = Bench()
    (append,) = bench.store("a", RECORD)
    bench.shard.appended(append.append_id, 1)
    assert bench.shard.appended(append.append_id, 2) == []
    assert bench.shard.append_failed(append.append_id, ErrorCode.REQUEST_TIMED_OUT, 3) == []
    assert bench.diary == ["a stored because a"]


def test_a_shard_says_what_it_holds() -> None:
    bench = Bench()
    bench.store("a", RECORD)
    assert repr(bench.shard) == "<Shard 3 groups=0 pending=1>"
