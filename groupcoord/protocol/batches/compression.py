"""Compression and decompression of record batches (gzip, snappy, lz4, zstd), in the framings of Kafka's clients.

Snappy has the block framing of Java's ``SnappyOutputStream`` (xerial), as all clients write it; raw snappy is read too, as by
Java. The others have their standard formats: gzip, LZ4 frames, Zstandard. Kafka reads LZ4 frames with independent blocks only.
It stops at the end mark, and checks neither what follows nor checksum and size of the content. The unpacked sizes of LZ4 and
Zstandard frames are determined from their headers.
Sources: ``org.apache.kafka.common.compress``, ``Lz4BlockInputStream``; the LZ4 frame format, XXH32; RFC 8878.
"""

import enum
import mmap
import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

import cramjam

# Deviation (unpacked-size-limit): Kafka reads a compressed batch as a stream without a limit. Here the unpacked records are in
# memory as a whole, so their size is limited; no producer within socket.request.max.bytes comes near this. For the same reason
# a response lists at most 10,000 rejected records of a batch.
UNPACKED_LIMIT = 100 * 1024 * 1024

_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_WINDOW_BITS = 31  # zlib's way to ask for gzip
_SMALLEST_GZIP_BYTES = 18  # of header and trailer
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_VERSIONS = struct.pack(">ii", 1, 1)
_XERIAL_HEADER_BYTES = 16
_XERIAL_BLOCK_BYTES = 32 * 1024
_INT32 = struct.Struct(">i")
_SMALL_BYTES = 64 * 1024
_PIECE_BYTES = 1024 * 1024
_FULL = "failed to write whole buffer"


