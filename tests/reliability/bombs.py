"""Requests that are small and expensive, while a quiet client in a process of its own asks again and again.

Batches of a few kilobytes that unpack to 64 MB, in every compression; millions of empty records; searches by time in those;
names of 32 KB, and names of bytes that are no UTF-8 and grow threefold in the answer.
"""

import contextlib
import random
import tempfile
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from groupcoord.protocol import messages as m
from groupcoord.protocol.apis import list_offsets, metadata, offset_fetch
from groupcoord.protocol.batches.compression import Compression, compress
from groupcoord.protocol.batches.record_batch import BatchHeader, frame_batch
from groupcoord.protocol.batches.records import varint
from tests.reliability.outcome import Outcome
from tests.reliability.quiet import Quiet
from tests.reliability.requests import join, produce
from tests.reliability.served import Served, served
from tests.reliability.talk import API_OF, Talk

WORST_WAIT_MS = 100.0
MOST_MEMORY_MB = 400
PARTITIONS = 50
PATIENCE_SECONDS = 120.0
SILENCE_SECONDS = 0.3
_TOPIC = "bombs"
_LARGEST_BATCH = 1_000_000
_LONGEST_NAME = 32_767
_PLACEHOLDER = "~" * 20_000


class Bomb(NamedTuple):
    """A request; ``invalid``: the placeholder in it becomes bytes that are no UTF-8. ``answered``: has it an answer at all?"""

    what: str
    request: Any
    version: int
    invalid: bool = False
    answered: bool = True


def one_record(codec: Compression, size: int) -> bytes:
    """A batch of one record of ``size`` zeros."""
    body = b"\0\0\0\1" + varint(size) + bytes(size) + b"\0"
    return _batch(codec, varint(len(body)) + body, 1)


def empty_records(codec: Compression, size: int) -> bytes:
    """A batch of records of nothing, ``size`` bytes of them."""
    body, count = bytearray(), 0
    while len(body) < size:
        record = b"\0\0" + varint(count) + b"\1\1\0"
        body += varint(len(record)) + record
        count += 1
    return _batch(codec, bytes(body), count)


def _batch(codec: Compression, body: bytes, count: int) -> bytes:
    header = BatchHeader(0, 0, 0, 2, 0, int(codec), count - 1, 0, 0, -1, -1, -1, count)
    return frame_batch(header, compress(codec, body))


@lru_cache(maxsize=16)
def _made(make: Callable[[Compression, int], bytes], codec: Compression, size: int) -> bytes:
    """A batch that unpacks to ``size``, or to as much as may be stored."""
    while len(batch := make(codec, size)) > _LARGEST_BATCH:
        size //= 2
    return batch


def producing(batch: bytes, partitions: int) -> m.ProduceRequest:
    """A Produce of ``batch`` to so many partitions."""
    return produce(_TOPIC, dict.fromkeys(range(partitions), batch), acks=1)


def searching(timestamp_ms: int, partitions: int) -> m.ListOffsetsRequest:
    """A search by time in so many partitions."""
    parts = tuple(
        list_offsets.ListOffsetsPartition(partition_index=index, timestamp=timestamp_ms) for index in range(partitions)
    )
    return m.ListOffsetsRequest(replica_id=-1, topics=(list_offsets.ListOffsetsTopic(name=_TOPIC, partitions=parts),))


def naming(name: str, *, invalid: bool) -> list[Bomb]:
    """Requests with ``name`` in them; of those that are ``invalid`` only some can be answered."""
    kind = "bytes that are no UTF-8" if invalid else f"a name of {len(name)} bytes"
    fetched = offset_fetch.OffsetFetchRequestGroup(group_id=name, topics=None)
    topic = metadata.MetadataRequestTopic(name=name)
    asked: list[tuple[Any, int, bool]] = [
        (m.FindCoordinatorRequest(coordinator_keys=(name,)), 3, True),
        (m.FindCoordinatorRequest(coordinator_keys=(name,) * 20), 4, not invalid),
        (m.DescribeGroupsRequest(groups=(name,)), 5, not invalid),
        (m.OffsetFetchRequest(groups=(fetched,)), 8, not invalid),
        (m.MetadataRequest(topics=(topic,)), 9, not invalid),
        (m.DeleteGroupsRequest(groups_names=(name,)), 2, not invalid),
        (m.HeartbeatRequest(group_id=name, generation_id=1, member_id=name), 4, True),
        (join(name, 10_000, rebalance_ms=100), 3, True),
        (join("bombed", 10_000, rebalance_ms=100), 3, True),
        (m.ListGroupsRequest(), 4, True),
    ]
    return [
        Bomb(f"{API_OF[type(request)].name} with {kind}", request, version, invalid, answered)
        for request, version, answered in asked
    ]


