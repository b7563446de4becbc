"""A trace as a file: what is written comes back; what is not known is passed over; what is not a trace is refused."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from groupcoord.client.member import member_events as client
from groupcoord.coordinator.events import AssignmentReceived, MemberRemoved, StateChanged
from groupcoord.coordinator.transaction import events as transaction
from groupcoord.core.events import AdminAction, Answered, Event, Requested, event_class
from groupcoord.testing import Cluster
from groupcoord.testing.faults import FaultEnded, FaultInjected
from groupcoord.testing.trace import RequestReceived, Trace, UnknownEvent, register
from groupcoord.testing.trace.file_format import TYPES, VERSION, name_of, own_fields
from tests.testing.trace.stage import Stage

TEST = AdminAction("the test")


@event_class
class Homemade(Event):
    """An event of a test."""

    flags: tuple[tuple[str, int], ...]

    def text(self) -> str:
        return f"flags {self.flags}"


def saved(trace: Trace, folder: Path) -> Path:
    path = folder / "trace.jsonl"
    trace.save(path)
    return path


def a_story() -> Stage:
    stage = Stage(now_ms=500)
    a, _ = stage.stable(stage.member("a"), stage.member("b", instance="i"))
    a.commit()
    a.heartbeat()
    stage.ask_offsets()
    stage.describe("g", "h")
    a.leave(reason="done")
    stage.advance(20_000)
    return stage


def test_what_is_saved_comes_back(tmp_path: Path) -> None:
    stage = a_story()
    loaded = Trace.load(saved(stage.trace, tmp_path))
    assert loaded.start_ms == 500
    assert [entry.event for entry in loaded] == [entry.event for entry in stage.trace]
    assert loaded.text() == stage.trace.text()
    assert [entry.consequences for entry in loaded] == [entry.consequences for entry in stage.trace]
    assert [entry.real_ms for entry in loaded] == [entry.real_ms for entry in stage.trace]
    assert loaded.why("g") == stage.trace.why("g")
    assert loaded.mermaid() == stage.trace.mermaid()


def test_every_type_of_field_comes_back(tmp_path: Path) -> None:
    asked = Requested("JoinGroup", 9, None, "/127.0.0.1", 3, 7)
    events: list[Event] = [
        client.AssignorRan(
            at_ms=1,
            cause=Answered("JoinGroup", "NONE", 3, 7),
            group="g",
            member="a",
            assignor="range",
            assignment=(("a", (("t", 0), ("t", 1))),),
            withheld=(("t", 2),),
        ),
        AssignmentReceived(at_ms=2, cause=asked, group="g", generation=1, leader="a", owners={"a": (("t", 0),)}),
        AssignmentReceived(at_ms=2, cause=asked, group="g", generation=1, leader="a", owners=None),
    ]
    trace = Trace()
    for event in events:
        trace(event)
    assert [entry.event for entry in Trace.load(saved(trace, tmp_path))] == events


def test_a_line_says_all_there_is(tmp_path: Path) -> None:
    times_ns = iter([5_000_000, 5_000_000, 22_900_000])
    trace = Trace(start_ms=0, monotonic_ns=lambda: next(times_ns))
    trace(StateChanged(at_ms=3_000, cause=TEST, group="g", origin="Empty", target="Stable", generation=1))
    header, action, moved = (json.loads(line) for line in saved(trace, tmp_path).read_text("utf-8").splitlines())
    assert header == {"schema": "groupcoord-trace", "version": VERSION, "start_ms": 0, "dropped": {}}
    assert action["event"] == "trace.AdminActionRun"
    assert moved == {
        "seq": 2,
        "at_ms": 3_000,
        "real_ms": 17,
        "event": "coordinator.StateChanged",
        "caused_by": 1,
        "answers": None,
        "cause": {"type": "AdminAction", "action": "the test"},
        "fields": {"group": "g", "origin": "Empty", "target": "Stable", "generation": 1},
        "text": "g Empty → Stable gen=1",
    }


def test_what_was_dropped_is_known_later(tmp_path: Path) -> None:
    stage = Stage(trace=Trace(limit=5))
    stage.stable("a")
    loaded = Trace.load(saved(stage.trace, tmp_path))
    assert loaded.dropped == stage.trace.dropped > 0
    assert loaded.dropped_of(RequestReceived) == stage.trace.dropped_of(RequestReceived)
    assert [entry.seq for entry in loaded] == [entry.seq for entry in stage.trace]


def test_a_trace_of_nothing(tmp_path: Path) -> None:
    loaded = Trace.load(saved(Trace(), tmp_path))
    assert len(loaded) == 0
    assert loaded.start_ms is None


def test_a_loaded_trace_goes_on(tmp_path: Path) -> None:
    times_ns = iter([0, *range(20_000_000_000, 21_000_000_000, 1_000_000)])
    stage = Stage(trace=Trace(monotonic_ns=lambda: next(times_ns)))
    stage.stable("a")
    loaded = Trace.load(saved(stage.trace, tmp_path))
    loaded(StateChanged(at_ms=0, cause=TEST, group="g", origin="Empty", target="Dead", generation=1))
    assert len(loaded) == len(stage.trace) + 2
    *_, last_saved, _, new = loaded
    assert new.real_ms >= last_saved.real_ms > 20_000


def changed(path: Path, line: int, change: Any) -> Path:
    lines = path.read_text("utf-8").splitlines()
    record = json.loads(lines[line])
    change(record)
    lines[line] = json.dumps(record)
    path.write_text("\n".join(lines), "utf-8")
    return path


def test_an_unknown_type_of_event_is_kept_as_it_was_told(tmp_path: Path) -> None:
    stage = a_story()
    path = changed(saved(stage.trace, tmp_path), 2, lambda record: record.update(event="new.Thing", fields={"x": [1]}))
    path = changed(path, 0, lambda header: header["dropped"].update({"new.Thing": 2}))
    loaded = Trace.load(path)
    thing = loaded.of(UnknownEvent).first
    assert (thing.name, thing.fields) == ("new.Thing", {"x": [1]})
    assert thing.text() == stage.trace[2].event.text()
    assert loaded.dropped_of(UnknownEvent) == 2
    again = Trace.load(saved(loaded, tmp_path))
    assert again.of(UnknownEvent).first == thing


def test_an_unknown_field_is_passed_over(tmp_path: Path) -> None:
    stage = a_story()
    path = changed(saved(stage.trace, tmp_path), 2, lambda record: record["fields"].update(new=1))
    assert Trace.load(path).text() == stage.trace.text()


def test_a_file_that_is_no_trace(tmp_path: Path) -> None:
    path = tmp_path / "x"
    for text in ("", "rubbish\n", "[]\n", '{"schema": "other"}\n'):
        path.write_text(text, "utf-8")
        with pytest.raises(ValueError, match="is not a trace: its first line is not a trace header"):
            Trace.load(path)


def test_a_trace_of_another_version(tmp_path: Path) -> None:
    path = changed(saved(Trace(), tmp_path), 0, lambda header: header.update(version=VERSION + 1))
    with pytest.raises(ValueError, match=f"is a trace of version {VERSION + 1}; version {VERSION} can be read"):
        Trace.load(path)


def test_a_line_that_is_no_entry(tmp_path: Path) -> None:
    path = changed(saved(a_story().trace, tmp_path), 2, lambda record: record.pop("seq"))
    with pytest.raises(ValueError, match=re.escape(f"line 3 of {path} is not an entry of a trace: 'seq'")):
        Trace.load(path)


def test_events_of_one_s_own(tmp_path: Path) -> None:
    trace = Trace()
    trace(Homemade(at_ms=0, cause=TEST, flags=(("a", 1),)))
    with pytest.raises(ValueError, match=r"events of .*Homemade cannot be saved: register\(\) them first"):
        saved(trace, tmp_path)
    try:
        register("test", Homemade)
        register("test", Homemade)
        assert name_of(Homemade) == "test.Homemade"
        assert Trace.load(saved(trace, tmp_path)).of(Homemade).one().flags == (("a", 1),)
        other = type("Homemade", (Event,), {})
        with pytest.raises(ValueError, match=r"test\.Homemade is the name of another event type"):
            register("test", other)
    finally:
        TYPES.pop("test.Homemade", None)


def test_every_type_has_a_name_and_fields() -> None:
    assert name_of(MemberRemoved) == "coordinator.MemberRemoved"
    assert own_fields(MemberRemoved) == ("group", "member", "reason", "how", "timeout_ms")
    assert TYPES["client.RequestFailed"] is not TYPES["coordinator.RequestRefused"]


@pytest.mark.asyncio
async def test_what_fault_rules_did_comes_back(tmp_path: Path) -> None:
    async with Cluster(topics={"orders": 1}, clock="manual") as kafka:
        member = kafka.manual_member("app", "orders")
        await member.rejoin()
        kafka.faults.when("Heartbeat").delay(50)
        beating = member.heartbeat()
        await kafka.clock.advance(1)
        await beating
        loaded = Trace.load(saved(kafka.trace, tmp_path))
        assert loaded.of(FaultInjected).one().action == "is handled 50 ms late"
        assert loaded.of(FaultEnded).one() == kafka.trace.of(FaultEnded).one()


def test_a_transaction_that_is_saved_comes_back(tmp_path: Path) -> None:
    x: dict[str, Any] = {"at_ms": 1, "cause": TEST, "transactional_id": "x"}
    events: list[Event] = [
        transaction.TransactionChanged(
            **x,
            before="Ongoing",
            after="PrepareAbort",
            producer_id=7,
            producer_epoch=1,
            partitions=(("orders", 0),),
            reason=transaction.AbortReason.TIMED_OUT,
        ),
        transaction.TransactionRefused(**x, api="EndTxn", error="PRODUCER_FENCED", why="of its epoch"),
        transaction.MarkerWritten(**x, topic="orders", partition=0, committed=False),
        transaction.TransactionalIdExpired(**x),
        transaction.TransactionsLoaded(at_ms=1, cause=TEST, partition=0, records=1, transactional_ids=1, took_ms=0),
        transaction.TransactionsNotLoaded(at_ms=1, cause=TEST, partition=0, records=1, why="damaged"),
    ]
    trace = Trace()
    for event in events:
        trace(event)
    assert [entry.event for entry in Trace.load(saved(trace, tmp_path))][1:] == events


def test_a_first_line_without_a_beginning_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text(json.dumps({"schema": "groupcoord-trace", "version": 2}), encoding="utf-8")
    with pytest.raises(
        ValueError, match=r"line 1 of .* is not a complete trace header: it has no start_ms and no dropped"
    ):
        Trace.load(path)


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="is not a trace: it is not UTF-8 text"):
        Trace.load(path)