class Compression(enum.IntEnum):
    """How the records of a batch are compressed: the lowest three bits of its attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class CompressionError(ValueError):
    """The bytes are invalid for their compression, or unpack to more than UNPACKED_LIMIT bytes."""


_CODECS: dict[Compression, Any] = {
    Compression.GZIP: cramjam.gzip,
    Compression.ZSTD: cramjam.zstd,
}
_LZ4_MOST_OF_ONE = 256
"""The maximum expansion of one byte: it lengthens a copy by 255."""
# Two bits of deflate can expand to 258 bytes; a copy of snappy has three bytes and expands to 64.
_MOST_OF_ONE = {Compression.NONE: 1, Compression.GZIP: 1032, Compression.SNAPPY: 22}


def max_unpacked_bytes(compression: Compression, data: memoryview) -> int:
    """An upper bound of the unpacked size of ``data``, without unpacking it; often far too high."""
    if compression == Compression.ZSTD:
        return most_content(data, UNPACKED_LIMIT)
    if compression == Compression.LZ4:
        try:
            return min(_find_blocks(data).most_bytes, UNPACKED_LIMIT)
        except ValueError:
            return 0  # it cannot be unpacked
    return min(_MOST_OF_ONE[compression] * len(data), UNPACKED_LIMIT)


def decompress(compression: Compression, data: bytes | memoryview) -> bytes | memoryview:
    """The unpacked ``data``. Raises CompressionError.

    Large data is unpacked into one memory map of the size of the limit, whose untouched pages take no memory: nothing is
    resized or copied, and other threads run meanwhile.
    """
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


def _decompress_gzip(data: bytes | memoryview) -> bytes | memoryview:
    """Unpack member by member; ignore bytes behind the last member that are too short for another one, or no member."""
    room = _BoundedOutput()
    left: bytes | memoryview = data
    first = True
    while first or (len(left) > _SMALLEST_GZIP_BYTES and left[: len(_GZIP_MAGIC)] == _GZIP_MAGIC):
        member = zlib.decompressobj(_GZIP_WINDOW_BITS)
        before = room.used
        while not member.eof and (piece := member.decompress(left, _PIECE_BYTES)):
            room.add(piece)
            left = member.unconsumed_tail
        if not member.eof:
            if not first and room.used > before:
                break  # Java sees the surplus bytes before the missing ones
            raise CompressionError("gzip: cut short")
        left, first = member.unused_data, False
    return room.content()


class _BoundedOutput:
    """Collects unpacked pieces. Raises CompressionError for more than the limit."""

    def __init__(self) -> None:
        self.used = 0
        self._pieces: list[bytes] = []
        self._large: mmap.mmap | None = None

    def add(self, piece: bytes) -> None:
        """Add ``piece``."""
        self.used += len(piece)
        if self.used > UNPACKED_LIMIT:
            raise _too_much()
        if self._large is None:
            self._pieces.append(piece)
            if self.used <= _PIECE_BYTES:
                return
            self._large = _large_buffer()
            piece = b"".join(self._pieces)
            self._pieces.clear()
        self._large[self.used - len(piece) : self.used] = piece

    def content(self) -> bytes | memoryview:
        """All pieces, joined."""
        return b"".join(self._pieces) if self._large is None else memoryview(self._large)[: self.used]


def _large_buffer() -> mmap.mmap:
    """A buffer as large as the limit, in huge pages: one is allocated in the time of a small page."""
    large = mmap.mmap(-1, UNPACKED_LIMIT)
    with suppress(OSError):  # a kernel that has none
        large.madvise(getattr(mmap, "MADV_HUGEPAGE", mmap.MADV_NORMAL))
    return large


def _too_much() -> CompressionError:
    return CompressionError(f"more than {UNPACKED_LIMIT} bytes unpacked")


def _decompress_zstd(data: bytes | memoryview) -> bytes | memoryview:
    """Unpack frame by frame. If only a later frame is incomplete, the result is the contents of the earlier ones."""
    if not data:
        return b""
    try:
        return _decompress_bounded(cramjam.zstd, data)
    except cramjam.DecompressionError as problem:
        if "incomplete frame" not in str(problem) or not begins_with_a_whole_frame(memoryview(data)):
            raise
        stream = cramjam.zstd.Decompressor()
        with suppress(OSError):  # the same error again
            stream.decompress(bytes(data))
        return bytes(stream.flush())


def _decompress_bounded(codec: Any, data: bytes | memoryview) -> bytes | memoryview:
    """Unpack into a small buffer; if it is too small, into one as large as the limit."""
    small = bytearray(min(max(_SMALL_BYTES, 4 * len(data)), UNPACKED_LIMIT))
    try:
        used = codec.decompress_into(data, small)
    except cramjam.DecompressionError as problem:
        if _FULL not in str(problem):
            raise
    else:
        with memoryview(small) as view:
            return bytes(view[:used])
    large = _large_buffer()
    try:
        used = codec.decompress_into(data, large)
    except cramjam.DecompressionError as problem:
        if _FULL not in str(problem):
            raise
        raise _too_much() from problem
    return memoryview(large)[:used]


def _decompress_snappy(data: bytes) -> bytes | memoryview:
    room = _BoundedOutput()
    if not data.startswith(_XERIAL_MAGIC):
        _decompress_raw_snappy(data, room)
        return room.content()
    position = _XERIAL_HEADER_BYTES
    while position + _INT32.size <= len(data):
        if data[position : position + _INT32.size] == _XERIAL_MAGIC[: _INT32.size]:
            position += _XERIAL_HEADER_BYTES  # another stream begins
            if position > len(data):
                raise CompressionError("snappy: a header that is cut short")
            continue
        block = data[position + 4 : position + 4 + _block_size(data, position)]
        _decompress_raw_snappy(block, room)
        position += 4 + len(block)
    return room.content()


def _block_size(data: bytes, position: int) -> int:
    left = len(data) - position - _INT32.size
    size = _INT32.unpack_from(data, position)[0]
    if not 0 <= size <= left:
        raise CompressionError(f"snappy: a block of {size} bytes where {left} are left")
    return int(size)


def _decompress_raw_snappy(block: bytes, room: _BoundedOutput) -> None:
    if room.used + cramjam.snappy.decompress_raw_len(block) > UNPACKED_LIMIT:
        raise _too_much()
    room.add(bytes(cramjam.snappy.decompress_raw(block)))


def _snappy_blocks(data: bytes) -> Iterator[bytes]:
    for position in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[position : position + _XERIAL_BLOCK_BYTES]))
        yield _INT32.pack(len(block)) + block


_LZ4_MAGIC = b"\x04\x22\x4d\x18"
_DESCRIPTOR_BYTES = 2
_LZ4_CONTENT_SIZE_BYTES = 8
_END_MARK = bytes(4)

# Bits of the descriptor's first byte.
_RESERVED, _CONTENT_CHECKSUM, _CONTENT_SIZE, _BLOCK_CHECKSUM, _INDEPENDENT, _VERSION = (
    0x03,
    0x04,
    0x08,
    0x10,
    0x20,
    0xC0,
)
_VERSION_1 = 0x40
_UNCOMPRESSED = 0x8000_0000

_LE_INT32 = struct.Struct("<I")
_MASK = 0xFFFF_FFFF
_PRIME_1, _PRIME_2, _PRIME_3, _PRIME_4, _PRIME_5 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1


class _Blocks(NamedTuple):
    """The blocks of an LZ4 frame, and its descriptor's flags; ``most_bytes`` is an upper bound of their unpacked size."""

    flags: int
    sizes: int
    start: int
    end: int
    most_bytes: int


def readable_frame(data: memoryview) -> bytes:
    """A plain frame with the blocks that Kafka would read in ``data``. Raises ValueError if Kafka would refuse them."""
    flags, sizes, start, end, _ = _find_blocks(data)
    descriptor = bytes([flags & (_VERSION | _INDEPENDENT | _BLOCK_CHECKSUM), sizes])
    return b"".join((_LZ4_MAGIC, descriptor, bytes([_header_checksum(descriptor)]), data[start:end], _END_MARK))


