"""Every record comes out exactly as it went in, whoever wrote it, whoever reads it, however it was compressed."""

import os
import time

import aiokafka
import confluent_kafka
import kafka
import pytest

from tests.clients.cluster import Cluster
from tests.clients.support import Record
from tests.clients.ungrouped import COMPRESSIONS, LIBRARIES, Draft, reader, write

pytestmark = pytest.mark.slow

every_library = pytest.mark.parametrize("library", LIBRARIES)


def peculiar_drafts(library: str, partition: int) -> list[Draft]:
    """Everything that is easily lost: nulls beside empties, bytes that are not text, headers that repeat, uneven times."""
    start_ms = int(time.time() * 1000) - 60_000
    drafts = [
        Draft(start_ms, b"key", b"value"),
        Draft(start_ms + 7, None, b"no key"),
        Draft(start_ms + 3, b"tombstone", None),
        Draft(start_ms + 4_000, b"", b""),
        Draft(start_ms, bytes(range(256)), bytes(range(255, -1, -1))),
        Draft(start_ms + 1, "ключ".encode(), "値".encode(), (("naïve", b"\xff\x00"), ("again", b"1"), ("again", b"2"))),
        Draft(start_ms + 2, b"header", b"that is empty", (("empty", b""),)),
        *(Draft(start_ms + number, b"key %d" % number, b"repetitive " * number) for number in range(100)),
    ]
    if library != "kafka-python":  # cannot write them, only read them
        drafts.append(Draft(start_ms, b"header", b"that is null", (("null", None),)))
    return [draft._replace(partition=partition) for draft in drafts]


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_every_library_reads_exactly_what_every_library_wrote(cluster: Cluster, compression: str) -> None:
    topic = cluster.topic(partitions=len(LIBRARIES))
    written = {
        writer: write(writer, cluster.bootstrap, topic, peculiar_drafts(writer, partition), compression=compression)
        for partition, writer in enumerate(LIBRARIES)
    }

    for library in LIBRARIES:
        with reader(library, cluster.bootstrap) as consumer:
            for partition, writer in enumerate(LIBRARIES):
                count = len(written[writer])
                assert consumer.read(topic, partition, 0, count) == written[writer], (writer, library)


@every_library
def test_values_of_a_megabyte_pass(cluster: Cluster, library: str) -> None:
    topic = cluster.topic()
    large = [Draft(int(time.time() * 1000), b"%d" % number, os.urandom(1_000_000)) for number in range(3)]

    written = write(library, cluster.bootstrap, topic, large)
    with reader(library, cluster.bootstrap) as consumer:
        assert same(consumer.read(topic, 0, 0, 3), written)


@pytest.mark.parametrize(
    ("library", "refusal"),
    [
        ("aiokafka", aiokafka.errors.MessageSizeTooLargeError),
        ("kafka-python", kafka.errors.MessageSizeTooLargeError),
        ("confluent", confluent_kafka.KafkaException),
    ],
)
def test_a_value_larger_than_the_broker_takes_is_refused_by_name(
    cluster: Cluster, library: str, refusal: type[Exception]
) -> None:
    topic = cluster.topic(max_message_bytes="100000")

    with pytest.raises(refusal) as refused:
        write(library, cluster.bootstrap, topic, [Draft(0, b"key", os.urandom(150_000))])

    if library == "confluent":
        assert refused.value.args[0].name() == "MSG_SIZE_TOO_LARGE"
    with reader(library, cluster.bootstrap) as consumer:
        assert consumer.bounds(topic, 0) == (0, 0)


@every_library
def test_a_topic_may_stamp_its_records_itself(cluster: Cluster, library: str) -> None:
    topic = cluster.topic(message_timestamp_type="LogAppendTime")
    before_ms = int(time.time() * 1000)

    write(library, cluster.bootstrap, topic, [Draft(before_ms - 60_000, b"key", b"value")] * 3)

    with reader(library, cluster.bootstrap) as consumer:
        stamps = {record.timestamp_ms for record in consumer.read(topic, 0, 0, 3)}
    assert before_ms <= min(stamps) <= max(stamps) <= time.time() * 1000


@every_library
def test_an_idempotent_producer_stores_everything_once_and_in_order(cluster: Cluster, library: str) -> None:
    topic = cluster.topic(partitions=3)
    now_ms = int(time.time() * 1000)
    drafts = [Draft(now_ms, b"key", b"value %d" % number, partition=number % 3) for number in range(900)]

    written = write(library, cluster.bootstrap, topic, drafts, idempotent=True)

    with reader(library, cluster.bootstrap) as consumer:
        for partition in range(3):
            assert consumer.read(topic, partition, 0, 300) == written[partition::3]
            assert consumer.bounds(topic, partition) == (0, 300)


def same(found: list[Record], expected: list[Record]) -> bool:
    """Equal; said without a diff of megabytes."""
    return found == expected
