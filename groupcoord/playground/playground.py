"""Playground, which runs actions by name on a cluster, and returns the new trace entries and a snapshot, all as JSON."""

import inspect
from collections.abc import Mapping
from typing import Any

from groupcoord.page.dissections import dissection_of
from groupcoord.playground import argument_checks
from groupcoord.playground.actions import Actions
from groupcoord.playground.snapshot import snapshot
from groupcoord.playground.socketless_cluster import CallbackLoop, SocketlessCluster
from groupcoord.testing.trace import file_format
from groupcoord.testing.trace.short_member_names import ShortMemberNames

START_MS = 1_767_225_600_000
"""The start time of the clock: 2026-01-01T00:00:00Z."""
CONFIG: Mapping[str, object] = {"offsets.topic.num.partitions": 1, "transaction.state.log.num.partitions": 1}
"""One partition each, so that all records are in one log, in order."""

ACTIONS = {name: method for name, method in vars(Actions).items() if not name.startswith("_") and callable(method)}
"""The actions by name, in the order in which they are defined."""


class Playground:
    """A cluster of ``brokers`` on a manual clock, with ``topics`` (name → number of partitions) and broker ``config``.

    The same actions have the same results in every process. Raises ValueError for invalid arguments. ``close`` ends it.
    """

    def __init__(
        self, *, brokers: int = 3, topics: Mapping[str, int] | None = None, config: Mapping[str, object] | None = None
    ) -> None:
        self._cluster = SocketlessCluster(
            brokers=brokers,
            topics={"orders": 6} if topics is None else topics,
            config={**CONFIG, **(config or {})},
            clock="manual",
            start_ms=START_MS,
            seed=0,
            detailed_trace=True,
        )
        self._loop = CallbackLoop()
        self._loop.run_until_complete(self._cluster.__aenter__())
        self._actions = Actions(self._cluster)
        self._told_seq = self.last_seq

    def close(self) -> None:
        """End the cluster. Raises the unexpected errors of its server."""
        self._loop.run_until_complete(self._cluster.end())
        self._loop.close()

    def act(self, action: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Do ``action``; returns its ``answer``, the new ``entries`` of the trace, and the ``snapshot`` after it.

        Raises ValueError, which says what would be right; trace entries of a failed action come with the next one.
        """
        if action not in ACTIONS:
            raise ValueError(f"action={action!r}: there is no such action; there is {', '.join(ACTIONS)}")
        argument_checks.check(ACTIONS[action], arguments)
        answer = self._loop.run_until_complete(self._do(action, arguments))
        entries, self._told_seq = self.entries(after=self._told_seq), self.last_seq
        return {"answer": answer, "entries": entries, "snapshot": self.snapshot()}

    async def _do(self, action: str, arguments: Mapping[str, Any]) -> Any:
        answer = await ACTIONS[action](self._actions, **arguments)
        await self._cluster.settle()
        return answer

    @property
    def last_seq(self) -> int:
        """The number of the newest entry of the trace."""
        return self._cluster.trace.last_seq

    def entries(self, *, after: int = 0) -> list[dict[str, Any]]:
        """The trace entries after that number, in the format of docs/trace.md.

        ``real_ms`` is 0, because the real time differs from run to run.
        """
        found = (entry for entry in self._cluster.trace.entries() if entry.seq > after)
        return [{**file_format.entry_as_json(entry), "real_ms": 0} for entry in found]

    def lines(self, *, after: int = 0) -> list[str]:
        """The same entries as text, with the short names of members."""
        entries = self._cluster.trace.entries()
        short = ShortMemberNames(entries)
        return [short.shortened(entry.text(links=False)) for entry in entries if entry.seq > after]

    def header(self) -> dict[str, Any]:
        """The first line of the trace's file."""
        return {
            "schema": file_format.SCHEMA,
            "version": file_format.VERSION,
            "start_ms": START_MS,
            "dropped": {},
        }

    def snapshot(self) -> dict[str, Any]:
        """The cluster as it is now; see snapshot.py."""
        return self._loop.run_until_complete(snapshot(self._cluster, self._actions))

    def dissection(self, seq: int) -> dict[str, Any] | None:
        """The dissected bytes of the request or response of that entry; None if it is neither, or has no bytes."""
        found = dissection_of(self._cluster.trace[seq])
        return None if found is None else found.as_json()

    def why(self, question: Mapping[str, Any]) -> str:
        """The answer of ``Trace.why`` to these arguments, with partitions as text: ``{"group": "app", "lost": "orders-3"}``.

        Raises ValueError if the trace does not have the answer, or the arguments are invalid.
        """
        asked = {name: _partition(value) if name in ("lost", "got") else value for name, value in question.items()}
        try:
            inspect.signature(self._cluster.trace.why).bind(**asked)
            return self._cluster.trace.why(**asked)
        except (LookupError, TypeError) as problem:
            raise ValueError(str(problem.args[0])) from None


def named_action(action: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The name and the arguments of ``{"do": "advance", "seconds": 3}``. Raises ValueError if there is no ``do``."""
    if "do" not in action:
        raise ValueError(f"{dict(action)} is not an action: do says which")
    return action["do"], {name: value for name, value in action.items() if name != "do"}


def _partition(name: Any) -> Any:
    topic, _, number = str(name).rpartition("-")
    return (topic, int(number)) if number.isdecimal() else name
