"""The runtime with a coordinator that has no groups: see counters.py."""

import pytest

from groupcoord.coordinator.runtime.coordinator_shard import CoordinatorResult
from groupcoord.coordinator.runtime.shard import ShardState
from groupcoord.core.api_error import ApiError
from groupcoord.core.effects import UNWRITABLE, LogRecord, TypedRecord
from groupcoord.core.timers import TimerKey
from groupcoord.protocol.errors import ErrorCode
from tests.coordinator.runtime.counters import Bench, Counters, Key, call, record

# --- writing


def test_a_write_is_seen_by_writers_at_once_and_by_readers_when_it_is_stored() -> None:
    bench = Bench()
    bench.add("a")
    bench.add("a")
    assert (bench.shard.committed, bench.shard.latest) == ({}, {"a": 2})
    bench.flush()
    assert bench.said() == []
    bench.store()
    assert bench.said() == [1, 2]
    assert bench.shard.committed == {"a": 2}
    assert bench.shard.is_idle


def test_writes_until_the_flush_are_one_append_of_each_partition() -> None:
    bench = Bench()
    for name, shard in (("a", 0), ("b", 1), ("c", 0)):
        bench.add(name, shard=shard)
    assert bench.waits_for_flush()
    bench.flush()
    assert [(each.partition, [key for key, _, _ in each.records]) for each in bench.appends] == [
        (0, [Key("a"), Key("c")]),
        (1, [Key("b")]),
    ]
    assert not bench.waits_for_flush()
    bench.flush()
    assert len(bench.appends) == 2


def test_without_linger_every_write_is_an_append() -> None:
    bench = Bench(linger_ms=0)
    bench.add("a")
    bench.add("b")
    assert [len(each.records) for each in bench.appends] == [1, 1]
    assert not bench.waits_for_flush()


def test_with_linger_a_batch_waits_that_long() -> None:
    bench = Bench(linger_ms=10)
    bench.add("a")
    bench.advance(6)
    bench.add("b")
    bench.flush()
    assert bench.appends == []
    bench.advance(4)
    assert [len(each.records) for each in bench.appends] == [2]
    bench.add("c")
    assert bench.timers.next_deadline() == 20


def test_a_batch_that_is_full_is_flushed_before_the_next_write() -> None:
    bench = Bench(linger_ms=10, max_batch_bytes=150)
    for name in "abcde":
        bench.add(name)
    assert [len(each.records) for each in bench.appends] == [3]
    bench.advance(10)
    assert [len(each.records) for each in bench.appends] == [3, 2]


def test_records_that_are_not_atomic_are_spread_over_batches() -> None:
    bench = Bench(max_batch_bytes=150)
    records = [record(name, 1) for name in "abcde"]
    ctx = bench.context()
    bench.shard.run(ctx, lambda _: CoordinatorResult(records=records, is_atomic=False))
    bench.take(ctx.effects)
    bench.flush()
    assert [len(each.records) for each in bench.appends] == [3, 2]
    bench.store()
    assert bench.shard.committed == {"a": 1, "b": 1, "c": 1}
    bench.fail()
    assert bench.shard.latest == {"a": 1, "b": 1, "c": 1}


def test_a_response_without_records_waits_for_earlier_writes() -> None:
    bench = Bench()
    bench.add("a", 0)
    assert bench.said() == [0]
    bench.add("a")
    bench.add("a", 0)
    bench.flush()
    assert bench.said() == []
    bench.store()
    assert bench.said() == [1, 1]


def test_an_operation_may_refuse() -> None:
    bench = Bench()
    bench.add("a", -1)
    assert bench.said() == ["INVALID_REQUEST"]
    assert bench.shard.is_idle


def test_operations_that_no_request_asks_for() -> None:
    bench = Bench()
    heard: list[str] = []
    ctx = bench.context()
    bench.shard.run(ctx, lambda machine: machine.add("a", 3))
    bench.shard.after_pending_writes(ctx, lambda _: heard.append("stored"), lambda _, error: heard.append(error.name))
    assert heard == []
    bench.flush()
    bench.fail()
    assert (heard, bench.shard.latest) == (["KAFKA_STORAGE_ERROR"], {})
    bench.shard.after_pending_writes(ctx, lambda _: heard.append("stored"), lambda _, error: heard.append(error.name))
    assert heard[1:] == ["stored"]


