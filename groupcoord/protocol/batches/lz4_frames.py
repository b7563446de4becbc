"""Which LZ4 frames a Kafka broker reads: not all, and some that are none.

It wants blocks that do not refer to each other. It stops at the end mark and looks neither at what follows nor at the
checksum and the size of the content. Source: ``Lz4BlockInputStream``; the LZ4 frame format, XXH32.
"""

import struct

_MAGIC = b"\x04\x22\x4d\x18"
_DESCRIPTOR_BYTES = 2
_CONTENT_SIZE_BYTES = 8
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
    """A plain frame of the blocks that Kafka would read of ``data``. Raises ValueError where it would not read them."""
    if len(data) < 6 or data[:4] != _MAGIC:
        raise ValueError("no LZ4 frame")
    flags, sizes = data[4], data[5]
    if flags & _RESERVED or flags & _VERSION != _VERSION_1 or sizes & 0x8F or sizes >> 4 < 4:
        raise ValueError("an LZ4 frame with a header of another version")
    if not flags & _INDEPENDENT:
        raise ValueError("an LZ4 frame whose blocks refer to each other")
    start = 4 + _DESCRIPTOR_BYTES + (_CONTENT_SIZE_BYTES if flags & _CONTENT_SIZE else 0)
    if len(data) <= start or data[start] != _header_checksum(bytes(data[4:start])):
        raise ValueError("an LZ4 frame with a wrong checksum of its header")
    end = _end_of_blocks(data, start + 1, flags, largest=1 << 2 * (sizes >> 4) + 8)
    descriptor = bytes([flags & (_VERSION | _INDEPENDENT | _BLOCK_CHECKSUM), sizes])
    return b"".join((_MAGIC, descriptor, bytes([_header_checksum(descriptor)]), data[start + 1 : end], _END_MARK))


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
