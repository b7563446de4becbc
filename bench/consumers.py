"""Benchmark of consumers: records per second of groupcoord's own, aiokafka and confluent-kafka, from groupcoord and Kafka."""

import contextlib
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from operator import truediv
from typing import NamedTuple

from bench.servers import groupcoord
from bench.table import Table
from bench.wire import Connection
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.apis.create_topics import CreatableTopic
from groupcoord.protocol.apis.produce import PartitionProduceData, TopicProduceData
from groupcoord.protocol.batches.record_batch import build_batch
from groupcoord.protocol.batches.records import Record
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import CreateTopicsRequest, ProduceRequest
from tests.real_kafka.broker import RealKafkaUnavailable
from tests.real_kafka.kafka_java import KafkaJava
from tests.real_kafka.process import KafkaProcess

LIBRARIES = ("groupcoord", "aiokafka", "confluent-kafka")
ROUNDS = 5
BATCH_BYTES = 16_384
"""Kafka's ``batch.size``."""

_PRODUCE_VERSION = 12  # the last that names topics


class Case(NamedTuple):
    """A topic, and how it is read."""

    how: str
    record_bytes: int
    records: int
    partitions: int
    spread: int = 0
    """The records may have so many bytes more or less."""

    @property
    def topic(self) -> str:
        """The topic that has the records."""
        return f"bench-{self.record_bytes}-{self.records}-{self.partitions}-{self.spread}"

    @property
    def sizes(self) -> str:
        """The sizes of the records."""
        least, most = self.record_bytes - self.spread, self.record_bytes + self.spread
        return f"{least} to {most}" if self.spread else f"{self.record_bytes:,}"


CASES = (
    Case("getmany", 100, 200_000, 4),
    Case("getmany", 100, 200_000, 4, spread=50),
    Case("getmany", 1_000, 100_000, 4),
    Case("getmany", 100, 200_000, 300),
    Case("async for", 100, 200_000, 4),
    Case("async for", 100, 200_000, 300),
)


def run() -> Iterator[Table]:
    """Yield a table for each server. The median of some rounds, in each of which the libraries read one after the other."""
    with groupcoord("--dev", loop="uvloop") as server:
        yield _table("groupcoord", server.port)
    with (
        contextlib.suppress(RealKafkaUnavailable),
        KafkaProcess({"group.initial.rebalance.delay.ms": "0"}, java=KafkaJava) as broker,
    ):
        yield _table("Kafka", broker.port)


def _table(server: str, port: int) -> Table:
    connection = Connection(port)
    for case in {case.topic: case for case in CASES}.values():
        _fill(connection, case)
    connection.close()
    table = Table(
        f"records per second from {server}, and µs of the client's processor time for each",
        "how",
        "bytes",
        "partitions",
        *(column for name in LIBRARIES for column in (f"{name}/s", "µs")),
        *(f"to {name}" for name in LIBRARIES[1:]),
    )
    for case in CASES:
        rates: dict[str, list[float]] = {name: [] for name in LIBRARIES}
        costs: dict[str, list[float]] = {name: [] for name in LIBRARIES}
        for _ in range(ROUNDS):
            for name in LIBRARIES:
                rate, cost = _consume(name, case, port)
                rates[name].append(rate)
                costs[name].append(cost)
        table.add(
            case.how,
            case.sizes,
            case.partitions,
            *(
                figure
                for name in LIBRARIES
                for figure in (f"{statistics.median(rates[name]):,.0f}", f"{statistics.median(costs[name]):.2f}")
            ),
            *(f"{statistics.median(map(truediv, rates[LIBRARIES[0]], rates[name])):.2f}" for name in LIBRARIES[1:]),
        )
    return table


def _consume(library: str, case: Case, port: int) -> tuple[float, float]:
    """Records per second, and microseconds of processor time per record, of a process of its own."""
    command = [sys.executable, "-m", "bench.consume", library, case.how, str(port), case.topic, str(case.records)]
    rate, cost = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    return float(rate), float(cost)


def _fill(connection: Connection, case: Case) -> None:
    topic = CreatableTopic(name=case.topic, num_partitions=case.partitions, replication_factor=1)
    created = connection.ask(ApiKey.CREATE_TOPICS, CreateTopicsRequest(topics=(topic,), timeout_ms=60_000))
    _check(created.topics[0].error_code)
    dice = random.Random(case.topic)
    now_ms = int(time.time() * 1000)  # what is old would be deleted
    in_batch = BATCH_BYTES // case.record_bytes
    for partition in range(case.partitions):
        numbers = range(partition, case.records, case.partitions)
        for first in range(0, len(numbers), in_batch):
            count = len(numbers[first : first + in_batch])
            sizes = (case.record_bytes + dice.randint(-case.spread, case.spread) for _ in range(count))
            records = [Record(offset, now_ms + offset // 10, None, bytes(size)) for offset, size in enumerate(sizes)]
            _produce(connection, case.topic, partition, build_batch(records))


def _produce(connection: Connection, topic: str, partition: int, batch: bytes) -> None:
    data = TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=partition, records=batch),))
    request = ProduceRequest(acks=1, timeout_ms=60_000, topic_data=(data,))
    while error := (
        connection.ask(ApiKey.PRODUCE, request, _PRODUCE_VERSION).responses[0].partition_responses[0].error_code
    ):
        if error not in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER):
            _check(error)


def _check(error: int) -> None:
    if error:
        raise SystemExit(f"bench: {ErrorCode(error).name}")
