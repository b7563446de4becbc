"""Appends that fail or wait."""

import pytest

from groupcoord.protocol.errors import ErrorCode
from groupcoord.testing import Cluster, WaitTimeoutError

pytestmark = pytest.mark.asyncio

ORDERS = {"orders": 2}
NO_LINGER = {"group.coordinator.append.linger.ms": 0}
"""Commits that come at once are one append otherwise."""
T = ("orders", 0)


async def test_an_append_that_fails_leaves_everything_as_it_was() -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        member = kafka.manual_member("app", "orders")
        await member.rejoin()
        kafka.fail_append("NOT_ENOUGH_REPLICAS", group="app")
        assert await member.commit({T: 5}) == {T: ErrorCode.COORDINATOR_NOT_AVAILABLE}
        assert await kafka.group("app").committed(*T) is None
        assert await member.commit({T: 6}) == {T: ErrorCode.NONE}
        assert await kafka.group("app").committed(*T) == 6
        with pytest.raises(
            ValueError, match=r"^there is no error 'NOT_ENOUGH_REPLICA'; did you mean NOT_ENOUGH_REPLICAS\?$"
        ):
            kafka.fail_append("NOT_ENOUGH_REPLICA")


async def test_an_append_that_is_held_holds_its_answer() -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        member, other = kafka.manual_member("app", "orders"), kafka.manual_member("other", "orders")
        for each in (member, other):
            await each.rejoin()
        held = kafka.hold_append(group="app", times=2)
        committing = member.commit({T: 5})
        await held.wait()
        assert await other.commit({T: 1}) == {T: ErrorCode.NONE}  # its group is in another partition
        assert not committing.done()
        held.release()
        assert await committing == {T: ErrorCode.NONE}
        committing = member.commit({T: 7})
        await held.wait()
        held.fail("NOT_ENOUGH_REPLICAS")
        assert await committing == {T: ErrorCode.COORDINATOR_NOT_AVAILABLE}
        assert await kafka.group("app").committed(*T) == 5
        with pytest.raises(WaitTimeoutError, match="hold_append of group app: 1 should be held"):
            await held.wait(timeout=0.01)


async def test_a_commit_that_waits_too_long_is_told_so() -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        member = kafka.manual_member("app", "orders")
        await member.rejoin()
        kafka.hold_append()
        committing = member.commit({T: 5})
        await kafka.clock.advance(5)
        assert await committing == {T: ErrorCode.COORDINATOR_NOT_AVAILABLE}


async def test_what_is_behind_a_failed_append_has_failed_with_it() -> None:
    async with Cluster(topics=ORDERS, clock="manual", config=NO_LINGER) as kafka:
        member = kafka.manual_member("app", "orders")
        await member.rejoin()
        held = kafka.hold_append(times=2)
        both = member.commit({T: 5}), member.commit({T: 6})
        await held.wait(2)
        held.fail(ErrorCode.NOT_ENOUGH_REPLICAS)
        for each in both:
            assert await each == {T: ErrorCode.COORDINATOR_NOT_AVAILABLE}


async def test_a_rule_for_appends_that_never_came_fails_the_block() -> None:
    async def story() -> None:
        async with Cluster(topics=ORDERS, clock="manual") as kafka:
            kafka.hold_append(group="app")
            kafka.fail_append("KAFKA_STORAGE_ERROR")

    with pytest.raises(AssertionError, match="hold_append of group app, fail_append KAFKA_STORAGE_ERROR"):
        await story()


async def test_groups_move_between_brokers() -> None:
    async with Cluster(topics=ORDERS, brokers=3, racks=["a", "b", "c"], clock="manual") as kafka:
        assert len(kafka.addresses) == 3
        assert kafka.addresses[0] == kafka.address
        (living,) = await kafka.consumers(1, group="app", topics="orders")
        scripted = kafka.manual_member("other", "orders")
        await scripted.rejoin()
        await kafka.produce("orders", b"a", partition=1)
        for broker_id in (2, 3, 1):
            await kafka.group("app").move_coordinator(to=broker_id)
            await kafka.group("other").move_coordinator(to=broker_id)
            assert await scripted.heartbeat() == ErrorCode.NONE
            await kafka.clock.advance(10)
            living.commit({T: broker_id})
            await kafka.settle()
            assert await kafka.group("app").committed(*T) == broker_id
            await kafka.move_leader("orders", 1, to=broker_id)
            await kafka.produce("orders", b"a", partition=1)
        assert living.generation == 1
        with pytest.raises(ValueError, match="there is no broker 9: the ids are 1, 2, 3"):
            await kafka.group("app").move_coordinator(to=9)


