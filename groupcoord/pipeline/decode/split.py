"""The two steps in which Spark decodes: all commits at once, and then what is left, record by record."""

from binascii import b2a_base64
from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from groupcoord.pipeline.arrow import parts
from groupcoord.pipeline.decode.commits import decode_keys, decode_values
from groupcoord.pipeline.decode.plain import decode
from groupcoord.pipeline.schemas import (
    BAD_RECORDS,
    COMMITS,
    GENERATIONS,
    MODERN_RECORDS,
    Column,
    Table,
)
from groupcoord.pipeline.types import arrow_schema, struct_of

_COMMIT_COLUMNS = COMMITS.columns[3:]
WHERE = COMMITS.columns[:3]
"""Where a record is: the first columns of every table of records."""

IS_COMMIT = Column("is_commit", "boolean", "is it decoded?")
SPLIT = Table(
    "split",
    "Commits, decoded, and the other records as they are: the key, in Base64, as `topic`, and the value as `metadata`. So the "
    "commits are written once, as they will be read.",
    ("log_partition", "log_offset"),
    (*COMMITS.columns, IS_COMMIT),
)
_KEY_AT, _VALUE_AT = SPLIT.names.index("topic"), SPLIT.names.index("metadata")

_OTHERS = {"commits": COMMITS, "generations": GENERATIONS, "modern_records": MODERN_RECORDS, "bad_records": BAD_RECORDS}
REST = Table(
    "rest",
    "The other records, decoded: the column with the name of their table is not null.",
    ("log_partition", "log_offset"),
    (
        *WHERE,
        Column("table", "string", "where the record belongs"),
        *(Column(name, struct_of(table.columns[3:]), "its row there") for name, table in _OTHERS.items()),
    ),
)


def split(batches: Iterator[Any]) -> Iterator[Any]:
    """Record batches of LOG as such of SPLIT."""
    schema = arrow_schema(SPLIT.columns)
    for batch in batches:
        if len(batch):
            yield pa.RecordBatch.from_arrays(_split(batch), schema=schema)


def _split(batch: Any) -> list[Any]:
    places = [batch.column("log_partition"), batch.column("log_offset"), batch.column("append_ts")]
    key, value = batch.column("key"), batch.column("value")
    keys, values = decode_keys(key), decode_values(value)
    fine = keys.fine & values.fine
    decoded = [*places, keys.group, keys.topic, keys.partition, *values.columns]
    if fine.all():
        return [*decoded, pa.array(fine)]
    # The rows of both kinds, one behind the other: the nulls cost less than a choice in every column.
    commits, others = pa.array(np.nonzero(fine)[0]), pa.array(np.nonzero(~fine)[0])
    behind = [pa.nulls(len(others), column.type) for column in decoded]
    behind[: len(places)] = [place.take(others) for place in places]
    behind[_KEY_AT], behind[_VALUE_AT] = _as_text(key.take(others)), _as_text(value.take(others))
    return [
        *(pa.concat_arrays([column.take(commits), more]) for column, more in zip(decoded, behind, strict=True)),
        pa.array(np.arange(len(batch)) < len(commits)),
    ]


def _as_text(column: Any) -> Any:
    """Bytes in Base64."""
    found = [None if value is None else b2a_base64(value, newline=False).decode() for value in column.to_pylist()]
    return pa.array(found, pa.string())


def rest(batches: Iterator[Any]) -> Iterator[Any]:
    """Record batches of LOG as such of REST, without haste."""
    schema = arrow_schema(REST.columns)
    for batch in chain.from_iterable(map(parts, batches)):
        rows = []
        places = zip(batch.column("log_partition").to_pylist(), batch.column("log_offset").to_pylist(), strict=True)
        for (partition, offset), key, value in zip(
            places, batch.column("key").to_pylist(), batch.column("value").to_pylist(), strict=True
        ):
            table, row = decode(key, value)
            rows.append({"log_partition": partition, "log_offset": offset, "table": table, table: row})
        decoded = pa.RecordBatch.from_pylist(rows, schema=schema)
        yield decoded.set_column(2, "append_ts", batch.column("append_ts"))
