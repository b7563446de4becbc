"""A thread for long work, such as decompressing large batches and compacting logs, so that the event loop is not blocked.

There is one thread, so that only one batch at a time is decompressed in memory. Queued work is done piece by piece in turns, so
that short work does not wait for long work.
"""

import asyncio
import contextlib
import sys
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, NamedTuple

from groupcoord.core.background_work import BackgroundWork, OnWorkDone
from groupcoord.core.effects import Call

SWITCH_SECONDS = 0.0005
"""How long the thread may hold the interpreter lock while the loop wants it; Python's default of 5 ms would delay each
request."""

_USUAL_SECONDS = sys.getswitchinterval()


class WorkOutcome(NamedTuple):
    """The result of work, or the unexpected exception that it raised. ``call`` is the call it was for, if any."""

    call: Call | None
    then: OnWorkDone
    result: Any
    error: Exception | None


class _QueuedWork(NamedTuple):
    call: Call | None
    work: BackgroundWork[Any]
    then: OnWorkDone


class BackgroundWorker:
    """Runs work in a thread, and calls ``done`` with its outcome in the ``loop``. The thread starts with the first work."""

    def __init__(self, loop: asyncio.AbstractEventLoop, done: Callable[[WorkOutcome], None]) -> None:
        self._loop = loop
        self._done = done
        self._waiting: deque[_QueuedWork] = deque()
        self._next: SimpleQueue[_QueuedWork | None] = (
            SimpleQueue()
        )  # what the thread is to take a piece of; None ends it
        self._busy = False
        self._thread: threading.Thread | None = None

    def submit(self, call: Call | None, work: BackgroundWork[Any], then: OnWorkDone) -> None:
        """Queue ``work``. Must be called in the loop, as everything that does not run in the thread."""
        self._waiting.append(_QueuedWork(call, work, then))
        if self._thread is None:
            # A daemon: a process that ends does not wait for it.
            self._thread = threading.Thread(target=self._run, name="groupcoord-worker", daemon=True)
            self._thread.start()
        if not self._busy:
            self._go_on()

    def stop(self) -> None:
        """Start no more work; the outcome of running work is dropped."""
        self._waiting.clear()
        self._done = lambda _: None
        self._next.put(None)

    def _go_on(self) -> None:
        self._busy = bool(self._waiting)
        if self._busy:
            self._next.put(self._waiting.popleft())

    def _piece_done(self, job: _QueuedWork, outcome: WorkOutcome | None) -> None:
        if outcome is None:
            self._waiting.append(job)
        self._go_on()
        if outcome is not None:
            self._done(outcome)

    # In the thread.

    def _run(self) -> None:
        while (job := self._next.get()) is not None:
            outcome = _piece(job)
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._piece_done, job, outcome)
            del job, outcome  # release unpacked data while the thread is idle


def _piece(job: _QueuedWork) -> WorkOutcome | None:
    """Do one piece of the work; None if more pieces follow."""
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        next(job.work)
    except StopIteration as end:
        return WorkOutcome(job.call, job.then, end.value, None)
    except Exception as error:  # any exception is reported in the loop
        return WorkOutcome(job.call, job.then, None, error)
    finally:
        sys.setswitchinterval(_USUAL_SECONDS)
    return None
