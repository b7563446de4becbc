"""Runs code without coverage's tracer, with which Python takes three times as long."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def untraced() -> Iterator[None]:
    """No line that runs in the block, or in threads that it starts, is measured.

    pytest-cov's own mark ``no_cover`` stops one measurement, and in a worker of pytest-xdist there is a second one then.
    """
    tracer, of_threads = sys.gettrace(), threading.gettrace()
    sys.settrace(None)
    threading.settrace(None)
    try:
        yield
    finally:
        threading.settrace(of_threads)
        sys.settrace(tracer)
