"""Benchmark of one consumer group (KIP-848) with a thousand members and then one more, beside a real broker."""

import contextlib
import time
import uuid

from bench.servers import groupcoord
from bench.table import Table
from bench.wire import Connection
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.apis.consumer_group_heartbeat import TopicPartitions
from groupcoord.protocol.apis.create_topics import CreatableTopic
from groupcoord.protocol.apis.list_offsets import ListOffsetsPartition, ListOffsetsTopic
from groupcoord.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    CreateTopicsRequest,
    FindCoordinatorRequest,
    ListOffsetsRequest,
)
from tests.real_kafka.broker import RealKafkaUnavailable
from tests.real_kafka.kafka_java import KafkaJava
from tests.real_kafka.process import KafkaProcess

MEMBERS = 1000
TOPICS = 10
PARTITIONS = 10_000
ASSIGNMENT_INTERVAL_S = 1.0
PATIENCE_S = 300


class Member:
    """A member that does what a client does, as fast as it is answered."""

    def __init__(self, port: int) -> None:
        self.connection = Connection(port)
        self.epoch = 0
        self.owned: dict[uuid.UUID, tuple[int, ...]] = {}
        self._member_id = str(uuid.uuid4())
        self._has_news = False
        """Has it to tell what it has?"""

    def send(self) -> None:
        """Send a heartbeat; the first one joins."""
        joins = self.epoch == 0
        owned = (
            ()
            if joins
            else tuple(TopicPartitions(topic_id=topic, partitions=numbers) for topic, numbers in self.owned.items())
        )
        request = ConsumerGroupHeartbeatRequest(
            group_id="bench",
            member_id=self._member_id,
            member_epoch=self.epoch,
            rebalance_timeout_ms=300_000 if joins else -1,
            subscribed_topic_names=tuple(f"orders-{number}" for number in range(TOPICS)) if joins else None,
            topic_partitions=owned if joins or self._has_news else None,
        )
        self.connection.send(ApiKey.CONSUMER_GROUP_HEARTBEAT, request)

    def receive(self) -> None:
        """Do what the answer says."""
        answer = self.connection.receive(ApiKey.CONSUMER_GROUP_HEARTBEAT)
        if answer.error_code:
            raise SystemExit(f"bench: a heartbeat was refused: {answer.error_code!r} {answer.error_message}")
        self.epoch = answer.member_epoch
        self._has_news = answer.assignment is not None
        if answer.assignment is not None:
            self.owned = {topic.topic_id: topic.partitions for topic in answer.assignment.topic_partitions}


def run() -> list[Table]:
    """Each figure is of the same members, one thread of Python, which ask again as soon as all have been answered."""
    table = Table(
        f"a consumer group, {PARTITIONS:,} partitions, assigned at most once a second",
        "what",
        "groupcoord s",
        "Kafka s",
    )
    with groupcoord() as server:
        ours = _figures(server.port)
    theirs = dict.fromkeys(ours, "")
    with contextlib.suppress(RealKafkaUnavailable), KafkaProcess(java=KafkaJava) as broker:
        theirs = _figures(broker.port)
    for what, figure in ours.items():
        table.add(what, figure, theirs[what])
    return [table]


def _figures(port: int) -> dict[str, str]:
    _create_topics(port)
    members = [Member(port) for _ in range(MEMBERS)]
    start = time.perf_counter()
    _settle(members)
    formed = time.perf_counter()
    time.sleep(ASSIGNMENT_INTERVAL_S)  # so that the next assignment is not put off
    members.append(Member(port))
    joins = time.perf_counter()
    rounds = _settle(members)
    joined = time.perf_counter()
    for member in members:
        member.connection.close()
    return {
        f"{MEMBERS:,} members join, until all have what they are to have": f"{formed - start:.2f}",
        "one more joins, until all have what they are to have": f"{joined - joins:.2f}",
        "heartbeats of each until then": str(rounds),
    }


def _settle(members: list[Member]) -> int:
    """Let all send heartbeats until everything is shared out and nobody is behind; returns how many each has sent."""
    deadline = time.monotonic() + PATIENCE_S
    rounds = 0
    while time.monotonic() < deadline:
        rounds += 1
        for member in members:
            member.send()
        for member in members:
            member.receive()
        owned = sum(len(numbers) for member in members for numbers in member.owned.values())
        if owned == PARTITIONS and len({member.epoch for member in members}) == 1 and all(m.owned for m in members):
            return rounds
    raise SystemExit(f"bench: the group is not settled after {PATIENCE_S} s")


def _create_topics(port: int) -> None:
    connection = Connection(port)
    for number in range(TOPICS):  # a broker makes less than 10,000 partitions by one request
        topic = CreatableTopic(name=f"orders-{number}", num_partitions=PARTITIONS // TOPICS, replication_factor=1)
        create = CreateTopicsRequest(topics=(topic,), timeout_ms=PATIENCE_S * 1000)
        created = connection.ask(ApiKey.CREATE_TOPICS, create)
        if created.topics[0].error_code:
            raise SystemExit(f"bench: no topics: {created}")
    last = ListOffsetsPartition(partition_index=PARTITIONS // TOPICS - 1, current_leader_epoch=-1, timestamp=-1)
    for number in range(TOPICS):  # Kafka answers before it has made their logs
        topics = (ListOffsetsTopic(name=f"orders-{number}", partitions=(last,)),)
        request = ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=topics)
        while connection.ask(ApiKey.LIST_OFFSETS, request).topics[0].partitions[0].error_code:
            time.sleep(0.1)
    while True:  # the first to ask makes __consumer_offsets
        found = connection.ask(ApiKey.FIND_COORDINATOR, FindCoordinatorRequest(key_type=0, coordinator_keys=("bench",)))
        if not found.coordinators[0].error_code:
            break
        time.sleep(0.1)
    connection.close()
