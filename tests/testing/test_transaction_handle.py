"""A transactional id as a test sees it, on a cluster in this process and on one at the other end of a socket."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from groupcoord.coordinator.transaction.events import AbortReason, TransactionChanged
from groupcoord.core.events import AdminAction
from groupcoord.protocol.errors import ErrorCode
from groupcoord.testing import Cluster, KafkaCluster, RemoteCluster, TransactionDescription, WaitTimeoutError
from tests.testing.retrying import done

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]

TOPICS = {"orders": 2, "invoices": 2}


async def story(kafka: KafkaCluster) -> None:
    """From nothing over a commit and an abort to a producer that is fenced."""
    billing = kafka.transaction("billing")
    assert await billing.describe() == TransactionDescription(transactional_id="billing", state="Dead")
    assert "billing" not in await kafka.list_transactions()
    producer = kafka.manual_producer("billing")
    await done(lambda: producer.init(transaction_timeout_ms=30_000))
    seen = await billing.wait_state("Empty")
    assert (seen.producer_id, seen.producer_epoch, seen.timeout_ms) == (producer.producer_id, 0, 30_000)
    assert (seen.start_ms, seen.partitions) == (-1, frozenset())
    with pytest.raises(ValueError, match="only an ongoing transaction can be aborted; that of 'billing' is Empty"):
        await billing.abort()

    begins = asyncio.ensure_future(billing.wait_ongoing("invoices", "__consumer_offsets"))
    await done(lambda: producer.produce("invoices", b"one", partition=1))
    assert await billing.state() == "Ongoing"
    await done(lambda: producer.commit_offsets("app", {("orders", 0): 1}))
    seen = await begins
    assert ("invoices", 1) in seen.partitions
    assert seen.start_ms > 0
    await done(producer.end)
    await billing.wait_committed()
    assert "billing" in await kafka.list_transactions()

    await done(lambda: producer.produce("invoices", b"two"))
    await billing.abort()
    assert (await billing.wait_aborted()).producer_epoch == producer.epoch + 1
    assert (await producer.produce("invoices", b"three")).error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert (await producer.end()).error_code == ErrorCode.INVALID_TXN_STATE
    with pytest.raises(
        WaitTimeoutError, match=r"billing should be Ongoing with orders: not within 0 s\. It is billing Co"
    ):
        await billing.wait_ongoing("orders", timeout=0)
    with pytest.raises(ValueError, match=r"there is no state 'ongoing' of a transaction; did you mean Ongoing\?"):
        await billing.wait_state("ongoing")


async def test_the_same_steps_in_this_process_and_elsewhere() -> None:
    async with Cluster(topics=TOPICS, clock="manual") as kafka:
        await story(kafka)
    async with Cluster(topics=TOPICS) as kafka, RemoteCluster(kafka.address) as remote:
        await story(remote)
        assert repr(remote.transaction("billing")) == "<RemoteTransaction billing>"


async def test_the_end_of_a_transaction_is_still_known_when_a_successor_has_fenced_its_producer() -> None:
    async with Cluster(topics=TOPICS, clock="manual") as kafka:
        billing, zombie, worker = kafka.transaction("billing"), *(kafka.manual_producer("billing") for _ in range(2))
        await zombie.init()
        with pytest.raises(
            WaitTimeoutError, match=r"billing should be CompleteAbort: not within 0 s\. It is billing Empty"
        ):
            await billing.wait_aborted(timeout=0)
        await zombie.produce("invoices", b"half")
        await done(worker.init)
        assert (await billing.wait_aborted()).state == "Empty"
        with pytest.raises(WaitTimeoutError, match="should be CompleteCommit"):
            await billing.wait_committed(timeout=0)
        await worker.produce("invoices", b"whole")
        with pytest.raises(
            WaitTimeoutError, match=r"billing should be CompleteAbort: not within 0 s\. It is billing Ongoing"
        ):
            await billing.wait_aborted(timeout=0)
        await worker.end()
        await worker.init()
        assert (await billing.wait_committed()).state == "Empty"


async def test_a_forced_abort_says_that_it_was_forced() -> None:
    async with Cluster(topics=TOPICS, clock="manual") as kafka:
        billing, producer = kafka.transaction("billing"), kafka.manual_producer("billing")
        with pytest.raises(ValueError, match="'billing'; transactional ids: none; a producer has to be initialised"):
            await kafka.transaction("billing").abort()
        with pytest.raises(
            WaitTimeoutError, match=r"be Ongoing: not within 0 s\. There is no such transactional id; there is none"
        ):
            await billing.wait_ongoing(timeout=0)
        await producer.init()
        with pytest.raises(WaitTimeoutError, match=r"There is no such transactional id; there are 'billing'$"):
            await kafka.transaction("invoicing").wait_committed(timeout=0)
        with pytest.raises(ValueError, match="no transactional id 'invoicing'; transactional ids: 'billing'"):
            await kafka.transaction("invoicing").abort()
        held = kafka.hold_append()
        producing = producer.produce("invoices", b"one")
        await held.wait()
        with pytest.raises(ValueError, match="the last change of 'billing', in state Empty, is still being stored"):
            await billing.abort()
        held.release()
        await producing
        assert repr(billing) == "<ClusterTransaction billing Ongoing, producer 0 epoch 0, with invoices-0>"
        await billing.abort()
        told = kafka.trace.of(TransactionChanged, after="PrepareAbort").one()
        assert told.reason is AbortReason.FORCED
        assert told.cause == AdminAction("the administrator aborts the transaction of billing")


async def test_a_coordinator_of_transactions_goes_and_comes_back() -> None:
    async with Cluster(topics=TOPICS, clock="manual") as kafka:
        billing, producer = kafka.transaction("billing"), kafka.manual_producer("billing")
        with pytest.raises(ValueError, match="the topic is made when a client first asks for the coordinator"):
            await billing.load_coordinator()
        await producer.init()
        await producer.produce("invoices", b"one")
        with pytest.raises(ValueError, match="'billing' has its coordinator here already"):
            await billing.load_coordinator()
        before = await billing.describe()
        await billing.unload_coordinator()
        assert await billing.state() == "NOT_COORDINATOR"
        with pytest.raises(ValueError, match="another broker has partition"):
            await billing.abort()
        assert (await producer.end()).error_code == ErrorCode.NOT_COORDINATOR
        await billing.load_coordinator()
        assert await billing.describe() == before
        assert (await producer.end()).error_code == ErrorCode.NONE


async def test_a_coordinator_of_transactions_moves() -> None:
    async with Cluster(topics=TOPICS, brokers=3, clock="manual") as kafka:
        billing, producer = kafka.transaction("billing"), kafka.manual_producer("billing")
        for broker_id in (2, 3, 1, 3):
            await billing.move_coordinator(to=broker_id)
            assert (await producer.init()).error_code == ErrorCode.NONE
            assert (
                kafka.core.broker.topics.get("__transaction_state").metadata.leaders[  # type: ignore[union-attr]
                    kafka.core.transactions.runtime.shard_of("billing").partition
                ]
                == broker_id
            )
        with pytest.raises(ValueError, match="there is no broker 9"):
            await billing.move_coordinator(to=9)


async def test_a_restart_reads_transactions_from_the_log() -> None:
    async with Cluster(topics=TOPICS, clock="manual") as kafka:
        billing, producer = kafka.transaction("billing"), kafka.manual_producer("billing")
        held = kafka.hold_append()
        starting = producer.init()
        await held.wait()
        await kafka.restart()
        with pytest.raises(ConnectionResetError):
            await starting
        held.release()  # nobody waits for it any more: it is lost
        assert await billing.state() == "Dead"
        await producer.init()
        await producer.produce("invoices", b"one")
        held = kafka.hold_append()
        ending = producer.end()
        await held.wait()
        before = await billing.describe()
        await kafka.restart()
        assert await billing.describe() == before
        with pytest.raises(ConnectionResetError):
            await ending
        await producer.end()
        await billing.wait_committed()


async def test_what_a_remote_broker_says_instead() -> None:
    async with Cluster(topics=TOPICS) as kafka, RemoteCluster(kafka.address) as remote:
        billing, producer = remote.transaction("billing"), kafka.manual_producer("billing")
        await producer.init()
        await producer.produce("invoices", b"one")

        def open_still(_: Any, answer: Any) -> Any:
            (found,) = answer.transaction_states
            return replace(answer, transaction_states=(replace(found, transaction_state="Ongoing"),))

        kafka.faults.when("DescribeTransactions").refuse("COORDINATOR_LOAD_IN_PROGRESS")
        assert await billing.state() == "COORDINATOR_LOAD_IN_PROGRESS"
        kafka.faults.when("InitProducerId").refuse("NOT_COORDINATOR")
        with pytest.raises(ValueError, match="'billing' is not aborted: who asked for it was told NOT_COORDINATOR"):
            await billing.abort()
        await producer.end()
        kafka.faults.when("DescribeTransactions").after(open_still)
        with pytest.raises(ValueError, match="fenced its producer instead, for it had ended meanwhile"):
            await billing.abort()
