"""Invariants of clusters whose brokers fail: what stays, who leads, and that all copies are the same in the end."""

from typing import Any

from groupcoord.assignors import TopicPartition
from groupcoord.broker.events import LeaderChanged
from groupcoord.broker.leader_election import NO_LEADER
from groupcoord.broker.topic_store import Topic
from groupcoord.client.fetched_records import decode_records
from groupcoord.core.effects import Call
from groupcoord.core.events import Event
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.batches.record_batch import BatchHeader, read_header
from groupcoord.simulation.copies import Copy, copy_of, headers_in
from groupcoord.simulation.invariants.base import Invariant
from groupcoord.simulation.plan import OFFSETS_TOPIC, TRANSACTION_STATE, SimulationPlan
from groupcoord.simulation.writer_plan import WRITTEN_TOPIC

_ALL = -1
_ALL_BYTES = 1 << 30
Identity = tuple[int, ...]
Batches = dict[TopicPartition, dict[int, Identity]]
"""Which batches of partitions there are, by their first offset."""


def identity(header: BatchHeader) -> Identity:
    """What tells a batch from all others. One with a sequence number is the same if it is sent again with other times."""
    if header.base_sequence >= 0:
        return header.producer_id, header.producer_epoch, header.base_sequence, header.record_count
    return (header.crc,)


class ReplicationInvariant(Invariant):
    """Of lives in which brokers fail."""

    @classmethod
    def applies(cls, plan: SimulationPlan) -> bool:
        return plan.replicated

    def topic(self, name: str) -> Topic:
        """The topic of that name."""
        return self.context.brokers.cluster.broker.topics[name]

    def copy(self, partition: TopicPartition, broker_id: int) -> Copy:
        """What a broker has of a partition."""
        return copy_of(self.topic(partition[0]), partition[1], broker_id)


class _StaysInTheLog(ReplicationInvariant):
    """Whoever leads a partition has what is ``kept`` of it, and in the end every replica has it."""

    what = ""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.kept: Batches = {}
        self._led_anew: set[TopicPartition] = set()

    def event_emitted(self, event: Event) -> None:
        """Notice a new leader."""
        if isinstance(event, LeaderChanged) and (event.topic, event.partition) in self.kept:
            self._led_anew.add((event.topic, event.partition))

    def step_done(self) -> None:
        """Look at what a new leader has, as soon as it runs: one that has died is a leader until its session ends."""
        broker = self.context.brokers.cluster.broker
        for name, number in list(self._led_anew):
            topic = self.topic(name)
            leader, runs = topic.metadata.leaders[number], broker.is_led(topic, number)
            if runs:
                self._check((name, number), leader, "leads")
            if runs or leader == NO_LEADER:
                self._led_anew.remove((name, number))

    def finish(self) -> None:
        """Look at every replica."""
        for partition in self.kept:
            for broker_id in self.topic(partition[0]).metadata.replicas[partition[1]]:
                self._check(partition, broker_id, "has a replica")

    def _check(self, partition: TopicPartition, broker_id: int, how: str) -> None:
        batches = self.copy(partition, broker_id).batches
        for offset, expected in self.kept[partition].items():
            found = batches.get(offset)
            if found is None or identity(found) != expected:
                there = "something else" if found is not None else "nothing"
                name = f"{partition[0]}-{partition[1]}"
                raise self.violation(
                    f"broker {broker_id} {how} of {name}, and at offset {offset} it has {there}: {self.what}"
                )


class AcknowledgedStays(_StaysInTheLog):
    """What was acknowledged with acks=all, where two replicas have to be in sync, is never lost: whoever leads has it, and in
    the end every replica. No election is unclean in these lives."""

    name = "acknowledged-stays"
    apis = frozenset({ApiKey.PRODUCE})
    what = "what was there was acknowledged with acks=all"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._asked: dict[tuple[int, int], Identity] = {}

    def request_received(self, call: Call, request: Any) -> None:
        """Remember what is to be acknowledged."""
        if request.acks == _ALL:
            (sent,) = request.topic_data[0].partition_data
            self._asked[call.connection_id, call.correlation_id] = identity(read_header(sent.records))

    def response_sent(self, call: Call, response: Any) -> None:
        """Remember what is acknowledged."""
        sent = self._asked.pop((call.connection_id, call.correlation_id), None)
        (topic,) = response.responses
        (each,) = topic.partition_responses
        if sent is not None and not each.error_code:
            self.kept.setdefault((topic.name, each.index), {})[each.base_offset] = sent


class ReadStays(_StaysInTheLog):
    """What a consumer was given stays where it was: no reader is ever given anything else at that offset, whoever leads has
    it, and in the end every replica."""

    name = "read-stays"
    apis = frozenset({ApiKey.FETCH})
    what = "what was there was read"

    def response_sent(self, call: Call, response: Any) -> None:
        """Remember what is read, and compare with what was read before."""
        del call
        for topic in response.responses:
            for each in topic.partitions:
                kept = self.kept.setdefault((topic.topic, each.partition_index), {})
                for offset, header in headers_in(bytes(each.records or b"")).items():
                    if kept.setdefault(offset, identity(header)) != identity(header):
                        name = f"{topic.topic}-{each.partition_index}"
                        raise self.violation(
                            f"at offset {offset} of {name} a reader is given something else than before"
                        )


class OneLeader(ReplicationInvariant):
    """In an epoch a partition has one leader, and only that one has acknowledged what is written with that epoch."""

    name = "one-leader"
    apis = frozenset({ApiKey.PRODUCE})

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._leaders: dict[tuple[str, int, int], int] = {}

    def event_emitted(self, event: Event) -> None:
        """Somebody leads, or nobody."""
        if isinstance(event, LeaderChanged):
            self._leads(event.topic, event.partition, event.epoch, event.leader)

    def response_sent(self, call: Call, response: Any) -> None:
        """A leader has acknowledged something; what a leader before it has stored, it may acknowledge once more."""
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
    """At the end, each record of an idempotent producer is in the log at most once, those of a partition in order."""

    name = "written-once"

    def finish(self) -> None:
        names = [plan.name for plan in self.context.plan.writers if plan.idempotent]
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
    """At the end, when all brokers run and copy, every partition has a leader, all its replicas are in sync and have the same,
    the high watermark is the end, and nobody waits for an acknowledgement."""

    name = "replicas-converge"

    def finish(self) -> None:
        brokers = self.context.brokers
        for topic in brokers.cluster.broker.topics.all():
            for partition in range(len(topic.partitions)):
                self._check(topic, partition)
        for client in self.context.writers:
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
        first, *others = [self.copy((topic.name, partition), broker_id) for broker_id in state.replicas]
        for broker_id, other in zip(state.replicas[1:], others, strict=True):
            if other != first:
                ends = f"{first.end_offset} and {other.end_offset}"
                raise self.violation(
                    f"{name} ends at {ends} at brokers {state.replicas[0]} and {broker_id}, or differs"
                )
        if log.high_watermark != log.log_end_offset:
            raise self.violation(f"the high watermark of {name} is {log.high_watermark} of {log.log_end_offset}")


REPLICATION_INVARIANTS = (OneLeader, ReplicasConverge, AcknowledgedStays, ReadStays, WrittenOnce)
