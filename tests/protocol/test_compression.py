import gzip
import random
import struct

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupcoord.protocol.batches import compression
from groupcoord.protocol.batches.compression import (
    Compression,
    CompressionError,
    compress,
    decompress,
    max_unpacked_bytes,
)

CODECS = [codec for codec in Compression if codec]


@pytest.mark.slow
@given(data=st.binary(max_size=3000), codec=st.sampled_from(list(Compression)))
def test_what_is_packed_unpacks_to_itself(data: bytes, codec: Compression) -> None:
    assert decompress(codec, compress(codec, data)) == data


@pytest.mark.parametrize("codec", CODECS)
def test_much_more_can_come_out_than_goes_in(codec: Compression) -> None:
    data = b"groupcoord" * 500_000
    packed = compress(codec, data)
    assert len(packed) < len(data) / 10
    assert decompress(codec, memoryview(packed)) == data


@pytest.mark.parametrize("codec", CODECS)
def test_there_is_a_limit_to_what_may_come_out(codec: Compression, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deviation (unpacked-size-limit)."""
    monkeypatch.setattr(compression, "UNPACKED_LIMIT", 1_000_000)
    assert len(decompress(codec, compress(codec, bytes(1_000_000)))) == 1_000_000
    with pytest.raises(CompressionError, match="more than 1000000 bytes unpacked"):
        decompress(codec, compress(codec, bytes(1_000_001)))


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("data", [b"", b"what is this", b"\xff" * 40])
def test_what_is_not_packed_is_refused(codec: Compression, data: bytes) -> None:
    if codec is Compression.ZSTD and not data:
        assert decompress(codec, data) == b""  # no frame is as good as an empty one
        return
    with pytest.raises(CompressionError, match=codec.name.lower()):
        decompress(codec, data)


@pytest.mark.parametrize("codec", CODECS)
def test_what_is_cut_short_is_refused(codec: Compression) -> None:
    packed = compress(codec, bytes(range(256)) * 300)
    with pytest.raises(CompressionError):
        decompress(codec, packed[:-1])


def test_levels_are_the_codecs_own() -> None:
    data = b"".join(struct.pack(">I", number * number) for number in range(20_000))
    assert len(compress(Compression.GZIP, data, 9)) < len(compress(Compression.GZIP, data, 1))
    assert gzip.decompress(compress(Compression.GZIP, data, 1)) == data


def test_snappy_is_framed_in_blocks_as_java_does() -> None:
    packed = compress(Compression.SNAPPY, bytes(40_000))
    assert packed.startswith(b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1))
    (size,) = struct.unpack_from(">i", packed, 16)
    assert bytes(cramjam.snappy.decompress_raw(packed[20 : 20 + size])) == bytes(32 * 1024)


def test_raw_snappy_is_read() -> None:
    assert decompress(Compression.SNAPPY, bytes(cramjam.snappy.compress_raw(b"hello"))) == b"hello"


@pytest.mark.parametrize(
    ("codec", "rest"),
    [
        (Compression.GZIP, b"junk"),
        (Compression.GZIP, bytes(30)),
        (Compression.GZIP, b"\x1f\x8b" + bytes(16)),
        (Compression.SNAPPY, b"\x00\x00\x00"),
        (Compression.LZ4, b"junk"),
    ],
)
def test_what_is_too_short_or_too_odd_behind_the_end_is_not_looked_at(codec: Compression, rest: bytes) -> None:
    """As Java reads it."""
    assert decompress(codec, compress(codec, b"hello") + rest) == b"hello"


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.SNAPPY, Compression.ZSTD])
def test_what_is_packed_twice_is_unpacked_twice(codec: Compression) -> None:
    assert decompress(codec, compress(codec, b"hello ") + compress(codec, b"world")) == b"hello world"


def test_java_can_read_our_lz4() -> None:
    """Blocks that do not refer to each other, and no checksum of the content."""
    packed = compress(Compression.LZ4, bytes(300_000), 9)
    assert packed[4] & 0x24 == 0x20


def test_of_a_second_gzip_member_that_is_cut_short_something_has_to_come_out() -> None:
    """Java then finds more than there should be before it misses the rest."""
    packed = compress(Compression.GZIP, b"hello")
    assert decompress(Compression.GZIP, packed + packed[:-1]) == b"hellohello"
    nothing = gzip.compress(b"")
    with pytest.raises(CompressionError, match="gzip: cut short"):
        decompress(Compression.GZIP, packed + nothing[:-1])


def test_a_second_zstd_frame_that_is_cut_short_gives_what_it_can() -> None:
    """As Java's stream does: seen on a real 4.3.1."""
    packed = compress(Compression.ZSTD, b"hello")
    assert decompress(Compression.ZSTD, packed + compress(Compression.ZSTD, b"z" * 99)[:-1]) == b"hello"
    noise = random.Random(5).randbytes(300_000)
    assert bytes(decompress(Compression.ZSTD, packed + compress(Compression.ZSTD, noise)[:200_000])).startswith(
        b"hello" + noise[:9]
    )


def test_a_second_snappy_header_has_to_be_whole() -> None:
    packed = compress(Compression.SNAPPY, b"hello")
    with pytest.raises(CompressionError, match="a header that is cut short"):
        decompress(Compression.SNAPPY, packed + packed[:9])


@pytest.mark.parametrize("rest", [b"\x00\x00\x00\x09abc", b"\xff\xff\xff\xff"])
def test_a_snappy_block_that_does_not_fit_is_refused(rest: bytes) -> None:
    with pytest.raises(CompressionError, match="a block of"):
        decompress(Compression.SNAPPY, compress(Compression.SNAPPY, b"hello") + rest)


@pytest.mark.parametrize("codec", list(Compression))
@pytest.mark.parametrize("data", [b"", b"x", bytes(3_000_000), random.Random(1).randbytes(100_000)])
def test_what_can_come_out_at_most_is_told_before(codec: Compression, data: bytes) -> None:
    assert len(data) <= max_unpacked_bytes(codec, memoryview(compress(codec, data))) <= compression.UNPACKED_LIMIT


def test_a_batch_of_a_producer_in_lz4_cannot_unpack_to_more_than_its_blocks_hold() -> None:
    """So that one of batch.size=16384 is checked in the loop, and not by a thread."""
    packed = compress(Compression.LZ4, random.Random(1).randbytes(16_000))
    assert max_unpacked_bytes(Compression.LZ4, memoryview(packed)) <= 64 * 1024
    assert max_unpacked_bytes(Compression.LZ4, memoryview(packed)[:-4]) == 0, "it has no end, and is not unpacked"


def test_a_kernel_without_large_pages_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mmap.MADV_HUGEPAGE", -1)
    assert decompress(Compression.ZSTD, compress(Compression.ZSTD, bytes(1_000_000))) == bytes(1_000_000)


def test_what_is_no_lz4_behind_the_small_buffer_is_refused() -> None:
    """The block that is broken begins where the small buffer has been filled."""
    packed = bytearray(compress(Compression.LZ4, random.Random(1).randbytes(60_000) + bytes(9_000_000)))
    packed[-40:-4] = b"\x0f" * 36
    with pytest.raises(CompressionError, match="lz4"):
        decompress(Compression.LZ4, bytes(packed))
