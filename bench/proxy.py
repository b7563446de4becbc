"""Benchmark of the proxy: the time of a request and the bytes per second, beside a plain TCP relay and a direct connection.

Each figure is measured on all three ways in turns, in one run, so that they share the state of the machine.
"""

import statistics
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack

from bench.servers import groupcoord, proxy, relay
from bench.table import Table
from bench.wire import Connection
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.apis.fetch import FetchPartition, FetchTopic
from groupcoord.protocol.apis.produce import PartitionProduceData, TopicProduceData
from groupcoord.protocol.batches.record_batch import build_batch
from groupcoord.protocol.batches.records import Record
from groupcoord.protocol.messages import FetchRequest, HeartbeatRequest, ProduceRequest

HEARTBEATS = 1_000
ROUNDS = 5
BATCHES = 40
IN_FLIGHT = 5
BATCH_BYTES = 900_000
_VERSION = 12  # the last that names topics
_MB = 1_000_000


def run() -> Iterator[Table]:
    """Yield the table."""
    table = Table(
        f"proxy: {HEARTBEATS * ROUNDS:,} heartbeats, one after the other; {BATCHES * ROUNDS} batches of 0.9 MB, "
        f"{IN_FLIGHT} in flight",
        "way",
        "median µs",
        "p99 µs",
        "produce MB/s",
        "fetch MB/s",
    )
    with ExitStack() as stack:
        server = stack.enter_context(groupcoord("--topic", "bench:1"))
        ways = {
            "direct": server.port,
            "TCP relay (asyncio)": stack.enter_context(relay(server.port)).port,
            "groupcoord proxy": stack.enter_context(proxy(server.port)).port,
        }
        connections = {way: Connection(port) for way, port in ways.items()}
        _warm_up(connections)
        times: dict[str, list[float]] = {way: [] for way in ways}
        produced: dict[str, float] = dict.fromkeys(ways, 0.0)
        fetched: dict[str, float] = dict.fromkeys(ways, 0.0)
        for _ in range(ROUNDS):
            for way, connection in connections.items():
                times[way] += _heartbeats(connection)
                produced[way] += _produce(connection)
                fetched[way] += _fetch(connection)
        for connection in connections.values():
            connection.close()
    total_mb = BATCHES * BATCH_BYTES * ROUNDS / _MB
    for way, taken in times.items():
        p99 = statistics.quantiles(taken, n=100)[98]
        table.add(
            way,
            f"{statistics.median(taken) * 1e6:.0f}",
            f"{p99 * 1e6:.0f}",
            f"{total_mb / produced[way]:.0f}",
            f"{total_mb / fetched[way]:.0f}",
        )
    yield table


def _warm_up(connections: Mapping[str, Connection]) -> None:
    for connection in connections.values():
        _heartbeats(connection)
        _produce(connection)
        _fetch(connection)


def _heartbeats(connection: Connection) -> list[float]:
    """Seconds of each."""
    request = HeartbeatRequest(group_id="bench", generation_id=1, member_id="m")
    times = []
    for _ in range(HEARTBEATS):
        began = time.perf_counter()
        connection.ask(ApiKey.HEARTBEAT, request)
        times.append(time.perf_counter() - began)
    return times


def _produce(connection: Connection) -> float:
    """Seconds of all."""
    records = build_batch([Record(0, 0, None, bytes(BATCH_BYTES))])
    data = PartitionProduceData(index=0, records=records)
    request = ProduceRequest(
        acks=1, timeout_ms=60_000, topic_data=(TopicProduceData(name="bench", partition_data=(data,)),)
    )
    began = time.perf_counter()
    for number in range(BATCHES + IN_FLIGHT):
        if number < BATCHES:
            connection.send(ApiKey.PRODUCE, request, _VERSION)
        if number >= IN_FLIGHT:
            connection.receive(ApiKey.PRODUCE, _VERSION)
    return time.perf_counter() - began


def _fetch(connection: Connection) -> float:
    """Seconds of all."""
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=BATCH_BYTES)
    request = FetchRequest(max_wait_ms=0, min_bytes=1, topics=(FetchTopic(topic="bench", partitions=(partition,)),))
    began = time.perf_counter()
    for _ in range(BATCHES):
        connection.ask(ApiKey.FETCH, request, _VERSION)
    return time.perf_counter() - began
