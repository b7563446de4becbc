"""Decodes one record of ``__consumer_offsets`` at a time: group metadata, the records of KIP-848 and later, and commits that
``columnar_decoder.py`` cannot decode.

Tests also compare ``columnar_decoder.py`` with this decoder.
"""

import json
from functools import lru_cache
from typing import Any, NamedTuple

from groupcoord.pipeline.arrow_columns import EARLIEST_MS, LATEST_MS
from groupcoord.protocol import consumer_protocol
from groupcoord.protocol.batches.record_batch import (
    HEADER_BYTES,
    MAGIC,
    BatchError,
    checksum_matches,
    read_header,
    records_of,
)
from groupcoord.protocol.batches.records import InvalidRecordsError
from groupcoord.protocol.coordinator_records import record_formatting
from groupcoord.protocol.errors import WireError

Row = dict[str, Any]
OFFSET_KINDS = {0, 1}
GROUP_KIND = 2
_SMALLEST_OLD_BATCH = 26


class DecodedRecord(NamedTuple):
    """The ``table`` that a record belongs to, and its row there without the columns that locate the record."""

    table: str
    row: Row


def decode_record(key: bytes | None, value: bytes | None) -> DecodedRecord:
    """Decode a record. One that cannot be decoded becomes a row of ``bad_records``, with the reason."""
    if key is None and value is not None and (reason := _broken_batch(value)):
        return _bad(reason, key, value)
    try:
        parsed = record_formatting.parse_key(key)
        content = record_formatting.parse_value(parsed.record_type, value)
    except record_formatting.RecordError as problem:
        return _bad(str(problem), key, value)
    except (ValueError, OverflowError) as problem:
        return _bad(f"{type(problem).__name__}: {problem}", key, value)
    if parsed.record_type.number in OFFSET_KINDS:
        return DecodedRecord("commits", _commit(parsed, content))
    if parsed.record_type.number == GROUP_KIND:
        return DecodedRecord("generations", _generation(parsed, content))
    return DecodedRecord("modern_records", _modern(parsed, content))


def _bad(reason: str, key: bytes | None, value: bytes | None) -> DecodedRecord:
    return DecodedRecord("bad_records", {"reason": reason, "key": key, "value": value})


def _broken_batch(data: bytes) -> str | None:
    """What is wrong with a record batch that a source could not read, and so passed on as the value of a record without a key.

    None if ``data`` is not a record batch.
    """
    if len(data) < _SMALLEST_OLD_BATCH or int.from_bytes(data[8:12], "big") + 12 != len(data):
        return None
    if data[16] < MAGIC:
        return f"a record batch of message format {data[16]}, which is older than Kafka 0.11"
    if data[16] > MAGIC or len(data) < HEADER_BYTES:
        return "bytes that begin as a record batch and are none"
    header = read_header(data)
    if not checksum_matches(data, header):
        return "a record batch whose checksum does not fit"
    try:
        for _ in records_of(data, header):
            pass
    except (BatchError, InvalidRecordsError) as problem:
        return f"a record batch that cannot be read: {problem}"
    return None


def millis(value: int | None) -> int | None:
    """Convert Kafka's milliseconds to Arrow's microseconds, clamped to the years 1 to 9999; None for -1 and for None."""
    return None if value is None or value == -1 else min(max(value, EARLIEST_MS), LATEST_MS) * 1000


def _commit(key: record_formatting.RecordKey, value: record_formatting.RecordValue | None) -> Row:
    row: Row = {name: key.fields[name] for name in ("group", "topic", "partition")}
    row |= {"value_version": value and value.version, "is_tombstone": value is None}
    if value is None:
        return row
    fields = value.fields
    return row | {
        "committed_offset": fields["offset"],
        "leader_epoch": fields.get("leaderEpoch", -1),
        "metadata": fields["metadata"],
        "commit_ts": millis(fields["commitTimestamp"]),
        "expire_ts": millis(fields.get("expireTimestamp")),
        "topic_id": record_formatting.id_text(fields["topicId"]) if fields.get("topicId") else None,
    }


def _generation(key: record_formatting.RecordKey, value: record_formatting.RecordValue | None) -> Row:
    row: Row = {"group": key.fields["group"], "value_version": value and value.version, "is_tombstone": value is None}
    if value is None:
        return row
    fields = value.fields
    problems: list[str] = []
    of_consumers = fields["protocolType"] == consumer_protocol.PROTOCOL_TYPE
    return row | {
        "protocol_type": fields["protocolType"],
        "generation": fields["generation"],
        "protocol": fields["protocol"],
        "leader": fields["leader"],
        "state_ts": millis(fields.get("currentStateTimestamp")),
        "members": [_member(member, problems, of_consumers=of_consumers) for member in fields["members"]],
        "problem": "; ".join(problems) or None,
    }


def _member(fields: record_formatting.Fields, problems: list[str], *, of_consumers: bool) -> Row:
    row: Row = {
        "member_id": fields["memberId"],
        "instance_id": fields.get("groupInstanceId"),
        "client_id": fields["clientId"],
        "client_host": fields["clientHost"],
        "rebalance_timeout_ms": fields.get("rebalanceTimeout", fields["sessionTimeout"]),
        "session_timeout_ms": fields["sessionTimeout"],
    }
    if not of_consumers:
        return row
    try:
        row |= _subscription(fields["subscription"])
    except WireError as problem:
        problems.append(f"subscription of {fields['memberId']}: {problem}")
    if not fields["assignment"]:
        row["assigned"] = []  # the leader sent no assignment for this member, which Kafka allows
        return row
    try:
        row["assigned"] = _assigned(fields["assignment"])
    except WireError as problem:
        problems.append(f"assignment of {fields['memberId']}: {problem}")
    return row


@lru_cache(maxsize=4096)
def _subscription(data: bytes) -> Row:
    wanted = consumer_protocol.read_subscription(data)
    return {
        "topics": list(wanted.topics),
        "owned": _partitions(wanted.owned_partitions),
        "owned_generation": None if wanted.generation_id == -1 else wanted.generation_id,
        "rack": wanted.rack_id,
    }


@lru_cache(maxsize=16384)
def _assigned(data: bytes) -> list[Row]:
    return _partitions(consumer_protocol.read_assignment(data).assigned_partitions)


def _partitions(assigned: tuple[consumer_protocol.TopicPartition, ...]) -> list[Row]:
    return [{"topic": one.topic, "partitions": list(one.partitions)} for one in assigned]


def _modern(key: record_formatting.RecordKey, value: record_formatting.RecordValue | None) -> Row:
    fields = record_formatting.key_json(key)["data"]
    return {
        "record_type": key.record_type.number,
        "record": key.record_type.name,
        "group": fields.pop("groupId"),
        "member": fields.pop("memberId", None),
        "key": json.dumps(record_formatting.key_json(key)["data"], ensure_ascii=False),
        "value": None
        if value is None
        else json.dumps((record_formatting.value_json(value) or {})["data"], ensure_ascii=False),
        "value_version": value and value.version,
        "is_tombstone": value is None,
    }
