"""A Kafka Streams application that counts words exactly once, while it and the server are killed and started again.

The program is told where the server is, its application id, the topic it reads lines from, the topic it writes counts to and a
directory. It says its ``state`` whenever that changes, ``failed`` and why, and ``closed`` at its end, to which it comes when
its standard input does.
"""

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import OffsetSpec

import groupcoord
from tests.clients.cluster import Cluster
from tests.clients.processes import ROOT, Running
from tests.clients.program_members import NoClient, compiled_java
from tests.clients.restartable import PARAMETERS, PROPERTIES, Groupcoord, Restartable, started
from tests.clients.support import PATIENCE_S, Partition, eventually, unique

pytestmark = [pytest.mark.slow, pytest.mark.minutes(1)]

LIBS = ROOT / "docker" / "kafka" / "libs-4.3.1-streams"
PARTITIONS = 2
LINES = ["to be or not to be", "that is the question", "whether it is nobler in the mind to suffer"]
LONG_PATIENCE_S = 15 * PATIENCE_S


class Counts:
    """What a reader of committed counts has found so far: word → its counts, in the order in which they came."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.found: dict[str, list[int]] = defaultdict(list)
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": unique("reader"),
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
            }
        )
        self._consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])

    def close(self) -> None:
        """Close its client."""
        self._consumer.close()

    def read(self) -> None:
        """Read what there is by now."""
        for message in self._consumer.consume(1000, 0.05):
            if message.error() is None:
                self.found[(message.key() or b"").decode()].append(int(message.value() or b""))


class Story:
    """An application, its topics and what was written for it to count."""

    def __init__(self, bootstrap: str, command: Sequence[str], folder: Path) -> None:
        self.cluster = Cluster(bootstrap)
        self.source, self.target = (self.cluster.topic(PARTITIONS) for _ in range(2))
        self.application_id = unique("words")
        self._words, self._changelog = (f"{self.application_id}-counts-{of}" for of in ("repartition", "changelog"))
        self.counts = Counts(bootstrap, self.target)
        self._command = [*command, bootstrap, self.application_id, self.source, self.target]
        self._expected: Counter[str] = Counter()
        self._running = ExitStack()
        self._folders = (folder / f"instance-{number}" for number in itertools.count())
        self._running.callback(self.cluster.close)
        self._running.callback(self.counts.close)

    @contextmanager
    def told(self) -> Iterator["Story"]:
        """Nothing of it runs afterwards."""
        with self._running:
            yield self

    def start(self) -> Running:
        """Start an instance of the application."""
        application = Running([*self._command, str(next(self._folders))])
        self._running.callback(application.kill)
        return application

    def write(self, times: int) -> None:
        """Write the lines so many times."""
        lines = LINES * times
        self.cluster.produce(self.source, lines, partitions=PARTITIONS)
        self._expected.update(word for line in lines for word in line.split())

    def all_is_counted(self) -> None:
        """Wait for it. Each word had each count once, in order: nothing was lost, nothing counted twice."""
        expected = {word: list(range(1, count + 1)) for word, count in self._expected.items()}

        def counted() -> bool:
            self.counts.read()
            return sum(map(len, self.counts.found.values())) >= sum(map(len, expected.values()))

        eventually(counted, LONG_PATIENCE_S, saying="all words are counted")
        assert self.counts.found == expected

    def killed_in_a_transaction(self, application: Running) -> None:
        """Kill it when it has written words that it has not committed."""
        while True:
            eventually(self._in_a_transaction, LONG_PATIENCE_S, saying="it has written words")
            application.pause()
            if self._in_a_transaction():
                application.kill()
                return
            application.resume()

    def _in_a_transaction(self) -> bool:
        committed = self._offsets(OffsetSpec.latest(), IsolationLevel.READ_COMMITTED)
        return committed != self._offsets(OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED)

    def counted_words_are_deleted(self) -> bool:
        """Has the application deleted, from each partition of its topic of words, some that it had counted?"""
        return all(self._offsets(OffsetSpec.earliest(), IsolationLevel.READ_UNCOMMITTED))

    def _offsets(self, which: OffsetSpec, isolation: IsolationLevel) -> list[int]:
        places = {TopicPartition(self._words, number): which for number in range(PARTITIONS)}
        asked = self.cluster.admin.list_offsets(places, isolation_level=isolation)
        return [place.result(PATIENCE_S).offset for place in asked.values()]

    @property
    def places(self) -> list[Partition]:
        """Each partition that the application has to do with, that of its group and that of its transactions too."""
        topics = (self.source, self._words, self._changelog, self.target)
        internal = [("__consumer_offsets", 0), ("__transaction_state", 0)]  # of which there is one each
        return [*((topic, number) for topic in topics for number in range(PARTITIONS)), *internal]

    def is_shared_by(self, instances: int) -> bool:
        """Has each instance as many of the partitions of lines and of words as the others?"""
        return list(self.cluster.owners(self.application_id).values()) == [2 * PARTITIONS // instances] * instances


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Sequence[str]:
    """The program; skips where it cannot be run."""
    jars = sorted(map(str, LIBS.glob("*.jar")))
    if not jars:
        pytest.skip(f"no jar of Kafka Streams in {LIBS} (`make kafka-libs`)")
    try:
        return compiled_java("WordCount", tmp_path_factory.mktemp("word-count"), (), jars)
    except NoClient as reason:
        pytest.skip(str(reason))


@pytest.fixture(params=PARAMETERS)
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Restartable]:
    """A server that runs."""
    with started(request.param, tmp_path / "server") as server:
        yield server


def test_each_word_is_counted_once_though_the_application_and_the_server_are_killed(
    server: Restartable, command: Sequence[str], tmp_path: Path
) -> None:
    with Story(server.bootstrap, command, tmp_path).told() as story:
        story.write(10)
        first = story.start()
        story.all_is_counted()
        eventually(story.counted_words_are_deleted, saying="what was counted is deleted")

        story.write(100)
        story.killed_in_a_transaction(first)
        second = story.start()
        story.all_is_counted()

        third = story.start()
        eventually(lambda: story.is_shared_by(2), LONG_PATIENCE_S, saying="two share the work")
        story.write(20)
        server.end()
        server.start()
        story.write(20)
        story.all_is_counted()

        for application in (second, third):
            assert application.end() == 0
            assert "closed" in application.lines
            if isinstance(
                server, Groupcoord
            ):  # a real Kafka needs seconds to start, and a transaction may begin anew then
                assert not [line for line in application.lines if line.startswith("failed")]


def test_each_word_is_counted_once_though_leaders_and_coordinators_move(command: Sequence[str], tmp_path: Path) -> None:
    config = {**PROPERTIES, "offsets.topic.num.partitions": 1}
    with (
        groupcoord.Cluster(config=config, brokers=3).sync() as brokers,
        Story(brokers.address, command, tmp_path).told() as story,
    ):
        story.write(10)
        application = story.start()
        story.all_is_counted()

        for topic, partition in 2 * story.places:
            story.write(2)
            found = brokers.core.broker.topics.get(topic)
            assert found is not None
            brokers.move_leader(topic, partition, to=found.metadata.leaders[partition] % 3 + 1)
        story.all_is_counted()

        assert application.end() == 0
        assert "closed" in application.lines
