"""The four compressions of record batches, as Kafka's clients frame them.

Snappy comes in the block framing of Java's ``SnappyOutputStream`` (xerial), as every client writes it; raw snappy is read
too, as Java reads it. The others are what their formats say: gzip, LZ4 frames, Zstandard.
Source: ``org.apache.kafka.common.compress``.
"""

import enum
import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import cramjam

from groupcoord.protocol.lz4_frames import readable_frame
from groupcoord.protocol.zstd_frames import begins_with_a_whole_frame

# Deviation (unpacked-size-limit): Kafka reads a compressed batch as a stream and sets no limit. What is unpacked here is held
# whole, so that a few bytes must not unpack to a machine's memory; no producer that keeps within socket.request.max.bytes comes
# near this.
UNPACKED_LIMIT = 100 * 1024 * 1024

_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_WINDOW_BITS = 31  # zlib's way to ask for gzip
_SMALLEST_GZIP_BYTES = 18  # of header and trailer
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
    Compression.ZSTD: cramjam.zstd,
}


def decompress(compression: Compression, data: bytes | memoryview) -> bytes:
    """What ``data`` unpacks to. Raises CompressionError."""
    if compression == Compression.NONE:
        return bytes(data)
    try:
        if compression == Compression.GZIP:
            return _decompress_gzip(data)
        if compression == Compression.SNAPPY:
            return _decompress_snappy(bytes(data))
        if compression == Compression.LZ4:
            return _decompress_bounded(cramjam.lz4, readable_frame(memoryview(data)))
        return _decompress_zstd(data)
    except CompressionError:
        raise
    except (cramjam.DecompressionError, zlib.error, ValueError) as problem:
        raise CompressionError(f"{compression.name.lower()}: {problem}") from problem


def compress(compression: Compression, data: bytes, level: int | None = None) -> bytes:
    """``data``, compressed; ``level`` is the codec's own and None its default. Snappy has no levels."""
    if compression == Compression.NONE:
        return data
    if compression == Compression.SNAPPY:
        return _XERIAL_MAGIC + _XERIAL_VERSIONS + b"".join(_snappy_blocks(data))
    if compression == Compression.LZ4:
        return _compress_lz4(data, level)
    return bytes(_CODECS[compression].compress(data, level))


def _compress_lz4(data: bytes, level: int | None) -> bytes:
    """Java reads only frames whose blocks do not refer to each other."""
    compressor = cramjam.lz4.Compressor(level, content_checksum=False, block_linked=False)
    compressor.compress(data)
    return bytes(compressor.finish())


def _decompress_gzip(data: bytes | memoryview) -> bytes:
    """Member by member. Something behind the last that is too short for another, or begins otherwise, is not looked at."""
    members: list[bytes] = []
    unpacked = 0
    left: bytes | memoryview = data
    while not members or (len(left) > _SMALLEST_GZIP_BYTES and left[: len(_GZIP_MAGIC)] == _GZIP_MAGIC):
        member = zlib.decompressobj(_GZIP_WINDOW_BITS)
        members.append(member.decompress(left, UNPACKED_LIMIT - unpacked + 1))
        unpacked += len(members[-1])
        if unpacked > UNPACKED_LIMIT:
            raise CompressionError(f"more than {UNPACKED_LIMIT} bytes unpacked")
        if not member.eof:
            if len(members) > 1 and members[-1]:
                break  # Java comes upon these bytes, which are too many, before it misses the rest
            raise CompressionError("gzip: cut short")
        left = member.unused_data
    return b"".join(members)


def _decompress_zstd(data: bytes | memoryview) -> bytes:
    """Frame by frame; no frame at all is nothing. What came out counts, if only a later frame is cut short."""
    if not data:
        return b""
    try:
        return _decompress_bounded(cramjam.zstd, data)
    except cramjam.DecompressionError as problem:
        if "incomplete frame" not in str(problem) or not begins_with_a_whole_frame(memoryview(data)):
            raise
        stream = cramjam.zstd.Decompressor()
        with suppress(OSError):  # which says the same once more
            stream.decompress(bytes(data))
        return bytes(stream.flush())


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
    while position + _INT32.size <= len(data):
        if data[position : position + _INT32.size] == _XERIAL_MAGIC[: _INT32.size]:
            position += _XERIAL_HEADER_BYTES  # another stream begins
            if position > len(data):
                raise CompressionError("snappy: a header that is cut short")
            continue
        block = data[position + 4 : position + 4 + _block_size(data, position)]
        blocks.append(_decompress_raw_snappy(block, unpacked))
        unpacked += len(blocks[-1])
        position += 4 + len(block)
    return b"".join(blocks)


def _block_size(data: bytes, position: int) -> int:
    left = len(data) - position - _INT32.size
    size = _INT32.unpack_from(data, position)[0]
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
