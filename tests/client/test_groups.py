"""Groups of several consumers, of this client and of others: the same stories on groupcoord and on a real broker."""

import asyncio
import gc
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from groupcoord.assignors import Subscription, TopicPartition
from groupcoord.assignors.serialization import write_subscription
from groupcoord.client.connection import BrokerConnection
from groupcoord.client.consumer import Consumer
from groupcoord.client.member.context import MemberState
from groupcoord.client.member.member_events import AssignorRan, JoinSent, Synced
from groupcoord.core.events import Event
from groupcoord.protocol.apis.join_group import JoinGroupRequestProtocol
from groupcoord.protocol.apis.leave_group import MemberIdentity
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import (
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    SyncGroupRequest,
    SyncGroupResponse,
)
from tests.client.adapter import ours
from tests.client.broker import produce
from tests.clients.cluster import Cluster
from tests.clients.conftest import MakeMember
from tests.clients.members import FLAVOURS, Flavour, Member
from tests.clients.support import eventually, partitions_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.clients,
    pytest.mark.filterwarnings("ignore:Exception ignored in. <socket"),
    pytest.mark.minutes(1),
]

COOPERATIVE = "cooperative-sticky"
PATIENCE_S = 60.0


@pytest.fixture(autouse=True)
def _forgotten_sockets_do_not_haunt_other_tests() -> Iterator[None]:
    """kafka-python sometimes forgets one; where it is collected, in whatever test that is, a warning is an error."""
    yield
    gc.collect()


def share(topic: str, count: int, members: Iterable[Member]) -> bool:
    """Do ``members`` own everything, evenly and exactly once?"""
    owned = [member.owned for member in members]
    sizes = [len(some) for some in owned]
    whole = frozenset[TopicPartition]().union(*owned)
    return whole == partitions_of(topic, count) and sum(sizes) == count and max(sizes) - min(sizes) <= 1


# With other libraries in one group.


@pytest.mark.parametrize("other", FLAVOURS, ids=str)
@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_one_group_with_another_library(
    cluster: Cluster, group: str, member: MakeMember, other: Flavour, first: str
) -> None:
    """Whoever is first leads: each side has to understand what the other assigns."""
    topic = cluster.topic(partitions=6)
    flavours = [ours(other.assignor), other]
    members = [member(flavour, topic) for flavour in (flavours if first == "ours" else flavours[::-1])]
    eventually(lambda: share(topic, 6, members), saying="both own half")
    sent = cluster.produce(topic, [f"value {number}" for number in range(60)], partitions=6)
    eventually(lambda: sorted(record for each in members for record in each.received) == sent, saying="all is read")
    for each in members:
        each.commit()
    assert cluster.committed(group) == dict.fromkeys(partitions_of(topic, 6), 10)
    members[0].leave()
    eventually(lambda: members[1].owned == partitions_of(topic, 6), saying="the other has it all")


def test_four_libraries_in_one_cooperative_group(cluster: Cluster, group: str, member: MakeMember) -> None:
    topic = cluster.topic(partitions=8)
    members = [member(ours(COOPERATIVE), topic)]
    eventually(lambda: share(topic, 8, members), saying="the first has it all")
    members += [member(Flavour(library, COOPERATIVE), topic) for library in ("kafka-python", "confluent")]
    members.append(member(ours(COOPERATIVE), topic))
    eventually(lambda: share(topic, 8, members), saying="each has two")
    assert members[0].owned < partitions_of(topic, 8)
    kinds = Counter(what for what, _ in members[0].diary.entries)
    revoked = frozenset().union(*(some for what, some in members[0].diary.entries if what == "revoked"))
    assert not revoked & members[0].owned, "nothing was revoked that stays"
    assert kinds["revoked"] >= 1


def test_an_upgrade_from_eager_to_cooperative_in_two_steps(cluster: Cluster, group: str, member: MakeMember) -> None:
    """KIP-429: first every member learns the cooperative assignor beside its own, then every member forgets its own."""
    topic = cluster.topic(partitions=6)
    members = [member(ours("range"), topic), member(Flavour("aiokafka", "range"), topic), member(ours("range"), topic)]
    eventually(lambda: share(topic, 6, members), saying="each has two")
    for assignors in (["range", COOPERATIVE], [COOPERATIVE]):
        for number, old in enumerate(list(members)):
            old.leave()
            members[number] = member(ours(*assignors), topic)
            eventually(lambda: share(topic, 6, members), saying="each has two again")
    eventually(lambda: cluster.group(group).partition_assignor == COOPERATIVE, saying="the group is cooperative")


# The steps of a rebalance, seen from inside.


