"""Any record of ``__consumer_offsets``, taken apart to be shown, and as JSON. As text: see text.py.

Every kind that Kafka 4.3 knows is read, also those of groups that this coordinator does not have (see schemas.py). For
the records that it writes and loads, typed.py has classes. The JSON is that of Kafka's own tools
(``OffsetsMessageFormatter``, ``GroupMetadataMessageFormatter``): Kafka's names of fields, bytes in Base64, ids in Kafka's text
form, and no tagged field that holds its default.
"""

import base64
import struct
import uuid
from collections.abc import Iterator
from typing import Any, NamedTuple

from groupcoord.protocol.codec.message_codec import Codec
from groupcoord.protocol.coordinator_records.schemas import RECORD_TYPES, RecordField, RecordStruct, RecordType
from groupcoord.protocol.errors import WireError

Fields = dict[str, Any]
"""Names of fields, as Kafka says them in JSON, and their values: str, int, bytes, UUID (None for the id of zeros), None,
tuples of these, and further Fields. Fields that the version lacks are missing, and so may be tagged ones."""


class RecordKey(NamedTuple):
    """The key of a record: which ``kind`` of record it is, and what about."""

    kind: RecordType
    fields: Fields


class RecordValue(NamedTuple):
    """The value of a record of ``kind``, in the ``version`` that the bytes say."""

    kind: RecordType
    version: int
    fields: Fields


class RecordError(WireError):
    """A key or value is not what it should be, or of a kind or version that Kafka 4.3 does not know.

    ``api`` is the name of the key or value (``ConsumerGroupMemberMetadataValue``), as far as it is known; ``version``,
    ``field`` and ``offset`` say where, the offset in bytes from the start of the key or value.
    """


class UnknownRecordTypeError(RecordError):
    """The key's number stands for no kind of record; a broker passes over such records with a warning."""

    def __init__(self, number: int) -> None:
        super().__init__(f"there is no kind {number} of records", api="key", offset=0, field="kind")
        self.number = number


class UnknownVersionError(RecordError):
    """The kind has no values of this version; a broker does not finish loading a partition that has one."""

    def __init__(self, kind: RecordType, version: int) -> None:
        known = f"{kind.versions[0]} to {kind.versions[-1]} are" if len(kind.versions) > 1 else "only 0 is"
        super().__init__(f"{known} known", api=kind.value.name, version=version, offset=0, field="version")


def parse_key(data: bytes | None) -> RecordKey:
    """The key in ``data``. Raises RecordError; for a number that is no kind's, its subclass UnknownRecordTypeError."""
    number = _int16(b"" if data is None else data, "key", "kind")
    kind = RECORD_TYPES.get(number)
    if kind is None:
        raise UnknownRecordTypeError(number)
    return RecordKey(kind, _read(kind.key, 0, data or b""))


def group_of(key: RecordKey) -> str | None:
    """The group that a record with this key is about."""
    group: str | None = key.fields.get("group", key.fields.get("groupId"))
    return group


def parse_value(kind: RecordType, data: bytes | None) -> RecordValue | None:
    """The value in ``data`` of a record whose key is of ``kind``; None is a tombstone.

    Raises RecordError; for a version that the kind does not have, its subclass UnknownVersionError.
    """
    if data is None:
        return None
    version = _int16(data, kind.value.name, "version")
    if version not in kind.versions:
        raise UnknownVersionError(kind, version)
    return RecordValue(kind, version, _read(kind.value, version, data))


def key_json(key: RecordKey) -> dict[str, Any]:
    """``{"type": 1, "data": {"group": …}}``, as Kafka's tools say it."""
    return {"type": key.kind.number, "data": _plain(key.kind.key, key.fields)}


def value_json(value: RecordValue | None) -> dict[str, Any] | None:
    """``{"version": 4, "data": {"offset": …}}``, as Kafka's tools say it; None for a tombstone."""
    return value and {"version": value.version, "data": _plain(value.kind.value, value.fields)}


def id_text(value: uuid.UUID | None) -> str:
    """An id as Kafka shows it: 22 characters of URL-safe Base64."""
    return base64.urlsafe_b64encode(bytes(16) if value is None else value.bytes).rstrip(b"=").decode()


_INT16 = struct.Struct(">h")


def _int16(data: bytes, name: str, field: str) -> int:
    if len(data) < _INT16.size:
        raise RecordError(f"{len(data)} bytes have no {field}", api=name, offset=0, field=field)
    number: int = _INT16.unpack_from(data)[0]
    return number


_CODECS: dict[tuple[str, int], Codec[Fields]] = {}


def _read(part: RecordStruct, version: int, data: bytes) -> Fields:
    codec = _CODECS.get((part.name, version))
    if codec is None:
        codec = _CODECS[part.name, version] = Codec(part.layout(version))
    try:
        return codec.decode(data, _INT16.size)
    except WireError as problem:
        raise RecordError(
            problem.reason, api=part.name, version=version, offset=problem.offset, field=problem.field
        ) from None


def present(part: RecordStruct, fields: Fields) -> Iterator[tuple[RecordField, Any]]:
    """Of ``part``, the fields that are there and say something: not the tagged ones with their default."""
    for field in part.fields:
        if field.name in fields and (field.tag is None or fields[field.name] != field.default):
            yield field, fields[field.name]


def _plain(part: RecordStruct, fields: Fields) -> dict[str, Any]:
    return {field.name: _plain_value(field, value) for field, value in present(part, fields)}


def _plain_value(field: RecordField, value: Any) -> Any:
    if field.is_array and value is not None:
        item = field._replace(is_array=False)
        return [_plain_value(item, one) for one in value]
    if field.kind == "uuid":
        return id_text(value)
    if field.kind == "bytes":
        return base64.b64encode(value).decode()
    if field.struct is not None and value is not None:
        return _plain(field.struct, value)
    return value
