"""Kafka's own tools read what is exported, and a real broker serves it."""

import shutil
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from groupcoord.cli.main import main
from tests.offsets_log.lone_kafka import LoneKafka
from tests.offsets_log.recorded import COMMITTED, KAFKA_FILES, VERSIONS, Committed
from tests.real_kafka import RealKafkaUnavailable

pytestmark = pytest.mark.real_kafka

PROPERTIES = {"offsets.topic.num.partitions": "3", "offsets.retention.minutes": "2147483647"}
COMPLAINTS = ("non-consecutive", "Mismatches", "corrupt", "Exception", "Found", "unexpected")


@pytest.fixture
def kafka(tmp_path: Path) -> LoneKafka:
    try:
        return LoneKafka(tmp_path / "kafka", PROPERTIES)
    except RealKafkaUnavailable as reason:
        pytest.skip(f"no real Kafka: {reason}")


def exported(source: Path, target: Path, *options: str) -> Path:
    assert main(["offsets", "export", str(source), str(target), *options]) == 0
    return target


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("groups", [(), ("payments", "billing")])
def test_its_tools_read_it_without_complaint(
    version: str, groups: tuple[str, ...], kafka: LoneKafka, tmp_path: Path
) -> None:
    options = [option for group in groups for option in ("--group", group)]
    folders = exported(KAFKA_FILES / version, tmp_path / "exported", *options)
    files = ",".join(
        str(path) for path in sorted(folders.rglob("*")) if path.suffix in {".log", ".index", ".timeindex", ".txnindex"}
    )
    dumped = kafka.run_class("org.apache.kafka.tools.DumpLogSegments", "--offsets-decoder", "--files", files)
    told = dumped.stdout + dumped.stderr
    assert dumped.returncode == 0, told
    assert [word for word in COMPLAINTS if word in told] == [], told
    names = groups or COMMITTED[version]
    assert all(f'"group":"{name}"' in told for name in names)
    assert ('"group":"simple"' in told) is not bool(groups)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_broker_serves_the_same_offsets(
    version: str, kafka: LoneKafka, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What one broker wrote goes into a data directory of groupcoord, out of it again, and into another broker."""
    data = tmp_path / "data"
    partitions = ("-c", "offsets.topic.num.partitions=3")
    assert main(["offsets", "import", str(KAFKA_FILES / version), str(data), *partitions]) == 0
    with kafka:
        client = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
        for made in client.create_topics([NewTopic("orders", 2, 1)]).values():
            made.result()
    metadata = (kafka.data / "__consumer_offsets-0" / "partition.metadata").read_text()
    topic_id = metadata.split("topic_id: ")[1].strip()
    folders = exported(data, tmp_path / "exported", "--topic-id", topic_id)
    for folder in folders.iterdir():
        shutil.rmtree(kafka.data / folder.name)
        shutil.copytree(folder, kafka.data / folder.name)
    with kafka:
        said = kafka.run_class(
            "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
            *("--bootstrap-server", kafka.bootstrap_servers, "--describe", "--all-groups"),
        )
        capsys.readouterr()
        assert main(["offsets", "dump", kafka.bootstrap_servers]) == 0
    assert described(said.stdout) == COMMITTED[version], said.stdout + said.stderr
    over_the_wire = capsys.readouterr().out.splitlines()
    assert main(["offsets", "dump", str(KAFKA_FILES / version)]) == 0
    in_files = capsys.readouterr().out.splitlines()
    assert in_files
    assert [line for line in over_the_wire if line in in_files] == in_files, "the broker may have added something"


def described(text: str) -> Committed:
    """Group → partition → committed offset, from the tables of kafka-consumer-groups."""
    found: Committed = defaultdict(dict)
    for group, partition, offset in rows(text):
        found[group][partition] = offset
    return found


def rows(text: str) -> Iterator[tuple[str, int, int]]:
    for line in text.splitlines():
        words = line.split()
        if len(words) > 4 and words[1] == "orders":
            yield words[0], int(words[2]), int(words[3])
