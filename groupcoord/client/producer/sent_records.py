"""The arguments of ``Producer.send``, where key and value must be bytes, and headers pairs, and its result, RecordMetadata."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from groupcoord.protocol.batches.records import Header

Headers = Mapping[str, bytes | None] | Sequence[tuple[str, bytes | None]]


def require_bytes(what: str, given: object) -> None:
    """Raise TypeError, with a suggestion, if ``given`` is neither bytes nor None."""
    if given is not None and not isinstance(given, bytes):
        right = f": {given.encode()!r}" if isinstance(given, str) else ""
        raise TypeError(f"the {what} of a record is bytes{right}, not {given!r}")


def header_pairs(headers: Headers) -> tuple[Header, ...]:
    """``headers`` as a tuple of Header. Raises TypeError."""
    wrong = f'headers={headers!r}: values by their keys, such as {{"trace": b"1"}}, or pairs of key and value'
    try:
        found = tuple(Header(*pair) for pair in (headers.items() if isinstance(headers, Mapping) else headers))
    except TypeError:
        raise TypeError(wrong) from None
    if not all(isinstance(each.key, str) for each in found):
        raise TypeError(wrong)
    return found


class RecordMetadata(NamedTuple):
    """The topic, partition, offset and timestamp of an acknowledged record."""

    topic: str
    partition: int
    offset: int
    """-1 if it is not known: with ``acks=0``, or if the record was a duplicate whose offset the broker no longer has."""
    timestamp_ms: int
    """The record's own timestamp or, with ``message.timestamp.type=LogAppendTime``, the time of the append at the broker."""
