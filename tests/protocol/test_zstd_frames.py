import os

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupcoord.protocol.batches.zstd_frames import begins_with_a_whole_frame, most_content


def packed(data: bytes, level: int = 3) -> bytes:
    return bytes(cramjam.zstd.compress(data, level))


def whole(data: bytes) -> bool:
    return begins_with_a_whole_frame(memoryview(data))


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
def test_what_is_no_frame(data: bytes) -> None:
    assert not whole(data)


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
