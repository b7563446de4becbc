"""Spark's own Kafka connector reads what ``kafka:`` reads. `make kafka-libs` fetches its jars."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from groupcoord import Cluster, SyncCluster
from groupcoord.pipeline.errors import PipelineError
from groupcoord.pipeline.schemas import LAG
from groupcoord.pipeline.sources import spark_kafka_source
from groupcoord.pipeline.sources.factory import open_stream, plan_source
from groupcoord.pipeline.sources.kafka_source import ClusterUnavailableError
from groupcoord.pipeline.sources.spark_kafka_source import ConnectorCluster
from groupcoord.pipeline.watch.batch_outcome import BatchOutcome
from groupcoord.pipeline.watch.batch_writer import BatchWriter
from groupcoord.pipeline.watch.output_directory import WatchDirectory
from groupcoord.pipeline.watch.query_loop import WatchSchedule, run_watch
from tests.pipeline.conftest import CONNECTOR
from tests.pipeline.random_log import RandomLog
from tests.pipeline.whole_run import Tables, run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CONNECTOR, reason="the jars of Spark's Kafka connector are not there: make kafka-libs"),
]
CONFIG: dict[str, object] = {
    "offsets.topic.num.partitions": 2,
    "offsets.retention.minutes": 2_000_000,
    "log.cleaner.enable": False,
}
ASKED_OF_THE_CLUSTER = ("committed_offset", "end_offset", "lag", "log_start_offset", "records_lost")


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SyncCluster]:
    """Groups with a history, and topics that have some records, of which some were deleted."""
    data = tmp_path_factory.mktemp("data")
    RandomLog(6, partitions=2, steps=120).write(data)
    with Cluster(config=CONFIG, data_dir=data, topics={"orders": 4, "payments": 4}).sync() as kafka:
        for number in range(200):
            kafka.produce("orders", b"x", partition=number % 3)
        yield kafka


def lags(rows: list[dict[str, Any]]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    places = [(row["group"], row["topic"], row["partition"]) for row in rows]
    found = [tuple(row[name] for name in ASKED_OF_THE_CLUSTER) for row in rows]
    return dict(zip(places, found, strict=True))


def test_a_run_and_a_watch_have_the_records_and_the_lags_that_kafka_has(
    spark: SparkSession, tmp_path: Path, kafka: SyncCluster
) -> None:
    expected, found = (run(spark, f"{kind}:{kafka.address}", tmp_path / kind) for kind in ("kafka", "connector"))

    def records(tables: Tables) -> dict[str, list[str]]:
        return {name: sorted(map(repr, tables[name])) for name in ("commits", "generations", "current_offsets")}

    assert records(found) == records(expected)
    assert len(found["commits"]) > 100
    assert lags(found["lag"]) == lags(expected["lag"])
    assert {row["end_offset"] for row in found["lag"]} >= {0, 66, 67}
    stream = open_stream(f"connector:{kafka.address}", {})
    with WatchDirectory(spark, str(tmp_path / "watched")) as output:
        batch_writer = BatchWriter(output, stream, output.begin(stream.spec, stream.identity), lambda line: None)
        told: list[BatchOutcome] = []
        batch_writer.tell = [told.append]
        run_watch(spark, batch_writer, WatchSchedule(is_once=True), threading.Event())
        watched = lags(output.view(LAG, None).to_pylist())
        run_watch(spark, batch_writer, WatchSchedule(is_once=True), threading.Event())  # goes on where it was
    assert watched == lags(expected["lag"])
    assert [(one.behind, one.knows_transactions) for one in told] == [(0, False)]
    assert batch_writer.manifest.records == len(expected["commits"]) + sum(
        len(expected[name]) for name in ("generations", "modern_records", "bad_records")
    )


def test_what_the_cluster_does_not_tell_is_left_out(spark: SparkSession, kafka: SyncCluster) -> None:
    assert spark.version
    cluster = ConnectorCluster(kafka.address, {})
    assert cluster.latest_ends({("orders", 0), ("orders", 9), ("gone", 0)}) == {("orders", 0): 67}
    assert cluster.latest_ends(None).items() >= {("orders", 2): 66, ("payments", 0): 0}.items()
    assert sorted(cluster.log_bounds()) == [0, 1]


def test_what_goes_wrong_is_one_sentence(spark: SparkSession, kafka: SyncCluster) -> None:
    assert spark.version
    quickly = {"kafka.default.api.timeout.ms": "100"}
    with pytest.raises(
        ClusterUnavailableError, match=r"^127\.0\.0\.1:1: Timeout expired while fetching topic metadata$"
    ):
        ConnectorCluster("127.0.0.1:1", quickly).log_bounds()
    with pytest.raises(PipelineError, match=f"^{kafka.address}: .*NO_SUCH_PROTOCOL"):
        ConnectorCluster(kafka.address, {"kafka.security.protocol": "NO_SUCH_PROTOCOL"}).log_bounds()


def test_without_its_jars_one_line_says_how_to_get_them(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, kafka: SyncCluster
) -> None:
    monkeypatch.setattr(spark_kafka_source, "JavaClass", int)  # as if Java knew no class of that name
    with pytest.raises(PipelineError, match=r"^Spark's Kafka connector is not there: --packages org\.apache\.spark"):
        plan_source(f"connector:{kafka.address}", {}).surveyed(spark)


def test_a_partition_without_a_leader_has_no_end_and_one_of_the_log_is_waited_for(spark: SparkSession) -> None:
    assert spark.version
    config = {"offsets.topic.num.partitions": 1, "offsets.topic.replication.factor": 1}
    with Cluster(config=config, topics={"orders": 2}, brokers=2).sync() as kafka:
        kafka.produce("orders", b"x", partition=0)
        kafka.produce("orders", b"x", partition=1)
        [log], leaders = kafka.leaders("__consumer_offsets").values(), kafka.leaders("orders")
        assert log is not None
        cluster = ConnectorCluster(kafka.brokers[3 - log].address, {})
        assert cluster.latest_ends({("orders", 0), ("orders", 1)}) == {("orders", 0): 1, ("orders", 1): 1}
        kafka.broker(log).stop()
        assert cluster.latest_ends(None) == {("orders", number): 1 for number in leaders if leaders[number] != log}
        with pytest.raises(ClusterUnavailableError, match=r"^__consumer_offsets-0 has no leader$"):
            cluster.log_bounds()


def test_a_cluster_in_which_no_group_has_committed_is_told(spark: SparkSession, kafka: SyncCluster) -> None:
    kafka.faults.when("Metadata", topic="__consumer_offsets").hide_topic()
    with pytest.raises(ClusterUnavailableError, match="has no topic __consumer_offsets: no group has ever committed"):
        plan_source(f"connector:{kafka.address}", {}).surveyed(spark)
