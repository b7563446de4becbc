"""The four compressions of record batches, as Kafka's clients frame them.

Snappy comes in the block framing of Java's ``SnappyOutputStream`` (xerial), as every client writes it; raw snappy is read
too, as Java reads it. The others are what their formats say: gzip, LZ4 frames, Zstandard.
Source: ``org.apache.kafka.common.compress``.
"""

import enum
import struct
from collections.abc import Iterator
from typing import Any

import cramjam

# Deviation: Kafka reads a compressed batch as a stream and sets no limit. What is unpacked here is held whole, so that a few
# bytes must not unpack to a machine's memory; no producer that keeps within socket.request.max.bytes comes near this.
UNPACKED_LIMIT = 100 * 1024 * 1024

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_VERSIONS = struct.pack(">ii", 1, 1)
_XERIAL_HEADER_BYTES = 16
_XERIAL_BLOCK_BYTES = 32 * 1024
_INT32 = struct.Struct(">i")
_SMALLEST_BUFFER = 64 * 1024


class Compression(enum.IntEnum):
    """How the records of a batch are compressed: the lowest three bits of its attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class CompressionError(ValueError):
    """The bytes are not what their compression says, or unpack to more than UNPACKED_LIMIT bytes."""


_CODECS: dict[Compression, Any] = {
    Compression.GZIP: cramjam.gzip,
    Compression.LZ4: cramjam.lz4,
    Compression.ZSTD: cramjam.zstd,
}


def decompress(compression: Compression, data: bytes | memoryview) -> bytes:
    """What ``data`` unpacks to. Raises CompressionError."""
    if compression == Compression.NONE:
        return bytes(data)
    try:
        if compression == Compression.SNAPPY:
            return _decompress_snappy(bytes(data))
        return _decompress_bounded(_CODECS[compression], data)
    except cramjam.DecompressionError as problem:
        raise CompressionError(f"{compression.name.lower()}: {problem}") from problem


def compress(compression: Compression, data: bytes, level: int | None = None) -> bytes:
    """``data``, compressed; ``level`` is the codec's own and None its default. Snappy has no levels."""
    if compression == Compression.NONE:
        return data
    if compression == Compression.SNAPPY:
        return _XERIAL_MAGIC + _XERIAL_VERSIONS + b"".join(_snappy_blocks(data))
    return bytes(_CODECS[compression].compress(data, level))


def _decompress_bounded(codec: Any, data: bytes | memoryview) -> bytes:
    """Unpack into a buffer that grows as needed, because how much comes out is known only afterwards."""
    size = max(_SMALLEST_BUFFER, 4 * len(data))
    while True:
        size = min(size, UNPACKED_LIMIT)
        buffer = bytearray(size)
        try:
            used = codec.decompress_into(data, buffer)
        except cramjam.DecompressionError as problem:
            if "failed to write whole buffer" not in str(problem):
                raise
            if size == UNPACKED_LIMIT:
                raise CompressionError(f"more than {UNPACKED_LIMIT} bytes unpacked") from problem
            size *= 4
        else:
            with memoryview(buffer) as view:
                return bytes(view[:used])


def _decompress_snappy(data: bytes) -> bytes:
    if not data.startswith(_XERIAL_MAGIC):
        return _decompress_raw_snappy(data, 0)
    blocks = []
    position, unpacked = _XERIAL_HEADER_BYTES, 0
    while position < len(data):
        block = data[position + 4 : position + 4 + _block_size(data, position)]
        blocks.append(_decompress_raw_snappy(block, unpacked))
        unpacked += len(blocks[-1])
        position += 4 + len(block)
    return b"".join(blocks)


def _block_size(data: bytes, position: int) -> int:
    left = len(data) - position - 4
    size = _INT32.unpack_from(data, position)[0] if left >= 0 else -1
    if not 0 <= size <= left:
        raise CompressionError(f"snappy: a block of {size} bytes where {left} are left")
    return int(size)


def _decompress_raw_snappy(block: bytes, unpacked_before: int) -> bytes:
    if unpacked_before + cramjam.snappy.decompress_raw_len(block) > UNPACKED_LIMIT:
        raise CompressionError(f"more than {UNPACKED_LIMIT} bytes unpacked")
    return bytes(cramjam.snappy.decompress_raw(block))


def _snappy_blocks(data: bytes) -> Iterator[bytes]:
    for position in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[position : position + _XERIAL_BLOCK_BYTES]))
        yield _INT32.pack(len(block)) + block
