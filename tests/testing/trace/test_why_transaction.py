"""Why a transaction was aborted and a producer refused, in words."""

from pathlib import Path
from typing import Any

import pytest

from groupcoord.coordinator.transaction.events import TransactionRefused
from groupcoord.protocol.apis.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from groupcoord.protocol.messages import DescribeTransactionsRequest
from groupcoord.testing import Cluster, ManualProducer, Trace
from groupcoord.testing.trace.events import RequestEvent, TraceEntry

pytestmark = pytest.mark.asyncio


def cluster() -> Cluster:
    return Cluster(topics={"orders": 1, "invoices": 9}, clock="manual")


def producers(kafka: Cluster, names: str = "ab", version: int = 2) -> list[ManualProducer]:
    return [kafka.manual_producer("billing", client_id=name, version=version) for name in names]


def why(kafka: Cluster) -> str:
    return kafka.trace.why(transaction="billing")


async def test_a_zombie_is_fenced(tmp_path: Path) -> None:
    async with cluster() as kafka:
        a, b = producers(kafka)
        await a.init()
        await a.produce("invoices", b"one")
        await a.commit_offsets("app", {("orders", 0): 1})
        await kafka.clock.advance(2)
        await b.init()  # the transaction of a is aborted first
        await b.init()
        await kafka.clock.advance(1)
        await a.produce("invoices", b"two")
        await a.end()
        await a.end()
        await b.produce("invoices", b"three", partition=1)
        await b.end()
        told = why(kafka)
        assert told == (
            "transaction billing: a (producer 0, epoch 0) began it at 0.0 s, with __consumer_offsets-1 and invoices-0; it was "
            "aborted at 2.0 s, because b was initialised with its transactional id (InitProducerId), which fences its "
            "producer: the epoch is 1 from then on; Produce of a was refused with INVALID_PRODUCER_EPOCH at 3.0 s (epoch 2 is "
            "what b was initialised with at 2.0 s); EndTxn of a was refused with PRODUCER_FENCED at 3.0 s and 1 time more: "
            "the producer's epoch is 2 in state Empty, and not 0 (epoch 2 is what b was initialised with at 2.0 s); since "
            "then 1 transaction was committed"
        )
        await b.produce("invoices", b"four")
        assert why(kafka) == f"{told}; b has another one open"
        kafka.trace.save(tmp_path / "trace.jsonl")
        assert Trace.load(tmp_path / "trace.jsonl").why(transaction="billing") == why(kafka)


async def test_it_was_open_for_too_long() -> None:
    async with cluster() as kafka:
        (a,) = producers(kafka, "a")
        await a.init(transaction_timeout_ms=15_000)
        await a.produce("invoices", b"zero")
        await a.end()
        await kafka.clock.advance(1)
        for partition in range(9):
            await a.produce("invoices", b"one", partition=partition)
        assert why(kafka) == (
            "transaction billing: a (producer 0, epoch 1) began it at 1.0 s, with invoices-0, invoices-1, invoices-2, "
            "invoices-3, invoices-4, invoices-5 and 3 more; it is open still"
        )
        await kafka.clock.advance(20)
        await a.end()
        ended = why(kafka).split("; ", 1)[1]
        assert ended == (
            "it was aborted at 20.0 s, because it was open for longer than its timeout of 15,000 ms, for 19,000 ms when the "
            "coordinator looked, which fences its producer: the epoch is 2 from then on; EndTxn of a was refused with "
            "INVALID_TXN_STATE at 21.0 s: nothing can be committed in state CompleteAbort"
        )
        without = Trace(start_ms=kafka.trace.start_ms)
        for entry in kafka.trace:
            if not isinstance(entry.event, RequestEvent):  # what a long trace drops first
                without.insert(TraceEntry(entry.seq, entry.since_start_ms, entry.event, entry.cause, entry.answers))
        assert without.why(transaction="billing").split("; ", 1)[1] == ended.replace(" of 15,000 ms", "")
        later = Trace(start_ms=kafka.trace.start_ms)
        for entry in kafka.trace.entries(since=15.0):
            later.insert(entry)
        assert "aborted at 20.0 s, because it was open for longer than its timeout, which" in later.why(
            transaction="billing"
        )


