"""Benchmark with Kafka's kafka-producer-perf-test and kafka-consumer-perf-test, against groupcoord and a real Kafka.

Each server in turn, on a new topic of one partition each time. ``BENCH_KAFKA_TOOLS_ROUNDS`` says how many rounds (3).
"""

import contextlib
import itertools
import os
import re
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from typing import NamedTuple

from bench.servers import Running, groupcoord, kafka
from bench.table import Table
from bench.topics import create_topics, delete_topic
from tests.real_kafka.image import DEFAULT_VERSION
from tests.real_kafka.kafka_java import libs_of

ROUNDS = int(os.environ.get("BENCH_KAFKA_TOOLS_ROUNDS", "3"))
RECORDS = {100: 500_000, 1024: 100_000}
"""Bytes of a record, and how many are measured."""
WARM_UP = {100: 200_000, 1024: 40_000}
"""How many are produced before those, while Java compiles."""
ACKS = ("0", "1", "all")
COMPRESSIONS = ("none", "lz4")
CONSUMED_ACKS = "1"
PATIENCE_S = 300
SERVERS = ("Kafka", "groupcoord", "--data-dir")
_STEADY = re.compile(r"steady state records sent, .*\(([\d.]+) MB/sec\)")


class Measured(NamedTuple):
    """Megabytes (2²⁰ bytes) per second as the tool says it, and processor time of the server for each of them (ms)."""

    per_second: float
    processor_ms: float


Rounds = list[list[Measured]]
"""What each of SERVERS came to, for each round."""


def run() -> Iterator[Table]:
    """A table for each size of records and each tool. Raises RealKafkaUnavailable without Java or Kafka's jars."""
    with contextlib.ExitStack() as stack:
        peer = stack.enter_context(kafka())  # first: without it nothing else can be measured
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="groupcoord-bench-"))
        servers = [
            peer,
            stack.enter_context(groupcoord("--dev", loop="uvloop")),
            stack.enter_context(groupcoord("--dev", "--data-dir", directory, loop="uvloop")),
        ]
        for size in RECORDS:
            produced = _table("kafka-producer-perf-test", size, "acks")
            consumed = _table("kafka-consumer-perf-test", size)
            for compression in COMPRESSIONS:
                for acks in ACKS:
                    rounds = [[_both(server, size, acks, compression) for server in servers] for _ in range(ROUNDS)]
                    produced.add(compression, acks, *_figures([[each[0] for each in row] for row in rounds]))
                    if acks == CONSUMED_ACKS:
                        consumed.add(compression, *_figures([[each[1] for each in row] for row in rounds]))
            yield produced
            yield consumed


def _table(tool: str, size: int, *more: str) -> Table:
    return Table(
        f"{tool}, records of {size:,} bytes: MB/s, of Kafka's, and ms of the server's processor time for each MB",
        *("compression", *more),
        *SERVERS,
        *(f"{name}: ratio" for name in SERVERS[1:]),
        *(f"{name}: ms/MB" for name in SERVERS),
    )


def _figures(rounds: Rounds) -> Iterator[str]:
    servers = range(len(SERVERS))
    for index in servers:
        yield f"{statistics.median(row[index].per_second for row in rounds):.1f}"
    for index in servers[1:]:
        yield f"{statistics.median(row[index].per_second / row[0].per_second for row in rounds):.2f}"
    for index in servers:
        yield f"{statistics.median(row[index].processor_ms for row in rounds):.1f}"


def _both(server: Running, size: int, acks: str, compression: str) -> tuple[Measured, Measured]:
    """Produce to a new topic, and consume it; only where its figure is wanted. The topic is gone afterwards."""
    count = WARM_UP[size] + RECORDS[size]
    create_topics(server.port, ["bench"], 1, {"retention.bytes": "-1"})
    produced = _measured(server, count * size, lambda: _produce(server.port, size, count, acks, compression))
    consumed = produced
    if acks == CONSUMED_ACKS:
        consumed = _measured(server, count * size, lambda: _consume(server.port, count))
    delete_topic(server.port, "bench")
    return produced, consumed


def _measured(server: Running, total: int, tool: Callable[[], float]) -> Measured:
    before = server.processor_seconds
    per_second = tool()
    return Measured(per_second, (server.processor_seconds - before) * 1_000 / (total / (1 << 20)))


def _produce(port: int, size: int, count: int, acks: str, compression: str) -> float:
    said = _tool(
        *("ProducerPerformance", "--bootstrap-server", f"127.0.0.1:{port}", "--topic", "bench"),
        *("--record-size", str(size), "--num-records", str(count), "--warmup-records", str(WARM_UP[size])),
        *("--throughput", "-1", "--command-property", f"acks={acks}", f"compression.type={compression}"),
    )
    found = _STEADY.search(said)
    if found is None:
        raise SystemExit(f"bench: kafka-producer-perf-test said no figure:\n{said}")
    return float(found.group(1))


def _consume(port: int, count: int) -> float:
    said = _tool(
        *("ConsumerPerformance", "--bootstrap-server", f"127.0.0.1:{port}", "--topic", "bench"),
        *("--num-records", str(count), "--timeout", "60000"),
    )
    lines = [line.split(", ") for line in said.splitlines()]
    pairs = itertools.pairwise(lines)  # names, and what stands under them
    figures = next((dict(zip(names, row, strict=True)) for names, row in pairs if "fetch.MB.sec" in names), {})
    if int(figures.get("data.consumed.in.nMsg", 0)) < count:
        raise SystemExit(f"bench: kafka-consumer-perf-test did not read {count:,} records:\n{said}")
    return float(figures["fetch.MB.sec"])


def _tool(name: str, *options: str) -> str:
    """What a tool of Kafka's prints."""
    java = ["java", "-Xmx512m", "-cp", f"{libs_of(DEFAULT_VERSION)}/*", f"org.apache.kafka.tools.{name}"]
    ended = subprocess.run([*java, *options], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    if ended.returncode:
        raise SystemExit(f"bench: {name} ended with {ended.returncode}:\n{ended.stdout}{ended.stderr}")
    return ended.stdout
