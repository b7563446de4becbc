"""A transaction that is open is named by the watch, with its age, until it has an end."""

import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from groupcoord import Cluster
from groupcoord.pipeline.open_and_hanging_transactions import HANGING_AFTER_S, open_transactions, open_transactions_text
from groupcoord.pipeline.schemas import OPEN_TRANSACTIONS
from groupcoord.pipeline.sources.factory import open_stream
from groupcoord.pipeline.watch.alerts import STATE_FILE, WatchAlerts
from groupcoord.pipeline.watch.batch_writer import BatchWriter
from groupcoord.pipeline.watch.metrics import WatchMetrics
from groupcoord.pipeline.watch.output_directory import WatchDirectory
from groupcoord.pipeline.watch.query_loop import WatchSchedule, run_watch
from groupcoord.testing.sync_api import SyncCluster
from tests.pipeline.frames import at


def row(partition: int, producer_id: int | None, since: datetime | None, **more: Any) -> dict[str, Any]:
    place = {"topic": "orders", "partition": partition, "stable_offset": 5, "end_offset": 9, "groups": ["app"]}
    place["waiting"] = []
    return {**place, "transactional_id": None, "producer_id": producer_id, "since": since, **more}


def text(*rows: dict[str, Any], now: datetime) -> str:
    return open_transactions_text(open_transactions(rows), now, HANGING_AFTER_S)


def test_a_producer_has_one_transaction_in_however_many_partitions() -> None:
    [oldest, other, unknown] = open_transactions(
        [
            row(3, 9, at(50)),
            row(2, None, None),
            row(1, 7, at(10), groups=["audit", "app"], waiting=["audit"]),
            row(0, 7, at(20), groups=None),
        ]
    )
    assert (oldest.producer_id, oldest.since, oldest.partitions) == (7, at(10), ("orders-0", "orders-1"))
    assert (oldest.groups, oldest.waiting, oldest.offsets_behind) == (("app", "audit"), ("audit",), 8)
    assert (other.producer_id, unknown.producer_id, unknown.since) == (9, None, None)


def test_one_that_is_in_flight_is_no_incident_and_one_that_kafka_calls_late_hangs() -> None:
    assert text(now=at(0)) == ""
    assert text(row(0, None, None), now=at(0)) == "1 open transaction"
    soon, late = at(20 * 60), at(20 * 60 + 1)
    assert text(row(0, 7, at(0)), now=soon) == "1 open transaction since 2026-01-01 00:00:00 UTC"
    assert text(row(0, 7, at(0)), now=late) == "1 open transaction since 2026-01-01 00:00:00 UTC, 1 hanging"
    assert text(row(0, 7, at(9)), row(1, 8, at(0)), now=late) == (
        "2 open transactions, the oldest since 2026-01-01 00:00:00 UTC, 1 hanging"
    )


@pytest.fixture
def kafka() -> Iterator[SyncCluster]:
    """A cluster whose group ``app`` has committed for ``orders``."""
    with Cluster(topics={"orders": 2}, config={"offsets.topic.num.partitions": 1}).sync() as cluster:
        cluster.produce("orders", b"before")
        cluster.group("app").commit({("orders", 0): 1})
        yield cluster


def test_the_view_has_it_from_its_begin_to_its_end(spark: SparkSession, tmp_path: Path, kafka: SyncCluster) -> None:
    lines: list[str] = []
    now = datetime.now(UTC)
    stream = open_stream(f"kafka:{kafka.address}", {})
    with WatchDirectory(spark, str(tmp_path / "out")) as output:
        manifest = output.begin(stream.spec, stream.identity)
        told: list[dict[str, Any]] = []

        def tell(line: str) -> None:
            event = json.loads(line)
            if event["kind"] == "hanging_transaction":  # the group is late, too, behind it
                told.append(event)

        alerts = WatchAlerts(output, tell, hanging_after_s=HANGING_AFTER_S, say=lines.append)
        metrics = WatchMetrics(limit=100, hanging_after_s=HANGING_AFTER_S, say=lines.append)
        batch_writer = BatchWriter(
            output, stream, manifest, lines.append, now=lambda: now, tell=[metrics.update, alerts.update]
        )

        def metric(name: str) -> list[float]:
            return [sample.value for family in metrics.collect() if family.name == name for sample in family.samples]

        def watch() -> None:
            run_watch(spark, batch_writer, WatchSchedule(is_once=True), threading.Event())

        def seen() -> list[dict[str, Any]]:
            assert (tmp_path / "out" / "tables" / "open_transactions" / "view.parquet").exists()
            found: list[dict[str, Any]] = output.view(OPEN_TRANSACTIONS).to_pylist()
            return found

        watch()
        assert seen() == []
        assert "transaction" not in lines[-1]
        assert metric("kafka_consumergroup_current_offset") == [1]
        assert metric("kafka_open_transactions") == [0]

        producer = kafka.manual_producer("writer")
        producer.init()
        producer.produce("orders", b"half", b"a", b"batch")
        batch_writer.refresh(spark)
        [found] = seen()
        since = found.pop("since")
        assert since <= datetime.now(UTC)
        assert found == {
            "topic": "orders",
            "partition": 0,
            "stable_offset": 1,
            "end_offset": 4,
            "producer_id": producer.producer_id,
            "transactional_id": "writer",
            "groups": ["app"],
            "waiting": ["app"],
        }

        now = since + timedelta(minutes=21)
        kafka.group("app").commit({("orders", 0): 1})
        watch()
        assert f", 1 open transaction since {since:%Y-%m-%d %H:%M:%S} UTC, 1 hanging, " in lines[-1]
        assert metric("kafka_hanging_transactions") == [1]
        assert [(event["state"], event["since"], event["group"]) for event in told] == [
            ("firing", since.isoformat(), "app")
        ]
        assert output.read_note(STATE_FILE) is not None

        producer.end(commit=False)
        kafka.transaction("writer").wait_aborted()
        now += timedelta(seconds=1)
        batch_writer.refresh(spark)
        assert seen() == []
        assert [event["state"] for event in told] == ["firing", "resolved"]
        assert metric("kafka_hanging_transactions") == [0]
        moves: list[str] = []
        output._before_move = moves.append
        now += timedelta(seconds=1)
        batch_writer.refresh(spark)
        assert "tables/lag/view.parquet" in moves
        assert "tables/open_transactions/view.parquet" not in moves  # nothing has changed


def test_one_that_commits_offsets_is_open_in_the_log_too_where_the_watch_stops_before_it(
    spark: SparkSession, tmp_path: Path, kafka: SyncCluster
) -> None:
    stream = open_stream(f"kafka:{kafka.address}", {})
    lines: list[str] = []
    with WatchDirectory(spark, str(tmp_path / "out")) as output:
        batch_writer = BatchWriter(output, stream, output.begin(stream.spec, stream.identity), lines.append)
        run_watch(spark, batch_writer, WatchSchedule(is_once=True), threading.Event())
        producer = kafka.manual_producer("writer")
        producer.init()
        producer.add_offsets("app")
        producer.commit_offsets("app", {("orders", 0): 1, ("orders", 1): 0})
        batch_writer.refresh(spark)
        [found] = output.view(OPEN_TRANSACTIONS).to_pylist()
    assert (found["topic"], found["partition"]) == ("__consumer_offsets", 0)
    assert found["end_offset"] - found["stable_offset"] == 2
    assert (found["producer_id"], found["groups"], found["waiting"]) == (producer.producer_id, ["app"], [])
