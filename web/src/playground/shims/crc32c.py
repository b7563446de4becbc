"""CRC-32C in Python, in the place of the package of that name, of which there is no wheel for a browser."""

from collections.abc import Iterator

_POLYNOMIAL = 0x82F63B78  # Castagnoli's, with its bits in reverse
_MASK = 0xFFFFFFFF


def _table() -> Iterator[int]:
    for byte in range(256):
        rest = byte
        for _ in range(8):
            rest = rest >> 1 ^ (_POLYNOMIAL if rest & 1 else 0)
        yield rest


_TABLE = tuple(_table())


def crc32c(data: bytes | bytearray | memoryview, value: int = 0) -> int:
    """The checksum of ``data``, which follows what has the checksum ``value``."""
    rest = value ^ _MASK
    for byte in memoryview(data).cast("B"):
        rest = _TABLE[(rest ^ byte) & 0xFF] ^ rest >> 8
    return rest ^ _MASK
