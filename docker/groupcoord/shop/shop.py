"""An application in a container: it sends three orders, and ends when a consumer of a group has read them."""

import asyncio
import os

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

ORDERS = ("an espresso", "a cappuccino", "a flat white")


async def main() -> None:
    """Send and read."""
    servers = os.environ["BOOTSTRAP_SERVERS"]
    async with AIOKafkaProducer(bootstrap_servers=servers) as producer:
        for order in ORDERS:
            await producer.send_and_wait("orders", order.encode())
    settings = {"group_id": "baristas", "auto_offset_reset": "earliest"}
    async with AIOKafkaConsumer("orders", bootstrap_servers=servers, **settings) as consumer:
        for _ in ORDERS:
            record = await consumer.getone()
            print("order:", record.value.decode(), flush=True)


asyncio.run(main())
