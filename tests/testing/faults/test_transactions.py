"""Faults at every API of a transaction, for one transactional id and not for another."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from groupcoord.protocol.apis.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import WriteTxnMarkersRequest
from groupcoord.testing import Cluster, ManualProducer

pytestmark = pytest.mark.asyncio

Step = Callable[[Cluster, ManualProducer], Awaitable[Any]]


def markers(kafka: Cluster, producer: ManualProducer) -> Awaitable[Any]:
    marker = WritableTxnMarker(
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        transaction_result=False,
        topics=(WritableTxnMarkerTopic(name=f"{producer.transactional_id}-topic", partition_indexes=(0,)),),
        coordinator_epoch=0,
    )
    return asyncio.ensure_future(kafka._ask(WriteTxnMarkersRequest(markers=(marker,))))


STEPS: dict[str, Step] = {
    "InitProducerId": lambda _, producer: producer.init(),
    "AddPartitionsToTxn": lambda _, producer: producer.add_partitions((f"{producer.transactional_id}-topic", 0)),
    "Produce": lambda _, producer: producer.produce(f"{producer.transactional_id}-topic", b"one"),
    "AddOffsetsToTxn": lambda _, producer: producer.add_offsets("app"),
    "TxnOffsetCommit": lambda _, producer: producer.commit_offsets("app", {("orders", 0): 1}),
    "WriteTxnMarkers": markers,
    "EndTxn": lambda _, producer: producer.end(),
}
"""A whole transaction, step by step; nobody but an administrator writes markers."""


def errors(answer: Any) -> set[int]:
    """The error codes in what a step returns."""
    if isinstance(answer, dict):
        return set(answer.values())
    if hasattr(answer, "markers"):
        return {each.error_code for marker in answer.markers for topic in marker.topics for each in topic.partitions}
    return {answer.error_code}


def rule(kafka: Cluster, api: str) -> Any:
    """WriteTxnMarkers names no transactional id."""
    if api == "WriteTxnMarkers":
        return kafka.faults.when(api, topic="billing-topic")
    return kafka.faults.when(api, transactional_id="billing")


async def until(kafka: Cluster, api: str, producer: ManualProducer) -> None:
    """All steps before that of ``api``."""
    for name, step in STEPS.items():
        if name == api:
            return
        assert errors(await step(kafka, producer)) == {0}, name


def cluster() -> Cluster:
    return Cluster(topics={"orders": 1, "billing-topic": 1, "shipping-topic": 1}, clock="manual")


@pytest.mark.parametrize("api", STEPS)
async def test_it_is_refused(api: str) -> None:
    async with cluster() as kafka:
        billing, shipping = (kafka.manual_producer(name, version=1) for name in ("billing", "shipping"))
        await until(kafka, api, billing)
        await until(kafka, api, shipping)
        rule(kafka, api).refuse("COORDINATOR_NOT_AVAILABLE")
        assert errors(await STEPS[api](kafka, shipping)) == {0}
        assert errors(await STEPS[api](kafka, billing)) == {ErrorCode.COORDINATOR_NOT_AVAILABLE}
        assert errors(await STEPS[api](kafka, billing)) == {0}


@pytest.mark.parametrize("api", STEPS)
async def test_it_is_handled_and_its_answer_is_another(api: str) -> None:
    async with cluster() as kafka:
        billing = kafka.manual_producer("billing", version=1)
        await until(kafka, api, billing)
        rule(kafka, api).refuse_answer("REQUEST_TIMED_OUT")
        assert errors(await STEPS[api](kafka, billing)) == {ErrorCode.REQUEST_TIMED_OUT}
        if api == "EndTxn":
            assert await kafka.transaction("billing").state() == "CompleteCommit"


@pytest.mark.parametrize("api", STEPS)
async def test_it_is_lost(api: str) -> None:
    async with cluster() as kafka:
        billing, shipping = (kafka.manual_producer(name, version=1) for name in ("billing", "shipping"))
        await until(kafka, api, billing)
        await until(kafka, api, shipping)
        rule(kafka, api).drop()
        lost = asyncio.ensure_future(STEPS[api](kafka, billing))
        assert errors(await STEPS[api](kafka, shipping)) == {0}
        await kafka.settle()
        assert not lost.done()
        lost.cancel()


@pytest.mark.parametrize("api", STEPS)
async def test_it_is_held(api: str) -> None:
    async with cluster() as kafka:
        billing = kafka.manual_producer("billing", version=1)
        await until(kafka, api, billing)
        held = rule(kafka, api).hold()
        waits = asyncio.ensure_future(STEPS[api](kafka, billing))
        (request,) = await held.wait()
        assert request.call.api.name == api
        assert not waits.done()
        held.release()
        assert errors(await waits) == {0}


async def test_two_producers_of_one_id_in_an_order_of_my_choice() -> None:
    async with cluster() as kafka:
        a, b = kafka.manual_producer("billing"), kafka.manual_producer("billing")
        barrier = kafka.barrier("InitProducerId", size=2, transactional_id="billing")
        starting = [a.init(), b.init()]
        await barrier.wait()
        barrier.release([1, 0])
        for each in starting:
            await each
        assert (a.epoch, b.epoch) == (1, 0)
