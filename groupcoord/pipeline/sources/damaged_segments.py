"""Finds the record batches of a damaged segment: behind damaged bytes, the next complete batch is recognised by its
checksum."""

from typing import Any

import numpy as np
from crc32c import crc32c

from groupcoord.pipeline.arrow_columns import numbers_at
from groupcoord.pipeline.sources.columnar_batch_reader import CHECKED_FROM, OVERHEAD, walk
from groupcoord.protocol.batches.record_batch import HEADER_BYTES, MAGIC

_MOST_OFFSETS = 1 << 24
"""More offsets than any batch has. This limit rules out most positions before a checksum is computed."""
_KNOWN_ATTRIBUTES = 0x7F


def walk_over_damage(data: Any) -> tuple[list[int], list[tuple[int, int]]]:
    """The positions of all complete batches in ``data``, and the ranges of bytes between them that are not a batch."""
    starts, end = walk(data)
    damages: list[tuple[int, int]] = []
    while end < len(data):
        following = next_batch(data, end)
        damages.append((end, len(data) if following is None else following))
        if following is None:
            break
        more, end = walk(data, following)
        starts += more
    return starts, damages


def next_batch(data: Any, position: int) -> int | None:
    """The position of the next complete batch with a correct checksum, from ``position`` on; None if there is none."""
    content = np.frombuffer(data, np.uint8)
    if len(content) < position + HEADER_BYTES:
        return None
    place = position + np.nonzero(content[position + 16 : len(content) - HEADER_BYTES + 17] == MAGIC)[0]
    for offset, dtype, lowest, highest in (
        (0, ">i8", 0, 1 << 48),
        (8, ">i4", HEADER_BYTES - OVERHEAD, len(content)),
        (21, ">i2", 0, _KNOWN_ATTRIBUTES),
        (23, ">i4", 0, _MOST_OFFSETS),
        (57, ">i4", 0, _MOST_OFFSETS),
    ):
        number = numbers_at(content, place + offset, dtype)
        place = place[(number >= lowest) & (number <= highest)]
    end = place + OVERHEAD + numbers_at(content, place + 8, ">i4")
    checksum = numbers_at(content, place + 17, ">u4")
    for start, stop, expected in zip(place.tolist(), end.tolist(), checksum.tolist(), strict=True):
        if stop <= len(content) and crc32c(content[start + CHECKED_FROM : stop]) == expected:
            return int(start)
    return None
