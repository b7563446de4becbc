"""Dissects record batches field by field: headers, records, and the contents of coordinator records and transaction markers.

The records of a compressed batch are not in the frame's bytes: their ``inside`` is the path of the compressed field, and their
positions count in the unpacked bytes.
"""

from collections.abc import Iterator
from typing import NamedTuple

from groupcoord.dissect.dissection import (
    INCOMPLETE,
    UNREADABLE,
    DissectedField,
    Dissection,
    dissection,
    moved,
    with_rest,
)
from groupcoord.dissect.embedded_messages import (
    COORDINATOR_TOPICS,
    FOLLOWS,
    MARKER_KEY,
    MARKER_VALUE,
    Dissect,
    record_key,
    record_value,
    schema_fields,
)
from groupcoord.dissect.meanings import batch_attributes_text, time_text
from groupcoord.protocol.batches.compression import Compression
from groupcoord.protocol.batches.record_batch import (
    ABORT_MARKER,
    COMMIT_MARKER,
    HEADER_BYTES,
    MAGIC,
    BatchError,
    BatchHeader,
    checksum_matches,
    decompressed_records,
    iter_batch_extents,
    marker_type,
    read_header,
)
from groupcoord.protocol.batches.records import InvalidRecordsError, read_varint, read_varlong
from groupcoord.protocol.codec.schema import MessageSchema, SchemaField
from groupcoord.protocol.errors import WireError

_HEADER = MessageSchema(
    dict,
    MAGIC,
    flexible=False,
    fields=(
        SchemaField("base_offset", "int64"),
        SchemaField("batch_length", "int32"),
        SchemaField("partition_leader_epoch", "int32"),
        SchemaField("magic", "int8"),
        SchemaField("crc", "uint32"),
        SchemaField("attributes", "int16"),
        SchemaField("last_offset_delta", "int32"),
        SchemaField("base_timestamp", "int64"),
        SchemaField("max_timestamp", "int64"),
        SchemaField("producer_id", "int64"),
        SchemaField("producer_epoch", "int16"),
        SchemaField("base_sequence", "int32"),
        SchemaField("records_count", "int32"),
    ),
)
_MARKERS = {ABORT_MARKER: "ABORT", COMMIT_MARKER: "COMMIT"}


def dissect_record_batches(data: bytes, topic: str | None = None) -> Dissection:
    """The record batches in ``data``, such as a segment file; ``topic`` tells the type of the records.

    Records of ``__consumer_offsets`` and ``__transaction_state`` are dissected down to the fields of their keys and values.
    """
    return dissection("record batches", data, record_batch_fields(data, topic), (UNREADABLE, INCOMPLETE))


def record_batch_fields(data: bytes, topic: str | None) -> Iterator[DissectedField]:
    """The fields of the batches in ``data``; an incomplete one is one field. Raises WireError for bytes that are not a
    batch."""
    end = index = 0
    try:
        for start, size, magic in iter_batch_extents(data):
            batch = data[start : start + size]
            if magic == MAGIC:
                fields = with_rest(_batch_fields(batch, topic), batch)
            else:
                meaning = f"messages of magic {magic}, older than Kafka 0.11; Kafka 4 reads only magic {MAGIC}"
                fields = iter([DissectedField(0, size, "messages", "bytes", batch, meaning)])
            yield from moved(fields, start, f"batches[{index}]")
            end, index = start + size, index + 1
    except BatchError as problem:
        raise WireError(problem.reason, offset=end, field=f"batches[{index}]") from None
    if end < len(data):
        left = data[end:]
        meaning = f"the batch continues after these {len(left)} bytes"
        yield DissectedField(end, len(data), f"batches[{index}]", INCOMPLETE, left, meaning)


def _batch_fields(batch: bytes, topic: str | None) -> Iterator[DissectedField]:
    header = read_header(batch)
    for field in schema_fields(_HEADER, batch):
        yield field._replace(meaning=_header_meaning(field, batch, header))
    try:
        data, at = decompressed_records(batch, header)
        compression = header.compression
    except BatchError as problem:
        raise WireError(problem.reason, offset=HEADER_BYTES, field="records") from None
    data = bytes(data)
    records = _record_fields(data, at, header, topic)
    if compression == Compression.NONE:
        yield from records
        return
    packed = batch[HEADER_BYTES:]
    meaning = f"{compression.name.lower()}, unpacks to {len(data)} bytes, whose records follow"
    yield DissectedField(HEADER_BYTES, len(batch), "packed", "compressed records", len(packed), meaning)
    for field in with_rest(records, data):
        yield field._replace(inside="packed")