# --- failures


def test_a_batch_that_fails_takes_all_of_it_back_and_what_was_written_after_it() -> None:
    bench = Bench()
    bench.add("a", 5)
    bench.flush()
    bench.store()
    bench.said()
    bench.add("a")
    bench.add("b")
    bench.flush()
    bench.add("a", 7)
    bench.fail()
    assert bench.said() == ["failed: KAFKA_STORAGE_ERROR"] * 3
    assert bench.shard.latest == bench.shard.committed == {"a": 5}
    bench.flush()
    assert (bench.appends, bench.shard.is_idle) == ([], True)
    bench.add("a")
    bench.flush()
    bench.store()
    assert bench.said() == [6]


def test_an_append_ends_once() -> None:
    bench = Bench()
    bench.add("a")
    bench.flush()
    append = bench.appends[0]
    bench.store()
    bench.take(bench.runtime.appended(append, 1))
    bench.take(bench.runtime.append_failed(append, ErrorCode.KAFKA_STORAGE_ERROR, 1))
    assert bench.said() == [1]
    assert not bench.shard.awaits(append.append_id)


def test_a_record_that_cannot_be_written_fails_alone() -> None:
    bench = Bench()
    bench.add("a")
    failed: list[str] = []
    ctx = bench.context()
    unwritable = CoordinatorResult(
        records=(TypedRecord(Key("x"), 1, UNWRITABLE),), failed=lambda _, error: failed.append(error.name)
    )

    def change(machine: object) -> CoordinatorResult:
        bench.shard.machine.values["a"] = 100
        return unwritable

    bench.shard.run(ctx, change)
    bench.shard.run(ctx, lambda _: unwritable)
    assert failed == ["UNKNOWN_SERVER_ERROR"] * 2
    bench.flush()
    bench.store()
    assert (bench.said(), bench.shard.committed) == ([1], {"a": 1})


def test_an_append_that_takes_long_times_out_and_may_still_be_stored() -> None:
    bench = Bench()
    bench.add("a")
    bench.flush()
    bench.shard.append_held(bench.appends[0].append_id)
    bench.advance(20)
    bench.add("a", 0)
    bench.flush()
    bench.advance(30)
    assert bench.said() == ["failed: REQUEST_TIMED_OUT"]
    bench.store()
    assert bench.said() == [1]
    assert (bench.shard.committed, bench.timers.next_deadline()) == ({"a": 1}, None)


def test_a_write_times_out_while_its_batch_lingers_and_may_still_be_stored() -> None:
    bench = Bench(linger_ms=100)
    bench.add("a")
    bench.advance(49)
    assert bench.said() == []
    bench.advance(1)
    assert bench.said() == ["failed: REQUEST_TIMED_OUT"]
    bench.advance(50)
    bench.shard.append_held(bench.appends[0].append_id)
    bench.store()
    assert (bench.said(), bench.shard.committed) == ([], {"a": 1})
    bench.add("b")
    bench.shard.flush(ctx := bench.context())
    bench.take(ctx.effects)
    bench.store()
    assert (bench.said(), bench.timers.next_deadline()) == ([1], None)


def test_the_time_of_a_write_counts_from_the_write_and_not_from_the_append() -> None:
    bench = Bench(linger_ms=20)
    bench.add("a")
    bench.advance(20)
    bench.shard.append_held(bench.appends[0].append_id)
    bench.advance(30)
    assert bench.said() == ["failed: REQUEST_TIMED_OUT"]


def test_a_record_has_the_offset_that_it_gets_in_the_log_also_after_a_failure() -> None:
    bench = Bench(linger_ms=0)
    bench.add("a")
    bench.add("b")
    bench.add("c")
    bench.store()
    bench.fail()
    bench.add("d")
    bench.store()
    bench.add("e")
    assert bench.shard.machine.offsets == [0, 1, 2, 1, 2]