async def test_commits_that_come_at_once_are_one_append() -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        member = kafka.manual_member("app", "orders")
        await member.rejoin()
        held = kafka.hold_append()
        both = member.commit({T: 5}), member.commit({T: 6})
        (append,) = await held.wait()
        assert [record.value.offset for record in append.records] == [5, 6]
        held.release()
        for each in both:
            assert await each == {T: ErrorCode.NONE}
        assert await kafka.group("app").committed(*T) == 6


async def test_an_append_of_a_consumer_group() -> None:
    """The keys of the records of KIP-848 call the group otherwise than those of offsets."""
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        other, member = kafka.manual_consumer("other", "orders"), kafka.manual_consumer("app", "orders")
        held = kafka.hold_append(group="app")
        await other.join()
        joining = member.join()
        await held.wait()
        assert not joining.done()
        held.release()
        assert (await joining).error_code == ErrorCode.NONE


async def test_an_append_of_a_transactional_id() -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        billing, shipping = kafka.manual_producer("billing"), kafka.manual_producer("shipping")
        held = kafka.hold_append(transactional_id="billing")
        await shipping.init()
        starting = billing.init()
        (append,) = await held.wait()
        assert (append.topic, append.records[0].key) == ("__transaction_state", "billing")
        assert not starting.done()
        held.release()
        await starting
        kafka.fail_append("NOT_ENOUGH_REPLICAS", transactional_id="billing")
        await shipping.produce("orders", b"a")
        refused = await billing.produce("orders", b"b")
        assert refused.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
        assert str(refused.error_message).endswith("Underlying error: COORDINATOR_NOT_AVAILABLE")
        assert (await billing.produce("orders", b"b")).error_code == ErrorCode.NONE


async def test_a_rule_for_a_group_is_for_no_transactional_id_of_the_same_name() -> None:
    async def story() -> None:
        async with Cluster(topics=ORDERS, clock="manual") as kafka:
            producer = kafka.manual_producer("app")
            kafka.fail_append("KAFKA_STORAGE_ERROR", group="app")
            await producer.init()
            kafka.fail_append("KAFKA_STORAGE_ERROR", transactional_id="app")
            assert (await kafka.manual_producer("app").init()).error_code == ErrorCode.NOT_COORDINATOR
            kafka.hold_append(transactional_id="nobody")
            with pytest.raises(
                ValueError, match="no append is of a group and of a transactional id: add a rule for each"
            ):
                kafka.hold_append(group="app", transactional_id="app")

    with pytest.raises(
        AssertionError, match="fail_append KAFKA_STORAGE_ERROR of group app, hold_append of transactional id nobody"
    ):
        await story()


async def test_a_rule_is_waited_for_counted_and_removed() -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        member = kafka.manual_member("app", "orders")
        await member.rejoin()
        failing = kafka.fail_append("NOT_ENOUGH_REPLICAS", group="app", times=2)
        holding = kafka.hold_append(transactional_id="billing")
        committing = member.commit({T: 5})
        await failing.acted()
        await committing
        assert [(str(rule), rule.uses) for rule in kafka.append_rules] == [
            ("fail_append NOT_ENOUGH_REPLICAS of group app", 1),
            ("hold_append of transactional id billing", 0),
        ]
        with pytest.raises(WaitTimeoutError, match=r"app: it should act 2 times: not within 0 s\. It acted 1 times"):
            await failing.acted(2, timeout=0)
        holding.remove()  # it need not have acted
        assert repr(kafka.append_rules) == "[<fail_append NOT_ENOUGH_REPLICAS of group app used 1 times>]"
