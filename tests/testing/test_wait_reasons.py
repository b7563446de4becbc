"""A wait that was in vain says what is waited for, and until when."""

import asyncio
from typing import Literal

import pytest

from groupcoord.testing import Cluster, WaitTimeoutError
from groupcoord.testing.wait_reasons import MOST_MEMBERS

pytestmark = pytest.mark.asyncio


async def test_a_group_that_waits_for_members_to_join_and_to_sync() -> None:
    async with Cluster(topics={"orders": 2}, clock="manual") as kafka:
        a = kafka.manual_member("app", "orders", client_id="a", rebalance_timeout_ms=10_000)
        b = kafka.manual_member("app", "orders", client_id="b", rebalance_timeout_ms=10_000)
        await a.rejoin()
        joining = b.join()
        await kafka.settle()
        with pytest.raises(WaitTimeoutError) as found:
            await kafka.group("app").wait_stable(timeout=0)
        assert str(found.value).splitlines()[1:3] == [
            "  group app waits for member a to join, until 10.0 s",
            "  group app: sessions end unless members are heard: a at 45.0 s, b at 300.0 s",
        ]
        assert str(found.value).endswith("the clock is manual and shows 0.0 s: kafka.clock.advance(seconds)")
        await a.join()
        await joining
        with pytest.raises(WaitTimeoutError, match="waits for the assignment of its leader a: SyncGroup, until 10"):
            await kafka.group("app").wait_committed("orders", 0, 1, timeout=0)
        await a.sync()
        with pytest.raises(WaitTimeoutError, match="group app waits for SyncGroup of b, until 10"):
            await kafka.wait_until(lambda: False, "b should sync", timeout=0)


async def test_members_that_share_a_client_id_have_the_same_names_in_every_line() -> None:
    async with Cluster(topics={"orders": 2}, clock="manual") as kafka:
        first, second = (kafka.manual_member("app", "orders", client_id="worker") for _ in range(2))
        await first.rejoin()
        joining = second.join()
        await kafka.settle()
        lines = (await waited_in_vain(kafka)).splitlines()
        missing, waiting = (f"worker-{each.member_id.removeprefix('worker-')[:4]}" for each in (first, second))
        said = {f"{missing}, {waiting} (waits in join)", f"{waiting} (waits in join), {missing}"}
        assert lines[0].partition("2 members: ")[2] in said
        assert lines[1] == f"  group app waits for member {missing} to join, until 60.0 s"
        joining.cancel()


async def test_a_new_group_that_waits_for_more_members_and_for_who_was_given_an_id() -> None:
    config = {"group.initial.rebalance.delay.ms": 3_000}
    async with Cluster(topics={"orders": 2}, clock="manual", config=config) as kafka:
        a, b = kafka.manual_member("app", "orders"), kafka.manual_member("app", "orders")
        joining = a.join()
        await kafka.settle()
        assert "more members to join, as each new group does (group.initial.rebalance.delay.ms), until 3.0 s" in (
            await waited_in_vain(kafka)
        )
        await kafka.clock.advance(3)
        await joining
        await a.sync()
        kafka.faults.when("JoinGroup", nth=2).hold()
        joining = b.join()
        await kafka.settle()
        assert "rule 1 holds JoinGroup of app-2, until release()" in await waited_in_vain(kafka)
        with pytest.raises(WaitTimeoutError) as found:
            await kafka.group("other").wait_stable(timeout=0)
        assert "rule 1" not in str(found.value)
        joining.cancel()


async def test_of_many_sessions_those_that_end_first() -> None:
    async with Cluster(topics={"orders": 9}, clock="manual") as kafka:
        await kafka.consumers(MOST_MEMBERS + 2, group="app", topics="orders")
        assert " at 45.0 s, 2 more later\n" in await waited_in_vain(kafka)


async def test_members_of_one_client_id_are_told_apart_and_of_many_the_first_are_named() -> None:
    async with Cluster(topics={"orders": 9}, clock="manual") as kafka:
        group = kafka.group("app")
        members = [kafka.manual_member("app", "orders", client_id="worker") for _ in range(MOST_MEMBERS + 2)]
        joining = [each.join() for each in members]
        await asyncio.gather(*joining)
        for each in members:
            each.sync()
        await kafka.settle()
        await group.force_rebalance()
        names = sorted(f"worker-{each.member_id.removeprefix('worker-')[:4]}" for each in members)
        assert f"group app waits for members {', '.join(names[:MOST_MEMBERS])}, 2 more to join, until 60.0 s" in (
            await waited_in_vain(kafka)
        )


