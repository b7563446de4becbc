"""A group of a broker at the other end of a socket."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from groupcoord.client.client_errors import UnsupportedVersionError
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import ConsumerGroupDescribeRequest
from groupcoord.testing import Cluster, RemoteCluster, WaitTimeoutError

pytestmark = pytest.mark.asyncio


async def test_a_group_that_is_not_there() -> None:
    async with Cluster(topics={"orders": 1}, clock="manual") as kafka, RemoteCluster(kafka.address) as remote:
        group = remote.group("app")
        assert repr(group) == "<RemoteGroup app>"
        assert (await group.state(), await group.assignment(), await group.offsets()) == ("Dead", {}, {})
        assert await group.committed("orders", 0) is None
        assert await group.wait_dead() == await group.describe()


async def test_from_the_first_member_to_the_last() -> None:
    async with Cluster(topics={"orders": 2}, clock="manual") as kafka, RemoteCluster(kafka.address) as remote:
        group, member = remote.group("app"), remote.manual_member("app", "orders", instance_id="one", client_id="a")
        begins, stands = asyncio.ensure_future(group.wait_generation(1)), asyncio.ensure_future(group.wait_stable(1))
        await member.join()
        assert (await group.wait_rebalancing()).text() == "app CompletingRebalance gen=1, 1 member: a"
        await member.sync()
        assert (await begins).generation == 1
        view = await stands
        assert (view.state, view.protocol, view.member("one").client_host) == ("Stable", "range", "/127.0.0.1")
        assert view.assignment == await group.assignment() == {member.member_id: member.assigned}
        assert len(member.assigned) == 2
        await member.leave()
        assert (await group.wait_empty()).members == ()


async def test_offsets() -> None:
    async with Cluster(topics={"orders": 2}, clock="manual") as kafka, RemoteCluster(kafka.address) as remote:
        group, member = remote.group("app"), remote.manual_member("app", "orders")
        await member.rejoin()
        wait = asyncio.ensure_future(group.wait_committed("orders", 0, 2))
        await member.commit({("orders", 0): 2, ("orders", 1): 9})
        assert await wait == 2
        assert await group.offsets() == {("orders", 0): 2, ("orders", 1): 9}
        assert await group.committed("orders", 1) == 9
        await kafka.produce("orders", b"a", b"b", b"c")
        await kafka.create_topic("returns")
        assert await group.lag() == {("orders", 0): 1, ("orders", 1): -9}
        await kafka.add_partitions("orders", 1)
        assert await group.lag() == {("orders", 0): 1, ("orders", 1): -9, ("orders", 2): None}
        with pytest.raises(LookupError, match="there is no group 'none'"):
            await remote.group("none").lag()

        def forgotten(_: Any, answer: Any) -> Any:
            (found,) = answer.groups
            nothing = tuple(replace(each, committed_offset=-1) for each in found.topics[0].partitions)
            return replace(answer, groups=(replace(found, topics=(replace(found.topics[0], partitions=nothing),)),))

        kafka.faults.when("OffsetFetch").after(forgotten)
        assert await group.offsets() == {}
        with pytest.raises(
            WaitTimeoutError, match=r"should commit 3 for orders-0: not within 0 s\. It has committed 2"
        ):
            await group.wait_committed("orders", 0, 3, timeout=0)


async def test_a_coordinator_that_has_moved_is_seen_as_such() -> None:
    async with Cluster(clock="manual") as kafka, RemoteCluster(kafka.address) as remote:
        kafka.faults.when("DescribeGroups").refuse("NOT_COORDINATOR")
        assert await remote.group("app").state() == ErrorCode.NOT_COORDINATOR.name
        with pytest.raises(WaitTimeoutError, match=r"app should rebalance: not within 0 s\. It is app Dead, 0 members"):
            await remote.group("app").wait_rebalancing(timeout=0)


async def test_a_consumer_group() -> None:
    async with Cluster(topics={"orders": 2}, clock="manual") as kafka, RemoteCluster(kafka.address) as remote:
        a, b = (remote.manual_consumer("app", "orders", client_id=name) for name in "ab")
        await a.reconcile()
        await b.join()
        await a.heartbeat()
        view = await remote.group("app").wait_epoch(3)
        assert view.text() == "app Reconciling epoch=3, 2 members: a at 2, b at 3"
        assert (view.type, view.protocol, view.assignment_epoch, view.generation) == ("consumer", "uniform", 3, -1)
        assert view.member("a").assigned == {("orders", 0), ("orders", 1)}  # what it is to give back included
        assert view.member("a").target == {("orders", 0)}
        await a.reconcile()
        await b.reconcile()
        assert (await remote.group("app").wait_reconciled(epoch=3)).member("b").type == "consumer"
        assert b.assigned == {("orders", 1)}
        await remote.manual_member("app", "orders", client_id="old").join()
        seen = await remote.group("app").describe()
        assert {member.client_id: member.type for member in seen.members} == {
            "a": "consumer",
            "b": "consumer",
            "old": "classic",
        }
        await remote.group("app").remove_member("b")
        assert (await b.heartbeat()).error_code == ErrorCode.UNKNOWN_MEMBER_ID


async def test_a_broker_that_knows_no_consumer_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Cluster(clock="manual") as kafka, RemoteCluster(kafka.address) as remote:
        ask = remote.ask_coordinator

        async def as_an_older_one(group: str, request: Any, **options: Any) -> Any:
            if isinstance(request, ConsumerGroupDescribeRequest):
                raise UnsupportedVersionError("ConsumerGroupDescribe")
            return await ask(group, request, **options)

        monkeypatch.setattr(remote, "ask_coordinator", as_an_older_one)
        assert await remote.group("app").state() == "Dead"
