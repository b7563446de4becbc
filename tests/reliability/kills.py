"""``kill -9`` at random moments: under load, while a server starts and recovers, while it ends in order.

Each directory has many lives, and after each of them the next server is asked for everything that was ever acknowledged:
records byte for byte, committed offsets, members, topics, configurations, producer ids. Segments are small, so that rolling,
retention and compaction are under way all the time.
"""

import random
from collections.abc import Iterator, Mapping
from pathlib import Path

from groupcoord.broker.topic_names import CONSUMER_OFFSETS
from groupcoord.protocol.apis.incremental_alter_configs import AlterableConfig, AlterConfigsResource
from groupcoord.protocol.messages import FindCoordinatorRequest, IncrementalAlterConfigsRequest
from tests.reliability.books import Client, Compacted, Idempotent, Plain, ProducerIds, Retained
from tests.reliability.coordination import Admin, Committer, Member
from tests.reliability.forks import Forks
from tests.reliability.load import Asking
from tests.reliability.outcome import Outcome
from tests.reliability.requests import create
from tests.reliability.server_lives import ServerLives, Weighed, kill_in_directories
from tests.reliability.talk import Talk

RETENTION_BYTES = 12_000
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


class Lives(ServerLives):
    """The lives of one data directory, with the clients that keep the books of it."""

    def __init__(self, forks: Forks, folder: Path, chance: random.Random) -> None:
        super().__init__(forks, folder, chance, SERVE)
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

    def _lives(self) -> list[Weighed]:
        return [(6, self._under_load), (2, self._at_start), (2, self._at_end)]

    def _asking(self) -> list[Asking]:
        return [client.live(self._chance) for client in self.clients]

    def _prepare(self, talk: Talk) -> None:
        prepare(talk, TOPICS, CONSUMER_OFFSETS)

    def _look(self, talk: Talk) -> Iterator[str]:
        for client in self.clients:
            yield from client.check(talk)


def prepare(talk: Talk, topics: Mapping[str, tuple[int, dict[str, str]]], *internal: str) -> None:
    """Create ``topics``, with their partitions and configurations, and have small segments in ``internal`` ones, too."""
    for name, (partitions, configs) in topics.items():
        answer = talk.ask(create(name, partitions, configs))
        assert not answer.topics[0].error_code, answer
    small = (AlterableConfig(name="internal.segment.bytes", config_operation=0, value="3000"),)
    for key_type, name in enumerate(internal):
        talk.ask(FindCoordinatorRequest(coordinator_keys=("c0",), key_type=key_type))
        resource = AlterConfigsResource(resource_type=2, resource_name=name, configs=small)
        changed = talk.ask(IncrementalAlterConfigsRequest(resources=(resource,)))
        assert not changed.responses[0].error_code, changed


def attack(count: int, seed: int) -> Outcome:
    """``count`` kills, and every directory kept in which something was wrong."""
    records = ids = 0

    def over(directory: Lives) -> None:
        nonlocal records, ids
        records += sum(len(client.acknowledged) for client in directory.records)
        records += sum(client.acknowledged for client in directory.idempotent)
        ids += len(directory.ids.given)

    killed = kill_in_directories(Lives, over, count, seed)
    return Outcome(
        tried=f"{killed.kills:,} kills in {killed.directories} directories",
        result=f"{records:,} acknowledged batches and {ids:,} producer ids looked for after each kill",
        problems=killed.problems,
    )
