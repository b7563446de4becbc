"""Is a member of a group until it is killed: ``python member.py HOST:PORT GROUP NAME``."""

import asyncio
import sys

import groupcoord as gc


async def main(address: str, group: str, name: str) -> None:
    settings = {"client_id": name, "heartbeat_interval_ms": 100}
    async with gc.Consumer("orders", bootstrap_servers=address, group_id=group, **settings) as consumer:
        while True:
            await consumer.getmany(timeout_ms=100)
            if consumer.assignment():
                print("joined", flush=True)


asyncio.run(main(*sys.argv[1:]))
