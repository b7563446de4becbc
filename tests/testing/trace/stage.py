"""A traced node for unit tests, driven as in tests/coordinator/world.py: manual clock, members with methods, no sockets.

Every client has a connection of its own, and every response is encoded and parsed in its version.
"""

import itertools
import uuid
from collections.abc import Iterable
from typing import Any, cast

from groupcoord.cluster.cluster_core import ClusterCore
from groupcoord.config.broker_config import load
from groupcoord.coordinator.group_coordinator import GroupCoordinator
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import NO_CONNECTION, Call, Effect, Reply
from groupcoord.core.events import AdminAction
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.framing import encode_request, parse_request
from groupcoord.testing.trace import Trace, TracingLayer
from tests.coordinator.world import GROUP, Asked, Member, World

__all__ = ["GROUP", "Member", "Stage"]


class Counting:
    """Ids that are easy to read."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def uuid(self) -> uuid.UUID:
        return uuid.UUID(int=next(self._numbers) << 96)

    def session_id(self) -> int:
        return next(self._numbers)

    def next_int(self, bound: int) -> int:
        return 0


class _Face:
    """The node where a world expects a coordinator."""

    def __init__(self, node: ClusterCore, tracing: TracingLayer) -> None:
        self._node, self._tracing = node, tracing
        self.handle, self.expire, self.next_deadline = tracing.handle, tracing.expire, tracing.next_deadline

    def __getattr__(self, name: str) -> Any:
        return getattr(self._node.coordinator, name)


class Stage(World):
    """``properties`` are the broker's; topic ``t`` has three partitions."""

    def __init__(self, *properties: str, now_ms: int = 0, trace: Trace | None = None) -> None:
        super().__init__(now_ms=now_ms)
        self.trace = Trace() if trace is None else trace
        config = load(["offsets.topic.num.partitions=1", *properties], dev=False)
        self.node = ClusterCore(config, random=Counting(), now_ms=now_ms)
        self.node.create_topic("t", 3, now_ms)
        self.tracing = TracingLayer(self.node, self.trace, topic_name=self.node.broker.topics.topic_name)
        self.coordinator = cast("GroupCoordinator", _Face(self.node, self.tracing))
        self._connections: dict[str | None, int] = {}

    def ask(
        self,
        key: ApiKey,
        request: Any,
        *,
        version: int | None = None,
        client_id: str | None = "someone",
        host: str = "/127.0.0.1",
        asker: Member | None = None,
    ) -> Asked:
        api = APIS[key]
        version = api.max_version if version is None else version
        number = len(self.asked) + 1
        connection = self._connections.setdefault(client_id, len(self._connections) + 1)
        call = Call(connection, number, api, version, client_id, host)
        frame = encode_request(api, version, number, client_id, request)
        asked = Asked(call, parse_request(frame[4:]).message, asker)
        self.asked.append(asked)
        self._by_call[call] = asked
        self._carry_out(self.tracing.handle(call, asked.request, self.now_ms))
        return asked

    def operate(self, action: str, effects_of: Any) -> None:
        """An administrator does something: ``effects_of`` is called with a turn."""
        ctx = HandlerContext(self.now_ms, AdminAction(action))
        effects_of(ctx)
        self._carry_out(self.tracing.outgoing(ctx.effects, self.now_ms))

    def why(self, generation: int | None = None) -> str:
        return self.trace.why(GROUP, generation)

    def _carry_out(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            self.effects.append(effect)
            if isinstance(effect, Reply) and effect.call.connection_id != NO_CONNECTION:
                self._answer(effect)
