"""The lives of servers on one data directory, each of which ends by a signal, with the clients that keep the books of it."""

import random
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from tests.reliability.forks import Fork, Forks
from tests.reliability.load import Asking, Load
from tests.reliability.served import NotServing
from tests.reliability.talk import Address, Talk

KILLS_PER_DIRECTORY = 25
MOST_PROBLEMS = 10

Weighed = tuple[int, Callable[[], Iterator[str]]]
"""A life that yields what is wrong, and how often it is led beside others."""


class ServerLives:
    """The lives of one data directory."""

    def __init__(self, forks: Forks, folder: Path, chance: random.Random, serve: Sequence[str]) -> None:
        self.kills = 0
        self.log = folder / "log"
        self.arguments = [*serve, "--data-dir", str(folder / "data")]
        self._forks, self._chance = forks, chance
        self._prepared = False

    def kill_by_force(self, kills: int) -> Iterator[str]:
        """So many kills, each at a moment of its own, then one life that is looked at. Yields what is wrong."""
        how = self._lives()
        weights = [weight for weight, _ in how]
        while self.kills < kills:
            (life,) = self._chance.choices([life for _, life in how], weights)
            yield from life()
        yield from self._last_life()

    # --- what a kind of attack says

    def _lives(self) -> list[Weighed]:
        """The lives that are led."""
        raise NotImplementedError

    def _asking(self) -> list[Asking]:
        """What its clients ask in one life."""
        raise NotImplementedError

    def _prepare(self, talk: Talk) -> None:
        """Make what is to be there, once."""
        raise NotImplementedError

    def _look(self, talk: Talk) -> Iterator[str]:
        """What is not as it was promised."""
        raise NotImplementedError

    # --- lives

    def _at_start(self) -> Iterator[str]:
        fork = self._start()
        pause(self._chance.uniform(0, 0.025))
        self._end(fork)
        yield from self._errors()

    def _under_load(self) -> Iterator[str]:
        seconds = self._chance.choice((0.01, 0.05, 0.2)) * self._chance.uniform(0.2, 2)
        yield from self._killed(lambda _, load: load.run(seconds))

    def _at_end(self) -> Iterator[str]:
        """The server is told to end, under load, and killed while it does."""

        def end(fork: Fork, load: Load) -> None:
            load.run(0.02)
            fork.kill(signal.SIGTERM)
            load.run(self._chance.uniform(0, 0.006))

        yield from self._killed(end)

    def _killed(self, live: Callable[[Fork, Load], None]) -> Iterator[str]:
        """A life that is looked at, then what ``live`` does under load, and its end."""
        fork = self._start()
        try:
            address = fork.address()
            yield from self._looked_at(address)
            load = Load(self._asking(), address)
            live(fork, load)
        finally:
            self._end(fork)
        load.end()
        yield from self._errors()

    def _last_life(self) -> Iterator[str]:
        fork = self._start()
        try:
            yield from self._looked_at(fork.address())
        finally:
            code = self._end(fork, signal.SIGTERM)
        if code:
            yield f"the last server ended with {code}"
        yield from self._errors()

    def _start(self) -> Fork:
        return self._forks.start(self.arguments, self.log)

    def _end(self, fork: Fork, number: signal.Signals = signal.SIGKILL) -> int:
        fork.kill(number)
        code = fork.wait()
        self.kills += code == -signal.SIGKILL
        return code

    def _looked_at(self, address: Address) -> Iterator[str]:
        with Talk(address) as talk:
            if not self._prepared:
                self._prepare(talk)
                self._prepared = True
            yield from self._look(talk)

    def _errors(self) -> Iterator[str]:
        said = self.log.read_text(errors="replace")
        if "Traceback" in said or "unexpected error" in said:
            yield f"the log says: {said[-3_000:]}"


LivesT = TypeVar("LivesT", bound=ServerLives)


class Killed(NamedTuple):
    """What came of kills in some directories."""

    kills: int
    directories: int
    problems: tuple[str, ...]


def kill_in_directories(
    make: Callable[[Forks, Path, random.Random], LivesT], over: Callable[[LivesT], None], count: int, seed: int
) -> Killed:
    """``count`` kills; ``over`` hears of each directory at its end. Those are kept in which something was wrong."""
    kills = directories = 0
    problems: list[str] = []
    with Forks() as forks:
        while kills < count and len(problems) < MOST_PROBLEMS:
            folder = Path(tempfile.mkdtemp(prefix="kills-"))
            number = kills
            directory = make(forks, folder, random.Random(f"{seed}:{number}"))
            found = _first_problem(directory, min(KILLS_PER_DIRECTORY, count - kills))
            kills += max(directory.kills, 1)
            directories += 1
            over(directory)
            if found is None:
                shutil.rmtree(folder)
            else:
                problems.append(f"seed {seed}, kill {number + directory.kills}, directory kept in {folder}: {found}")
            sys.stderr.write(f"  {kills:,} kills\n")
    return Killed(kills, directories, tuple(problems))


def _first_problem(directory: ServerLives, kills: int) -> str | None:
    try:
        return next(directory.kill_by_force(kills), None)
    except (NotServing, OSError, AssertionError) as problem:
        return repr(problem)


def pause(seconds: float) -> None:
    """Wait for so long."""
    threading.Event().wait(seconds)