def bombs(seed: int, size: int, partitions: int) -> Iterator[Bomb]:
    """Bombs of every kind, in an order that ``seed`` decides, for ever; the first is the worst."""
    chance = random.Random(seed)
    zeros = _made(one_record, Compression.ZSTD, size)
    yield Bomb(f"{partitions} batches of {size} zeros", producing(zeros, partitions), 9)
    few = max(1, partitions // 10)
    while True:
        kinds = [
            Bomb(f"{few} {codec.name} batches of {shape.__name__}", producing(_made(shape, codec, size), few), 9)
            for codec in (Compression.ZSTD, Compression.GZIP, Compression.LZ4, Compression.SNAPPY)
            for shape in (one_record, empty_records)
        ]
        kinds += [Bomb("a search by time", searching(when, few), 7) for when in (0, -3)]
        kinds += naming("x" * _LONGEST_NAME, invalid=False) + naming(_PLACEHOLDER, invalid=True)
        chance.shuffle(kinds)
        yield from kinds


def send(talk: Talk, bomb: Bomb) -> None:
    """Send it, and do not wait for the answer."""
    talk.socket.settimeout(PATIENCE_SECONDS if bomb.answered else SILENCE_SECONDS)
    talk.send(bomb.request, bomb.version, _without_utf_8 if bomb.invalid else bytes)


def _without_utf_8(frame: bytes) -> bytes:
    return frame.replace(_PLACEHOLDER.encode(), b"\xff" * len(_PLACEHOLDER))


@contextlib.contextmanager
def serving(partitions: int) -> Iterator[Served]:
    """A server with a topic, until the block ends."""
    # Who joins is not to wait for others: that takes seconds, and shows nothing.
    options = ("--topic", f"{_TOPIC}:{partitions}", "-c", "group.initial.rebalance.delay.ms=0")
    with tempfile.TemporaryDirectory() as folder, served(*options, log=Path(folder) / "log") as server:
        yield server


def attack(
    count: int,
    seed: int,
    *,
    worst_wait_ms: float = WORST_WAIT_MS,
    size: int = 64 * 1024 * 1024,
    partitions: int = PARTITIONS,
) -> Outcome:
    """Send ``count`` bombs, one after the other, to a server of its own."""
    problems: list[str] = []
    with serving(partitions) as server:
        with Quiet(server) as quiet:
            for number, bomb in zip(range(count), bombs(seed, size, partitions), strict=False):
                with Talk(server.address) as talk:
                    send(talk, bomb)
                    try:
                        talk.answer()
                        answered = True
                    except OSError:
                        answered = False
                if answered != bomb.answered:
                    said = "an answer" if answered else "no answer"
                    problems.append(f"seed {seed}, step {number}: {said} to {bomb.what}")
        if not server.lives:
            problems.append(f"seed {seed}: the server is gone")
        memory_mb = server.most_memory_bytes >> 20 if server.lives else 0
        if "Traceback" in server.log.read_text():
            problems.append(f"seed {seed}: there is a traceback in the log")
    worst = quiet.longest_ms
    if quiet.problem:
        problems.append(f"seed {seed}: the quiet client: {quiet.problem}")
    if worst >= worst_wait_ms:
        problems.append(f"seed {seed}: the quiet client waited {worst:.0f} ms")
    if memory_mb > MOST_MEMORY_MB:
        problems.append(f"seed {seed}: {memory_mb} MB of memory")
    return Outcome(
        tried=f"{count} requests, {len(quiet.waits)} of a quiet client meanwhile",
        result=f"the quiet client waited {worst:.0f} ms at most (< {worst_wait_ms:.0f}), {memory_mb} MB (≤ {MOST_MEMORY_MB})",
        problems=tuple(problems),
    )
