"""What a record is made of, and where it is when it is stored."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from groupcoord.protocol.batches.records import Header

Headers = Mapping[str, bytes | None] | Sequence[tuple[str, bytes | None]]


class RecordMetadata(NamedTuple):
    """Where a record is; Kafka's name for it."""

    topic: str
    partition: int
    offset: int
    """-1 if it is not known: with ``acks=0``, or if the broker had the record already and has forgotten where."""
    timestamp_ms: int
    """The record's, or, with ``message.timestamp.type=LogAppendTime``, when the broker took it."""


def require_bytes(what: str, given: object) -> None:
    """Raises TypeError, with what would be right, for what is neither bytes nor None."""
    if given is not None and not isinstance(given, bytes):
        right = f": {given.encode()!r}" if isinstance(given, str) else ""
        raise TypeError(f"the {what} of a record is bytes{right}, not {given!r}")


def header_pairs(headers: Headers) -> tuple[Header, ...]:
    """The headers in order. Raises TypeError."""
    wrong = f'headers={headers!r}: values by their keys, such as {{"trace": b"1"}}, or pairs of key and value'
    try:
        found = tuple(Header(*pair) for pair in (headers.items() if isinstance(headers, Mapping) else headers))
    except TypeError:
        raise TypeError(wrong) from None
    if not all(isinstance(each.key, str) for each in found):
        raise TypeError(wrong)
    return found
