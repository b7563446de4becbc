"""Unmodified confluent-kafka and kafka-python, whose own timers run in real time."""

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import kafka as kafka_python
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from groupcoord.coordinator.events import MemberRemoved, RebalanceStarted, StaticMemberReplaced
from groupcoord.testing.trace import RequestReceived, ResponseSent

pytestmark = [
    pytest.mark.clients,
    pytest.mark.slow,
    pytest.mark.kafka(topics={"orders": 2}),
    # kafka-python sometimes forgets to close a socket; which test notices is up to the garbage collector.
    pytest.mark.filterwarnings("ignore:Exception ignored in. <socket.socket:pytest.PytestUnraisableExceptionWarning"),
]

PATIENCE = 200
"""So often a client is polled, for 50 ms each time, before it is taken to do nothing."""


@pytest.fixture(autouse=True)
def _forgotten_sockets_do_not_haunt_other_tests() -> Iterator[None]:
    yield
    gc.collect()


@contextmanager
def confluent(kafka_sync: Any, *, listener: Mapping[str, Any] | None = None, **settings: Any) -> Iterator[Consumer]:
    """A consumer of the group ``app``."""
    named = {key.replace("_", "."): value for key, value in settings.items()}
    consumer = Consumer(
        {
            "bootstrap.servers": kafka_sync.address,
            "group.id": "app",
            "heartbeat.interval.ms": 50,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **named,
        }
    )
    consumer.subscribe(["orders"], **(listener or {}))
    try:
        yield consumer
    finally:
        consumer.close()


def polled(condition: Callable[[], bool], *consumers: Consumer) -> None:
    """Poll until ``condition`` holds."""
    for _ in range(PATIENCE):
        if condition():
            return
        for consumer in consumers:
            consumer.poll(0.05)
    raise AssertionError("nothing happens")


def test_the_elder_of_two_with_one_name_ends(kafka_sync: Any) -> None:
    """confluentinc/librdkafka#2635 "Static consumer fencing and fatal consumer errors"
    twmb/franz-go#931 "static membership and InstanceID"

    The same `group.instance.id` is configured twice. The older member is fenced; if it joined again, the two would fence
    each other for ever.

    Right: the newer member takes over the instance id and the partitions. The older one gets a fatal error, which each of
    its further calls raises.
    """
    static: dict[str, Any] = {"group_instance_id": "w-1"}
    with confluent(kafka_sync, client_id="elder", **static) as elder:
        polled(lambda: len(elder.assignment()) == 2, elder)
        before = kafka_sync.group("app").wait_stable(members=1).member("w-1").member_id
        with confluent(kafka_sync, client_id="younger", **static) as younger:
            polled(lambda: len(younger.assignment()) == 2, younger)
            errors: list[Any] = []

            def ended() -> bool:
                message = elder.poll(0.05)
                errors.extend([message.error()] if message is not None and message.error() else [])
                return bool(errors)

            polled(ended)
            assert errors[0].code() == KafkaError._FATAL
            assert "fenced by other consumer with same group.instance.id" in errors[0].str()
            with pytest.raises(KafkaException, match="Fatal error"):
                elder.commit(offsets=[TopicPartition("orders", 0, 1)], asynchronous=False)
            assert kafka_sync.group("app").describe().member("w-1").member_id != before
            assert len(kafka_sync.trace.of(RebalanceStarted)) == 1


def test_a_rolling_restart_is_no_rebalance(kafka_sync: Any) -> None:
    """apache/kafka#6177 "KAFKA-7862 & KIP-345 part-one: Add static membership logic to JoinGroup protocol"
    confluentinc/librdkafka#2525 "Kip 345: Static group membership"

    A deployment restarts its pods one by one.

    Right: a static member sends no LeaveGroup when it is closed, and gets the same partition after its restart, without a
    rebalance.
    """
    with confluent(kafka_sync, group_instance_id="w-0") as stays:
        polled(lambda: len(stays.assignment()) == 2, stays)
        for restart in range(3):
            with confluent(kafka_sync, group_instance_id="w-1") as restarts:
                polled(lambda: len(restarts.assignment()) == 1, stays, restarts)
                assert len(kafka_sync.trace.of(RebalanceStarted)) == 2
                assert len(kafka_sync.trace.of(StaticMemberReplaced, rebalances=False)) == restart
            kafka_sync.clock.advance(30)  # the session is 45 s, and nobody is in a hurry
        kafka_sync.trace.of(RequestReceived, api="LeaveGroup").none()
        kafka_sync.trace.of(MemberRemoved).none()


