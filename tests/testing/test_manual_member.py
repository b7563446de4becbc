"""A member that takes one step at a time."""

import pytest

from groupcoord.protocol.errors import ErrorCode
from groupcoord.testing import Cluster, WaitTimeoutError, manual_request_sender
from groupcoord.testing.trace import RequestReceived

pytestmark = pytest.mark.asyncio

ORDERS = {"orders": 4}


async def test_a_generation_step_by_step() -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        a, b = kafka.manual_member("app", "orders", client_id="a"), kafka.manual_member("app", "orders", client_id="b")
        assert repr(a) == "<ManualMember a (no id yet) gen=-1>"
        assert [a.is_leader, b.is_leader] == [False, False]
        await a.rejoin()
        assert a.is_leader
        assert len(a.assigned) == 4
        joining = b.join(reason="I am new")
        await kafka.settle()
        assert await a.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
        assert (await a.join()).generation_id == (await joining).generation_id == 2
        assert repr(b) == f"<ManualMember b {b.member_id} gen=2>"
        syncing = b.sync()
        await a.sync({a.member_id: [("orders", 3)], b.member_id: [("orders", 1), ("orders", 0)]})
        await syncing
        assert a.assigned == {("orders", 3)}
        assert b.assigned == {("orders", 0), ("orders", 1)}
        assert await b.commit({("orders", 0): 1, ("nowhere", 0): 1}) == {
            ("orders", 0): ErrorCode.NONE,
            ("nowhere", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        b.generation = 1
        assert await b.heartbeat() == ErrorCode.ILLEGAL_GENERATION
        assert (await b.sync()).error_code == ErrorCode.ILLEGAL_GENERATION
        assert await b.leave("enough") == ErrorCode.NONE
        assert await b.leave() == ErrorCode.UNKNOWN_MEMBER_ID


async def test_a_member_that_the_leader_forgets_has_nothing() -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        member = kafka.manual_member("app", "orders")
        await member.join()
        await member.sync({})
        assert member.assigned == frozenset()


async def test_a_newcomer_may_stay_away() -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        member = kafka.manual_member("app", "orders")
        assert (await member.join(come_back=False)).error_code == ErrorCode.MEMBER_ID_REQUIRED
        assert member.member_id
        assert member.generation == -1
        assert (await member.join()).error_code == ErrorCode.NONE


async def test_a_refusal_ends_the_two_steps_of_a_rejoin() -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        kafka.faults.when("JoinGroup").refuse("GROUP_MAX_SIZE_REACHED")
        with pytest.raises(AssertionError, match="GROUP_MAX_SIZE_REACHED"):
            await kafka.manual_member("app", "orders").rejoin()
        member = kafka.manual_member("app", "orders")
        kafka.faults.when("SyncGroup").refuse("REBALANCE_IN_PROGRESS")
        with pytest.raises(AssertionError, match="REBALANCE_IN_PROGRESS"):
            await member.rejoin()


async def test_who_has_vanished_hears_and_says_nothing() -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        a, b = kafka.manual_member("app", "orders"), kafka.manual_member("app", "orders")
        await a.rejoin()
        joining = b.join()
        await kafka.settle()
        b.vanish()
        assert joining.cancelled()
        await a.join()
        with pytest.raises(RuntimeError, match="app-2 has vanished"):
            b.heartbeat()


async def test_a_closed_connection_and_a_lost_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        member = kafka.manual_member("app", "orders")
        kafka.faults.when("Heartbeat").disconnect()
        with pytest.raises(ConnectionResetError, match="the connection of app-1 was closed: Heartbeat"):
            await member.heartbeat()
        kafka.faults.when("Heartbeat").corrupt()
        with pytest.raises(ConnectionResetError):
            await member.heartbeat()
        monkeypatch.setattr(manual_request_sender, "TIMEOUT_S", 0.01)
        hold = kafka.faults.when("Heartbeat").hold()
        lost = member.heartbeat()
        with pytest.raises(WaitTimeoutError, match=r"Heartbeat of app-1 was not answered within 0\.01 s"):
            await lost
        hold.release()
        await kafka.settle()
        kafka.faults.when("Heartbeat").drop()
        lost = member.heartbeat()
        with pytest.raises(WaitTimeoutError):
            await lost
        await kafka.stop()
        await kafka.settle()


async def test_who_joins_in_an_old_version_is_a_member_at_once() -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        old, new = kafka.manual_member("app", "orders"), kafka.manual_member("app", "orders")
        assert (await old.join(version=3, come_back=False)).error_code == ErrorCode.NONE
        await old.sync()
        assert (await new.join(version=4, come_back=False)).error_code == ErrorCode.MEMBER_ID_REQUIRED
        joining = new.join(version=4)
        await old.join(version=3)
        assert (await joining).generation_id == 2
        asked = kafka.trace.of(RequestReceived, api="JoinGroup", client_id=new.client_id)
        assert [event.version for event in asked] == [4, 4]


async def test_a_cooperative_leader_moves_a_partition_in_two_generations() -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        a, b = (kafka.manual_member("app", "orders", assignors="cooperative-sticky") for _ in range(2))
        await a.rejoin()
        kept = []
        for _ in range(2):
            joining = b.join()
            await a.join()
            await joining
            syncing = b.sync()
            await a.sync()
            await syncing
            kept.append((len(a.assigned), len(b.assigned)))
        assert kept == [(2, 0), (2, 2)]
