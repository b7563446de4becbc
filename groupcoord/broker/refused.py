"""A request that the broker refuses, in part or whole."""

import contextlib
from collections.abc import Iterator

from groupcoord.protocol.batches import BatchError
from groupcoord.protocol.errors import ErrorCode


class Refused(Exception):
    """What was asked for is answered with ``error``; ``text`` is the message beside it, None where Kafka sends none."""

    def __init__(self, error: ErrorCode, text: str | None = None) -> None:
        self.error, self.text = error, text
        super().__init__(text or error.text)


@contextlib.contextmanager
def refusing_what_cannot_be_kept() -> Iterator[None]:
    """A journal that cannot keep what it is told is a reason to refuse it."""
    try:
        yield
    except BatchError as problem:
        raise Refused(problem.error, problem.reason) from problem