@asynccontextmanager
async def consumer(cluster: Cluster, group: str, topic: str, **how: Any) -> AsyncIterator[Consumer]:
    settings: dict[str, Any] = {
        "partition_assignment_strategy": COOPERATIVE,
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "heartbeat_interval_ms": 100,
        "session_timeout_ms": max(cluster.shortest_session_ms, 6_000),
        "fetch_max_wait_ms": 50,
        **how,
    }
    async with Consumer(topic, bootstrap_servers=cluster.bootstrap, group_id=group, **settings) as one:
        yield one


def story(coroutine: Any) -> None:
    async def patiently() -> None:
        async with asyncio.timeout(PATIENCE_S):
            await coroutine

    asyncio.run(patiently())


@pytest.mark.parametrize("assignors", ["range", "sticky", COOPERATIVE])
def test_two_members_share_and_one_inherits(cluster: Cluster, group: str, assignors: str) -> None:
    topic = cluster.topic(partitions=4)

    async def told() -> None:
        async with consumer(cluster, group, topic, partition_assignment_strategy=assignors) as first:
            while len(first.assignment()) != 4:
                await first.getmany(20)
            async with consumer(cluster, group, topic, partition_assignment_strategy=assignors) as second:
                while len(first.assignment()) != 2 or len(second.assignment()) != 2:
                    await asyncio.gather(first.getmany(20), second.getmany(20))
                assert not first.assignment() & second.assignment()
            while len(first.assignment()) != 4:
                await first.getmany(20)

    story(told())


def test_the_second_join_happens_only_when_something_was_revoked(cluster: Cluster, group: str) -> None:
    topic = cluster.topic(partitions=2)
    events: list[Event] = []

    async def told() -> None:
        async with consumer(cluster, group, topic, listeners=[events.append]) as first:
            while len(first.assignment()) != 2:
                await first.getmany(20)
            events.clear()
            async with consumer(cluster, group, topic) as second:
                while len(second.assignment()) != 1 or sum(isinstance(event, Synced) for event in events) < 2:
                    await asyncio.gather(first.getmany(20), second.getmany(20))
                synced = [event for event in events if isinstance(event, Synced)]
                assert [len(event.gives_up) for event in synced] == [1, 0]
                assert [len(event.keeps) for event in synced] == [1, 1]
                reasons = [event.reason for event in events if isinstance(event, JoinSent)]
                assert reasons == ["group is already rebalancing", "need to revoke partitions and re-join"]
                (ran, _) = [event for event in events if isinstance(event, AssignorRan)]
                assert len(ran.withheld) == 1
            events.clear()
            while len(first.assignment()) != 2:
                await first.getmany(20)
            assert [len(event.gives_up) for event in events if isinstance(event, Synced)] == [0]

    story(told())


async def joins_and_never_comes_back(cluster: Cluster, group: str, topic: str) -> tuple[BrokerConnection, str]:
    """A member that joins and then does nothing any more: the next rebalance waits for it."""
    host, _, port = cluster.bootstrap.rpartition(":")
    connection = await BrokerConnection.connect(host, int(port), client_id="sleeper", timeout_ms=5_000)
    metadata = write_subscription(Subscription(topics=[topic]))
    member_id = ""
    while True:
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=60_000,
            rebalance_timeout_ms=60_000,
            member_id=member_id,
            protocol_type="consumer",
            protocols=(JoinGroupRequestProtocol(name=COOPERATIVE, metadata=metadata),),
        )
        joined: JoinGroupResponse = await connection.request(request, 30_000)
        if joined.error_code != ErrorCode.MEMBER_ID_REQUIRED:
            break
        member_id = joined.member_id
    synced: SyncGroupResponse = await connection.request(
        SyncGroupRequest(
            group_id=group,
            generation_id=joined.generation_id,
            member_id=member_id,
            protocol_type="consumer",
            protocol_name=COOPERATIVE,
        ),
        30_000,
    )
    assert synced.error_code == ErrorCode.NONE
    return connection, member_id


def test_what_a_member_keeps_it_consumes_while_the_group_rebalances(cluster: Cluster, group: str) -> None:
    topic = cluster.topic(partitions=4)

    async def told() -> None:
        async with consumer(cluster, group, topic) as one:
            values: list[bytes | None] = []
            polling = asyncio.create_task(_poll_into(one, values))
            while len(one.assignment()) != 4:
                await _a_moment()
            connection, sleeper = await joins_and_never_comes_back(cluster, group, topic)
            while len(one.assignment()) != 2 or one.membership.state is not MemberState.PREPARING_REBALANCE:
                await _a_moment()
            # The second join of the two phases waits for the sleeper now, and would wait for a minute.
            (_, kept), (_, also_kept) = sorted(one.assignment())
            for number in range(10):
                await produce(cluster.bootstrap, topic, [b"%d" % number], partition=kept if number % 2 else also_kept)
                while b"%d" % number not in values:
                    await _a_moment()
                assert one.membership.state is MemberState.PREPARING_REBALANCE
            leave = LeaveGroupRequest(group_id=group, member_id=sleeper, members=(MemberIdentity(member_id=sleeper),))
            await connection.request(leave, 5_000)
            while len(one.assignment()) != 4:
                await _a_moment()
            connection.close()
            polling.cancel()
            await asyncio.wait([polling])

    story(told())


