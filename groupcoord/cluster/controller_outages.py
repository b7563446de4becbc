"""Outages of the controller in a cluster of several brokers: it can be killed or paused, and comes back.

While it is away, brokers continue with its last decisions: they serve clients, lead and replicate. Whatever needs the
controller waits: nobody is fenced or elected, ISRs do not change, no broker registers, and requests that brokers forward to it
are answered when it is back, or with REQUEST_TIMED_OUT. Sources: ``ForwardingManagerImpl``, ``NodeToControllerRequestThread``,
``QuorumController``, ``BrokerHeartbeatManager``.
"""

import enum
from collections import deque
from collections.abc import Callable
from typing import Any

from groupcoord.broker.broker import Broker
from groupcoord.broker.events import ControllerStateChanged
from groupcoord.broker.topic_admin import create_automatically
from groupcoord.cluster.broker_status import BrokerState
from groupcoord.cluster.controller import ClusterController
from groupcoord.cluster.network_cuts import FORWARDING_TIMEOUT_MS
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call
from groupcoord.core.timers import TimerKey
from groupcoord.protocol.errors import ErrorCode

_TIMEOUT = TimerKey("forwarded request", "controller")

Handle = Callable[[HandlerContext, Call, Any], None]


class ControllerState(enum.Enum):
    """The states of the controller."""

    RUNNING = "running"
    PAUSED = "paused"
    """It does nothing, as after SIGSTOP."""
    STOPPED = "stopped"


class ControllerNode:
    """The node that runs ``controller``. Its methods raise ValueError for what is impossible in its state.

    ``handle`` handles the requests that waited for it.
    """

    def __init__(self, broker: Broker, controller: ClusterController, handle: Handle) -> None:
        self.state = ControllerState.RUNNING
        """Its current state."""
        self._broker, self._controller, self._handle = broker, controller, handle
        self._forwarded: deque[tuple[int, Call, Any]] = deque()
        """The requests that brokers try to forward to it, each with the time (ms) at which the broker gives up."""

    @property
    def is_away(self) -> bool:
        """Is it killed or paused?"""
        return self.state is not ControllerState.RUNNING

    def kill(self, ctx: HandlerContext) -> None:
        """Kill it; the sessions of brokers, which it does not store, are lost."""
        self._require("killed", ControllerState.RUNNING, ControllerState.PAUSED)
        self._leave(ctx, ControllerState.STOPPED)

    def pause(self, ctx: HandlerContext) -> None:
        """Pause it until ``resume``."""
        self._require("paused", ControllerState.RUNNING)
        self._leave(ctx, ControllerState.PAUSED)

    def start(self, ctx: HandlerContext) -> None:
        """Start it again with the stored metadata; it is elected in the next epoch, as the only voter."""
        self._require("started", ControllerState.STOPPED)
        self._return(ctx, elected=True)

    def resume(self, ctx: HandlerContext) -> None:
        """Continue in the same epoch.

        The requests of brokers that came meanwhile are handled, among them a heartbeat of each, so that the session of a broker
        that died meanwhile starts again. Kafka's controller, if paused for longer than a session, may fence some healthy
        brokers for a moment; which ones is random.
        """
        self._require("resumed", ControllerState.PAUSED)
        self._return(ctx, elected=False)

    def forward(self, call: Call, request: Any, now_ms: int) -> None:
        """Queue ``request`` of a broker that cannot forward it now."""
        self._controller.is_eventful = True
        self._forwarded.append((now_ms + FORWARDING_TIMEOUT_MS, call, request))
        self._watch_forwarded()

    def cannot_hear(self, broker_id: int) -> bool:
        """Can that broker not reach it?"""
        return self.is_away or broker_id in self._controller.cuts.stale

    def take_forwarded(self, ctx: HandlerContext) -> None:
        """Handle the queued requests of brokers that reach it again; drop those of stopped brokers."""
        waiting, self._forwarded = self._forwarded, deque()
        for due_ms, call, request in waiting:
            broker_id = self._broker.cluster.id_of(call)
            if self._controller.state_of(broker_id) is BrokerState.STOPPED:
                continue
            if self.cannot_hear(broker_id):
                self._forwarded.append((due_ms, call, request))
            else:
                self._handle(ctx, call, request)
        self._watch_forwarded()
        if not self.is_away and not self._controller.cuts.stale:
            asked, self._broker.uncreated = self._broker.uncreated, {}
            fresh = [name for name, asked_ms in asked.items() if ctx.now_ms - asked_ms < FORWARDING_TIMEOUT_MS]
            create_automatically(self._broker, ctx.now_ms, fresh)

    def _require(self, done: str, *states: ControllerState) -> None:
        if self.state not in states:
            raise ValueError(f"the controller is {self.state.value}: it cannot be {done}")

    def _leave(self, ctx: HandlerContext, state: ControllerState) -> None:
        if not self.is_away:
            self._controller.leaves(ctx)
        self._set_state(ctx, state)

    def _return(self, ctx: HandlerContext, *, elected: bool) -> None:
        self._controller.quorum.leader_returns(ctx.now_ms, elected=elected)
        self._set_state(ctx, ControllerState.RUNNING)
        self._controller.returns(ctx, elected=elected)

    def _set_state(self, ctx: HandlerContext, state: ControllerState) -> None:
        self.state = state
        self._broker.cluster.has_controller = state is ControllerState.RUNNING
        ctx.emit(ControllerStateChanged, state=state.value, epoch=self._controller.quorum.leader_epoch)

    def _watch_forwarded(self) -> None:
        timers = self._controller.timers
        if self._forwarded:
            timers.schedule(_TIMEOUT, self._forwarded[0][0], self._give_up)
        else:
            timers.cancel(_TIMEOUT)

    def _give_up(self, ctx: HandlerContext) -> None:
        while self._forwarded and self._forwarded[0][0] <= ctx.now_ms:
            _, call, request = self._forwarded.popleft()
            ctx.reply(call, call.api.error_response(request, call.version, ErrorCode.REQUEST_TIMED_OUT))
        self._watch_forwarded()
