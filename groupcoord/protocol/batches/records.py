"""The records of a batch (``DefaultRecord``): validation, reading and writing.

A record is a varint length, an attributes byte (unused), timestamp and offset as deltas to those of the batch, key, value and
headers. Validation is the hot path of a produce request, reading that of a consumer, so both are written without function
calls. Source: KIP-98.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, repeat
from typing import Any, NamedTuple

Buffer = bytes | bytearray | memoryview


class InvalidRecordsError(ValueError):
    """The bytes are not valid records."""


class Header(NamedTuple):
    """A header of a record; keys need not be unique."""

    key: str
    value: bytes | None


class Record(NamedTuple):
    """One record. ``offset`` and ``timestamp_ms`` are absolute."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


class RecordsSummary(NamedTuple):
    """The result of validating records, without keeping any of them; the deltas are those of timestamps (ms)."""

    lowest_delta: int
    highest_delta: int
    every_key: bool  # does every record have a key?
    consecutive: bool  # are the offset deltas 0, 1, 2 …?


def validate_records(data: Buffer, position: int, count: int, *, sized: bool = True) -> RecordsSummary:
    """Check that ``data`` from ``position`` to its end is exactly ``count`` records. Raises InvalidRecordsError.

    Unless ``sized``, the size of each record is not checked.
    """
    if isinstance(data, bytes):
        with suppress(IndexError, InvalidRecordsError):  # the slow path reports the error
            alike = _validate_alike(data, position, count)
            if alike is not None:
                return alike
    try:
        try:
            return _validate(data, position, count)
        except (InvalidRecordsError, IndexError):
            if sized:
                raise
            return _validate_unsized(data, position, count)
    except IndexError:
        raise InvalidRecordsError("the records reach beyond the batch") from None


def _validate(data: Buffer, position: int, count: int) -> RecordsSummary:  # noqa: C901, PLR0912, PLR0915 - see _long_varint
    end = len(data)
    lowest, highest = 1 << 63, -(1 << 63)
    every_key = consecutive = True
    for index in range(count):
        # Its size.
        number = data[position]
        if number < 128:
            position += 1
        elif (second := data[position + 1]) < 128:
            number += second - 1 << 7
            position += 2
        else:
            number, position = _long_varint(data, position, 5)
        stop = position + (number >> 1)
        if stop > end or number & 1:
            raise InvalidRecordsError(f"record {index} has a size that does not fit the batch")
        # Attributes, and the timestamp delta.
        number = data[position + 1]
        if number < 128:
            position += 2
        elif (second := data[position + 2]) < 128:
            number += second - 1 << 7
            position += 3
        else:
            number, position = _long_varint(data, position + 1, 10)
        delta = (number >> 1) ^ -(number & 1)
        if delta > highest:  # noqa: PLR1730 - a call of max() costs a tenth of the time
            highest = delta
        if delta < lowest:  # noqa: PLR1730
            lowest = delta
        # The offset delta.
        number = data[position]
        if number < 128:
            position += 1
        elif (second := data[position + 1]) < 128:
            number += second - 1 << 7
            position += 2
        else:
            number, position = _long_varint(data, position, 5)
        if number != index + index:
            consecutive = False
        # Key, value, headers.
        number = data[position]
        if number < 128:
            position += 1
        else:
            number, position = _long_varint(data, position, 5)
        if number & 1:
            every_key = False
        else:
            position += number >> 1
        number = data[position]
        if number < 128:
            position += 1
        elif (second := data[position + 1]) < 128:
            number += second - 1 << 7
            position += 2
        else:
            number, position = _long_varint(data, position, 5)
        if not number & 1:
            position += number >> 1
        position = _skip_headers(data, position) if data[position] else position + 1
        if position != stop:
            raise InvalidRecordsError(f"record {index} has a size that is not that of its parts")
    if position != end:
        raise InvalidRecordsError(f"{end - position} bytes are left behind the last record")
    return RecordsSummary(lowest, highest, every_key, consecutive)


def _validate_unsized(data: Buffer, position: int, count: int) -> RecordsSummary:
    """As ``_validate``, without checking sizes (``DefaultRecord.readPartiallyFrom``)."""
    deltas: list[int] = []
    every_key = consecutive = True
    for index in range(count):
        _, position = read_varint(data, position)
        delta, position = read_varlong(data, position + 1)
        deltas.append(delta)
        offset_delta, position = read_varint(data, position)
        consecutive = consecutive and offset_delta == index
        for part in ("key", "value"):
            size, position = read_varint(data, position)
            every_key = every_key and (part != "key" or size >= 0)
            position += max(size, 0)
        position = _skip_headers(data, position)
    if position != len(data):
        raise InvalidRecordsError(f"{len(data) - position} bytes are left behind the last record")
    return RecordsSummary(min(deltas), max(deltas), every_key, consecutive)


