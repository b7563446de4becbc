"""A group as a test sees it."""

import asyncio

import pytest

from groupcoord.protocol.apis.join_group import JoinGroupRequestProtocol
from groupcoord.protocol.consumer_protocol import ConsumerProtocolAssignment, TopicPartition, write_assignment
from groupcoord.protocol.messages import JoinGroupRequest
from groupcoord.testing import Cluster, WaitTimeoutError
from groupcoord.testing.engine import InProcessConnection
from groupcoord.testing.group_handle import GroupDescription, MemberDescription, assigned_by

ASSIGNMENT = write_assignment(
    ConsumerProtocolAssignment(assigned_partitions=(TopicPartition(topic="orders", partitions=(0, 2)),))
)


def seen(member_id: str, client_id: str = "", instance_id: str | None = None) -> MemberDescription:
    assigned = assigned_by(ASSIGNMENT, "consumer")
    return MemberDescription(
        member_id=member_id, instance_id=instance_id, client_id=client_id, client_host="/127.0.0.1", assigned=assigned
    )


def test_members_are_found_by_any_of_their_names() -> None:
    one, two = seen("m-1", "a", "i"), seen("m-2", "b")
    group = GroupDescription(group="app", state="Stable", protocol="range", members=(one, two))
    assert group.member("m-1") is group.member("a") is group.member("i") is one
    assert group.assignment == {"m-1": frozenset({("orders", 0), ("orders", 2)}), "m-2": two.assigned}
    with pytest.raises(LookupError, match="no member called 'c' in app Stable, 2 members: a, b"):
        group.member("c")
    with pytest.raises(LookupError, match="2 members called"):
        GroupDescription(group="app", state="Stable", protocol="range", members=(one, one)).member("a")


def test_a_group_in_one_line() -> None:
    assert GroupDescription(group="app", state="Empty", protocol=None, members=()).text() == "app Empty, 0 members"
    assert (
        GroupDescription(group="app", state="Stable", protocol="p", members=(seen("m"),)).text()
        == "app Stable, 1 member: m"
    )
    same_client = (seen("c-1", "c"), seen("c-2", "c"), seen("d-1", "d"))
    text = GroupDescription(group="app", state="Stable", members=same_client).text()
    assert text == "app Stable, 3 members: c-1, c-2, d"


def test_what_is_no_assignment_of_a_consumer_is_none() -> None:
    assert assigned_by(ASSIGNMENT, "connect") == assigned_by(b"", "consumer") == frozenset()
    assert assigned_by(b"\0", "consumer") == frozenset()


@pytest.mark.asyncio
async def test_a_group_that_is_not_there_is_dead() -> None:
    async with Cluster(topics={"orders": 1}, clock="manual") as kafka:
        group = kafka.group("app")
        assert (await group.state(), await group.assignment(), await group.offsets()) == ("Dead", {}, {})
        assert await group.committed("orders", 0) is None
        assert repr(group) == "<ClusterGroup app Dead gen=0, 0 members>"
        assert await group.wait_dead() == await group.describe()


@pytest.mark.asyncio
async def test_members_and_what_they_have() -> None:
    async with Cluster(topics={"orders": 2}, clock="manual") as kafka:
        a = kafka.manual_member("app", "orders", instance_id="one", client_id="a")
        await a.rejoin()
        waiting = kafka.manual_member("app", "orders", client_id="b").join()
        await kafka.settle()
        view = await kafka.group("app").describe()
        assert view.text() == "app PreparingRebalance gen=1, 2 members: a, b (waits in join)"
        assert (view.protocol, view.leader) == ("range", a.member_id)
        assert view.member("one") == view.member("a") == view.member(a.member_id)
        assert view.member("a").assigned == {("orders", 0), ("orders", 1)}
        assert view.member("a").protocols == ("range",)
        waiting.cancel()


