"""``groupcoord serve`` many times over: a process that has everything imported, of which each server is a fork.

A server is there in a tenth of the time of one that is started anew, and is killed as any other process.
"""

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from groupcoord.protocol.apis import APIS
from groupcoord.protocol.errors import WireError
from tests.reliability.served import NotServing, address_in
from tests.reliability.talk import Address, version_of

PATIENCE_SECONDS = 60.0
_END_OF_ARGUMENT = "\0"


class Fork:
    """A server that was started; ``log`` is the file that its stderr goes to."""

    def __init__(self, forks: "Forks", pid: int, stdout: int, log: Path) -> None:
        self.pid = pid
        self.log = log
        self._forks = forks
        self._stdout = stdout
        self._said = b""
        self._code: int | None = None

    def address(self) -> Address:
        """Where it listens; waits until it does. Raises NotServing with the end of its log."""
        try:
            return address_in(self._line())
        except NotServing as problem:
            raise NotServing(f"ended with {self.wait()}: {self.log.read_text(errors='replace')[-2_000:]}") from problem

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Send it a signal, unless it is known to have ended."""
        if self._code is None:
            os.kill(self.pid, number)

    def wait(self) -> int:
        """How it ended, as ``subprocess`` has it; waits until it has."""
        if self._stdout >= 0:
            os.close(self._stdout)
            self._stdout = -1
        if self._code is None:
            self._code = self._forks.wait(self.pid)
        return self._code

    def _line(self) -> str:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while b"\n" not in self._said:
            ready, _, _ = select.select([self._stdout], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                self.kill()
                break
            data = os.read(self._stdout, 4096)
            if not data:
                break
            self._said += data
        return self._said.decode()


class Forks:
    """Starts servers, while its block runs."""

    def __enter__(self) -> Self:
        self._socket, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(theirs.fileno())], pass_fds=[theirs.fileno()]
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._socket.close()
        self._process.wait()

    def start(self, arguments: Sequence[str], log: Path) -> Fork:
        """Start ``groupcoord serve`` with ``arguments``, which logs to the end of ``log``."""
        reading, writing = os.pipe()
        with log.open("ab") as stderr:
            said = _END_OF_ARGUMENT.join(["start", *arguments]).encode()
            socket.send_fds(self._socket, [said], [writing, stderr.fileno()])
        os.close(writing)
        return Fork(self, int(self._socket.recv(64)), reading, log)

    def wait(self, pid: int) -> int:
        """How the server ended; waits until it has."""
        self._socket.sendall(_END_OF_ARGUMENT.join(["wait", str(pid)]).encode())
        return int(self._socket.recv(64))

    @contextlib.contextmanager
    def serving(self, arguments: Sequence[str], log: Path) -> Iterator[Address]:
        """A server, by its address; killed at the end of the block."""
        fork = self.start(arguments, log)
        try:
            yield fork.address()
        finally:
            fork.kill()
            fork.wait()


def _warm() -> None:
    """Import what a server imports, and make what it makes at its first requests."""
    import uvloop  # noqa: F401, PLC0415 - only in the process that forks

    from groupcoord.cli import serve  # noqa: F401, PLC0415
    from groupcoord.cluster import cluster_core  # noqa: F401, PLC0415
    from groupcoord.storage import file_storage_backend  # noqa: F401, PLC0415

    for api in APIS.values():
        api.response_codec(version_of(api))
        with contextlib.suppress(WireError):
            api.request_codec(version_of(api)).decode(b"")


def _fork(arguments: list[str], descriptors: list[int], control: int) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        os.close(control)
        for standard, descriptor in enumerate(descriptors, 1):
            os.dup2(descriptor, standard)
            os.close(descriptor)
        # Those of the process that forks may be files, in which one can seek.
        sys.stdout, sys.stderr = (open(each, "w", closefd=False) for each in (1, 2))  # noqa: SIM115
        from groupcoord.cli.main import main  # noqa: PLC0415

        code = main(["serve", *arguments])
    except BaseException:  # a fork must never go on as its parent
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def main(control: int) -> None:
    """Do what comes in on the descriptor ``control``, until nobody is there any more."""
    _warm()
    running: set[int] = set()
    with socket.socket(fileno=control) as commands:
        while True:
            data, descriptors, _, _ = socket.recv_fds(commands, 1 << 16, 2)
            if not data:
                break
            what, *arguments = data.decode().split(_END_OF_ARGUMENT)
            if what == "start":
                answer = _fork(arguments, descriptors, control)
                running.add(answer)
                for descriptor in descriptors:
                    os.close(descriptor)
            else:
                pid = int(arguments[0])
                answer = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                running.discard(pid)
            commands.sendall(str(answer).encode())
    for pid in running:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main(int(sys.argv[1]))