@pytest.mark.parametrize("protocol", ["range", "cooperative-sticky"])
def test_lost_partitions_are_not_revoked(kafka_sync: Any, protocol: str) -> None:
    """confluentinc/librdkafka#2908 "lost partition notification for EAGER rebalance protocol"
    apache/kafka#6884 "KAFKA-8179: Part 3, Add PartitionsLost API for resetGenerations and metadata/subscription change"

    Partitions that already had another owner were reported as revoked, and the callback committed.

    Right: the client calls `on_lost` with these partitions, and not `on_revoke`; then it joins again and continues.
    """
    told: list[str] = []
    listener = {
        "on_assign": lambda _, partitions: told.append("assigned") if partitions else None,
        "on_revoke": lambda _, partitions: told.append("revoked"),
        "on_lost": lambda _, partitions: told.append("lost"),
    }
    with confluent(kafka_sync, listener=listener, client_id="b", partition_assignment_strategy=protocol) as consumer:
        polled(lambda: told == ["assigned"], consumer)
        kafka_sync.group("app").expire_member("b")
        polled(lambda: len(told) >= 3, consumer)
        assert told == ["assigned", "lost", "assigned"]
        assert len(consumer.assignment()) == 2


@pytest.mark.kafka(topics={"orders": 1}, brokers=3)
def test_a_lone_committer_finds_the_coordinator_again(kafka_sync: Any) -> None:
    """confluentinc/librdkafka#2791 "Consumer using assign() does not re-query coordinator after NOT_COORD_FOR_GROUP"
    apache/kafka#11631 "KAFKA-13563: clear FindCoordinatorFuture for non consumer group mode"

    A consumer with `assign()` only commits: it is not a member, and sends no heartbeats that could fail. After the
    coordinator had moved the client never looked it up again, and every commit failed until the next restart.

    Right: the failed commit itself makes the client look up the coordinator.
    """
    consumer = Consumer({"bootstrap.servers": kafka_sync.address, "group.id": "app", "enable.auto.commit": False})
    consumer.assign([TopicPartition("orders", 0, 0)])
    for offset, broker_id in enumerate((1, 2, 3), start=1):
        kafka_sync.group("app").move_coordinator(to=broker_id)
        for _ in range(10):  # one may fail on its way to the old one, as long as the next does not
            with suppress(KafkaException):
                consumer.commit(offsets=[TopicPartition("orders", 0, offset)], asynchronous=False)
                break
        assert kafka_sync.group("app").committed("orders", 0) == offset
    consumer.close()


@pytest.mark.kafka(topics={"orders": 2}, brokers=3)
def test_a_commit_whose_coordinator_goes_is_stored_by_the_next_one(kafka_sync: Any) -> None:
    """confluentinc/librdkafka#1195 "RD_KAFKA_RESP_ERR_NOT_COORDINATOR_FOR_GROUP on commit"

    A commit waits for replication when its coordinator moves, and gets NOT_COORDINATOR. The client passed this error to the
    application; nothing was stored, and after the next start the record was read again.

    Right: the client finds the new coordinator and repeats the commit there.
    """
    group = kafka_sync.group("app")
    group.move_coordinator(to=1)
    kafka_sync.produce("orders", b"one")
    with confluent(kafka_sync) as consumer:
        polled(lambda: bool(consumer.assignment()), consumer)
        (message,) = consumer.consume(1, 10)
        held = kafka_sync.hold_append(group="app")
        consumer.commit(message=message, asynchronous=True)
        held.wait()
        group.move_coordinator(to=2)
        held.release()
        assert group.wait_committed("orders", 0, 1, timeout=60) == 1
        (refused,) = kafka_sync.trace.of(ResponseSent, api="OffsetCommit", error="NOT_COORDINATOR")
        assert refused.group == "app"
        assert group.describe().generation == 1


