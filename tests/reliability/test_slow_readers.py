"""The attack in small, and in this process: who does not read costs a piece of memory, and gets all of it in the end."""

from pathlib import Path

import pytest

from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.apis.fetch import FetchPartition, FetchTopic
from groupcoord.protocol.messages import FetchRequest, MetadataRequest
from groupcoord.server.connection import CHUNK_BYTES
from groupcoord.testing.cluster import Cluster
from tests.conformance.batches import THEN_MS, batch
from tests.reliability.slow_readers import attack
from tests.server.conftest import run  # noqa: F401 - a fixture
from tests.server.sockets import Client, Run

pytestmark = pytest.mark.slow

FETCH, METADATA = APIS[ApiKey.FETCH], APIS[ApiKey.METADATA]
READERS = 4
HIGH_WATER_BYTES = 65_536
NOW_MS = THEN_MS + 1
BATCHES = [batch([bytes([number]) * 500_000]) for number in range(6)]


def fetch(kafka: Cluster) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 30)
    topic_id = kafka.core.broker.topics.topic_id("slow")
    assert topic_id is not None
    return FetchRequest(max_wait_ms=0, min_bytes=0, topics=(FetchTopic(topic_id=topic_id, partitions=(partition,)),))


@pytest.mark.parametrize("kept", ["in memory", "in files"])
def test_who_does_not_read_costs_a_piece_and_gets_everything_later(run: Run, kept: str, tmp_path: Path) -> None:  # noqa: F811
    async def story() -> None:
        data_dir = tmp_path if kept == "in files" else None
        small = {"socket.send.buffer.bytes": 65_536}
        async with Cluster(topics={"slow": 1}, data_dir=data_dir, config=small) as kafka:
            server, log = kafka._engine.server, kafka.core.broker.log("slow", 0)
            assert log is not None
            for sent in BATCHES:
                log.append(sent, NOW_MS)
            whole = log.read(0, 1 << 30, at_least_one=True).data()
            readers = [await Client.connect(server) for _ in range(READERS)]
            for reader in readers:
                reader.send(FETCH, fetch(kafka))
            unread = server._connections.unread
            other = await Client.connect(server)
            while len(unread._waiting) < READERS:  # meanwhile somebody else is answered
                other.send(METADATA, MetadataRequest(topics=None))
                await other.answer(METADATA)
            assert unread.bytes <= READERS * (CHUNK_BYTES + HIGH_WATER_BYTES)
            await other.close()
            for reader in readers:
                _, answer = await reader.answer(FETCH)
                assert answer.responses[0].partitions[0].records == whole
                await reader.close()
            assert log.segments[0].slices == 0

    run(story())


def test_the_attack_finds_what_it_expects() -> None:
    """What it measures depends on the machine: here it is enough that every answer is right."""
    outcome = attack(count=3, answer_bytes=5_000_000)
    assert "3 clients that fetch 5.0 MB" in outcome.tried
    assert not [problem for problem in outcome.problems if "waited" not in problem]
