"""Kafka's own command-line tools, that is the Java client, unmodified."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from groupcoord import Cluster as KafkaCluster
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.apis.produce import PartitionProduceData, TopicProduceData
from groupcoord.protocol.framing import encode_request, parse_response
from groupcoord.protocol.messages import InitProducerIdRequest, ProduceRequest
from tests.clients import transactional
from tests.clients.cluster import Cluster
from tests.clients.kafka_tools import KafkaTools, NoTools
from tests.clients.processes import Running, running
from tests.clients.support import eventually, partitions_of, unique
from tests.conformance.batches import Rec, batch
from tests.conformance.wire import PATIENCE_MS, SocketTarget

pytestmark = [pytest.mark.slow, pytest.mark.minutes(1)]


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


def test_java_consumers_of_the_consumer_protocol_are_described(cluster: Cluster, group: str, tools: KafkaTools) -> None:
    topic = cluster.topic(partitions=4)
    tools("kafka-configs", "--alter", "--group", group, "--add-config", "consumer.assignment.interval.ms=0")
    shown = tools("kafka-configs", "--describe", "--group", group)
    assert "  consumer.assignment.interval.ms=0 sensitive=false synonyms={DYNAMIC_GROUP_CONFIG:" in shown
    options = ("--group-protocol", "consumer", "--group-remote-assignor", "range")
    consumer = tools.command("kafka-verifiable-consumer", "--topic", topic, "--group-id", group, *options)

    with running(consumer), running([*consumer, "--group-instance-id", "two"]):
        eventually(lambda: sorted(owners(cluster, group)) == [2, 2], saying="both own two partitions")
        eventually(lambda: cluster.group(group).state.name == "STABLE", saying="the group is stable")
        described = ("kafka-consumer-groups", "--describe", "--group", group)
        header, *members = tools.rows(*described, "--members", "--verbose")
        two = next(dict(zip(header, row, strict=True)) for row in members if row[2] == "two")
        assert {name: two[name] for name in header[-5:]} == {
            "#PARTITIONS": "2",
            "CURRENT-EPOCH": two["TARGET-EPOCH"],
            "CURRENT-ASSIGNMENT": two["TARGET-ASSIGNMENT"],
            "TARGET-EPOCH": two["TARGET-EPOCH"],
            "TARGET-ASSIGNMENT": two["TARGET-ASSIGNMENT"],
        }
        assert two["TARGET-ASSIGNMENT"] in (f"{topic}:0,1", f"{topic}:2,3")
        [_, state] = tools.rows(*described, "--state", "--verbose")
        assert state[-5:] == ["range", "Stable", two["TARGET-EPOCH"], two["TARGET-EPOCH"], "2"]
        assert [group, "Consumer"] in tools.rows("kafka-consumer-groups", "--list", "--type", "consumer")


def test_the_controller_and_the_log_directory_are_described(cluster: Cluster, tools: KafkaTools) -> None:
    topic = cluster.topic(partitions=2)
    cluster.produce(topic, ["a value"])

    status = {row[0]: " ".join(row[1:]) for row in tools.rows("kafka-metadata-quorum", "describe", "--status")}
    assert {name: status[name] for name in ("LeaderId:", "LeaderEpoch:", "MaxFollowerLag:", "CurrentObservers:")} == {
        "LeaderId:": "1",
        "LeaderEpoch:": "1",
        "MaxFollowerLag:": "0",
        "CurrentObservers:": "[]",
    }
    assert status["CurrentVoters:"].startswith('[{"id": 1, "endpoints": ["CONTROLLER://')
    header, row = tools.rows("kafka-metadata-quorum", "describe", "--replication")
    replica = dict(zip(header, row, strict=True))
    assert (replica["NodeId"], replica["Lag"], replica["Status"]) == ("1", "0", "Leader")
    assert int(replica["LogEndOffset"]) > 0

    *_, told = tools("kafka-log-dirs", "--describe", "--topic-list", topic).splitlines()
    ((directory,),) = (broker["logDirs"] for broker in json.loads(told)["brokers"])
    assert directory["error"] is None
    sizes = {each["partition"]: each["size"] for each in directory["partitions"]}
    assert set(sizes) == {f"{topic}-0", f"{topic}-1"}
    assert sum(sizes.values()) > len("a value")


def test_brokers_are_listed_and_unregistered(tmp_path: Path) -> None:
    with KafkaCluster(brokers=3).sync() as kafka:
        try:
            tools = KafkaTools(kafka.address, tmp_path)
        except NoTools as reason:
            pytest.skip(str(reason))

        def states(*options: str) -> dict[str, str]:
            _, *rows = tools.rows("kafka-cluster", "list-endpoints", *options)
            return {row[0]: row[4] for row in rows}

        assert "Cluster ID: 5L6g3nShT-eMCtK--X86sw" in tools("kafka-cluster", "cluster-id")
        kafka.broker(3).stop()
        assert states() == {"1": "unfenced", "2": "unfenced"}
        assert states("--include-fenced-brokers") == {"1": "unfenced", "2": "unfenced", "3": "fenced"}
        _, *replicas = tools.rows("kafka-metadata-quorum", "describe", "--replication")
        assert [(row[0], row[-1]) for row in replicas] == [
            ("3000", "Leader"),
            ("1", "Observer"),
            ("2", "Observer"),
            ("3", "Observer"),
        ]
        assert "Broker 3 is no longer registered." in tools("kafka-cluster", "unregister", "--id", "3")
        assert states("--include-fenced-brokers") == {"1": "unfenced", "2": "unfenced"}
        with pytest.raises(AssertionError, match="Broker ID 3 is not currently registered"):
            tools("kafka-cluster", "unregister", "--id", "3")


def test_an_open_transaction_is_shown_and_ended_by_force(cluster: Cluster, tools: KafkaTools) -> None:
    topic, transactional_id, group = cluster.topic(), unique("id"), unique("group")
    producer = transactional.ConfluentProducer(cluster.bootstrap, transactional_id, timeout_ms=50_000)
    producer.begin()
    producer.write(topic, ["a", "b"])
    producer.send_offsets({(topic, 0): 1}, producer.group(group))
    listing = ("kafka-transactions", "list", "--transactional-id-pattern", f"{transactional_id}|nothing")

    header, [shown_id, coordinator, producer_id, state] = tools.rows(*listing)
    assert header == ["TransactionalId", "Coordinator", "ProducerId", "TransactionState"]
    assert (shown_id, coordinator, state) == (transactional_id, "1", "Ongoing")

    header, row = tools.rows("kafka-transactions", "describe", "--transactional-id", transactional_id)
    described = dict(zip(header, row, strict=True))
    began_ms, lasts_ms = (
        int(described.pop(name)) for name in ("CurrentTransactionStartTimeMs", "TransactionDurationMs")
    )
    assert 0 <= lasts_ms < time.time() * 1000 - began_ms + 1
    partitions = described.pop("TopicPartitions").split(",")
    assert sorted(each.rpartition("-")[0] for each in partitions) == ["__consumer_offsets", topic]
    assert described == {
        "CoordinatorId": "1",
        "TransactionalId": transactional_id,
        "ProducerId": producer_id,
        "ProducerEpoch": "0",
        "TransactionState": "Ongoing",
        "TransactionTimeoutMs": "50000",
    }

    assert producer_of(tools, topic) == {
        "ProducerId": producer_id,
        "ProducerEpoch": "0",
        "LatestCoordinatorEpoch": "-1",
        "LastSequence": "1",
        "CurrentTransactionStartOffset": "0",
    }

    assert tools("kafka-transactions", "forceTerminateTransaction", "--transactionalId", transactional_id) == ""
    assert transactional.refusal(producer.commit) == "_FENCED, fatal"
    producer.close()
    assert transactional.read(cluster.bootstrap, topic) == []
    assert tools.rows(*listing)[1] == [transactional_id, "1", producer_id, "Empty"]


def test_a_hanging_transaction_is_found_and_aborted(cluster: Cluster, tools: KafkaTools) -> None:
    topic = cluster.topic()
    producer_id = hang(cluster, topic)
    cluster.produce(topic, ["behind it"])
    find = ("kafka-transactions", "find-hanging", "--topic", topic)
    abort = ("kafka-transactions", "abort", "--topic", topic, "--partition", "0")

    header, row = tools.rows(*find, "--partition", "0")
    found = dict(zip(header, row, strict=True))
    assert time.time() * 1000 - int(found.pop("LastTimestamp")) > 20 * 60_000
    assert int(found.pop("Duration(min)")) >= 20
    assert found == {
        "Topic": topic,
        "Partition": "0",
        "ProducerId": producer_id,
        "ProducerEpoch": "0",
        "CoordinatorEpoch": "-1",
        "StartOffset": "0",
    }
    assert transactional.read(cluster.bootstrap, topic) == []

    assert tools(*abort, "--start-offset", "0") == ""
    assert transactional.read(cluster.bootstrap, topic) == ["behind it"]
    assert tools.rows(*find) == [list(header)]
    ended = {
        "ProducerId": producer_id,
        "ProducerEpoch": "0",
        "LatestCoordinatorEpoch": "0",
        "LastSequence": "0",
        "CurrentTransactionStartOffset": "None",
    }
    assert producer_of(tools, topic) == ended

    producer_id = hang(cluster, topic)
    cluster.produce(topic, ["behind another"])
    assert transactional.read(cluster.bootstrap, topic) == ["behind it"]
    before_kafka_3 = ("--producer-id", producer_id, "--producer-epoch", "0", "--coordinator-epoch", "0")
    assert tools(*abort, *before_kafka_3) == ""
    assert transactional.read(cluster.bootstrap, topic) == ["behind it", "behind another"]


def producer_of(tools: KafkaTools, topic: str) -> dict[str, str]:
    """What is said of the only producer of partition 0, apart from the time of its last record."""
    header, row = tools.rows("kafka-transactions", "describe-producers", "--topic", topic, "--partition", "0")
    described = dict(zip(header, row, strict=True))
    assert int(described.pop("LastTimestamp")) > 0
    return described


def hang(cluster: Cluster, topic: str) -> str:
    """Write, as of half an hour ago, in a transaction of which no coordinator knows; answers the producer's id.

    A broker takes that only while it does not ask the coordinator (KIP-890), as none did before Kafka 3.6.
    """
    wire = SocketTarget.at(cluster.bootstrap).connect()

    def ask(key: ApiKey, version: int, message: Any) -> Any:
        wire.send(encode_request(APIS[key], version, 1, "hanging", message))
        answer = wire.receive(PATIENCE_MS)
        assert answer is not None
        return parse_response(APIS[key], version, answer)[1]

    def is_taken() -> bool:
        [topic_answer] = ask(ApiKey.PRODUCE, 9, request).responses
        return not topic_answer.partition_responses[0].error_code

    anybody = InitProducerIdRequest(
        transactional_id=None, transaction_timeout_ms=60_000, producer_id=-1, producer_epoch=-1
    )
    producer_id = ask(ApiKey.INIT_PRODUCER_ID, 4, anybody).producer_id
    record = Rec(b"hanging", timestamp_ms=int(time.time() * 1000) - 30 * 60_000)
    records = batch([record], producer=(producer_id, 0, 0), attributes=0x10)
    partitions = (PartitionProduceData(index=0, records=records),)
    data = (TopicProduceData(name=topic, partition_data=partitions),)
    request = ProduceRequest(transactional_id="unknown", acks=-1, timeout_ms=PATIENCE_MS, topic_data=data)
    try:
        with unverified(cluster):
            eventually(is_taken, saying="the transaction hangs")
    finally:
        wire.close()
    return str(producer_id)


@contextmanager
def unverified(cluster: Cluster) -> Iterator[None]:
    """A block in which the broker believes any producer that it is in a transaction."""

    def alter(operation: AlterConfigOpType) -> None:
        entry = ConfigEntry("transaction.partition.verification.enable", "false", incremental_operation=operation)
        broker = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])
        cluster.admin.incremental_alter_configs([broker])[broker].result(PATIENCE_MS / 1000)

    alter(AlterConfigOpType.SET)
    try:
        yield
    finally:
        alter(AlterConfigOpType.DELETE)


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
