"""The producer: orders of a few customers, one after the other, at a steady pace."""

import asyncio
import contextlib
import json
from collections.abc import Callable

from aiokafka import AIOKafkaProducer

from groupcoord.cli.demo.observed_group import RecordPosition

CUSTOMERS = tuple(f"customer-{number}" for number in range(1, 25))
ORDERS_PER_SECOND = 25


async def produce(
    producer: AIOKafkaProducer, topic: str, stopping: asyncio.Event, acknowledged: Callable[[RecordPosition, str], None]
) -> None:
    """Send one order after the other until ``stopping``; each is ``acknowledged`` before this returns.

    The customer is the key: so all orders of one customer are in one partition, in the order in which they were made.
    """
    number = 0
    while not stopping.is_set():
        customer = CUSTOMERS[number % len(CUSTOMERS)]
        order = json.dumps({"order": number, "customer": customer, "cents": 100 + number * 37 % 9_900})
        stored = await producer.send_and_wait(topic, key=customer.encode(), value=order.encode())
        acknowledged(RecordPosition(stored.partition, stored.offset), customer)
        number += 1
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stopping.wait(), 1 / ORDERS_PER_SECOND)
