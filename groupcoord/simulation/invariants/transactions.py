"""Invariants of transactions: exactly-once output, fencing, last stable offset, completion, and replay of the log."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from groupcoord.assignors import TopicPartition
from groupcoord.broker.events import LeaderChanged
from groupcoord.broker.partition_log import PartitionLog
from groupcoord.coordinator.transaction.events import MarkerWritten, TransactionChanged, TransactionsLoaded
from groupcoord.coordinator.transaction.metadata import (
    NO_EPOCH,
    PREPARED,
    WITHOUT_TRANSACTION,
    TransactionData,
    TransactionState,
)
from groupcoord.core.effects import Call
from groupcoord.core.events import Event
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.batches.key_value_reader import read_key_values
from groupcoord.protocol.batches.record_batch import BatchHeader, iter_batches, read_header
from groupcoord.protocol.coordinator_records import transaction_log
from groupcoord.simulation.consumer_application import GROUP
from groupcoord.simulation.invariants.base import Invariant
from groupcoord.simulation.plan import OFFSETS_TOPIC, OUTPUT_TOPIC, TRANSACTION_STATE, SimulationPlan
from groupcoord.simulation.transactional_application import end_of_input, input_key

_OFFSETS: TopicPartition = (OFFSETS_TOPIC, 0)
_ALL_BYTES = 1 << 30
_COMPLETE = {
    TransactionState.PREPARE_COMMIT.value: TransactionState.COMPLETE_COMMIT.value,
    TransactionState.PREPARE_ABORT.value: TransactionState.COMPLETE_ABORT.value,
}
_ONGOING, _EMPTY = TransactionState.ONGOING.value, TransactionState.EMPTY.value
_COMMITS = TransactionState.PREPARE_COMMIT.value


class TransactionInvariant(Invariant):
    """An invariant of runs with transactions."""

    @classmethod
    def applies(cls, plan: SimulationPlan) -> bool:
        return plan.is_transactional

    def outputs(self) -> Iterator[tuple[int, PartitionLog]]:
        """The partitions of ``OUTPUT_TOPIC``."""
        for number in range(self.context.plan.topics[OUTPUT_TOPIC]):
            yield number, self.log(OUTPUT_TOPIC, number)

    def log(self, topic: str, partition: int) -> PartitionLog:
        """The log of a partition."""
        found = self.context.brokers.cluster.broker.log(topic, partition)
        assert found is not None
        return found


def _batches(log: PartitionLog) -> Iterator[tuple[BatchHeader, bytes]]:
    return iter_batches(log.read(0, _ALL_BYTES, at_least_one=True).data())


class TransactionReplay(TransactionInvariant):
    """The records of `__transaction_state` match the coordinator's state of each transactional id, whenever the coordinator
    is about to unload, and at the end. In addition the coordinator knows which partitions of a prepared transaction have
    their marker."""

    name = "transaction-replay"

    def transactions_unloading(self) -> None:
        stored = self._stored()
        for transactional_id, metadata in self.context.brokers.transaction_shard.machine.transactions.items():
            known = replace(metadata.data, last_producer_epoch=NO_EPOCH)
            found = stored.pop(transactional_id, None)
            if known.producer_epoch == NO_EPOCH and found is None:
                continue  # its first state record is not stored yet
            if found is not None and known.state in PREPARED and set(known.partitions) <= set(found.partitions):
                known = replace(known, partitions=found.partitions)
            if found != known:
                raise self.violation(f"{transactional_id} is {known}, and the log says {found}")
        for transactional_id in stored:
            raise self.violation(f"{transactional_id} is only in the log")

    finish = transactions_unloading

    def _stored(self) -> dict[str, TransactionData]:
        stored: dict[str, TransactionData] = {}
        for _, batch in _batches(self.log(TRANSACTION_STATE, 0)):
            for _, key, value in read_key_values(batch).records:
                transactional_id = transaction_log.read_key(key or b"")
                read = transaction_log.read_value(value or b"")
                assert transactional_id is not None
                assert read is not None
                stored[transactional_id] = TransactionData.from_value(read)
        return stored


class OneTransaction(TransactionInvariant):
    """A transactional id has one transaction at a time, and at most one per producer epoch. Epochs never decrease, and
    InitProducerId returns a larger one. A transaction completes as it was prepared. The state that a coordinator loads from
    its log may be one step ahead of what was acknowledged."""

    name = "one-transaction"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._last: dict[str, TransactionChanged] = {}
        self._read: set[str] = set()
        self._begun: set[tuple[int, int]] = set()

    def event_emitted(self, event: Event) -> None:
        if isinstance(event, TransactionsLoaded):
            self._read = set(self.context.brokers.transaction_shard.machine.transactions)
        if not isinstance(event, TransactionChanged):
            return
        may_be_further = event.transactional_id in self._read
        self._read.discard(event.transactional_id)
        last = self._last.get(event.transactional_id)
        self._last[event.transactional_id] = event
        producer = event.producer_id, event.producer_epoch
        before = (-1, -1) if last is None else (last.producer_id, last.producer_epoch)
        if event.before != (_EMPTY if last is None else last.after) and not may_be_further:
            raise self.violation(f"{event.text()}: but it was {last.after if last else 'not there'}")
        if producer < before or (event.after == _EMPTY and producer == before):
            raise self.violation(f"{event.text()}: it was producer {before[0]}, epoch {before[1]} before")
        if event.after == _ONGOING and event.before != _ONGOING:
            if producer in self._begun:
                raise self.violation(f"{event.text()}: that epoch has had a transaction")
            self._begun.add(producer)
        if _COMPLETE.get(event.before, event.after) != event.after:
            raise self.violation(f"{event.text()}: it was prepared to become {_COMPLETE[event.before]}")


class MarkedPartitions(TransactionInvariant):
    """Tracks accepted writes of transactions, and markers. ``ended``: (epoch, log end offset) of the last marker."""

    apis = frozenset({ApiKey.PRODUCE, ApiKey.TXN_OFFSET_COMMIT})

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._requests: dict[tuple[int, int], Any] = {}
        self._producers: dict[str, tuple[int, int]] = {}
        self.ended: dict[tuple[TopicPartition, int], tuple[int, int]] = {}

    def request_received(self, call: Call, request: Any) -> None:
        """Remember the request."""
        self._requests[call.connection_id, call.correlation_id] = request

    def response_sent(self, call: Call, response: Any) -> None:
        """Call ``accepted`` for a write that was accepted."""
        request = self._requests.pop((call.connection_id, call.correlation_id))
        if call.api.key == ApiKey.TXN_OFFSET_COMMIT:
            if not any(each.error_code for topic in response.topics for each in topic.partitions):
                self.accepted(_OFFSETS, request.producer_id, request.producer_epoch, None)
            return
        (topic,) = response.responses
        (each,) = topic.partition_responses
        if not each.error_code and topic.name == OUTPUT_TOPIC:
            (sent,) = request.topic_data[0].partition_data
            header = read_header(sent.records)
            self.accepted((OUTPUT_TOPIC, each.index), header.producer_id, header.producer_epoch, each.base_offset)

    def event_emitted(self, event: Event) -> None:
        """Track producers and markers."""
        if isinstance(event, TransactionsLoaded):
            for transactional_id, metadata in self.context.brokers.transaction_shard.machine.transactions.items():
                self._producers[transactional_id] = metadata.data.producer_id, metadata.data.producer_epoch
        elif isinstance(event, TransactionChanged):
            self._producers[event.transactional_id] = event.producer_id, event.producer_epoch
        elif isinstance(event, MarkerWritten):
            producer_id, epoch = self._producers[event.transactional_id]
            partition = event.topic, event.partition
            self.ended[partition, producer_id] = epoch, self.log(*partition).log_end_offset

    def accepted(self, partition: TopicPartition, producer_id: int, epoch: int, offset: int | None) -> None:
        """Records at ``offset``, or pending offset commits (None), were accepted."""


class FencedWrites(MarkedPartitions):
    """Once a partition has the marker of a transaction, nothing is accepted from its producer with an older epoch: no
    records, except duplicates of stored ones, and no offsets."""

    name = "fenced-writes"

    def accepted(self, partition: TopicPartition, producer_id: int, epoch: int, offset: int | None) -> None:
        ended_epoch, end_offset = self.ended.get((partition, producer_id), (-1, 0))
        if epoch < ended_epoch and (offset is None or offset >= end_offset):
            name, older = f"{partition[0]}-{partition[1]}", f"producer {producer_id} with epoch {epoch}"
            raise self.violation(f"{name} took something of {older}, and has a marker with epoch {ended_epoch}")


class StableOffset(MarkedPartitions):
    """The last stable offset of an output partition never decreases, unless the leader changes, and never passes the first
    acknowledged record of a transaction that has no marker yet."""

    name = "stable-offset"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._stable: dict[int, int] = {}
        self._first: dict[tuple[int, int], int] = {}  # partition and producer id → first offset of the open transaction

    def accepted(self, partition: TopicPartition, producer_id: int, epoch: int, offset: int | None) -> None:
        """Note the first offset of the open transaction."""
        del epoch
        if offset is not None and offset >= self.ended.get((partition, producer_id), (-1, 0))[1]:
            self._first.setdefault((partition[1], producer_id), offset)

    def event_emitted(self, event: Event) -> None:
        """Note the end of a transaction by its marker, or a new leader."""
        super().event_emitted(event)
        if isinstance(event, MarkerWritten) and event.topic == OUTPUT_TOPIC:
            self._first.pop((event.partition, self._producers[event.transactional_id][0]), None)
        elif isinstance(event, LeaderChanged) and event.topic == OUTPUT_TOPIC:
            self._stable.pop(event.partition, None)  # a new leader learns the positions of its followers first

    def step_done(self) -> None:
        broker = self.context.brokers.cluster.broker
        for number, log in self.outputs():
            if not broker.is_led(broker.topics[OUTPUT_TOPIC], number):
                continue
            stable = log.last_stable_offset
            if stable < self._stable.get(number, 0):
                raise self.violation(f"that of {log.name} goes back from {self._stable[number]} to {stable}")
            self._stable[number] = stable
            for (partition, producer_id), first in list(self._first.items()):
                if partition != number or first >= stable:
                    continue
                if not _has_marker(log, producer_id, first):
                    of = f"producer {producer_id} has a transaction open from {first} on"
                    raise self.violation(f"that of {log.name} is {stable}, and {of}")
                del self._first[
                    partition, producer_id
                ]  # the marker is stored, but the coordinator timed out waiting for the response


def _has_marker(log: PartitionLog, producer_id: int, first: int) -> bool:
    """Is there a marker of that producer after the offset ``first``?"""
    return any(
        header.control and header.producer_id == producer_id and header.base_offset > first
        for header, _ in _batches(log)
    )


class TransactionsEnd(TransactionInvariant):
    """At the end, two minutes after the last one could begin, no transaction is ongoing or prepared, neither at its
    coordinator nor in a partition, and no offset commit of the group is pending."""

    name = "transactions-end"

    def finish(self) -> None:
        brokers = self.context.brokers
        for transactional_id, metadata in brokers.transaction_shard.machine.transactions.items():
            if metadata.pending is not None or metadata.data.state not in WITHOUT_TRANSACTION:
                raise self.violation(f"{transactional_id} is {metadata!r}")
        logs = [log for _, log in self.outputs()]
        for log in (*logs, self.log(*_OFFSETS)):
            if log.producers.first_unstable_offset is not None:
                raise self.violation(f"a transaction is open in {log.name}")
        for topic, number in brokers.shard.machine.pending_offsets.of_group(GROUP):
            raise self.violation(f"an offset of {topic}-{number} is pending")


class OnlyCommitted(TransactionInvariant):
    """At the end a read_committed consumer gets only records of transactions that were committed."""

    name = "only-committed"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._committed: set[tuple[int, int]] = set()

    def event_emitted(self, event: Event) -> None:
        """Note the committed producer epochs; each transaction has its own (KIP-890)."""
        if isinstance(event, TransactionChanged) and _COMMITS in (event.before, event.after):
            self._committed.add((event.producer_id, event.producer_epoch - 1))

    def finish(self) -> None:
        for number, log in self.outputs():
            visible = {record.offset for record in self.context.brokers.read_committed(OUTPUT_TOPIC, number)}
            for header, _ in _batches(log):
                producer = header.producer_id, header.producer_epoch
                offsets = range(header.base_offset, header.last_offset + 1)
                if producer not in self._committed and not visible.isdisjoint(offsets):
                    of = f"producer {producer[0]}, epoch {producer[1]}"
                    raise self.violation(
                        f"{log.name} shows what {of} wrote at {header.base_offset}, and did not commit"
                    )


class ExactlyOnce(TransactionInvariant):
    """At the end a read_committed consumer finds in the output exactly one record for each input record before the committed
    offset of its partition, and none for others; and all input up to the end of the faults is consumed."""

    name = "exactly-once"

    def finish(self) -> None:
        brokers, plan = self.context.brokers, self.context.plan
        written = Counter(
            record.key for number, _ in self.outputs() for record in brokers.read_committed(OUTPUT_TOPIC, number)
        )
        subscribed = {topic for process in self.context.processes() for topic in process.topics}
        for topic, count in plan.topics.items():
            for number in range(count) if topic != OUTPUT_TOPIC else ():
                self._check((topic, number), written, plan.heal_ms if topic in subscribed else 0)
        for key in written:
            raise self.violation(f"{key!r} is in the output, and its offset is not committed")

    def _check(self, partition: TopicPartition, written: Counter[bytes | None], until_ms: int) -> None:
        found = self.context.brokers.shard.committed.offset(GROUP, *partition)
        committed = 0 if found is None else found.offset
        for offset in range(committed):
            times = written.pop(input_key(partition, offset), 0)
            if times != 1:
                name = f"{partition[0]}-{partition[1]}"
                raise self.violation(
                    f"offset {offset} of {name} is {times} times in the output; {committed} is committed"
                )
        if committed < end_of_input(partition, until_ms):
            raise self.violation(f"{partition[0]}-{partition[1]} is consumed up to {committed} only")


TRANSACTION_INVARIANTS = (
    TransactionReplay,
    OneTransaction,
    FencedWrites,
    StableOffset,
    TransactionsEnd,
    OnlyCommitted,
    ExactlyOnce,
)
