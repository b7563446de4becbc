"""Regular expressions in RE2's syntax: Kafka uses re2j, a port of RE2 to Java."""

from functools import lru_cache
from typing import Any


@lru_cache(maxsize=256)
def compiled(regex: str) -> Any:
    """The compiled expression, or the error as text."""
    import re2  # noqa: PLC0415 - only who uses an expression needs it

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(regex, options)
    except re2.error as problem:
        (said,) = problem.args
        return said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
