"""Transactions in a cluster: their topic, their markers, and the brokers that coordinate them."""

from typing import Any

import pytest

from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.apis.add_partitions_to_txn import AddPartitionsToTxnTopic, AddPartitionsToTxnTransaction
from groupcoord.protocol.apis.delete_topics import DeleteTopicState
from groupcoord.protocol.apis.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic
from groupcoord.protocol.batches.record_batch import BatchError
from groupcoord.protocol.errors import ErrorCode as E
from groupcoord.protocol.messages import (
    AddPartitionsToTxnRequest,
    DeleteTopicsRequest,
    DescribeTransactionsRequest,
    EndTxnRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    WriteTxnMarkersRequest,
)
from tests.cluster.gated import Bench

T0 = ("t", 0)


def bench() -> Bench:
    """A node that coordinates transactions."""
    made = Bench(transaction_state_log_num_partitions=1)
    assert find(made) is E.COORDINATOR_NOT_AVAILABLE
    assert find(made) is E.NONE
    return made


def find(where: Bench) -> E:
    """What FindCoordinator says of a transactional id; the first time the topic is made."""
    asked = where.ask(ApiKey.FIND_COORDINATOR, FindCoordinatorRequest(key_type=1, coordinator_keys=("x",)))
    return E(where.answer(asked).coordinators[0].error_code)


def init(where: Bench) -> Any:
    """InitProducerId."""
    request = InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000)
    return where.answer(where.ask(ApiKey.INIT_PRODUCER_ID, request))


def open_transaction(where: Bench) -> int:
    """A transaction with one partition; its producer id."""
    producer_id: int = init(where).producer_id
    topics = (AddPartitionsToTxnTopic(name="t", partitions=(0,)),)
    transaction = AddPartitionsToTxnTransaction(transactional_id="x", producer_id=producer_id, topics=topics)
    asked = where.ask(ApiKey.ADD_PARTITIONS_TO_TXN, AddPartitionsToTxnRequest(transactions=(transaction,)))
    (topic,) = where.answer(asked).results_by_transaction[0].topic_results
    assert topic.results_by_partition[0].partition_error_code == 0
    return producer_id


def state(where: Bench) -> str:
    """What DescribeTransactions says."""
    asked = where.ask(ApiKey.DESCRIBE_TRANSACTIONS, DescribeTransactionsRequest(transactional_ids=("x",)))
    (found,) = where.answer(asked).transaction_states
    return found.transaction_state or E(found.error_code).name


def marks(where: Bench, *markers: WritableTxnMarker) -> Any:
    """WriteTxnMarkers, as an administrator or a real coordinator sends it."""
    return where.answer(where.ask(ApiKey.WRITE_TXN_MARKERS, WriteTxnMarkersRequest(markers=markers)))


def marker(
    *partitions: tuple[str, int], producer_id: int = 7, epoch: int = 1, coordinator_epoch: int = 0
) -> WritableTxnMarker:
    """An abort."""
    topics = tuple(WritableTxnMarkerTopic(name=topic, partition_indexes=(number,)) for topic, number in partitions)
    return WritableTxnMarker(
        producer_id=producer_id, producer_epoch=epoch, topics=topics, coordinator_epoch=coordinator_epoch
    )


def errors(answer: Any) -> dict[tuple[int, str, int], E]:
    """(producer id, topic, partition) → error."""
    return {
        (each.producer_id, topic.name, partition.partition_index): E(partition.error_code)
        for each in answer.markers
        for topic in each.topics
        for partition in topic.partitions
    }


def test_markers_of_an_administrator() -> None:
    where = bench()
    offsets = ("__consumer_offsets", 0)
    answer = marks(where, marker(T0, offsets, ("nowhere", 0)), marker(T0, producer_id=8))
    assert errors(answer) == {
        (7, "t", 0): E.NONE,
        (7, "__consumer_offsets", 0): E.NONE,
        (7, "nowhere", 0): E.UNKNOWN_TOPIC_OR_PARTITION,
        (8, "t", 0): E.NONE,
    }
    assert set(errors(marks(where, marker(T0, offsets, epoch=-1))).values()) == {E.UNKNOWN_SERVER_ERROR}
    assert errors(marks(where, marker(T0, epoch=0))) == {(7, "t", 0): E.INVALID_PRODUCER_EPOCH}
    assert marks(where).markers == ()


