"""File operations that fail when a test asks for it."""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest


@contextmanager
def failing(monkeypatch: pytest.MonkeyPatch, call: str, *, code: int = errno.ENOSPC, after: int = 0) -> Iterator[None]:
    """While the block runs, ``os.call`` fails, but for the first ``after`` times."""
    real: Callable[..., Any] = getattr(os, call)
    left = [after]

    def fail(*arguments: Any, **named: Any) -> Any:
        if left[0]:
            left[0] -= 1
            return real(*arguments, **named)
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as broken:
        broken.setattr(os, call, fail)
        yield


@contextmanager
def filling_up(monkeypatch: pytest.MonkeyPatch, room: int) -> Iterator[None]:
    """While the block runs, ``room`` bytes can be written; what does not fit is written in part, and then nothing is."""
    real = os.pwrite
    left = [room]

    def write(descriptor: int, data: bytes | bytearray | memoryview, position: int) -> int:
        if not left[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = real(descriptor, bytes(data)[: left[0]], position)
        left[0] -= written
        return written

    with monkeypatch.context() as broken:
        broken.setattr(os, "pwrite", write)
        yield
