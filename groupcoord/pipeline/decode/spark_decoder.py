"""The two steps in which Spark decodes: all commits at once, and then what is left, record by record."""

from binascii import b2a_base64
from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from groupcoord.pipeline.arrow import arrow_schema, parts, struct_of
from groupcoord.pipeline.decode.commit_decoder import decode_keys, decode_values
from groupcoord.pipeline.decode.record_decoder import decode
from groupcoord.pipeline.schemas import (
    BAD_RECORDS,
    COMMITS,
    GENERATIONS,
    LOG,
    MODERN_RECORDS,
    ColumnSchema,
    TableSchema,
)


def undecoded(split: DataFrame) -> DataFrame:
    """The records that the fast decoder left, as LOG."""
    others = split.where("not is_commit")
    return others.select("*", F.unbase64("topic").alias("key"), F.unbase64("metadata").alias("value")).select(
        *LOG.names
    )


def decode_rest(log: DataFrame) -> DataFrame:
    """``log``, decoded record by record: as REST."""
    return log.select(*LOG.names).mapInArrow(decode_batches, REST.ddl)


def table_of_rest(decoded: DataFrame, table: TableSchema) -> DataFrame:
    """The rows of ``table`` in what ``decode_rest`` gave."""
    places, columns = table.names[:3], table.names[3:]
    rows = decoded.where(F.col("table") == table.name)
    return rows.select(*places, *(F.col(table.name)[name].alias(name) for name in columns))


def commits(split: DataFrame, decoded: DataFrame) -> DataFrame:
    """All commits: those decoded at once, and the odd ones."""
    return split.where("is_commit").select(*COMMITS.names).unionByName(table_of_rest(decoded, COMMITS))


WHERE = COMMITS.columns[:3]
PLACES = [column.name for column in WHERE]
"""Where a record is: the first columns of every table of records."""

IS_COMMIT = ColumnSchema("is_commit", "boolean", "is it decoded?")
SPLIT = TableSchema(
    "split",
    "Commits, decoded, and the other records as they are: the key, in Base64, as `topic`, and the value as `metadata`. So the "
    "commits are written once, as they will be read.",
    ("log_partition", "log_offset"),
    (*COMMITS.columns, IS_COMMIT),
)

OF_RECORDS = {table.name: table for table in (COMMITS, GENERATIONS, MODERN_RECORDS, BAD_RECORDS)}
"""The tables that records belong to: each record of the log is a row of one of them."""
REST = TableSchema(
    "rest",
    "The other records, decoded: the column with the name of their table is not null.",
    ("log_partition", "log_offset"),
    (
        *WHERE,
        ColumnSchema("table", "string", "where the record belongs"),
        *(ColumnSchema(name, struct_of(table.columns[3:]), "its row there") for name, table in OF_RECORDS.items()),
    ),
)


def split_batch(batch: Any) -> tuple[Any, Any]:
    """Split a record batch of LOG: the commits, decoded, as a batch of COMMITS, and the other records, undecoded."""
    keys, values = decode_keys(batch.column("key")), decode_values(batch.column("value"))
    fine = keys.fine & values.fine
    columns = [*batch.select(PLACES).columns, keys.group, keys.topic, keys.partition, *values.columns]
    commits = pa.RecordBatch.from_arrays(columns, schema=arrow_schema(COMMITS.columns))
    if fine.all():
        return commits, batch.slice(0, 0)
    return commits.take(pa.array(np.nonzero(fine)[0])), batch.take(pa.array(np.nonzero(~fine)[0]))


def split_batches(batches: Iterator[Any]) -> Iterator[Any]:
    """Split record batches of LOG, as batches of SPLIT: of each the commits, then the other records."""
    schema = arrow_schema(SPLIT.columns)
    for commits, others in map(split_batch, filter(len, batches)):
        if len(commits):
            yield pa.RecordBatch.from_arrays([*commits.columns, pa.array(np.ones(len(commits), bool))], schema=schema)
        if len(others):
            columns = {field.name: pa.nulls(len(others), field.type) for field in schema}
            columns |= {name: others.column(name) for name in PLACES}
            columns["topic"], columns["metadata"] = _as_text(others.column("key")), _as_text(others.column("value"))
            columns[IS_COMMIT.name] = pa.array(np.zeros(len(others), bool))
            yield pa.RecordBatch.from_arrays(list(columns.values()), schema=schema)


def _as_text(column: Any) -> Any:
    """Bytes in Base64."""
    found = [None if value is None else b2a_base64(value, newline=False).decode() for value in column.to_pylist()]
    return pa.array(found, pa.string())


def decode_records(others: Any) -> Iterator[tuple[TableSchema, Any]]:
    """The records of ``others``, a batch of LOG, decoded one by one: batches of the tables that they belong to."""
    for batch in parts(others):
        rows: dict[str, list[dict[str, Any]]] = {}
        numbers: dict[str, list[int]] = {}
        for number, (key, value) in enumerate(
            zip(batch.column("key").to_pylist(), batch.column("value").to_pylist(), strict=True)
        ):
            where, row = decode(key, value)
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