def test_a_restart_is_no_rebalance(kafka_sync: Any) -> None:
    """confluentinc/confluent-kafka-python#173 "Consumer fails to consume on broker restart"
    dpkp/kafka-python#1134 "Add a test that when groupcoordinator dies, the consumer will pick up the new coordinator"

    After a restart of the only broker consumers came back without partitions, or not at all.

    Right: the consumers connect again, and the group has not changed. Tested here with kafka-python.
    """
    kafka_sync.produce("orders", b"before")
    consumer = kafka_python.KafkaConsumer(
        "orders",
        bootstrap_servers=kafka_sync.address,
        group_id="app",
        heartbeat_interval_ms=50,
        auto_offset_reset="earliest",
    )
    try:
        assert next(consumer).value == b"before"
        member = kafka_sync.group("app").wait_stable(members=1).members[0].member_id
        rebalances = len(kafka_sync.trace.of(RebalanceStarted))  # it may have joined before it knew the topic
        kafka_sync.stop()
        kafka_sync.clock.advance(120)
        kafka_sync.restart()
        kafka_sync.produce("orders", b"after")
        assert next(consumer).value == b"after"
        assert kafka_sync.group("app").wait_stable().members[0].member_id == member
        assert len(kafka_sync.trace.of(RebalanceStarted)) == rebalances
    finally:
        consumer.close()


def first_by_confluent(kafka_sync: Any) -> bytes | None:
    """The first record that a new confluent-kafka consumer reads; messages before it are errors, and are skipped."""
    with confluent(kafka_sync) as consumer:
        for _ in range(PATIENCE // 4):
            message = consumer.poll(0.05)
            if message is not None and not message.error():
                return message.value()
    return None


def first_by_kafka_python(kafka_sync: Any) -> bytes | None:
    """The first record that a new kafka-python consumer reads."""
    settings = {"bootstrap_servers": kafka_sync.address, "group_id": "app", "auto_offset_reset": "earliest"}
    consumer = kafka_python.KafkaConsumer("orders", consumer_timeout_ms=10_000, **settings)
    try:
        return next((record.value for record in consumer), None)
    finally:
        consumer.close()


@pytest.mark.parametrize(
    ("first", "error"),
    [
        (first_by_kafka_python, "COORDINATOR_LOAD_IN_PROGRESS"),
        (first_by_kafka_python, "NOT_COORDINATOR"),
        (first_by_confluent, "COORDINATOR_LOAD_IN_PROGRESS"),
    ],
)
def test_no_answer_is_not_no_offset(kafka_sync: Any, first: Callable[[Any], bytes | None], error: str) -> None:
    """confluentinc/librdkafka#5586 "OffsetFetch request-level NOT_COORDINATOR leaves partition in .queried; fetcher never
    starts and never retries"
    Parsely/pykafka#958 "OffsetFetchResponseV2 can result in offsets being lost"
    IBM/sarama#3574 "fix(offset): retry fetchInitialOffset on top-level coordinator errors"

    From version 2 on OffsetFetch returns the errors of a loading or moved coordinator at the top level, and no partitions.
    Some clients treat that as "nothing was ever committed" and read everything again (aiokafka 0.14 does); librdkafka 2.16
    waits for the partitions for ever after NOT_COORDINATOR. This test has the clients that are correct.

    Right: such an error says nothing about offsets. The client repeats the request, at the same broker or at the new
    coordinator.
    """
    kafka_sync.produce("orders", b"done before", b"new")
    before = kafka_sync.manual_member("app", "orders")
    before.join().result()
    before.sync().result()
    before.commit({("orders", 0): 1, ("orders", 1): 0}).result()
    before.leave().result()
    kafka_sync.faults.when("OffsetFetch").refuse(error).times(2).optional()
    assert first(kafka_sync) == b"new"
