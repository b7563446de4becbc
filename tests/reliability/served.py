"""``groupcoord serve`` as a process of its own, and what the system says of it: memory, descriptors, time."""

import contextlib
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.reliability.talk import Address


class NotServing(Exception):
    """The server ended, or said nothing, in place of serving."""


class Served:
    """The process, where it listens, and the file that its log goes to."""

    def __init__(self, process: "subprocess.Popen[str]", address: Address, log: Path) -> None:
        self.process, self.address, self.log = process, address, log

    @property
    def lives(self) -> bool:
        """Does it run?"""
        return self.process.poll() is None

    @property
    def memory_bytes(self) -> int:
        """What it has in memory."""
        return int(self._said_of("statm").split()[1]) * resource.getpagesize()

    @property
    def most_memory_bytes(self) -> int:
        """The most that it has had in memory."""
        return int(self._said_of("status").split("VmHWM:")[1].split()[0]) * 1024

    @property
    def descriptors(self) -> int:
        """How many files and connections it has open."""
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))  # noqa: PTH208 - they come and go

    @property
    def busy_seconds(self) -> float:
        """The time it has computed."""
        fields = self._said_of("stat").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _said_of(self, what: str) -> str:
        return Path(f"/proc/{self.process.pid}/{what}").read_text(encoding="ascii")


@contextlib.contextmanager
def served(*arguments: str, log: Path = Path(os.devnull), descriptors: int | None = None) -> Iterator[Served]:
    """A server, which may have so many ``descriptors``; killed at the end of the block. Raises NotServing."""

    def limited() -> None:
        if descriptors is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))

    command = [sys.executable, "-m", "groupcoord", "serve", "--port", "0", *arguments]
    with (
        log.open("a") as stderr,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True, preexec_fn=limited) as process,  # noqa: PLW1509
    ):
        try:
            assert process.stdout is not None
            yield Served(process, address_in(process.stdout.readline()), log)
        finally:
            process.kill()


def address_in(line: str) -> Address:
    """What a server says first. Raises NotServing."""
    if not line.startswith("listening on "):
        raise NotServing(f"it says {line!r}")
    host, _, port = line.removeprefix("listening on ").strip().rpartition(":")
    return host, int(port)


def size_of(directory: Path) -> int:
    """The bytes of all files in it; what goes meanwhile does not count."""
    total = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += os.stat(os.path.join(folder, name)).st_size  # noqa: PTH116, PTH118 - ten times as fast
    return total
