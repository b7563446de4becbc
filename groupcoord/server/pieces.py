"""Long answers, cut into pieces that are read from the log one at a time."""

from collections.abc import Iterable, Iterator

from groupcoord.protocol.codec.primitives import LazyBytes

PIECE_BYTES = 131_072
"""So much of a long answer is read at once: what a peer that does not read on costs in memory, with what the transport holds
already (64 KiB, its high-water mark)."""


def in_pieces(parts: Iterable[LazyBytes], piece_bytes: int = PIECE_BYTES) -> Iterator[bytes]:
    """``parts`` one behind the other, in pieces of ``piece_bytes``. Raises what reading the parts raises."""
    piece: list[bytes] = []
    missing = piece_bytes
    for part in parts:
        start, size = 0, len(part)
        while start < size:
            taken = part[start : start + missing]
            piece.append(taken)
            start += len(taken)
            missing -= len(taken)
            if not missing:
                yield b"".join(piece)
                piece.clear()
                missing = piece_bytes
    if piece:
        yield b"".join(piece)
