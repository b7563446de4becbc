"""Transaction scenarios with real clients, whose results must be the same on groupcoord and on Kafka."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient

from tests.clients.cluster import Cluster
from tests.clients.in_process import CONFIG
from tests.clients.members import SESSION_MS, Flavour, Membership
from tests.clients.processes import Running
from tests.clients.support import eventually, unique
from tests.clients.transactional import PRODUCERS, TransactionalProducer, read, refusal
from tests.clients.transformer import Transformer, transform

IMPATIENT = {**CONFIG, "transaction.abort.timed.out.transaction.cleanup.interval.ms": 100}
"""A broker that looks often for transactions that are open for too long."""
SHORT_MS = 2000
"""A timeout of transactions that may be waited for."""
STEPS = ("write", "offsets", "commit", "abort")

LOOPS = (
    Flavour("aiokafka", "range"),
    Flavour("kafka-python", "range"),
    Flavour("confluent", "range"),
    Flavour("confluent", "uniform", "consumer"),
)


def commit_and_abort(cluster: Cluster, library: str) -> None:
    """Two transactions are committed and one between them aborted, each with a position of a group: who sees what."""
    source, target, group = cluster.topic(), cluster.topic(), unique("group")
    committed: list[str] = []
    written: list[str] = []

    def is_known(position: int) -> bool:
        """Has the end of a transaction arrived wherever it is to arrive? Kafka answers before."""
        return cluster.committed(group) == {(source, 0): position} and read(cluster.bootstrap, target) == committed

    with _initialised(cluster, library, unique("id")) as producer:
        for value, position, commits in (("a", 3, True), ("b", 7, False), ("c", 5, True)):
            producer.begin()
            producer.write(target, [f"{value}1", f"{value}2"])
            producer.send_offsets({(source, 0): position}, producer.group(group))
            written += [f"{value}1", f"{value}2"]
            assert read(cluster.bootstrap, target) == committed
            assert read(cluster.bootstrap, target, "read_uncommitted") == written
            if commits:
                producer.commit()
                committed += written[-2:]
                eventually(partial(is_known, position), saying="it is committed")
            else:
                producer.abort()
    assert committed == ["a1", "a2", "c1", "c2"]
    assert is_known(5)
    assert read(cluster.bootstrap, target, "read_uncommitted") == written


def fence(cluster: Cluster, library: str) -> dict[str, str]:
    """A predecessor takes each step of a transaction: how it is told that it has a successor."""
    topic, transactional_id = cluster.topic(), unique("id")
    told: dict[str, str] = {}
    for step in STEPS:
        with _initialised(cluster, library, transactional_id) as first:
            first.begin()
            first.write(topic, ["of a zombie"])
            with _initialised(cluster, library, transactional_id) as second:
                second.begin()
                second.write(topic, [step])
                if step == "write":
                    # kafka-python 3.0 goes on to ask for a new epoch in exchange for its old one, and may fence its successor.
                    second.commit()
                told[step] = _take(first, step, topic)
                if step != "write":
                    second.commit()
    eventually(
        lambda: read(cluster.bootstrap, topic) == list(STEPS),
        saying="the records of the successors are there, no others",
    )
    return told


def time_out(cluster: Cluster, library: str) -> dict[str, str]:
    """The coordinator aborts what is open for too long: how its producer is told at its next step."""
    topic = cluster.topic()
    with ExitStack() as running:
        producers = []
        for step in STEPS:
            producers.append(running.enter_context(_initialised(cluster, library, unique("id"), SHORT_MS)))
            producers[-1].begin()
            producers[-1].write(topic, [f"before the timeout of who is to {step}"])
        cluster.produce(topic, ["after them"])
        eventually(lambda: read(cluster.bootstrap, topic) == ["after them"], saying="all are aborted")
        told = {step: _take(producer, step, topic) for step, producer in zip(STEPS, producers, strict=True)}
    assert read(cluster.bootstrap, topic) == ["after them"]
    return told


@contextmanager
def _initialised(
    cluster: Cluster, library: str, transactional_id: str, timeout_ms: int = 60_000
) -> Iterator[TransactionalProducer]:
    producer = PRODUCERS[library](cluster.bootstrap, transactional_id, timeout_ms)
    try:
        yield producer
    finally:
        producer.close()


def _take(producer: TransactionalProducer, step: str, topic: str) -> str:
    if step == "write":
        return refusal(producer.write, topic, ["never committed"])
    if step == "offsets":
        return refusal(producer.send_offsets, {(topic, 0): 1}, producer.group(unique("group")))
    return refusal(producer.commit if step == "commit" else producer.abort)


class Loop:
    """Transformers from a topic of two partitions to one of one, whose members are soon given up if they say nothing."""

    def __init__(self, cluster: Cluster, flavour: Flavour, session_ms: int | None = None) -> None:
        self.cluster, self.flavour = cluster, flavour
        self._session_ms = session_ms or cluster.shortest_session_ms
        self.group, self.source, self.target = unique("group"), cluster.topic(2), cluster.topic()
        self._fed: list[str] = []
        self._running = ExitStack()
        if flavour.protocol == "consumer":
            admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
            try:
                timeout_ms = cluster.broker_config("group.consumer.min.session.timeout.ms")
                configs = {"consumer.session.timeout.ms": timeout_ms}
                admin.alter_configs([ConfigResource(ConfigResourceType.GROUP, self.group, configs)])
            finally:
                admin.close()

    @contextmanager
    def kept(self) -> Iterator["Loop"]:
        """Transformers that still run at the end are killed then."""
        with self._running:
            yield self

    def starts(self, transactional_id: str, *, stops_before: str = "", timeout_ms: int = 60_000) -> Running:
        """Another one starts."""
        membership = Membership(
            bootstrap=self.cluster.bootstrap,
            flavour=self.flavour,
            group=self.group,
            topics=(self.source,),
            client_id=transactional_id,
            session_ms=self._session_ms,
        )
        program = Running(
            Transformer(
                membership=membership,
                target=self.target,
                transactional_id=f"{self.group}-{transactional_id}",
                timeout_ms=timeout_ms,
                stops_before=stops_before,
            ).command()
        )
        self._running.callback(program.kill)
        return program

    def feed(self) -> None:
        """Ten more records are to be transformed."""
        values = [f"value {number}" for number in range(len(self._fed), len(self._fed) + 10)]
        self._fed += values
        self.cluster.produce(self.source, values, partitions=2)

    def is_through(self) -> None:
        """Wait until the group has committed what was fed."""
        half = len(self._fed) // 2
        everything = {(self.source, 0): half, (self.source, 1): half}
        eventually(lambda: self.cluster.committed(self.group) == everything, saying="all is transformed")

    @property
    def output(self) -> list[str]:
        """What a reader of committed records finds at the other end."""
        return read(self.cluster.bootstrap, self.target)

    def holds_each_once(self, *left: Running) -> None:
        """Let those end that are ``left``: each record that was fed has come out once, however often it was transformed."""
        self.is_through()
        for program in left:
            assert program.end() == 0
            assert program.lines[-1] == "closed"
        expected = sorted(map(transform, self._fed))
        eventually(lambda: sorted(self.output) == expected, saying=f"{self.target} holds {expected}")


def share_and_leave(cluster: Cluster, flavour: Flavour) -> None:
    """One transforms, another joins it, the first leaves."""
    with Loop(cluster, flavour, SESSION_MS).kept() as loop:
        loop.feed()
        first = loop.starts("first")
        loop.is_through()
        second = loop.starts("second")
        eventually(lambda: cluster.owners(loop.group) == {"first": 1, "second": 1}, saying="they share")
        loop.feed()
        loop.is_through()
        assert first.end() == 0
        loop.feed()
        loop.holds_each_once(second)


def survive_a_zombie(cluster: Cluster, flavour: Flavour) -> list[str]:
    """One stands still with its records written, until another has its partitions and has transformed them: how it is refused.

    aiokafka does not say which member it commits for, so there the other one needs the same transactional id.
    """
    with Loop(cluster, flavour).kept() as loop:
        loop.feed()
        zombie = loop.starts("zombie", stops_before="offsets")
        eventually(lambda: "stopped" in zombie.lines, saying="it stands still")
        knows_members = flavour.library != "aiokafka"
        survivor = loop.starts("survivor" if knows_members else "zombie")
        loop.is_through()
        if knows_members:
            assert loop.output == []  # who reads what is committed waits for the end of the zombie's transaction
        zombie.resume()
        refusals = eventually(
            lambda: [line for line in zombie.lines if line.startswith("refused")], saying="the zombie is refused"
        )
        loop.feed()
        loop.holds_each_once(zombie, survivor)
        return refusals


def survive_a_crash(cluster: Cluster, flavour: Flavour) -> None:
    """One is killed just before it commits, and started again."""
    with Loop(cluster, flavour).kept() as loop:
        loop.feed()
        _is_killed_before_its_commit(loop)
        again = loop.starts("doomed")
        loop.feed()
        loop.holds_each_once(again)


def take_over_after_a_crash(cluster: Cluster, flavour: Flavour) -> None:
    """One is killed just before it commits: the other waits for the coordinator to abort that (UNSTABLE_OFFSET_COMMIT)."""
    with Loop(cluster, flavour).kept() as loop:
        loop.feed()
        _is_killed_before_its_commit(loop, timeout_ms=SHORT_MS)
        other = loop.starts("other")
        loop.feed()
        loop.holds_each_once(other)


def _is_killed_before_its_commit(loop: Loop, timeout_ms: int = 60_000) -> None:
    doomed = loop.starts("doomed", stops_before="commit", timeout_ms=timeout_ms)
    eventually(lambda: "stopped" in doomed.lines, saying="it stands still")
    doomed.kill()
