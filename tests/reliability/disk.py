"""A disk that dies, fails or loses its power at one chosen operation: what ``os`` does to files is counted here."""

import os
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

_NEW = os.O_CREAT | os.O_TRUNC
_close, _fsync, _open, _pwrite = os.close, os.fsync, os.open, os.pwrite
_rename, _replace, _unlink, _mkdir, _rmdir = os.rename, os.replace, os.unlink, os.mkdir, os.rmdir
_truncate, _ftruncate = os.truncate, os.ftruncate


class Died(BaseException):
    """The process is no more. Nothing in a server handles that."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens at the operation number ``at``, the first being 1.

    Without a ``code`` the process dies: "before" the operation, "after" it, or with half of it done ("half", of a write). With
    one, the system answers with that errno, after half of a write if so told; ``once``, or from then on.
    """

    at: int
    when: str = "before"
    code: int = 0
    once: bool = False

    def __str__(self) -> str:
        if not self.code:
            return f"death {self.when} operation {self.at}"
        return f"{os.strerror(self.code)} at operation {self.at} {'once' if self.once else 'and on'}, {self.when}"


class Disk:
    """What one life of a server does to its files, until ``fault``. ``lossy``: it can be told to ``lose_power`` afterwards.

    fsync does nothing but count, so that an attack is quick. What a power cut leaves is the worst of what a journaling file
    system does: a file has what it had at its last fsync, or zeros up to its length; and of the names that were made, changed
    and removed in folders that were not synced since, only those before some moment.
    """

    def __init__(self, fault: Fault | None = None, *, lossy: bool = False) -> None:
        self.fault = fault
        self.operations = 0
        self.last = ""
        self.hit = ""
        self._lossy = lossy
        self._dead = False
        self._paths: dict[int, str] = {}  # of the descriptors that are open
        self._synced: dict[int, bytes] = {}  # inode → content at its last fsync, of what was changed since
        self._names: list[tuple[str, Callable[[], None]]] = []  # folder that was not synced → how to undo

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """While the block runs, everything that is done by ``os`` goes through here."""
        calls = ("open", "close", "pwrite", "fsync", "rename", "replace", "unlink", "mkdir", "rmdir", "truncate")
        with ExitStack() as stack:
            for call in (*calls, "ftruncate"):
                stack.enter_context(mock.patch.object(os, call, getattr(self, f"_{call}")))
            yield

    def forsake(self) -> None:
        """Close what is still open, as the end of a process does."""
        for descriptor in list(self._paths):
            with suppress(OSError):
                _close(descriptor)
        self._paths.clear()

    # --- one operation

    def _do(self, what: str, act: Callable[[], Any], half: Callable[[], Any] | None = None) -> Any:
        if self._dead:
            raise Died(what)
        self.operations += 1
        self.last = what
        fault = self.fault
        if fault is None or self.operations < fault.at or (fault.once and self.operations > fault.at):
            return act()
        self.hit = self.hit or what
        if half is not None and fault.when == "half":
            half()
        if fault.code:
            raise OSError(fault.code, os.strerror(fault.code), what.split(" ", 1)[1])
        if fault.when == "after":
            act()
        self._dead = True
        raise Died(what)

    def _open(self, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        full = self._full(path, dir_fd)

        def act() -> int:
            new = self._lossy and flags & os.O_CREAT and not os.path.lexists(full)
            descriptor = _open(path, flags, mode, dir_fd=dir_fd)
            self._paths[descriptor] = full
            if new:
                self._synced[os.fstat(descriptor).st_ino] = b""
                self._named(full, lambda: _unlink(full))
            return descriptor

        if not flags & _NEW:
            if self._dead:
                raise Died(full)
            return act()
        if flags & os.O_TRUNC and Path(full).exists():
            self._changed(full)
        opened: int = self._do(f"open {full}", act)
        return opened

    def _close(self, descriptor: int) -> None:
        self._paths.pop(descriptor, None)
        _close(descriptor)

    def _pwrite(self, descriptor: int, data: Any, position: int) -> int:
        path = self._paths[descriptor]
        self._changed(path)
        half = bytes(data)[: (len(data) + 1) // 2]
        written: int = self._do(
            f"write {path}",
            lambda: _pwrite(descriptor, data, position),
            lambda: _pwrite(descriptor, half, position),
        )
        return written

    def _fsync(self, descriptor: int) -> None:
        path = self._paths[descriptor]

        def act() -> None:
            if Path(path).is_dir():
                self._names = [each for each in self._names if each[0] != path]
            else:
                self._synced.pop(os.fstat(descriptor).st_ino, None)

        self._do(f"fsync {path}", act)

    def _truncate(self, path: Any, length: int) -> None:
        self._changed(str(path))
        self._do(f"truncate {path}", lambda: _truncate(path, length))

    def _ftruncate(self, descriptor: int, length: int) -> None:
        self._changed(self._paths[descriptor])
        self._do(f"truncate {self._paths[descriptor]}", lambda: _ftruncate(descriptor, length))

    def _rename(self, source: Any, target: Any) -> None:
        self._moved("rename", str(source), str(target), _rename)

    def _replace(self, source: Any, target: Any) -> None:
        self._moved("replace", str(source), str(target), _replace)

    def _moved(self, how: str, source: str, target: str, act: Callable[[str, str], None]) -> None:
        def move() -> None:
            before = Path(target).read_bytes() if self._lossy and Path(target).is_file() else None
            act(source, target)

            def undo() -> None:
                _rename(target, source)
                if before is not None:
                    Path(target).write_bytes(before)

            self._named(target, undo)

        self._do(f"{how} {source} to {Path(target).name}", move)

    def _unlink(self, path: Any, *, dir_fd: int | None = None) -> None:
        full = self._full(path, dir_fd)

        def act() -> None:
            before = Path(full).read_bytes() if self._lossy else b""
            _unlink(path, dir_fd=dir_fd)
            self._named(full, lambda: _written(full, before))

        if not os.path.lexists(full):
            _unlink(path, dir_fd=dir_fd)
        self._do(f"unlink {full}", act)

    def _mkdir(self, path: Any, mode: int = 0o777) -> None:
        full = str(path)

        def act() -> None:
            _mkdir(path, mode)
            self._named(full, lambda: shutil.rmtree(full))

        self._do(f"mkdir {full}", act)

    def _rmdir(self, path: Any, *, dir_fd: int | None = None) -> None:
        full = self._full(path, dir_fd)

        def act() -> None:
            _rmdir(path, dir_fd=dir_fd)
            self._named(full, lambda: _mkdir(full))

        self._do(f"rmdir {full}", act)

    def _full(self, path: Any, dir_fd: int | None) -> str:
        return str(path) if dir_fd is None else f"{self._paths[dir_fd]}/{path}"

    # --- what a power cut takes away

    def _changed(self, path: str) -> None:
        if self._lossy and not self._dead:
            with suppress(FileNotFoundError):
                inode = Path(path).stat().st_ino
                if inode not in self._synced:
                    self._synced[inode] = Path(path).read_bytes()

    def _named(self, path: str, undo: Callable[[], None]) -> None:
        if self._lossy:
            self._names.append((str(Path(path).parent), undo))

    def lose_power(self, directory: Path, rng: random.Random) -> None:
        """Have the directory as it may be when the power is back."""
        for path in directory.rglob("*"):
            content = self._synced.get(path.stat().st_ino) if path.is_file() else None
            if content is not None:
                length = path.stat().st_size
                path.write_bytes(rng.choice((content, content, content + bytes(max(0, length - len(content))))))
        kept = rng.randint(0, len(self._names))
        for _, undo in reversed(self._names[kept:]):
            with suppress(OSError):
                undo()


def _written(path: str, data: bytes) -> None:
    Path(path).write_bytes(data)
