"""The list of all invariants, and InvariantChecker, which calls them."""

from collections.abc import Callable
from typing import Any

from groupcoord.core.effects import Call
from groupcoord.protocol.apis import ApiKey
from groupcoord.simulation.brokers import BrokerObserver
from groupcoord.simulation.invariants.base import Invariant, InvariantContext
from groupcoord.simulation.invariants.classic_groups import (
    CommitDurability,
    CommitFencing,
    CommonProtocol,
    LeaderIsMember,
    MonotonicGenerations,
    ReplayMatchesState,
    TimersMatchState,
    UniqueInstanceIds,
)
from groupcoord.simulation.invariants.consumer_groups import (
    BoundedReconciliation,
    ConsumerReplay,
    ConsumerTimers,
    MonotonicEpochs,
    OnlySubscribed,
    ToldOwners,
)
from groupcoord.simulation.invariants.members import (
    ClientOwnership,
    Convergence,
    NoUnexpectedExit,
    OneResponse,
    SessionTimeouts,
    SingleOwner,
)
from groupcoord.simulation.invariants.producers import PRODUCER_INVARIANTS
from groupcoord.simulation.invariants.replication import REPLICATION_INVARIANTS
from groupcoord.simulation.invariants.transactions import TRANSACTION_INVARIANTS

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
    *REPLICATION_INVARIANTS,
    *TRANSACTION_INVARIANTS,
    *PRODUCER_INVARIANTS,
)


_BY_API = ("request_received", "response_sent")
_OTHERS = (
    *(name for name in vars(BrokerObserver) if not name.startswith("_") and name not in _BY_API),
    *("ownership_changed", "member_failed", "record_sent", "record_ended", "finish"),
)


class InvariantChecker(Invariant):
    """A BrokerObserver that passes each call to all invariants; every method may raise InvariantViolation.

    Each method calls only the invariants that override it, and only for their APIs, because there are many heartbeats.
    """

    name = "all"

    def __init__(self, context: InvariantContext) -> None:
        super().__init__(context)
        self._invariants = [invariant(context) for invariant in INVARIANTS if invariant.applies(context.plan)]
        for name in _BY_API:
            setattr(self, name, self._by_api(name))
        for name in _OTHERS:
            setattr(self, name, self._each(name))

    def _overriding(self, name: str) -> list[Invariant]:
        return [one for one in self._invariants if getattr(type(one), name) is not getattr(Invariant, name)]

    def _each(self, name: str) -> Callable[..., None]:
        """A function that calls the method ``name`` of each invariant that overrides it."""
        hooks = [getattr(one, name) for one in self._overriding(name)]

        def call(*arguments: Any) -> None:
            for hook in hooks:
                hook(*arguments)

        return call

    def _by_api(self, name: str) -> Callable[[Call, Any], None]:
        """A function that calls the method ``name`` of each invariant that overrides it and observes the API of the call."""
        overriding = self._overriding(name)
        hooks = {
            key: [getattr(one, name) for one in overriding if one.apis is None or key in one.apis] for key in ApiKey
        }

        def call(call: Call, message: Any) -> None:
            for hook in hooks[call.api.key]:
                hook(call, message)

        return call
