"""Logs are read without a group, and errors from which a cluster recovers are waited out."""

from collections.abc import Iterator
from typing import Any

import pytest

from groupcoord import Cluster, SyncCluster
from groupcoord.assignors import TopicPartition
from groupcoord.client.client_errors import BrokerError, ClientError, CorruptRecordsError, DisconnectedError
from groupcoord.client.log_reader import (
    EARLIEST,
    LATEST,
    MANY_BATCHES,
    ONE_BATCH,
    READ_COMMITTED,
    FetchedBatches,
    LogReader,
)
from groupcoord.client.network_client import NetworkClient, PartitionLeader, TopicMetadata
from groupcoord.client.option_value_parsing import parse_address
from groupcoord.core.effects import LogRecord
from groupcoord.protocol.apis.describe_configs import DescribeConfigsResponse, DescribeConfigsResult
from groupcoord.protocol.apis.describe_producers import (
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from groupcoord.protocol.apis.fetch import AbortedTransaction, FetchableTopicResponse, FetchResponse, PartitionData
from groupcoord.protocol.apis.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from groupcoord.protocol.apis.list_transactions import ListTransactionsResponse, TransactionState
from groupcoord.protocol.batches.record_batch import (
    EndTransactionMarker,
    build_batch,
    build_marker,
    empty_batch,
    read_header,
    records_in,
)
from groupcoord.protocol.batches.records import Record
from groupcoord.protocol.errors import ErrorCode
from tests.offsets_log.test_cluster_source import host_and_port

P = ("orders", 1)


@pytest.fixture(scope="module")
def server() -> Iterator[SyncCluster]:
    with Cluster(topics={"orders": 2}).sync() as server:
        records = [LogRecord(key=b"k", value=b"%d" % number) for number in range(3)]
        server.core.broker.append_to("orders", 1, records, 1)
        yield server


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def reader(server: SyncCluster, pauses: list[float]) -> Iterator[LogReader]:
    address = host_and_port(server)
    with LogReader([address], client_id="test", isolation_level=READ_COMMITTED, tries=3, sleep=pauses.append) as reader:
        yield reader


def test_a_log_is_read(reader: LogReader, server: SyncCluster) -> None:
    assert reader.cluster_id() == server.core.broker.config.cluster_id
    assert reader.partitions(["orders", "nowhere"]) == {"orders": [0, 1]}
    assert reader.topic_id("orders") is not None
    assert reader.offsets([P, ("orders", 9), ("nowhere", 0)], EARLIEST) == {P: 0}
    assert reader.offsets([("orders", 0), P], LATEST) == {("orders", 0): 0, P: 3}
    assert [each.value for each in records_in(reader.fetch(P, 1, 1 << 20, max_wait_ms=1).records)] == [b"0", b"1", b"2"]


def marker_at(offset: int) -> bytes:
    end = EndTransactionMarker(committed=True, coordinator_epoch=0, timestamp_ms=5)
    return build_marker(offset, end, leader_epoch=0, producer_id=7, producer_epoch=0)


def test_the_first_record_is_found_behind_what_is_none(server: SyncCluster) -> None:
    """A batch in which compaction has left no record and a marker come before it; a marker alone is not a record."""
    empty = empty_batch(read_header(build_batch([Record(0, 1, None, b"gone")], leader_epoch=0)))
    marker = marker_at(1)
    batch = build_batch([Record(offset, 10 * offset, None, b"") for offset in (2, 3)], base_offset=2, leader_epoch=0)
    asked: list[tuple[int, int]] = []
    batches = {0: empty, 1: marker + batch, 2: batch, 3: batch}

    class Reader(LogReader):
        def fetch(
            self, partition: TopicPartition, offset: int, max_bytes: int, *, max_wait_ms: int = 0
        ) -> FetchedBatches:
            asked.append((offset, max_bytes))
            return FetchedBatches(batches.get(offset, b""), [])

    with Reader([host_and_port(server)], client_id="test") as reader:
        found = reader.first_record(P, 0)
        assert found is not None
        assert (found.offset, found.timestamp_ms) == (2, 20)
        assert asked == [(0, ONE_BATCH), (1, MANY_BATCHES)]
        found = reader.first_record(P, 3)
        assert found is not None
        assert (found.offset, found.timestamp_ms) == (3, 30)
        assert reader.first_record(P, 4) is None
        batches[4] = marker_at(4)
        assert reader.first_record(P, 4) is None
        batches[5] = b"\xff" * 100
        with pytest.raises(CorruptRecordsError):
            reader.first_record(P, 5)


def test_the_first_record_is_fetched_from_a_server(reader: LogReader) -> None:
    found = reader.first_record(P, 1)
    assert found is not None
    assert (found.offset, found.value) == (1, b"1")
    assert reader.first_record(P, 3) is None


def test_what_does_not_exist_is_told(reader: LogReader, pauses: list[float]) -> None:
    for partition in (("orders", 9), ("nowhere", 0)):
        with pytest.raises(ClientError, match=f"there is no {partition[0]}-{partition[1]}"):
            reader.fetch(partition, 0, 1000)
    with pytest.raises(BrokerError, match="orders-1 at offset 9: OFFSET_OUT_OF_RANGE"):
        reader.fetch(P, 9, 1000)
    assert not pauses


def answer_fetches(monkeypatch: pytest.MonkeyPatch, *answers: PartitionData) -> None:
    """Answer one fetch after the other with ``answers``."""
    left = list(answers)

    async def request_of(*_: Any, **__: Any) -> FetchResponse:
        return FetchResponse(responses=(FetchableTopicResponse(partitions=(left.pop(0),)),))

    monkeypatch.setattr(NetworkClient, "request_of", request_of)


def failed(code: ErrorCode) -> PartitionData:
    return PartitionData(partition_index=1, error_code=code, high_watermark=0, records=None)


def test_what_may_pass_is_tried_again(reader: LogReader, pauses: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    aborted = (AbortedTransaction(producer_id=7, first_offset=2),)
    answer = PartitionData(partition_index=1, high_watermark=3, records=b"", aborted_transactions=aborted)
    moved, storage = ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR
    answer_fetches(monkeypatch, failed(moved), failed(storage), answer)
    assert reader.fetch(P, 0, 1000).aborted == [(7, 2)]
    assert pauses == [0.1, 0.2]
    answer_fetches(monkeypatch, failed(moved), failed(moved), failed(moved))
    with pytest.raises(BrokerError, match="NOT_LEADER_OR_FOLLOWER"):
        reader.fetch(P, 0, 1000)
    assert pauses == [0.1, 0.2, 0.1, 0.2]


def test_a_leader_that_is_missing_is_waited_for(
    reader: LogReader, pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refresh(cluster: NetworkClient, topics: list[str]) -> None:
        cluster.topics["orders"] = TopicMetadata(None, {1: PartitionLeader(-1, 0, ())})

    monkeypatch.setattr(NetworkClient, "refresh", refresh)
    with pytest.raises(BrokerError, match="orders-1: LEADER_NOT_AVAILABLE"):
        reader.fetch(P, 0, 1000)
    assert pauses == [0.1, 0.2]


def test_what_nobody_tells_is_left_out_if_that_is_asked_for(
    reader: LogReader, pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One partition is denied, one has no leader, the leader of another has moved, and only one can be told."""
    assert reader.all_partitions() >= {("orders", 0), P}
    asked: list[list[int]] = []

    async def refresh(cluster: NetworkClient, topics: set[str]) -> None:
        cluster.topic_errors = {"secret": ErrorCode.TOPIC_AUTHORIZATION_FAILED}
        leaders = {0: PartitionLeader(1, 0, ()), 1: PartitionLeader(-1, 0, ()), 2: PartitionLeader(1, 0, ())}
        cluster.topics["orders"] = TopicMetadata(None, leaders)

    async def request_of(
        _cluster: NetworkClient, _broker: int, request: Any, *_: Any, **__: Any
    ) -> ListOffsetsResponse:
        numbers = [each.partition_index for each in request.topics[0].partitions]
        asked.append(numbers)
        moved = {2: ErrorCode.NOT_LEADER_OR_FOLLOWER} if len(asked) < 3 else {}
        told = tuple(
            ListOffsetsPartitionResponse(partition_index=number, offset=5, error_code=moved.get(number, 0))
            for number in numbers
        )
        return ListOffsetsResponse(topics=(ListOffsetsTopicResponse(name="orders", partitions=told),))

    monkeypatch.setattr(NetworkClient, "refresh", refresh)
    monkeypatch.setattr(NetworkClient, "request_of", request_of)
    wanted = [("orders", number) for number in range(4)] + [("secret", 0), ("nowhere", 0)]
    assert reader.known_offsets(wanted, LATEST) == {("orders", 0): 5, ("orders", 2): 5}
    assert asked == [[0, 2], [2], [2]]
    assert pauses == [0.1, 0.2]
    assert reader.known_offsets([("orders", 0), ("secret", 0)], LATEST) == {("orders", 0): 5}
    assert pauses == [0.1, 0.2]  # what is denied is not asked for again
    with pytest.raises(BrokerError, match="secret-0: TOPIC_AUTHORIZATION_FAILED"):
        reader.offsets([("orders", 0), ("secret", 0)], LATEST)


def test_a_lost_connection_is_made_again_and_a_wrong_address_is_told_at_once(
    server: SyncCluster, reader: LogReader, pauses: list[float]
) -> None:
    nowhere = LogReader([("127.0.0.1", 1)], client_id="test", tries=3, sleep=pauses.append)
    with nowhere, pytest.raises(DisconnectedError, match=r"127\.0\.0\.1:1"):
        nowhere.partitions(["orders"])
    assert not pauses
    assert reader.addresses() == [host_and_port(server)]
    server.faults.when("Metadata", client_id="test").disconnect()
    server.faults.when("Fetch", client_id="test").disconnect()
    assert reader.fetch(P, 1, 1 << 20).records
    assert pauses == [0.1, 0.2]


def test_the_ends_of_partitions_whose_leader_does_not_answer_are_left_out(pauses: list[float]) -> None:
    with Cluster(topics={"orders": 3}, brokers=3).sync() as kafka:
        for number in range(3):
            kafka.produce("orders", b"x", partition=number)
        leaders = kafka.leaders("orders")
        kafka.faults.when("ListOffsets", broker=leaders[1]).disconnect().times(6)
        wanted = [("orders", number) for number in range(3)]
        with LogReader([host_and_port(kafka)], client_id="test", tries=3, sleep=pauses.append) as reader:
            found = reader.known_offsets(wanted, LATEST)
            with pytest.raises(DisconnectedError):
                reader.offsets(wanted, LATEST)
    assert found == {("orders", number): 1 for number in range(3) if leaders[number] != leaders[1]}
    assert pauses == [0.1, 0.2, 0.1, 0.2]


def test_open_transactions_are_told_the_first_to_begin_first(
    reader: LogReader, pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert reader.open_transactions(P) == []
    states = [(7, 12), (8, -1), (9, 5)]
    producers = tuple(
        ProducerState(producer_id=producer, producer_epoch=0, coordinator_epoch=0, current_txn_start_offset=start)
        for producer, start in states
    )
    moved = PartitionResponse(partition_index=1, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    answers = [moved, PartitionResponse(partition_index=1, active_producers=producers)]

    async def request_of(*_: Any, **__: Any) -> DescribeProducersResponse:
        return DescribeProducersResponse(topics=(TopicResponse(name="orders", partitions=(answers.pop(0),)),))

    monkeypatch.setattr(NetworkClient, "request_of", request_of)
    assert reader.open_transactions(P) == [(9, 5), (7, 12)]
    assert pauses == [0.1]


def test_the_transactional_id_of_a_producer_is_told_by_its_coordinator(
    server: SyncCluster, reader: LogReader, monkeypatch: pytest.MonkeyPatch, pauses: list[float]
) -> None:
    first, other = server.manual_producer("payments"), server.manual_producer("refunds")
    first.init()
    other.init()
    nobody = other.producer_id + 1
    state = TransactionState(transactional_id="late", producer_id=9, transaction_state="Ongoing")
    assert reader.transactional_ids([first.producer_id, nobody]) == {first.producer_id: "payments"}
    answers = [
        ListTransactionsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        ListTransactionsResponse(transaction_states=(state,)),
    ]

    async def request_of(*_: Any, **__: Any) -> ListTransactionsResponse:
        return answers.pop(0)

    monkeypatch.setattr(NetworkClient, "request_of", request_of)
    assert reader.transactional_ids([9]) == {9: "late"}
    assert pauses == [0.1]


def test_a_property_of_a_broker_is_told_if_there_is_one(reader: LogReader, monkeypatch: pytest.MonkeyPatch) -> None:
    assert reader.broker_property("offsets.retention.minutes") == "10080"
    assert reader.broker_property("no.such.property") is None
    denied = DescribeConfigsResult(
        error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, resource_type=4, resource_name="1"
    )

    async def request_of(*_: Any, **__: Any) -> DescribeConfigsResponse:
        return DescribeConfigsResponse(results=(denied,))

    monkeypatch.setattr(NetworkClient, "request_of", request_of)
    with pytest.raises(BrokerError, match="CLUSTER_AUTHORIZATION_FAILED"):
        reader.broker_property("offsets.retention.minutes")


def test_an_address_is_a_host_and_a_port() -> None:
    assert parse_address(" [::1]:9 ") == ("::1", 9)
    with pytest.raises(ValueError, match="'somewhere' is not HOST:PORT"):
        parse_address("somewhere")
