"""Servers in processes of their own on one directory: a second one, one whose disk is full, and three brokers that are killed.

For ``kill -9`` in the middle of traffic see ``tests/reliability/kills.py``.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from tests.reliability.served import served
from tests.storage.directory import Life, contents

pytestmark = [pytest.mark.slow, pytest.mark.clients]

OPTIONS = ("--dev", "-q", "--topic", "orders:2")
SERVE = (sys.executable, "-m", "groupcoord.cli.main", "serve", "--port", "0", *OPTIONS)


def test_a_second_server_is_told_off(tmp_path: Path) -> None:
    with served(*OPTIONS, "--data-dir", str(tmp_path)):
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


def test_what_all_had_survives_a_kill_of_three_brokers_and_the_loss_of_a_directory(tmp_path: Path) -> None:
    options = ("--brokers", "3", "--data-dir", str(tmp_path), "-c", "default.replication.factor=3")
    acknowledged: list[bytes | None] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is None:
            acknowledged.append(message.value())

    with served(*OPTIONS, *options) as server:
        producer = Producer(
            {"bootstrap.servers": ":".join(map(str, server.address)), "acks": "all", "linger.ms": 0, "log_level": 0}
        )
        for number in range(300):
            producer.produce("orders", b"%d" % number, partition=0, on_delivery=delivered)
            producer.poll(0)
        producer.flush(30)
    assert len(acknowledged) == 300
    shutil.rmtree(tmp_path / "2")
    with served(*OPTIONS, *options) as server:
        consumer = Consumer({"bootstrap.servers": ":".join(map(str, server.address)), "group.id": "g", "log_level": 0})
        consumer.assign([TopicPartition("orders", 0, 0)])
        found: list[bytes | None] = []
        while len(found) < 300:
            found += [message.value() for message in consumer.consume(300 - len(found), 30) if not message.error()]
        consumer.close()
    assert found == acknowledged