def test_a_marker_waits_for_the_log_of_offsets() -> None:
    where = bench()
    where.hold()
    asked = where.ask(ApiKey.WRITE_TXN_MARKERS, WriteTxnMarkersRequest(markers=(marker(("__consumer_offsets", 0)),)))
    assert asked not in where.answers
    where.release()
    assert set(errors(where.answer(asked)).values()) == {E.NONE}


def test_a_coordinator_of_groups_that_is_not_ready_is_no_leader_to_that_of_transactions() -> None:
    where, offsets = bench(), ("__consumer_offsets", 0)
    where.take(where.node.resign(0, 0))
    assert errors(marks(where, marker(offsets))) == {(7, *offsets): E.NOT_LEADER_OR_FOLLOWER}
    where.node.load(0, 0)
    assert errors(marks(where, marker(offsets))) == {(7, *offsets): E.NOT_LEADER_OR_FOLLOWER}
    where.advance(1)
    assert errors(marks(where, marker(offsets))) == {(7, *offsets): E.NONE}


def test_the_topic_of_transactions_goes_and_comes_back() -> None:
    where = bench()
    open_transaction(where)
    delete = DeleteTopicsRequest(timeout_ms=1000, topics=(DeleteTopicState(name="__transaction_state"),))
    where.ask(ApiKey.DELETE_TOPICS, delete)
    assert state(where) == "NOT_COORDINATOR"
    assert init(where).error_code == E.NOT_COORDINATOR
    assert find(where) is E.COORDINATOR_NOT_AVAILABLE
    assert state(where) == "TRANSACTIONAL_ID_NOT_FOUND"


def test_transactional_ids_move_with_their_partition() -> None:
    where = bench()
    producer_id = open_transaction(where)
    with pytest.raises(ValueError, match="it has to resign first"):
        where.node.load(0, 0, "__transaction_state")
    where.take(where.node.resign(0, 0, "__transaction_state"))
    assert state(where) == "NOT_COORDINATOR"
    where.node.load(0, 0, "__transaction_state")
    assert state(where) == "COORDINATOR_LOAD_IN_PROGRESS"
    where.advance(1)
    assert state(where) == "Ongoing"
    where.ask(
        ApiKey.END_TXN,
        EndTxnRequest(transactional_id="x", producer_id=producer_id, producer_epoch=0, committed=True),
    )
    assert state(where) == "CompleteCommit"


def test_without_room_for_producer_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    where = bench()

    def full(_: object) -> None:
        raise BatchError(E.KAFKA_STORAGE_ERROR, "the disk is full")

    monkeypatch.setattr(where.node.broker.storage, "producer_ids_reserved", full, raising=True)
    assert init(where).error_code == E.KAFKA_STORAGE_ERROR


def test_a_marker_of_no_producer_fails_the_others_of_its_request() -> None:
    where = bench()
    where.node.create_topic("u", 2, 0)
    answer = marks(where, marker(("u", 0)), marker(("u", 1), producer_id=-1), marker(("u", 1)))
    failed = E.UNKNOWN_SERVER_ERROR
    assert errors(answer) == {(7, "u", 1): failed, (-1, "u", 1): failed}
    assert [where.node.broker.existing_log("u", number).log_end_offset for number in range(2)] == [1, 0]


def test_a_marker_of_no_producer_to_a_partition_of_offsets_fails_alone() -> None:
    where = bench()
    offsets = ("__consumer_offsets", 0)
    answer = marks(where, marker(offsets, producer_id=-1), marker(T0))
    assert errors(answer) == {(-1, *offsets): E.UNKNOWN_SERVER_ERROR, (7, *T0): E.NONE}


def test_markers_to_nowhere_are_refused() -> None:
    where = bench()
    assert errors(marks(where, marker(("nowhere", 0)), marker())) == {(7, "nowhere", 0): E.UNKNOWN_TOPIC_OR_PARTITION}


def test_a_partition_that_a_marker_names_twice_is_marked_once_and_nobody_is_answered() -> None:
    where = bench()
    asked = where.ask(
        ApiKey.WRITE_TXN_MARKERS, WriteTxnMarkersRequest(markers=(marker(T0, T0), marker(T0, producer_id=8)))
    )
    assert asked not in where.answers
    assert where.node.broker.existing_log("t", 0).log_end_offset == 2
