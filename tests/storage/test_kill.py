"""``kill -9`` in the middle of traffic: whatever was acknowledged is there afterwards."""

import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from groupcoord.broker.topic_names import CONSUMER_OFFSETS
from groupcoord.core.java import partition_for
from groupcoord.protocol.batches import records_in
from groupcoord.protocol.offsets_records import OffsetCommitKey, read_key, read_value
from tests.storage.directory import Life, contents

pytestmark = [pytest.mark.slow, pytest.mark.clients]

SERVE = (sys.executable, "-m", "groupcoord.cli.main", "serve", "--port", "0", "--dev", "-q", "--topic", "orders:2")
GROUP = "app"


@contextmanager
def serving(directory: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server in a process of its own, and its address; killed at the end of the block if it lives so long."""
    command = (*SERVE, "--data-dir", str(directory), *arguments)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().removeprefix("listening on ").strip()
        finally:
            process.kill()


class Traffic:
    """A producer and a committing consumer, until the server is killed in the middle of it."""

    def __init__(self) -> None:
        self.acknowledged: dict[tuple[int, int], bytes | None] = {}
        self.committed = -1
        self._numbers = itertools.count()

    def run(self, process: "subprocess.Popen[str]", address: str, kill_at: int) -> None:
        """Kill the server when it has acknowledged ``kill_at`` records of this run, and a commit."""
        quiet = {"bootstrap.servers": address, "log_level": 0}
        producer = Producer({**quiet, "acks": "all", "enable.idempotence": True, "linger.ms": 0})
        consumer = Consumer(
            {**quiet, "group.id": GROUP, "enable.auto.commit": False, "on_commit": self._commit_answered}
        )
        consumer.assign([TopicPartition("orders", 0)])
        left, committed_before, killed = kill_at, self.committed, False

        def delivered(error: KafkaError | None, message: Message) -> None:
            nonlocal left, killed
            if error is None:
                partition, offset = message.partition(), message.offset()
                assert partition is not None
                assert offset is not None
                self.acknowledged[partition, offset] = message.value()
                left -= 1
                if left <= 0 and self.committed > committed_before:
                    process.kill()
                    killed = True

        while not killed:
            for _ in range(5):
                number = next(self._numbers)
                producer.produce("orders", b"%d" % number * 20, partition=number % 2, on_delivery=delivered)
            consumer.commit(offsets=[TopicPartition("orders", 0, next(self._numbers))], asynchronous=True)
            producer.poll(0.002)
            consumer.poll(0)
        process.wait()
        producer.purge()
        producer.flush(5)

    def _commit_answered(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        if error is None and partitions[0].error is None:
            self.committed = max(self.committed, partitions[0].offset)


def committed_in(life: Life) -> int:
    """The last offset that the group committed, as its log says."""
    log = life.log(CONSUMER_OFFSETS, partition_for(GROUP, 50))
    last = -1
    for segment in log.segments:
        for record in records_in(segment.copy(0, segment.size)):
            assert record.key is not None
            key = read_key(record.key)
            if isinstance(key, OffsetCommitKey) and record.value is not None:
                last = read_value(key, record.value).offset  # type: ignore[union-attr]
    return last


def test_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    traffic = Traffic()
    for kill_at in (40, 170, 333):
        with serving(tmp_path, "-c", "log.segment.bytes=1048576") as (process, address):
            traffic.run(process, address, kill_at)
    assert len(traffic.acknowledged) >= 40 + 170 + 333
    life = Life(tmp_path)
    for partition in (0, 1):
        there = dict(contents(life.log("orders", partition)))
        missing = {
            offset: value
            for (of, offset), value in traffic.acknowledged.items()
            if of == partition and there.get(offset) != value
        }
        assert missing == {}
    assert committed_in(life) >= traffic.committed > 0
    life.end()


def test_a_second_server_is_told_off(tmp_path: Path) -> None:
    with serving(tmp_path):
        second = subprocess.run((*SERVE, "--data-dir", str(tmp_path)), capture_output=True, text=True, check=False)
    assert second.returncode == 1
    assert second.stdout == ""
    assert second.stderr.startswith(f"groupcoord serve: {tmp_path} is in use: another server")


def test_a_full_disk_ends_the_server_with_its_reason(tmp_path: Path) -> None:
    """The limit of a process for the size of its files stands for the disk: what does not fit is an OSError as well."""
    limited = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)); "
        "from groupcoord.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    command = (sys.executable, "-c", limited, *SERVE[3:], "--data-dir", str(tmp_path))
    acknowledged: dict[int, bytes | None] = {}

    def delivered(error: KafkaError | None, message: Message) -> None:
        offset = message.offset()
        if error is None and offset is not None:
            acknowledged[offset] = message.value()

    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().removeprefix("listening on ").strip()
        producer = Producer({"bootstrap.servers": address, "log_level": 0, "linger.ms": 0, "message.timeout.ms": 3000})
        for _ in range(30):
            producer.produce("orders", os.urandom(10_000), partition=0, on_delivery=delivered)
            producer.flush(5)
            if process.poll() is not None:
                break
        _, said = process.communicate(timeout=10)
    assert process.returncode == 1
    assert said.strip().endswith(f"groupcoord serve: the data directory {tmp_path} has failed: File too large")
    life = Life(tmp_path)
    assert life.storage.findings == []
    there = dict(contents(life.log()))
    assert 0 < len(acknowledged) < 30
    assert {offset: there.get(offset) for offset in acknowledged} == acknowledged
    life.end()
