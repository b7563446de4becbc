"""One life of a group, told by the callbacks of real clients, on groupcoord and on a real broker: it must be the same life.

And the same transactions.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from typing import Any, TypeVar

import pytest

from tests.clients import transaction_stories as stories
from tests.clients.cluster import Cluster
from tests.clients.in_process import groupcoord
from tests.clients.members import FLAVOURS, Flavour, Member, Membership
from tests.clients.support import Partition, eventually, partitions_of, unique
from tests.clients.transactional import PRODUCERS
from tests.conformance.settings import FAST
from tests.conftest import StartRealKafka

pytestmark = [pytest.mark.slow, pytest.mark.minutes(4)]

PARTITIONS = 6

Entry = tuple[str, frozenset[Partition]]
Told = TypeVar("Told")


class GroupHistory:
    """What is told of a group, in terms that do not name the server, the group or the topic.

    The sticky assignors of the Python libraries iterate over sets, so that which partitions they choose differs from run to
    run; of these it is told how many. A rebalance after which a member has what it had is not told: kafka-python starts one
    more if its metadata comes while it joins.
    """

    def __init__(self, cluster: Cluster, flavour: Flavour) -> None:
        self.cluster, self.flavour = cluster, flavour
        self.group, self.topic = unique("group"), cluster.topic(PARTITIONS)
        self.events: list[Any] = []
        self._by_number = flavour.library == "confluent" or "sticky" not in flavour.assignor
        self._running = ExitStack()
        self._members: list[Member] = []
        self._told: list[int] = []
        self._produced = 0

    @contextmanager
    def kept(self) -> Iterator["GroupHistory"]:
        """Members that still run at the end leave then."""
        with self._running:
            yield self

    def joins(self, *, instance_id: str | None = None) -> Member:
        """Another member starts."""
        number = len(self._members)
        member = Member(
            Membership(
                bootstrap=self.cluster.bootstrap,
                flavour=self.flavour,
                group=self.group,
                topics=(self.topic,),
                client_id=f"member-{number}",
                instance_id=instance_id,
            )
        )
        self._running.callback(member.end)
        self._members.append(member)
        self._told.append(0)
        self.events.append(f"member-{number} joins")
        return member

    def leaves(self, member: Member) -> None:
        """A member closes its client."""
        member.leave()
        self.events.append(f"{member.membership.client_id} leaves")

    def own_evenly(self, *members: Member) -> None:
        """Wait until ``members`` share everything and the group is stable; then write down what each was told since."""
        share = PARTITIONS // len(members)

        def settled() -> bool:
            owned = [member.owned for member in members]
            evenly = [len(some) for some in owned] == [share] * len(members)
            return evenly and frozenset[Partition]().union(*owned) == partitions_of(self.topic, PARTITIONS)

        eventually(settled, saying=f"{len(members)} own {share} each")
        eventually(lambda: self.cluster.group(self.group).state.name == "STABLE", saying="the group is stable")
        for number, member in enumerate(self._members):
            entries = member.diary.entries
            for what, partitions in _without_detours(entries[self._told[number] :]):
                which = sorted(number for _, number in partitions) if self._by_number else len(partitions)
                self.events.append((f"member-{number}", what, which))
            self._told[number] = len(entries)

    def reads_on(self, *members: Member, records: int = 12) -> None:
        """``records`` more are written, read by ``members``, and committed by each."""
        before = sum(len(member.received) for member in members)
        values = [f"value {number}" for number in range(self._produced, self._produced + records)]
        self._produced += records
        self.cluster.produce(self.topic, values, partitions=PARTITIONS)
        eventually(
            lambda: sum(len(member.received) for member in members) == before + records,
            saying=f"{records} more are read, each once",
        )
        for member in members:
            member.commit()
            self.commits()

    def commits(self) -> None:
        """Write down what is committed."""
        committed = self.cluster.committed(self.group)
        by_number = {number: offset for (_, number), offset in sorted(committed.items())}
        self.events.append(by_number if self._by_number else sorted(by_number.values()))

    def state(self) -> None:
        """Write down what an administrator sees between rebalances: in a cooperative group one may follow when all own their
        share."""

        def at_rest() -> Any:
            seen = self.cluster.group(self.group)
            return seen if seen.state.name in {"STABLE", "EMPTY"} else None

        seen = eventually(at_rest, saying="the group is not rebalancing")
        members = {member.client_id: len(member.assignment.topic_partitions) for member in seen.members}
        self.events.append((seen.state.name, seen.partition_assignor, dict(sorted(members.items()))))


def _without_detours(entries: Iterable[Entry]) -> list[Entry]:
    """``entries`` without those that take something away and give the same back, and what comes in pieces as one.

    In a cooperative group each owner gives up its part in its own time: if one is late, the next generation is there before
    it, and whoever waits is given the rest by the one after.
    """
    kept: list[Entry] = []
    for what, partitions in entries:
        if len(kept) > 1 and what == "assigned" and kept[-1] == ("revoked", partitions) == ("revoked", kept[-2][1]):
            kept.pop()
        elif kept and kept[-1][0] == what:
            kept[-1] = what, kept[-1][1] | partitions
        else:
            kept.append((what, partitions))
    return kept


def life_of_a_group(cluster: Cluster, flavour: Flavour) -> list[Any]:
    """A first member; a second; a third; two leave, in another order; the last one leaves; a successor resumes."""
    with GroupHistory(cluster, flavour).kept() as told:
        first = told.joins()
        told.own_evenly(first)
        told.reads_on(first)
        second = told.joins()
        told.own_evenly(first, second)
        told.reads_on(first, second)
        third = told.joins()
        told.own_evenly(first, second, third)
        told.state()
        told.reads_on(first, second, third)
        told.leaves(second)
        told.own_evenly(first, third)
        told.reads_on(third, first)
        told.leaves(first)
        told.own_evenly(third)
        told.leaves(third)
        eventually(lambda: cluster.group(told.group).state.name == "EMPTY", saying="the group is empty")
        told.state()
        told.commits()
        successor = told.joins()
        told.own_evenly(successor)
        told.reads_on(successor)
        assert told.cluster.new_errors() == []
        return told.events


def life_of_a_static_group(cluster: Cluster, flavour: Flavour) -> list[Any]:
    """Two static members; one goes and comes back, and nobody notices."""
    with GroupHistory(cluster, flavour).kept() as told:
        first = told.joins(instance_id="one")
        told.own_evenly(first)
        second = told.joins(instance_id="two")
        told.own_evenly(first, second)
        told.reads_on(first, second)
        told.leaves(second)
        told.state()
        again = told.joins(instance_id="two")
        told.own_evenly(first, again)
        told.reads_on(first, again)
        told.state()
        assert told.cluster.new_errors() == []
        return told.events


def told_to(both: tuple[Cluster, Cluster], story: Callable[[Cluster], Told]) -> list[Told]:
    """What becomes of ``story`` at each server. It is told to both at the same time: clients mostly wait."""
    with ThreadPoolExecutor(len(both)) as tellers:
        return list(tellers.map(story, both))


@pytest.fixture(scope="module")
def both(start_real_kafka: StartRealKafka) -> Iterator[tuple[Cluster, Cluster]]:
    """groupcoord and a real broker that are as soon tired of members and of transactions."""
    properties = {**FAST.properties, **{name: str(value) for name, value in stories.IMPATIENT.items()}}
    with (
        start_real_kafka(properties) as real,
        groupcoord(stories.IMPATIENT) as server,
        closing(Cluster(server)) as ours,
        closing(Cluster(real.bootstrap_servers)) as theirs,
    ):
        yield ours, theirs


@pytest.mark.parametrize("flavour", FLAVOURS, ids=str)
def test_the_life_of_a_group_is_the_same(both: tuple[Cluster, Cluster], flavour: Flavour) -> None:
    ours, real = told_to(both, lambda cluster: life_of_a_group(cluster, flavour))
    assert ours == real


@pytest.mark.parametrize("flavour", FLAVOURS, ids=str)
def test_the_life_of_static_members_is_the_same(both: tuple[Cluster, Cluster], flavour: Flavour) -> None:
    ours, real = told_to(both, lambda cluster: life_of_a_static_group(cluster, flavour))
    assert ours == real


@pytest.mark.parametrize("library", PRODUCERS)
@pytest.mark.parametrize("story", [stories.commit_and_abort, stories.fence, stories.time_out])
def test_a_transaction_is_the_same(
    both: tuple[Cluster, Cluster], story: Callable[[Cluster, str], object], library: str
) -> None:
    ours, real = told_to(both, lambda cluster: story(cluster, library))
    assert ours == real
    assert both[0].new_errors() == []


@pytest.mark.parametrize("flavour", stories.LOOPS, ids=str)
@pytest.mark.parametrize(
    "story",
    [
        stories.share_and_leave,
        stories.survive_a_zombie,
        stories.survive_a_crash,
        stories.take_over_after_a_crash,
    ],
)
def test_consuming_transforming_and_producing_is_the_same(
    both: tuple[Cluster, Cluster], story: Callable[[Cluster, Flavour], object], flavour: Flavour
) -> None:
    ours, real = told_to(both, lambda cluster: story(cluster, flavour))
    assert ours == real
    assert both[0].new_errors() == []
