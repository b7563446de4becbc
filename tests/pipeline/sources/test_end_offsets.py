"""Lags of a small cluster whose records have known times: groupcoord's server, and a real Kafka beside Kafka's own tools."""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

from groupcoord import Cluster
from groupcoord.client.client_errors import BrokerError
from groupcoord.client.log_reader import READ_UNCOMMITTED, LogReader
from groupcoord.client.network_client import NetworkClient
from groupcoord.pipeline.progress import RunProgress
from groupcoord.pipeline.run import RunOptions, run_pipeline
from groupcoord.pipeline.run_output import RunOutput
from groupcoord.pipeline.sources.end_offsets import EarlierEnds, ends_of_cluster, fetch_first_unread, latest_ends
from groupcoord.pipeline.sources.factory import plan_source
from groupcoord.pipeline.sources.kafka_source import ClusterReader
from groupcoord.protocol.errors import ErrorCode
from tests.clients.kafka_tools import KafkaTools
from tests.conformance.settings import NO_RETENTION
from tests.conftest import StartRealKafka
from tests.pipeline.whole_run import run

pytestmark = pytest.mark.slow

RETENTION = {"offsets.retention.minutes": str(30 * 1440)}
HOUR_MS = 3_600_000
NOW = datetime(2026, 1, 2, tzinfo=UTC)
NOW_MS = round(NOW.timestamp() * 1000)
COMMITTED = {"late": {0: 7, 1: 1, 2: 0}, "done": {0: 10, 1: 4, 2: 1}}
"""Group → partition of ``orders`` → offset."""


class Expected(NamedTuple):
    """What a partition of ``orders`` shows to a group."""

    lag: int
    lag_seconds: float | None
    log_start_offset: int = 0
    records_lost: int = 0


EXPECTED = {
    ("late", 0): Expected(3, 3 * 3600.0),
    ("late", 1): Expected(3, 2 * 3600.0, 2, 1),
    ("late", 2): Expected(2, 5 * 3600.0),
    ("done", 0): Expected(0, 0.0),
    ("done", 1): Expected(0, 0.0, 2),
    ("done", 2): Expected(1, 0.0),
}


def fill(bootstrap: str) -> None:
    """Ten records an hour apart in one compressed batch; four of which the first two are deleted; one and a marker."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for made in admin.create_topics([NewTopic("orders", 3, 1)]).values():
        made.result()
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 100, "compression.type": "gzip"})
    for partition, count in ((0, 10), (1, 4)):
        for number in range(count):
            producer.produce("orders", b"x", partition=partition, timestamp=NOW_MS - (count - number) * HOUR_MS)
    producer.flush()
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "till"})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("orders", b"x", partition=2, timestamp=NOW_MS - 5 * HOUR_MS)
    producer.commit_transaction()
    for deleted in admin.delete_records([TopicPartition("orders", 1, 2)]).values():
        deleted.result()
    for group, offsets in COMMITTED.items():
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
        places = [TopicPartition("orders", partition, offset) for partition, offset in offsets.items()]
        consumer.commit(offsets=places, asynchronous=False)
        consumer.close()


def check(spark: SparkSession, bootstrap: str, out: Path) -> list[dict[str, Any]]:
    """A run tells what is expected; returns the rows of ``lag``."""
    tables = run(spark, f"kafka:{bootstrap}", out, RunOptions(now=NOW))
    rows: list[dict[str, Any]] = tables["lag"]
    assert {(row["group"], row["partition"]): tuple(row[name] for name in Expected._fields) for row in rows} == EXPECTED
    assert {row["expire_ts"] - row["last_commit_ts"] for row in rows} == {timedelta(days=30)}
    health = {row["group"]: row for row in tables["group_health"]}
    assert health["late"]["max_lag_seconds"] == 5 * 3600.0
    assert health["late"]["expire_ts"] == min(row["expire_ts"] for row in rows if row["group"] == "late")
    assert (health["late"]["lost_partitions"], health["done"]["lost_partitions"]) == (1, 0)
    return rows


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with Cluster(config={"offsets.topic.num.partitions": 2, "log.retention.ms": -1, **RETENTION}).sync() as kafka:
        fill(kafka.address)
        yield kafka.address


def test_lags_are_those_of_the_moment_at_which_the_cluster_was_asked_where_the_log_ends(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A group that has committed since then, while Spark started, has not stopped; and records that came since then, while the
    log was read, are no lag of a group whose later commits are not read."""
    with Cluster(topics={"orders": 1}, config={"offsets.topic.num.partitions": 1}).sync() as kafka:
        kafka.produce("orders", b"1", b"2", b"3")
        kafka.group("done").commit({("orders", 0): 3})
        kafka.group("late").commit({("orders", 0): 2})
        begun_ms = int(datetime.now(UTC).timestamp() * 1000)
        plan = plan_source(f"kafka:{kafka.address}", {})
        planned = datetime.now(UTC)
        kafka.produce("orders", *(b"later" for _ in range(50)))
        with RunOutput(spark, str(tmp_path / "out")) as output:
            summary = run_pipeline(spark, plan, output, RunOptions(), RunProgress(lambda line: None))
    assert datetime.fromtimestamp(begun_ms / 1000, UTC) <= datetime.fromisoformat(summary["now"]) <= planned
    lags = pq.read_table(tmp_path / "out" / "tables" / "lag", columns=["group", "end_offset", "lag"]).to_pylist()
    assert sorted(tuple(row.values()) for row in lags) == [("done", 3, 0), ("late", 3, 1)]


