"""What a dissection is made of: fields, each with its place in the bytes, and perhaps a problem that ended the reading."""

import uuid
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, cast

from groupcoord.protocol.coordinator_records.record_formatting import id_text
from groupcoord.protocol.errors import WireError


class DissectedField(NamedTuple):
    """One field: bytes ``start`` to ``end`` (exclusive), where it is in the message, its type on the wire, and its value.

    ``path`` is like ``topics[0].name``. ``value`` is a bool, int, float, str, bytes, UUID, or None for null and for an id of
    zeros; of an array it is the number of items, which are the fields behind it. ``meaning`` says what this value stands for
    (the name of an error, a time, a unit), ``description`` what the field is for in Kafka's message definitions; both can be
    empty. ``inside`` is empty, or the path of the compressed field whose unpacked bytes ``start`` and ``end`` count.
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
        """The field as JSON has it: bytes in hexadecimal digits, ids in Kafka's text form."""
        value = self.value
        if isinstance(value, bytes):
            value = value.hex()
        elif self.type.startswith("uuid"):
            value = id_text(cast("uuid.UUID | None", value))
        return self._replace(value=value)._asdict()


class Problem(NamedTuple):
    """Why the reading ended: what is wrong at ``offset``, in bytes from the start of what was dissected."""

    offset: int
    reason: str


class Dissection(NamedTuple):
    """The fields of one frame, or of one run of record batches, in order of the bytes.

    Fields whose ``inside`` is empty cover each of the ``size`` bytes exactly once: what could not be read is a field, too, of
    the type ``unreadable bytes``.
    """

    title: str
    size: int
    fields: tuple[DissectedField, ...]
    problem: Problem | None

    def as_json(self) -> dict[str, Any]:
        """The dissection as JSON has it."""
        return {
            "title": self.title,
            "size": self.size,
            "fields": [field.as_json() for field in self.fields],
            "problem": self.problem and self.problem._asdict(),
        }


UNREADABLE = "unreadable bytes"
INCOMPLETE = "incomplete batch"
"""Types of fields: what is not what it should be, and a batch of which the end is missing."""


def moved(fields: Iterable[DissectedField], by: int, path: str = "") -> Iterator[DissectedField]:
    """``fields`` of bytes that lie ``by`` bytes behind the start, in the field ``path``. A WireError is moved, too."""
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


def with_rest(fields: Iterable[DissectedField], data: bytes, path: str = "rest") -> Iterator[DissectedField]:
    """``fields``, and what is left of ``data`` behind them as one field; its meaning is why it could not be read."""
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
        yield DissectedField(end, len(data), path, kind, data[end:], meaning)


def dissection(
    title: str, data: bytes, fields: Iterable[DissectedField], problems: tuple[str, ...] = (UNREADABLE,)
) -> Dissection:
    """The dissection of ``data`` into ``fields``, with the first problem: a field of one of the types ``problems``."""
    found = tuple(with_rest(fields, data))
    problem = None
    place = 0
    for field in found:
        if not field.inside:
            place = field.start
        if field.type in problems and problem is None:
            problem = Problem(place, field.meaning)
    return Dissection(title, len(data), found, problem)
