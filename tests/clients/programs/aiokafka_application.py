"""A producer and a member of a group by aiokafka. What it is told and what it says: ``tests/clients/applications.py``."""

import asyncio
import sys
from typing import Any

import aiokafka

from tests.clients.programs.telling import say, told


class Listener(aiokafka.abc.ConsumerRebalanceListener):  # type: ignore[misc]
    """Says what the member has."""

    def on_partitions_assigned(self, assigned: Any) -> None:
        say("assigned", len(assigned))

    def on_partitions_revoked(self, revoked: Any) -> None:
        say("revoked", len(revoked))


async def main() -> None:
    """Run until told to end."""
    options = told()
    topic = options["topic"]
    common = {
        "bootstrap_servers": options["bootstrap"],
        "request_timeout_ms": int(options["request_timeout_ms"]),
        "retry_backoff_ms": 100,
    }
    producer = aiokafka.AIOKafkaProducer(**common, enable_idempotence=True)
    consumer = aiokafka.AIOKafkaConsumer(
        **common,
        group_id=options["group"],
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        heartbeat_interval_ms=100,
        session_timeout_ms=30_000,
        fetch_max_wait_ms=100,
    )
    consumer.subscribe([topic], listener=Listener())
    await producer.start()
    await consumer.start()
    wishes: asyncio.Queue[str] = asyncio.Queue()
    sending: set[asyncio.Task[None]] = set()

    async def send(partition: int, value: str) -> None:
        try:
            sent = await producer.send_and_wait(topic, value.encode(), partition=partition)
            say("acknowledged", sent.partition, sent.offset, value)
        except aiokafka.errors.KafkaError as problem:
            say("failed", problem)

    async def listen() -> None:
        reader = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        async for line in reader:
            verb, *words = line.decode().split()
            if verb == "send":
                task = asyncio.create_task(send(int(words[0]), words[1]))
                sending.add(task)
                task.add_done_callback(sending.discard)
            else:
                wishes.put_nowait(verb)
        wishes.put_nowait("end")

    listening = asyncio.create_task(listen())
    while True:
        if not wishes.empty():
            if wishes.get_nowait() == "end":
                break
            await consumer.commit()
            say("committed")
        for records in (await consumer.getmany(timeout_ms=50)).values():
            for record in records:
                say("read", record.partition, record.offset, record.value.decode())
    listening.cancel()
    await consumer.stop()
    await producer.stop()


if __name__ == "__main__":
    asyncio.run(main())
