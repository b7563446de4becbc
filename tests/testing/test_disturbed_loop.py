"""The exactly-once loop of a real client goes on while coordinators move and restart in the middle of its transactions."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import aiokafka
import pytest
from aiokafka import TopicPartition

from groupcoord.testing import Cluster

pytestmark = [pytest.mark.asyncio, pytest.mark.clients, pytest.mark.slow]

ORDERS, COUNT = TopicPartition("orders", 0), 6
Disturb = Callable[[Cluster, int], Awaitable[None]]


async def bill(address: str) -> None:
    """Writes an invoice for each order."""
    consumer = aiokafka.AIOKafkaConsumer(
        bootstrap_servers=address, group_id="billing", enable_auto_commit=False, auto_offset_reset="earliest"
    )
    consumer.assign([ORDERS])
    producer = aiokafka.AIOKafkaProducer(bootstrap_servers=address, transactional_id="billing")
    async with producer, consumer:
        while True:
            order = await consumer.getone()
            async with producer.transaction():
                await producer.send_and_wait("invoices", order.value, partition=0)
                await producer.send_offsets_to_transaction({ORDERS: order.offset + 1}, "billing")


async def move_transactions(kafka: Cluster, to: int) -> None:
    await kafka.transaction("billing").move_coordinator(to)


async def move_group(kafka: Cluster, to: int) -> None:
    await kafka.group("billing").move_coordinator(to)


async def move_both_and_the_log(kafka: Cluster, to: int) -> None:
    await move_transactions(kafka, to)
    await move_group(kafka, to)
    await kafka.move_leader("invoices", 0, to)


async def restart(kafka: Cluster, _: int) -> None:
    await kafka.restart()


@pytest.mark.parametrize("api", ["TxnOffsetCommit", "EndTxn"])
@pytest.mark.parametrize("disturb", [move_transactions, move_group, move_both_and_the_log, restart])
async def test_each_order_gets_one_invoice(disturb: Disturb, api: str) -> None:
    async with Cluster(topics={"orders": 1, "invoices": 1}, brokers=2) as kafka:
        values = [b"%d" % number for number in range(COUNT)]
        await kafka.produce("orders", *values)
        billing = asyncio.create_task(bill(kafka.address))
        for number in range(COUNT):
            held = kafka.faults.when(api, nth=1).hold()
            await held.wait(timeout=60)
            await disturb(kafka, 1 + number % 2)
            held.release()
        await kafka.wait_records("invoices", COUNT, timeout=60)
        billing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await billing
        assert [record.value for record in await kafka.records("invoices")] == values
        assert await kafka.group("billing").wait_committed("orders", 0, COUNT, timeout=60) == COUNT
