import gzip
import struct

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupcoord.protocol import compression
from groupcoord.protocol.compression import Compression, CompressionError, compress, decompress

CODECS = [codec for codec in Compression if codec]


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
    monkeypatch.setattr(compression, "UNPACKED_LIMIT", 1_000_000)
    assert len(decompress(codec, compress(codec, bytes(1_000_000)))) == 1_000_000
    with pytest.raises(CompressionError, match="more than 1000000 bytes unpacked"):
        decompress(codec, compress(codec, bytes(1_000_001)))


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("data", [b"", b"what is this", b"\xff" * 40])
def test_what_is_not_packed_is_refused(codec: Compression, data: bytes) -> None:
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


@pytest.mark.parametrize("rest", [b"\x00", b"\x00\x00\x00\x09abc", b"\xff\xff\xff\xff"])
def test_a_snappy_block_that_does_not_fit_is_refused(rest: bytes) -> None:
    with pytest.raises(CompressionError, match="a block of"):
        decompress(Compression.SNAPPY, compress(Compression.SNAPPY, b"hello") + rest)
