"""kafka-python's own codec, made from Kafka's message definitions: a second opinion on every byte."""

import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any

from kafka.protocol.api_message import ApiMessage

from groupcoord.protocol.apis import Api
from groupcoord.protocol.codec.schema import MessageSchema, SchemaField
from tests.protocol import definitions

_MODULES = [import_module(f"kafka.protocol.{name}") for name in ("admin", "consumer", "metadata", "producer")]


@cache
def their_class(name: str) -> Any:
    """kafka-python's class of a request or response; where it has none, one that it makes of Kafka's definition."""
    found = {vars(module)[name] for module in _MODULES if name in vars(module)}
    return found.pop() if found else type(ApiMessage)(name, (ApiMessage,), {}, load_json=definitions)


def read(name: str, version: int, data: bytes) -> Any:
    """What kafka-python reads."""
    # Not through their class: it reads an ApiVersions response that has an error as version 0, as clients must.
    return ApiMessage.decode.__func__(their_class(name), data, version=version)


def write(theirs: Any, version: int) -> bytes:
    """What kafka-python writes of what it read."""
    theirs._header = None
    written: bytes = theirs.encode(version=version)
    return written


def differences(schema: MessageSchema, ours: Any, theirs: Any, path: str = "") -> Iterator[str]:
    """Fields in which our message is not theirs."""
    for field in schema.fields:
        # A bit field is a set of names to them. They write it back, so its bytes are compared nevertheless.
        if not field.name.endswith("authorized_operations"):
            yield from _differences(
                field, getattr(ours, field.name), getattr(theirs, field.name), f"{path}.{field.name}"
            )


def _differences(field: SchemaField, ours: Any, theirs: Any, path: str) -> Iterator[str]:
    if field.is_array and None not in (ours, theirs):
        if len(ours) != len(theirs):
            yield f"{path}: {len(ours)} items, {len(theirs)} items"
        for index, (one, other) in enumerate(zip(ours, theirs, strict=False)):
            yield from _differences(field._replace(is_array=False), one, other, f"{path}[{index}]")
    elif field.struct is not None and None not in (ours, theirs):
        yield from differences(field.struct, ours, theirs, path)
    elif field.tag is not None and field.struct is not None and theirs is None:
        if ours != field.struct.message():
            yield f"{path}: {ours!r}, absent"
    elif ours != theirs and not (field.kind == "uuid" and ours is None and theirs.int == 0):
        yield f"{path}: {ours!r}, {theirs!r}"


class Definition:
    """A field or struct of Kafka's message definitions."""

    def __init__(self, json: dict[str, Any], structs: dict[str, Any]) -> None:
        self.json, self._structs = json, structs

    @classmethod
    def of(cls, name: str) -> "Definition":
        """The definition of a request or response."""
        json = their_class(name)._json
        return cls(json, {struct["name"]: struct for struct in json.get("commonStructs", ())})

    @property
    def name(self) -> str:
        """As we spell it."""
        return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", self.json["name"]).lower()

    def is_in(self, api: Api) -> bool:
        """Does a version that is served have it?"""
        low, _, high = self.json["versions"].partition("-")
        return (
            int(low.rstrip("+")) <= api.max_version and int(high or (low if low.isdigit() else 99)) >= api.min_version
        )

    @property
    def item_type(self) -> str:
        """The type, of the items if it is an array."""
        return str(self.json["type"]).removeprefix("[]")

    @property
    def default(self) -> object:
        """What Kafka's generated class holds when nobody says otherwise; an all-zero id is None."""
        text = self.json.get("default")
        if text == "null" or self.json["type"] in ("uuid", "records"):
            return None
        if self.json["type"].startswith("[]"):
            return ()
        if self.json["type"] in ("string", "bytes"):
            return text or ("" if self.json["type"] == "string" else b"")
        if self.json["type"] == "bool":
            return str(text).lower() == "true"
        return int(str(text or 0), 0)

    def fields(self) -> list["Definition"]:
        """The fields, be they written here or in a struct with a name."""
        fields = self.json.get("fields") or self._structs[self.item_type]["fields"]
        return [Definition(field, self._structs) for field in fields]
