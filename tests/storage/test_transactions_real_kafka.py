"""A real broker goes on with a log with transactions that groupcoord left, and groupcoord with what that broker leaves."""

import re
import shutil
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from groupcoord.broker.partition_log import PartitionLog
from groupcoord.broker.producer_state_manager import AbortedTransaction
from groupcoord.client.log_reader import LATEST, LogReader
from tests.offsets_log.lone_kafka import LoneKafka
from tests.real_kafka import RealKafkaUnavailable
from tests.storage.directory import KAFKA_FILES, Life

pytestmark = pytest.mark.real_kafka

TOPIC = "transactions"
NAME = f"{TOPIC}-0"
OPEN_FROM = 42
ABORTED_RECORDS = {3, 4, 8, 10, 11, 13, 14, 15, 18, 27, 28, 51}
_ENTRY = re.compile(r"version: 0 producerId: (\d+) firstOffset: (\d+) lastOffset: (\d+) lastStableOffset: (\d+)")


@pytest.fixture
def kafka(tmp_path: Path) -> LoneKafka:
    try:
        return LoneKafka(tmp_path / "kafka", {"transaction.state.log.num.partitions": "1"})
    except RealKafkaUnavailable as reason:
        pytest.skip(f"no real Kafka: {reason}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The recorded log as groupcoord leaves it, which had to find out everything about transactions from the batches."""
    directory = tmp_path / "data"
    shutil.copytree(KAFKA_FILES / NAME, directory / NAME)
    for path in (directory / NAME).iterdir():
        if path.suffix in {".txnindex", ".snapshot"}:
            path.unlink()
    Life(directory).end()
    return directory / NAME


def aborted(log: PartitionLog) -> list[AbortedTransaction]:
    return [each for segment in log.segments for each in segment.aborted]


def committed(kafka: LoneKafka) -> tuple[list[int], int]:
    """The offsets of what a reader of committed records sees, and where it has come to."""
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(TOPIC, 0, OFFSET_BEGINNING)])
    found: list[int] = []
    while True:
        message = consumer.poll(30)
        assert message is not None
        offset = message.offset()
        assert offset is not None
        error = message.error()
        if error is not None:
            assert error.code() == KafkaError._PARTITION_EOF, error
            consumer.close()
            return found, offset
        found.append(offset)


def compare_fetches(kafka: LoneKafka, directory: Path) -> None:
    """From each offset, as much or as little as wanted: both give the same bytes, and name the same transactions."""
    life = Life(directory)
    log = life.log(TOPIC)
    with LogReader([("127.0.0.1", kafka.port)], client_id="compare", isolation_level=1) as reader:
        reader.partitions([TOPIC])
        assert reader.offsets([(TOPIC, 0)], LATEST) == {(TOPIC, 0): OPEN_FROM} == {(TOPIC, 0): log.last_stable_offset}
        for offset in range(log.log_end_offset + 1):
            for max_bytes in (1, 200, 500, 1 << 20):
                theirs = reader.fetch((TOPIC, 0), offset, max_bytes)
                ours = log.read(offset, max_bytes, at_least_one=True, committed_only=True)
                assert ours.data() == theirs.records
                named = [(each.producer_id, each.first_offset) for each in ours.aborted or ()]
                assert named == theirs.aborted, (offset, max_bytes)
    life.kill()


def test_its_tool_reads_the_indexes(kafka: LoneKafka, folder: Path) -> None:
    paths = sorted(folder.glob("*.txnindex"))
    files = ",".join(str(path) for path in [*paths, *folder.glob("*.snapshot")])
    dumped = kafka.run_class("org.apache.kafka.tools.DumpLogSegments", "--files", files)
    assert dumped.returncode == 0, dumped.stdout + dumped.stderr
    life = Life(folder.parent)
    said = [AbortedTransaction(*map(int, entry)) for entry in _ENTRY.findall(dumped.stdout)]
    assert said == aborted(life.log(TOPIC))
    assert len(said) == 5
    assert f"currentTxnFirstOffset: OptionalLong[{OPEN_FROM}]" in dumped.stdout
    life.kill()


def test_it_goes_on_with_the_log_and_so_does_groupcoord(kafka: LoneKafka, folder: Path, tmp_path: Path) -> None:
    with kafka:
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
        for made in admin.create_topics([NewTopic(TOPIC, 1, 1)]).values():
            made.result()
    there = kafka.data / NAME
    identity = (there / "partition.metadata").read_bytes()
    shutil.rmtree(there)
    shutil.copytree(folder, there)
    (there / "partition.metadata").write_bytes(identity)
    with kafka:
        compare_fetches(kafka, folder.parent)
        offsets, end = committed(kafka)
        assert end == OPEN_FROM
        assert not ABORTED_RECORDS & set(offsets)
        assert {0, 1, 2, 5, 6, 38, 40} <= set(offsets)
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": "t", "log_level": 0})
        producer.init_transactions()
        for value in ("aborted", "committed"):
            producer.begin_transaction()
            producer.produce(TOPIC, value, partition=0)
            producer.flush()
            producer.commit_transaction() if value == "committed" else producer.abort_transaction()
        assert committed(kafka) == (offsets, OPEN_FROM), "the open transaction is in the way"
        ended = kafka.run_class(
            "org.apache.kafka.tools.TransactionsCommand",
            *("--bootstrap-server", kafka.bootstrap_servers, "abort"),
            *("--topic", TOPIC, "--partition", "0", "--start-offset", str(OPEN_FROM)),
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        more, end = committed(kafka)
    shutil.copytree(there, tmp_path / "again" / NAME)
    life = Life(tmp_path / "again")
    log = life.log(TOPIC)
    assert (log.log_end_offset, log.last_stable_offset) == (end, end)
    assert [each.first_offset for each in aborted(log)][-2:] == [59, OPEN_FROM]
    assert 42 not in more
    assert {43, 50, 53, 61} <= set(more)
    [text] = life.storage.findings
    assert "topic transactions was found" in text
    life.end()
