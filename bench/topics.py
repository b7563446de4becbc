"""Benchmark of 1,000 topics of 10 partitions: seconds to create them, to start with them, and for Metadata; memory of each."""

import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from bench.servers import Running, groupcoord
from bench.table import Table
from bench.wire import Connection
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.apis.create_topics import CreatableTopic, CreatableTopicConfig
from groupcoord.protocol.apis.delete_topics import DeleteTopicState
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import CreateTopicsRequest, DeleteTopicsRequest, MetadataRequest

TOPICS = 1_000
PARTITIONS = 10
AT_ONCE = 100
"""Topics in a CreateTopics; Kafka refuses one of 10,000 partitions."""
ASKED = 5


def run() -> list[Table]:
    """Growth of the resident set is that since the server was ready; it starts in another process."""
    table = Table(
        f"{TOPICS:,} topics of {PARTITIONS} partitions",
        *("what", "seconds", "Metadata of all, s", "processor ms", "bytes each partition"),
    )
    with groupcoord("--dev", loop="uvloop") as server:
        _created(table, "created, in memory", server)
    with tempfile.TemporaryDirectory(prefix="groupcoord-bench-") as directory:
        began = time.perf_counter()
        with groupcoord("--dev", "--data-dir", directory, loop="uvloop") as server:
            alone, empty = time.perf_counter() - began, server.resident_bytes
            _created(table, "created, with --data-dir", server)
        for what in ("started with", "started with, again"):
            began = time.perf_counter()
            with groupcoord("--dev", "--data-dir", directory, loop="uvloop") as server:
                taken = time.perf_counter() - began
                grown = server.resident_bytes - empty
                table.add(what, f"{taken - alone:.2f}", *_asked(server), f"{grown / (TOPICS * PARTITIONS):,.0f}")
    return [table]


def _created(table: Table, what: str, server: Running) -> None:
    before = server.resident_bytes
    began = time.perf_counter()
    create_topics(server.port, [f"topic-{number}" for number in range(TOPICS)], PARTITIONS)
    taken = time.perf_counter() - began
    grown = server.resident_bytes - before
    table.add(what, f"{taken:.2f}", *_asked(server), f"{grown / (TOPICS * PARTITIONS):,.0f}")


def _asked(server: Running) -> tuple[str, str]:
    """The seconds that a Metadata for all topics takes, and the server's processor time for it."""
    connection = Connection(server.port)
    before, taken = server.processor_seconds, []
    for _ in range(ASKED):
        began = time.perf_counter()
        connection.send(ApiKey.METADATA, MetadataRequest(topics=None))
        answer = connection.receive_bytes()
        taken.append(time.perf_counter() - began)
    connection.close()
    if len(answer) < TOPICS * PARTITIONS:
        raise SystemExit(f"bench: Metadata of {len(answer):,} bytes does not tell of all topics")
    processor_ms = (server.processor_seconds - before) / ASKED * 1_000
    return f"{statistics.median(taken):.3f}", f"{processor_ms:.0f}"


def create_topics(
    port: int, names: Sequence[str], partitions: int, configs: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Create topics of so many partitions, and wait until all of them can be used."""
    given = tuple(CreatableTopicConfig(name=name, value=value) for name, value in configs.items())
    wanted = tuple(
        CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=given) for name in names
    )
    connection = Connection(port)
    for first in range(0, len(wanted), AT_ONCE):
        request = CreateTopicsRequest(topics=wanted[first : first + AT_ONCE])
        for topic in connection.ask(ApiKey.CREATE_TOPICS, request).topics:
            _check(topic.error_code, topic.name)
    while _leaders_missing(connection, set(names)):
        time.sleep(0.02)
    connection.close()


def _leaders_missing(connection: Connection, names: set[str]) -> bool:
    """Is one of the topics, or the leader of one of its partitions, not known yet?"""
    topics = [
        topic for topic in connection.ask(ApiKey.METADATA, MetadataRequest(topics=None)).topics if topic.name in names
    ]
    return len(topics) < len(names) or any(
        partition.leader_id < 0 for topic in topics for partition in topic.partitions
    )


def delete_topic(port: int, name: str) -> None:
    """Delete a topic, and wait until it is gone."""
    connection = Connection(port)
    answer = connection.ask(
        ApiKey.DELETE_TOPICS, DeleteTopicsRequest(timeout_ms=60_000, topics=(DeleteTopicState(name=name),))
    )
    for topic in answer.responses:
        _check(topic.error_code, name)
    while any(topic.name == name for topic in connection.ask(ApiKey.METADATA, MetadataRequest(topics=None)).topics):
        time.sleep(0.02)
    connection.close()


def _check(error: int, topic: str) -> None:
    if error:
        raise SystemExit(f"bench: topic {topic}: {ErrorCode(error).name}")
