"""A running groupcoord is read as any client reads it."""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from groupcoord import SyncCluster
from groupcoord.broker.topic_names import TRANSACTION_STATE
from groupcoord.client.network_client import NetworkClient
from groupcoord.core.effects import LogRecord
from groupcoord.core.java_hash_order import partition_for
from groupcoord.offsets_log import cluster_source as module
from groupcoord.offsets_log.cluster_source import ClusterSource
from groupcoord.offsets_log.entries import LogEntry, entries
from groupcoord.offsets_log.log_source import Batch, SourceError, UnreadableData
from groupcoord.protocol.apis.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from groupcoord.protocol.batches.record_batch import build_batch
from groupcoord.protocol.batches.records import Record
from groupcoord.protocol.coordinator_records.group_records import (
    OffsetCommitKey,
    OffsetCommitValue,
    write_key,
    write_value,
)
from groupcoord.protocol.errors import ErrorCode
from tests.clients.in_process import groupcoord

PARTITIONS = 3
GROUPS = ("billing", "shipping", "audit")
BUSY = partition_for("billing", PARTITIONS)


def commit(group: str, offset: int) -> LogRecord:
    key = write_key(OffsetCommitKey(group=group, topic="orders", partition=0))
    return LogRecord(
        key=key, value=write_value(OffsetCommitValue(offset=offset, metadata="", commit_timestamp_ms=1), 4)
    )


def host_and_port(server: SyncCluster) -> tuple[str, int]:
    host, _, port = server.address.rpartition(":")
    return host, int(port)


@pytest.fixture(scope="module")
def server() -> Iterator[SyncCluster]:
    with groupcoord({"offsets.topic.num.partitions": PARTITIONS}) as server:
        for number in range(40):
            for group in GROUPS:
                partition = partition_for(group, PARTITIONS)
                server.core.broker.append_to("__consumer_offsets", partition, [commit(group, number)], 1)
        yield server


@pytest.fixture
def source(server: SyncCluster) -> Iterator[ClusterSource]:
    with contextlib.closing(ClusterSource(host_and_port(server))) as source:
        yield source


def told(source: ClusterSource) -> list[tuple[str | None, int]]:
    found = [each for number in source.partitions for each in source.read(number)]
    assert all(isinstance(each, Batch) for each in found)
    said = [entry for each in found if isinstance(each, Batch) for entry in entries(each)]
    return [(each.group, each.what.value.fields["offset"]) for each in said if isinstance(each, LogEntry)]  # type: ignore[union-attr]


def test_everything_is_read(source: ClusterSource, server: SyncCluster) -> None:
    assert source.partitions == [0, 1, 2]
    assert source.topic_id == server.core.broker.topics.topic_id("__consumer_offsets")
    assert sorted(told(source)) == sorted((group, number) for group in GROUPS for number in range(40))


@pytest.mark.slow
def test_in_many_pieces_it_is_the_same(source: ClusterSource, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = told(source)
    monkeypatch.setattr(module, "FETCH_BYTES", 300)
    assert told(source) == whole


def test_a_broker_that_knows_no_ids_is_asked_by_name(source: ClusterSource, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NetworkClient, "topic_id", lambda *_: None)
    assert len(told(source)) == 40 * len(GROUPS)


def test_nobody_there_is_told() -> None:
    with pytest.raises(SourceError, match=r"^127\.0\.0\.1:1 cannot be reached"):
        ClusterSource(("127.0.0.1", 1))


def test_a_cluster_without_the_topic_is_told() -> None:
    with groupcoord() as empty:
        empty.core.broker.topics.delete("__consumer_offsets")
        with pytest.raises(SourceError, match="has no topic __consumer_offsets: nobody has needed it yet"):
            ClusterSource(host_and_port(empty))
        with pytest.raises(SourceError, match="has no topic __transaction_state"):
            ClusterSource(host_and_port(empty), TRANSACTION_STATE)


def test_a_cluster_that_does_not_tell_is_told(server: SyncCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(cluster: NetworkClient, topics: list[str]) -> None:
        cluster.topic_errors[topics[0]] = ErrorCode.TOPIC_AUTHORIZATION_FAILED

    monkeypatch.setattr(NetworkClient, "refresh", refuse)
    with pytest.raises(SourceError, match=r"does not tell about __consumer_offsets: Topic authorization failed\.$"):
        ClusterSource(host_and_port(server))


def test_a_partition_that_nobody_leads_is_told(source: ClusterSource, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NetworkClient, "leader_of", lambda *_: None)
    with pytest.raises(SourceError, match="__consumer_offsets-1: LEADER_NOT_AVAILABLE"):
        list(source.read(1))


def test_a_partition_that_cannot_be_read_is_told(source: ClusterSource, monkeypatch: pytest.MonkeyPatch) -> None:
    answer_fetches(monkeypatch, b"", ErrorCode.KAFKA_STORAGE_ERROR)
    with pytest.raises(SourceError, match=r"-[0-2] at offset 0: KAFKA_STORAGE_ERROR: Disk error"):
        list(source.read(BUSY))


def answer_fetches(monkeypatch: pytest.MonkeyPatch, data: bytes | None, error: ErrorCode = ErrorCode.NONE) -> None:
    """Every fetch brings ``data``, of a log from 0 to 40."""
    real = NetworkClient.request_of

    async def request_of(cluster: NetworkClient, node_id: int, request: Any, *rest: Any, **named: Any) -> Any:
        if not hasattr(request, "min_bytes"):
            return await real(cluster, node_id, request, *rest, **named)
        partition = PartitionData(partition_index=0, error_code=error, high_watermark=40, records=data)
        return FetchResponse(responses=(FetchableTopicResponse(partitions=(partition,)),))

    monkeypatch.setattr(NetworkClient, "request_of", request_of)


def test_an_end_that_was_compacted_away_is_the_end(source: ClusterSource, monkeypatch: pytest.MonkeyPatch) -> None:
    answer_fetches(monkeypatch, None)
    assert list(source.read(BUSY)) == []


def test_a_broken_batch_is_told_and_ends_the_partition(source: ClusterSource, monkeypatch: pytest.MonkeyPatch) -> None:
    good = build_batch([Record(0, 1, b"k", b"v")])
    wrong = bytearray(build_batch([Record(1, 1, b"k", b"v")]))
    wrong[65] ^= 1
    answer_fetches(monkeypatch, good + bytes(wrong) + good)
    first, fault = source.read(BUSY)
    assert isinstance(first, Batch)
    assert fault == UnreadableData(BUSY, 1, "the checksum of the batch is wrong")
    wrong[16] = 9
    answer_fetches(monkeypatch, good + bytes(wrong))
    _, fault = source.read(BUSY)
    assert fault == UnreadableData(BUSY, 1, "Invalid magic found in record: 9")
