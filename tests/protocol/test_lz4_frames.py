"""The LZ4 frames that a real 4.3.1 reads, and those it does not."""

import struct

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupcoord.protocol.batches.lz4_frames import readable_frame

DATA = b"".join(struct.pack(">I", number) for number in range(40_000))


def frame(data: bytes = DATA, *, linked: bool = False, content_checksum: bool = False) -> bytes:
    compressor = cramjam.lz4.Compressor(content_checksum=content_checksum, block_linked=linked)
    compressor.compress(data)
    return bytes(compressor.finish())


def read(data: bytes) -> bytes:
    return bytes(cramjam.lz4.decompress(readable_frame(memoryview(data))))


def with_header(flags: int, sizes: int, *rest: int) -> bytes:
    """A frame with another descriptor, whose checksum fits if it is one that cramjam makes."""
    return frame()[:4] + bytes([flags, sizes, *rest]) + frame()[7:]


@pytest.mark.slow
@given(data=st.binary(max_size=200_000), content_checksum=st.booleans())
def test_independent_blocks_are_read(data: bytes, content_checksum: bool) -> None:
    assert read(frame(data, content_checksum=content_checksum)) == data


def test_blocks_that_refer_to_each_other_are_not() -> None:
    with pytest.raises(ValueError, match="refer to each other"):
        read(frame(linked=True))


def test_what_follows_the_end_does_not_matter() -> None:
    assert read(frame() + b"junk") == DATA


def test_nor_does_the_checksum_of_the_content_but_it_has_to_be_there() -> None:
    packed = frame(content_checksum=True)
    assert read(packed[:-4] + b"junk") == DATA
    with pytest.raises(ValueError, match="without an end"):
        read(packed[:-1])


def test_nor_does_the_size_of_the_content() -> None:
    # As the C library writes it for five bytes, which these are not; the last byte is the checksum of the descriptor.
    packed = frame()
    assert read(packed[:4] + bytes.fromhex("78400500000000000000") + b"\x6b" + packed[7:]) == DATA


@pytest.mark.parametrize("data", [b"", b"\x04\x22\x4d\x18\x60", b"\x05" + frame()[1:]])
def test_what_is_no_frame(data: bytes) -> None:
    with pytest.raises(ValueError, match="no LZ4 frame"):
        read(data)


@pytest.mark.parametrize(
    ("flags", "sizes"), [(0x61, 0x40), (0x20, 0x40), (0xA0, 0x40), (0x60, 0x30), (0x60, 0xC0), (0x60, 0x41)]
)
def test_a_header_of_another_version(flags: int, sizes: int) -> None:
    with pytest.raises(ValueError, match="a header of another version"):
        read(with_header(flags, sizes, frame()[6]))


def test_a_header_whose_checksum_is_wrong_or_missing() -> None:
    for data in (with_header(0x60, 0x40, frame()[6] ^ 1), frame()[:6], with_header(0x68, 0x40)[:12]):
        with pytest.raises(ValueError, match="a wrong checksum of its header"):
            read(data)


def test_a_block_that_is_too_large() -> None:
    packed = frame()
    with pytest.raises(ValueError, match="an LZ4 block of 65537 bytes where 65536 are the most"):
        read(packed[:7] + struct.pack("<I", 65_537) + packed[11:])


@pytest.mark.parametrize("missing", [1, 4, 5, 1_000])
def test_a_frame_that_is_cut_short(missing: int) -> None:
    with pytest.raises(ValueError, match="without an end"):
        read(frame()[:-missing])
