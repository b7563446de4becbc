"""Open transactions: the records, offsets and transactions that have to wait for them."""

from typing import Any

import pytest

from groupcoord import Consumer
from groupcoord.client.log_reader import READ_UNCOMMITTED
from groupcoord.coordinator.transaction.events import TransactionChanged
from groupcoord.protocol.apis.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic
from groupcoord.protocol.errors import ErrorCode as E
from groupcoord.protocol.messages import WriteTxnMarkersRequest
from groupcoord.testing import Cluster, RemoteCluster
from tests.scenarios.transactions import (
    begun,
    committed,
    completed,
    end_offset,
    ended,
    patiently,
    producers_of,
    reads,
    state,
    uncommitted,
    values,
)

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]

P0 = ("orders", 0)
OF_COMMITTED: dict[str, Any] = {"auto_offset_reset": "earliest", "isolation_level": "read_committed"}
LOOKS_EVERY_SECOND = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": 1_000}
UNVERIFIED = {"transaction.partition.verification.enable": "false", **LOOKS_EVERY_SECOND}


@pytest.mark.kafka(topics={"orders": 1}, config=LOOKS_EVERY_SECOND)
async def test_a_new_transactional_id_with_each_start(kafka: Cluster) -> None:
    """evolution-gaming/kafka-flow#850 "Transactional snapshot recovery silently under-reads committed snapshots past a crashed
    writer's open transaction (#833 follow-up)"
    softwaremill/klag-exporter#104 "Message-mode watermarks ignore the consumer's `isolation.level`, so `read_committed` users
    fetch offsets that can never be read"

    A service uses a random transactional id. It crashes during a transaction and restarts at once, and all its later
    transactions are committed. But read-committed consumers get none of their records for some minutes, and consumers that
    read up to the end of the log conclude that they have read everything.

    Right: for a read-committed consumer the log ends at the start of the oldest open transaction, until that one has timed
    out. With a constant transactional id, the first request of the restarted producer aborts it at once.
    """
    async with RemoteCluster(kafka.address) as cluster:
        crashed, restarted = kafka.manual_producer("writer-1a2b"), kafka.manual_producer("writer-3c4d")
        await begun(crashed, transaction_timeout_ms=60_000)
        await crashed.produce("orders", b"half")
        crashed.vanish()
        await begun(restarted)
        await restarted.produce("orders", b"whole")
        await restarted.end()
        assert (await end_offset(cluster, "orders"), await end_offset(cluster, "orders", READ_UNCOMMITTED)) == (0, 3)
        await kafka.clock.advance(59)
        assert await values(cluster, "orders") == []
        await kafka.clock.advance(2)
        assert await values(cluster, "orders") == [b"whole"]
        again = kafka.manual_producer("writer-3c4d")
        await begun(restarted)
        await restarted.produce("orders", b"half")
        assert await end_offset(cluster, "orders") == 4
        await begun(again)  # the same id: nobody waits
        assert await end_offset(cluster, "orders") == await end_offset(cluster, "orders", READ_UNCOMMITTED) == 6


async def test_offsets_that_may_still_change(cluster: RemoteCluster, app: str, orders: str) -> None:
    """confluentinc/librdkafka#3265 "rd_kafka_OffsetFetchRequest should keep retrying till UNSTABLE_OFFSETS are not cleared"
    twmb/franz-go#581 "What to do about error UnstableOffsetCommit"
    redpanda-data/redpanda#6423 "Consumer group is stuck in UNSTABLE_OFFSET_COMMIT"
    confluentinc/confluent-kafka-go#1093 "Consumer group offsets lost after hard kill between SendOffsetsToTransaction &
    CommitTransaction"

    A member dies between sending its offsets and committing its transaction. The new owner of its partitions fetches the
    offsets, gets UNSTABLE_OFFSET_COMMIT, and gives up; or treats it as no offset, and starts at the beginning.

    Right: wait and repeat the request. Pending offsets are committed or aborted at the latest when the transaction times
    out; the offsets committed before are still there. A producer with the same transactional id aborts the transaction at
    once.
    """
    await cluster.create_topic(orders)
    where = (orders, 0)
    producer = cluster.manual_producer(app)
    await begun(producer)
    await producer.commit_offsets(app, {where: 5})
    await ended(cluster, producer)
    await cluster.group(app).wait_committed(*where, 5)
    await producer.produce(orders, b"half")
    assert await producer.commit_offsets(app, {where: 8}) == {where: E.NONE}
    producer.vanish()
    assert await committed(cluster, app, where) is E.UNSTABLE_OFFSET_COMMIT
    assert await committed(cluster, app, where, stable=False) == 5
    await begun(cluster.manual_producer(app))
    assert await committed(cluster, app, where) == 5


