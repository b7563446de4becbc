"""Fenced producers, zombies that continue to write, and lost epochs."""

import pytest

from groupcoord.protocol.errors import ErrorCode as E
from groupcoord.testing import Cluster, RemoteCluster
from tests.scenarios.steps import enters
from tests.scenarios.transactions import begun, committed, ended, producers_of, reads, uncommitted

pytestmark = pytest.mark.asyncio

LOOKS_EVERY_SECOND = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": 1_000}
CHECKS_ONCE_A_DAY = {"log.retention.check.interval.ms": 86_400_000, "offsets.retention.check.interval.ms": 86_400_000}
"""A week passes faster that way."""


@pytest.mark.parametrize(("version", "told"), [(1, E.TRANSACTION_ABORTABLE), (2, E.INVALID_PRODUCER_EPOCH)])
async def test_a_late_batch_does_not_begin_anything(
    cluster: RemoteCluster, app: str, orders: str, version: int, told: E
) -> None:
    """apache/kafka#12392 "KAFKA-14053: Transactional producer should bump the epoch and skip ab…"
    apache/kafka#13391 "KAFKA-14561: Improve transactions experience for older clients by ensuring ongoing transaction"

    A batch is late, its producer gives up and aborts, and then the batch arrives. The broker treated it as the start of
    another transaction, which would never end: read-committed consumers stopped there.

    Right: the leader of the partition asks the transaction coordinator whether the partition is part of the transaction,
    and it is not any more. With KIP-890 the epoch is wrong, too, since each transaction has its own.
    """
    await cluster.create_topic(orders)
    producer = cluster.manual_producer(app, version=version)
    await begun(producer)
    if version == 1:
        await producer.add_partitions((orders, 0))
    assert (await producer.produce(orders, b"in time")).error_code == E.NONE
    epoch = producer.epoch
    await ended(cluster, producer, commit=False)
    producer.epoch, producer.sequences[orders, 0] = epoch, 1
    assert (await producer.produce(orders, b"late")).error_code == told
    assert [each.current_txn_start_offset for each in await producers_of(cluster, orders)] == [-1]
    await cluster.produce(orders, b"of somebody else")
    await reads(cluster, orders, b"of somebody else")


async def test_a_successor_ends_what_was_open(cluster: RemoteCluster, app: str, orders: str) -> None:
    """tulios/kafkajs#296 "Retry on CONCURRENT_TRANSACTIONS error for an idempotent transactional producer?"

    A service crashes during a transaction and starts again. Its first request is refused with CONCURRENT_TRANSACTIONS, and
    it crashes again, until the transaction has timed out.

    Right: this error means that the open transaction is being aborted for the new producer. Repeat the request: the abort
    takes a moment and not a whole timeout. The former producer of this transactional id is fenced, and read-committed
    consumers never see its records.
    """
    await cluster.create_topic(orders)
    crashed, restarted = cluster.manual_producer(app), cluster.manual_producer(app)
    await begun(crashed)
    await crashed.produce(orders, b"half")
    assert (await restarted.init()).error_code == E.CONCURRENT_TRANSACTIONS
    await begun(restarted)
    assert restarted.producer_id == crashed.producer_id
    assert restarted.epoch == crashed.epoch + 2  # one for the abort, and one for the new producer
    await restarted.produce(orders, b"whole")
    assert (await crashed.produce(orders, b"half again")).error_code == E.INVALID_PRODUCER_EPOCH
    assert (await crashed.end()).error_code == E.PRODUCER_FENCED
    await ended(cluster, restarted)
    await reads(cluster, orders, b"whole")


@pytest.mark.slow
async def test_two_with_one_transactional_id_fence_each_other(cluster: RemoteCluster, app: str, orders: str) -> None:
    """spring-projects/spring-kafka#1424 "Remaining records should not be processed after catching ProducerFencedException in
    transactional non batch processing"

    A producer is fenced, and its application creates another one with the same transactional id and continues with the
    *next* record. That one fences its replacement, and is fenced in turn. The records of the fenced transaction are
    skipped, because a later offset is committed.

    Right: a fenced producer has lost its input partitions, too. The application stops, and continues from the committed
    offset.
    """
    await cluster.create_topic(orders)
    first = cluster.manual_producer(app)
    await begun(first)
    await first.produce(orders, b"made of record 0")
    await first.commit_offsets(app, {(orders, 0): 1})
    second = cluster.manual_producer(app)
    await begun(second)
    assert (await first.end()).error_code == E.PRODUCER_FENCED
    await begun(first)  # fences back
    assert (await second.produce(orders, b"made of record 0")).error_code == E.INVALID_PRODUCER_EPOCH
    assert await committed(cluster, app, (orders, 0)) == -1  # that is where to go on
    await first.produce(orders, b"made of record 1")
    await first.commit_offsets(app, {(orders, 0): 2})
    await ended(cluster, first)
    await reads(cluster, orders, b"made of record 1")
    assert await committed(cluster, app, (orders, 0)) == 2  # nobody will ever see record 0 again


