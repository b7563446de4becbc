"""The decoded records of a batch of ``__consumer_offsets``, and the ends of transactions."""

import struct
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from groupcoord.offsets_log.source import Batch, UnreadableData
from groupcoord.protocol.batches.record_batch import BatchError, records_of
from groupcoord.protocol.batches.records import InvalidRecordsError, Record
from groupcoord.protocol.coordinator_records.generic import (
    RecordError,
    RecordKey,
    RecordValue,
    group_of,
    parse_key,
    parse_value,
)
from groupcoord.protocol.coordinator_records.schemas import RECORD_TYPES

MARKER = "TransactionMarker"
"""The name of the end of a transaction as a kind of record."""
KIND_NAMES = (*(kind.name for kind in RECORD_TYPES.values()), MARKER)

_MARKER_KEY = struct.Struct(">hh")  # version, type
_MARKER_VALUE = struct.Struct(">hi")  # version, epoch of the transaction coordinator
_MARKERS = {0: "abort", 1: "commit"}


UNREADABLE = (RecordError, struct.error)
"""What ``entry_of`` raises of a record that cannot be read."""


class ProducerIdAndEpoch(NamedTuple):
    """The producer of a transaction."""

    producer_id: int
    producer_epoch: int


class CoordinatorRecord(NamedTuple):
    """A record of the coordinator; the value is None in a tombstone."""

    key: RecordKey
    value: RecordValue | None


class TransactionMarker(NamedTuple):
    """The end of a transaction: ``how`` is commit or abort."""

    how: str
    coordinator_epoch: int


class LogEntry(NamedTuple):
    """One record. ``transaction`` is None outside of any."""

    partition: int
    offset: int
    timestamp_ms: int
    what: CoordinatorRecord | TransactionMarker
    transaction: ProducerIdAndEpoch | None

    @property
    def kind(self) -> str:
        """One of KIND_NAMES."""
        return self.what.key.record_type.name if isinstance(self.what, CoordinatorRecord) else MARKER

    @property
    def group(self) -> str | None:
        """The group that it is about."""
        return group_of(self.what.key) if isinstance(self.what, CoordinatorRecord) else None

    @property
    def topic(self) -> str | None:
        """The topic that it is about, if it is about one."""
        return self.what.key.fields.get("topic") if isinstance(self.what, CoordinatorRecord) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryFilter:
    """Which entries are wanted; what is empty lets everything pass. The end of a transaction is about no group and no topic."""

    groups: Collection[str] = ()
    topics: Collection[str] = ()
    kinds: Collection[str] = ()

    @property
    def is_empty(self) -> bool:
        """Does it let everything pass?"""
        return not (self.groups or self.topics or self.kinds)

    def passes(self, entry: LogEntry) -> bool:
        """Is ``entry`` wanted?"""
        return (
            (not self.groups or entry.group in self.groups)
            and (not self.topics or entry.topic in self.topics)
            and (not self.kinds or entry.kind in self.kinds)
        )


def entries(batch: Batch) -> Iterator[LogEntry | UnreadableData]:
    """The records of ``batch``; one that cannot be read is UnreadableData."""
    records = records_in(batch)
    if isinstance(records, UnreadableData):
        yield records
        return
    for record in records:
        try:
            yield entry_of(batch, record)
        except UNREADABLE as problem:
            yield UnreadableData(batch.partition, record.offset, f"the record cannot be read: {problem}")


def records_in(batch: Batch) -> list[Record] | UnreadableData:
    """The records of ``batch``; UnreadableData if they cannot be decompressed or parsed."""
    try:
        return list(records_of(batch.data, batch.header))
    except (BatchError, InvalidRecordsError) as problem:
        return UnreadableData(
            batch.partition, batch.header.base_offset, f"the records of the batch cannot be read: {problem}"
        )


def entry_of(batch: Batch, record: Record) -> LogEntry:
    """The entry of ``record`` of ``batch``. Raises one of UNREADABLE."""
    what = _marker(record) if batch.header.control else _said(record)
    return LogEntry(batch.partition, record.offset, record.timestamp_ms, what, transaction_of(batch))


def transaction_of(batch: Batch) -> ProducerIdAndEpoch | None:
    """The one that ``batch`` is part of, or ends."""
    header = batch.header
    if header.control or header.transactional:
        return ProducerIdAndEpoch(header.producer_id, header.producer_epoch)
    return None


def _said(record: Record) -> CoordinatorRecord:
    key = parse_key(record.key)
    return CoordinatorRecord(key, parse_value(key.record_type, record.value))


def _marker(record: Record) -> TransactionMarker:
    _, number = _MARKER_KEY.unpack_from(record.key or b"")
    _, coordinator_epoch = _MARKER_VALUE.unpack_from(record.value or b"")
    return TransactionMarker(_MARKERS.get(number, f"control record of type {number}"), coordinator_epoch)
