"""Layer: a wrapper (middleware) around a cluster, which sees each request and each effect. Fault injection, tracing and the
in-process transport are subclasses.

A server calls ServedCluster; a bare cluster and one with layers around it both implement it.
"""

from typing import Any, Protocol

from groupcoord.config.broker_config import BrokerConfig
from groupcoord.core.background_work import BackgroundWork, OnWorkDone, SubmitWork
from groupcoord.core.effects import Call, Effect


class ServedCluster(Protocol):
    """What a server needs: a ClusterCore, or one with layers around it. All times are milliseconds on the server's clock."""

    @property
    def config(self) -> BrokerConfig:
        """The current configuration. The server reads its limits here each time, because some can change at run time."""

    def listening_at(self, host: str, port: int, listener: int = 0) -> None:
        """Set the address of the first broker for that listener (index from 0)."""

    def handle(self, call: Call, request: Any, now_ms: int) -> list[Effect]:
        """The effects of ``request``."""

    def expire(self, now_ms: int) -> list[Effect]:
        """Fire every timer that is due at ``now_ms``."""

    def flush(self, now_ms: int) -> list[Effect]:
        """Complete the work of several requests that was put off; called at the end of each round of the event loop."""

    def batch_rounds(self, *, batches: bool) -> None:
        """Announce that ``flush`` will be called at the end of each round; if not ``batches``, nothing may be put off."""

    def next_deadline(self) -> int | None:
        """When ``expire`` has to be called next, or None."""

    def deadline_lower_bound(self) -> int | None:
        """A lower bound of ``next_deadline`` that costs less; None if no timer is pending."""

    def use_worker(self, submit: SubmitWork | None) -> None:
        """Run long work with ``submit`` from now on; None: inline."""


class Layer:
    """Forwards everything to ``inner``, the cluster or the next layer. A subclass overrides what it changes.

    Requests go through ``handle``, from the outermost layer to the innermost. Effects come back through ``outgoing``, from the
    innermost to the outermost, whatever caused them: a request, a timer, background work, or an administrative action, for
    which ``Assembly.outgoing`` calls it.
    """

    def __init__(self, inner: ServedCluster) -> None:
        self.inner = inner

    def outgoing(self, effects: list[Effect], now_ms: int) -> list[Effect]:  # noqa: ARG002 - for those that override it
        """``effects`` of ``inner`` as this layer passes them on: unchanged here."""
        return effects

    @property
    def config(self) -> BrokerConfig:
        """The current configuration."""
        return self.inner.config

    def listening_at(self, host: str, port: int, listener: int = 0) -> None:
        """Set the address of the first broker for that listener (index from 0)."""
        self.inner.listening_at(host, port, listener)

    def handle(self, call: Call, request: Any, now_ms: int) -> list[Effect]:
        """The effects of ``request``."""
        return self.outgoing(self.inner.handle(call, request, now_ms), now_ms)

    def expire(self, now_ms: int) -> list[Effect]:
        """Fire every timer that is due at ``now_ms``."""
        return self.outgoing(self.inner.expire(now_ms), now_ms)

    def flush(self, now_ms: int) -> list[Effect]:
        """Complete what was put off; see ``ServedCluster.flush``."""
        effects = self.inner.flush(now_ms)
        return self.outgoing(effects, now_ms) if effects else effects

    def batch_rounds(self, *, batches: bool) -> None:
        """Will ``flush`` be called? See ``ServedCluster.batch_rounds``."""
        self.inner.batch_rounds(batches=batches)

    def next_deadline(self) -> int | None:
        """When ``expire`` has to be called next, or None."""
        return self.inner.next_deadline()

    def deadline_lower_bound(self) -> int | None:
        """A lower bound of ``next_deadline`` that costs less; None if no timer is pending."""
        return self.inner.deadline_lower_bound()

    def use_worker(self, submit: SubmitWork | None) -> None:
        """Run long work with ``submit``; its effects go through ``outgoing``."""
        if submit is None:
            self.inner.use_worker(None)
            return

        def submit_through(call: Call | None, work: BackgroundWork[Any], then: OnWorkDone) -> None:
            submit(call, work, lambda result, now_ms: self.outgoing(then(result, now_ms), now_ms))

        self.inner.use_worker(submit_through)


def earlier(one: int | None, other: int | None) -> int | None:
    """The earlier of two deadlines, either of which may be None."""
    if one is None or other is None:
        return other if one is None else one
    return one if one < other else other
