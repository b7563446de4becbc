"""Adds to a detailed trace what ``groupcoord page`` shows besides requests and events: brokers, topics, and records appended
to logs. A trace that is not detailed does not pay for it.
"""

from collections.abc import Iterable, Iterator

from groupcoord.broker.partition_log import PartitionLog
from groupcoord.broker.topic_names import INTERNAL
from groupcoord.cluster.cluster_core import ClusterCore
from groupcoord.core.effects import Append, Call, Effect, EmitEvent
from groupcoord.core.events import BrokerTask, Cause, Event
from groupcoord.offsets_log.entries import CoordinatorRecord, LogEntry, entries
from groupcoord.offsets_log.log_source import Batch
from groupcoord.protocol.batches.record_batch import iter_batches
from groupcoord.protocol.coordinator_records import record_formatting
from groupcoord.testing.trace.events import AppendedRecord, ClusterDescribed, RecordsAppended

RECORDS_TOLD = 100
"""The keys and values of at most so many records of an append are in the trace."""
SETTINGS = ("group_consumer_session_timeout_ms", "group_consumer_heartbeat_interval_ms")
"""The configs in the trace: those that determine deadlines and are in no request."""

_PIECE_BYTES = 1_048_576


class TopicAndAppendRecorder:
    """Compares the state of ``core`` with what the trace has, and yields events for the changes."""

    def __init__(self, core: ClusterCore) -> None:
        self._broker = core.broker
        self._described: tuple[object, ...] | None = None
        self._ends: dict[PartitionLog, int] = {}
        """Log → the offset up to which the trace has it."""
        self._grown: dict[PartitionLog, None] = {}
        core.broker.on_append = self._grown.setdefault

    def news(self, effects: Iterable[Effect], now_ms: int) -> Iterator[Event]:
        """Events for everything that has changed, with the cause of ``effects``."""
        described = self._broker.topics.changes.value, self._broker.config.advertised
        if described == self._described and not self._grown:
            return
        cause = _cause_of(effects)
        if described != self._described:
            self._ends = {log: self._end_told(log) for topic in self._broker.topics for log in topic.partitions}
            self._described = described
            yield self._description(now_ms, cause or BrokerTask("the cluster is as follows"))
        grown = tuple(self._grown)
        self._grown.clear()
        for log in grown:
            if log in self._ends:  # otherwise its topic was deleted
                yield self._appended(log, now_ms, cause or BrokerTask(f"an append to {log.name}"))

    def _end_told(self, log: PartitionLog) -> int:
        """The offset up to which the trace has ``log``: the first description covers existing records; new logs start at 0."""
        return log.log_end_offset if self._described is None else self._ends.get(log, 0)

    def _description(self, now_ms: int, cause: Cause) -> ClusterDescribed:
        config = self._broker.config
        return ClusterDescribed(
            at_ms=now_ms,
            cause=cause,
            brokers=tuple((one.id, one.host, one.port, one.rack) for one in self._broker.cluster.brokers(config)),
            topics={
                topic.name: tuple(
                    (leader, self._ends[log])
                    for leader, log in zip(topic.metadata.leaders, topic.partitions, strict=True)
                )
                for topic in self._broker.topics
            },
            settings={name: getattr(config, name) for name in SETTINGS},
        )

    def _appended(self, log: PartitionLog, now_ms: int, cause: Cause) -> RecordsAppended:
        topic, _, partition = log.name.rpartition("-")
        base_offset, self._ends[log] = self._ends[log], log.log_end_offset
        return RecordsAppended(
            at_ms=now_ms,
            cause=cause,
            topic=topic,
            partition=int(partition),
            base_offset=base_offset,
            end_offset=log.log_end_offset,
            records=tuple(_records(topic, int(partition), log, base_offset)) if topic in INTERNAL else (),
        )


def _cause_of(effects: Iterable[Effect]) -> Cause | None:
    """The cause of the first of ``effects`` that has one."""
    for effect in effects:
        if isinstance(effect, EmitEvent):
            return effect.event.cause
        if not isinstance(effect, Append):
            origin = effect.call if effect.origin is None else effect.origin
            return origin.as_cause() if isinstance(origin, Call) else origin
    return None


def _records(topic: str, partition: int, log: PartitionLog, offset: int) -> Iterator[AppendedRecord]:
    """The first RECORDS_TOLD records from ``offset`` on."""
    read = log.read(offset, _PIECE_BYTES, at_least_one=True).data()
    left = RECORDS_TOLD
    for header, data in iter_batches(read):
        for entry in entries(Batch(partition, 0, header, data, topic)):
            if isinstance(entry, LogEntry) and left:
                left -= 1
                yield _said(entry)


def _said(entry: LogEntry) -> AppendedRecord:
    if not isinstance(entry.what, CoordinatorRecord):
        return entry.offset, f"the end of a transaction: {entry.what.how}", ""
    key, value = entry.what
    return entry.offset, record_formatting.key_text(key), None if value is None else record_formatting.value_text(value)