@pytest.mark.kafka(topics={"orders": 1})
@pytest.mark.parametrize("version", [1, 2])
async def test_the_next_transaction_comes_too_early(kafka: Cluster, version: int) -> None:
    """apache/kafka#3377 "KAFKA-5477: Lower retryBackoff for AddPartitionsRequest"
    apache/kafka#18810 "KAFKA-18654[2/2]: Transction V2 retry add partitions on the server side when handling produce request."
    twmb/franz-go#133 "config: add producer option to configure transactions backoff duration"
    confluentinc/librdkafka#3003 "transactional producer: action of failed transaction?"

    A commit succeeds, the next transaction begins at once, and its first request is refused with CONCURRENT_TRANSACTIONS. A
    client that waits for its usual 100 ms then does ten transactions in a second; one that treats it as fatal does none.

    Right: the response to EndTxn means that the outcome is decided and stored. The markers are written to the partitions
    after that; until then the producer has to wait a little and repeat its request. With KIP-890 the broker waits for it,
    up to 100 ms. The commit itself is not in doubt.
    """
    producer = kafka.manual_producer("billing", version=version)

    async def begins() -> E:
        if version == 1:
            return (await producer.add_partitions(P0))[P0]
        producing = producer.produce("orders", b"b")
        await kafka.settle()
        await kafka.clock.advance(0.2)
        return E((await producing).error_code)

    await begun(producer)
    await producer.add_partitions(P0)
    await producer.produce("orders", b"a")
    held = kafka.hold_append(times=2)
    ending = producer.end()
    await held.wait()
    held.release()  # what is decided is stored; the next record, that all know it, is the second that is held
    assert (await ending).error_code == E.NONE
    await held.wait()
    async with RemoteCluster(kafka.address) as cluster:
        assert await state(cluster, "billing") == "PrepareCommit"
        assert await values(cluster, "orders") == [b"a"]
        for _ in range(3):
            assert await begins() is E.CONCURRENT_TRANSACTIONS
        held.release()
        assert await begins() is E.NONE
        assert await state(cluster, "billing") == "Ongoing"


@pytest.mark.kafka(topics={"orders": 1}, brokers=3)
@pytest.mark.parametrize("commit", [True, False])
async def test_a_coordinator_that_moves_between_the_decision_and_its_end(kafka: Cluster, commit: bool) -> None:
    """apache/kafka#15524 "KAFKA-16352: Txn may get get stuck in PrepareCommit or PrepareAbort s…"
    streamnative/kop#1412 "[BUG] Transaction's state didn't become COMPLETE_COMMIT after restarted"

    The coordinator has stored the outcome of the transaction, and moves before all partitions have the marker. The new one
    assumed that another coordinator was writing the markers: the transaction stayed in PrepareCommit, and its producer got
    CONCURRENT_TRANSACTIONS for ever.

    Right: a new coordinator finds the decision in its log, and writes the markers to all partitions again. The transaction
    can only end as decided, and the producer continues without an error.
    """
    producer = kafka.manual_producer("billing")
    await begun(producer)
    await producer.produce("orders", b"a")
    await producer.commit_offsets("app", {P0: 7})
    held = kafka.hold_append(times=2)
    ending = producer.end(commit=commit)
    await held.wait()
    held.release()
    assert (await ending).error_code == E.NONE
    await held.wait()
    partition = kafka.core.transactions.runtime.shard_of("billing").partition
    for broker_id in kafka.brokers:
        await kafka.move_leader("__transaction_state", partition, to=broker_id)
    held.release()
    after = [each.after for each in kafka.trace.of(TransactionChanged, transactional_id="billing")]
    assert after[-1] == ("CompleteCommit" if commit else "CompleteAbort")
    assert await kafka.group("app").committed(*P0) == (7 if commit else None)
    await producer.produce("orders", b"b")
    assert (await producer.end()).error_code == E.NONE
    async with Consumer("orders", bootstrap_servers=kafka.address, group_id="reader", **OF_COMMITTED) as reader:
        assert (await anext(reader)).value == (b"a" if commit else b"b")