async def test_a_consumer_group_whose_members_have_to_give_back_and_to_heartbeat() -> None:
    async with Cluster(topics={"orders": 2}, clock="manual") as kafka:
        a = kafka.manual_consumer("app", "orders", client_id="a", rebalance_timeout_ms=10_000)
        b = kafka.manual_consumer("app", "orders", client_id="b", rebalance_timeout_ms=10_000)
        await a.join()
        await b.join()
        assert "group app waits for a to heartbeat: it is at epoch 2 and will hear of epoch 3" in (
            await waited_in_vain(kafka)
        )
        await a.heartbeat()
        seen = await waited_in_vain(kafka)
        assert "group app waits for a to give back what it has to, until 10.0 s: then it is removed" in seen
        assert "group app waits for b to heartbeat when others have given back what it is to get" in seen


async def test_a_transaction_that_waits_for_its_producer_and_for_a_marker() -> None:
    async with Cluster(topics={"invoices": 1}, clock="manual") as kafka:
        producer = kafka.manual_producer("billing")
        await producer.init()
        billing = kafka.transaction("billing")
        with pytest.raises(WaitTimeoutError, match=r"its transactional id is forgotten at [\d,.]+ s"):
            await billing.wait_ongoing(timeout=0)
        await producer.produce("invoices", b"one")
        with pytest.raises(WaitTimeoutError, match=r"to end it, until \d+\.0 s: then it is aborted"):
            await billing.wait_committed(timeout=0)
        held = kafka.hold_append(transactional_id="billing")
        ending = producer.end(commit=True)
        await held.wait()
        with pytest.raises(WaitTimeoutError, match=r"an append to __transaction_state-\d+ is held, until release"):
            await billing.wait_committed(timeout=0)
        with pytest.raises(WaitTimeoutError) as found:
            await kafka.group("app").wait_stable(timeout=0)
        assert str(found.value).count("\n") == 0  # that append is no business of a group
        held.release()
        await ending


async def test_what_a_rule_delays_and_what_waits_in_the_whole_cluster() -> None:
    async with Cluster(topics={"orders": 1}, clock="fast", speed=1) as kafka:
        member = kafka.manual_member("app", "orders", client_id="a")
        await member.rejoin()
        await kafka.manual_member("offsets only").commit({("orders", 0): 1})
        kafka.faults.when("Heartbeat").delay(500_000)
        beating = member.heartbeat()
        with pytest.raises(WaitTimeoutError, match=r"rule 1 delays Heartbeat, until \d+\.\d s") as found:
            await kafka.wait_until(lambda: False, "nothing", timeout=0)
        assert "group app: sessions end" in str(found.value)
        assert "the clock is manual" not in str(found.value)
        beating.cancel()


async def test_what_a_rule_delays_of_another_group_or_transaction_is_not_told() -> None:
    async with Cluster(topics={"orders": 1}, clock="manual") as kafka:
        member, producer = kafka.manual_member("app", "orders"), kafka.manual_producer("billing")
        await member.rejoin()
        await producer.init()
        kafka.faults.when("Heartbeat", group="app").delay(500_000)
        kafka.faults.when("EndTxn", transactional_id="billing").delay(500_000)
        delayed = member.heartbeat(), producer.end()
        await kafka.settle()
        waits = {
            "app": kafka.group("app").wait_empty(timeout=0),
            "others": kafka.group("others").wait_stable(timeout=0),
            "billing": kafka.transaction("billing").wait_committed(timeout=0),
            "shipping": kafka.transaction("shipping").wait_ongoing(timeout=0),
        }
        told = {}
        for name, wait in waits.items():
            with pytest.raises(WaitTimeoutError) as found:
                await wait
            told[name] = [word in str(found.value) for word in ("delays Heartbeat", "delays EndTxn")]
        assert told == {
            "app": [True, False],
            "others": [False, False],
            "billing": [False, True],
            "shipping": [False, False],
        }
        for answer in delayed:
            answer.cancel()


