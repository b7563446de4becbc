"""The trace as server-sent events, asked below HTTP, so that a test is as slow a reader as it likes."""

import asyncio
import json
from collections.abc import AsyncIterator, MutableMapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from groupcoord.control import trace_stream
from tests.control.support import PATIENCE_S, Control

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]


class Reader:
    """Takes what is sent, one piece after the other, while ``may_take`` is set."""

    def __init__(self) -> None:
        self.start: MutableMapping[str, Any] = {}
        self.may_take = asyncio.Event()
        self.may_take.set()
        self.gone = asyncio.Event()
        self.task: asyncio.Task[None]
        self._pieces: asyncio.Queue[bytes] = asyncio.Queue()
        self._text = ""

    async def receive(self) -> MutableMapping[str, Any]:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: MutableMapping[str, Any]) -> None:
        await self.may_take.wait()
        if message["type"] == "http.response.start":
            self.start = message
        else:
            self._pieces.put_nowait(message["body"])

    async def block(self) -> dict[str, Any]:
        """The next event or comment."""
        async with asyncio.timeout(PATIENCE_S):
            while "\n\n" not in self._text:
                self._text += (await self._pieces.get()).decode()
        block, _, self._text = self._text.partition("\n\n")
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        return {**fields, "data": json.loads(fields["data"])} if fields else {"comment": block}

    async def end(self) -> None:
        async with asyncio.timeout(PATIENCE_S):
            await self.task


@asynccontextmanager
async def reading(control: Control, query: str = "", place: str | None = None) -> AsyncIterator[Reader]:
    reader = Reader()
    headers = [(b"host", b"127.0.0.1")] + ([] if place is None else [(b"last-event-id", place.encode())])
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": "/trace/stream",
        "raw_path": b"/trace/stream",
        "query_string": query.encode(),
        "root_path": "",
        "headers": headers,
        "server": ("127.0.0.1", 80),
        "client": ("127.0.0.1", 1),
    }
    reader.task = asyncio.ensure_future(control.app(scope, reader.receive, reader.send))
    try:
        yield reader
    finally:
        reader.gone.set()
        reader.may_take.set()
        await reader.end()


async def test_all_entries_come_those_that_there_are_first(control: Control) -> None:
    await control.put_offset("app", 1)
    async with reading(control) as reader:
        start = await reader.block()
        assert start == {"event": "start", "data": {"run": 1, "start_ms": control.kafka.trace.start_ms}}
        for entry in list(control.kafka.trace):
            told = await reader.block()
            assert (told["event"], told["id"], told["data"]["text"]) == ("entry", f"1-{entry.seq}", entry.event.text())
        last = control.kafka.trace.last_seq
        await control.put_offset("app", 2)
        assert (await reader.block())["id"] == f"1-{last + 1}"
    headers = dict(reader.start["headers"])
    assert headers[b"content-type"].startswith(b"text/event-stream")
    assert b"content-length" not in headers


async def test_who_comes_back_goes_on(control: Control) -> None:
    await control.put_offset("app", 1)
    async with reading(control, place="1-2") as reader:
        assert (await reader.block())["id"] == "1-3"
    async with reading(control, place="7-2") as reader:  # of another run
        assert (await reader.block())["event"] == "start"
        assert (await reader.block())["id"] == "1-1"


async def test_only_what_is_asked_for_comes(control: Control) -> None:
    async with reading(control, "event=GroupCreated&group=b") as reader:
        assert (await reader.block())["event"] == "start"
        await control.put_offset("a", 1)
        await control.kafka.consumers(1, "a", "orders")
        await control.kafka.consumers(1, "b", "orders")
        told = await reader.block()
        assert (told["data"]["event"], told["data"]["fields"]["group"]) == ("coordinator.GroupCreated", "b")


async def test_a_reset_is_told_and_the_trace_begins_anew(control: Control) -> None:
    await control.put_offset("app", 1)
    async with reading(control) as reader:
        while (await reader.block()).get("id") != f"1-{control.kafka.trace.last_seq}":
            pass
        await control.kafka.reset()
        assert (await reader.block()) == {
            "event": "start",
            "data": {"run": 2, "start_ms": control.kafka.trace.start_ms},
        }
        await control.put_offset("app", 1)
        assert (await reader.block())["id"] == "2-1"


async def test_a_stream_ends_when_the_process_does(control: Control) -> None:
    async with reading(control) as reader:
        assert (await reader.block())["event"] == "start"
        control.clusters.end_waits()
        await reader.end()


async def test_a_comment_keeps_a_quiet_stream_alive(control: Control, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_stream, "KEEP_ALIVE_S", 0.0)
    async with reading(control) as reader:
        assert (await reader.block())["event"] == "start"
        assert await reader.block() == {"comment": ": keep-alive"}


async def test_a_reader_who_takes_nothing_is_disconnected_and_slows_down_nobody(
    control: Control, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(trace_stream, "PATIENCE_S", 0.0)
    async with reading(control) as reader:
        reader.may_take.clear()
        await control.put_offset("app", 1)
        reader.may_take.set()  # the head of the answer
        await reader.block()
        reader.may_take.clear()
        await control.put_offset("app", 2)
        await reader.end()
    assert "a reader of the trace is too slow, and is disconnected" in caplog.text
    assert (await control.get("/groups/app/offsets"))[0]["offset"] == 2


async def test_a_slow_reader_gets_all_the_same_in_pieces(control: Control, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_stream, "ENTRIES_AT_ONCE", 2)
    async with reading(control) as reader:
        assert (await reader.block())["event"] == "start"
        reader.may_take.clear()
        for offset in range(3):
            await control.put_offset("app", offset)
        reader.may_take.set()
        for seq in range(1, control.kafka.trace.last_seq + 1):
            assert (await reader.block())["id"] == f"1-{seq}"


async def test_what_cannot_be_asked_is_refused(control: Control) -> None:
    assert (await control.get("/trace/stream", 422, event="Nonsense"))["errors"][0]["field"] == "event"
