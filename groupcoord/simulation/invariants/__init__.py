"""All invariants, and what checks them."""

from collections.abc import Callable
from typing import Any

from groupcoord.cluster.append_gate import AppendDecision
from groupcoord.core.effects import Call
from groupcoord.core.events import Event
from groupcoord.protocol.apis import ApiKey
from groupcoord.simulation.invariants.base import Invariant, InvariantContext
from groupcoord.simulation.invariants.commits import CommitDurability, CommitFencing
from groupcoord.simulation.invariants.group_state import (
    CommonProtocol,
    LeaderIsMember,
    MonotonicGenerations,
    ReplayMatchesState,
    TimersMatchState,
    UniqueInstanceIds,
)
from groupcoord.simulation.invariants.members import (
    ClientOwnership,
    Convergence,
    NoUnexpectedExit,
    OneResponse,
    SessionTimeouts,
    SingleOwner,
)
from groupcoord.simulation.member_process import MemberProcess

INVARIANTS: tuple[type[Invariant], ...] = (
    MonotonicGenerations,
    LeaderIsMember,
    CommonProtocol,
    UniqueInstanceIds,
    TimersMatchState,
    SessionTimeouts,
    SingleOwner,
    ClientOwnership,
    CommitFencing,
    CommitDurability,
    ReplayMatchesState,
    NoUnexpectedExit,
    Convergence,
    OneResponse,
)


class InvariantChecker:
    """Checks all invariants; every method may raise InvariantViolation.

    It calls only the methods that an invariant overrides, and only for its APIs, because there are many heartbeats.
    """

    def __init__(self, context: InvariantContext) -> None:
        invariants = [invariant(context) for invariant in INVARIANTS]

        def overriding(name: str) -> list[Invariant]:
            return [one for one in invariants if getattr(type(one), name) is not getattr(Invariant, name)]

        def hooks(name: str) -> tuple[Callable[..., None], ...]:
            return tuple(getattr(one, name) for one in overriding(name))

        def hooks_by_api(name: str) -> dict[int, tuple[Callable[..., None], ...]]:
            return {
                key: tuple(getattr(one, name) for one in overriding(name) if one.apis is None or key in one.apis)
                for key in ApiKey
            }

        self._request_received, self._response_sent = hooks_by_api("request_received"), hooks_by_api("response_sent")
        self._event_emitted = hooks("event_emitted")
        self._append_decided = hooks("append_decided")
        self._coordinator_unloading = hooks("coordinator_unloading")
        self._coordinator_loaded = hooks("coordinator_loaded")
        self._step_done = hooks("step_done")
        self._heartbeat_done = hooks("heartbeat_done")
        self._ownership_changed = hooks("ownership_changed")
        self._member_failed = hooks("member_failed")
        self._finish = hooks("finish")

    def request_received(self, call: Call, request: Any) -> None:
        """A request is about to be handled."""
        for hook in self._request_received[call.api.key]:
            hook(call, request)

    def response_sent(self, call: Call, response: Any) -> None:
        """A request is answered."""
        for hook in self._response_sent[call.api.key]:
            hook(call, response)

    def event_emitted(self, event: Event) -> None:
        """The coordinator has emitted an event."""
        for hook in self._event_emitted:
            hook(event)

    def append_decided(self, decision: AppendDecision) -> None:
        """An append is stored, held or failed."""
        for hook in self._append_decided:
            hook(decision)

    def coordinator_unloading(self) -> None:
        """The coordinator is about to lose its state."""
        for hook in self._coordinator_unloading:
            hook()

    def coordinator_loaded(self) -> None:
        """The coordinator has read its log."""
        for hook in self._coordinator_loaded:
            hook()

    def step_done(self, *, routine: bool) -> None:
        """A step of the brokers is done; ``routine``: it was a heartbeat of a member at rest."""
        for hook in self._heartbeat_done if routine else self._step_done:
            hook()

    def ownership_changed(self) -> None:
        """A process owns other partitions than before."""
        for hook in self._ownership_changed:
            hook()

    def member_failed(self, process: MemberProcess, error: Exception) -> None:
        """A process has ended because of ``error``."""
        for hook in self._member_failed:
            hook(process, error)

    def finish(self) -> None:
        """The run is over."""
        for hook in self._finish:
            hook()
