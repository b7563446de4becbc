"""Groups of KIP-848 of this client, with classic members too: the same stories on groupcoord and on a real broker."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from groupcoord.assignors import TopicPartition
from groupcoord.client.client_errors import BrokerError
from groupcoord.client.consumer import Consumer
from groupcoord.client.member.member_events import AssignmentReceived, EpochReached
from groupcoord.core.events import Event
from groupcoord.protocol.errors import ErrorCode
from tests.client.broker import forever, produce
from tests.client.test_groups import Ledger, story
from tests.clients.cluster import Cluster

pytestmark = [pytest.mark.slow, pytest.mark.clients]

CONSUMER = {"group_protocol": "consumer"}
CLASSIC = {"partition_assignment_strategy": "cooperative-sticky", "heartbeat_interval_ms": 100}


@asynccontextmanager
async def consumer(cluster: Cluster, group: str, *topics: str, **how: Any) -> AsyncIterator[Consumer]:
    settings = {
        **CONSUMER,
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "fetch_max_wait_ms": 50,
        "metadata_max_age_ms": 500,
        **how,
    }
    async with Consumer(*topics, bootstrap_servers=cluster.bootstrap, group_id=group, **settings) as one:
        yield one


def whole(topic: str, count: int) -> frozenset[TopicPartition]:
    """All partitions of a topic."""
    return frozenset((topic, number) for number in range(count))


async def until_shared(everything: frozenset[TopicPartition], *members: Consumer) -> None:
    """All poll until they own everything, evenly and exactly once."""
    while True:
        owned = [member.assignment() for member in members]
        sizes = [len(some) for some in owned]
        if frozenset().union(*owned) == everything and sum(sizes) == len(everything) and max(sizes) - min(sizes) <= 1:
            return
        await asyncio.gather(*(member.getmany(20) for member in members))


@pytest.mark.parametrize("assignor", [None, "uniform", "range"])
def test_two_members_share_and_one_inherits(cluster: Cluster, group: str, assignor: str | None) -> None:
    topic = cluster.topic(partitions=4)
    events: list[Event] = []

    async def told() -> None:
        how = {"group_remote_assignor": assignor}
        async with consumer(cluster, group, topic, listeners=[events.append], **how) as first:
            await until_shared(whole(topic, 4), first)
            events.clear()
            async with consumer(cluster, group, topic, **how) as second:
                await until_shared(whole(topic, 4), first, second)
                received = [event for event in events if isinstance(event, AssignmentReceived)]
                assert [(len(event.keeps), len(event.gives_up)) for event in received] == [(2, 2)]
            await until_shared(whole(topic, 4), first)

    story(told())


def test_what_is_committed_is_found_by_the_next_owner(cluster: Cluster, group: str) -> None:
    topic = cluster.topic(partitions=2)

    async def told() -> None:
        async with consumer(cluster, group, topic) as first:
            await until_shared(whole(topic, 2), first)
            await produce(cluster.bootstrap, topic, [b"a", b"b"], 0)
            while (topic, 0) not in await first.getmany(50):
                continue
            await first.commit()
        async with consumer(cluster, group, topic) as second:
            await until_shared(whole(topic, 2), second)
            assert await second.position((topic, 0)) == 2
        assert cluster.committed(group)[topic, 0] == 2

    story(told())


def test_a_pattern_finds_topics_that_come_later(cluster: Cluster, group: str) -> None:
    first_topic, other = cluster.topic(partitions=2), cluster.topic()

    async def told() -> None:
        async with consumer(cluster, group, pattern=f"{first_topic}|{other}") as one:
            await until_shared(whole(first_topic, 2) | whole(other, 1), one)
            one.subscribe(pattern=f"({first_topic[:-1]}){first_topic[-1]}")
            await until_shared(whole(first_topic, 2), one)
            one.subscribe(other)
            await until_shared(whole(other, 1), one)

    story(told())


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"group_remote_assignor": "sticky"}, ErrorCode.UNSUPPORTED_ASSIGNOR),
        ({"pattern": "("}, ErrorCode.INVALID_REGULAR_EXPRESSION),
    ],
)
def test_what_the_coordinator_refuses_is_raised(
    cluster: Cluster, group: str, settings: dict[str, Any], code: ErrorCode
) -> None:
    topics = [] if "pattern" in settings else [cluster.topic()]

    async def told() -> None:
        async with consumer(cluster, group, *topics, **settings) as one:
            with pytest.raises(BrokerError) as raised:
                await forever(one)
            assert raised.value.code == code

    story(told())


def test_a_static_member_comes_back_to_what_it_had(cluster: Cluster, group: str) -> None:
    topic = cluster.topic(partitions=4)
    events: list[Event] = []

    async def told() -> None:
        async with consumer(cluster, group, topic, group_instance_id="a") as first:
            async with consumer(cluster, group, topic, group_instance_id="b") as second:
                await until_shared(whole(topic, 4), first, second)
                had = second.assignment()
                while not (first.membership.is_stable and second.membership.is_stable):
                    await asyncio.gather(first.getmany(20), second.getmany(20))
                epoch = second.membership.generation.generation_id
            async with consumer(cluster, group, topic, group_instance_id="b", listeners=[events.append]) as again:
                while again.assignment() != had:
                    await asyncio.gather(first.getmany(20), again.getmany(20))
                assert [event.epoch for event in events if isinstance(event, EpochReached)] == [epoch]
                async with consumer(cluster, group, topic, group_instance_id="b") as rival:
                    with pytest.raises(BrokerError) as raised:
                        await forever(rival)
                    assert raised.value.code == ErrorCode.UNRELEASED_INSTANCE_ID

    story(told())


@pytest.mark.parametrize("order", ["classic first", "consumer first"])
def test_a_group_with_members_of_both_protocols(cluster: Cluster, group: str, order: str) -> None:
    """A working group goes over to the new protocol, member by member, and back."""
    topic = cluster.topic(partitions=4)
    kinds: list[dict[str, Any]] = [{"group_protocol": "classic", **CLASSIC}, CONSUMER]

    async def told() -> None:
        one_kind, other_kind = kinds if order == "classic first" else kinds[::-1]
        async with AsyncExitStack() as last:
            async with consumer(cluster, group, topic, **one_kind) as first:
                await until_shared(whole(topic, 4), first)
                second = await last.enter_async_context(consumer(cluster, group, topic, **other_kind))
                await until_shared(whole(topic, 4), first, second)
            await until_shared(whole(topic, 4), second)

    story(told())


class Application:
    """A consumer that reads, commits what it has read, and writes down what it owns."""

    def __init__(self, name: str, ledger: Ledger, seen: set[bytes | None]) -> None:
        self.name, self.ledger, self.seen = name, ledger, seen
        self.ready = asyncio.Event()
        self.running: asyncio.Task[None]

    async def run(self, cluster: Cluster, group: str, topic: str) -> None:
        def assigned(partitions: tuple[TopicPartition, ...]) -> None:
            self.ledger.gives(self.name, partitions)
            self.ready.set()

        async with consumer(
            cluster,
            group,
            topic,
            auto_commit_interval_ms=20,
            on_assigned=assigned,
            on_revoked=lambda partitions: self.ledger.takes(self.name, partitions),
        ) as one:
            while True:
                for records in (await one.getmany(20)).values():
                    self.seen.update(record.value for record in records)

    async def leaves(self) -> None:
        self.running.cancel()
        await asyncio.gather(self.running, return_exceptions=True)
        if not self.running.cancelled():
            await self.running


def test_churn(cluster: Cluster, group: str) -> None:
    """Members join and leave for 20 rounds: no partition belongs to two, and no record is lost."""
    topic = cluster.topic(partitions=6)
    chance = random.Random(7)

    async def told() -> None:
        ledger, seen, sent = Ledger(), set[bytes | None](), set[bytes]()
        living: list[Application] = []
        async with AsyncExitStack() as ending:
            for number in range(20):
                for partition in range(6):
                    value = b"%d of %d" % (partition, number)
                    await produce(cluster.bootstrap, topic, [value], partition)
                    sent.add(value)
                if len(living) < 2 or (len(living) < 4 and chance.random() < 0.6):
                    new = Application(f"member {number}", ledger, seen)
                    new.running = asyncio.create_task(new.run(cluster, group, topic))
                    ending.push_async_callback(new.leaves)
                    living.append(new)
                    await new.ready.wait()
                else:
                    await living.pop(chance.randrange(len(living))).leaves()
            while len(ledger.owners) != 6 or not sent <= seen:
                assert not [each for each in living if each.running.done()]
                await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=0.005)
            assert set(ledger.owners.values()) <= {each.name for each in living}

    story(told())
