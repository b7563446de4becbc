"""In the place of the package of that name: a megabyte of codecs that no client in a playground uses."""

from typing import NoReturn


class DecompressionError(Exception):
    """What the real one raises for a batch that cannot be unpacked."""


class _Absent:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> NoReturn:
        raise DecompressionError(f"batches that are compressed with {self._name} cannot be read in the playground")


gzip, snappy, lz4, zstd = map(_Absent, ("gzip", "snappy", "lz4", "zstd"))
