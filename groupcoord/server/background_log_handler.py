"""A log handler whose caller never waits: whoever starts the server may not read its stderr, and a full pipe blocks its writer.

A thread writes. What it has not written yet is bounded; lines beyond that are dropped and counted, and a line says how many
once the reader has taken what was there.
"""

import contextlib
import logging
import os
import selectors
import threading

MAX_WAITING_BYTES = 1 << 20
"""Of lines that wait to be written, some ten thousand."""

CLOSE_SECONDS = 2.0
"""How long ``close`` waits for the reader to take what is there. Who has not read it by then will not."""


class BackgroundLogHandler(logging.Handler):
    """Writes lines to the file descriptor ``fd`` from a thread of its own, at most ``max_waiting_bytes`` behind.

    A descriptor that cannot be written to, as a closed pipe, swallows the log.
    """

    def __init__(self, fd: int, max_waiting_bytes: int = MAX_WAITING_BYTES) -> None:
        super().__init__()
        self._fd = fd
        self._max_waiting_bytes = max_waiting_bytes
        self._changed = threading.Condition()
        self._waiting = bytearray()
        self._dropped = 0
        self._is_closed = False
        # A daemon: a process that ends does not wait for a write that hangs.
        self._writer = threading.Thread(target=self._run, name="groupcoord-log", daemon=True)
        self._writer.start()

    def emit(self, record: logging.LogRecord) -> None:
        """Hand on the line of ``record``, or drop and count it."""
        line = self._line(record)
        with self._changed:
            if self._dropped or len(self._waiting) + len(line) > self._max_waiting_bytes:
                self._dropped += 1
            else:
                self._waiting += line
            self._changed.notify_all()

    def close(self) -> None:
        """The log ends; the last lines are written if they can be."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._writer.join(CLOSE_SECONDS)
        super().close()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._dropped or self._is_closed)
                if not self._waiting and not self._dropped:
                    return
                data, dropped = bytes(self._waiting), self._dropped
                self._waiting.clear()
                self._dropped = 0
            if dropped:
                text = f"{dropped:,} lines of the log were dropped: its reader did not take them in time"
                data += self._line(logging.LogRecord(__name__, logging.WARNING, __file__, 0, text, None, None))
            with contextlib.suppress(OSError):
                self._write(data)

    def _write(self, data: bytes) -> None:
        while data:
            try:
                data = data[os.write(self._fd, data) :]
            except BlockingIOError:  # whoever gave the descriptor made it non-blocking
                with selectors.DefaultSelector() as selector:
                    selector.register(self._fd, selectors.EVENT_WRITE)
                    selector.select()

    def _line(self, record: logging.LogRecord) -> bytes:
        return f"{self.format(record)}\n".encode(errors="backslashreplace")
