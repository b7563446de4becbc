"""``kill -9`` at random moments: under load, while a server starts and recovers, while it ends in order.

Each directory has many lives, and after each of them the next server is asked for everything that was ever acknowledged:
records byte for byte, committed offsets, members, topics, configurations, producer ids. Segments are small, so that rolling,
retention and compaction are under way all the time.
"""

import random
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from groupcoord.broker.topic_names import CONSUMER_OFFSETS
from groupcoord.protocol.apis.incremental_alter_configs import AlterableConfig, AlterConfigsResource
from groupcoord.protocol.messages import FindCoordinatorRequest, IncrementalAlterConfigsRequest
from tests.reliability.books import Client, Compacted, Idempotent, Plain, ProducerIds, Retained
from tests.reliability.coordination import Admin, Committer, Member
from tests.reliability.forks import Fork, Forks
from tests.reliability.load import Load
from tests.reliability.outcome import Outcome
from tests.reliability.requests import create
from tests.reliability.served import NotServing
from tests.reliability.talk import Address, Talk

KILLS_PER_DIRECTORY = 25
RETENTION_BYTES = 12_000
MOST_PROBLEMS = 10
SERVE = (
    "--port=0", "-q", "--dev",
    "-c", "offsets.topic.num.partitions=3",
    "-c", "log.retention.check.interval.ms=20",
    "-c", "log.initial.task.delay.ms=10",
    "-c", "log.cleaner.backoff.ms=20",
    "-c", "log.segment.delete.delay.ms=0",
    "-c", "log.cleaner.min.cleanable.ratio=0.01",
    "-c", "group.max.session.timeout.ms=600000",
    "-c", "log.flush.offset.checkpoint.interval.ms=30",
)  # fmt: skip
TOPICS: dict[str, tuple[int, dict[str, str]]] = {
    "plain": (2, {"internal.segment.bytes": "4000", "retention.ms": "-1"}),
    "idempotent": (2, {"internal.segment.bytes": "4000", "retention.ms": "-1"}),
    "retained": (1, {"retention.bytes": str(RETENTION_BYTES), "internal.segment.bytes": "4000", "retention.ms": "-1"}),
    "compacted": (1, {"cleanup.policy": "compact", "internal.segment.bytes": "2000"}),
}


class Lives:
    """The lives of one data directory, with the clients that keep the books of it."""

    def __init__(self, forks: Forks, folder: Path, chance: random.Random) -> None:
        self.kills = self.answered = 0
        self.log = folder / "log"
        self.arguments = [*SERVE, "--data-dir", str(folder / "data")]
        self._forks, self._chance = forks, chance
        ids = ProducerIds()
        self.ids = ids
        self.records = [Plain("plain", 0), Plain("plain", 1), Retained("retained", 0, RETENTION_BYTES)]
        self.idempotent = [Idempotent("idempotent", partition, ids) for partition in (0, 1)]
        self.committers = [Committer(f"c{number}", "plain", 2) for number in range(3)]
        members = [Member("m0"), Member("m1")]
        self.clients: list[Client] = [
            *self.records,
            *self.idempotent,
            *self.committers,
            *members,
            Compacted("compacted", 0),
            Admin(),
            ids,
        ]
        self._prepared = False

    def kill_by_force(self, kills: int) -> Iterator[str]:
        """So many kills, each at a moment of its own, then one life that is looked at. Yields what is wrong."""
        how: list[tuple[int, Callable[[], Iterator[str]]]] = [
            (6, self._under_load),
            (2, self._at_start),
            (2, self._at_end),
        ]
        weights = [weight for weight, _ in how]
        while self.kills < kills:
            (life,) = self._chance.choices([life for _, life in how], weights)
            yield from life()
        yield from self._last_life()

    def _start(self) -> Fork:
        return self._forks.start(self.arguments, self.log)

    def _end(self, fork: Fork, number: signal.Signals = signal.SIGKILL) -> int:
        fork.kill(number)
        code = fork.wait()
        self.kills += code == -signal.SIGKILL
        return code

    def _at_start(self) -> Iterator[str]:
        fork = self._start()
        _pause(self._chance.uniform(0, 0.025))
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
            load = Load([client.live(self._chance) for client in self.clients], address)
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

    def _looked_at(self, address: Address) -> Iterator[str]:
        with Talk(address) as talk:
            if not self._prepared:
                _prepare(talk)
                self._prepared = True
            for client in self.clients:
                yield from client.check(talk)

    def _errors(self) -> Iterator[str]:
        said = self.log.read_text(errors="replace")
        if "Traceback" in said or "unexpected error" in said:
            yield f"the log says: {said[-3_000:]}"


def _prepare(talk: Talk) -> None:
    """Create the topics, and have small segments in ``__consumer_offsets``, too."""
    for name, (partitions, configs) in TOPICS.items():
        answer = talk.ask(create(name, partitions, configs))
        assert not answer.topics[0].error_code, answer
    talk.ask(FindCoordinatorRequest(coordinator_keys=("c0",)))
    small = AlterableConfig(name="internal.segment.bytes", config_operation=0, value="3000")
    offsets = AlterConfigsResource(resource_type=2, resource_name=CONSUMER_OFFSETS, configs=(small,))
    changed = talk.ask(IncrementalAlterConfigsRequest(resources=(offsets,)))
    assert not changed.responses[0].error_code, changed


def attack(count: int, seed: int) -> Outcome:
    """``count`` kills, and every directory kept in which something was wrong."""
    kills = lives = records = commits = ids = 0
    problems: list[str] = []
    with Forks() as forks:
        while kills < count and len(problems) < MOST_PROBLEMS:
            folder = Path(tempfile.mkdtemp(prefix="kills-"))
            number = kills
            directory = Lives(forks, folder, random.Random(f"{seed}:{number}"))
            wanted = min(KILLS_PER_DIRECTORY, count - kills)
            found = _first_problem(directory, wanted)
            kills += max(directory.kills, 1)
            lives += 1
            records += sum(len(client.acknowledged) for client in directory.records)
            records += sum(client.acknowledged for client in directory.idempotent)
            commits += sum(sum(client.acknowledged.values()) > 0 for client in directory.committers)
            ids += len(directory.ids.given)
            if found is None:
                shutil.rmtree(folder)
            else:
                problems.append(f"seed {seed}, kill {number + directory.kills}, directory kept in {folder}: {found}")
            sys.stderr.write(f"  {kills:,} kills\n")
    return Outcome(
        tried=f"{kills:,} kills in {lives} directories",
        result=f"{records:,} acknowledged batches and {ids:,} producer ids looked for after each kill",
        problems=tuple(problems),
    )


def _first_problem(directory: Lives, kills: int) -> str | None:
    try:
        return next(directory.kill_by_force(kills), None)
    except (NotServing, OSError, AssertionError) as problem:
        return repr(problem)


def _pause(seconds: float) -> None:
    threading.Event().wait(seconds)
