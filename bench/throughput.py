"""(d) Benchmark of producing and consuming with aiokafka, beside the same bytes through an echo server."""

import asyncio
import socket
import time

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from bench.servers import echo, groupcoord
from bench.table import Table

RECORD_BYTES = 1000
RECORDS = 50_000
CHUNK = 100 * RECORD_BYTES


def run() -> list[Table]:
    """MB/s of record values."""
    table = Table(f"{RECORDS:,} records of {RECORD_BYTES} bytes", "what", "MB/s")
    with groupcoord("--dev", "--topic", "bench:1", loop="uvloop") as server:
        produced, consumed = asyncio.run(_through_aiokafka(f"127.0.0.1:{server.port}"))
    with echo("uvloop") as peer:
        echoed = _through_echo(peer.port)
    total = RECORD_BYTES * RECORDS / 1e6
    table.add("aiokafka produces", f"{total / produced:.1f}")
    table.add("aiokafka consumes", f"{total / consumed:.1f}")
    table.add("the same bytes there and back through an echo server", f"{total / echoed:.1f}")
    return [table]


async def _through_aiokafka(bootstrap: str) -> tuple[float, float]:
    value = bytes(range(250)) * (RECORD_BYTES // 250)
    begin = time.perf_counter()
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, max_batch_size=CHUNK, linger_ms=5) as producer:
        sent = [await producer.send("bench", value, partition=0) for _ in range(RECORDS)]
        await asyncio.gather(*sent)
    produced = time.perf_counter() - begin
    begin = time.perf_counter()
    async with AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        partition = TopicPartition("bench", 0)
        consumer.assign([partition])
        await consumer.seek_to_beginning(partition)
        count = 0
        while count < RECORDS:
            for records in (await consumer.getmany(timeout_ms=10_000)).values():
                count += len(records)
    return produced, time.perf_counter() - begin


def _through_echo(port: int) -> float:
    chunk = bytes(CHUNK)
    with socket.create_connection(("127.0.0.1", port)) as connection:
        begin = time.perf_counter()
        for _ in range(RECORDS * RECORD_BYTES // CHUNK):
            connection.sendall(chunk)
            left = CHUNK
            while left:
                left -= len(connection.recv(left))
        return time.perf_counter() - begin
