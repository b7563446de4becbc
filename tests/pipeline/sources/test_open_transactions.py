"""A transaction that hangs hides neither what is behind it in the log of commits nor how far behind a group is."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from groupcoord import Cluster
from groupcoord.client.client_errors import BrokerError, DisconnectedError, UnsupportedVersionError
from groupcoord.client.log_reader import LATEST, READ_UNCOMMITTED, LogReader
from groupcoord.pipeline.columnar_decoder import is_of_places
from groupcoord.pipeline.run import RunOptions
from groupcoord.pipeline.sources import kafka_source
from groupcoord.pipeline.sources.kafka_source import ClusterReader, OffsetRange
from groupcoord.pipeline.sources.segment_files import read_piece, survey
from groupcoord.protocol.batches.record_batch import TRANSACTIONAL, build_batch
from groupcoord.protocol.batches.records import Record
from groupcoord.protocol.errors import ErrorCode
from tests.pipeline.random_log import START_MS, RandomLog
from tests.pipeline.whole_run import run

CONFIG: dict[str, object] = {
    "offsets.topic.num.partitions": 2,
    "offsets.retention.minutes": 2_000_000,
    "log.cleaner.enable": False,
    "log.retention.ms": -1,
}
ORDERS = ("orders", 0)


def since(seconds: int) -> datetime:
    return datetime.fromtimestamp(START_MS / 1000 + seconds, UTC)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of commits and a topic, in each of which a transaction never ends."""
    folder = tmp_path_factory.mktemp("data")
    log = RandomLog(4, partitions=2, steps=150)
    log.leave_open("group-1")
    log.write(folder)
    (folder / "orders-0").mkdir()
    batches = [
        build_batch([Record(offset, START_MS, None, b"") for offset in range(100)], leader_epoch=0),
        build_batch(
            [Record(100, START_MS, None, b"")],
            producer_id=7,
            producer_epoch=0,
            base_sequence=0,
            attributes=TRANSACTIONAL,
            leader_epoch=0,
        ),
        build_batch([Record(offset, START_MS, None, b"") for offset in range(101, 1101)], leader_epoch=0),
    ]
    (folder / "orders-0" / f"{0:020d}.log").write_bytes(b"".join(batches))
    return folder


@pytest.fixture(scope="module")
def address(data: Path) -> Iterator[str]:
    with Cluster(config=CONFIG, data_dir=data, topics={"orders": 1}).sync() as kafka:
        yield kafka.address


def test_a_run_reads_behind_an_open_transaction_what_the_files_have(data: Path, address: str) -> None:
    found = survey(data)
    expected = sorted(
        (piece.log_partition, offset)
        for piece in found.pieces
        for rows in read_piece(piece)
        if not is_of_places(rows)
        for offset in rows["log_offset"].to_pylist()
    )
    options = {"bootstrap": address}
    told: dict[str, int] = {}

    def tell(part: OffsetRange, *counts: int) -> None:
        whats = ("records of aborted transactions", "records of transactions without an end")
        told.update({f"{part.partition} {what}": count for what, count in zip(whats, counts, strict=True) if count})

    bounds = kafka_source.bounds(options, READ_UNCOMMITTED)
    read = [
        (partition, offset, is_of_places(rows))
        for partition, (start, end) in bounds.items()
        for rows in kafka_source.fetch_with_places(options, OffsetRange(partition, start, end, is_stable=False), tell)
        for offset in rows["log_offset"].to_pylist()
    ]
    assert sorted((partition, offset) for partition, offset, is_hidden in read if not is_hidden) == expected
    assert len(read) == sum(end - start for start, end in bounds.values())  # each once: seen, or told to be hidden
    assert told == {f"{remark.log_partition} {remark.what}": remark.records for remark in found.warnings}
    assert sum("without an end" in what for what in told) == 1


def test_the_end_of_a_topic_is_where_it_ends_and_what_holds_readers_up_is_told(address: str) -> None:
    with ClusterReader({"bootstrap": address}, isolation_level=READ_UNCOMMITTED) as cluster:
        ends = cluster.offsets({ORDERS, ("orders", 1)}, LATEST)
    assert ends[ORDERS] == 1101
    assert kafka_source.held_up_partitions({"bootstrap": address}, ends) == {
        ORDERS: {"stable_offset": 100, "producer_id": 7, "transactional_id": None, "since": since(0)}
    }


@pytest.mark.parametrize(
    "problem",
    [
        BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the transactions of broker 1"),
        UnsupportedVersionError("no ListTransactions"),
        DisconnectedError("broker 2 is away"),
    ],
    ids=["its coordinator loads", "an older Kafka", "a broker is away"],
)
def test_without_the_transactional_id_the_rest_is_told(
    address: str, monkeypatch: pytest.MonkeyPatch, problem: Exception
) -> None:
    def transactional_ids(*_: object) -> dict[int, str]:
        raise problem

    monkeypatch.setattr(LogReader, "transactional_ids", transactional_ids)
    [found] = kafka_source.held_up_partitions({"bootstrap": address}, {ORDERS: 1101}).values()
    assert (found["producer_id"], found["transactional_id"]) == (7, None)


def test_a_run_tells_of_each_open_transaction_and_the_groups_that_are_there(
    spark: SparkSession, tmp_path: Path, address: str
) -> None:
    tables = run(spark, f"kafka:{address}", tmp_path / "out")
    [found] = tables["open_transactions"]
    there = {
        row["group"]: row["committed_offset"]
        for row in tables["current_offsets"]
        if (row["topic"], row["partition"]) == ORDERS
    }
    waiting = sorted(group for group, offset in there.items() if offset <= 100)  # all records are of the same moment
    assert 0 < len(waiting) < len(there), there
    assert found == {
        "topic": "orders",
        "partition": 0,
        "stable_offset": 100,
        "end_offset": 1101,
        "producer_id": 7,
        "transactional_id": None,
        "since": since(0),
        "groups": sorted(there),
        "waiting": waiting,
    }
    health = {row["group"]: row["awaited_transactions"] for row in tables["group_health"]}
    assert {group for group, count in health.items() if count} == set(waiting)
    [warning] = [row["what"] for row in tables["source_warnings"] if row["where"] == "orders-0"]
    assert warning == (
        "1,001 offsets are behind an open transaction of producer 7, since 2026-01-01 00:00:00 UTC: "
        "consumers that read committed stop at offset 100"
    )


def test_an_open_transaction_is_no_warning_as_long_as_it_is_young(
    spark: SparkSession, tmp_path: Path, address: str
) -> None:
    tables = run(spark, f"kafka:{address}", tmp_path / "out", RunOptions(now=since(60)))
    assert [row["transactional_id"] for row in tables["open_transactions"]] == [None]
    assert "orders-0" not in {row["where"] for row in tables["source_warnings"]}
    assert not any(row["awaited_transactions"] for row in tables["group_health"])