RecordFields = tuple[int, int, bytes | None, bytes | None, tuple[Header, ...]]
"""The fields of a ``Record`` as a plain tuple, for converting millions of them."""

make_record: Callable[[RecordFields], Record] = partial(tuple.__new__, Record)
"""``Record._make`` without the call of a Python function."""


def read_records(
    data: Buffer, position: int, count: int, *, base_offset: int, base_timestamp_ms: int, sized: bool = True
) -> Iterator[Record]:
    """The ``count`` records in ``data`` from ``position`` on. Raises InvalidRecordsError.

    Unless ``sized``, the size of each record is not checked.
    """
    return map(make_record, read_fields(data, position, count, base_offset, base_timestamp_ms, sized=sized))


def read_fields(
    data: Buffer, position: int, count: int, base_offset: int, base_timestamp_ms: int, *, sized: bool = True
) -> Iterator[RecordFields]:
    """``read_records`` for plain tuples."""
    if isinstance(data, bytes):
        with suppress(IndexError, InvalidRecordsError):  # the slow path reports the error
            alike = _read_alike(data, position, count, base_offset, base_timestamp_ms)
            if alike is not None:
                return alike
    return _walk(data, position, count, base_offset, base_timestamp_ms, sized=sized)


def _read_alike(
    data: bytes, position: int, count: int, base_offset: int, base_timestamp_ms: int
) -> Iterator[RecordFields] | None:
    """The fields of records of equal size, column by column; None for others."""
    runs = _alike(data, position, count)
    if runs is None:
        return None
    parts: list[Iterator[RecordFields]] = []
    first = base_offset
    for run in runs:
        following = first + len(run.times)
        parts.append(
            zip(
                range(first, following),
                [base_timestamp_ms + _ZIGZAG[delta] for delta in run.times],
                _slices(data, run.key_at, run.end, run.step, run.key_bytes),
                _slices(data, run.value_at, run.end, run.step, run.value_bytes),
                repeat(()),
            )
        )
        first = following
    return chain.from_iterable(parts)


def _validate_alike(data: bytes, position: int, count: int) -> RecordsSummary | None:
    """``_validate`` for records of equal size, column by column; None for others, and for invalid ones."""
    runs = _alike(data, position, count)
    if not runs or runs[-1].end != len(data):
        return None
    deltas = [_ZIGZAG[delta] for delta in set().union(*(run.times for run in runs))]
    return RecordsSummary(min(deltas), max(deltas), all(run.key_bytes >= 0 for run in runs), consecutive=True)


class _AlikeRun(NamedTuple):
    """Consecutive records of ``step`` bytes each, up to ``end``, with the positions of the first key and value, and the sizes
    of each (-1: null). ``times`` has a byte for each record: its timestamp delta, in zigzag.
    """

    step: int
    end: int
    times: bytes
    key_at: int
    key_bytes: int
    value_at: int
    value_bytes: int


def _alike(data: bytes, position: int, count: int) -> list[_AlikeRun] | None:
    """Runs of records of equal size, such as counters and sensor readings; a new run starts where a delta takes one byte more.

    None for others: those with headers, keys of different sizes, gaps between offsets, or timestamps 64 ms or more after the
    first. Raises IndexError, InvalidRecordsError.
    """
    runs: list[_AlikeRun] = []
    index = 0
    while index < count:
        # Offset deltas take one byte up to 63, and two up to 8191.
        width, until = (1, _ONE_BYTE_DELTAS) if index < _ONE_BYTE_DELTAS else (2, _TWO_BYTE_DELTAS)
        records = min(count, until) - index
        size, start = read_varint(data, position)
        step = start - position + size
        end = position + records * step
        if records <= 0 or size <= 0 or end > len(data):
            return None
        length_at = start + 2 + width  # behind attributes, timestamp and offset
        key_bytes, key_at = read_varint(data, length_at)
        key_end = key_at + max(key_bytes, 0)
        value_bytes, value_at = read_varint(data, key_end)
        last = position + step - 1
        if value_at + max(value_bytes, 0) != last or data[last]:
            return None
        # The parts that are equal in all: sizes, and the empty headers.
        for at in (*range(position, start), *range(length_at, key_at), *range(key_end, value_at), last):
            if data[at:end:step] != data[at : at + 1] * records:
                return None
        if data[start + 2 : end : step] != _OFFSET_DELTAS[0][index : index + records]:
            return None
        if width > 1 and data[start + 3 : end : step] != _OFFSET_DELTAS[1][index : index + records]:
            return None
        times = data[start + 1 : end : step]
        if not times.isascii():  # a varint of more than one byte
            return None
        runs.append(_AlikeRun(step, end, times, key_at, key_bytes, value_at, value_bytes))
        index += records
        position = end
    return runs


