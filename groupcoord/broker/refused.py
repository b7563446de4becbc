"""A request that the broker refuses, in part or whole."""

import contextlib
from collections.abc import Iterator

from groupcoord.core.api_error import ApiError
from groupcoord.protocol.batches.record_batch import BatchError


@contextlib.contextmanager
def refusing_what_cannot_be_kept() -> Iterator[None]:
    """A journal that cannot keep what it is told is a reason to refuse it."""
    try:
        yield
    except BatchError as problem:
        raise ApiError(problem.error, problem.reason) from problem
