"""An ordinary aiokafka consumer, which prints what it reads."""

import asyncio
import sys

from aiokafka import AIOKafkaConsumer


async def main() -> None:
    consumer = AIOKafkaConsumer(
        "orders",
        bootstrap_servers=sys.argv[1],
        group_id="app",
        client_id=sys.argv[2],
        auto_offset_reset="earliest",
        heartbeat_interval_ms=50,
        session_timeout_ms=45_000,  # as the others have it
        rebalance_timeout_ms=60_000,
    )
    async with consumer:
        async for message in consumer:
            print(message.value.decode(), flush=True)


asyncio.run(main())
