"""Kafka's own command-line tools, that is the Java client, unmodified."""

import json
from pathlib import Path

import pytest

from tests.clients.cluster import Cluster
from tests.clients.kafka_tools import KafkaTools, NoTools
from tests.clients.processes import Running, running
from tests.clients.support import eventually, partitions_of, unique

pytestmark = pytest.mark.slow


@pytest.fixture(scope="session")
def tools(running_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> KafkaTools:
    """Kafka's tools for this cluster; skips where they cannot be run."""
    try:
        return KafkaTools(running_cluster.bootstrap, tmp_path_factory.mktemp("kafka-tools"))
    except NoTools as reason:
        pytest.skip(str(reason))


def test_topics_are_looked_after(cluster: Cluster, tools: KafkaTools) -> None:
    topic = unique("topic")

    tools("kafka-topics", "--create", "--topic", topic, "--partitions", "2", "--config", "retention.ms=60000")
    tools("kafka-topics", "--alter", "--topic", topic, "--partitions", "3")
    described = tools("kafka-topics", "--describe", "--topic", topic)
    assert "PartitionCount: 3\tReplicationFactor: 1\t" in described
    assert "retention.ms=60000" in described
    assert described.count("Leader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: ") == 3

    change = (
        "--add-config",
        "max.message.bytes=5000,cleanup.policy=[compact,delete]",
        "--delete-config",
        "retention.ms",
    )
    assert "Completed updating config" in tools("kafka-configs", "--alter", "--topic", topic, *change)
    shown = tools("kafka-configs", "--describe", "--topic", topic)
    assert "  cleanup.policy=compact,delete sensitive=false" in shown
    assert "  max.message.bytes=5000 sensitive=false" in shown
    assert "  retention.ms=" not in shown

    tools("kafka-topics", "--delete", "--topic", topic)
    eventually(lambda: topic not in cluster.admin.list_topics().topics, saying="the topic is gone")


def test_the_console_writes_and_reads_and_the_lag_is_shown(cluster: Cluster, group: str, tools: KafkaTools) -> None:
    topic = cluster.topic()
    keyed = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=:")

    tools(
        "kafka-console-producer",
        "--topic",
        topic,
        "--compression-codec",
        "zstd",
        *keyed,
        stdin="a:one\nb:two\nc:three\n",
    )
    shown = ("--formatter-property", "print.key=true", "--formatter-property", "print.offset=true")
    read = tools(
        "kafka-console-consumer", "--topic", topic, "--group", group, "--from-beginning", "--max-messages", "2", *shown
    )
    assert read.splitlines()[-2:] == ["Offset:0\ta\tone", "Offset:1\tb\ttwo"]

    header, row = tools.rows("kafka-consumer-groups", "--describe", "--group", group)
    described = dict(zip(header, row, strict=True))
    assert described["TOPIC"] == topic
    assert [described[column] for column in ("CURRENT-OFFSET", "LOG-END-OFFSET", "LAG")] == ["2", "3", "1"]
    assert tools.rows("kafka-get-offsets", "--topic", topic) == [[f"{topic}:0:3"]]


def test_offsets_are_reset_and_deleted_and_then_the_group(cluster: Cluster, group: str, tools: KafkaTools) -> None:
    topic = cluster.topic(partitions=2)
    cluster.produce(topic, [f"value {number}" for number in range(10)], partitions=2)
    cluster.alter_offsets(group, {(topic, 0): 1, (topic, 1): 4})
    reset = ("--reset-offsets", "--group", group, "--topic", topic)

    assert [group, "Empty"] in tools.rows("kafka-consumer-groups", "--list", "--state", "empty")
    planned = tools.rows("kafka-consumer-groups", *reset, "--shift-by", "2", "--execute")[1:]
    assert sorted(planned) == [[group, topic, "0", "3"], [group, topic, "1", "5"]]
    assert cluster.committed(group) == {(topic, 0): 3, (topic, 1): 5}

    tools("kafka-consumer-groups", "--delete-offsets", "--group", group, "--topic", f"{topic}:0")
    assert cluster.committed(group) == {(topic, 1): 5}
    assert "was successful" in tools("kafka-consumer-groups", "--delete", "--group", group)
    assert cluster.group(group).state.name == "DEAD"


def test_java_consumers_share_a_group(cluster: Cluster, group: str, tools: KafkaTools, tmp_path: Path) -> None:
    topic = cluster.topic(partitions=4)
    config = tmp_path / "consumer.properties"
    config.write_text("heartbeat.interval.ms=100\nfetch.max.wait.ms=100\n")
    options = ("--reset-policy", "earliest", "--verbose", "--command-config", str(config))
    consumer = tools.command("kafka-verifiable-consumer", "--topic", topic, "--group-id", group, *options)

    with running(consumer) as first, running(consumer) as second:
        eventually(lambda: sorted(owners(cluster, group)) == [2, 2], saying="both own two partitions")
        members = tools.rows("kafka-consumer-groups", "--describe", "--group", group, "--members", "--verbose")
        assert sorted(row[4] for row in members[1:]) == ["2", "2"]

        produced = tools(
            "kafka-verifiable-producer", "--topic", topic, "--max-messages", "100", "--repeating-keys", "10"
        )
        sent = {place(event) for event in events(produced.splitlines(), "producer_send_success")}
        assert len(sent) == 100
        eventually(lambda: read(first) | read(second) == sent, saying="everything is read")
        assert not read(first) & read(second)
        committed = {
            partition: sum(1 for each in sent if each[:2] == partition) for partition in partitions_of(topic, 4)
        }
        eventually(lambda: cluster.committed(group) == committed, saying="everything is committed")

        first.terminate()
        eventually(lambda: owners(cluster, group) == [4], saying="who stays owns everything")


def owners(cluster: Cluster, group: str) -> list[int]:
    """How many partitions each member has; the Java tools all have the same client id."""
    return [len(member.assignment.topic_partitions) for member in cluster.group(group).members]


def events(lines: list[str], name: str) -> list[dict[str, object]]:
    """What a verifiable tool tells under that name."""
    told = [json.loads(line) for line in lines]
    return [event for event in told if event["name"] == name]


def place(event: dict[str, object]) -> tuple[object, ...]:
    """Topic, partition and offset."""
    return event["topic"], event["partition"], event["offset"]


def read(consumer: Running) -> set[tuple[object, ...]]:
    """The places of the records that it read."""
    return {place(event) for event in events(consumer.lines, "record_data")}
