"""Renders bytes as text."""

import re

_ZEROS = re.compile(r"(?:\\x00){4,}")


def text_of(data: bytes) -> str:
    """``data`` as a string that is readable where it can be, and exact; long runs of zero bytes are counted."""
    return _ZEROS.sub(lambda run: f"<{len(run.group()) // 4} zeros>", repr(bytes(data))[2:-1])