async def test_a_topic_that_is_deleted_in_the_middle(cluster: RemoteCluster, app: str, orders: str) -> None:
    """apache/kafka#3130 "KAFKA-5202: Handle topic deletion while trying to send txn markers"
    streamnative/kop#1388 "[Transaction] Fix endless writing txn marker requests when the topic is deleted"
    redpanda-data/redpanda#6227 "Research transaction behaviour when deleting topics"

    A topic is deleted while a transaction has records in it. The coordinator kept sending markers to its partitions, and
    the transaction never ended: read-committed consumers were blocked at the other partitions.

    Right: a deleted topic needs no marker. The commit succeeds, without an error for the records that were deleted with the
    topic, and the other records are committed.
    """
    gone = f"{orders}-gone"
    await cluster.create_topic(orders)
    await cluster.create_topic(gone)
    producer = cluster.manual_producer(app)
    await begun(producer)
    await producer.produce(gone, b"lost")
    await producer.produce(orders, b"kept")
    await cluster.delete_topic(gone)
    assert (await producer.end()).error_code == E.NONE
    assert await completed(cluster, app) == "CompleteCommit"
    await reads(cluster, orders, b"kept")
    assert (await patiently(lambda: producer.produce(orders, b"next"))).error_code == E.NONE


@pytest.mark.kafka(topics={"orders": 1}, config=UNVERIFIED)
async def test_a_hanging_transaction_is_ended_by_hand(kafka: Cluster) -> None:
    """redpanda-data/redpanda#3699 "Detect and abort hanging transactions (KIP-664)"
    twmb/franz-go#928 "kgo: minor improvements while attempting to work around a Kafka hanging transaction bug"

    Before KIP-890, and still where `transaction.partition.verification.enable` is false, a batch that arrives after its
    transaction was aborted begins one that the coordinator does not know. No timeout ends it, and no restart:
    read-committed consumers stop there for good, and so does compaction.

    Right: DescribeProducers returns the producer and the offset at which its transaction began. If DescribeTransactions
    shows that the coordinator has no such transaction, it is a hanging one. A manually written marker, as by
    `kafka-transactions.sh abort`, ends it. It is better to keep the verification on.
    """
    async with RemoteCluster(kafka.address) as cluster:
        producer = kafka.manual_producer("billing", version=1)
        await begun(producer, transaction_timeout_ms=10_000)
        await producer.add_partitions(P0)
        await producer.produce("orders", b"in time")
        await producer.end(commit=False)
        assert (await producer.produce("orders", b"late")).error_code == E.NONE
        await kafka.produce("orders", b"of somebody else")
        await kafka.clock.advance(3_600)
        await kafka.stop()
        await kafka.restart()
        assert await state(cluster, "billing") == "CompleteAbort"
        (hanging,) = await producers_of(cluster, "orders")
        assert (hanging.producer_id, hanging.current_txn_start_offset) == (producer.producer_id, 2)
        assert await values(cluster, "orders") == []
        marker = WritableTxnMarker(
            producer_id=hanging.producer_id,
            producer_epoch=hanging.producer_epoch,
            topics=(WritableTxnMarkerTopic(name="orders", partition_indexes=(0,)),),
            coordinator_epoch=hanging.coordinator_epoch,
        )
        await cluster.ask_coordinator("any", WriteTxnMarkersRequest(markers=(marker,)))
        assert await values(cluster, "orders") == [b"of somebody else"]
        assert await uncommitted(cluster, "orders") == [b"in time", b"late", b"of somebody else"]


async def test_the_last_offset_is_no_record(cluster: RemoteCluster, app: str, orders: str) -> None:
    """spring-projects/spring-kafka#1587 "Kafka Consumer lag not zero when input topic transactional"
    confluentinc/librdkafka#3917 "Consumer Lag for transactional message"
    risingwavelabs/risingwave#24717 "Bug: Kafka Backfill Hangs"

    All records of a topic were read, and the offset after the last one is committed, but the lag is 1 for ever. A program
    that reads until it gets the record before the end waits for ever, too: no record has that offset.

    Right: the marker that ends a transaction has an offset of its own. A consumer's position moves past it: commit the
    position, and compare it with the end of the log. An aborted transaction leaves only offsets without visible records.
    """
    await cluster.create_topic(orders)
    producer = cluster.manual_producer(app)
    await begun(producer)
    await producer.produce(orders, b"a", b"b")
    await ended(cluster, producer)
    await producer.produce(orders, b"c")
    await ended(cluster, producer, commit=False)
    await reads(cluster, orders, b"a", b"b")
    assert await end_offset(cluster, orders) == 5
    async with Consumer(orders, bootstrap_servers=cluster.address, group_id=app, **OF_COMMITTED) as reader:
        read = [await anext(reader), await anext(reader)]
        assert [record.offset for record in read] == [0, 1]
        while await reader.position((orders, 0)) < 5:
            assert await reader.getmany(timeout_ms=100) == {}
        await reader.commit()
    assert await committed(cluster, app, (orders, 0)) == 5
