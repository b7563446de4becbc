"""Queues of brokers that are paused or cut off from their clients: requests to them, and their responses, wait."""

from collections.abc import Callable
from typing import Any

from groupcoord.broker.broker_registry import BrokerRegistry
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call, CloseConnection, Effect, NoReply, Reply


class SilentBrokers:
    """The silent brokers of ``cluster``. ``handle`` handles the requests that waited."""

    def __init__(self, cluster: BrokerRegistry, handle: Callable[[HandlerContext, Call, Any], None]) -> None:
        self._cluster, self._handle = cluster, handle
        self._asked: dict[int, list[tuple[Call, Any]]] = {}
        self._unsaid: dict[int, list[Effect]] = {}

    def begin(self, broker_id: int) -> None:
        """Queue requests and responses of a broker from now on."""
        self._asked[broker_id], self._unsaid[broker_id] = [], []

    def end(self, ctx: HandlerContext, broker_id: int) -> None:
        """End the silence: send the responses that waited, and handle the requests."""
        ctx.effects += self._unsaid.pop(broker_id)
        for call, request in self._asked.pop(broker_id):
            self._handle(ctx, call, request)

    def forget(self, broker_id: int) -> None:
        """Drop the queues of a broker whose connections were closed."""
        self._asked.pop(broker_id, None)
        self._unsaid.pop(broker_id, None)
        self._cluster.unreachable.discard(broker_id)

    def ask(self, ctx: HandlerContext, call: Call, request: Any) -> None:
        """A request to a broker that does not run: queue it if the broker is silent; otherwise close the connection."""
        asked = self._asked.get(self._cluster.id_of(call))
        if asked is None:
            ctx.close_connection(call, f"broker {self._cluster.id_of(call)} does not run")
        else:
            asked.append((call, request))

    def withhold(self, effects: list[Effect]) -> list[Effect]:
        """``effects`` without responses of brokers that do not run; those of silent brokers are queued."""
        if not self._cluster.not_running and not self._cluster.unreachable:
            return effects
        said: list[Effect] = []
        for effect in effects:
            broker_id = (
                self._cluster.id_of(effect.call) if isinstance(effect, Reply | NoReply | CloseConnection) else None
            )
            if broker_id not in self._cluster.not_running and broker_id not in self._cluster.unreachable:
                said.append(effect)
            elif broker_id in self._unsaid:
                self._unsaid[broker_id].append(effect)
        return said
