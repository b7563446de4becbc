"""Helpers for Arrow columns: the types of ``schemas.py`` in Arrow, and vectorised reads of numbers and bytes with numpy.

One numpy operation reads the numbers at all positions of a batch; byte strings become views into the buffer, which Arrow copies
once in C++. So a million records take a fraction of a second, where a loop in Python takes seconds.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from groupcoord.pipeline.schemas import ColumnSchema

TIMESTAMP = pa.timestamp("us", "UTC")
"""The Arrow type of Spark's timestamps in Python functions."""
_SIMPLE: dict[str, Any] = {
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "binary": pa.binary(),
    "timestamp": TIMESTAMP,
}


def arrow_type(ddl: str) -> Any:
    """The Arrow type for ``ddl``, a type in Spark's DDL: ``array<struct<topic:string,partitions:array<int>>>``."""
    if ddl.startswith("array<"):
        return pa.list_(arrow_type(ddl[6:-1]))
    if ddl.startswith("struct<"):
        fields = (field.partition(":") for field in _parts(ddl[7:-1]))
        return pa.struct([pa.field(name, arrow_type(kind)) for name, _, kind in fields])
    return _SIMPLE[ddl]


def arrow_schema(columns: tuple[ColumnSchema, ...]) -> Any:
    """The Arrow schema of ``columns``."""
    return pa.schema([pa.field(column.name, arrow_type(column.type)) for column in columns])


def struct_of(columns: tuple[ColumnSchema, ...]) -> str:
    """The type of a struct of ``columns``, in Spark's DDL: ``struct<…>``."""
    return f"struct<{','.join(f'{column.name}:{column.type}' for column in columns)}>"


def _parts(ddl: str) -> list[str]:
    """``ddl``, split at its top-level commas, those outside of nested brackets."""
    parts, depth = [""], 0
    for character in ddl:
        depth += {"<": 1, ">": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


PADDING = 32
"""How many zero bytes are appended to the data, so that reads a little beyond its end need no bounds check."""

SHORT_VIEW = 12
"""The longest value that an Arrow binary view holds inline; of a longer one it holds the first four bytes and a buffer
position."""
_VIEW = np.dtype([("size", "<i4"), ("head", "<u8"), ("tail", "<u4")])
_ONE = np.uint64(1)


PART = 1_000
"""The most rows that are converted to Python objects at a time: as objects they take ten times the memory."""


def parts(batch: Any) -> Iterator[Any]:
    """Slices of ``batch`` of at most PART rows."""
    return (batch.slice(first, PART) for first in range(0, len(batch), PART))


def padded(data: Any) -> Any:
    """``data``, an array of bytes, followed by PADDING zeros."""
    return np.concatenate([data, np.zeros(PADDING, np.uint8)])


def buffer_of(column: Any) -> tuple[Any, Any]:
    """The offsets of a binary column (where each value begins, then the end of the last one), and its bytes, padded."""
    offsets = np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + len(column) + 1]
    offsets = offsets.astype(np.int64)
    data = np.frombuffer(column.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    return offsets - offsets[0], padded(data)


def numbers_at(data: Any, positions: Any, dtype: str) -> Any:
    """The numbers of type ``dtype`` (``">i8"``: big-endian int64) that begin at ``positions``, which are within the padding."""
    size = np.dtype(dtype).itemsize
    return np.ndarray((len(data) - size + 1,), dtype, data, 0, (1,))[positions]


def varints(data: Any, positions: Any) -> tuple[Any, Any]:
    """The zigzag varints at ``positions``, and where they end. One of more than ten bytes is cut off there."""
    first = data[positions]
    numbers = (first & 127).astype(np.int64)
    positions = positions + 1
    wide = np.nonzero(first > 127)[0]
    shift = 7
    while len(wide) and shift < 70:
        more = data[positions[wide]]
        numbers[wide] |= (more & 127).astype(np.int64) << min(shift, 63)
        positions[wide] += 1
        wide = wide[more > 127]
        shift += 7
    return (numbers >> 1) ^ -(numbers & 1), positions


def slices(data: Any, starts: Any, sizes: Any) -> Any:
    """The pieces of ``data`` (padded) that begin at ``starts``, as a binary array; a size below 0 gives null.

    Gathering the bytes with numpy would cost a step for each byte; so they become views into the buffer, which Arrow copies.
    """
    lengths = np.maximum(sizes, 0)
    views = np.zeros(len(lengths), _VIEW)
    views["size"] = lengths
    short = lengths <= SHORT_VIEW
    head, tail = numbers_at(data, starts, "<u8"), numbers_at(data, starts + 8, "<u4").astype(np.uint64)
    head = np.where(lengths >= 8, head, head & _low_bits(np.minimum(lengths, 7)))
    tail = np.where(short, tail & _low_bits(np.clip(lengths - 8, 0, 4)), starts.astype(np.uint64))
    views["head"] = np.where(short, head, head & np.uint64(0xFFFFFFFF))
    views["tail"] = tail
    valid = pa.py_buffer(np.packbits(sizes >= 0, bitorder="little"))
    view = pa.Array.from_buffers(pa.binary_view(), len(lengths), [valid, pa.py_buffer(views), pa.py_buffer(data)])
    return view.cast(pa.binary())


def _low_bits(sizes: Any) -> Any:
    """Masks for the lowest ``sizes`` bytes of a uint64."""
    return (_ONE << (8 * sizes).astype(np.uint64)) - _ONE


def strings(values: Any) -> tuple[Any, Any]:
    """A binary array as strings, and a mask of the values that are valid UTF-8; the others become empty strings."""
    try:
        return values.cast(pa.string()), np.ones(len(values), bool)
    except pa.ArrowInvalid:
        plain = values.to_pylist()
        good = np.array([_is_text(value) for value in plain], bool)
        texts = [value.decode() if fine and value is not None else "" for value, fine in zip(plain, good, strict=True)]
        return pa.array(texts, pa.string(), mask=np.asarray(values.is_null())), good


def _is_text(value: bytes | None) -> bool:
    try:
        (value or b"").decode()
    except UnicodeDecodeError:
        return False
    return True


EARLIEST_MS = -62_135_596_800_000
"""The first millisecond of the year 1."""
LATEST_MS = 253_402_300_799_999
"""The last of the year 9999."""


def timestamps(milliseconds: Any, missing: Any) -> Any:
    """Kafka's milliseconds as Spark's timestamps: null where ``missing``, and clamped to the years 1 to 9999."""
    micros = np.clip(milliseconds, EARLIEST_MS, LATEST_MS).astype(np.int64) * 1000
    return pa.array(micros, pa.int64(), mask=missing).cast(TIMESTAMP)
