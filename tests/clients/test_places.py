"""Consumers without a group: places in a log by offset, by time and by its ends."""

import struct
import time

import pytest

from groupcoord.core.java_hash_order import partition_for
from tests.clients.cluster import Cluster
from tests.clients.support import unique
from tests.clients.ungrouped import LIBRARIES, Draft, reader, write

every_library = pytest.mark.parametrize("library", LIBRARIES)
OFFSETS = "__consumer_offsets"
EPOCH_MS = int(time.time() * 1000) - 3_600_000


def drafts(count: int) -> list[Draft]:
    """One record a minute."""
    return [Draft(EPOCH_MS + 60_000 * number, b"key", b"value %d" % number) for number in range(count)]


@every_library
def test_a_log_has_a_beginning_an_end_and_times(cluster: Cluster, library: str) -> None:
    topic = cluster.topic()
    written = write(library, cluster.bootstrap, topic, drafts(10))

    with reader(library, cluster.bootstrap) as consumer:
        assert consumer.bounds(topic, 0) == (0, 10)
        assert consumer.offset_at(topic, 0, EPOCH_MS - 1) == 0
        assert consumer.offset_at(topic, 0, EPOCH_MS + 240_000) == 4
        assert consumer.offset_at(topic, 0, EPOCH_MS + 240_001) == 5
        assert consumer.offset_at(topic, 0, EPOCH_MS + 999_000) is None
        assert consumer.read(topic, 0, 5, 5) == written[5:]


@every_library
def test_deleted_records_move_the_beginning(cluster: Cluster, library: str) -> None:
    topic = cluster.topic()
    written = write(library, cluster.bootstrap, topic, drafts(10))

    cluster.delete_records(topic, 0, before=7)

    with reader(library, cluster.bootstrap) as consumer:
        assert consumer.bounds(topic, 0) == (7, 10)
        assert consumer.read(topic, 0, 7, 3) == written[7:]


@every_library
def test_commits_are_records_that_anybody_can_read(cluster: Cluster, group: str, library: str) -> None:
    topic = cluster.topic()
    with reader(library, cluster.bootstrap) as consumer:
        partition = partition_for(group, len(cluster.admin.list_topics(OFFSETS).topics[OFFSETS].partitions))
        _, start = consumer.bounds(OFFSETS, partition)

        cluster.alter_offsets(group, {(topic, 0): 0x0102030405})

        [record] = consumer.read(OFFSETS, partition, start, 1)
    version = struct.pack(">h", 1)
    assert record.key == version + string(group) + string(topic) + struct.pack(">i", 0)
    assert record.value is not None
    assert record.value[2:10] == struct.pack(">q", 0x0102030405)


def string(text: str) -> bytes:
    """As the records of __consumer_offsets have it."""
    return struct.pack(">h", len(text)) + text.encode()


@every_library
def test_a_topic_comes_to_be_when_it_is_written_to(cluster: Cluster, library: str) -> None:
    topic = unique("unheard-of")

    written = write(library, cluster.bootstrap, topic, drafts(1))

    partitions = cluster.admin.list_topics(topic).topics[topic].partitions
    assert len(partitions) == int(cluster.broker_config("num.partitions"))
    with reader(library, cluster.bootstrap) as consumer:
        assert consumer.read(topic, 0, 0, 1) == written
