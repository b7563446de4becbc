"""The types of ``schemas.py`` as Arrow has them: what Python functions give to Spark must have exactly these."""

from typing import Any

import pyarrow as pa

from groupcoord.pipeline.arrow import TIMESTAMP
from groupcoord.pipeline.schemas import Column

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


def arrow_type(said: str) -> Any:
    """The type that ``said`` is, in Spark's words: ``array<struct<topic:string,partitions:array<int>>>``."""
    if said.startswith("array<"):
        return pa.list_(arrow_type(said[6:-1]))
    if said.startswith("struct<"):
        fields = (field.partition(":") for field in _parts(said[7:-1]))
        return pa.struct([pa.field(name, arrow_type(kind)) for name, _, kind in fields])
    return _SIMPLE[said]


def arrow_schema(columns: tuple[Column, ...]) -> Any:
    """The schema that ``columns`` are."""
    return pa.schema([pa.field(column.name, arrow_type(column.type)) for column in columns])


def struct_of(columns: tuple[Column, ...]) -> str:
    """``columns`` as one type: ``struct<…>``."""
    return f"struct<{','.join(f'{column.name}:{column.type}' for column in columns)}>"


def _parts(said: str) -> list[str]:
    """``said``, cut at the commas that are in no further brackets."""
    parts, depth = [""], 0
    for character in said:
        depth += {"<": 1, ">": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts
