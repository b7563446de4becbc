"""LogEntry: a decoded record of ``__consumer_offsets`` or ``__transaction_state``, or a marker, as object, text and JSON.

The JSON has keys and values as Kafka's own tools print them (see coordinator_records/record_formatting.py). Subscriptions and
assignments, whose bytes are opaque to the coordinator, are decoded if possible. Raw JSON, which ``groupcoord pipeline`` reads,
has an object per record with ``partition``, ``offset``, ``timestamp`` (ms), ``key`` and ``value`` in Base64 or null.
"""

import base64
import struct
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from groupcoord.broker.topic_names import TRANSACTION_STATE
from groupcoord.offsets_log.log_source import Batch, UnreadableData
from groupcoord.protocol.batches.record_batch import ABORT_MARKER, COMMIT_MARKER, BatchError, marker_type, records_of
from groupcoord.protocol.batches.records import InvalidRecordsError, Record
from groupcoord.protocol.consumer_protocol import (
    PROTOCOL_TYPE,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    read_assignment,
    read_subscription,
)
from groupcoord.protocol.coordinator_records import record_formatting
from groupcoord.protocol.coordinator_records.schemas import RECORD_TYPES
from groupcoord.protocol.coordinator_records.transaction_log import TRANSACTION_STATE_TYPES
from groupcoord.protocol.errors import WireError

MARKER = "TransactionMarker"
"""The name of transaction markers as a kind of entry."""
KIND_NAMES = (*(kind.name for kind in RECORD_TYPES.values()), MARKER)

_MARKER_VALUE = struct.Struct(">hi")  # version, epoch of the transaction coordinator
_MARKERS = {ABORT_MARKER: "abort", COMMIT_MARKER: "commit"}


UNREADABLE = (record_formatting.RecordError, InvalidRecordsError, struct.error)
"""The exceptions of ``entry_of`` for an unreadable record."""


class ProducerIdAndEpoch(NamedTuple):
    """The producer id and epoch of a transaction."""

    producer_id: int
    producer_epoch: int


class CoordinatorRecord(NamedTuple):
    """A decoded record of a coordinator; the value of a tombstone is None."""

    key: record_formatting.RecordKey
    value: record_formatting.RecordValue | None


class TransactionMarker(NamedTuple):
    """A transaction marker; ``how`` is commit or abort."""

    how: str
    coordinator_epoch: int


class LogEntry(NamedTuple):
    """One record or marker. ``transaction`` is None if it is not in a transaction."""

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
        """The group id in its key, if any."""
        return record_formatting.group_of(self.what.key) if isinstance(self.what, CoordinatorRecord) else None

    @property
    def topic(self) -> str | None:
        """The topic in its key, if any."""
        return self.what.key.fields.get("topic") if isinstance(self.what, CoordinatorRecord) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryFilter:
    """Selects entries; an empty field selects all. Transaction markers have no group and no topic."""

    groups: Collection[str] = ()
    topics: Collection[str] = ()
    kinds: Collection[str] = ()

    @property
    def is_empty(self) -> bool:
        """Does it select all entries?"""
        return not (self.groups or self.topics or self.kinds)

    def passes(self, entry: LogEntry) -> bool:
        """Is ``entry`` selected?"""
        return (
            (not self.groups or entry.group in self.groups)
            and (not self.topics or entry.topic in self.topics)
            and (not self.kinds or entry.kind in self.kinds)
        )


def entries(batch: Batch) -> Iterator[LogEntry | UnreadableData]:
    """The entries of ``batch``, with UnreadableData in place of unreadable records."""
    records = records_in(batch)
    if isinstance(records, UnreadableData):
        yield records
        return
    for record in records:
        try:
            yield entry_of(batch, record)
        except UNREADABLE as problem:
            reason = f"the record cannot be read: {problem}"
            yield UnreadableData(batch.partition, record.offset, reason, topic=batch.topic)


def records_in(batch: Batch) -> list[Record] | UnreadableData:
    """The records of ``batch``; UnreadableData if they cannot be decompressed or parsed."""
    try:
        return list(records_of(batch.data, batch.header))
    except (BatchError, InvalidRecordsError) as problem:
        reason = f"the records of the batch cannot be read: {problem}"
        return UnreadableData(batch.partition, batch.header.base_offset, reason, topic=batch.topic)


def entry_of(batch: Batch, record: Record) -> LogEntry:
    """The entry of ``record`` of ``batch``. Raises one of UNREADABLE."""
    what = _marker(record) if batch.header.control else _said(record, batch.topic)
    return LogEntry(batch.partition, record.offset, record.timestamp_ms, what, transaction_of(batch))


def transaction_of(batch: Batch) -> ProducerIdAndEpoch | None:
    """The transaction that ``batch`` belongs to or ends, or None."""
    header = batch.header
    if header.control or header.transactional:
        return ProducerIdAndEpoch(header.producer_id, header.producer_epoch)
    return None


def _said(record: Record, topic: str) -> CoordinatorRecord:
    types = TRANSACTION_STATE_TYPES if topic == TRANSACTION_STATE else RECORD_TYPES
    key = record_formatting.parse_key(record.key, types)
    return CoordinatorRecord(key, record_formatting.parse_value(key.record_type, record.value))