def test_what_one_write_puts_and_removes_is_undone() -> None:
    bench = Bench()

    def come_and_go(machine: Counters) -> CoordinatorResult:
        machine.values["a"] = 1
        return CoordinatorResult(records=(record("a", None),))

    bench.shard.run(bench.context(), come_and_go)
    bench.flush()
    bench.fail()
    assert bench.shard.latest == {}


def test_a_change_without_records_is_undone_with_the_batch_before_it() -> None:
    bench = Bench()

    def change(machine: Counters) -> CoordinatorResult:
        machine.values["b"] = machine.values["a"]
        return CoordinatorResult()

    bench.add("a")
    bench.shard.run(bench.context(), change)
    assert (bench.shard.latest, bench.shard.committed) == ({"a": 1, "b": 1}, {})
    bench.flush()
    bench.fail()
    assert bench.shard.latest == {}


def test_a_change_without_records_is_seen_when_the_next_batch_is_stored() -> None:
    bench = Bench()
    bench.add("a")
    bench.flush()
    bench.store()

    def set_b(value: int) -> None:
        def change(machine: Counters) -> CoordinatorResult:
            machine.values["b"] = value
            return CoordinatorResult()

        bench.shard.run(bench.context(), change)

    set_b(1)
    set_b(2)
    assert (bench.shard.latest, bench.shard.committed) == ({"a": 1, "b": 2}, {"a": 1})
    bench.add("c")
    bench.flush()
    set_b(3)
    bench.store()
    assert (bench.shard.latest, bench.shard.committed) == ({"a": 1, "b": 3, "c": 1}, {"a": 1, "b": 2, "c": 1})
    bench.add("d")
    bench.flush()
    set_b(4)
    bench.fail()
    assert bench.shard.latest == bench.shard.committed == {"a": 1, "b": 2, "c": 1}


def test_a_change_without_records_is_not_kept_when_the_partition_is_unloaded() -> None:
    bench = Bench()

    def change(machine: Counters) -> CoordinatorResult:
        machine.values["b"] = 1
        return CoordinatorResult()

    bench.shard.run(bench.context(), change)
    bench.shard.unload(bench.context(), "moved")
    bench.shard.activate(bench.shard.new_machine(), 0)
    assert bench.shard.committed == {}


def test_if_a_record_cannot_be_applied_what_was_applied_before_it_is_taken_back() -> None:
    bench = Bench()
    unknown = TypedRecord(object(), 1, LogRecord(key=b"", value=b""))

    def change(machine: Counters) -> CoordinatorResult:
        return CoordinatorResult(records=(record("a", 1), unknown))

    with pytest.raises(AttributeError):
        bench.shard.run(bench.context(), change)
    assert (bench.shard.latest, bench.shard.is_idle) == ({}, True)
    bench.add("b")
    bench.flush()
    bench.store()
    assert (bench.said(), bench.shard.committed) == ([1], {"b": 1})


# --- transactions


def test_what_is_written_in_a_transaction_is_an_append_of_its_own_and_counts_when_that_is_committed() -> None:
    bench = Bench()
    bench.add("a")
    bench.add("t", 5, producer_id=7)
    bench.add("b")
    bench.flush()
    told = [(each.producer_id, each.producer_epoch, [key for key, _, _ in each.records]) for each in bench.appends]
    assert told == [(-1, -1, [Key("a")]), (7, 3, [Key("t")]), (-1, -1, [Key("b")])]
    assert not bench.waits_for_flush()
    for _ in range(3):
        bench.store()
    assert (bench.said(), bench.shard.committed) == ([1, 5, 1], {"a": 1, "b": 1})
    marker = bench.end_transaction(7, committed=True)
    (append,) = bench.appends
    assert (append.marker, append.records, bench.shard.committed) == (marker, (), {"a": 1, "b": 1})
    bench.store()
    assert bench.said() == ["transaction of 7 committed", "marker stored"]
    assert bench.shard.committed == {"a": 1, "b": 1, "t": 5}


def test_a_marker_comes_behind_what_was_written_before_it_and_takes_an_offset() -> None:
    bench = Bench()
    bench.add("a")
    bench.end_transaction(7, committed=False)
    bench.add("b")
    bench.flush()
    assert [each.marker is None for each in bench.appends] == [True, False, True]
    for _ in range(3):
        bench.store()
    assert bench.said() == [1, "marker stored", 1]
    assert bench.shard.machine.offsets == [0, 2]


