"""LZ4 frames that a Kafka broker reads, and the size of Zstandard frames, both told from their headers.

Kafka reads LZ4 frames whose blocks do not refer to each other. It stops at the end mark, and checks neither what follows nor
the checksum and the size of the content. Sources: ``Lz4BlockInputStream``; the LZ4 frame format, XXH32; RFC 8878.
"""

import struct

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

_INT32 = struct.Struct("<I")
_MASK = 0xFFFF_FFFF
_PRIME_1, _PRIME_2, _PRIME_3, _PRIME_4, _PRIME_5 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1


def readable_frame(data: memoryview) -> bytes:
    """A plain frame of the blocks that Kafka would read in ``data``. Raises ValueError if Kafka would refuse them."""
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
    end = _end_of_blocks(data, start + 1, flags, largest=1 << 2 * (sizes >> 4) + 8)
    descriptor = bytes([flags & (_VERSION | _INDEPENDENT | _BLOCK_CHECKSUM), sizes])
    return b"".join((_LZ4_MAGIC, descriptor, bytes([_header_checksum(descriptor)]), data[start + 1 : end], _END_MARK))


def _end_of_blocks(data: memoryview, position: int, flags: int, *, largest: int) -> int:
    """Where the end mark stands."""
    behind = 4 if flags & _BLOCK_CHECKSUM else 0
    while position + 4 <= len(data):
        size = _INT32.unpack_from(data, position)[0] & ~_UNCOMPRESSED
        if size == 0:
            if flags & _CONTENT_CHECKSUM and position + 8 > len(data):
                break
            return position
        if size > largest:
            raise ValueError(f"an LZ4 block of {size} bytes where {largest} are the most")
        position += 4 + size + behind
    raise ValueError("an LZ4 frame without an end")


def _header_checksum(descriptor: bytes) -> int:
    """The second byte of the XXH32 of ``descriptor``, which is shorter than the 16 bytes from which on there is more to it."""
    value = _PRIME_5 + len(descriptor)
    whole = len(descriptor) // 4 * 4
    for (word,) in _INT32.iter_unpack(descriptor[:whole]):
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
    """Does the first frame in ``data`` end there?"""
    try:
        return _end_of_frame(data)[0] <= len(data)
    except IndexError:
        return False


def most_content(data: memoryview, limit: int) -> int:
    """The most bytes that the frames in ``data`` can hold, at most ``limit``."""
    content = position = 0
    try:
        while position < len(data) and content < limit:
            position, more = _end_of_frame(data, position, limit - content)
            content += more
    except IndexError:
        return limit  # unpacking will find the error
    return min(content, limit)


def _end_of_frame(data: memoryview, start: int = 0, enough: int = 1 << 63) -> tuple[int, int]:
    """(where the frame at ``start`` ends, perhaps beyond the end of ``data``; the most bytes that can be in it).

    It is looked at no further when there is ``enough`` in it. Raises IndexError if its end cannot be told.
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
