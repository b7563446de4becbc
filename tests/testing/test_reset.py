"""A reset brings a cluster back to its beginning, at the same address."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from groupcoord.server.serving_loop import UnexpectedError
from groupcoord.testing import Cluster
from groupcoord.testing.faults.rulebook import FaultRulesFailed
from groupcoord.testing.record_writing import ProducerRecord
from tests.server.sockets import PATIENCE_SECONDS, with_its_ports

pytestmark = pytest.mark.asyncio
ORDERS = {"orders": 2}


async def test_nothing_is_left_but_the_settings() -> None:
    async with Cluster(topics=ORDERS, clock="manual", config={"offsets.retention.minutes": 5}, brokers=2) as kafka:
        group, transaction = kafka.group("app"), kafka.transaction("billing")
        addresses, start_ms, trace = kafka.addresses, kafka.clock.now_ms(), kafka.trace
        first = await kafka.consumers(1, group="app", topics="orders")
        await kafka.create_topic("invoices")
        await kafka.produce("orders", b"an espresso")
        producer = kafka.manual_producer("billing")
        await producer.init()
        await kafka.clock.advance(100)
        kafka.faults.when("Heartbeat").drop().optional()
        before = trace.text()

        await kafka.reset()

        assert kafka.addresses == addresses
        assert (kafka.clock.now_ms(), kafka.clock.deadlines()) == (start_ms, [])
        assert (len(kafka.trace), trace.text()) == (0, before)
        assert (await kafka.list_groups(), await kafka.list_transactions()) == ([], [])
        assert (await group.state(), await transaction.state()) == ("Dead", "Dead")
        assert [topic.name for topic in kafka.core.broker.topics.all()] == ["__consumer_offsets", "orders"]
        assert await kafka.records("orders") == []
        assert kafka.faults.rules == ()
        assert kafka.core.config.offsets_retention_minutes == 5
        again = await kafka.consumers(1, group="app", topics="orders")
        assert [each.client_id for each in again] == [each.client_id for each in first]
        assert [each.member_id for each in again] == [each.member_id for each in first]


async def test_records_without_a_key_go_where_they_went_before() -> None:
    async with Cluster(topics={"orders": 50}) as kafka:
        went = []
        for _ in range(2):
            sent = await kafka.produce("orders", records=[ProducerRecord(b"x" * 20_000) for _ in range(10)])
            went.append([each.partition for each in sent])
            await kafka.reset()
        assert went[0] == went[1]
        assert len(set(went[0])) > 1


async def test_members_of_before_have_vanished() -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        (auto,) = await kafka.consumers(1, group="app", topics="orders")
        manual, modern = kafka.manual_member("app", "orders"), kafka.manual_consumer("new", "orders")
        producer = kafka.manual_producer("billing")
        await modern.join()
        await kafka.reset()
        await kafka.clock.advance(100)
        assert len(kafka.trace) == 0
        asks: list[Callable[[], object]] = [manual.join, modern.heartbeat, producer.init, auto.leave]
        for ask in asks:
            with pytest.raises(RuntimeError, match="has vanished: it sends nothing any more"):
                ask()


async def test_a_member_of_before_that_vanishes_once_more_disturbs_nobody() -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        old = kafka.manual_member("app", "orders")
        await old.rejoin()
        await kafka.reset()
        new = kafka.manual_member("app", "orders")
        joining = new.join()
        old.vanish()
        await kafka.clock.advance(3)
        await joining


@pytest.mark.parametrize("turns", range(8))
async def test_a_reset_that_is_cancelled_leaves_no_port_open(turns: int) -> None:
    async with Cluster(clock="manual") as kafka:
        host, port = kafka.address.split(":")
        _, writer = await asyncio.open_connection(host, int(port))
        resetting = asyncio.create_task(kafka.reset())
        for _ in range(turns):
            await asyncio.wait([resetting], timeout=0)
        resetting.cancel()
        with suppress(asyncio.CancelledError):
            await resetting
        writer.close()
    with pytest.raises(OSError, match="Connect call failed"):
        await asyncio.open_connection(host, int(port))


async def test_clients_go_on_with_the_fresh_cluster() -> None:
    async with Cluster(topics=ORDERS) as kafka:
        settings = {"bootstrap_servers": kafka.address, "retry_backoff_ms": 10}
        reading = {"auto_offset_reset": "earliest", "enable_auto_commit": False, "heartbeat_interval_ms": 20}
        async with (
            AIOKafkaProducer(**settings) as producer,
            AIOKafkaConsumer("orders", group_id="app", **reading, **settings) as consumer,
        ):
            await producer.send_and_wait("orders", b"before")
            await kafka.group("app").wait_stable(members=1)
            assert (await asyncio.wait_for(consumer.getone(), PATIENCE_SECONDS)).value == b"before"
            await kafka.reset()
            await producer.send_and_wait("orders", b"after")
            assert [each.value for each in await kafka.records("orders")] == [b"after"]
            await kafka.group("app").wait_stable(members=1)
            assert (await asyncio.wait_for(consumer.getone(), PATIENCE_SECONDS)).value == b"after"


async def test_a_cluster_that_was_stopped_runs_again() -> None:
    async def story() -> None:
        async with Cluster(topics=ORDERS) as kafka:
            address = kafka.address
            await kafka.stop()
            await kafka.reset()
            assert kafka.address == address
            async with AIOKafkaProducer(bootstrap_servers=address) as producer:
                await producer.send_and_wait("orders", b"an espresso")

    await with_its_ports(story)


async def test_who_waits_for_an_answer_is_told_that_none_comes_and_other_waits_go_on() -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        member = kafka.manual_member("app", "orders")
        await member.rejoin()
        hold = kafka.faults.when("Produce").hold()
        producing = asyncio.create_task(kafka.produce("orders", b"an espresso"))
        waiting = asyncio.create_task(kafka.group("app").wait_empty())
        await hold.wait()
        (held,) = hold.waiting
        await kafka.reset()
        with pytest.raises(ConnectionResetError, match="the cluster was stopped or reset"):
            await producing
        hold.release()
        with pytest.raises(ValueError, match="was released before"):
            hold.release(held)
        again = kafka.manual_member("app", "orders")
        await again.rejoin()
        await again.leave()
        assert (await waiting).state == "Empty"
        assert kafka.trace.of(group="app")


async def test_appends_that_were_held_back_are_gone() -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        held = kafka.hold_append()
        joining = kafka.manual_member("app", "orders", instance_id="a")
        joining.join()
        await kafka.settle()
        joining.sync()
        await held.wait()
        await kafka.reset()
        held.release()
        assert len(kafka.trace) == 0


async def test_rules_that_never_acted_are_told_before_anything_is_done() -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        kafka.faults.when("Heartbeat").drop()
        await kafka.create_topic("invoices")
        for refused in (kafka.reset, kafka.reset):
            with pytest.raises(FaultRulesFailed, match="rule 1 never acted"):
                await refused()
        assert "invoices" in kafka.core.broker.topics
        await kafka.reset(rules=False)
        assert "invoices" not in kafka.core.broker.topics
        kafka.fail_append("NOT_ENOUGH_REPLICAS")
        with pytest.raises(AssertionError, match="fail_append NOT_ENOUGH_REPLICAS"):
            await kafka.check()
        await kafka.check(rules=False)
        await kafka.reset(rules=False)


async def test_errors_in_the_server_are_told_once() -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        await kafka.produce("orders", b"an espresso")
        problem = ZeroDivisionError("in the server")
        kafka._engine.server.unexpected_errors.append(UnexpectedError(problem, None, None))
        with pytest.raises(ExceptionGroup, match="errors in the server") as raised:
            await kafka.reset(rules=False)
        assert raised.value.exceptions == (problem,)
        assert "cluster asks Produce" in raised.value.__notes__[0]
        assert len(await kafka.records("orders")) == 1
        await kafka.reset()
        assert kafka.server_errors == []
        kafka._engine.server.unexpected_errors.append(UnexpectedError(problem, None, None))
        await kafka.stop()
        with pytest.raises(ExceptionGroup) as raised:
            await kafka.check()
        assert raised.value.exceptions == (problem,)
        assert kafka.server_errors == [problem]


async def test_a_clock_that_runs_by_itself_goes_on() -> None:
    async with Cluster(topics=ORDERS, clock="real") as kafka:
        before = kafka.clock.now_ms()
        await kafka.reset()
        assert before <= kafka.clock.now_ms() < before + 60_000
    async with Cluster(topics=ORDERS, clock="real", start_ms=1_000) as kafka:
        await kafka.reset()
        assert kafka.clock.now_ms() < 60_000


async def test_what_is_kept_in_a_directory_is_not_forgotten(tmp_path: Path) -> None:
    async with Cluster(topics=ORDERS, data_dir=tmp_path) as kafka:
        await kafka.produce("orders", b"an espresso")
        with pytest.raises(ValueError, match="a cluster with data_dir keeps what is there"):
            await kafka.reset()
        assert len(await kafka.records("orders")) == 1


async def test_a_port_of_its_own_choice_is_never_free_meanwhile() -> None:
    async with Cluster(topics=ORDERS) as kafka:
        host, port = kafka.address.split(":")
        resetting = asyncio.create_task(kafka.reset())
        attempts = 0
        while not resetting.done():
            _, writer = await asyncio.open_connection(host, int(port))
            writer.close()
            attempts += 1
        await resetting
        assert attempts


async def test_a_synchronous_cluster_is_reset_too() -> None:
    with Cluster(topics=ORDERS, clock="manual").sync() as kafka:
        kafka.create_topic("invoices")
        kafka.faults.when("Heartbeat").drop()
        with pytest.raises(FaultRulesFailed):
            kafka.reset()
        kafka.reset(rules=False)
        assert kafka.faults.rules == ()
        with pytest.raises(ValueError, match="invoices"):
            kafka.records("invoices")