def _header_meaning(field: DissectedField, batch: bytes, header: BatchHeader) -> str:
    match field.path:
        case "crc":
            return (
                "CRC-32C of what follows; it matches" if checksum_matches(batch, header) else "CRC-32C; does not match"
            )
        case "attributes":
            return batch_attributes_text(header.attributes)
        case "last_offset_delta":
            return f"the last offset is {header.last_offset}"
        case "batch_length":
            return "bytes that follow"
        case "base_timestamp" | "max_timestamp":
            return time_text(int(str(field.value)))
        case "base_sequence":
            return "none" if field.value == -1 else ""
    return field.meaning


class _Varints:
    """Reads varints and length-prefixed bytes of records, from ``at`` on, as fields."""

    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at = data, at

    def number(self, path: str, *, long: bool = False) -> tuple[int, DissectedField]:
        """A zigzag varint."""
        start = self.at
        try:
            value, self.at = (read_varlong if long else read_varint)(self.data, start)
        except IndexError:
            raise WireError("the bytes end here", offset=start, field=path) from None
        except InvalidRecordsError as problem:
            raise WireError(str(problem), offset=start, field=path) from None
        return value, DissectedField(start, self.at, path, "varlong" if long else "varint", value)

    def sized(self, path: str) -> tuple[bytes | None, DissectedField]:
        """Bytes after a varint with their number; null if it is negative."""
        start = self.at
        size, field = self.number(path)
        if size < 0:
            return None, field._replace(type="varint-sized bytes", value=None)
        value = self.data[self.at : self.at + size]
        if len(value) < size:
            raise WireError(f"{size} bytes do not fit in the {len(value)} that are left", offset=start, field=path)
        self.at += size
        return value, DissectedField(start, self.at, path, "varint-sized bytes", value, _as_text(value))


def _as_text(value: bytes) -> str:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return ""
    return repr(text) if text.isprintable() else ""


class _Readers(NamedTuple):
    """The dissectors of a record's key and value; the latter needs the key."""

    key: Dissect | None = None
    value: Dissect | None = None


def _record_fields(data: bytes, at: int, header: BatchHeader, topic: str | None) -> Iterator[DissectedField]:
    cursor = _Varints(data, at)
    for index in range(header.record_count):
        yield from _one_record(cursor, f"records[{index}]", header, topic)


def _one_record(cursor: _Varints, path: str, header: BatchHeader, topic: str | None) -> Iterator[DissectedField]:
    _, field = cursor.number(f"{path}.length")
    yield field._replace(meaning="bytes that follow")
    start = cursor.at
    attributes = cursor.data[start : start + 1]
    if not attributes:
        raise WireError("the bytes end here", offset=start, field=f"{path}.attributes")
    cursor.at += 1
    yield DissectedField(start, cursor.at, f"{path}.attributes", "int8", attributes[0], "not used")
    delta, field = cursor.number(f"{path}.timestamp_delta", long=True)
    yield field._replace(meaning=time_text(header.base_timestamp_ms + delta))
    delta, field = cursor.number(f"{path}.offset_delta")
    yield field._replace(meaning=f"offset {header.base_offset + delta}")
    key, field = cursor.sized(f"{path}.key")
    readers = _readers(header, topic, key)
    yield from _opened(field, key, readers.key)
    value, field = cursor.sized(f"{path}.value")
    if value is None and not header.control:
        field = field._replace(meaning="tombstone")
    yield from _opened(field, value, readers.value)
    count, field = cursor.number(f"{path}.headers")
    yield field._replace(type="array behind a varint")
    for index in range(count):
        for part in ("key", "value"):
            _, field = cursor.sized(f"{path}.headers[{index}].{part}")
            yield field


def _readers(header: BatchHeader, topic: str | None, key: bytes | None) -> _Readers:
    if header.control:
        return _Readers(_marker_key, _marker_value if marker_type(key) in _MARKERS else None)
    types = COORDINATOR_TOPICS.get(topic or "")
    if types is None:
        return _Readers()
    return _Readers(lambda data: record_key(types, data), lambda data: record_value(types, key, data))


def _opened(field: DissectedField, content: bytes | None, reader: Dissect | None) -> Iterator[DissectedField]:
    """The size of a key or value, and the fields in it."""
    if content is None or reader is None:
        yield field
        return
    start = field.end - len(content)
    yield field._replace(end=start, value=len(content), meaning=FOLLOWS)
    yield from moved(with_rest(reader(content), content), start, field.path)


def _marker_key(data: bytes) -> Iterator[DissectedField]:
    for field in schema_fields(MARKER_KEY, data):
        is_type = field.path == "type"
        kind = _MARKERS.get(marker_type(data), "a control record of the Raft log") if is_type else ""
        yield field._replace(meaning=kind)


def _marker_value(data: bytes) -> Iterator[DissectedField]:
    return schema_fields(MARKER_VALUE, data)
