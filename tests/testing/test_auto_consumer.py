"""Members of a consumer group (KIP-848) that act by themselves on the cluster's clock."""

import pytest

from groupcoord.testing import Cluster, RemoteCluster

pytestmark = pytest.mark.asyncio
ALL = frozenset(("orders", number) for number in range(4))


def kafka_cluster() -> Cluster:
    return Cluster(topics={"orders": 4}, clock="manual")


async def test_they_share_the_partitions_when_the_call_returns() -> None:
    async with kafka_cluster() as kafka:
        a, b = await kafka.consumers(2, group="app", topics="orders", protocol="consumer")
        assert (a.generation, a.epoch) == (b.generation, b.epoch) == (3, 3)
        assert a.assigned | b.assigned == ALL
        assert len(a.assigned) == len(b.assigned) == 2
        view = await kafka.group("app").wait_reconciled(epoch=3)
        assert view.assignment == {a.member_id: a.assigned, b.member_id: b.assigned}


async def test_a_newcomer_costs_the_others_only_what_moves() -> None:
    async with kafka_cluster() as kafka:
        (a,) = await kafka.consumers(1, group="app", topics="orders", protocol="consumer")
        (b,) = await kafka.consumers(1, group="app", topics="orders", protocol="consumer")
        assert a.rebalance_callbacks[:2] == [("assigned", tuple(sorted(ALL))), ("revoked", tuple(sorted(b.assigned)))]
        assert "still had" in kafka.trace.why("app", epoch=3)


async def test_one_that_vanishes_loses_its_session() -> None:
    async with kafka_cluster() as kafka:
        a, b = await kafka.consumers(2, group="app", topics="orders", protocol="consumer")
        b.vanish()
        await kafka.clock.advance(51)
        assert a.assigned == ALL
        assert "epoch 4: member app-2's session of 45,000 ms ran out at " in kafka.trace.why("app")


async def test_one_that_leaves_commits_first() -> None:
    async with kafka_cluster() as kafka:
        a, b = await kafka.consumers(2, group="app", topics="orders", protocol="consumer")
        given = min(b.assigned)
        b.consumed[given] = 7
        b.leave()
        await kafka.clock.advance(10)
        assert b.has_left
        assert await kafka.group("app").committed(*given) == 7
        assert a.assigned == ALL
        assert kafka.trace.why("app").startswith("epoch 4: member app-2 left at ")


async def test_one_that_is_fenced_loses_all_and_joins_again() -> None:
    async with kafka_cluster() as kafka:
        (a,) = await kafka.consumers(1, group="app", topics="orders", protocol="consumer")
        kafka.faults.when("ConsumerGroupHeartbeat", member=a.member_id).refuse("FENCED_MEMBER_EPOCH")
        await kafka.clock.advance(20)
        assert ("lost", tuple(sorted(ALL))) in a.rebalance_callbacks
        assert a.assigned == ALL
        await kafka.group("app").expire_member(a.member_id)
        await kafka.clock.advance(20)
        assert a.assigned == ALL
        assert [what for what, _ in a.rebalance_callbacks].count("lost") == 2


async def test_a_static_member_comes_back_to_what_it_had() -> None:
    async with kafka_cluster() as kafka:
        static = {"group": "app", "topics": "orders", "protocol": "consumer"}
        a, b = await kafka.consumers(2, instance_ids=["one", "two"], **static)  # type: ignore[arg-type]
        had = b.assigned
        b.leave()
        await kafka.clock.advance(10)
        assert a.assigned == ALL - had
        (again,) = await kafka.consumers(1, instance_ids=["two"], **static)  # type: ignore[arg-type]
        assert again.assigned == had


async def test_subscriptions_by_expression_and_the_coordinators_assignor() -> None:
    async with kafka_cluster() as kafka:
        (a,) = await kafka.consumers(1, group="app", regex="ord.*", protocol="consumer", remote_assignor="range")
        await kafka.clock.advance(20)
        assert a.assigned == ALL
        assert (await kafka.group("app").describe()).protocol == "range"
        await kafka.create_topic("ordinals", 1)
        await kafka.clock.advance(60)
        assert a.assigned == ALL | {("ordinals", 0)}


async def test_another_subscription_and_topics_that_grow() -> None:
    async with kafka_cluster() as kafka:
        await kafka.create_topic("payments", 1)
        (a,) = await kafka.consumers(1, group="app", topics="orders", protocol="consumer")
        a.subscribe("payments")
        await kafka.clock.advance(20)
        assert a.assigned == {("payments", 0)}
        await kafka.add_partitions("payments", 1)
        await kafka.clock.advance(20)
        assert a.assigned == {("payments", 0), ("payments", 1)}


async def test_a_group_goes_over_member_by_member() -> None:
    async with kafka_cluster() as kafka:
        (old,) = await kafka.consumers(1, group="app", topics="orders")
        (new,) = await kafka.consumers(1, group="app", topics="orders", protocol="consumer")
        assert len(old.assigned) == len(new.assigned) == 2
        view = await kafka.group("app").describe()
        assert sorted(member.type for member in view.members) == ["classic", "consumer"]
        old.leave()
        await kafka.clock.advance(20)
        assert new.assigned == ALL


async def test_what_belongs_to_the_other_protocol_is_refused() -> None:
    async with kafka_cluster() as kafka:
        with pytest.raises(ValueError, match="remote_assignor names one of its assignors"):
            await kafka.consumers(1, group="app", topics="orders", protocol="consumer", assignors="range")
        with pytest.raises(ValueError, match="regex and remote_assignor are of consumer groups"):
            await kafka.consumers(1, group="app", regex="ord.*")
        with pytest.raises(ValueError, match="regex and remote_assignor are of consumer groups"):
            await kafka.consumers(1, group="app", topics="orders", remote_assignor="range")
        with pytest.raises(ValueError, match=r"session_timeout_ms: .* config=\{'group.consumer.session.timeout.ms'"):
            await kafka.consumers(1, "app", "orders", protocol="consumer", session_timeout_ms=10_000)


async def test_options_that_there_are_not_or_that_are_no_numbers_are_refused() -> None:
    async with kafka_cluster() as kafka:
        with pytest.raises(TypeError, match="no option session_timeout; did you mean session_timeout_ms"):
            await kafka.consumers(1, "app", "orders", session_timeout=10)  # type: ignore[call-arg]
        with pytest.raises(TypeError, match="no option xyz; there are rack_id, session_timeout_ms"):
            await kafka.consumers(1, "app", "orders", xyz=10)  # type: ignore[call-arg]
        with pytest.raises(TypeError, match="session_timeout_ms='10s': a whole number of milliseconds"):
            await kafka.consumers(1, "app", "orders", session_timeout_ms="10s")  # type: ignore[arg-type]


async def test_members_of_a_broker_elsewhere() -> None:
    quick = {"group.consumer.min.heartbeat.interval.ms": 50, "group.consumer.heartbeat.interval.ms": 50}
    async with (
        Cluster(topics={"orders": 4}, config=quick) as kafka,
        RemoteCluster(kafka.address) as remote,
    ):
        a, b = await remote.consumers(2, group="app", topics="orders", protocol="consumer")
        assert a.assigned | b.assigned == ALL
        assert (await remote.group("app").wait_stable(2)).epoch == a.epoch
