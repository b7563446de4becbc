"""A broker at the other end of a socket."""

from dataclasses import replace
from typing import Any

import pytest

from groupcoord.client.client_errors import DisconnectedError
from groupcoord.protocol.errors import ErrorCode
from groupcoord.testing import AutoMember, Cluster, RemoteCluster, WaitTimeoutError

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]


async def test_topics_are_made_changed_and_deleted() -> None:
    async with Cluster(clock="manual") as kafka, RemoteCluster(kafka.address) as remote:
        assert repr(remote) == f"<RemoteCluster {kafka.address}>"
        await remote.create_topic("orders", 2)
        await remote.add_partitions("orders", 3)
        found = kafka.core.broker.topics.get("orders")
        assert found is not None
        assert len(found.partitions) == 5
        await remote.delete_topic("orders")
        assert kafka.core.broker.topics.get("orders") is None
        with pytest.raises(ValueError, match="there is no topic 'orders'"):
            await remote.delete_topic("orders")
        await remote.create_topic("orders", 2)
        with pytest.raises(ValueError, match="orders: INVALID_PARTITIONS"):
            await remote.add_partitions("orders", 0)


async def test_a_topic_can_be_used_when_all_its_partitions_are_led() -> None:
    async with Cluster(clock="manual") as kafka, RemoteCluster(kafka.address) as remote:
        kafka.faults.when("Metadata").after(lambda _, answer: replace(answer, topics=()))  # it has not heard of it yet
        await remote.create_topic("orders", 2)
        member = remote.manual_member("app", "orders")
        await member.rejoin()
        assert len(member.assigned) == 2


async def test_a_generation_step_by_step() -> None:
    async with Cluster(topics={"orders": 2}, clock="manual") as kafka, RemoteCluster(kafka.address) as remote:
        a = remote.manual_member("app", "orders")
        b = remote.manual_member("app", "orders", client_id="b", instance_id="two")
        await a.rejoin()
        joining = b.join()
        await remote.settle()
        await remote.group("app").wait_rebalancing()
        assert await a.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
        await a.join()
        assert (await joining).generation_id == remote.newest_generation("app") == 2
        syncing = b.sync()
        await a.sync()
        await syncing
        assert a.assigned | b.assigned == {("orders", 0), ("orders", 1)}
        assert (await kafka.group("app").describe()).member("two").client_id == "b"
        assert remote.newest_generation("other") == -1


async def test_an_administrator_removes_a_member() -> None:
    async with Cluster(topics={"orders": 2}, clock="manual") as kafka, RemoteCluster(kafka.address) as remote:
        a = remote.manual_member("app", "orders")
        await a.rejoin()
        await remote.group("app").remove_member(a.member_id)
        assert await a.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
        with pytest.raises(LookupError, match=f"no member called '{a.member_id}' in app Empty"):
            await remote.group("app").remove_member(a.member_id)


async def test_a_removal_that_the_broker_refuses_says_the_error() -> None:
    async with Cluster(topics={"orders": 2}, clock="manual") as kafka:
        (member,) = await kafka.consumers(1, "app", "orders")
        kafka.faults.when("LeaveGroup").refuse("COORDINATOR_NOT_AVAILABLE")
        with pytest.raises(ValueError, match="is not removed: COORDINATOR_NOT_AVAILABLE"):
            await kafka.group("app").remove_member(member.client_id)


async def test_members_live_in_real_time() -> None:
    async with Cluster(topics={"orders": 4}, clock="manual") as kafka, RemoteCluster(kafka.address) as remote:
        settings: dict[str, Any] = {"group": "app", "assignors": "cooperative-sticky", "heartbeat_interval_ms": 10}
        a, b = await remote.consumers(2, topics="orders", instance_ids=["one", "two"], **settings)
        await remote.wait_until(lambda: len(a.assigned) == len(b.assigned) == 2, "each should have two")
        assert (a.group, a.generation) == ("app", remote.newest_generation("app"))
        assert {member.instance_id for member in (await kafka.group("app").describe()).members} == {"one", "two"}
        (c,) = await remote.consumers(1, topics=["orders"], **settings)
        await remote.wait_until(
            lambda: c.is_stable and len(a.assigned | b.assigned | c.assigned) == 4, "all have an owner"
        )


async def test_what_did_not_happen_is_told_with_what_was_seen() -> None:
    async with Cluster(topics={"orders": 1}, clock="manual") as kafka, RemoteCluster(kafka.address) as remote:
        remote.manual_member("app", "orders")
        with pytest.raises(WaitTimeoutError, match=r"it should: not within 0\.01 s\. <ManualMember app-1"):
            await remote.wait_until(lambda: False, "it should", timeout=0.01)


def coordinator_of(member: AutoMember) -> int | None:
    coordinator = member.membership.coordinator
    return None if coordinator is None else coordinator.node_id


async def test_groups_are_found_wherever_they_are_coordinated() -> None:
    async with (
        Cluster(topics={"orders": 2}, brokers=3, clock="manual") as kafka,
        RemoteCluster(kafka.addresses[0]) as remote,
    ):
        member = remote.manual_member("app", "orders")
        await member.rejoin()
        (living,) = await remote.consumers(1, group="other", topics="orders")
        for group, broker_id in (("app", 2), ("other", 3)):
            await kafka.group(group).move_coordinator(to=broker_id)
        assert await member.heartbeat() == ErrorCode.NONE
        (mine,) = (partition for partition in living.assigned if partition[1] == 1)
        living.consumed[mine] = 3
        await remote.wait_until(lambda: coordinator_of(living) == 3, "it should be found again")
        living.leave()
        await remote.wait_until(lambda: living.has_left, "it should have left")
        assert await remote.group("other").offsets() == {mine: 3}
        assert await remote.group("app").state() == "Stable"


async def test_members_that_are_left_are_gone_without_a_word() -> None:
    async with Cluster(topics={"orders": 1}, clock="manual") as kafka:
        async with RemoteCluster(kafka.address) as remote:
            await remote.consumers(1, group="app", topics="orders", heartbeat_interval_ms=30_000)
            waiting = remote.manual_member("app", "orders").join()
            await remote.group("app").wait_rebalancing()
        assert waiting.cancelled()
        assert len((await kafka.group("app").describe()).members) == 2


async def test_a_broker_that_is_not_there() -> None:
    async with Cluster(clock="manual") as kafka:
        address = kafka.address
    with pytest.raises(DisconnectedError, match="cannot be reached"):
        async with RemoteCluster(address):
            pass


async def test_what_nobody_was_told_ends_the_block() -> None:
    async def ask_what_cannot_be_said(remote: RemoteCluster) -> None:
        async with remote:
            with pytest.raises(ConnectionResetError):
                await remote.manual_member("app", "orders").join(version=99)

    async with Cluster(topics={"orders": 1}, clock="manual") as kafka:
        with pytest.raises(ExceptionGroup) as problems:
            await ask_what_cannot_be_said(RemoteCluster(kafka.address))
        assert "the broker does not speak version 99" in str(problems.value.exceptions[0])
