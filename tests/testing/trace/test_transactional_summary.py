"""What is worth seeing of requests and answers of producers, and which entries are about a transactional id."""

from typing import Any

import pytest

from groupcoord.core.events import AdminAction, Event, Requested, TimerFired
from groupcoord.protocol import messages as m
from groupcoord.protocol.apis.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from groupcoord.protocol.apis.produce import PartitionProduceData, TopicProduceData
from groupcoord.protocol.apis.txn_offset_commit import TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic
from groupcoord.protocol.apis.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic
from groupcoord.testing.trace import Trace
from groupcoord.testing.trace.events import RequestReceived, TimerExpired, UnknownEvent
from groupcoord.testing.trace.request_summary import error_of, request_details, response_details

PRODUCER: dict[str, Any] = {"producer_id": 7, "producer_epoch": 3}
TOLD = {"transactional_id": "x", **PRODUCER}


def adding(transactional_id: str = "x", **fields: Any) -> AddPartitionsToTxnTransaction:
    topics = (AddPartitionsToTxnTopic(name="t", partitions=(0, 1)),)
    return AddPartitionsToTxnTransaction(transactional_id=transactional_id, topics=topics, **PRODUCER, **fields)


@pytest.mark.parametrize(
    ("request_", "details"),
    [
        (m.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1), {}),
        (
            m.InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=5),
            {"transactional_id": "x", "transaction_timeout_ms": 5},
        ),
        (
            m.InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=5, **PRODUCER),
            {**TOLD, "transaction_timeout_ms": 5},
        ),
        (m.AddPartitionsToTxnRequest(transactions=(adding(),)), {**TOLD, "partitions": ("t-0", "t-1")}),
        (
            m.AddPartitionsToTxnRequest(transactions=(adding(verify_only=True),)),
            {**TOLD, "partitions": ("t-0", "t-1"), "verify_only": True},
        ),
        (m.AddPartitionsToTxnRequest(transactions=(adding(), adding("y"))), {"transactional_ids": ("x", "y")}),
        (m.AddOffsetsToTxnRequest(transactional_id="x", group_id="g", **PRODUCER), TOLD),
        (
            m.TxnOffsetCommitRequest(
                transactional_id="x",
                group_id="g",
                topics=(
                    TxnOffsetCommitRequestTopic(
                        name="t",
                        partitions=(
                            TxnOffsetCommitRequestPartition(
                                partition_index=2, committed_offset=9, committed_metadata=None
                            ),
                        ),
                    ),
                ),
                **PRODUCER,
            ),
            {**TOLD, "offsets": ("t-2@9",)},
        ),
        (m.EndTxnRequest(transactional_id="x", committed=True, **PRODUCER), {**TOLD, "committed": True}),
        (
            m.ProduceRequest(
                transactional_id="x",
                acks=-1,
                timeout_ms=1,
                topic_data=(TopicProduceData(name="t", partition_data=(PartitionProduceData(index=1, records=b""),)),),
            ),
            {"transactional_id": "x", "partitions": ("t-1",), "acks": -1},
        ),
        (
            m.WriteTxnMarkersRequest(
                markers=tuple(
                    WritableTxnMarker(
                        transaction_result=committed,
                        topics=(WritableTxnMarkerTopic(name="t", partition_indexes=(0, 1)),),
                        coordinator_epoch=0,
                        **PRODUCER,
                    )
                    for committed in (True, False)
                )
            ),
            {
                "producers": (7, 7),
                "markers": tuple(
                    f"{how} of producer 7, epoch 3, in t-{number}" for how in ("commit", "abort") for number in (0, 1)
                ),
            },
        ),
        (m.DescribeTransactionsRequest(transactional_ids=("x", "y")), {"transactional_ids": ("x", "y")}),
    ],
)
def test_a_request(request_: Any, details: dict[str, Any]) -> None:
    assert request_details(request_, lambda _: None) == details


@pytest.mark.parametrize("kind", [m.InitProducerIdResponse, m.EndTxnResponse])
def test_an_answer_says_who_the_producer_is(kind: Any) -> None:
    assert response_details(kind(**PRODUCER), lambda _: None) == PRODUCER
    assert response_details(kind(error_code=90, **PRODUCER), lambda _: None) == {}
    assert response_details(kind(), lambda _: None) == {}


def test_the_error_of_a_partition_that_is_added() -> None:
    partition = AddPartitionsToTxnPartitionResult(partition_index=0, partition_error_code=51)
    topic = AddPartitionsToTxnTopicResult(name="t", results_by_partition=(partition,))
    result = AddPartitionsToTxnResult(transactional_id="x", topic_results=(topic,))
    assert error_of(m.AddPartitionsToTxnResponse(results_by_transaction=(result,))) == "CONCURRENT_TRANSACTIONS"


def test_what_is_about_a_transactional_id() -> None:
    trace = Trace()

    def asks(number: int, **details: Any) -> None:
        cause = Requested("FindCoordinator", 6, "c", "/h", 1, number)
        trace(
            RequestReceived(
                at_ms=0,
                cause=cause,
                api="FindCoordinator",
                version=6,
                client_id="c",
                client_host="/h",
                connection_id=1,
                correlation_id=number,
                group="",
                member="",
                instance_id=None,
                generation=-1,
                details=details,
            )
        )

    asks(1, key_type=1, coordinator_keys=("x",))
    asks(2, key_type=1, coordinator_keys=("y",))
    asks(3, coordinator_keys=("x",))
    asks(4, transactional_ids=("y", "x"))
    timer = TimerFired("transaction-timeout", "x", "", 0)
    others: list[Event] = [
        UnknownEvent(at_ms=0, cause=timer, name="of", told="the transaction timer", fields={}),
        UnknownEvent(at_ms=0, cause=timer._replace(kind="session"), name="of", told="the session timer", fields={}),
        UnknownEvent(at_ms=0, cause=AdminAction("something else"), name="of", told="an action", fields={}),
    ]
    for event in others:
        trace(event)
    found = trace.entries(transaction="x")
    assert [(entry.seq, type(entry.event)) for entry in found] == [
        (1, RequestReceived),
        (4, RequestReceived),
        (5, TimerExpired),
    ]
