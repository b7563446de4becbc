"""A file read from front to back in large pieces."""

from groupcoord.storage.files import read_at

CHUNK_BYTES = 1 << 20


class Window:
    """What was read last of the file behind ``descriptor``."""

    __slots__ = ("_chunk", "_data", "_descriptor", "_start")

    def __init__(self, descriptor: int, chunk: int = CHUNK_BYTES) -> None:
        self._descriptor = descriptor
        self._chunk = chunk
        self._data = b""
        self._start = 0

    def at(self, position: int, length: int) -> memoryview:
        """The ``length`` bytes at ``position``, or fewer if the file ends before. Raises OSError."""
        begin = position - self._start
        if begin < 0 or begin + length > len(self._data):
            self._data = read_at(self._descriptor, max(length, self._chunk), position)
            self._start, begin = position, 0
        return memoryview(self._data)[begin : begin + length]