def _find_blocks(data: memoryview) -> _Blocks:
    """The blocks that Kafka would read in ``data``. Raises ValueError if it would refuse them."""
    if len(data) < 6 or data[:4] != _LZ4_MAGIC:
        raise ValueError("no LZ4 frame")
    flags, sizes = data[4], data[5]
    if flags & _RESERVED or flags & _VERSION != _VERSION_1 or sizes & 0x8F or sizes >> 4 < 4:
        raise ValueError("an LZ4 frame with a header of another version")
    if not flags & _INDEPENDENT:
        raise ValueError("an LZ4 frame whose blocks refer to each other")
    start = 4 + _DESCRIPTOR_BYTES + (_LZ4_CONTENT_SIZE_BYTES if flags & _CONTENT_SIZE else 0)
    if len(data) <= start or data[start] != _header_checksum(bytes(data[4:start])):
        raise ValueError("an LZ4 frame with a wrong checksum of its header")
    end, most_bytes = _end_of_blocks(data, start + 1, flags, largest=1 << 2 * (sizes >> 4) + 8)
    return _Blocks(flags, sizes, start + 1, end, most_bytes)


def _end_of_blocks(data: memoryview, position: int, flags: int, *, largest: int) -> tuple[int, int]:
    """The position of the end mark, and an upper bound of the unpacked size of the blocks before it."""
    behind = 4 if flags & _BLOCK_CHECKSUM else 0
    most_bytes = 0
    while position + 4 <= len(data):
        size = _LE_INT32.unpack_from(data, position)[0] & ~_UNCOMPRESSED
        if size == 0:
            if flags & _CONTENT_CHECKSUM and position + 8 > len(data):
                break
            return position, most_bytes
        if size > largest:
            raise ValueError(f"an LZ4 block of {size} bytes where {largest} are the most")
        most_bytes += min(_LZ4_MOST_OF_ONE * size, largest)
        position += 4 + size + behind
    raise ValueError("an LZ4 frame without an end")


@lru_cache(maxsize=16)  # the clients of a broker have the same few
def _header_checksum(descriptor: bytes) -> int:
    """The second byte of the XXH32 of ``descriptor``, for less than 16 bytes; longer input would need more steps."""
    value = _PRIME_5 + len(descriptor)
    whole = len(descriptor) // 4 * 4
    for (word,) in _LE_INT32.iter_unpack(descriptor[:whole]):
        value = _rotated(value + word * _PRIME_3, 17) * _PRIME_4
    for byte in descriptor[whole:]:
        value = _rotated(value + byte * _PRIME_5, 11) * _PRIME_1
    value &= _MASK
    value = (value ^ value >> 15) * _PRIME_2 & _MASK
    value = (value ^ value >> 13) * _PRIME_3 & _MASK
    return (value ^ value >> 16) >> 8 & 0xFF


def _rotated(value: int, bits: int) -> int:
    value &= _MASK
    return (value << bits | value >> 32 - bits) & _MASK


_ZSTD_MAGIC = 0xFD2FB528
_SKIPPABLE_MAGIC, _SKIPPABLE_MASK = 0x184D2A50, 0xFFFFFFF0
_ZSTD_CHECKSUM, _SINGLE_SEGMENT = 0x04, 0x20
_DICTIONARY_BYTES = (0, 1, 2, 4)
_ZSTD_CONTENT_SIZE_BYTES = (0, 2, 4, 8)
_RLE, _COMPRESSED = 1, 2
_LARGEST_BLOCK = 128 * 1024


def begins_with_a_whole_frame(data: memoryview) -> bool:
    """Is the first frame in ``data`` complete?"""
    try:
        return _end_of_frame(data)[0] <= len(data)
    except IndexError:
        return False


def most_content(data: memoryview, limit: int) -> int:
    """An upper bound of the contents of the frames in ``data`` in bytes, at most ``limit``."""
    content = position = 0
    try:
        while position < len(data) and content < limit:
            position, more = _end_of_frame(data, position, limit - content)
            content += more
    except IndexError:
        return limit  # unpacking will find the error
    return min(content, limit)


def _end_of_frame(data: memoryview, start: int = 0, enough: int = 1 << 63) -> tuple[int, int]:
    """(the end of the frame at ``start``, perhaps beyond the end of ``data``; an upper bound of its contents in bytes).

    Stops when the bound reaches ``enough``. Raises IndexError if the end cannot be determined.
    """
    magic = int.from_bytes(data[start : start + 4], "little")
    if magic & _SKIPPABLE_MASK == _SKIPPABLE_MAGIC:
        return start + 8 + _number(data, start + 4, 4), 0
    if magic != _ZSTD_MAGIC:
        raise IndexError
    descriptor = data[start + 4]
    single = descriptor & _SINGLE_SEGMENT
    size_bytes = _ZSTD_CONTENT_SIZE_BYTES[descriptor >> 6] or (1 if single else 0)
    position = start + 5 + (0 if single else 1) + _DICTIONARY_BYTES[descriptor & 3] + size_bytes
    last = content = 0
    while not last and content < enough:
        block = _number(data, position, 3)
        last, kind, size = block & 1, block >> 1 & 3, block >> 3
        position += 3 + (1 if kind == _RLE else size)
        content += _LARGEST_BLOCK if kind == _COMPRESSED else size
    return position + (4 if descriptor & _ZSTD_CHECKSUM else 0), content


def _number(data: memoryview, position: int, size: int) -> int:
    if position + size > len(data):
        raise IndexError
    return int.from_bytes(data[position : position + size], "little")
