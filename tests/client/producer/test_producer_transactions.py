"""Transactions as the user of a producer sees them."""

import asyncio
from typing import Any

import pytest

from groupcoord.client.client_errors import BrokerError, NoGroupError, UnsupportedVersionError
from groupcoord.client.consumer import Consumer
from groupcoord.client.kafka_producer import Producer
from groupcoord.client.producer import producer_events as e
from groupcoord.client.producer.producer_errors import (
    ProducerClosedError,
    TransactionAbortedError,
    TransactionTimeoutError,
)
from groupcoord.client.producer.transaction_manager import GroupMetadata, TransactionStateError
from groupcoord.core.events import Event
from groupcoord.protocol.errors import ErrorCode as E
from groupcoord.protocol.messages import (
    EndTxnRequest,
    EndTxnResponse,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    InitProducerIdResponse,
    ProduceRequest,
    TxnOffsetCommitRequest,
)
from tests.client.broker import HANG, HANG_UP, Broker, broker, patiently

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]


def producer(real: Broker, **how: Any) -> Producer:
    return Producer(real.address, **{"transactional_id": "x", "retry_backoff_ms": 1, **how})


async def committed(real: Broker) -> list[bytes | None]:
    return [record.value for record in await real.cluster.records("t", isolation="read_committed")]


@patiently
async def test_a_block_is_a_transaction() -> None:
    events: list[Event] = []
    async with broker() as real, producer(real, listeners=[events.append]) as one:
        for values in ((b"a", b"b"), (b"c",)):
            async with one.transaction():
                stored = [await one.send("t", value) for value in values]
            assert all(each.done() for each in stored)
        assert await committed(real) == [b"a", b"b", b"c"]
    states = [event.state for event in events if isinstance(event, e.TransactionStep)]
    assert states == [
        "Initializing",
        "Ready",
        *["InTransaction", "CommittingTransaction", "Ready"] * 2,
    ]


@patiently
async def test_a_block_that_is_left_by_an_error_is_aborted() -> None:
    async with broker() as real, producer(real, linger_ms=60_000, delivery_timeout_ms=100_000) as one:
        never_sent = []

        async def fail() -> None:
            async with one.transaction():
                await one.send("t", b"sent")
                await one.flush()
                never_sent.append(await one.send("t", b"not sent"))
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await fail()
        with pytest.raises(TransactionAbortedError):
            await never_sent[0]
        assert await committed(real) == []
        async with one.transaction():
            await one.send("t", b"b")
        assert await committed(real) == [b"b"]


@patiently
async def test_offsets_are_committed_with_the_transaction() -> None:
    async with broker({"t": 1, "in": 1}) as real, producer(real) as one:
        await real.produce("in", [b"1", b"2"])
        async with Consumer(
            "in",
            bootstrap_servers=real.address,
            group_id="g",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        ) as consumer:
            while not (records := await consumer.getmany(timeout_ms=1_000)):
                pass
            async with one.transaction():
                for record in records["in", 0]:
                    await one.send("t", record.value)
                await one.send_offsets_to_transaction({("in", 0): 2}, consumer.group_metadata())
            assert (await consumer.committed(("in", 0)))["in", 0] is not None
        assert await committed(real) == [b"1", b"2"]
        async with one.transaction():
            await one.send_offsets_to_transaction({("in", 0): 1}, "another group")


@patiently
async def test_a_consumer_without_a_group_has_no_metadata_of_one() -> None:
    with pytest.raises(NoGroupError, match="give the consumer a group_id"):
        Consumer("in", bootstrap_servers="127.0.0.1:1").group_metadata()


@patiently
async def test_who_is_out_of_its_group_cannot_commit() -> None:
    async with broker() as real, producer(real) as one:
        await one.begin_transaction()
        await one.send("t", b"a")
        with pytest.raises(BrokerError, match="TxnOffsetCommit: ILLEGAL_GENERATION"):
            await one.send_offsets_to_transaction({("t", 0): 1}, GroupMetadata("g", 3, "stranger"))
        await one.abort_transaction()
        assert await committed(real) == []


@patiently
async def test_a_record_that_is_refused_is_the_end_of_the_transaction() -> None:
    async with broker() as real, producer(real) as one:
        await real.cluster.create_topic("small", 1, configs={"max.message.bytes": 100})
        await one.begin_transaction()
        await one.send("small", bytes(500))
        with pytest.raises(BrokerError, match="MESSAGE_TOO_LARGE"):
            await one.commit_transaction()
        with pytest.raises(TransactionStateError, match="the producer is in state AbortableError"):
            await one.send("t", b"")
        await one.abort_transaction()
        async with one.transaction():
            await one.send("t", b"a")
        assert await committed(real) == [b"a"]