async def test_appends_that_wait_are_of_no_group_and_of_no_transaction() -> None:
    async with Cluster(topics={"invoices": 1}, clock="manual") as kafka:
        producer = kafka.manual_producer("billing")
        await producer.init()
        held = kafka.hold_append()
        producing = producer.produce("invoices", b"one")
        (append,) = await held.wait()
        with pytest.raises(WaitTimeoutError, match=r"an append to __transaction_state-\d+ is held, until release"):
            await kafka.wait_until(lambda: False, "nothing", timeout=0)
        held.release()
        await producing
        named_like_it = kafka.manual_member(f"__consumer_offsets-{append.partition}", "invoices")
        await named_like_it.rejoin()
        with pytest.raises(WaitTimeoutError, match=r"group __consumer_offsets-\d+: sessions end unless"):
            await kafka.group(f"__consumer_offsets-{append.partition}").wait_empty(timeout=0)


async def waited_in_vain(kafka: Cluster) -> str:
    with pytest.raises(WaitTimeoutError) as found:
        await kafka.group("app").wait_stable(members=99, timeout=0)
    return str(found.value)


async def test_what_rules_did_to_requests_of_the_group() -> None:
    async with Cluster(topics={"orders": 1}, clock="manual") as kafka:
        member, other = (kafka.manual_member(group, "orders", client_id=group) for group in ("app", "other"))
        await member.rejoin()
        await other.rejoin()
        await kafka.clock.advance(3)
        lost = kafka.faults.when("Heartbeat", group="app").disconnect_answer().always()
        kafka.faults.when("OffsetCommit").refuse("COORDINATOR_LOAD_IN_PROGRESS")
        kafka.faults.when("LeaveGroup").drop().optional()
        await member.commit({("orders", 0): 1})
        for _ in range(3):
            with pytest.raises(ConnectionError):
                await member.heartbeat()
        seen = await waited_in_vain(kafka)
        assert (
            "  rule 1 acted 3 times, the last time at 3.0 s: Heartbeat of app is handled, but its connection is closed\n"
            in seen
        )
        refused = "OffsetCommit of app is refused with COORDINATOR_LOAD_IN_PROGRESS"
        assert f"  rule 2 acted once, the last time at 3.0 s: {refused}\n" in seen
        assert "rule 3" not in seen
        with pytest.raises(WaitTimeoutError) as found:
            await kafka.group("other").wait_empty(timeout=0)
        assert "rule" not in str(found.value)
        lost.remove()
        assert "rule 1" not in await waited_in_vain(kafka)


async def test_a_member_that_was_refused_until_it_comes_with_what_the_others_have() -> None:
    async with Cluster(topics={"orders": 1}, clock="manual") as kafka:
        await kafka.manual_member("app", "orders", client_id="a").rejoin()
        b = kafka.manual_member("app", "orders", client_id="b", assignors="roundrobin")
        await b.heartbeat()  # is refused, too, and is no attempt to join
        await b.join()
        why = "JoinGroup is refused with INCONSISTENT_GROUP_PROTOCOL: protocols are roundrobin"
        assert f"  group app did not take b at 0.0 s: {why}" in await waited_in_vain(kafka)
        kafka.manual_member("app", "orders", client_id="b").join()
        await kafka.settle()
        assert "did not take" not in await waited_in_vain(kafka)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_a_topic_that_members_subscribe_to_and_that_is_not_there(
    protocol: Literal["classic", "consumer"],
) -> None:
    async with Cluster(topics={"orders": 1}, clock="manual") as kafka:
        await kafka.consumers(1, group="app", topics=["ordres", "orders"], protocol=protocol)
        assert (
            "  group app subscribes to 'ordres': there is no topic 'ordres'; did you mean 'orders'? The topics are orders\n"
            in await waited_in_vain(kafka)
        )
        await kafka.create_topic("ordres")
        assert "subscribes" not in await waited_in_vain(kafka)


async def test_members_that_were_refused_before_there_was_a_group() -> None:
    async with Cluster(topics={"orders": 1}, clock="manual") as kafka:
        with pytest.raises(WaitTimeoutError, match=r"group app did not take app-1 .* UNSUPPORTED_ASSIGNOR"):
            await kafka.consumers(1, "app", "orders", protocol="consumer", remote_assignor="sticky", timeout=5)
