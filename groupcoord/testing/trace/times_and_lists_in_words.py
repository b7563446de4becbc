"""Times, counts and lists as words of a sentence."""

from collections.abc import Sequence


def duration(ms: int) -> str:
    """``45,000 ms``."""
    return f"{ms:,} ms"


def moment(since_start_ms: int) -> str:
    """``61.2 s``: with one to three decimals, as many as needed for milliseconds."""
    text = f"{since_start_ms / 1000:,.3f}"
    return f"{text[:-2]}{text[-2:].rstrip('0')} s"


def listed(names: Sequence[str]) -> str:
    """``a, b and c``."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def times(count: int) -> str:
    """``once``, ``twice``, ``3 times``."""
    return {1: "once", 2: "twice"}.get(count, f"{count} times")
