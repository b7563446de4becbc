"""A group of a broker at the other end of a socket."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from groupcoord.protocol.errors import ErrorCode
from groupcoord.testing import Cluster, RemoteCluster, WaitTimeoutError

pytestmark = pytest.mark.asyncio


async def test_a_group_that_is_not_there() -> None:
    async with Cluster() as kafka, RemoteCluster(kafka.address) as remote:
        group = remote.group("app")
        assert repr(group) == "<RemoteGroup app>"
        assert (await group.state(), await group.assignment(), await group.offsets()) == ("Dead", {}, {})
        assert await group.committed("orders", 0) is None
        assert await group.dead() == await group.view()


async def test_from_the_first_member_to_the_last() -> None:
    async with Cluster(topics={"orders": 2}) as kafka, RemoteCluster(kafka.address) as remote:
        group, member = remote.group("app"), remote.member("app", "orders", instance_id="one", client_id="a")
        begins, stands = asyncio.ensure_future(group.generation(1)), asyncio.ensure_future(group.stable(1))
        await member.join()
        assert (await group.rebalancing()).text() == "app CompletingRebalance, 1 member: a"
        await member.sync()
        assert await begins == 1
        view = await stands
        assert (view.state, view.protocol, view.member("one").client_host) == ("Stable", "range", "/127.0.0.1")
        assert view.assignment == await group.assignment() == {member.member_id: member.assigned}
        assert len(member.assigned) == 2
        await member.leave()
        assert (await group.empty()).members == ()


async def test_offsets() -> None:
    async with Cluster(topics={"orders": 2}) as kafka, RemoteCluster(kafka.address) as remote:
        group, member = remote.group("app"), remote.member("app", "orders")
        await member.rejoin()
        wait = asyncio.ensure_future(group.commits("orders", 0, 2))
        await member.commit({("orders", 0): 2, ("orders", 1): 9})
        assert await wait == 2
        assert await group.offsets() == {("orders", 0): 2, ("orders", 1): 9}
        assert await group.committed("orders", 1) == 9

        def forgotten(_: Any, answer: Any) -> Any:
            (found,) = answer.groups
            nothing = tuple(replace(each, committed_offset=-1) for each in found.topics[0].partitions)
            return replace(answer, groups=(replace(found, topics=(replace(found.topics[0], partitions=nothing),)),))

        kafka.when("OffsetFetch").after(forgotten)
        assert await group.offsets() == {}
        with pytest.raises(
            WaitTimeoutError, match=r"should commit 3 for orders-0: not within 0 s\. It has committed 2"
        ):
            await group.commits("orders", 0, 3, timeout_s=0)


async def test_a_coordinator_that_has_moved_is_seen_as_such() -> None:
    async with Cluster() as kafka, RemoteCluster(kafka.address) as remote:
        kafka.when("DescribeGroups").refuse("NOT_COORDINATOR")
        assert await remote.group("app").state() == ErrorCode.NOT_COORDINATOR.name
        with pytest.raises(WaitTimeoutError, match=r"app should rebalance: not within 0 s\. It is app Dead, 0 members"):
            await remote.group("app").rebalancing(timeout_s=0)