async def _poll_into(one: Consumer, values: list[bytes | None]) -> None:
    while True:
        for records in (await one.getmany(1_000)).values():
            values += [record.value for record in records]


async def _a_moment() -> None:
    await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=0.005)


# Churn.


class Ledger:
    """Who owns what, as the callbacks tell it. Writing a partition to a second owner is an error."""

    def __init__(self) -> None:
        self.owners: dict[TopicPartition, str] = {}

    def gives(self, name: str, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            assert partition not in self.owners, (
                f"{partition} is given to {name} and belongs to {self.owners[partition]}"
            )
            self.owners[partition] = name

    def takes(self, name: str, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            assert self.owners.pop(partition) == name

    def bury(self, name: str) -> None:
        self.owners = {partition: owner for partition, owner in self.owners.items() if owner != name}


class Application:
    """A consumer that reads, commits what it has read, and writes down what it owns."""

    def __init__(self, name: str, ledger: Ledger, seen: set[bytes | None]) -> None:
        self.name, self.ledger, self.seen = name, ledger, seen
        self.ready = asyncio.Event()
        self.running: asyncio.Task[None]
        self.consumer: Consumer
        self.dead = False

    async def run(self, cluster: Cluster, group: str, topic: str, **how: Any) -> None:
        async with consumer(
            cluster,
            group,
            topic,
            client_id=self.name,
            auto_commit_interval_ms=20,
            on_assigned=self._assigned,
            on_revoked=lambda partitions: self.ledger.takes(self.name, partitions),
            **how,
        ) as self.consumer:
            while True:
                for records in (await self.consumer.getmany(20)).values():
                    self.seen.update(record.value for record in records)

    def _assigned(self, partitions: tuple[TopicPartition, ...]) -> None:
        self.ledger.gives(self.name, partitions)
        self.ready.set()

    async def leaves(self) -> None:
        self.running.cancel()
        await asyncio.gather(self.running, return_exceptions=True)
        if not self.running.cancelled():
            await self.running

    async def dies(self) -> None:
        """Without a word to anybody: all its connections are gone, and it does nothing any more."""
        self.dead = True
        inside = self.consumer
        inside._committer._interval_ms = None
        for commit in inside._committer._under_way:
            commit.cancel()
        await inside._fetcher.stop()
        await inside._driver.stop()
        inside._driver.left.set()
        await inside._cluster.close()
        inside._cluster._bootstrap = ()
        inside._cluster.brokers = {}
        self.ledger.bury(self.name)
        self.running.cancel()
        await asyncio.gather(self.running, return_exceptions=True)
        self.ledger.bury(self.name)


@pytest.mark.parametrize("assignors", ["range", COOPERATIVE])
def test_churn(cluster: Cluster, group: str, assignors: str) -> None:
    """Members join, leave and die for 20 rounds: no partition belongs to two, and no record is lost."""
    topic = cluster.topic(partitions=6)
    chance = random.Random(7)
    session_ms = max(cluster.shortest_session_ms, 1_500)

    async def told() -> None:
        ledger, seen, sent = Ledger(), set[bytes | None](), set[bytes]()
        living: list[Application] = []
        async with AsyncExitStack() as ending:
            for number in range(20):
                for partition in range(6):
                    value = b"%d of %d" % (partition, number)
                    await produce(cluster.bootstrap, topic, [value], partition)
                    sent.add(value)
                what = chance.choice(["joins", "joins", "leaves", "dies"]) if len(living) > 1 else "joins"
                if what == "joins" and len(living) < 4:
                    new = Application(f"{what}-{number}", ledger, seen)
                    new.running = asyncio.create_task(
                        new.run(
                            cluster,
                            group,
                            topic,
                            partition_assignment_strategy=assignors,
                            session_timeout_ms=session_ms,
                        )
                    )
                    ending.push_async_callback(new.leaves)
                    living.append(new)
                    await new.ready.wait()
                elif what == "leaves":
                    await living.pop(chance.randrange(len(living))).leaves()
                elif what == "dies":
                    await living.pop(chance.randrange(len(living))).dies()
                for application in living:
                    assert not application.running.done(), application.running
            while len(ledger.owners) != 6 or not sent <= seen:
                assert not [each for each in living if each.running.done()]
                await _a_moment()
            assert set(ledger.owners.values()) <= {each.name for each in living}

    story(told())
