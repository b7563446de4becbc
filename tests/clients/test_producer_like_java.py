"""groupcoord's producer beside Kafka's own: the same records become the same batches, byte for byte but for checksums."""

import asyncio
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import pytest

from groupcoord import Producer
from groupcoord.client.log_reader import EARLIEST, LATEST, LogReader
from groupcoord.client.option_value_parsing import parse_addresses
from groupcoord.protocol.batches.record_batch import HEADER_BYTES, BatchHeader, iter_batch_extents, read_header
from tests.clients.cluster import Cluster
from tests.clients.processes import run
from tests.clients.program_members import NoClient, compiled_java

pytestmark = [pytest.mark.slow, pytest.mark.minutes(1)]

Sent = tuple[int | None, bytes | None, int, int]
"""Partition, key, bytes of the value, timestamp."""
LONG_MS = 60_000
"""Nothing lingers until it is over: a batch is sent because it is full, or flushed."""


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> Sequence[str]:
    """Kafka's own producer; skips where it cannot be run."""
    try:
        return compiled_java("JavaProducer", tmp_path_factory.mktemp("java"), [])
    except NoClient as reason:
        pytest.skip(str(reason))


def by_java(
    command: Sequence[str], bootstrap: str, topic: str, settings: Mapping[str, Any], records: list[Sent]
) -> None:
    lines = [
        f"{'-' if partition is None else partition} {'-' if key is None else key.decode()} {size} {timestamp_ms}"
        for partition, key, size, timestamp_ms in records
    ]
    arguments = [f"{name.replace('_', '.')}={value}" for name, value in settings.items()]
    run([*command, bootstrap, topic, *arguments], "\n".join(lines) + "\n")


async def by_groupcoord(bootstrap: str, topic: str, settings: Mapping[str, Any], records: list[Sent]) -> None:
    async with Producer(bootstrap, **settings) as producer:
        for partition, key, size, timestamp_ms in records:
            await producer.send(topic, bytes(size), key, partition, timestamp_ms)
        await producer.flush()


def batches(bootstrap: str, topic: str) -> dict[int, list[tuple[BatchHeader, bytes]]]:
    """What is in the log of each partition: of each batch its header, without what differs, and its records."""
    found: dict[int, list[tuple[BatchHeader, bytes]]] = {}
    with LogReader(parse_addresses(bootstrap), client_id="test") as reader:
        for number in reader.partitions([topic])[topic]:
            place = topic, number
            (offset,) = reader.offsets([place], EARLIEST).values()
            (end,) = reader.offsets([place], LATEST).values()
            listed = found[number] = []
            while offset < end:
                data = reader.fetch(place, offset, 1 << 20).records
                for position, size, _ in iter_batch_extents(data):
                    header = read_header(data, position)
                    body = data[position + HEADER_BYTES : position + size]
                    same = header._replace(crc=0, leader_epoch=0, producer_id=0, producer_epoch=0)
                    listed.append((same, body))
                    offset = header.last_offset + 1
    return found


def of_many_sizes(count: int, *, seed: int, partition: int | None) -> list[Sent]:
    random = Random(seed)
    sizes = (0, 1, 50, 60, 100, 127, 128, 1_000, 5_000)
    return [
        (
            partition,
            random.choice((None, b"k", b"a-longer-key")),
            random.choice(sizes),
            1_700_000_000_000 + random.randrange(-5, 20_000),
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize(
    ("batch_size", "partition"),
    [(16_384, 0), (1_000, 0), (0, 0), (2_000, None)],
    ids=["batches of 16 KiB", "batches smaller than records", "a batch for each record", "the partition is not named"],
)
def test_the_same_batches(cluster: Cluster, java: Sequence[str], batch_size: int, partition: int | None) -> None:
    """Of one partition: with several, what is not full goes along with what is, at a moment that is up to the machine."""
    settings = {"batch_size": batch_size, "linger_ms": LONG_MS, "delivery_timeout_ms": 3 * LONG_MS}
    records = of_many_sizes(400, seed=batch_size, partition=partition)
    ours, theirs = (cluster.topic(retention_ms="-1") for _ in range(2))
    by_java(java, cluster.bootstrap, theirs, settings, records)
    asyncio.run(by_groupcoord(cluster.bootstrap, ours, settings, records))
    expected = batches(cluster.bootstrap, theirs)
    assert sum(len(listed) for listed in expected.values()) > 10
    assert batches(cluster.bootstrap, ours) == expected


def test_keys_go_to_the_same_partitions(cluster: Cluster, java: Sequence[str]) -> None:
    settings = {"batch_size": 0, "linger_ms": LONG_MS, "delivery_timeout_ms": 3 * LONG_MS}
    records: list[Sent] = [(None, b"key-%d" % number, number, number) for number in range(300)]
    ours, theirs = (cluster.topic(7, retention_ms="-1") for _ in range(2))
    by_java(java, cluster.bootstrap, theirs, settings, records)
    asyncio.run(by_groupcoord(cluster.bootstrap, ours, settings, records))
    places = [
        {number: b"".join(body for _, body in listed) for number, listed in batches(cluster.bootstrap, topic).items()}
        for topic in (ours, theirs)
    ]
    assert places[0] == places[1]
