"""LZ4 and Zstandard frames, whole, cut short and damaged."""

import os
import struct

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupcoord.protocol.batches.compression import begins_with_a_whole_frame, most_content, readable_frame

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
def test_what_is_no_lz4_frame(data: bytes) -> None:
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


def packed(data: bytes, level: int = 3) -> bytes:
    return bytes(cramjam.zstd.compress(data, level))


def whole(data: bytes) -> bool:
    return begins_with_a_whole_frame(memoryview(data))


@pytest.mark.slow
@given(data=st.binary(max_size=3_000), level=st.sampled_from([1, 3, 19]))
def test_a_whole_frame_ends_with_its_last_byte(data: bytes, level: int) -> None:
    frame = packed(data, level)
    assert whole(frame)
    assert whole(frame + b"junk")
    assert not any(whole(frame[:-missing]) for missing in range(1, len(frame) + 1))


@pytest.mark.parametrize("data", [bytes(1_000_000), os.urandom(400_000), b"abc" * 300_000])
def test_frames_of_many_blocks_of_every_kind(data: bytes) -> None:
    frame = packed(data)
    assert whole(frame)
    assert not whole(frame[:-1])


def test_a_streamed_frame_with_a_checksum_and_without_a_size() -> None:
    stream = cramjam.zstd.Compressor()
    stream.compress(b"hello" * 99)
    frame = bytes(stream.finish())
    assert whole(frame)
    assert not whole(frame[:-1])
    descriptor = frame[4]
    assert not whole(frame[:4] + bytes([descriptor | 0x04]) + frame[5:])
    assert whole(frame[:4] + bytes([descriptor | 0x04]) + frame[5:] + b"sum.")


def test_a_frame_to_skip() -> None:
    frame = bytes.fromhex("502a4d1803000000") + b"abc"
    assert whole(frame)
    assert not whole(frame[:-1])
    assert not whole(frame[:6])


@pytest.mark.parametrize("data", [b"", b"\x28\xb5\x2f\xfd", b"what is this"])
def test_what_is_no_zstd_frame(data: bytes) -> None:
    assert not whole(data)


@pytest.mark.slow
@given(parts=st.lists(st.binary(max_size=3_000), max_size=4))
def test_no_more_is_in_frames_than_their_blocks_can_hold(parts: list[bytes]) -> None:
    frames = memoryview(b"".join(packed(part) for part in parts))
    assert sum(map(len, parts)) <= most_content(frames, 1 << 30) <= len(parts) * 128 * 1024


def test_how_much_there_can_be_is_told_of_a_few_bytes() -> None:
    frame = packed(bytes(4_000_000))
    assert 4_000_000 <= most_content(memoryview(frame), 1 << 30) <= 4_200_000
    assert most_content(memoryview(frame + packed(bytes(1_000))), 1_000_000) == 1_000_000
    skipped = b"\x50\x2a\x4d\x18" + (9).to_bytes(4, "little") + bytes(9)
    assert most_content(memoryview(skipped), 1_000) == 0


def test_of_what_is_no_frame_anything_may_come() -> None:
    assert most_content(memoryview(b"what is this"), 1_000) == 1_000