async def test_its_producer_ended_it() -> None:
    async with cluster() as kafka:
        (a,) = producers(kafka, "a")
        await a.init()
        assert why(kafka) == "transaction billing: no transaction was begun"
        await a.produce("invoices", b"one")
        await a.end()
        assert why(kafka).endswith("with invoices-0; it was committed at 0.0 s, as a asked for it")
        await a.produce("invoices", b"two")
        await a.end(commit=False)
        assert why(kafka) == (
            "transaction billing: a (producer 0, epoch 1) began it at 0.0 s, with invoices-0; it was aborted at 0.0 s, as a "
            "asked for it"
        )
        await kafka.clock.advance(1)
        await a.end(commit=False)
        assert why(kafka) == "transaction billing: an empty one was aborted at 1.0 s, as a asked for it"


async def test_an_administrator_wanted_it_and_a_partition_does_not_know() -> None:
    async with cluster() as kafka:
        (a,) = producers(kafka, "a")
        await a.init()
        await a.produce("invoices", b"one")
        prepared = kafka.hold_append()
        await kafka.transaction("billing").abort()
        completed = kafka.hold_append()
        prepared.release()
        await completed.wait()
        assert why(kafka).endswith(
            "it was aborted at 0.0 s, because an administrator wanted it, which fences its producer: the epoch is 1 from "
            "then on; it is PrepareAbort still: not all of its partitions know"
        )
        assert "action: the administrator aborts the transaction of billing" in kafka.trace.text(transaction="billing")
        completed.release()
        assert why(kafka).endswith("the epoch is 1 from then on")


async def test_an_administrator_wrote_a_marker_past_the_coordinator() -> None:
    async with cluster() as kafka:
        (a,) = producers(kafka, "a")
        other = kafka.manual_producer("other")
        await other.init()
        await a.init()
        topic = WritableTxnMarkerTopic(name="invoices", partition_indexes=(0,))

        async def abort_in_partition(producer: ManualProducer) -> None:
            marker = WritableTxnMarker(
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                transaction_result=False,
                topics=(topic,),
                coordinator_epoch=0,
            )
            await kafka._ask(WriteTxnMarkersRequest(markers=(marker,)))

        await abort_in_partition(a)  # before it began
        await a.produce("invoices", b"one")
        await kafka.clock.advance(1)
        await abort_in_partition(other)
        await abort_in_partition(a)
        told = (
            "with invoices-0; cluster wrote markers past its coordinator (WriteTxnMarkers) at 1.0 s: abort of producer 1, "
            "epoch 0, in invoices-0; "
        )
        assert why(kafka).endswith(f"{told}it is open still")
        await a.end()
        await abort_in_partition(a)
        assert why(kafka).endswith(f"{told}it was committed at 1.0 s, as a asked for it")


async def test_who_is_refused_without_any_transaction() -> None:
    async with cluster() as kafka:
        (a,) = producers(kafka, "a")
        await a.end()
        await kafka._ask(DescribeTransactionsRequest(transactional_ids=("billing",)))  # who only looks does not count
        assert why(kafka) == (
            "transaction billing: no transaction was begun; EndTxn of a was refused with INVALID_PRODUCER_ID_MAPPING at "
            "0.0 s: there is no transactional id 'billing'"
        )


async def test_a_rule_refuses_it() -> None:
    async with cluster() as kafka:
        (a,) = producers(kafka, "a")
        kafka.faults.when("InitProducerId").refuse("COORDINATOR_LOAD_IN_PROGRESS")
        await a.init()
        assert why(kafka).endswith(
            "InitProducerId of a was refused with COORDINATOR_LOAD_IN_PROGRESS at 0.0 s: rule 1 says so"
        )
        await a.init()
        await a.produce("invoices", b"one")
        kafka.faults.when("EndTxn").refuse("TRANSACTION_ABORTABLE")
        await a.end()
        assert why(kafka).endswith(
            "it is open still; EndTxn of a was refused with TRANSACTION_ABORTABLE at 0.0 s: rule 2 says so"
        )


