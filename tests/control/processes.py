"""Starts ``groupcoord serve --control`` as a process."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple


class Serving(NamedTuple):
    process: "subprocess.Popen[str]"
    bootstrap: str
    url: str


@contextmanager
def serving(*arguments: str) -> Iterator[Serving]:
    """A server with the control API, killed at the end if it has not ended."""
    command = [sys.executable, "-m", "groupcoord", "serve", "--port", "0", "--control", "127.0.0.1:0", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            lines = [process.stdout.readline()]
            assert lines[0].startswith("listening on "), lines
            while not lines[-1].startswith("control listening on http://"):
                lines.append(process.stdout.readline())
                assert lines[-1], lines
            yield Serving(process, lines[0].split()[-1], lines[-1].split()[-1])
        finally:
            process.kill()
