"""Decodes ``__consumer_offsets`` in bulk: offset commits, nearly all records of such a log, are vectorised with numpy; all
other records are decoded one by one.

A commit is a record of type 0 or 1 whose value has a version from 0 to 4. A record that is not exactly as Kafka writes it (a
length that does not fit, bytes left over, an unknown version or tag, a name that is not UTF-8) is left to
``record_decoder.py``, which finds the reason. Sources: ``OffsetCommitKey.json``, ``OffsetCommitValue.json``.
"""

import uuid
from binascii import b2a_base64
from collections.abc import Iterator
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from groupcoord.pipeline.arrow_columns import (
    arrow_schema,
    buffer_of,
    numbers_at,
    parts,
    slices,
    strings,
    struct_of,
    timestamps,
)
from groupcoord.pipeline.record_decoder import decode_record
from groupcoord.pipeline.schemas import (
    BAD_RECORDS,
    COMMITS,
    GENERATIONS,
    LOG,
    MODERN_RECORDS,
    ColumnSchema,
    TableSchema,
    table_schema,
)
from groupcoord.protocol.coordinator_records.record_formatting import id_text

SMALLEST_KEY = 10
"""The bytes of the shortest key of a commit: record type, two empty names, partition."""
_TOPIC_ID_BYTES = 16
_ONE_TAG_TOPIC_ID = 0x010010
"""The bytes before the only tagged field, a topic id: one field, tag 0, size 16."""


class CommitKeys(NamedTuple):
    """Decoded keys of commits. Where a row is not a valid key of a commit, ``fine`` is false and the other columns are
    undefined."""

    fine: Any
    group: Any
    topic: Any
    partition: Any


class CommitValues(NamedTuple):
    """Decoded values of commits. Where a row is not a valid value of a commit, ``fine`` is false; a tombstone is fine and has
    nulls."""

    fine: Any
    columns: list[Any]


def decode_keys(column: Any) -> CommitKeys:
    """Decode the keys in ``column``. A key repeats thousands of times, so each distinct one is decoded once."""
    encoded = pc.dictionary_encode(column)
    distinct, rows = encoded.dictionary, encoded.indices
    if len(distinct) == 0:
        empty = pa.nulls(len(column), pa.string())
        return CommitKeys(np.zeros(len(column), bool), empty, empty, pa.nulls(len(column), pa.int32()))
    offsets, data = buffer_of(distinct)
    start, end = offsets[:-1], offsets[1:]
    size = end - start
    kind = numbers_at(data, start, ">i2")
    fine = (size >= SMALLEST_KEY) & ((kind == 0) | (kind == 1))
    group_size = numbers_at(data, start + 2, ">i2").astype(np.int64)
    fine &= (group_size >= 0) & (group_size <= size - SMALLEST_KEY)
    group_size = np.where(fine, group_size, 0)
    topic_size = numbers_at(data, start + 4 + group_size, ">i2").astype(np.int64)
    fine &= topic_size == size - SMALLEST_KEY - group_size
    topic_size = np.where(fine, topic_size, 0)
    group, group_is_text = strings(slices(data, start + 4, group_size))
    topic, topic_is_text = strings(slices(data, start + 6 + group_size, topic_size))
    fine &= group_is_text & topic_is_text
    partition = pa.array(numbers_at(data, np.where(fine, end - 4, 0), ">i4").astype(np.int32))
    numbers = np.asarray(rows.fill_null(0))
    return CommitKeys(
        fine[numbers] & np.asarray(rows.is_valid()), group.take(rows), topic.take(rows), partition.take(rows)
    )