@pytest.mark.slow
async def test_a_member_of_an_older_generation_commits_nothing(cluster: RemoteCluster, app: str, orders: str) -> None:
    """aio-libs/aiokafka#844 "[QUESTION] Rebalance during transaction breaks exactly-once?"
    apache/kafka#7897 "KAFKA-9365: Add server side change to include consumer group information within transaction commit"
    evolution-gaming/kafka-flow#854 "Refresh consumer group metadata on poll"

    A member processes a record for so long that the partition has another owner when it commits the offset in its
    transaction. Each has its own transactional id, so no producer is fenced, both commit, and the record is processed
    twice.

    Right: TxnOffsetCommit with an old generation or an unknown member is refused (KIP-447), and the transaction must be
    aborted. Without member and generation, as older clients and aiokafka send it, it is not checked and is accepted.
    """
    await cluster.create_topic(orders)
    where = (orders, 0)
    slow, other = cluster.manual_member(app, orders), cluster.manual_member(app, orders)
    await slow.rejoin()
    zombie = cluster.manual_producer(f"{app}-slow")
    await begun(zombie)
    as_it_was = slow.member_id, slow.generation
    await enters(cluster, other, slow)
    assert await zombie.commit_offsets(app, {where: 5}, *as_it_was) == {where: E.ILLEGAL_GENERATION}
    assert await zombie.commit_offsets(app, {where: 5}, "gone", slow.generation) == {where: E.UNKNOWN_MEMBER_ID}
    await ended(cluster, zombie, commit=False)
    assert await committed(cluster, app, where) == -1
    assert await zombie.commit_offsets(app, {where: 5}) == {where: E.NONE}
    await ended(cluster, zombie)
    assert await cluster.group(app).wait_committed(*where, 5) == 5


@pytest.mark.kafka(topics={"orders": 1}, config=LOOKS_EVERY_SECOND)
@pytest.mark.parametrize(
    ("version", "committing", "aborting"),
    [(1, E.PRODUCER_FENCED, E.PRODUCER_FENCED), (2, E.INVALID_TXN_STATE, E.NONE)],
)
async def test_a_commit_after_the_timeout(kafka: Cluster, version: int, committing: E, aborting: E) -> None:
    """apache/kafka#23204 "KAFKA-20785: Return PRODUCER_FENCED when EndTxn commit races with coordinator-side abort"
    confluentinc/librdkafka#3297 "Transaction timeout can lead to non-recoverable INVALID_TXN_STATE error"
    apache/flink#16941 "[FLINK-23839][connectors-kafka] Give a more descriptive warnings on I…"
    spring-projects/spring-kafka#1612 "Enforcing container to stop on transaction fencing"

    A transaction takes longer than `transaction.timeout.ms`. Its producer is the only one, but gets the error that it was
    fenced by another one, or, with KIP-890, an invalid transaction state, which clients treat as a fatal bug.

    Right: the coordinator has aborted the transaction and increased the epoch. Read-committed consumers see none of its
    records. Up to Kafka 4.3, if the client supports KIP-890, a commit gets INVALID_TXN_STATE, while an abort succeeds as if
    it came in time, and the producer continues. A client without KIP-890 has to get a new epoch with InitProducerId.
    """
    producer = kafka.manual_producer("billing", version=version)
    await begun(producer, transaction_timeout_ms=10_000)
    await producer.add_partitions(("orders", 0))
    await producer.produce("orders", b"too slow")
    await kafka.clock.advance(12)
    assert (await producer.end()).error_code == committing
    assert (await producer.end(commit=False)).error_code == aborting
    if aborting is not E.NONE:
        await begun(producer)
    await producer.add_partitions(("orders", 0))
    assert (await producer.produce("orders", b"in time")).error_code == E.NONE
    async with RemoteCluster(kafka.address) as cluster:
        await ended(cluster, producer)
        await reads(cluster, "orders", b"in time")
        assert await uncommitted(cluster, "orders") == [b"too slow", b"in time"]


