"""A group as a test sees it."""

import asyncio

import pytest

from groupcoord.protocol.apis.join_group import JoinGroupRequestProtocol
from groupcoord.protocol.messages import JoinGroupRequest
from groupcoord.testing import Cluster, WaitTimeoutError
from groupcoord.testing.in_process_transport import InProcessConnection

pytestmark = pytest.mark.asyncio


async def test_a_group_that_is_not_there_is_dead() -> None:
    async with Cluster() as kafka:
        group = kafka.group("app")
        assert (group.state, group.assignment(), group.offsets(), group.lag()) == ("Dead", {}, {}, {})
        assert group.committed("orders", 0) is None
        assert repr(group) == "<Group app Dead gen=0, 0 members>"
        assert await group.dead() == group.view()


async def test_members_and_what_they_have() -> None:
    async with Cluster(topics={"orders": 2}) as kafka:
        a = kafka.member("app", "orders", instance_id="one", client_id="a")
        await a.rejoin()
        waiting = kafka.member("app", "orders", client_id="b").join()
        await kafka.settle()
        view = kafka.group("app").view()
        assert view.text() == "app PreparingRebalance gen=1, 2 members: a, b (waits in join)"
        assert (view.protocol, view.leader) == ("range", a.member_id)
        assert view.member("one") == view.member("a") == view.member(a.member_id)
        assert view.member("a").assigned == {("orders", 0), ("orders", 1)}
        assert view.member("a").protocols == ("range",)
        waiting.cancel()


async def test_a_member_waits_in_sync() -> None:
    async with Cluster(topics={"orders": 2}) as kafka:
        a, b = kafka.member("app", "orders", client_id="a"), kafka.member("app", "orders", client_id="b")
        await a.rejoin()
        joining = b.join()
        await a.join()
        await joining
        syncing = b.sync()
        await kafka.settle()
        view = await kafka.group("app").rebalancing()
        assert view.text() == "app CompletingRebalance gen=2, 2 members: a, b (waits in sync)"
        await a.sync()
        await syncing
        assert (await kafka.group("app").stable(2, generation=2)).state == "Stable"


async def test_what_is_not_a_consumers_assignment_is_none() -> None:
    async with Cluster() as kafka:
        for number, protocol_type in enumerate(("connect", "consumer")):
            group = f"workers-{number}"
            request = JoinGroupRequest(
                group_id=group,
                session_timeout_ms=10_000,
                rebalance_timeout_ms=10_000,
                member_id="",
                group_instance_id="i",
                protocol_type=protocol_type,
                protocols=(JoinGroupRequestProtocol(name="p", metadata=b""),),
            )
            joined = asyncio.get_running_loop().create_future()
            InProcessConnection(kafka._engine, "c").ask(request, joined.set_result)
            member = kafka.member(group)
            member.member_id, member.generation = (await joined).member_id, 1
            member.instance_id = "i"
            found = kafka.node.coordinator.shard_of(group).groups[group]
            found.members[member.member_id].assignment = b"\0"
            assert kafka.group(group).assignment() == {member.member_id: frozenset()}


async def test_offsets_and_lag() -> None:
    async with Cluster(topics={"orders": 2}) as kafka:
        member = kafka.member("app", "orders")
        await member.rejoin()
        await kafka.produce("orders", b"a", b"b", b"c")
        wait = asyncio.ensure_future(kafka.group("app").commits("orders", 0, 1))
        await member.commit({("orders", 0): 2, ("orders", 1): 9})
        assert await wait == 2
        group = kafka.group("app")
        assert group.offsets() == {("orders", 0): 2, ("orders", 1): 9}
        assert group.lag() == {("orders", 0): 1, ("orders", 1): 0}
        shard = kafka.node.coordinator.shard_of("app")
        committed = shard.offsets.get("app", "orders", 0)
        assert committed is not None
        shard.offsets.put("app", "gone", 0, committed)
        assert group.lag() == {("orders", 0): 1, ("orders", 1): 0}
        with pytest.raises(
            WaitTimeoutError, match=r"should commit 3 for orders-0: not within 0\.01 s\. It has committed 2"
        ):
            await group.commits("orders", 0, 3, timeout_s=0.01)


async def test_waiting_for_a_generation_and_for_the_end() -> None:
    async with Cluster(topics={"orders": 1}) as kafka:
        group, member = kafka.group("app"), kafka.member("app", "orders")
        begins = asyncio.ensure_future(group.generation(1))
        joining = member.join()
        assert (await begins).state == "CompletingRebalance"
        await joining
        await member.sync()
        ends = asyncio.ensure_future(group.empty())
        await member.leave()
        assert (await ends).members == ()
        with pytest.raises(
            WaitTimeoutError, match="group app should be stable with 2 members in generation 9: not within"
        ):
            await group.stable(2, generation=9, timeout_s=0.01)
