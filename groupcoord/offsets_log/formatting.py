"""Entries of ``__consumer_offsets`` as text and as JSON.

The JSON has keys and values as Kafka's own tools print them (see coordinator_records/generic.py). Subscriptions and
assignments, which are bytes to the coordinator, are decoded where that is possible. Raw JSON, which ``groupcoord pipeline``
reads, has an object per record with ``partition``, ``offset``, ``timestamp`` (ms), ``key`` and ``value`` in Base64 or null.
"""

import base64
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from groupcoord.offsets_log.entries import (
    UNREADABLE,
    CoordinatorRecord,
    EntryFilter,
    LogEntry,
    ProducerIdAndEpoch,
    TransactionMarker,
    entry_of,
    records_in,
    transaction_of,
)
from groupcoord.offsets_log.source import Batch, UnreadableData
from groupcoord.protocol.batches.records import Record
from groupcoord.protocol.consumer_protocol import (
    PROTOCOL_TYPE,
    Assignment,
    Subscription,
    TopicPartition,
    read_assignment,
    read_subscription,
)
from groupcoord.protocol.coordinator_records.generic import key_json, key_text, value_json, value_text
from groupcoord.protocol.errors import WireError


def time_text(timestamp_ms: int) -> str:
    """``2026-11-21T18:00:00.000Z``, or the number if no calendar has it."""
    try:
        moment = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(timestamp_ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def entry_text(entry: LogEntry) -> str:
    """One line for people."""
    head = f"{entry.partition:>3} {entry.offset:>8}  {time_text(entry.timestamp_ms)}"
    if isinstance(entry.what, TransactionMarker):
        return f"{head}  {entry.what.how} of the transaction of {_whose(entry.transaction)}"
    told = f"{head}  {key_text(entry.what.key)} = {value_text(entry.what.value)}"
    return told if entry.transaction is None else f"{told} [transaction of {_whose(entry.transaction)}]"


def _whose(transaction: ProducerIdAndEpoch | None) -> str:
    return "" if transaction is None else f"producer {transaction.producer_id}, epoch {transaction.producer_epoch}"


def entry_json(entry: LogEntry) -> dict[str, Any]:
    """One object for programs."""
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
            "key": key_json(entry.what.key),
            "value": _with_blobs(value_json(entry.what.value)),
        }
    else:
        told |= {"marker": entry.what.how, "coordinatorEpoch": entry.what.coordinator_epoch}
    return told | transaction_json(entry.transaction)


def transaction_json(transaction: ProducerIdAndEpoch | None) -> dict[str, Any]:
    """The field that says of which transaction something is; none if it is of none."""
    if transaction is None:
        return {}
    return {"transaction": {"producerId": transaction.producer_id, "producerEpoch": transaction.producer_epoch}}


def unreadable_json(fault: UnreadableData) -> dict[str, Any]:
    """What cannot be read."""
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


def _subscription(said: Subscription) -> dict[str, Any]:
    return {
        "version": said.version,
        "topics": list(said.topics),
        "userData": _bytes(said.user_data),
        "ownedPartitions": _partitions(said.owned_partitions),
        "generationId": said.generation_id,
        "rackId": said.rack_id,
    }


def _assignment(said: Assignment) -> dict[str, Any]:
    return {
        "version": said.version,
        "assignedPartitions": _partitions(said.assigned_partitions),
        "userData": _bytes(said.user_data),
    }


def _partitions(topics: tuple[TopicPartition, ...]) -> list[dict[str, Any]]:
    return [{"topic": each.topic, "partitions": list(each.partitions)} for each in topics]


def _bytes(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def raw_records(batch: Batch, wanted: EntryFilter) -> Iterator[dict[str, Any] | UnreadableData]:
    """The records of ``batch`` that are wanted, and the ends of transactions. A batch that cannot be read is UnreadableData.

    A record that cannot be read is there if all are wanted.
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
            yield {**place, "key": _text(record.key), "value": _text(record.value), **transaction}


def _entry(batch: Batch, record: Record) -> LogEntry | None:
    try:
        return entry_of(batch, record)
    except UNREADABLE:
        return None


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()