def test_a_run_needs_none_of_the_brokers_in_particular(spark: SparkSession, tmp_path: Path) -> None:
    """The broker whose address was given, which leads the log, is killed when the run has begun to read."""
    config = {"offsets.topic.num.partitions": 1, "offsets.topic.replication.factor": 3, "default.replication.factor": 3}
    with Cluster(topics={"orders": 1}, brokers=3, config=config).sync() as kafka:
        kafka.produce("orders", b"1", b"2", b"3")
        kafka.group("late").commit({("orders", 0): 2})
        leader = kafka.leaders("__consumer_offsets")[0]
        assert leader is not None
        address = kafka.brokers[leader].address
        kafka.faults.when("Fetch", client_id="groupcoord-pipeline", broker=leader).kill_broker()
        tables = run(spark, f"kafka:{address}", tmp_path / "out")
    assert [(row["end_offset"], row["lag"]) for row in tables["lag"]] == [(3, 1)]


def test_what_a_user_may_not_read_or_not_even_describe_remains_unknown_and_is_told(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Of ``orders`` the user may not read what a transaction has written, and ``secret`` the user may not describe."""
    with Cluster(topics={"orders": 1, "secret": 2}, config={"offsets.topic.num.partitions": 1}).sync() as kafka:
        kafka.group("late").commit({("orders", 0): 2, ("secret", 1): 0})
        producer = Producer({"bootstrap.servers": kafka.address, "transactional.id": "till"})
        producer.init_transactions()
        producer.begin_transaction()
        for _ in range(5):
            producer.produce("orders", b"x")
        producer.flush()
        when = kafka.faults.when
        when("Metadata", topic="secret").hide_topic()
        when("DescribeProducers").refuse("TOPIC_AUTHORIZATION_FAILED")
        tables = run(spark, f"kafka:{kafka.address}", tmp_path / "out")
    assert {row["topic"]: row["lag"] for row in tables["lag"]} == {"orders": 3, "secret": None}
    [held_up] = tables["open_transactions"]
    assert (held_up["topic"], held_up["stable_offset"], held_up["producer_id"]) == ("orders", 0, None)
    assert {(row["where"], row["what"].partition(":")[0]) for row in tables["source_warnings"]} == {
        ("orders-0", "5 offsets are behind an open transaction"),
        ("secret", "where 1 of its partitions ends is not known, and so no lag there"),
    }


def test_a_partition_whose_end_nobody_tells_has_no_lag_and_the_others_have_theirs(
    spark: SparkSession, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = [("orders", 0, 7), ("orders", 1, 3), ("gone", 0, 1)]
    wanted = spark.createDataFrame(places, "topic string, partition int, committed_offset bigint")
    options = {"bootstrap": address}

    def ends(earlier: EarlierEnds | None) -> dict[tuple[str, int], int]:
        found = ends_of_cluster(wanted, options, 0, earlier).select("topic", "partition", "end_offset").collect()
        return {(row.topic, row.partition): row.end_offset for row in found}

    assert ends(None) == {("orders", 0): 10, ("orders", 1): 4}
    assert ends(EarlierEnds({("orders", 0): 8}, has_others=True)) == {("orders", 0): 8, ("orders", 1): 4}
    assert ends(EarlierEnds({("orders", 0): 800}, has_others=False)) == {("orders", 0): 10}
    assert latest_ends(None, options).items() >= ends(None).items()
    leader_of = NetworkClient.leader_of
    monkeypatch.setattr(
        NetworkClient, "leader_of", lambda self, place: None if place == ("orders", 1) else leader_of(self, place)
    )
    assert latest_ends({("orders", 0), ("orders", 1)}, options) == {("orders", 0): 10}


def test_a_run_tells_how_old_the_first_unread_record_is(spark: SparkSession, tmp_path: Path, address: str) -> None:
    check(spark, address, tmp_path / "out")


def test_of_a_real_kafka_it_tells_what_kafkas_own_tools_tell(
    spark: SparkSession, tmp_path: Path, start_real_kafka: StartRealKafka
) -> None:
    properties = {**NO_RETENTION, "offsets.topic.num.partitions": "2", "log.retention.ms": "-1", **RETENTION}
    with start_real_kafka(properties) as kafka, ThreadPoolExecutor(1) as beside_the_run:
        fill(kafka.bootstrap_servers)
        told = beside_the_run.submit(of_tools, kafka.bootstrap_servers, tmp_path)
        rows = check(spark, kafka.bootstrap_servers, tmp_path / "out")
        said, starts = told.result()
    assert set(starts) == {f"orders:{row['partition']}:{row['log_start_offset']}" for row in rows}
    described = {tuple(words[:6]) for words in said if words[1] == "orders"}
    assert described == {
        tuple(str(row[name]) for name in ("group", "topic", "partition", "committed_offset", "end_offset", "lag"))
        for row in rows
    }


def of_tools(bootstrap: str, folder: Path) -> tuple[list[list[str]], list[str]]:
    """What Kafka's tools say of all groups, a row in words each, and of where ``orders`` begins."""
    tools = KafkaTools(bootstrap, folder)
    said = tools.rows("kafka-consumer-groups", "--describe", "--all-groups")
    return said, tools("kafka-get-offsets", "--topic", "orders", "--time", "earliest").split()


def asked(address: str, committed: Mapping[int, int], **limits: Any) -> dict[int, list[dict[str, Any]]]:
    """What is found of ``committed`` offsets, by the partitions of ``orders``."""
    rows: list[dict[str, Any]] = [
        {"topic": "orders", "partition": partition, "end_offset": 10, "log_start_offset": 0, "unread": []}
        for partition in committed
    ]
    places = {("orders", partition): [offset] for partition, offset in committed.items()}
    with ClusterReader({"bootstrap": address}, isolation_level=READ_UNCOMMITTED) as cluster:
        fetch_first_unread(cluster, rows, places, **limits)
    return {row["partition"]: row["unread"] for row in rows}


def test_only_the_longest_lags_are_asked_for_and_not_for_ever(address: str) -> None:
    since = (NOW - timedelta(hours=3)) - datetime(1970, 1, 1, tzinfo=UTC)
    found = {"committed_offset": 7, "at": since // timedelta(microseconds=1)}
    assert asked(address, {0: 7}) == {0: [found]}
    assert asked(address, {0: 7, 1: 2}, most=1)[0] == []
    assert asked(address, {0: 7}, patience_s=0.0) == {0: []}


def test_what_cannot_be_read_remains_unknown(address: str) -> None:
    assert asked(address, {1: 1, 9: 1}) == {1: [], 9: []}  # deleted meanwhile, and no such partition
    row = {"topic": "orders", "partition": 1, "end_offset": 10, "log_start_offset": None, "unread": []}
    with ClusterReader({"bootstrap": address}, isolation_level=READ_UNCOMMITTED) as cluster:
        fetch_first_unread(cluster, [row], {("orders", 1): [1]})
    assert row["unread"] == []  # nor is it known where the log begins


def test_a_cluster_that_does_not_tell_its_retention_may_have_any(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broker_property(*_: object) -> str:
        raise BrokerError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "the properties of broker 1")

    with ClusterReader({"bootstrap": address}) as cluster:
        assert cluster.offsets_retention_ms() == 30 * 86_400_000
        monkeypatch.setattr(LogReader, "broker_property", broker_property)
        assert cluster.offsets_retention_ms() is None


def test_a_record_without_a_time_remains_unknown_and_one_of_no_calendar_has_the_nearest(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter([-1, 1 << 62])
    monkeypatch.setattr(ClusterReader, "first_record_ms", lambda *_: next(times))
    assert asked(address, {0: 1}) == {0: []}
    [found] = asked(address, {0: 1})[0]
    assert datetime.fromtimestamp(found["at"] // 1_000_000, UTC).year == 9999