def decode_values(column: Any) -> CommitValues:
    """Decode the values in ``column`` into the columns of ``commits`` from ``committed_offset`` on."""
    null = np.asarray(column.is_null())
    offsets, data = buffer_of(column)
    size = offsets[1:] - offsets[:-1]
    start = np.where(null, len(data) - 32, offsets[:-1])  # for a tombstone, zeros of the padding are read
    end = np.where(null, start, offsets[1:])
    version = np.where(null, 0, numbers_at(data, start, ">i2")).astype(np.int16)
    fine = null | ((size >= 2) & (version >= 0) & (version <= 4))
    version = np.where(fine, version, 0)

    after_offset = start + 10
    has_epoch, compact = version >= 3, version >= 4
    fine &= null | (start + np.where(has_epoch, 14, 10) <= end)
    epoch = np.where(has_epoch, numbers_at(data, np.where(fine, after_offset, 0), ">i4"), -1)
    text_at, text_size, found = _text(data, after_offset + 4 * has_epoch, compact, fine)
    fine &= null | (found & (text_size >= 0) & (text_at + text_size <= end))
    text_size = np.where(fine, text_size, 0)

    behind = np.where(fine, text_at + text_size, 0)
    commit_ms = numbers_at(data, np.where(fine & (behind + 8 <= end), behind, 0), ">i8")
    expires = version == 1
    tail = behind + 8 + np.where(expires, 8, 0)  # where the value ends, or its tagged fields begin
    expire_ms = np.where(expires, numbers_at(data, np.where(fine & expires & (tail <= end), behind + 8, 0), ">i8"), -1)
    tag_at = np.where(fine & compact & (tail + 1 <= end), tail, 0)
    has_id = compact & (tail + 3 + _TOPIC_ID_BYTES == end) & (numbers_at(data, tag_at, ">u4") >> 8 == _ONE_TAG_TOPIC_ID)
    untagged = compact & (tail + 1 == end) & (data[tag_at] == 0)
    fine &= null | np.where(compact, has_id | untagged, tail == end)

    metadata, is_text = strings(
        slices(data, np.where(fine, text_at, 0), np.where(null, -1, np.where(fine, text_size, 0)))
    )
    fine &= is_text
    ids = slices(data, np.where(fine & has_id, tail + 3, 0), np.where(fine & has_id & ~null, _TOPIC_ID_BYTES, -1))
    return CommitValues(
        fine,
        [
            pa.array(numbers_at(data, np.where(fine, start + 2, 0), ">i8").astype(np.int64), mask=null),
            pa.array(epoch.astype(np.int32), mask=null),
            metadata,
            timestamps(commit_ms, null | (commit_ms == -1)),
            timestamps(expire_ms, null | (expire_ms == -1)),
            _id_texts(ids),
            pa.array(version, pa.int16(), mask=null),
            pa.array(null),
        ],
    )


def _text(data: Any, position: Any, compact: Any, fine: Any) -> tuple[Any, Any, Any]:
    """The position and the length of the metadata string, and whether its length could be read.

    The length is an int16; from version 4 on it is an unsigned varint of length + 1 (a compact string). Three bytes of it are
    enough: Kafka limits metadata to ``offset.metadata.max.bytes``, and no string is longer than an int16 allows.
    """
    position = np.where(fine, position, 0)
    first, second, third = (data[position + step].astype(np.int64) for step in range(3))
    two, three = compact & (first > 127), compact & (first > 127) & (second > 127)
    varint = (first & 127) | np.where(two, (second & 127) << 7, 0) | np.where(three, (third & 127) << 14, 0)
    size = np.where(compact, varint - 1, numbers_at(data, position, ">i2").astype(np.int64))
    width = np.where(compact, 1 + two + three, 2)
    return position + width, size, fine & ~(three & (third > 127))