async def test_a_rule_holds_what_is_refused_later() -> None:
    async with cluster() as kafka:
        a, b = producers(kafka)
        await a.init()
        held = kafka.faults.when("EndTxn").hold()
        ending = a.end()
        await held.wait()
        await b.init()
        held.release()
        await ending
        assert "EndTxn of a was refused with PRODUCER_FENCED at 0.0 s: the producer's epoch is 1 in state Empty" in why(
            kafka
        )


@pytest.mark.parametrize("commit", [True, False])
async def test_the_end_of_a_transaction_brings_an_epoch(commit: bool) -> None:
    async with cluster() as kafka:
        a, zombie = producers(kafka)
        await a.init()
        zombie.producer_id, zombie.epoch = a.producer_id, a.epoch
        await a.produce("invoices", b"one")
        await a.end(commit=commit)
        await kafka.clock.advance(1)
        await zombie.produce("invoices", b"two", partition=2)
        what = "commit" if commit else "abort"
        assert why(kafka).endswith(
            "Produce of b was refused with INVALID_PRODUCER_EPOCH at 1.0 s: the producer's epoch is 1, and not 0 (epoch 1 is "
            f"what the {what} at 0.0 s brought)"
        )


async def test_what_the_trace_does_not_know() -> None:
    async with cluster() as kafka:
        with pytest.raises(LookupError, match=r"knows nothing of transactional id 'billing'$"):
            why(kafka)
        await producers(kafka)[0].init()
        with pytest.raises(LookupError, match=r"nothing of transactional id 'bills', but of 'billing'$"):
            kafka.trace.why(transaction="bills")
        asked: list[dict[str, Any]] = [{}, {"group": "app", "transaction": "billing"}]
        for both_or_none in asked:
            with pytest.raises(TypeError, match="one of the two"):
                kafka.trace.why(**both_or_none)
        small = Trace(limit=1)
        for entry in kafka.trace:
            small(entry.event)
        with pytest.raises(
            LookupError, match=r"nothing of transactional id 'bills', but of 'billing'; \d+ older entries were dropped"
        ):
            small.why(transaction="bills")


async def test_a_trace_and_a_diagram_of_one_transactional_id() -> None:
    async with cluster() as kafka:
        (a,) = producers(kafka, "a", version=1)
        other = kafka.manual_producer("other", client_id="o")
        await other.init()
        await a.init()
        await a.add_partitions(("invoices", 0))
        await a.produce("invoices", b"one")
        await a.add_offsets("app")
        await a.commit_offsets("app", {("orders", 0): 1}, "nobody", 3)
        await a.end(commit=False)
        await a.end()
        kafka.trace.of(TransactionRefused, api="EndTxn").one()
        text, diagram = kafka.trace.text(transaction="billing"), kafka.trace.mermaid(transaction="billing")
        assert "other" not in text
        assert "\n    participant c1 as a\n    participant K" in diagram
        for line in (
            "a asks AddPartitionsToTxn v3: transactional_id billing, producer_id 1, producer_epoch 0, partitions [invoices-0]",
            "a asks EndTxn v4: transactional_id billing, producer_id 1, producer_epoch 0, committed false",
            "TxnOffsetCommit of nobody is refused with",
            "EndTxn of 'billing' refused with INVALID_TXN_STATE: nothing can be committed in state CompleteAbort",
        ):
            assert line in text
        for line in (
            "c1->>K: InitProducerId v5 of billing",
            "K-->>c1: InitProducerId producer=1 epoch=0",
            "c1->>K: EndTxn v4 of billing: abort",
            "c1->>K: EndTxn v4 of billing: commit",
            "note right of K: EndTxn of 'billing' refused with INVALID_TXN_STATE: nothing",
            "K-->>c1: EndTxn INVALID_TXN_STATE",
        ):
            assert line in diagram