def _slices(data: bytes, start: int, end: int, step: int, size: int) -> Iterable[bytes | None]:
    return repeat(None) if size < 0 else [data[at : at + size] for at in range(start, end, step)]


def _walk(  # noqa: C901, PLR0912, PLR0915 - see _long_varint
    data: Buffer, position: int, count: int, base_offset: int, base_timestamp_ms: int, *, sized: bool
) -> Iterator[RecordFields]:
    whole: Any = data
    is_bytes = isinstance(data, bytes)  # then slices are bytes, too
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    try:
        for index in range(count):
            # Its size.
            number = data[position]
            if number < 128:
                position += 1
            elif (second := data[position + 1]) < 128:
                number += second - 1 << 7
                position += 2
            else:
                number, position = _long_varint(data, position, 5)
            twice_stop = position + position + number
            # Attributes, and the timestamp delta.
            number = data[position + 1]
            if number < 128:
                position += 2
            elif (second := data[position + 2]) < 128:
                number += second - 1 << 7
                position += 3
            else:
                number, position = _long_varint(data, position + 1, 10)
            timestamp_ms = base_timestamp_ms + ((number >> 1) ^ -(number & 1))
            # The offset delta.
            number = data[position]
            if number < 128:
                position += 1
            elif (second := data[position + 1]) < 128:
                number += second - 1 << 7
                position += 2
            else:
                number, position = _long_varint(data, position, 5)
            offset = base_offset + ((number >> 1) ^ -(number & 1))
            # Key, value, headers.
            number = data[position]
            if number < 128:
                position += 1
            else:
                number, position = _long_varint(data, position, 5)
            if number & 1:
                key = None
            else:
                start = position
                position += number >> 1
                key = whole[start:position] if is_bytes else bytes(data[start:position])
            number = data[position]
            if number < 128:
                position += 1
            elif (second := data[position + 1]) < 128:
                number += second - 1 << 7
                position += 2
            else:
                number, position = _long_varint(data, position, 5)
            if number & 1:
                value = None
            else:
                start = position
                position += number >> 1
                value = whole[start:position] if is_bytes else bytes(data[start:position])
            if data[position]:
                headers, position = _read_headers(data, position)
            else:
                headers = ()
                position += 1
            if position + position != twice_stop and sized:
                raise InvalidRecordsError(f"record {index} has a size that is not that of its parts")
            yield offset, timestamp_ms, key, value, headers
    except IndexError:
        raise InvalidRecordsError("the records reach beyond the batch") from None


def write_records(records: Iterable[Record], *, base_offset: int, base_timestamp_ms: int) -> bytes:
    """The bytes of ``records``, as they follow a batch's header."""
    parts = bytearray()  # not a list: for millions of records it would take a hundred times the memory
    for offset, timestamp_ms, key, value, headers in records:
        parts += encode_record(offset - base_offset, timestamp_ms - base_timestamp_ms, key, value, headers)
    return bytes(parts)


def encode_record(
    offset_delta: int,
    timestamp_delta_ms: int,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[tuple[str, bytes | None]] = (),
) -> bytes:
    """The bytes of one record, with its size. Small varints come from a table, because a producer does this for every
    record."""
    small = _SMALL
    body = [
        b"\0",
        small[timestamp_delta_ms] if 0 <= timestamp_delta_ms < _SMALL_END else varint(timestamp_delta_ms),
        small[offset_delta] if 0 <= offset_delta < _SMALL_END else varint(offset_delta),
    ]
    if key is None:
        body.append(_NULL)
    else:
        size = len(key)
        body += (small[size] if size < _SMALL_END else varint(size), key)
    if value is None:
        body.append(_NULL)
    else:
        size = len(value)
        body += (small[size] if size < _SMALL_END else varint(size), value)
    if headers:
        body.append(varint(len(headers)))
        for name, content in headers:
            _add_bytes(body, name.encode())
            _add_bytes(body, content)
    else:
        body.append(b"\0")
    record = b"".join(body)
    size = len(record)
    return (small[size] if size < _SMALL_END else varint(size)) + record


