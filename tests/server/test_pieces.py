import pytest

from groupcoord.server.pieces import PIECE_BYTES, in_pieces


@pytest.mark.parametrize(
    ("parts", "pieces"),
    [
        ([], []),
        ([b""], []),
        ([b"a", b"", b"b"], [b"ab"]),
        ([b"ab", b"cd"], [b"abcd"]),
        ([b"abc", b"def", b"g"], [b"abcd", b"efg"]),
        ([b"abcdefghij"], [b"abcd", b"efgh", b"ij"]),
    ],
)
def test_parts_become_pieces_of_one_size(parts: list[bytes], pieces: list[bytes]) -> None:
    assert list(in_pieces(parts, 4)) == pieces


def test_a_part_is_read_when_its_piece_is_due() -> None:
    asked: list[slice] = []

    class Run(bytes):
        def __getitem__(self, where: slice) -> bytes:  # type: ignore[override] # nobody asks for one byte
            asked.append(where)
            return super().__getitem__(where)

    pieces = in_pieces([b"head", Run(PIECE_BYTES)])
    assert asked == []
    next(pieces)
    assert asked == [slice(0, PIECE_BYTES - 4)]
