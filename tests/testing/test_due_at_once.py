"""What is due at the very moment happens without the clock being moved."""

import pytest

import groupcoord as gc
from groupcoord.core.effects import NO_CONNECTION, Call
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.messages import ConsumerGroupHeartbeatRequest

pytestmark = pytest.mark.asyncio

_HEARTBEAT = APIS[ApiKey.CONSUMER_GROUP_HEARTBEAT]


async def test_a_regular_expression_is_resolved_while_time_stands_still() -> None:
    async with gc.Cluster(topics={"orders": 3, "refunds": 1}, clock="manual") as kafka:
        engine = kafka._engine
        request = ConsumerGroupHeartbeatRequest(
            group_id="app",
            member_id="a",
            member_epoch=0,
            rebalance_timeout_ms=1_000,
            subscribed_topic_regex="ord.*",
            topic_partitions=(),
        )
        call = Call(NO_CONNECTION, 0, _HEARTBEAT, 1, "c", "/127.0.0.1")
        engine.execute_effects(engine.transport.handle(call, request, engine.clock()))
        await engine.settle()
        (resolved,) = kafka.trace.of(gc.events.RegexResolved)
        assert resolved.topics == ("orders",)