def test_a_marker_that_cannot_be_stored_leaves_the_transaction_open() -> None:
    bench = Bench()
    bench.add("t", 5, producer_id=7)
    bench.store()
    bench.end_transaction(7, committed=True)
    assert bench.shard.latest == {"t": 5}
    bench.fail(ErrorCode.INVALID_PRODUCER_EPOCH)
    assert (bench.said(), bench.shard.latest) == ([5, "no marker: INVALID_PRODUCER_EPOCH"], {})
    bench.end_transaction(7, committed=False)
    bench.store()
    assert (bench.said(), bench.shard.latest) == (["transaction of 7 aborted", "marker stored"], {})
    bench.add("a")
    assert bench.shard.machine.offsets == [0, 2]


def test_what_a_transaction_could_not_write_is_no_part_of_it() -> None:
    bench = Bench()
    bench.add("t", 5, producer_id=7)
    bench.fail(ErrorCode.INVALID_TXN_STATE)
    assert bench.said() == ["failed: INVALID_TXN_STATE"]
    bench.end_transaction(7, committed=True)
    bench.store()
    assert (bench.said(), bench.shard.committed) == (["marker stored"], {})


def test_a_marker_that_is_held_times_out_and_may_still_be_stored() -> None:
    bench = Bench()
    bench.add("t", 5, producer_id=7)
    bench.store()
    bench.end_transaction(7, committed=True)
    bench.shard.append_held(bench.appends[0].append_id)
    bench.advance(50)
    assert bench.said() == [5, "no marker: REQUEST_TIMED_OUT"]
    bench.store()
    assert (bench.said(), bench.shard.committed) == ([], {"t": 5})


def test_a_shard_that_is_not_active_ends_no_transaction() -> None:
    bench = Bench()
    bench.runtime.resign(0, ctx := bench.context())
    bench.end_transaction(7, committed=True)
    bench.runtime.load(0, ctx)
    bench.end_transaction(7, committed=True)
    assert bench.said() == ["no marker: NOT_COORDINATOR", "no marker: COORDINATOR_LOAD_IN_PROGRESS"]


# --- states, loading


def test_a_shard_that_is_not_active_refuses_everything() -> None:
    bench = Bench()
    bench.add("a")
    bench.flush()
    ctx = bench.context()
    bench.runtime.resign(0, ctx)
    bench.take(ctx.effects)
    why = "another broker has partition 0 of __counters"
    assert bench.said() == ["failed: NOT_COORDINATOR", f"unloaded: {why}"]
    assert bench.state() is ShardState.UNLOADED
    bench.add("a")
    assert bench.said() == ["NOT_COORDINATOR"]
    bench.shard.run(ctx, lambda machine: machine.add("a", 1))
    assert bench.shard.is_idle
    with pytest.raises(ApiError, match=why):
        _ = bench.shard.latest
    loading = bench.runtime.load(0, ctx)
    bench.add("a")
    assert bench.said() == ["COORDINATOR_LOAD_IN_PROGRESS"]
    loading.finish(ctx)
    bench.add("a")
    assert repr(bench.shard) == "<Shard __counters-0 active pending=1>"


def test_what_was_written_is_what_is_loaded_by_the_same_apply() -> None:
    bench = Bench()
    for name, by in (("a", 1), ("soon", 2), ("a", 4)):
        bench.add(name, by)
    bench.flush()
    bench.store()
    before = bench.shard.committed
    bench.said()
    ctx = bench.context()
    bench.runtime.resign(0, ctx)
    loading = bench.runtime.load(0, ctx)
    records = [each for _, batch in bench.log for each in batch]
    loading.apply((offset, each.key, each.value) for offset, each in enumerate(records))
    loading.apply([(3, b"?", b"x"), (4, b"b", b"9"), (5, b"b", None), (6, b"b", None)])
    assert loading.apply_run(b"", 0).records == 0
    loading.end_transaction(7, committed=True)
    bench.now_ms = 3
    loading.finish(bench.context(), 7)
    assert bench.shard.committed == before == {"a": 5, "soon": 2}
    assert bench.shard.machine.heard == ["loaded 8 records, 1 unknown, in 3 ms"]
    bench.advance(5)
    bench.flush()
    bench.store()
    assert bench.shard.committed == {"a": 5, "soon": 12}


