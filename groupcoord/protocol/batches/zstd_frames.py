"""How far Zstandard frames reach, and how much there can be in them, told from the headers of their blocks. Source: RFC 8878.

So a frame that is cut short is told from one that half another follows.
"""

_MAGIC = 0xFD2FB528
_SKIPPABLE_MAGIC, _SKIPPABLE_MASK = 0x184D2A50, 0xFFFFFFF0
_CHECKSUM, _SINGLE_SEGMENT = 0x04, 0x20
_DICTIONARY_BYTES = (0, 1, 2, 4)
_CONTENT_SIZE_BYTES = (0, 2, 4, 8)
_RLE, _COMPRESSED = 1, 2
_LARGEST_BLOCK = 128 * 1024


def begins_with_a_whole_frame(data: memoryview) -> bool:
    """Does the first frame in ``data`` end there?"""
    try:
        return _end_of_frame(data)[0] <= len(data)
    except IndexError:
        return False


def most_content(data: memoryview, limit: int) -> int:
    """More bytes than this are not in the frames that ``data`` consists of; ``limit`` if there may be as many or more."""
    content = position = 0
    try:
        while position < len(data) and content < limit:
            position, more = _end_of_frame(data, position, limit - content)
            content += more
    except IndexError:
        return limit  # who unpacks it will see how far that goes
    return min(content, limit)


def _end_of_frame(data: memoryview, start: int = 0, enough: int = 1 << 63) -> tuple[int, int]:
    """(where the frame at ``start`` ends, perhaps beyond the end of ``data``; the most bytes that can be in it).

    It is looked at no further when there is ``enough`` in it. Raises IndexError if its end cannot be told.
    """
    magic = int.from_bytes(data[start : start + 4], "little")
    if magic & _SKIPPABLE_MASK == _SKIPPABLE_MAGIC:
        return start + 8 + _number(data, start + 4, 4), 0
    if magic != _MAGIC:
        raise IndexError
    descriptor = data[start + 4]
    single = descriptor & _SINGLE_SEGMENT
    size_bytes = _CONTENT_SIZE_BYTES[descriptor >> 6] or (1 if single else 0)
    position = start + 5 + (0 if single else 1) + _DICTIONARY_BYTES[descriptor & 3] + size_bytes
    last = content = 0
    while not last and content < enough:
        block = _number(data, position, 3)
        last, kind, size = block & 1, block >> 1 & 3, block >> 3
        position += 3 + (1 if kind == _RLE else size)
        content += _LARGEST_BLOCK if kind == _COMPRESSED else size
    return position + (4 if descriptor & _CHECKSUM else 0), content


def _number(data: memoryview, position: int, size: int) -> int:
    if position + size > len(data):
        raise IndexError
    return int.from_bytes(data[position : position + size], "little")