def encode_plain_record(offset_delta: int, key: bytes, value: bytes | None) -> bytes:
    """``encode_record`` for a record with its batch's timestamp and without headers, as nearly all records of coordinators."""
    if value is None or offset_delta >= _SMALL_END or len(key) + len(value) > _SMALL_END - _PLAIN_OVERHEAD:
        return encode_record(offset_delta, 0, key, value)
    small = _SMALL
    record = b"".join((b"\0\0", small[offset_delta], small[len(key)], key, small[len(value)], value, b"\0"))
    return small[len(record)] + record


def varint(number: int) -> bytes:
    """``number`` as a zigzag varint."""
    rest = (number << 1) ^ (number >> 63)
    if rest < 128:
        return _ONE_BYTE[rest]
    out = bytearray()
    while rest > 127:
        out.append(rest & 127 | 128)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def read_varint(data: Buffer, position: int) -> tuple[int, int]:
    """(number, position behind it) of the 32-bit varint at ``position``. Raises InvalidRecordsError, IndexError."""
    return _read_zigzag(data, position, 5)


def read_varlong(data: Buffer, position: int) -> tuple[int, int]:
    """(number, position behind it) of the 64-bit varint at ``position``. Raises InvalidRecordsError, IndexError."""
    return _read_zigzag(data, position, 10)


_ONE_BYTE = [bytes([number]) for number in range(128)]
_SMALL_END = 8192
_SMALL = [varint(number) for number in range(_SMALL_END)]
"""Numbers of one or two bytes."""
_NULL = _ONE_BYTE[1]
_PLAIN_OVERHEAD = 12  # an upper bound of the other bytes of a record without headers


_ZIGZAG = [(number >> 1) ^ -(number & 1) for number in range(128)]
_ONE_BYTE_DELTAS, _TWO_BYTE_DELTAS = 64, 8192
_OFFSET_DELTAS = (
    bytes(range(0, 128, 2)) + bytes(number & 127 | 128 for number in range(128, 2 * _TWO_BYTE_DELTAS, 2)),
    bytes(number >> 7 for number in range(0, 2 * _TWO_BYTE_DELTAS, 2)),
)
"""The first and the second byte of the varints from 0 on."""


def _read_zigzag(data: Buffer, position: int, most_bytes: int) -> tuple[int, int]:
    number, position = _long_varint(data, position, most_bytes)
    return (number >> 1) ^ -(number & 1), position


def _long_varint(data: Buffer, position: int, most_bytes: int) -> tuple[int, int]:
    """(number, still in zigzag; position after it) of the varint at ``position``, of any length.

    ``_validate`` and ``_walk`` call this only for more than two bytes, or a key of more than 63: the calls would take most of
    their time.
    """
    number = shift = 0
    for _ in range(most_bytes):
        byte = data[position]
        position += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number & (0xFFFFFFFF if most_bytes == 5 else 0xFFFFFFFFFFFFFFFF), position
        shift += 7
    raise InvalidRecordsError(f"a number of more than {most_bytes} bytes")


def _skip_headers(data: Buffer, position: int) -> int:
    """The position behind the headers whose count is at ``position``."""
    count, position = read_varint(data, position)
    _check_header_count(data, position, count)
    for _ in range(count):
        size, position = read_varint(data, position)
        if size < 0:
            raise InvalidRecordsError(f"a header whose key has {size} bytes")
        size, position = read_varint(data, position + size)
        position += max(size, 0)
    return position


def _check_header_count(data: Buffer, position: int, count: int) -> None:
    if not 0 <= count <= len(data) - position:
        raise InvalidRecordsError(f"{count} headers where {len(data) - position} bytes are left")


def _read_bytes(data: Buffer, position: int) -> tuple[bytes | None, int]:
    size, position = read_varint(data, position)
    if size < 0:
        return None, position
    if position + size > len(data):
        raise IndexError
    return bytes(data[position : position + size]), position + size


def _read_headers(data: Buffer, position: int) -> tuple[tuple[Header, ...], int]:
    count, position = read_varint(data, position)
    _check_header_count(data, position, count)
    headers = []
    for _ in range(count):
        key, position = _read_bytes(data, position)
        value, position = _read_bytes(data, position)
        headers.append(Header((key or b"").decode("utf-8", "replace"), value))
    return tuple(headers), position


def _add_bytes(parts: list[bytes], data: bytes | None) -> None:
    if data is None:
        parts.append(_NULL)
    else:
        parts += (varint(len(data)), data)
