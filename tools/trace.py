"""Generates the examples in docs/trace.md, from a small traced story, and its tables of event types in the file format."""

import asyncio
import itertools
import json
import tempfile
import typing
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from groupcoord.core.effects import Call
from groupcoord.core.events import AdminAction, Answered, BrokerTask, Requested, TimerFired
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.messages import HeartbeatRequest
from groupcoord.testing import Cluster
from groupcoord.testing.trace import Trace, TracingLayer
from groupcoord.testing.trace.file_format import TYPES, own_fields
from tools.markdown import table
from tools.story import Teller, enter, join, sync

_CAUSES: Mapping[type[Any], str] = {
    Requested: "a request",
    TimerFired: "a timer that fired",
    AdminAction: "something outside of the protocol: a test, a tool",
    BrokerTask: "what a broker does by itself: replication, a start-up",
    Answered: "of what `groupcoord.client` does: the answer to a request of its own",
}
GROUP = "baristas"


class _Traced(Teller):
    """The story with a trace around its node; every client has its own connection."""

    def __init__(self) -> None:
        super().__init__()
        self.trace = Trace(monotonic_ns=lambda: 0)
        self.node = TracingLayer(self.node, self.trace)
        self._numbers = itertools.count(1)

    def ask(self, client: str, key: ApiKey, request: Any) -> list[Any]:
        connection = {"alice": 1, "bob": 2}[client]
        call = Call(connection, next(self._numbers), APIS[key], APIS[key].max_version, client, "/127.0.0.1")
        return self.tell(self.node.handle(call, request, self.now_ms))

    def beat(self, client: str, member: str, generation: int) -> None:
        self.ask(
            client,
            ApiKey.HEARTBEAT,
            HeartbeatRequest(group_id=GROUP, generation_id=generation, member_id=member),
        )


@cache
def _story() -> Trace:
    """Bob falls silent, and alice gets his partitions."""
    it = _Traced()
    alice, bob = enter(it, "alice"), enter(it, "bob")
    for answer in it.wait(1):
        client = "alice" if answer.member_id == alice else "bob"
        shares = {alice: range(3), bob: range(3, 6)} if answer.leader == answer.member_id else {}
        sync(it, client, answer, shares)
    for second in range(3, 61, 3):
        it.wait(3_000 if second > 3 else 2_999)
        it.beat("alice", alice, 1)
        if second <= 9:
            it.beat("bob", bob, 1)
    (again,) = it.ask("alice", ApiKey.JOIN_GROUP, join(alice, "group is rebalancing"))
    sync(it, "alice", again, {alice: range(6)})
    return it.trace


def text() -> str:
    """The trace from the end of bob's session on."""
    return f"```text\n{_story().text(since=50)}\n```\n"


def why() -> str:
    """Why the second generation began."""
    return "> " + _story().why(GROUP, 2) + "\n"


def why_lost() -> str:
    """Why bob lost a partition."""
    return "> " + _story().why(GROUP, member="bob", lost=("orders", 3)) + "\n"


def why_got() -> str:
    """Why alice got it."""
    return "".join(f"> {line}\n>\n" for line in _story().why(GROUP, got=("orders", 3)).splitlines()).removesuffix(">\n")


def why_transaction() -> str:
    """Why the transaction of a zombie was aborted, and who fenced it."""
    return f"> {asyncio.run(_zombie())}\n"


async def _zombie() -> str:
    async with Cluster(topics={"orders": 1, "invoices": 1}, clock="manual") as kafka:
        first, second = (kafka.manual_producer("billing", client_id=name) for name in ("worker-1", "worker-2"))
        await first.init()
        await kafka.clock.advance(1)
        await first.produce("invoices", b"for order 1")
        await first.commit_offsets("billing", {("orders", 0): 1})
        await kafka.clock.advance(2)
        await second.init()  # what the first one left open is aborted before
        await second.init()
        await kafka.clock.advance(1)
        await first.end()
        return kafka.trace.why(transaction="billing")


def diagram() -> str:
    """The whole story, drawn."""
    return f"```mermaid\n{_story().mermaid(group=GROUP)}```\n"


def line() -> str:
    """A line of the file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.jsonl"
        _story().save(path)
        header, *entries = path.read_text(encoding="utf-8").splitlines()
    moved = next(entry for entry in map(json.loads, entries) if entry["event"] == "coordinator.StateChanged")
    shown = json.dumps(moved, ensure_ascii=False, indent=2)
    return f"```json\n{header}\n```\n\n```json\n{shown}\n```\n"


def causes() -> str:
    """The types of causes."""
    rows = [
        f"| `{kind.__name__}` | {words} | {', '.join(f'`{name}`' for name in kind._fields)} |"
        for kind, words in _CAUSES.items()
    ]
    return table("| type | what made it happen | fields |", rows)


def events() -> str:
    """The types of events with their fields."""
    rows = []
    for name, kind in sorted(TYPES.items()):
        hints = typing.get_type_hints(kind)
        fields = ", ".join(f"`{field}` {_type(hints[field])}" for field in own_fields(kind))
        rows.append(f"| `{name}` | {fields} |")
    return table("| event | fields |", rows)


def _type(hint: Any) -> str:
    """What JSON has for a field of that type."""
    arguments = typing.get_args(hint)
    if type(None) in arguments:
        return f"{_type(next(each for each in arguments if each is not type(None)))} or null"
    origin = typing.get_origin(hint) or hint
    if origin is tuple:
        return "array"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return "object"
    return {bool: "boolean", int: "integer"}.get(origin, "string")
