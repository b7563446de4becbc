"""Benchmark of producers: records per second of groupcoord's own, aiokafka and confluent-kafka, to groupcoord and Kafka."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterator
from statistics import median

import confluent_kafka
from aiokafka import AIOKafkaProducer

from bench.servers import groupcoord
from bench.table import Table
from groupcoord import Producer
from tests.real_kafka.broker import RealKafkaUnavailable
from tests.real_kafka.kafka_java import KafkaJava
from tests.real_kafka.process import KafkaProcess

RUNS = 5
CASES = ((100, 50_000), (1_000, 20_000))
"""Bytes of a value, and how many records."""
PARTITIONS = 4
LINGER_MS = 5

Run = Callable[[str, bytes, int], Awaitable[None]]


def run() -> list[Table]:
    """Each producer in turn, RUNS times, in this process; the median of each, and of the ratios of each turn."""
    names = list(PRODUCERS)
    table = Table(
        f"records per second, {PARTITIONS} partitions, acks=all", "server", "bytes", *names, "ratio to aiokafka"
    )
    for server, bootstrap in _servers():
        for size, count in CASES:
            turns = [
                {name: _rate(each, bootstrap, size, count) for name, each in PRODUCERS.items()} for _ in range(RUNS)
            ]
            rates = [median(turn[name] for turn in turns) for name in names]
            ratio = median(turn["groupcoord"] / turn["aiokafka"] for turn in turns)
            table.add(server, size, *(f"{rate:,.0f}" for rate in rates), f"{ratio:.2f}")
    return [table]


def _servers() -> Iterator[tuple[str, str]]:
    with groupcoord("--dev", "--topic", f"bench:{PARTITIONS}", loop="uvloop") as server:
        yield "groupcoord", f"127.0.0.1:{server.port}"
    with (
        contextlib.suppress(RealKafkaUnavailable),
        KafkaProcess({"num.partitions": str(PARTITIONS)}, java=KafkaJava) as broker,
    ):
        yield "Kafka", f"127.0.0.1:{broker.port}"


def _rate(each: Run, bootstrap: str, size: int, count: int) -> float:
    """Records per second, from the first ``send`` until all are acknowledged."""
    return count / asyncio.run(_timed(each, bootstrap, size, count))


async def _timed(each: Run, bootstrap: str, size: int, count: int) -> float:
    value = bytes(range(100)) * (size // 100)
    await each(bootstrap, value, 100)  # connections, metadata, producer id
    begin = time.perf_counter()
    await each(bootstrap, value, count)
    return time.perf_counter() - begin


async def _groupcoord(bootstrap: str, value: bytes, count: int) -> None:
    async with Producer(bootstrap, linger_ms=LINGER_MS) as producer:
        sent = [await producer.send("bench", value) for _ in range(count)]
        await producer.flush()
        for each in sent:
            each.result()


async def _aiokafka(bootstrap: str, value: bytes, count: int) -> None:
    async with AIOKafkaProducer(
        bootstrap_servers=bootstrap, linger_ms=LINGER_MS, acks="all", enable_idempotence=True
    ) as producer:
        sent = [await producer.send("bench", value) for _ in range(count)]
        await producer.flush()
        for each in sent:
            each.result()


async def _confluent(bootstrap: str, value: bytes, count: int) -> None:
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": bootstrap, "linger.ms": LINGER_MS, "enable.idempotence": True}
    )
    for number in range(count):
        producer.produce("bench", value)
        if number % 1_000 == 0:
            producer.poll(0)
    producer.flush()


PRODUCERS: dict[str, Run] = {"groupcoord": _groupcoord, "aiokafka": _aiokafka, "confluent-kafka": _confluent}