@pytest.mark.asyncio
async def test_a_member_waits_in_sync() -> None:
    async with Cluster(topics={"orders": 2}, clock="manual") as kafka:
        a, b = kafka.manual_member("app", "orders", client_id="a"), kafka.manual_member("app", "orders", client_id="b")
        await a.rejoin()
        joining = b.join()
        await a.join()
        await joining
        syncing = b.sync()
        await kafka.settle()
        view = await kafka.group("app").wait_rebalancing()
        assert view.text() == "app CompletingRebalance gen=2, 2 members: a, b (waits in sync)"
        await a.sync()
        await syncing
        assert (await kafka.group("app").wait_stable(2, generation=2)).state == "Stable"


@pytest.mark.asyncio
async def test_what_is_not_a_consumers_assignment_is_none() -> None:
    async with Cluster(clock="manual") as kafka:
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
            member = kafka.manual_member(group)
            member.member_id, member.generation = (await joined).member_id, 1
            member.instance_id = "i"
            found = kafka.core.coordinator.shard_of(group).machine.classic_group(group)
            assert found is not None
            found.members[member.member_id].assignment = b"\0"
            assert await kafka.group(group).assignment() == {member.member_id: frozenset()}


@pytest.mark.asyncio
async def test_the_lag_of_what_was_never_committed_is_not_known_and_that_of_no_group_is_an_error() -> None:
    async with Cluster(topics={"orders": 2, "returns": 1, "other": 1}, clock="manual") as kafka:
        member, group = kafka.manual_member("app", ["orders", "returns"]), kafka.group("app")
        with pytest.raises(LookupError, match="there is no group 'app', so nothing has a lag"):
            await group.lag()
        await kafka.produce("orders", b"a", b"b", partition=1)
        await member.join()
        with pytest.raises(
            LookupError, match=r"no partition that the group has, or has committed for: app Completing.* gen=1"
        ):
            await group.lag()
        await member.rejoin()
        assert await group.lag() == {("orders", 0): None, ("orders", 1): None, ("returns", 0): None}
        await member.commit({("orders", 1): 1})
        assert await group.lag() == {("orders", 0): None, ("orders", 1): 1, ("returns", 0): None}
        await member.leave()
        assert await group.lag() == {("orders", 0): None, ("orders", 1): 1}
        await group.unload_coordinator()
        with pytest.raises(LookupError, match="lag of group 'app' is not known: who asks for it is told NOT_COORD"):
            await group.lag()
        await group.load_coordinator()


@pytest.mark.asyncio
async def test_offsets_and_lag() -> None:
    async with Cluster(topics={"orders": 2}, clock="manual") as kafka:
        member = kafka.manual_member("app", "orders")
        await member.rejoin()
        await kafka.produce("orders", b"a", b"b", b"c")
        wait = asyncio.ensure_future(kafka.group("app").wait_committed("orders", 0, 1))
        await member.commit({("orders", 0): 2, ("orders", 1): 9})
        assert await wait == 2
        group = kafka.group("app")
        assert await group.offsets() == {("orders", 0): 2, ("orders", 1): 9}
        assert await group.lag() == {("orders", 0): 1, ("orders", 1): -9}  # as Kafka's tool shows it
        shard = kafka.core.coordinator.shard_of("app")
        committed = shard.machine.offsets.get("app", "orders", 0)
        assert committed is not None
        shard.machine.offsets.put("app", "gone", 0, committed)
        assert await group.lag() == {("orders", 0): 1, ("orders", 1): -9}
        with pytest.raises(
            WaitTimeoutError, match=r"should commit 3 for orders-0: not within 0\.01 s\. It has committed 2"
        ):
            await group.wait_committed("orders", 0, 3, timeout=0.01)


@pytest.mark.asyncio
async def test_waiting_for_a_generation_and_for_the_end() -> None:
    async with Cluster(topics={"orders": 1}, clock="manual") as kafka:
        group, member = kafka.group("app"), kafka.manual_member("app", "orders")
        begins = asyncio.ensure_future(group.wait_generation(1))
        joining = member.join()
        assert (await begins).state == "CompletingRebalance"
        await joining
        await member.sync()
        ends = asyncio.ensure_future(group.wait_empty())
        await member.leave()
        assert (await ends).members == ()
        with pytest.raises(
            WaitTimeoutError, match="group app should be stable with 2 members in generation 9: not within"
        ):
            await group.wait_stable(2, generation=9, timeout=0.01)
