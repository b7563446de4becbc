"""Invariants of replication in clusters whose brokers fail: durability, one leader per epoch, identical replicas at the end."""

from typing import Any, NamedTuple, cast

from groupcoord.assignors import TopicPartition
from groupcoord.broker.events import LeaderChanged
from groupcoord.broker.leader_election_and_isr import NO_LEADER
from groupcoord.broker.log_segment import LogSegment
from groupcoord.broker.topic_store import Topic
from groupcoord.client.completed_fetch import decode_records
from groupcoord.core.effects import Call
from groupcoord.core.events import Event
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.batches.record_batch import BatchHeader, iter_batches, read_header
from groupcoord.simulation.invariants.base import Invariant
from groupcoord.simulation.plan import OFFSETS_TOPIC, TRANSACTION_STATE, WRITTEN_TOPIC, SimulationPlan

_ALL = -1
_ALL_BYTES = 1 << 30
Identity = tuple[int, ...]
Batches = dict[TopicPartition, dict[int, Identity]]
"""The batches of each partition, by base offset."""


def identity(header: BatchHeader) -> Identity:
    """The fields that identify a batch. A retry of a batch with a sequence number is the same, even with other timestamps."""
    if header.base_sequence >= 0:
        return header.producer_id, header.producer_epoch, header.base_sequence, header.record_count
    return (header.crc,)


class ReplicaSnapshot(NamedTuple):
    """The log of a partition on one broker: end offset, and batch headers by base offset."""

    end_offset: int
    batches: dict[int, BatchHeader]


def replica_snapshot(topic: Topic, partition: int, broker_id: int) -> ReplicaSnapshot:
    """The replica of a partition on that broker."""
    log = topic.copies[partition][broker_id]
    headers = (header for segment in log.segments for _, header in cast("LogSegment", segment).batches())
    return ReplicaSnapshot(log.log_end_offset, {header.base_offset: header for header in headers})


def batch_headers(data: bytes) -> dict[int, BatchHeader]:
    """The headers of the batches in ``data``, by base offset."""
    return {header.base_offset: header for header, _ in iter_batches(data)}


class ReplicationInvariant(Invariant):
    """An invariant of runs in which brokers fail."""

    @classmethod
    def applies(cls, plan: SimulationPlan) -> bool:
        return plan.replicated

    def topic(self, name: str) -> Topic:
        """The topic with that name."""
        return self.context.brokers.cluster.broker.topics[name]

    def replica(self, partition: TopicPartition, broker_id: int) -> ReplicaSnapshot:
        """The replica of a partition on a broker."""
        return replica_snapshot(self.topic(partition[0]), partition[1], broker_id)


class _StaysInTheLog(ReplicationInvariant):
    """Every leader of a partition has its ``kept`` batches, and at the end every replica has them."""

    what = ""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.kept: Batches = {}
        self._led_anew: set[TopicPartition] = set()

    def event_emitted(self, event: Event) -> None:
        """Note a new leader."""
        if isinstance(event, LeaderChanged) and (event.topic, event.partition) in self.kept:
            self._led_anew.add((event.topic, event.partition))

    def step_done(self) -> None:
        """Check the log of a new leader as soon as it runs: a dead broker is still leader until its session expires."""
        broker = self.context.brokers.cluster.broker
        for name, number in list(self._led_anew):
            topic = self.topic(name)
            leader, runs = topic.metadata.leaders[number], broker.is_led(topic, number)
            if runs:
                self._check((name, number), leader, "leads")
            if runs or leader == NO_LEADER:
                self._led_anew.remove((name, number))

    def finish(self) -> None:
        """Check every replica."""
        for partition in self.kept:
            for broker_id in self.topic(partition[0]).metadata.replicas[partition[1]]:
                self._check(partition, broker_id, "has a replica")

    def _check(self, partition: TopicPartition, broker_id: int, how: str) -> None:
        batches = self.replica(partition, broker_id).batches
        for offset, expected in self.kept[partition].items():
            found = batches.get(offset)
            if found is None or identity(found) != expected:
                there = "something else" if found is not None else "nothing"
                name = f"{partition[0]}-{partition[1]}"
                raise self.violation(
                    f"broker {broker_id} {how} of {name}, and at offset {offset} it has {there}: {self.what}"
                )


class AcknowledgedStays(_StaysInTheLog):
    """Records that were acknowledged with acks=all and min.insync.replicas=2 are never lost: every leader has them, and at the
    end every replica. No election is unclean in these runs."""

    name = "acknowledged-stays"
    apis = frozenset({ApiKey.PRODUCE})
    what = "what was there was acknowledged with acks=all"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._asked: dict[tuple[int, int], Identity] = {}

    def request_received(self, call: Call, request: Any) -> None:
        """Remember the batch that is to be acknowledged."""
        if request.acks == _ALL:
            (sent,) = request.topic_data[0].partition_data
            self._asked[call.connection_id, call.correlation_id] = identity(read_header(sent.records))

    def response_sent(self, call: Call, response: Any) -> None:
        """Remember the acknowledged batch."""
        sent = self._asked.pop((call.connection_id, call.correlation_id), None)
        (topic,) = response.responses
        (each,) = topic.partition_responses
        if sent is not None and not each.error_code:
            self.kept.setdefault((topic.name, each.index), {})[each.base_offset] = sent


