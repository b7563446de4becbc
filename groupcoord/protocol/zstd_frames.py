"""How far a Zstandard frame reaches: one that is cut short is told from one that half another follows. Source: RFC 8878."""

_MAGIC = 0xFD2FB528
_SKIPPABLE_MAGIC, _SKIPPABLE_MASK = 0x184D2A50, 0xFFFFFFF0
_CHECKSUM, _SINGLE_SEGMENT = 0x04, 0x20
_DICTIONARY_BYTES = (0, 1, 2, 4)
_CONTENT_SIZE_BYTES = (0, 2, 4, 8)
_RLE = 1


def begins_with_a_whole_frame(data: memoryview) -> bool:
    """Does the first frame in ``data`` end there?"""
    try:
        return _end_of_frame(data) <= len(data)
    except IndexError:
        return False


def _end_of_frame(data: memoryview) -> int:
    """Where the first frame ends, perhaps beyond the end of ``data``. Raises IndexError if that cannot be told."""
    magic = int.from_bytes(data[:4], "little")
    if magic & _SKIPPABLE_MASK == _SKIPPABLE_MAGIC:
        return 8 + _number(data, 4, 4)
    if magic != _MAGIC:
        raise IndexError
    descriptor = data[4]
    single = descriptor & _SINGLE_SEGMENT
    size_bytes = _CONTENT_SIZE_BYTES[descriptor >> 6] or (1 if single else 0)
    position = 5 + (0 if single else 1) + _DICTIONARY_BYTES[descriptor & 3] + size_bytes
    last = 0
    while not last:
        block = _number(data, position, 3)
        last, kind, size = block & 1, block >> 1 & 3, block >> 3
        position += 3 + (1 if kind == _RLE else size)
    return position + (4 if descriptor & _CHECKSUM else 0)


def _number(data: memoryview, position: int, size: int) -> int:
    if position + size > len(data):
        raise IndexError
    return int.from_bytes(data[position : position + size], "little")