@pytest.mark.parametrize(
    ("records", "why"),
    [
        ([(0, b"a", b"broken"), (1, b"a", b"1")], "the record at offset 0 cannot be read: it is broken"),
        ([(0, b"refused", b"1")], "UNKNOWN_SERVER_ERROR: refused is not a counter"),
    ],
)
def test_a_log_that_cannot_be_loaded_is_not_served(records: list[tuple[int, bytes, bytes]], why: str) -> None:
    bench = Bench()
    loading = bench.runtime.load(0, bench.context())
    loading.apply(records)
    ctx = bench.context()
    loading.finish(ctx)
    bench.take(ctx.effects)
    assert bench.said() == [f"not loaded: {why}"]
    assert bench.state() is ShardState.FAILED
    assert bench.shard.why_not_active == f"partition 0 of __counters could not be read ({why})"
    bench.add("a")
    assert bench.said() == ["NOT_COORDINATOR"]


def test_a_load_that_is_overtaken_changes_nothing() -> None:
    bench = Bench()
    first = bench.runtime.load(0, bench.context())
    second = bench.runtime.load(0, bench.context())
    first.apply([(0, b"a", b"1")])
    first.finish(bench.context())
    assert bench.state() is ShardState.LOADING
    second.fail("the disk is gone")
    second.fail("and more")
    second.apply([(0, b"a", b"1")])
    second.finish(bench.context())
    assert (bench.state(), second.records) == (ShardState.FAILED, 0)


def test_a_topic_that_is_deleted_comes_back_empty() -> None:
    bench = Bench()
    bench.add("a")
    ctx = bench.context()
    bench.runtime.topic_deleted(ctx)
    assert bench.is_deleted()
    assert bench.shard.why_not_active == "there is no partition 0 of __counters"
    bench.runtime.topic_created(1)
    assert [shard.state for shard in bench.runtime.shards] == [ShardState.ACTIVE, ShardState.UNLOADED]
    bench.runtime.topic_created(2)
    assert not bench.is_deleted()
    assert bench.shard.latest == {}
    assert bench.shard.machine.is_empty


def test_a_key_belongs_to_a_shard_by_its_hash() -> None:
    bench = Bench()
    assert {bench.runtime.shard_of(name).partition for name in "abcdef"} == {0, 1}


def test_a_timer_of_a_state_machine_can_be_fired_early() -> None:
    bench = Bench()
    loading = bench.runtime.load(0, bench.context())
    loading.apply([(0, b"soon", b"1")])
    loading.finish(bench.context())
    (pending,) = bench.timers.pending()
    bench.shard.machine.timers.fire(pending.key, bench.context())
    assert (bench.shard.latest, bench.timers.next_deadline()) == ({"soon": 11}, None)
    with pytest.raises(KeyError):
        bench.shard.machine.timers.fire(pending.key, bench.context())
    assert call(1).correlation_id == 1


def test_a_timer_that_retries_runs_again_until_what_it_writes_is_stored() -> None:
    bench = Bench(linger_ms=0)
    machine = bench.shard.machine
    machine.timers.schedule(TimerKey("t", "once"), 5, lambda _: machine.add("once", 1))
    machine.timers.schedule(TimerKey("t", "again"), 5, lambda _: machine.add("again", 1), retries=True)
    bench.advance(5)
    bench.fail()
    assert bench.timers.next_deadline() == 505
    bench.appends.clear()
    bench.advance(500)
    bench.store()
    assert (bench.shard.committed, bench.timers.next_deadline()) == ({"again": 1}, None)


def test_a_timer_of_a_shard_that_is_unloaded_is_not_retried() -> None:
    bench = Bench(linger_ms=0)
    machine = bench.shard.machine
    machine.timers.schedule(TimerKey("t", "a"), 5, lambda _: machine.add("a", 1), retries=True)
    bench.advance(5)
    bench.runtime.resign(0, bench.context())
    assert bench.timers.next_deadline() is None