class ReadStays(_StaysInTheLog):
    """Records that a consumer has fetched stay at their offset: no consumer ever fetches others there, every leader has them,
    and at the end every replica."""

    name = "read-stays"
    apis = frozenset({ApiKey.FETCH})
    what = "what was there was read"

    def response_sent(self, call: Call, response: Any) -> None:
        """Remember the fetched batches, and compare them with those fetched before."""
        del call
        for topic in response.responses:
            for each in topic.partitions:
                kept = self.kept.setdefault((topic.topic, each.partition_index), {})
                for offset, header in batch_headers(bytes(each.records or b"")).items():
                    if kept.setdefault(offset, identity(header)) != identity(header):
                        name = f"{topic.topic}-{each.partition_index}"
                        raise self.violation(
                            f"at offset {offset} of {name} a reader is given something else than before"
                        )


class OneLeader(ReplicationInvariant):
    """A partition has one leader per leader epoch, and only that leader acknowledges batches with that epoch."""

    name = "one-leader"
    apis = frozenset({ApiKey.PRODUCE})

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._leaders: dict[tuple[str, int, int], int] = {}

    def event_emitted(self, event: Event) -> None:
        """Note who leads in the epoch."""
        if isinstance(event, LeaderChanged):
            self._leads(event.topic, event.partition, event.epoch, event.leader)

    def response_sent(self, call: Call, response: Any) -> None:
        """Check the epoch of an acknowledged batch; a leader may acknowledge a batch again that an earlier leader stored."""
        broker_id = self.context.brokers.cluster.broker.cluster.id_of(call)
        for topic in response.responses:
            for each in topic.partition_responses:
                if not each.error_code:
                    log = self.topic(topic.name).copies[each.index][broker_id]
                    epoch = log.epochs.of_offset(each.base_offset)
                    if epoch == log.leader_epoch:
                        self._leads(topic.name, each.index, epoch, broker_id)

    def _leads(self, topic: str, partition: int, epoch: int, broker_id: int) -> None:
        before = self._leaders.setdefault((topic, partition, epoch), broker_id)
        if before != broker_id:
            raise self.violation(f"{topic}-{partition} has two leaders in epoch {epoch}: {before} and {broker_id}")


class WrittenOnce(ReplicationInvariant):
    """At the end each record of an idempotent producer is in the log at most once, and each partition is in order."""

    name = "written-once"

    def finish(self) -> None:
        names = [plan.name for plan in self.context.plan.standalone_producers if plan.idempotent]
        for number, log in enumerate(self.topic(WRITTEN_TOPIC).partitions):
            data = log.read(0, _ALL_BYTES, at_least_one=True, to_end=True).data()
            last = dict.fromkeys(names, -1)
            for record in decode_records((WRITTEN_TOPIC, number), data, 0).records:
                name, _, place = (record.key or b"").decode().partition("-")
                if name in last and int(place) <= last[name]:
                    where = f"offset {record.offset} of {WRITTEN_TOPIC}-{number}"
                    raise self.violation(f"record {place} of {name} is at {where}, behind record {last[name]}")
                if name in last:
                    last[name] = int(place)


class ReplicasConverge(ReplicationInvariant):
    """At the end, when all brokers run and replicate, every partition has a leader, all its replicas are in sync and identical,
    the high watermark is the log end offset, and no producer waits for an acknowledgement."""

    name = "replicas-converge"

    def finish(self) -> None:
        brokers = self.context.brokers
        for topic in brokers.cluster.broker.topics.all():
            for partition in range(len(topic.partitions)):
                self._check(topic, partition)
        for client in self.context.standalone_producers:
            if not client.is_done or client.requests:
                raise self.violation(f"{client.name} waits for an acknowledgement")
        for name, shard in ((OFFSETS_TOPIC, brokers.shard), (TRANSACTION_STATE, brokers.transaction_shard)):
            if not shard.is_idle:
                raise self.violation(f"the coordinator of {name} waits for the replicas of what it has written")

    def _check(self, topic: Topic, partition: int) -> None:
        state, log = topic.metadata.partitions[partition], topic.partitions[partition]
        name = f"{topic.name}-{partition}"
        if state.leader == NO_LEADER or set(state.isr) != set(state.replicas):
            raise self.violation(f"{name} is {state}")
        first, *others = [self.replica((topic.name, partition), broker_id) for broker_id in state.replicas]
        for broker_id, other in zip(state.replicas[1:], others, strict=True):
            if other != first:
                ends = f"{first.end_offset} and {other.end_offset}"
                raise self.violation(
                    f"{name} ends at {ends} at brokers {state.replicas[0]} and {broker_id}, or differs"
                )
        if log.high_watermark != log.log_end_offset:
            raise self.violation(f"the high watermark of {name} is {log.high_watermark} of {log.log_end_offset}")


REPLICATION_INVARIANTS = (OneLeader, ReplicasConverge, AcknowledgedStays, ReadStays, WrittenOnce)