@patiently
async def test_there_is_one_producer_of_an_id() -> None:
    async with broker() as real, producer(real) as zombie:
        await zombie.begin_transaction()
        await zombie.send_and_wait("t", b"a")
        async with producer(real) as one, one.transaction():
            await one.send("t", b"b")
        stored = await zombie.send("t", b"c")
        with pytest.raises(BrokerError, match="INVALID_PRODUCER_EPOCH"):
            await stored
        with pytest.raises(BrokerError, match="PRODUCER_FENCED"):
            await zombie.abort_transaction()
        with pytest.raises(BrokerError, match="PRODUCER_FENCED"):
            await zombie.begin_transaction()
        assert await committed(real) == [b"b"]


@patiently
async def test_a_block_of_a_producer_that_is_of_no_use_any_more_raises_what_it_raised() -> None:
    async with broker() as real, producer(real) as one:
        fenced = EndTxnResponse(error_code=E.PRODUCER_FENCED, producer_id=-1, producer_epoch=-1)
        real.answers(EndTxnRequest, fenced)

        async def fail() -> None:
            async with one.transaction():
                await one.send_and_wait("t", b"a")
                with pytest.raises(BrokerError, match="PRODUCER_FENCED"):
                    await one.commit_transaction()
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await fail()


@patiently
async def test_the_coordinator_is_looked_for_again() -> None:
    async with broker() as real:
        real.answers(FindCoordinatorRequest, HANG_UP)
        real.answers(InitProducerIdRequest, HANG_UP)
        async with producer(real) as one, one.transaction():
            await one.send("t", b"a")
        assert await committed(real) == [b"a"]


@patiently
async def test_what_takes_too_long_can_be_asked_for_again() -> None:
    async with broker() as real, producer(real, max_block_ms=10_000, request_timeout_ms=10_000) as one:
        await one.begin_transaction()
        await one.send_and_wait("t", b"a")
        real.answers(EndTxnRequest, HANG)
        object.__setattr__(one._config, "max_block_ms", 20)
        with pytest.raises(TransactionTimeoutError, match="was not Ready after 20 ms, but CommittingTransaction"):
            await one.commit_transaction()
        object.__setattr__(one._config, "max_block_ms", 10_000)
        for connecting in tuple(one._driver._cluster._connections.values()):
            connecting.result().close()
        await one.commit_transaction()
        assert await committed(real) == [b"a"]
        await one.begin_transaction()
        await one.send_and_wait("t", b"b")
        real.answers(EndTxnRequest, HANG)
        object.__setattr__(one._config, "max_block_ms", 20)
        with pytest.raises(TransactionTimeoutError, match="but AbortingTransaction"):
            await one.abort_transaction()
        object.__setattr__(one._config, "max_block_ms", 10_000)
        for connecting in tuple(one._driver._cluster._connections.values()):
            connecting.result().close()
        await one.abort_transaction()


@patiently
async def test_stopping_aborts() -> None:
    async with broker() as real:
        async with producer(real) as one:
            await one.begin_transaction()
            await one.send_and_wait("t", b"a")
        assert await committed(real) == []
        with pytest.raises(ProducerClosedError):
            await one.begin_transaction()
        assert real.got(EndTxnRequest)[0].committed is False


@patiently
async def test_an_id_that_is_refused() -> None:
    async with broker() as real:
        refused = InitProducerIdResponse(
            error_code=E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, producer_id=-1, producer_epoch=-1
        )
        real.answers(InitProducerIdRequest, refused)
        with pytest.raises(BrokerError, match="InitProducerId: TRANSACTIONAL_ID_AUTHORIZATION_FAILED"):
            await producer(real).start()


@patiently
async def test_a_broker_without_transactions_of_version_2() -> None:
    async with broker() as real:
        real.speaks(Produce=11)
        async with producer(real) as one:
            await one.begin_transaction()
            stored = await one.send("t", b"a")
            with pytest.raises(
                UnsupportedVersionError, match=r"need a broker with transaction\.version 2, of Kafka 4\.0"
            ):
                await stored


@patiently
async def test_transactions_need_an_id_and_begin_before_records() -> None:
    async with broker() as real:
        async with producer(real, transactional_id=None) as one:
            with pytest.raises(ValueError, match="transactional_id"):
                await one.begin_transaction()
        async with producer(real) as one:
            with pytest.raises(TransactionStateError, match="the producer is in state Ready"):
                await one.send("t", b"a")


@patiently
async def test_batches_that_are_lost_are_sent_again_within_the_transaction() -> None:
    async with broker() as real, producer(real, reconnect_backoff_ms=1) as one:
        async with one.transaction():
            real.answers(ProduceRequest, HANG_UP, None, HANG_UP)
            real.answers(TxnOffsetCommitRequest, HANG_UP)
            stored = [await one.send("t", b"%d" % number) for number in range(3)]
            await asyncio.gather(*stored)
            await one.send_offsets_to_transaction({("t", 0): 1}, "g")
        assert await committed(real) == [b"0", b"1", b"2"]
