"""A log whose reader is slow, gone, or never comes."""

import logging
import os
import re
from collections.abc import Iterator

import pytest

from groupcoord.server import event_logging
from groupcoord.server.background_log_handler import BackgroundLogHandler

LINES = 100_000
"""More than a pipe (64 KiB) and what may wait hold together."""


class Pipe:
    """A pipe whose end is closed with its handler."""

    def __init__(self) -> None:
        self.reading, self.writing = os.pipe()

    def read(self) -> Iterator[str]:
        """The lines, until the pipe is closed."""
        with os.fdopen(self.reading, encoding="utf-8") as stream:
            yield from stream


@pytest.fixture
def pipe() -> Pipe:
    return Pipe()


def logger_to(handler: logging.Handler) -> logging.Logger:
    handler.setFormatter(event_logging.TextLines())
    logger = logging.getLogger(f"log of {id(handler)}")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    logger.handlers = [handler]
    return logger


def test_lines_are_written_in_order(pipe: Pipe) -> None:
    handler = BackgroundLogHandler(pipe.writing)
    logger = logger_to(handler)
    for number in range(100):
        logger.info("line %d of Größe", number)
    handler.close()
    os.close(pipe.writing)
    assert [line[14:].rstrip() for line in pipe.read()] == [f"line {number} of Größe" for number in range(100)]


def test_who_writes_never_waits_and_the_reader_is_told_what_is_missing(pipe: Pipe) -> None:
    handler = BackgroundLogHandler(pipe.writing, max_waiting_bytes=100_000)
    logger = logger_to(handler)
    for number in range(LINES):
        logger.info("line %d", number)
    found: list[int] = []
    missing, lines = 0, pipe.read()
    while len(found) + missing < LINES:
        line = next(lines)
        dropped = re.search(
            r"WARNING  ([\d,]+) lines of the log were dropped: its reader did not take them in time", line
        )
        if dropped is None:
            found.append(int(line.rpartition(" ")[2]))
        else:
            missing += int(dropped[1].replace(",", ""))
    assert missing
    assert found == sorted(set(found))
    assert found[:1_000] == list(range(1_000))  # what goes is the newest
    assert len(found) + missing == LINES
    os.close(pipe.writing)


def test_a_line_that_is_too_long_is_dropped_and_the_next_ones_come(pipe: Pipe) -> None:
    handler = BackgroundLogHandler(pipe.writing, max_waiting_bytes=1_000)
    logger = logger_to(handler)
    logger.info("x" * 2_000)
    lines = pipe.read()
    assert "1 lines of the log were dropped" in next(lines)
    logger.info("short")
    assert next(lines).endswith("short\n")
    handler.close()
    os.close(pipe.writing)


def test_the_end_does_not_wait_for_a_reader_that_never_comes(pipe: Pipe) -> None:
    handler = BackgroundLogHandler(pipe.writing)
    logger = logger_to(handler)
    for number in range(LINES):
        logger.info("line %d", number)
    handler.close()  # returns
    os.close(pipe.reading)  # whoever writes now is told that nobody reads
    handler.close()
    os.close(pipe.writing)
