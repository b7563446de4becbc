"""Benchmark of Produce (one batch) and Fetch without sockets, from the bytes of the request to those of the response.

``python -m bench.batches produce-100-lz4`` profiles one of CASES. It prints the 5th percentile of the times of many rounds, as
``bench core`` does.
"""

import gc
import random
import sys
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from bench.core import profile
from bench.offsets import NOW_MS, Chance
from bench.table import Table
from groupcoord.cluster.cluster_core import ClusterCore
from groupcoord.config.broker_config import load as config_of
from groupcoord.core.effects import Reply
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.apis.fetch import FetchPartition, FetchTopic
from groupcoord.protocol.apis.produce import PartitionProduceData, TopicProduceData
from groupcoord.protocol.batches.compression import Compression
from groupcoord.protocol.batches.record_batch import build_batch
from groupcoord.protocol.batches.records import Record
from groupcoord.protocol.framing import FrameBuffer, encode_request
from groupcoord.protocol.messages import FetchRequest, ProduceRequest
from groupcoord.server.connection import RequestCache, ResponseCache, in_chunks

BATCH_BYTES = 16_384
FETCH_BYTES = 1 << 20
SECONDS = 2.0
TOPIC = "bench"
_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class Case(NamedTuple):
    """``spread``: sizes of records differ by so much at most, either way."""

    record_bytes: int
    compression: Compression = Compression.NONE
    spread: int = 0


CASES = {
    "100": Case(100),
    "100-mixed": Case(100, spread=50),
    "1024": Case(1024),
    "100-lz4": Case(100, Compression.LZ4),
    "100-mixed-lz4": Case(100, Compression.LZ4, spread=50),
    "1024-lz4": Case(1024, Compression.LZ4),
}


def run() -> list[Table]:
    """One row for each of CASES."""
    table = Table(
        f"the core alone, batches of {BATCH_BYTES:,} bytes, in memory",
        *("records", "records in a batch", "µs for a Produce", "ns for each record", "µs for a Fetch of 1 MiB"),
    )
    for name, case in CASES.items():
        count = len(records_of(case))
        produce, fetch = _microseconds(produces(name)), _microseconds(fetches(name))
        table.add(name, count, f"{produce:.1f}", f"{produce / count * 1_000:.0f}", f"{fetch:.1f}")
    return [table]


def _microseconds(rounds: Iterator[None]) -> float:
    times, end = [], time.monotonic() + SECONDS
    while time.monotonic() < end:
        before = time.perf_counter()
        next(rounds)
        times.append(time.perf_counter() - before)
    return sorted(times)[len(times) // 20] * 1e6


def records_of(case: Case) -> list[Record]:
    """Records of capital letters, as kafka-producer-perf-test makes them, that come to a batch of BATCH_BYTES."""
    dice = random.Random(1)
    records: list[Record] = []
    size = 0
    while size < BATCH_BYTES * (1.4 if case.compression else 1) - case.record_bytes:
        value = bytes(dice.choices(_LETTERS, k=case.record_bytes + dice.randint(-case.spread, case.spread)))
        records.append(Record(len(records), NOW_MS + len(records) // 40, None, value))
        size += len(value) + 8
    return records


def produces(name: str) -> Iterator[None]:
    """Each step is a Produce."""
    case = CASES[name]
    batch = build_batch(records_of(case), attributes=case.compression)
    data = TopicProduceData(name=TOPIC, partition_data=(PartitionProduceData(index=0, records=batch),))
    request = ProduceRequest(acks=1, timeout_ms=60_000, topic_data=(data,))
    frame = encode_request(APIS[ApiKey.PRODUCE], 12, 1, "bench", request)
    yield from _asks(_core(), frame)


def fetches(name: str) -> Iterator[None]:
    """Each step is a Fetch of FETCH_BYTES, from a log of such batches."""
    core = _core()
    case = CASES[name]
    batch = build_batch(records_of(case), attributes=case.compression)
    log = core.broker.topics[TOPIC].partitions[0]
    while log.size < 2 * FETCH_BYTES:
        log.append(batch, NOW_MS)
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=FETCH_BYTES)
    request = FetchRequest(
        max_wait_ms=500, min_bytes=1, topics=(FetchTopic(topic=TOPIC, partitions=(partition,)),), session_epoch=-1
    )
    yield from _asks(core, encode_request(APIS[ApiKey.FETCH], 12, 1, "bench", request))


def _core() -> ClusterCore:
    core = ClusterCore(config_of([], dev=True), random=Chance(), now_ms=NOW_MS)
    core.create_topic(TOPIC, 1, NOW_MS)
    return core


def _asks(core: ClusterCore, frame: bytes) -> Iterator[None]:
    frames, requests, responses = FrameBuffer(len(frame)), RequestCache(0, "/127.0.0.1"), ResponseCache()
    gc.collect()
    gc.freeze()
    while True:
        frames.feed(frame)
        (effect,) = core.handle(*requests.read(frames.next_frame() or b""), NOW_MS)
        assert isinstance(effect, Reply)
        answer = responses.write(effect.call, effect.response)
        if not isinstance(answer, bytes):
            for _ in in_chunks(answer):
                pass
        yield


ROUNDS: dict[str, Callable[[str], Iterator[None]]] = {"produce": produces, "fetch": fetches}


if __name__ == "__main__":
    kind, _, name = sys.argv[-1].partition("-")
    if len(sys.argv) != 2 or kind not in ROUNDS or name not in CASES:
        wanted = ", ".join(f"{kind}-{name}" for kind in ROUNDS for name in CASES)
        sys.exit(f"usage: python -m bench.batches REQUEST, which is one of {wanted}")
    profile(ROUNDS[kind](name))
