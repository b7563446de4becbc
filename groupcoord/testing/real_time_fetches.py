"""Fetches that wait for records do so in real time even where the test moves the time.

A broker answers the requests of a connection one by one: as long as a fetch waits, everything that a client sends behind it
waits, too, metadata and commits among it. On a clock that stands still, that would be for ever.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from groupcoord.cluster.cluster_core import ClusterCore
from groupcoord.config.settings import BrokerConfig
from groupcoord.core.background_work import SubmitWork
from groupcoord.core.effects import Call, Effect
from groupcoord.core.timers import TimerKey

_FETCH = "fetch"


class RealTimeFetches:
    """``node``, whose waiting fetches end when ``end`` says so or when the clock is moved past them, whichever is first."""

    def __init__(self, node: ClusterCore) -> None:
        self._node = node
        self._timers: dict[TimerKey, asyncio.TimerHandle] = {}
        self._ending: list[TimerKey] = []

    def see_to(self, now_ms: int, loop: asyncio.AbstractEventLoop, wake: Callable[[], None]) -> None:
        """Set a timer in real time for every fetch that waits and has none; ``wake`` is called when one is over."""
        waiting = {each.key: each.at_ms for each in self._node.broker.timers.pending() if each.key.kind == _FETCH}
        for key in self._timers.keys() - waiting.keys():
            self._timers.pop(key).cancel()
        for key in waiting.keys() - self._timers.keys():
            self._timers[key] = loop.call_later((waiting[key] - now_ms) / 1000, self._end, key, wake)

    def stop(self) -> None:
        """No timer fires any more."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _end(self, key: TimerKey, wake: Callable[[], None]) -> None:
        del self._timers[key]
        self._ending.append(key)
        wake()

    # The node.

    @property
    def config(self) -> BrokerConfig:
        """The node's."""
        return self._node.config

    def listening_at(self, host: str, port: int) -> None:
        """Tell the node."""
        self._node.listening_at(host, port)

    def use_worker(self, submit: SubmitWork | None) -> None:
        """As the node does."""
        self._node.use_worker(submit)

    def handle(self, call: Call, request: Any, now_ms: int) -> list[Effect]:
        """As the node does."""
        return self._node.handle(call, request, now_ms)

    def expire(self, now_ms: int) -> list[Effect]:
        """As the node does, and the fetches end whose time is up."""
        effects: list[Effect] = []
        while self._ending:
            effects += self._node.broker.timers.fire_early(self._ending.pop(0), now_ms)
        return effects + self._node.expire(now_ms)

    def next_deadline(self) -> int | None:
        """As of the node, or at once."""
        return 0 if self._ending else self._node.next_deadline()

    def deadline_lower_bound(self) -> int | None:
        """As of the node, or at once."""
        return 0 if self._ending else self._node.deadline_lower_bound()