def _marker(record: Record) -> TransactionMarker:
    number = marker_type(record.key)
    if number < 0:
        raise InvalidRecordsError("a control record that says no type")
    _, coordinator_epoch = _MARKER_VALUE.unpack_from(record.value or b"")
    return TransactionMarker(_MARKERS.get(number, f"control record of type {number}"), coordinator_epoch)


def time_text(timestamp_ms: int) -> str:
    """``2026-11-21T18:00:00.000Z``, or the number if it is out of the range of dates."""
    try:
        moment = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(timestamp_ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def entry_text(entry: LogEntry) -> str:
    """The entry as one line of text."""
    head = f"{entry.partition:>3} {entry.offset:>8}  {time_text(entry.timestamp_ms)}"
    if isinstance(entry.what, TransactionMarker):
        return f"{head}  {entry.what.how} of the transaction of {_whose(entry.transaction)}"
    told = f"{head}  {record_formatting.key_text(entry.what.key)} = {record_formatting.value_text(entry.what.value)}"
    return told if entry.transaction is None else f"{told} [transaction of {_whose(entry.transaction)}]"


def _whose(transaction: ProducerIdAndEpoch | None) -> str:
    return "" if transaction is None else f"producer {transaction.producer_id}, epoch {transaction.producer_epoch}"


def entry_json(entry: LogEntry) -> dict[str, Any]:
    """The entry as a JSON object."""
    told: dict[str, Any] = {
        "partition": entry.partition,
        "offset": entry.offset,
        "timestamp": entry.timestamp_ms,
        "time": time_text(entry.timestamp_ms),
        "kind": entry.kind,
    }
    if isinstance(entry.what, CoordinatorRecord):
        told |= {
            "version": None if entry.what.value is None else entry.what.value.version,
            "tombstone": entry.what.value is None,
            "key": record_formatting.key_json(entry.what.key),
            "value": _with_blobs(record_formatting.value_json(entry.what.value)),
        }
    else:
        told |= {"marker": entry.what.how, "coordinatorEpoch": entry.what.coordinator_epoch}
    return told | transaction_json(entry.transaction)


def transaction_json(transaction: ProducerIdAndEpoch | None) -> dict[str, Any]:
    """The JSON field of a transaction; no field for None."""
    if transaction is None:
        return {}
    return {"transaction": {"producerId": transaction.producer_id, "producerEpoch": transaction.producer_epoch}}


def unreadable_json(fault: UnreadableData) -> dict[str, Any]:
    """Unreadable data as a JSON object."""
    told: dict[str, Any] = {"partition": fault.partition, "offset": fault.offset, "error": fault.reason}
    return {**told, "place": fault.place} if fault.place else told


def _with_blobs(value: dict[str, Any] | None) -> dict[str, Any] | None:
    """The value with the subscriptions and assignments of its members decoded."""
    if value is None or value["data"].get("protocolType") != PROTOCOL_TYPE:
        return value
    members = [
        {
            **member,
            "subscription": _blob(member.get("subscription")),
            "assignment": _blob(member.get("assignment"), is_assignment=True),
        }
        for member in value["data"].get("members", ())
    ]
    return {**value, "data": {**value["data"], "members": members}}


def _blob(text: str | None, *, is_assignment: bool = False) -> Any:
    """The decoded bytes of ``text``, which is Base64; ``text`` itself if they cannot be decoded."""
    if not text:
        return text
    data = base64.b64decode(text)
    try:
        return _assignment(read_assignment(data)) if is_assignment else _subscription(read_subscription(data))
    except WireError:
        return text


def _subscription(said: ConsumerProtocolSubscription) -> dict[str, Any]:
    return {
        "version": said.version,
        "topics": list(said.topics),
        "userData": _base64(said.user_data),
        "ownedPartitions": _partitions(said.owned_partitions),
        "generationId": said.generation_id,
        "rackId": said.rack_id,
    }


def _assignment(said: ConsumerProtocolAssignment) -> dict[str, Any]:
    return {
        "version": said.version,
        "assignedPartitions": _partitions(said.assigned_partitions),
        "userData": _base64(said.user_data),
    }


def _partitions(topics: tuple[TopicPartition, ...]) -> list[dict[str, Any]]:
    return [{"topic": each.topic, "partitions": list(each.partitions)} for each in topics]


def _base64(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def raw_records(batch: Batch, wanted: EntryFilter) -> Iterator[dict[str, Any] | UnreadableData]:
    """The selected records of ``batch`` in raw JSON, and transaction markers; UnreadableData for an unreadable batch.

    A record that cannot be decoded is included if ``wanted`` selects all.
    """
    records = records_in(batch)
    if isinstance(records, UnreadableData):
        yield records
        return
    transaction = transaction_json(transaction_of(batch))
    for record in records:
        entry = _entry(batch, record)
        place = {"partition": batch.partition, "offset": record.offset, "timestamp": record.timestamp_ms}
        if entry is not None and isinstance(entry.what, TransactionMarker):
            yield {**place, "marker": entry.what.how, **transaction}
        elif wanted.is_empty or (entry is not None and wanted.passes(entry)):
            yield {**place, "key": _base64(record.key), "value": _base64(record.value), **transaction}


def _entry(batch: Batch, record: Record) -> LogEntry | None:
    try:
        return entry_of(batch, record)
    except UNREADABLE:
        return None
