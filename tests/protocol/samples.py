"""Random messages that use every field of a schema."""

import random
import uuid
from typing import Any

from groupcoord.protocol.apis import APIS, Api
from groupcoord.protocol.codec.message_codec import Codec
from groupcoord.protocol.codec.schema import MessageSchema, SchemaField

EVERY_VERSION = [(api, version) for api in APIS.values() for version in range(api.min_version, api.max_version + 1)]

_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_TEXTS = ("", "a", "orders", "Grüße", "グループ", "\x00", "x" * 130, "😀")


def name_of(value: object) -> str:
    """Ids for parametrize."""
    return value.name if isinstance(value, Api) else f"v{value}"


def codecs_of(api: Api, version: int) -> tuple[Codec[Any], Codec[Any]]:
    return api.request_codec(version), api.response_codec(version)


def make(schema: MessageSchema, chance: random.Random) -> Any:
    """A message with any value in each field that the version carries."""
    return schema.message(**{field.name: _field(field, chance) for field in schema.fields})


def _field(field: SchemaField, chance: random.Random) -> Any:
    if field.is_nullable and chance.random() < 0.2:
        return None
    if field.is_array:
        return tuple(_value(field, chance) for _ in range(chance.randrange(4)))
    return _value(field, chance)


def _value(field: SchemaField, chance: random.Random) -> Any:
    if field.struct is not None:
        return make(field.struct, chance)
    if field.kind in _BITS:
        bits = _BITS[field.kind]
        return chance.choice((0, -1, 1, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)), chance.randrange(2 ** (bits - 1))))
    if field.kind in ("uint16", "uint32"):
        return chance.randrange(2**16)
    if field.kind == "float64":
        return chance.random()
    if field.kind == "uuid":
        return chance.choice((None, uuid.UUID(int=chance.randrange(1, 2**128))))
    if field.kind == "bool":
        return chance.random() < 0.5
    text = chance.choice(_TEXTS)
    return text if field.kind == "string" else text.encode()