def _id_texts(ids: Any) -> Any:
    """Topic ids as Kafka prints them; null for the zero id. There are few distinct ids, so each is formatted once."""
    encoded = pc.dictionary_encode(ids)
    texts = [id_text(uuid.UUID(bytes=value)) if any(value) else None for value in encoded.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(encoded.indices)


def undecoded(split: DataFrame) -> DataFrame:
    """The rows of SPLIT that were not decoded as commits, as LOG."""
    others = split.where("not is_commit")
    return others.select("*", F.unbase64("topic").alias("key"), F.unbase64("metadata").alias("value")).select(
        *LOG.names
    )


def decode_rest(log: DataFrame) -> DataFrame:
    """Decode ``log`` record by record, as REST."""
    return log.select(*LOG.names).mapInArrow(decode_batches, REST.ddl)


def table_of_rest(decoded: DataFrame, table: TableSchema) -> DataFrame:
    """The rows of ``table`` in what ``decode_rest`` gave."""
    places, columns = table.names[:3], table.names[3:]
    rows = decoded.where(F.col("table") == table.name)
    return rows.select(*places, *(F.col(table.name)[name].alias(name) for name in columns))


def commits(split: DataFrame, decoded: DataFrame) -> DataFrame:
    """All commits: those decoded with numpy (in ``split``), and those decoded one by one (in ``decoded``)."""
    return split.where("is_commit").select(*COMMITS.names).unionByName(table_of_rest(decoded, COMMITS))


WHERE = COMMITS.columns[:3]
PLACES = [column.name for column in WHERE]
"""The columns that locate a record: the first ones of every table of records."""

SPLIT = table_schema(
    """
    split by log_partition, log_offset: Commits, decoded, and the other records as they are: the key, in Base64, as `topic`,
        and the value as `metadata`. So the commits are written once, as they will be read.
    is_commit boolean: is it decoded? null: it is hidden by a transaction, or a marker
    """,
    COMMITS.columns,
)


def is_of_places(batch: Any) -> bool:
    """Has ``batch``, from a source, only the columns PLACES? It then locates records that are hidden."""
    return bool(batch.num_columns == len(PLACES))


OF_RECORDS = {table.name: table for table in (COMMITS, GENERATIONS, MODERN_RECORDS, BAD_RECORDS)}
"""The tables that records belong to: each record of the log is a row of one of them."""
REST = TableSchema(
    "rest",
    "The other records, decoded: only the column named after the record's table is not null.",
    ("log_partition", "log_offset"),
    (
        *WHERE,
        ColumnSchema("table", "string", "where the record belongs"),
        *(ColumnSchema(name, struct_of(table.columns[3:]), "its row there") for name, table in OF_RECORDS.items()),
    ),
)


def split_batch(batch: Any) -> tuple[Any, Any]:
    """Split a record batch of LOG: the commits, decoded, as a batch of COMMITS, and the other records, undecoded."""
    keys, data = decode_keys(batch.column("key")), batch.column("value")
    # What is not the value of a commit would have to be checked for UTF-8 one by one.
    values = decode_values(data if keys.fine.all() else pc.if_else(pa.array(keys.fine), data, None))
    fine = keys.fine & values.fine
    columns = [*batch.select(PLACES).columns, keys.group, keys.topic, keys.partition, *values.columns]
    commits = pa.RecordBatch.from_arrays(columns, schema=arrow_schema(COMMITS.columns))
    if fine.all():
        return commits, batch.slice(0, 0)
    return commits.take(pa.array(np.nonzero(fine)[0])), batch.take(pa.array(np.nonzero(~fine)[0]))


def split_batches(batches: Iterator[Any]) -> Iterator[Any]:
    """Convert record batches of LOG or PLACES to SPLIT: for each batch of LOG one of the commits, then one of the other
    records."""
    schema = arrow_schema(SPLIT.columns)
    for batch in filter(len, batches):
        if is_of_places(batch):
            columns = {field.name: pa.nulls(len(batch), field.type) for field in schema}
            columns |= {name: batch.column(name) for name in PLACES}
            yield pa.RecordBatch.from_arrays(list(columns.values()), schema=schema)
            continue
        commits, others = split_batch(batch)
        if len(commits):
            yield pa.RecordBatch.from_arrays([*commits.columns, pa.array(np.ones(len(commits), bool))], schema=schema)
        if len(others):
            columns = {field.name: pa.nulls(len(others), field.type) for field in schema}
            columns |= {name: others.column(name) for name in PLACES}
            columns["topic"], columns["metadata"] = _as_text(others.column("key")), _as_text(others.column("value"))
            columns["is_commit"] = pa.array(np.zeros(len(others), bool))
            yield pa.RecordBatch.from_arrays(list(columns.values()), schema=schema)


def _as_text(column: Any) -> Any:
    """A binary column as Base64 strings."""
    found = [None if value is None else b2a_base64(value, newline=False).decode() for value in column.to_pylist()]
    return pa.array(found, pa.string())


def decode_records(others: Any) -> Iterator[tuple[TableSchema, Any]]:
    """Decode the records of ``others``, a batch of LOG, one by one: pairs of a table and a batch of its rows."""
    for batch in parts(others):
        rows: dict[str, list[dict[str, Any]]] = {}
        numbers: dict[str, list[int]] = {}
        for number, (key, value) in enumerate(
            zip(batch.column("key").to_pylist(), batch.column("value").to_pylist(), strict=True)
        ):
            where, row = decode_record(key, value)
            rows.setdefault(where, []).append(row)
            numbers.setdefault(where, []).append(number)
        for name, found in rows.items():
            table = OF_RECORDS[name]
            places = batch.select(PLACES).take(pa.array(numbers[name]))
            columns = pa.RecordBatch.from_pylist(found, schema=arrow_schema(table.columns[len(PLACES) :])).columns
            yield table, pa.RecordBatch.from_arrays([*places.columns, *columns], schema=arrow_schema(table.columns))


def decode_batches(batches: Iterator[Any]) -> Iterator[Any]:
    """Decode record batches of LOG one record at a time, as batches of REST."""
    schema = arrow_schema(REST.columns)
    for table, batch in chain.from_iterable(map(decode_records, batches)):
        columns = {field.name: pa.nulls(len(batch), field.type) for field in schema}
        columns |= {name: batch.column(name) for name in PLACES}
        columns["table"] = pa.array([table.name] * len(batch))
        fields = list(schema.field(table.name).type)
        columns[table.name] = pa.StructArray.from_arrays(batch.columns[len(PLACES) :], fields=fields)
        yield pa.RecordBatch.from_arrays(list(columns.values()), schema=schema)