async def test_a_lost_answer_to_a_commit(cluster: RemoteCluster, app: str, orders: str) -> None:
    """apache/kafka#16719 "KAFKA-14562 [1/2]: Implement epoch bump after every transaction"
    confluentinc/librdkafka#4016 "Fix for invalid state transition when commit times out and abort is called"

    The response to EndTxn is lost, and with KIP-890 the producer's next epoch with it. The producer repeats the request
    with its old epoch; or it gives up and aborts, as if nothing had been committed.

    Right: the same EndTxn with the previous epoch is a retry. It gets the same response, with the same next epoch, and
    changes nothing. An abort after the commit gets INVALID_TXN_STATE: the producer must repeat the request that it sent
    first.
    """
    await cluster.create_topic(orders)
    producer = cluster.manual_producer(app)
    await begun(producer)
    await producer.produce(orders, b"a")
    epoch = producer.epoch
    await ended(cluster, producer)
    producer.epoch = epoch
    assert (await producer.end(commit=False)).error_code == E.INVALID_TXN_STATE
    assert (await producer.end()).error_code == E.NONE
    assert producer.epoch == epoch + 1
    await producer.produce(orders, b"b")
    await ended(cluster, producer)
    assert producer.epoch == epoch + 2
    await reads(cluster, orders, b"a", b"b")


async def test_a_transaction_without_anything(cluster: RemoteCluster, app: str, orders: str) -> None:
    """apache/kafka#18448 "KAFKA-18401: Transaction version 2 does not support commit transaction without records"

    The only record of a transaction is too large and is never sent. With KIP-890 a transaction begins on the broker with
    its first record: the commit failed, as there was nothing to commit, and so did the next transaction.

    Right: a producer that has sent nothing does not send a commit. An abort is always accepted: the broker aborts the empty
    transaction, and the next one has the next epoch.
    """
    await cluster.create_topic(orders)
    producer = cluster.manual_producer(app)
    await begun(producer)
    assert (await producer.end()).error_code == E.INVALID_TXN_STATE
    epoch = producer.epoch
    await ended(cluster, producer, commit=False)
    assert producer.epoch == epoch + 1
    assert (await producer.end()).error_code == E.INVALID_TXN_STATE
    await producer.produce(orders, b"a")
    await ended(cluster, producer)
    await reads(cluster, orders, b"a")


@pytest.mark.slow
@pytest.mark.kafka(topics={"orders": 1}, config=CHECKS_ONCE_A_DAY)
async def test_a_transactional_id_that_was_idle_for_a_week(kafka: Cluster) -> None:
    """spring-projects/spring-kafka#660 "The producer attempted to use a producer id which is not currently assigned to its
    transactional id"
    micronaut-projects/micronaut-kafka#542 "kafka transactional support failes after 1 week with gap in messages"
    apache/kafka#17822 "KAFKA-18019: Make INVALID_PRODUCER_ID_MAPPING a fatal error"

    A service sent nothing for `transactional.id.expiration.ms`, which is seven days. From then on every send failed until
    the service was restarted, because it always used the same producer.

    Right: the transactional id has expired, even if a producer still uses it. Only a new producer helps. It gets another
    producer id, so the old producer could not be recognised as a zombie: therefore the error is fatal.
    """
    producer = kafka.manual_producer("billing")
    await begun(producer)
    await producer.produce("orders", b"a")
    await producer.end()
    known = producer.producer_id
    await kafka.clock.advance(6 * 86_400)
    await producer.produce("orders", b"b")
    await producer.end()
    await kafka.clock.advance(7 * 86_400 + 3_600)
    for _ in range(2):
        assert (await producer.produce("orders", b"c")).error_code == E.INVALID_PRODUCER_ID_MAPPING
    await begun(producer)
    assert producer.producer_id != known
    assert (await producer.produce("orders", b"c")).error_code == E.NONE


@pytest.mark.kafka(topics={"orders": 1})
async def test_a_fence_that_cannot_be_stored_costs_one_epoch(kafka: Cluster) -> None:
    """apache/kafka#8239 "KAFKA-9666: Don't increase transactional epoch when trying to fence if the log append fails"

    Too few in-sync replicas are left to store that a producer is fenced. A client repeats the request, and each time the
    epoch increased: after half an hour it was at its maximum, and no producer could be fenced any more.

    Right: each request gets a retriable error, and the epoch at the end is the same as without any failure.
    """
    crashed, restarted = kafka.manual_producer("billing"), kafka.manual_producer("billing")
    await begun(crashed)
    await crashed.produce("orders", b"half")
    kafka.fail_append("NOT_ENOUGH_REPLICAS", times=5)
    for _ in range(5):
        assert (await restarted.init()).error_code == E.COORDINATOR_NOT_AVAILABLE
    await begun(restarted)
    assert restarted.epoch == crashed.epoch + 2  # one for the abort, and one for the new producer
    assert (await crashed.end()).error_code == E.PRODUCER_FENCED
