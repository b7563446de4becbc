"""Invariants of producers: acknowledged records are stored, once and in order, and every record completes."""

from typing import Any

from groupcoord.assignors import TopicPartition
from groupcoord.protocol.batches.record_batch import records_in
from groupcoord.simulation.invariants.base import Invariant
from groupcoord.simulation.plan import OUTPUT_TOPIC, SimulationPlan

_ALL_BYTES = 1 << 30


class ProducerInvariant(Invariant):
    """An invariant of runs with producers. ``acknowledged``: the acknowledged partition and offset of each record."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.acknowledged: dict[bytes, tuple[TopicPartition, int]] = {}

    @classmethod
    def applies(cls, plan: SimulationPlan) -> bool:
        return plan.is_producing

    def record_ended(self, record: bytes, stored: tuple[TopicPartition, int] | None) -> None:
        """Remember where the record was acknowledged, if it was."""
        if stored is not None:
            self.acknowledged[record] = stored

    def stored(self) -> dict[int, list[bytes]]:
        """The records in each partition of ``OUTPUT_TOPIC``, in order."""
        found: dict[int, list[bytes]] = {}
        for number in range(self.context.plan.topics[OUTPUT_TOPIC]):
            log = self.context.brokers.cluster.broker.log(OUTPUT_TOPIC, number)
            assert log is not None
            data = log.read(0, _ALL_BYTES, at_least_one=True).data()
            found[number] = [record.value or b"" for record in records_in(data)]
        return found


class RecordsInOrder(ProducerInvariant):
    """At the end the records of a producer are in each partition in the order in which they were sent."""

    name = "records-in-order"

    def finish(self) -> None:
        for partition, records in self.stored().items():
            last: dict[bytes, tuple[int, bytes]] = {}
            for record in dict.fromkeys(records):
                producer, _, number = record.rpartition(b":")
                before, whose = last.get(producer, (-1, b""))
                if int(number) < before:
                    raise self.violation(f"{record!r} is behind {whose!r} in {OUTPUT_TOPIC}-{partition}")
                last[producer] = int(number), record


class StoredOnce(ProducerInvariant):
    """At the end every record is stored at most once, however often it was sent."""

    name = "stored-once"

    def finish(self) -> None:
        seen: set[bytes] = set()
        for partition, records in self.stored().items():
            for record in records:
                if record in seen:
                    raise self.violation(f"{record!r} is stored again in {OUTPUT_TOPIC}-{partition}")
                seen.add(record)


class AcknowledgedIsStored(ProducerInvariant):
    """At the end every acknowledged record is stored at the acknowledged partition and offset."""

    name = "acknowledged-is-stored"

    def finish(self) -> None:
        stored = self.stored()
        for record, ((_, partition), offset) in self.acknowledged.items():
            found = stored[partition][offset] if 0 <= offset < len(stored[partition]) else b"nothing"
            if found != record:
                raise self.violation(f"{record!r} was acknowledged at {offset} of {partition}, where {found!r} is")


class RecordsEnd(ProducerInvariant):
    """At the end every record of a process that is running has been acknowledged or given up."""

    name = "records-end"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._open: dict[bytes, TopicPartition] = {}

    def record_sent(self, record: bytes, partition: TopicPartition) -> None:
        """The record is pending from now on."""
        self._open[record] = partition

    def record_ended(self, record: bytes, stored: tuple[TopicPartition, int] | None) -> None:
        """The record is no longer pending."""
        del stored
        del self._open[record]

    def finish(self) -> None:
        running = {process.producer_name.encode() for process in self.context.processes()}
        for record, partition in self._open.items():
            if record.rpartition(b":")[0] in running:
                raise self.violation(f"nobody was told what became of {record!r} for {partition[0]}-{partition[1]}")


PRODUCER_INVARIANTS = (RecordsInOrder, StoredOnce, AcknowledgedIsStored, RecordsEnd)
