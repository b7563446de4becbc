"""Lines to the broker that have no socket."""

import asyncio
from typing import Any

import pytest

from groupcoord.protocol.apis.join_group import JoinGroupRequestProtocol
from groupcoord.protocol.messages import HeartbeatRequest, JoinGroupRequest
from groupcoord.testing import Cluster
from groupcoord.testing.engine import InProcessConnection

pytestmark = pytest.mark.asyncio

BEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


async def test_answers_come_later_and_to_nobody_once_it_is_closed() -> None:
    async with Cluster(clock="manual") as kafka:
        heard: list[Any] = []
        line, other = InProcessConnection(kafka._engine, "c"), InProcessConnection(kafka._engine, "d")
        assert line.number != other.number
        line.ask(BEAT, heard.append)
        other.ask(BEAT, heard.append, version=0)
        assert heard == []
        other.close()
        await kafka.settle()
        assert len(heard) == 1
        with pytest.raises(RuntimeError, match="d has vanished"):
            other.ask(BEAT, heard.append)


async def test_while_the_broker_is_down_connections_are_closed() -> None:
    async with Cluster(clock="manual") as kafka:
        await kafka.stop()
        heard: list[Any] = []
        line, other = InProcessConnection(kafka._engine, "c"), InProcessConnection(kafka._engine, "d")
        for each in (line, other):
            each.ask(BEAT, heard.append)
        other.close()
        await asyncio.wait([asyncio.ensure_future(kafka.settle())])
        assert heard == [None]


async def test_an_older_version_says_what_it_can_say() -> None:
    async with Cluster(clock="manual") as kafka:
        line = InProcessConnection(kafka._engine, "c")
        joined: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        request = JoinGroupRequest(
            group_id="g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=20_000,
            member_id="",
            group_instance_id="i",
            protocol_type="consumer",
            protocols=(JoinGroupRequestProtocol(name="p", metadata=b""),),
        )
        line.ask(request, joined.set_result, version=0)
        group = kafka.core.coordinator.shard_of("g").machine.classic_group("g")
        assert group is not None
        found = group.members[(await joined).member_id]
        assert (found.instance_id, found.rebalance_timeout_ms) == (None, 10_000)
        with pytest.raises(ValueError, match="JoinGroup: there is no version 99"):
            line.ask(request, joined.set_result, version=99)
