"""The result of a dissection: its fields, each with its byte range, and the problem that ended it, if any."""

import uuid
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, cast

from groupcoord.protocol.coordinator_records.record_formatting import id_text
from groupcoord.protocol.errors import WireError


class DissectedField(NamedTuple):
    """One field: its bytes ``start`` to ``end`` (exclusive), its path in the message, its wire type, and its value.

    ``path`` is like ``topics[0].name``. ``value`` is a bool, int, float, str, bytes, UUID, or None for null and for the zero
    id; for an array it is the number of items, which follow as fields. ``meaning`` explains the value (the name of an error, a
    time, a unit), ``description`` is Kafka's text about the field; both can be empty. ``inside`` is empty, or the path of the
    compressed field in whose unpacked bytes ``start`` and ``end`` count.
    """

    start: int
    end: int
    path: str
    type: str
    value: object
    meaning: str = ""
    description: str = ""
    inside: str = ""

    def as_json(self) -> dict[str, Any]:
        """The field in JSON: bytes in hexadecimal, ids in Kafka's text form."""
        value = self.value
        if isinstance(value, bytes):
            value = value.hex()
        elif self.type.startswith("uuid"):
            value = id_text(cast("uuid.UUID | None", value))
        return self._replace(value=value)._asdict()


class Problem(NamedTuple):
    """The error that ended the dissection, at ``offset`` bytes from the start of the data."""

    offset: int
    reason: str


class Dissection(NamedTuple):
    """The fields of one frame, or of a sequence of record batches, in order of the bytes.

    Fields whose ``inside`` is empty cover each of the ``size`` bytes exactly once: unreadable bytes are a field, too, of the
    type ``unreadable bytes``.
    """

    title: str
    size: int
    fields: tuple[DissectedField, ...]
    problem: Problem | None

    def as_json(self) -> dict[str, Any]:
        """The dissection in JSON."""
        return {
            "title": self.title,
            "size": self.size,
            "fields": [field.as_json() for field in self.fields],
            "problem": self.problem and self.problem._asdict(),
        }


UNREADABLE = "unreadable bytes"
INCOMPLETE = "incomplete batch"
"""Types of fields: malformed bytes, and a batch whose end is missing."""


def moved(fields: Iterable[DissectedField], by: int, path: str = "") -> Iterator[DissectedField]:
    """``fields`` shifted by ``by`` bytes, and with ``path`` as prefix; so is a WireError."""
    dot = f"{path}." if path else ""
    try:
        for field in fields:
            if field.inside:
                yield field._replace(path=dot + field.path, inside=dot + field.inside)
            else:
                yield field._replace(start=field.start + by, end=field.end + by, path=dot + field.path)
    except WireError as problem:
        offset = by + problem.offset
        raise WireError(
            problem.reason, api=problem.api, version=problem.version, offset=offset, field=dot + problem.field
        ) from None


def with_rest(fields: Iterable[DissectedField], data: bytes) -> Iterator[DissectedField]:
    """``fields``, then one field for the unread rest of ``data``; its meaning is the reason."""
    end = 0
    kind, meaning = "bytes", "behind the end; ignored"
    try:
        for field in fields:
            yield field
            if not field.inside:
                end = field.end
    except WireError as problem:
        kind, meaning = UNREADABLE, f"{problem.field}: {problem.reason}" if problem.field else problem.reason
    if kind == UNREADABLE or end < len(data):
        yield DissectedField(end, len(data), "rest", kind, data[end:], meaning)


def dissection(
    title: str, data: bytes, fields: Iterable[DissectedField], problems: tuple[str, ...] = (UNREADABLE,)
) -> Dissection:
    """The dissection of ``data`` into ``fields``; a field of one of the types ``problems`` is its problem."""
    found = tuple(with_rest(fields, data))
    problem = None
    place = 0
    for field in found:
        if not field.inside:
            place = field.start
        if field.type in problems and problem is None:
            problem = Problem(place, field.meaning)
    return Dissection(title, len(data), found, problem)
