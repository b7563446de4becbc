"""All invariants, and what checks them."""

from collections.abc import Callable
from typing import Any

from groupcoord.cluster.append_gate import AppendDecision
from groupcoord.core.effects import Call
from groupcoord.core.events import Event
from groupcoord.protocol.apis import ApiKey
from groupcoord.simulation.invariants.base import Invariant, InvariantContext
from groupcoord.simulation.invariants.consumer_groups import (
    BoundedReconciliation,
    ConsumerReplay,
    ConsumerTimers,
    MonotonicEpochs,
    OnlySubscribed,
    ToldOwners,
)
from groupcoord.simulation.invariants.group_state import (
    CommitDurability,
    CommitFencing,
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
from groupcoord.simulation.invariants.transactions import TRANSACTION_INVARIANTS
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
    MonotonicEpochs,
    ToldOwners,
    OnlySubscribed,
    ConsumerTimers,
    ConsumerReplay,
    BoundedReconciliation,
    *TRANSACTION_INVARIANTS,
)


class InvariantChecker:
    """Checks all invariants; every method may raise InvariantViolation. The methods are those of Invariant.

    Each calls only the invariants that override it, and only for their APIs, because there are many heartbeats.
    """

    def __init__(self, context: InvariantContext) -> None:
        self._invariants = [invariant(context) for invariant in INVARIANTS if invariant.applies(context.plan)]
        self.request_received: Callable[[Call, Any], None] = self._by_api("request_received")
        self.response_sent: Callable[[Call, Any], None] = self._by_api("response_sent")
        self.event_emitted: Callable[[Event], None] = self._each("event_emitted")
        self.append_decided: Callable[[AppendDecision], None] = self._each("append_decided")
        self.coordinator_unloading: Callable[[], None] = self._each("coordinator_unloading")
        self.coordinator_loaded: Callable[[], None] = self._each("coordinator_loaded")
        self.transactions_unloading: Callable[[], None] = self._each("transactions_unloading")
        self.ownership_changed: Callable[[], None] = self._each("ownership_changed")
        self.member_failed: Callable[[MemberProcess, Exception], None] = self._each("member_failed")
        self.finish: Callable[[], None] = self._each("finish")
        self._step_done, self._heartbeat_done = self._each("step_done"), self._each("heartbeat_done")

    def step_done(self, *, routine: bool) -> None:
        """A step of the brokers is done; ``routine``: it was a heartbeat of a member at rest."""
        if routine:
            self._heartbeat_done()
        else:
            self._step_done()

    def _overriding(self, name: str) -> list[Invariant]:
        return [one for one in self._invariants if getattr(type(one), name) is not getattr(Invariant, name)]

    def _each(self, name: str) -> Callable[..., None]:
        """Calls the method ``name`` of each invariant that overrides it."""
        hooks = [getattr(one, name) for one in self._overriding(name)]

        def call(*arguments: Any) -> None:
            for hook in hooks:
                hook(*arguments)

        return call

    def _by_api(self, name: str) -> Callable[[Call, Any], None]:
        """Calls the method ``name`` of each invariant that overrides it and sees the API of the call."""
        overriding = self._overriding(name)
        hooks = {
            key: [getattr(one, name) for one in overriding if one.apis is None or key in one.apis] for key in ApiKey
        }

        def call(call: Call, message: Any) -> None:
            for hook in hooks[call.api.key]:
                hook(call, message)

        return call
