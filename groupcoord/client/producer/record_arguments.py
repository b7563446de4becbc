"""Checks and converts the arguments of ``Producer.send``: key and value must be bytes, headers pairs."""

from collections.abc import Mapping, Sequence

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
