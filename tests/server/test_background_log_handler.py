"""A log whose reader is slow, gone, or never comes."""

import itertools
import logging
import os
import re
import select
import threading
from collections.abc import Iterator
from functools import partial

import pytest

from groupcoord.server import event_logging
from groupcoord.server.event_logging import BackgroundLogHandler, write_all

LINES = 10_000
LINE = "x" * 200 + " %d"
"""So many are more than a pipe (64 KiB) and what may wait (1 MiB) hold together."""
PATIENCE_SECONDS = 60


class Pipe:
    """A pipe that a handler writes to, and a test reads."""

    def __init__(self) -> None:
        self.reading, self.writing = os.pipe()
        self.lines = self._read()

    def _read(self) -> Iterator[str]:
        rest = b""
        while True:
            assert select.select([self.reading], [], [], PATIENCE_SECONDS)[0], "no more lines came"
            *lines, rest = (rest + os.read(self.reading, 65_536)).split(b"\n")
            yield from (line.decode() for line in lines)


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    """Closed when nobody writes to it any more, so that no other file gets the number of its descriptor before."""
    before = set(threading.enumerate())
    pipe = Pipe()
    yield pipe
    os.close(pipe.reading)  # who writes now is told that nobody reads
    for thread in set(threading.enumerate()) - before:
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive(), "the test did not close its handler"
    os.close(pipe.writing)


def logger_to(handler: logging.Handler) -> logging.Logger:
    handler.setFormatter(event_logging.TextLines())
    logger = logging.getLogger(f"log of {id(handler)}")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    logger.handlers = [handler]
    return logger


def test_lines_are_written_in_order(pipe: Pipe) -> None:
    handler = BackgroundLogHandler(partial(write_all, pipe.writing))
    logger = logger_to(handler)
    for number in range(100):
        logger.info("line %d of Größe", number)
    lines = itertools.islice(pipe.lines, 100)
    assert [line[14:] for line in lines] == [f"line {number} of Größe" for number in range(100)]
    handler.close()


@pytest.mark.slow
def test_who_writes_never_waits_and_the_reader_is_told_what_is_missing(pipe: Pipe) -> None:
    handler = BackgroundLogHandler(partial(write_all, pipe.writing), max_waiting_bytes=100_000)
    logger = logger_to(handler)
    for number in range(LINES):
        logger.info(LINE, number)
    found: list[int] = []
    missing = 0
    while len(found) + missing < LINES:
        line = next(pipe.lines)
        dropped = re.search(r"WARNING  ([\d,]+) lines of the log were dropped: they could not be written in time", line)
        if dropped is None:
            found.append(int(line.rpartition(" ")[2]))
        else:
            missing += int(dropped[1].replace(",", ""))
    assert missing
    assert found == sorted(set(found))
    assert found[:400] == list(range(400))  # what goes is the newest
    assert len(found) + missing == LINES
    handler.close()


def test_a_line_that_is_too_long_is_dropped_and_the_next_ones_come(pipe: Pipe) -> None:
    handler = BackgroundLogHandler(partial(write_all, pipe.writing), max_waiting_bytes=1_000)
    logger = logger_to(handler)
    logger.info("x" * 2_000)
    assert "1 lines of the log were dropped" in next(pipe.lines)
    logger.info("short")
    assert next(pipe.lines).endswith("short")
    handler.close()


@pytest.mark.slow
def test_a_descriptor_that_does_not_block_is_waited_for(pipe: Pipe) -> None:
    os.set_blocking(pipe.writing, False)
    handler = BackgroundLogHandler(partial(write_all, pipe.writing), max_waiting_bytes=100_000_000)
    logger = logger_to(handler)
    for number in range(LINES):
        logger.info(LINE, number)
    lines = itertools.islice(pipe.lines, LINES)
    assert [int(line.rpartition(" ")[2]) for line in lines] == list(range(LINES))
    handler.close()


@pytest.mark.slow
def test_the_end_does_not_wait_for_a_reader_that_never_comes(pipe: Pipe) -> None:
    handler = BackgroundLogHandler(partial(write_all, pipe.writing))
    logger = logger_to(handler)
    for number in range(LINES):
        logger.info(LINE, number)
    handler.close()  # returns
