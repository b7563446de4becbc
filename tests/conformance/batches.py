"""Record batches, built by hand and taken apart again: the second opinion on what groupcoord's own code makes of them.

Layout of magic 2: ``DefaultRecordBatch``; of magic 0 and 1: ``LegacyRecord``. Every field can be given a wrong value.
"""

import gzip
import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import cramjam
import crc32c

from tests.conformance.plain import text_of

# What story records carry as their time: long ago and equal in every run.
THEN_MS = 1_700_000_000_000
_HEADER = struct.Struct(">qiibIhiqqqhii")
_AFTER_CRC = struct.Struct(">hiqqqhii")


@dataclass(frozen=True)
class Rec:
    """One record: what a producer says of it."""

    value: bytes | None
    key: bytes | None = None
    timestamp_ms: int = THEN_MS
    headers: tuple[tuple[str, bytes | None], ...] = ()


def varint(value: int) -> bytes:
    """Zigzag, then seven bits per byte."""
    zigzag = (value << 1) ^ (value >> 63)
    zigzag &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while zigzag > 0x7F:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    out.append(zigzag)
    return bytes(out)


def _chunk(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def _xerial(data: bytes) -> bytes:
    """Snappy as Java's SnappyOutputStream frames it; raw snappy is not what a broker reads."""
    block = bytes(cramjam.snappy.compress_raw(data))
    return b"\x82SNAPPY\x00" + struct.pack(">iii", 1, 1, len(block)) + block


def _lz4(data: bytes, *, linked: bool, content_checksum: bool = True) -> bytes:
    compressor = cramjam.lz4.Compressor(block_linked=linked, content_checksum=content_checksum)
    compressor.compress(data)
    return bytes(compressor.finish())


def linked_lz4(data: bytes) -> bytes:
    """LZ4 whose blocks refer to earlier ones: good LZ4, but not what Kafka's Java reader takes."""
    return _lz4(data, linked=True)


def independent_lz4(*, content_checksum: bool) -> Callable[[bytes], bytes]:
    """LZ4 as Kafka's Java reader takes it, with or without a checksum of the content."""
    return lambda data: _lz4(data, linked=False, content_checksum=content_checksum)


def _from_xerial(data: bytes) -> bytes:
    out, at = b"", 16
    while at < len(data):
        (size,) = struct.unpack_from(">i", data, at)
        out += bytes(cramjam.snappy.decompress_raw(data[at + 4 : at + 4 + size]))
        at += 4 + size
    return out


COMPRESSORS: dict[int, Callable[[bytes], bytes]] = {
    0: lambda data: data,
    1: lambda data: gzip.compress(data, mtime=0),
    2: _xerial,
    3: lambda data: _lz4(data, linked=False),
    4: lambda data: bytes(cramjam.zstd.compress(data)),
}
_DECOMPRESSORS: dict[int, Callable[[bytes], bytes]] = {
    0: lambda data: data,
    1: gzip.decompress,
    2: _from_xerial,
    3: lambda data: bytes(cramjam.lz4.decompress(data)),
    4: lambda data: bytes(cramjam.zstd.decompress(data)),
}


def batch(
    records: Sequence[Rec | bytes],
    *,
    codec: int = 0,
    compressor: Callable[[bytes], bytes] | None = None,
    producer: tuple[int, int, int] = (-1, -1, -1),
    base_offset: int = 0,
    leader_epoch: int = -1,
    magic: int = 2,
    attributes: int = 0,
    count: int | None = None,
    last_offset_delta: int | None = None,
    max_timestamp_ms: int | None = None,
    base_timestamp_ms: int | None = None,
    spoil_crc: bool = False,
    offset_deltas: Sequence[int] | None = None,
    length: int | None = None,
) -> bytes:
    """A batch of ``records``; ``producer`` is (id, epoch, base sequence); the other arguments exist to be wrong."""
    items = [Rec(item) if isinstance(item, bytes) else item for item in records]
    first = items[0].timestamp_ms if items and base_timestamp_ms is None else (base_timestamp_ms or 0)
    deltas = range(len(items)) if offset_deltas is None else offset_deltas
    body = b""
    for delta, item in zip(deltas, items, strict=True):
        record = b"\x00" + varint(item.timestamp_ms - first) + varint(delta) + _chunk(item.key) + _chunk(item.value)
        record += varint(len(item.headers))
        for name, value in item.headers:
            record += _chunk(name.encode()) + _chunk(value)
        body += varint(len(record)) + record
    latest = max((item.timestamp_ms for item in items), default=first)
    tail = _AFTER_CRC.pack(
        attributes | codec,
        len(items) - 1 if last_offset_delta is None else last_offset_delta,
        first,
        latest if max_timestamp_ms is None else max_timestamp_ms,
        *producer,
        len(items) if count is None else count,
    ) + (compressor or COMPRESSORS[codec])(body)
    crc = crc32c.crc32c(tail) ^ (1 if spoil_crc else 0)
    size = 4 + 1 + 4 + len(tail)
    return struct.pack(">qiibI", base_offset, size if length is None else length, leader_epoch, magic, crc) + tail


def old_message(value: bytes, *, magic: int, key: bytes | None = None, timestamp_ms: int = THEN_MS) -> bytes:
    """A message of the formats 0 and 1, which a 4.x broker no longer stores (KIP-724)."""
    body = struct.pack(">bb", magic, 0) + (struct.pack(">q", timestamp_ms) if magic else b"")
    body += struct.pack(">i", -1) if key is None else struct.pack(">i", len(key)) + key
    body += struct.pack(">i", len(value)) + value
    message = struct.pack(">I", zlib.crc32(body)) + body
    return struct.pack(">qi", 0, len(message)) + message


def shown_batches(data: bytes) -> list[Any] | str:
    """The batches in ``data`` with all their fields; bytes that are no batches are shown as they are."""
    try:
        return _batches(data)
    except (IndexError, KeyError, ValueError, struct.error, OSError, EOFError, cramjam.DecompressionError):
        return text_of(data)


def _batches(data: bytes) -> list[Any]:
    shown: list[Any] = []
    at = 0
    while at < len(data):
        if len(data) - at < _HEADER.size or len(data) - at < 12 + struct.unpack_from(">i", data, at + 8)[0]:
            shown.append({"partial batch of bytes": len(data) - at})
            break
        (size,) = struct.unpack_from(">i", data, at + 8)
        if size < _HEADER.size - 12 or data[at + 16] != 2:
            raise ValueError("no batch of magic 2")
        shown.append(_shown_batch(data[at : at + 12 + size]))
        at += 12 + size
    return shown


def _shown_batch(data: bytes) -> dict[str, Any]:
    base_offset, _, epoch, magic, crc, attributes, last, first_ms, latest_ms, pid, producer_epoch, sequence, count = (
        _HEADER.unpack_from(data)
    )
    shown: dict[str, Any] = {
        "base_offset": base_offset,
        "leader_epoch": epoch,
        "magic": magic,
        "crc": "right" if crc == crc32c.crc32c(data[21:]) else "wrong",
        "attributes": attributes,
        "last_offset_delta": last,
        "base_timestamp": first_ms,
        "max_timestamp": latest_ms,
        "producer_id": pid,
        "producer_epoch": producer_epoch,
        "base_sequence": sequence,
    }
    if attributes & 0x20:
        shown["control"] = data[_HEADER.size :].hex()
        return shown
    body = _DECOMPRESSORS[attributes & 7](data[_HEADER.size :])
    shown["records"] = [[*record] for record in read_records(body, count)]
    return shown


def read_records(body: bytes, count: int) -> list[tuple[int, int, str | None, str | None, Any]]:
    """(offset delta, timestamp delta, key, value, headers) of each record in a batch's decompressed ``body``."""
    records = []
    at = 0
    for _ in range(count):
        _, at = _read_varint(body, at)
        at += 1  # attributes, unused
        timestamp, at = _read_varint(body, at)
        delta, at = _read_varint(body, at)
        key, at = _read_chunk(body, at)
        value, at = _read_chunk(body, at)
        header_count, at = _read_varint(body, at)
        headers = []
        for _ in range(header_count):
            name, at = _read_chunk(body, at)
            header, at = _read_chunk(body, at)
            headers.append([_text(name), _text(header)])
        records.append((delta, timestamp, _text(key), _text(value), headers))
    return records


def raw_records(data: bytes) -> list[tuple[int, bytes | None, bytes | None]]:
    """(offset, key, value) of every record in whole, uncompressed, data batches: how ``__consumer_offsets`` is read."""
    found = []
    start = 0
    while start + _HEADER.size <= len(data):
        base_offset, size = struct.unpack_from(">qi", data, start)
        attributes, count = _HEADER.unpack_from(data, start)[5], _HEADER.unpack_from(data, start)[12]
        if start + 12 + size > len(data):
            break
        at = start + _HEADER.size
        for _ in range(0 if attributes & 0x20 else count):
            _, at = _read_varint(data, at)
            at += 1
            _, at = _read_varint(data, at)
            delta, at = _read_varint(data, at)
            key, at = _read_chunk(data, at)
            value, at = _read_chunk(data, at)
            _, at = _read_varint(data, at)
            found.append((base_offset + delta, key, value))
        start += 12 + size
    return found


def end_of(data: bytes, start_offset: int) -> int:
    """The offset behind the last whole batch in ``data``, or ``start_offset``."""
    end, at = start_offset, 0
    while at + _HEADER.size <= len(data):
        base_offset, size = struct.unpack_from(">qi", data, at)
        if at + 12 + size > len(data):
            break
        end = base_offset + _HEADER.unpack_from(data, at)[6] + 1
        at += 12 + size
    return end


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
        shift += 7


def _read_chunk(data: bytes, at: int) -> tuple[bytes | None, int]:
    size, at = _read_varint(data, at)
    return (None, at) if size < 0 else (data[at : at + size], at + size)


def _text(data: bytes | None) -> str | None:
    return None if data is None else text_of(data)
