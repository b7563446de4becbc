"""Helpers of the client tests: waiting for a condition, unique names, and records."""

import threading
import time
import uuid
from collections.abc import Callable
from typing import NamedTuple, TypeVar

PATIENCE_S = 20.0
GLANCE_S = 0.05

Result = TypeVar("Result")
Partition = tuple[str, int]
Header = tuple[str, bytes | None]

_news = threading.Condition()


class Record(NamedTuple):
    """One record as every library tells it, in terms that compare equal across libraries."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


def news() -> None:
    """Something happened: whoever waits in ``eventually`` looks again at once."""
    with _news:
        _news.notify_all()


def eventually(condition: Callable[[], Result], timeout: float = PATIENCE_S, *, saying: str) -> Result:
    """The first true answer of ``condition``, asked again at every ``news`` and at least every ``GLANCE_S``.

    Raises AssertionError with ``saying``, and with the last answer, after ``timeout`` seconds.
    """
    deadline = time.monotonic() + timeout
    while not (answer := condition()):
        left = deadline - time.monotonic()
        if left <= 0:
            raise AssertionError(f"not within {timeout:g} s: {saying} (last answer: {answer!r})")
        with _news:
            _news.wait(min(left, GLANCE_S))
    return answer


def unique(word: str) -> str:
    """A name nobody else has; not from ``random``, which pytest-randomly seeds alike in every run."""
    return f"{word}-{uuid.uuid4().hex[:8]}"


def partitions_of(topic: str, count: int) -> frozenset[Partition]:
    """All partitions of a topic that has ``count``."""
    return frozenset((topic, number) for number in range(count))
