"""Runs client programs as processes: to their end, or in the background with their output read line by line."""

import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.clients.support import PATIENCE_S, news
from tests.suspending import suspend

ROOT = Path(__file__).parents[2]


def run(command: Sequence[str], stdin: str = "") -> str:
    """Run a program to its end; answers what it printed. Raises AssertionError with its complaints if it fails."""
    patience_s = 15 * PATIENCE_S  # some of them have a Java to start, and others use the machine
    done = subprocess.run(
        command, cwd=ROOT, input=stdin, capture_output=True, text=True, timeout=patience_s, check=False
    )
    assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


class Running:
    """A program that runs; ``lines`` are those that it has printed so far."""

    def __init__(self, command: Sequence[str]) -> None:
        self.lines: list[str] = []
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def __repr__(self) -> str:
        return f"<process {self._process.pid} said {self.lines}>"

    def terminate(self) -> int:
        """Ask it to end; answers its exit code."""
        self._process.terminate()
        return self._process.wait(PATIENCE_S)

    def end(self) -> int:
        """End its standard input, at which it ends if that is what it goes by; answers its exit code."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        code = self._process.wait(PATIENCE_S)
        self._listener.join(PATIENCE_S)  # it may still have to hear the last of it
        return code

    def pause(self) -> None:
        """Let it stand still, its connections open."""
        suspend(self._process)

    def resume(self) -> None:
        """Let it go on."""
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it without a word, whatever it does."""
        self._process.kill()
        self._process.wait(PATIENCE_S)
        self._listener.join(PATIENCE_S)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.append(line.rstrip("\n"))
            news()


@contextmanager
def running(command: Sequence[str]) -> Iterator[Running]:
    """A program for the length of a block, killed at its end if it still runs."""
    program = Running(command)
    try:
        yield program
    finally:
        program.kill()
