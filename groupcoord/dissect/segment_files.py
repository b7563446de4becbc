"""Dissects the files of a log segment: batches of ``.log``, entries of ``.index``, ``.timeindex`` and ``.txnindex``.

A running Kafka broker preallocates its index files, so zeros follow the last entry. Sources: ``OffsetIndex``, ``TimeIndex``,
``AbortedTxn``.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from groupcoord.dissect.dissection import DissectedField, Dissection, dissection, moved
from groupcoord.dissect.embedded_messages import schema_fields
from groupcoord.dissect.record_batches import dissect_record_batches
from groupcoord.protocol.batches.record_batch import BatchError, iter_batch_extents
from groupcoord.protocol.codec.schema import MessageSchema, SchemaField


def _entry(*fields: SchemaField) -> MessageSchema:
    return MessageSchema(dict, 0, flexible=False, fields=fields)


_ENTRIES: Mapping[str, tuple[int, MessageSchema]] = MappingProxyType(
    {
        ".index": (8, _entry(SchemaField("relative_offset", "int32"), SchemaField("position", "int32"))),
        ".timeindex": (12, _entry(SchemaField("timestamp", "int64"), SchemaField("relative_offset", "int32"))),
        ".txnindex": (
            34,
            _entry(
                SchemaField("version", "int16"),
                SchemaField("producer_id", "int64"),
                SchemaField("first_offset", "int64"),
                SchemaField("last_offset", "int64"),
                SchemaField("last_stable_offset", "int64"),
            ),
        ),
    }
)
"""The size and fields of an entry, by file suffix."""
SUFFIXES = (".log", *_ENTRIES)
"""The suffixes of files that can be dissected."""


def dissect_log(data: bytes, topic: str | None) -> Iterator[tuple[int, Dissection]]:
    """(position, dissection) of each batch in the ``.log`` file ``data``, and of the rest after the last one."""
    end = 0
    try:
        for position, size, _ in iter_batch_extents(data):
            end = position + size
            yield position, dissect_record_batches(data[position:end], topic)
    except BatchError:
        pass  # reported with the rest
    if end < len(data):
        yield end, dissect_record_batches(data[end:], topic)


def dissect_index(data: bytes, suffix: str, base_offset: int) -> Dissection:
    """The entries of an index with the name suffix ``suffix``, of the segment with ``base_offset``."""
    return dissection(
        f"{suffix} file of the segment at offset {base_offset}", data, _entries(data, suffix, base_offset)
    )


def _entries(data: bytes, suffix: str, base_offset: int) -> Iterator[DissectedField]:
    size, schema = _ENTRIES[suffix]
    for index, start in enumerate(range(0, len(data), size)):
        entry = data[start : start + size]
        if start and not any(data[start:]):
            yield DissectedField(start, len(data), "unused", "bytes", len(data) - start, "zeros, for entries to come")
            return
        for field in moved(schema_fields(schema, entry), start, f"entries[{index}]"):
            yield field._replace(meaning=_meaning(field, base_offset))


def _meaning(field: DissectedField, base_offset: int) -> str:
    if field.path.endswith("relative_offset"):
        return f"offset {base_offset + int(str(field.value))}"
    return "bytes from the start of the .log file" if field.path.endswith("position") else field.meaning
