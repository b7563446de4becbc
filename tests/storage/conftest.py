"""Waits after each test for its background flushes, which would otherwise be counted or failed by the next test."""

from collections.abc import Iterator

import pytest

from groupcoord.storage import file_storage_backend
from groupcoord.storage.file_io import BackgroundSync


@pytest.fixture(autouse=True)
def all_flushed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """On a slow disk a flush outlives its test, and is counted by the next one or takes the failure meant for it."""
    begun: list[BackgroundSync] = []

    class Noted(BackgroundSync):
        def __init__(self) -> None:
            super().__init__()
            begun.append(self)

    monkeypatch.setattr(file_storage_backend, "BackgroundSync", Noted)
    yield
    for background in begun:
        background.close()
