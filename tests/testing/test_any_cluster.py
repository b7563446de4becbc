"""The same steps on a cluster in this process and on one at the other end of a socket, with and without asyncio."""

import inspect

import pytest

from groupcoord import Cluster, KafkaCluster, RemoteCluster, WaitTimeoutError


async def story(kafka: KafkaCluster) -> None:
    await kafka.create_topic("orders", 2)
    a, b = await kafka.consumers(2, "app", ["orders"])
    (sent,) = await kafka.produce("orders", b"an espresso", partition=1)
    assert sent[:3] == ("orders", 1, 0)
    with pytest.raises(ValueError, match="there is no orders-2: orders has 2 partitions, counted from 0"):
        await kafka.produce("orders", b"an espresso", partition=2)
    group = kafka.group("app")
    assert await group.committed("orders", 1) is None
    for topic, number, why in (
        ("ordres", 0, "there is no topic 'ordres'; did you mean 'orders'"),
        ("orders", 2, "there is no orders-2"),
    ):
        with pytest.raises(ValueError, match=why):
            await group.committed(topic, number)
        with pytest.raises(WaitTimeoutError, match=f"should commit 5 for {topic}-{number}: .*{why[1:]}"):
            await group.wait_committed(topic, number, 5, timeout=0)
    with pytest.raises(WaitTimeoutError, match="It has committed None"):
        await group.wait_committed("orders", 1, 5, timeout=0)
    (mine,) = a.assigned
    a.commit({mine: 1})
    assert await kafka.group("app").wait_committed(*mine, 1) == 1
    assert await kafka.list_groups() == ["app"]
    await kafka.wait_until(lambda: b.is_stable, "b should be stable")
    with pytest.raises(ValueError, match="3 members have 1 instance ids"):
        await kafka.consumers(3, "app", "orders", instance_ids=["one"])
    with pytest.raises(ValueError, match="count=0: a number of members, 1 or more"):
        await kafka.consumers(0, "app", "orders")
    with pytest.raises(ValueError, match="a group has a name that is not empty"):
        await kafka.consumers(1, "", "orders")
    with pytest.raises(
        ValueError, match='protocol=\'kip848\': "classic", or "consumer" for a consumer group of KIP-848'
    ):
        await kafka.consumers(1, "app", "orders", protocol="kip848")  # type: ignore[arg-type]
    await kafka.group("app").remove_member(b.client_id)
    assert b.member_id not in await kafka.group("app").assignment()
    await kafka.delete_topic("orders")


@pytest.mark.slow
@pytest.mark.asyncio
async def test_the_same_steps_in_this_process_and_elsewhere() -> None:
    async with Cluster(clock="manual") as kafka:
        await story(kafka)
    async with Cluster() as kafka, RemoteCluster(kafka.address) as remote:
        await story(remote)
        with pytest.raises(WaitTimeoutError, match="it should: not within 0 s"):
            await kafka.wait_until(lambda: False, "it should", timeout=0)
        assert kafka.brokers == remote.brokers


def test_the_same_elsewhere_without_asyncio() -> None:
    with Cluster().sync() as kafka, RemoteCluster(kafka.address).sync() as remote:
        remote.create_topic("orders", 2)
        (a,) = remote.consumers(1, "app", "orders")
        assert remote.group("app").wait_stable(members=1).assignment == {a.member_id: a.assigned}
        member = remote.manual_member("other", "orders")
        assert member.join().result().error_code == 0
        member.generation = 7
        assert member.generation == 7


def test_a_cluster_that_does_not_run_says_so() -> None:
    kafka = Cluster().sync()
    with pytest.raises(RuntimeError, match="use it inside its `with` block"):
        kafka.create_topic("orders")
    assert inspect.iscoroutinefunction(inspect.unwrap(Cluster.create_topic))


def test_transactions_without_asyncio() -> None:
    with Cluster(topics={"invoices": 1}, clock="manual").sync() as kafka, RemoteCluster(kafka.address).sync() as remote:
        producer = kafka.manual_producer("billing")
        producer.init().result()
        producer.produce("invoices", b"one").result()
        assert remote.transaction("billing").wait_ongoing("invoices").partitions == {("invoices", 0)}
        kafka.transaction("billing").abort()
        assert kafka.transaction("billing").wait_aborted() == remote.transaction("billing").describe()
        assert kafka.list_transactions() == remote.list_transactions() == ["billing"]


def test_rules_without_asyncio() -> None:
    with Cluster(topics={"orders": 1}, clock="manual").sync() as kafka:
        member = kafka.manual_member("app", "orders")
        member.rejoin()
        late = kafka.faults.when("Heartbeat").refuse("NOT_COORDINATOR")
        failing = kafka.fail_append("NOT_ENOUGH_REPLICAS", group="app")
        member.heartbeat()
        late.acted()
        member.commit({("orders", 0): 1})
        failing.acted()
        assert [rule.uses for rule in kafka.faults.rules] == [rule.uses for rule in kafka.append_rules] == [1]
        with pytest.raises(LookupError, match="there is no group 'other'"):
            kafka.group("other").lag()
