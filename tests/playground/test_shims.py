"""What stands in the place of native libraries in a browser says what these say."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupcoord.protocol.batches.compression import Compression
from groupcoord.protocol.batches.record_batch import build_batch
from groupcoord.protocol.batches.records import Record

SHIMS = Path(__file__).parents[2] / "web" / "src" / "playground" / "shims"


def shim(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"playground_{name}", SHIMS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


own = shim("crc32c")


@pytest.mark.slow
def test_the_page_imports_nothing_that_a_browser_does_not_have() -> None:
    program = "import sys, groupcoord.playground.page_session; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    absent = {"resource", "re2", "mmh3", "pytest", "yaml", "groupcoord.storage"}
    assert absent & set(done.stdout.split()) == set()


@pytest.mark.slow
@given(st.binary(), st.binary())
def test_the_checksum_is_that_of_the_library(first: bytes, second: bytes) -> None:
    assert own.crc32c(first) == crc32c.crc32c(first)
    assert own.crc32c(memoryview(second), own.crc32c(first)) == crc32c.crc32c(first + second)


def test_the_checksum_of_a_batch_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def batch() -> bytes:
        return build_batch([Record(0, 1_000, None, b"value")])

    before = batch()
    monkeypatch.setattr(sys.modules["groupcoord.protocol.batches.record_batch"], "_crc32c", lambda: own.crc32c)
    assert batch() == before


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_a_codec_that_is_not_there_says_so(codec: str) -> None:
    cramjam = shim("cramjam")
    assert codec.upper() in Compression.__members__
    with pytest.raises(cramjam.DecompressionError, match=f"compressed with {codec} cannot be read in the playground"):
        getattr(cramjam, codec).decompress(b"")
