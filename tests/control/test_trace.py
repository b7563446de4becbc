"""The trace over HTTP: queries, text, pictures, files, and why."""

from pathlib import Path
from typing import Any

import pytest

from groupcoord.testing.trace import Trace
from groupcoord.testing.trace.file_format import entry_as_json
from tests.control.support import Control

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]


async def story(control: Control) -> None:
    _, b = await control.kafka.consumers(2, "app", "orders")
    b.vanish()
    await control.kafka.clock.advance(49)
    await control.kafka.group("app").wait_stable(1)
    await control.kafka.consumers(1, "other", "orders")


async def test_entries_have_the_form_of_the_file(control: Control) -> None:
    await story(control)
    trace = control.kafka.trace
    found = await control.get("/trace")
    assert found["entries"] == [_plain(entry_as_json(entry)) for entry in trace]
    assert (found["run"], found["start_ms"], found["dropped"]) == (1, trace.start_ms, 0)
    assert found["last_seq"] == trace.last_seq == found["entries"][-1]["seq"]
    last = await control.get("/trace", after=trace.last_seq - 3, limit=2)
    assert [each["seq"] for each in last["entries"]] == [trace.last_seq - 2, trace.last_seq - 1]


def _plain(value: object) -> object:
    """As JSON has it."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


async def test_entries_are_chosen_by_event_group_member_and_field(control: Control) -> None:
    await story(control)

    async def chosen(**query: object) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = (await control.get("/trace", 200, **query))["entries"]
        assert entries
        return entries

    by_name = await chosen(event="MemberRemoved")
    assert {each["event"] for each in by_name} == {"coordinator.MemberRemoved"}
    assert await chosen(event="coordinator.MemberRemoved") == by_name
    both = await chosen(event=["MemberRemoved", "TimerExpired"], since=45.0, until=60.0)
    assert {each["event"] for each in both} == {"coordinator.MemberRemoved", "trace.TimerExpired"}
    assert all(each["fields"]["group"] == "other" for each in await chosen(event="MemberJoined", group="other"))
    of_member = await chosen(member="app-1")
    assert all("app-1" in str(each["fields"]) for each in of_member)
    refused = await chosen(event="ResponseSent", where=["api=Heartbeat", "error=REBALANCE_IN_PROGRESS"])
    assert all(each["fields"]["error"] == "REBALANCE_IN_PROGRESS" for each in refused)
    assert await chosen(where="generation=1")
    empty = await control.get("/trace", where="generation=none", transaction="billing")
    assert empty["entries"] == []


async def test_fields_are_compared_as_json_writes_them(control: Control) -> None:
    producer = control.kafka.manual_producer("billing")
    await producer.init()
    await producer.produce("orders", b"one", partition=0)
    await producer.end(commit=False)
    entries = (await control.get("/trace", transaction="billing"))["entries"]
    fields = {
        (name, str(value).lower() if isinstance(value, bool) else str(value))
        for each in entries
        for name, value in each["fields"].items()
        if isinstance(value, bool | str)
    }
    assert fields
    for name, value in fields:
        assert (await control.get("/trace", where=f"{name}={value}", transaction="billing"))["entries"], (name, value)


@pytest.mark.parametrize(
    ("query", "field", "said"),
    [
        ({"event": "MemberRemovd"}, "event", "there is no event 'MemberRemovd'; did you mean MemberRemoved?"),
        ({"where": "error"}, "where", "'error' is no FIELD=VALUE"),
        (
            {"event": "MemberRemoved", "where": "grop=app"},
            "where",
            "MemberRemoved has no field 'grop'; did you mean group?",
        ),
        ({"limit": 0}, "limit", "greater than or equal to 1"),
    ],
)
async def test_what_cannot_be_asked_is_refused(
    control: Control, query: dict[str, object], field: str, said: str
) -> None:
    (error,) = (await control.get("/trace", 422, **query))["errors"]
    assert error["field"] == field
    assert said in error["problem"]


async def test_it_is_read_as_text_drawn_and_loaded(control: Control, tmp_path: Path) -> None:
    await story(control)
    trace = control.kafka.trace
    assert await control.get("/trace/text", group="app", fold=True) == trace.text(group="app", fold=True)
    assert (await control.get("/trace/text", limit=3)).splitlines()[1:] == trace.text(limit=3).splitlines()[1:]
    assert await control.get("/trace/mermaid", group="app") == trace.mermaid(group="app")
    answer = await control.ask("GET", "/trace/file")
    assert answer.headers["content-type"] == "application/x-ndjson"
    (tmp_path / "trace.jsonl").write_text(answer.text)
    assert Trace.load(tmp_path / "trace.jsonl").text() == trace.text()


async def test_it_says_why(control: Control) -> None:
    await story(control)
    trace = control.kafka.trace
    newest = max(trace.generations("app"))
    assert await control.get("/trace/why", group="app") == trace.why("app")
    assert await control.get("/trace/why", group="app", generation=newest) == trace.why("app", newest)
    assert await control.get("/trace/why", group="app", member="app-2") == trace.why("app", member="app-2")
    lost = await control.get("/trace/why", group="app", lost="orders:1")
    assert lost == trace.why("app", lost=("orders", 1))
    assert await control.get("/trace/why", group="app", got="orders:1") == trace.why("app", got=("orders", 1))
    timer = next(entry for entry in trace if entry.text().find("the session timer") >= 0)
    assert await control.get("/trace/why", group="app", cause=timer.seq) == trace.why("app", cause=timer)


async def test_of_a_consumer_group_it_says_why_it_is_at_an_epoch(control: Control) -> None:
    await control.kafka.consumers(1, "app", "orders", protocol="consumer")
    assert await control.get("/trace/why", group="app", epoch=2) == control.kafka.trace.why("app", epoch=2)


async def test_what_it_cannot_say_it_refuses(control: Control) -> None:
    await story(control)
    assert "99" in (await control.get("/trace/why", 404, group="app", generation=99))["detail"]
    assert (await control.get("/trace/why", 404, group="app", cause=99_999))["detail"] == "entry 99999 never was"
    one_of_two = "query: group= explains a group, transaction= a transaction: one of the two"
    assert (await control.get("/trace/why", 422))["detail"] == one_of_two
    assert "explains one thing" in (await control.get("/trace/why", 422, group="app", generation=1, epoch=1))["detail"]
    assert (
        "lost: 'orders' is no TOPIC:PARTITION"
        in (await control.get("/trace/why", 422, group="app", lost="orders"))["detail"]
    )
