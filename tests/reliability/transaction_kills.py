"""``kill -9`` at every point of a transaction: when the requests of a step are sent, a moment later, when they are answered.

Producers that know KIP-890, old ones, and one that never ends what it began write to the same partitions at the same time.
After some kills they go on in the middle of what they did, after most they have successors. exactly_once.py says what must
be there then. Segments are small, so that all three logs are rolled and compacted all the time.
"""

import itertools
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from groupcoord.broker.topic_names import CONSUMER_OFFSETS, TRANSACTION_STATE
from tests.reliability.exactly_once import (
    INPUT,
    OUTPUT,
    OUTPUT_PARTITIONS,
    POINTS,
    ExactlyOnce,
    Fate,
    Point,
    Step,
    look,
)
from tests.reliability.forks import Fork, Forks
from tests.reliability.kills import SERVE, prepare
from tests.reliability.load import Asking, Load
from tests.reliability.outcome import Outcome
from tests.reliability.server_lives import ServerLives, Weighed, kill_in_directories, pause
from tests.reliability.talk import Talk

TRANSACTIONS_PARTITIONS = 3
PATIENCE_SECONDS = 20.0
_SERVE = (
    *SERVE,
    "-c", f"transaction.state.log.num.partitions={TRANSACTIONS_PARTITIONS}",
    "-c", "transaction.abort.timed.out.transaction.cleanup.interval.ms=20",
)  # fmt: skip
_TOPICS: dict[str, tuple[int, dict[str, str]]] = {
    INPUT: (1, {}),
    OUTPUT: (OUTPUT_PARTITIONS, {"internal.segment.bytes": "4000", "retention.ms": "-1"}),
}
_TRANSACTIONAL = {OUTPUT: OUTPUT_PARTITIONS, CONSUMER_OFFSETS: 3}
_POINTS = [(is_old, point) for is_old, points in POINTS.items() for point in points]


class TransactionLives(ServerLives):
    """The lives of one data directory; ``at`` counts the points at which a server was killed."""

    def __init__(self, forks: Forks, folder: Path, chance: random.Random) -> None:
        super().__init__(forks, folder, chance, _SERVE)
        self.clients = [
            ExactlyOnce("new-0"),
            ExactlyOnce("new-1"),
            ExactlyOnce("old-0", is_old=True),
            ExactlyOnce("old-1", is_old=True),
            ExactlyOnce("lost", abandons=True),
        ]
        self.at: Counter[Point] = Counter()
        self.interrupted = 0
        """How many transactions were open in moments of kills."""
        self._is_last = False
        points = list(_POINTS)
        chance.shuffle(points)
        self._points = itertools.cycle(points)

    def _lives(self) -> list[Weighed]:
        return [(7, self._at_point), (1, self._under_load), (1, self._at_start), (1, self._at_end)]

    def _at_point(self) -> Iterator[str]:
        is_old, point = next(self._points)
        victim = self._chance.choice(
            [client for client in self.clients if client.is_old == is_old and not client.abandons]
        )

        def until_point(_: Fork, load: Load) -> None:
            load.run(PATIENCE_SECONDS, lambda: victim.has_stopped)
            self.at[point] += victim.has_stopped
            pause(self._chance.choice((0, 0.0005, 0.001, 0.002)) * self._chance.random())

        victim.stop = point
        victim.passes = 0 if point.step is Step.INITIALISE else self._chance.randrange(8)
        yield from self._killed(until_point)
        victim.stop = None

    def _asking(self) -> list[Asking]:
        return [client.live(self._chance) for client in self.clients]

    def _prepare(self, talk: Talk) -> None:
        prepare(talk, _TOPICS, CONSUMER_OFFSETS, TRANSACTION_STATE)

    def _look(self, talk: Talk) -> Iterator[str]:
        self.interrupted += sum(client.is_inside for client in self.clients)
        goes_on = not self._is_last and self._chance.random() < 0.3
        for client in self.clients:
            client.resumes = goes_on and client.can_resume
        yield from look(talk, self.clients, _TRANSACTIONAL)

    def _last_life(self) -> Iterator[str]:
        self._is_last = True
        yield from super()._last_life()


def attack(count: int, seed: int) -> Outcome:
    """``count`` kills, and every directory kept in which something was wrong."""
    fates: Counter[Fate] = Counter()
    at: Counter[Point] = Counter()
    interrupted = 0

    def over(directory: TransactionLives) -> None:
        nonlocal interrupted
        interrupted += directory.interrupted
        at.update(directory.at)
        for client in directory.clients:
            fates.update({fate: client.count(fate) for fate in Fate})

    killed = kill_in_directories(TransactionLives, over, count, seed)
    return Outcome(
        tried=f"{killed.kills:,} kills in {killed.directories} directories, {at.total():,} of them at {len(at)} points of a "
        f"transaction, {interrupted:,} transactions open at the time",
        result=f"{fates[Fate.COMMITTED]:,} transactions committed, whole, and as many as the groups' offsets say; of "
        f"{fates[Fate.ABORTED]:,} others nothing is read; no last stable offset behind the end of its log",
        problems=killed.problems,
    )
