"""Death, errors of the disk and power cuts at every single file operation of random histories of a data directory.

After each the next start must succeed, and everything that was acknowledged be there: see acknowledged.py. The operations are
all of the first history, and every seventh of the others, so that many are tried. transaction_crash_points.py does the same to
histories of transactions.
"""

import errno
import random
import shutil
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from groupcoord.core.api_error import ApiError
from groupcoord.protocol.batches.record_batch import BatchError
from groupcoord.storage.file_io import StorageError
from tests.reliability.disk import Died, Disk, Fault
from tests.reliability.histories import History
from tests.reliability.lives import Broken, Life
from tests.reliability.outcome import Outcome

STEPS = 30
CODES = (errno.ENOSPC, errno.EIO, errno.EROFS, errno.EDQUOT)
KINDS = ("death", "error", "power cut")
_MOST_PROBLEMS = 20
_STRIDE = 7
_MEMORY = "/dev/shm"  # what a power cut takes is modelled: no real disk is needed


class Story(Protocol):
    """A history, and what there must be of it."""

    directory: Path
    step: int
    life: Life | None

    @property
    def doing(self) -> str:
        """What is under way."""

    def run(self, steps: int) -> None:
        """Take so many steps, or fewer if the disk fails. Raises whatever goes wrong that should not."""

    def start(self, rng: random.Random) -> Life:
        """The next server."""

    def check(self, rng: random.Random, *, power_cut: bool) -> None:
        """Look at everything. Raises Broken."""


Tell = Callable[[Path, str], Story]
"""The history in a directory that follows from a seed."""


def attack(count: int, seed: int, tell: Tell = History, *, first_whole: bool = True) -> Outcome:
    """Try ``count`` crash points, of as many histories as that takes; ``first_whole``: all of those of the first."""
    problems: list[str] = []
    tried: Counter[str] = Counter()
    histories = 0
    with tempfile.TemporaryDirectory(dir=_MEMORY if Path(_MEMORY).is_dir() else None) as name:
        directory = Path(name) / "data"
        while sum(tried.values()) < count and len(problems) < _MOST_PROBLEMS:
            histories += 1
            history = f"{seed}.{histories}"
            rng = random.Random(history)
            first, step = (1, 1) if histories == 1 and first_whole else (rng.randint(1, _STRIDE), _STRIDE)
            for at in range(first, operations(directory, history, tell=tell) + 1, step):
                kind = rng.choice(KINDS)
                tried[kind] += 1
                fault = fault_at(at, kind, rng)
                problem = try_point(directory, history, fault, rng, power_cut=kind == "power cut", tell=tell)
                if problem is not None:
                    problems.append(problem)
                if sum(tried.values()) == count or len(problems) == _MOST_PROBLEMS:
                    break
            sys.stderr.write(f"crash points: {sum(tried.values())} of {count}\n")
    split = ", ".join(f"{number} {kind}s" for kind, number in sorted(tried.items()))
    return Outcome(
        tried=f"{sum(tried.values())} file operations of {histories} histories: {split}",
        result=f"{len(problems)} starts that failed or missed something acknowledged (bound: 0)",
        problems=tuple(problems),
    )


def operations(directory: Path, history: str, steps: int = STEPS, tell: Tell = History) -> int:
    """How many operations the history consists of."""
    _clear(directory)
    disk = Disk()
    with disk.in_use():
        tell(directory, history).run(steps)
    disk.forsake()
    return disk.operations


def fault_at(at: int, kind: str, rng: random.Random) -> Fault:
    """A death or an error at that operation."""
    if kind == "error":
        return Fault(at, rng.choice(("before", "half")), rng.choice(CODES), once=rng.random() < 0.5)
    return Fault(at, rng.choice(("before", "after", "half")))


def try_point(
    directory: Path,
    history: str,
    fault: Fault,
    rng: random.Random,
    *,
    power_cut: bool,
    steps: int = STEPS,
    tell: Tell = History,
) -> str | None:
    """What is wrong after that fault, in a sentence; None if nothing is."""
    _clear(directory)
    told = tell(directory, history)
    disk = Disk(fault, lossy=power_cut)
    where = f"history {history}, {'power cut after ' if power_cut else ''}{fault}"
    try:
        _live(told, disk, steps)
        if power_cut:
            disk.lose_power(directory, rng)
        if rng.random() < 0.3:
            _die_at_the_start(told, rng)
        with Disk().in_use():
            told.check(rng, power_cut=power_cut)
    except Broken as problem:
        return f"{where}, step {told.step} {told.doing} ({disk.hit}): {problem}"
    except Exception as error:  # whatever it is, it is not an answer to a fault of the disk
        last = traceback.extract_tb(error.__traceback__)[-1]
        return f"{where}, step {told.step} {told.doing} ({disk.hit}): {error!r} at {last.filename}:{last.lineno}"
    return None


def _live(told: Story, disk: Disk, steps: int) -> None:
    with disk.in_use():
        try:
            told.run(steps)
        except Died:
            pass
        except (StorageError, ApiError, BatchError):
            if not disk.hit:
                raise
        finally:
            if told.life is not None:
                told.life.kill()
    disk.forsake()


def _die_at_the_start(told: Story, rng: random.Random) -> None:
    """The next server dies as well, before it serves anybody."""
    disk = Disk(Fault(rng.randint(1, 60), rng.choice(("before", "after", "half"))))
    with disk.in_use(), suppress(Died):
        told.start(rng).kill()
    disk.forsake()


def _clear(directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)
