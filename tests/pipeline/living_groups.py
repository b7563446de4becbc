"""Groups that live on a real Kafka: members come, go and restart, producers write, one consumer falls asleep, and one producer
goes away in the middle of a transaction. In the end nobody commits any more, so that numbers stand still.

A pause of commits is told from a minute on, and so is a transaction that somebody waits for. No clock can be turned: all others
live in that minute."""

import asyncio
import contextlib
import random
import threading
from collections import defaultdict
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Self

import confluent_kafka as ck
from confluent_kafka.admin import AdminClient, NewTopic

from groupcoord.client.client_errors import CommitFailedError, RebalanceInProgressError
from groupcoord.client.consumer import Consumer
from groupcoord.client.kafka_producer import Producer

LOG_PARTITIONS = 8
HEARTBEAT_MS = 1000
"""Members learn so soon of a rebalance."""
PROPERTIES = {
    "offsets.topic.num.partitions": str(LOG_PARTITIONS),
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": str(HEARTBEAT_MS),
    "auto.create.topics.enable": "false",
}
TOPICS = {"orders": 6, "payments": 4, "deliveries": 12, "ledger": 3}
SLEEPER, BOOKS, WRITER, DELETED, SIMPLE = "sleeper", "books", "ledger-writer", "deleted", "simple"
HELD_UP = {0, 2}
"""Partitions of ``ledger`` in which the transaction hangs."""
ASLEEP_S = 61
COMMITS_BEFORE = 20
"""Commits of each partition before the consumer falls asleep, so that what is usual for it is known."""
PATIENCE_S = 900
"""For each of what is waited for; three hundred groups on two busy cores take minutes to begin."""
LINGER_MS = 500
"""In this rhythm records come."""
EAGER_MS = 200
"""In this rhythm the consumer that is to fall asleep commits."""


@dataclass(frozen=True)
class Plan:
    """What a group is."""

    name: str
    topics: tuple[str, ...]
    is_modern: bool = False
    is_transactional: bool = False
    members: int = 2
    reads_committed: bool = False
    cycle_ms: int = 2000
    """About so often each member commits."""
    is_restless: bool = True
    """Do its members come and go?"""
    is_empty: bool = False
    """Do all its members leave at the end?"""


def plans(groups: int) -> list[Plan]:
    """``groups`` of them: a third modern, a twelfth transactional, some without members in the end."""
    cycle_ms = 2000 if groups < 100 else 5000  # 5 s: Kafka's auto.commit.interval.ms
    found = [
        Plan(SLEEPER, ("deliveries",), members=1, cycle_ms=EAGER_MS, is_restless=False),
        Plan(BOOKS, ("ledger",), members=1, reads_committed=True, cycle_ms=cycle_ms, is_restless=False),
        Plan(WRITER, ("payments",), is_transactional=True, members=1, cycle_ms=cycle_ms, is_restless=False),
        Plan(DELETED, ("orders",), members=1, cycle_ms=cycle_ms, is_empty=True, is_restless=False),
    ]
    found += [
        Plan(
            f"{'modern' if place % 3 == 0 else 'classic'}-{place}",
            (("orders",), ("payments",), ("orders", "payments"))[place // 3 % 3],
            is_modern=place % 3 == 0,
            is_transactional=place % 12 in {0, 7},
            members=1 + place % 3,
            cycle_ms=cycle_ms,
            is_empty=place % 10 == 8,
        )
        for place in range(groups - len(found) - 1)
    ]
    return found


class Member:
    """A member of a group, until it is told to leave."""

    def __init__(self, plan: Plan, number: int, bootstrap: str, quiet: asyncio.Event) -> None:
        self.plan, self.number, self._bootstrap, self._quiet = plan, number, bootstrap, quiet
        self.commits: dict[tuple[str, int], int] = defaultdict(int)
        self.committed_at_s = 0.0
        self.is_quiet = False
        self.awake = asyncio.Event()
        self.awake.set()
        self.consumer: Consumer | None = None
        self.task: asyncio.Task[None]
        self._leaving = asyncio.Event()

    @property
    def is_static(self) -> bool:
        """Of each restless group of three that keeps its members, one: it restarts, and is never gone for good."""
        return self.number == 2 and self.plan.is_restless and not self.plan.is_empty

    def start(self) -> None:
        self.task = asyncio.create_task(self._run())

    async def leave(self) -> None:
        self._leaving.set()
        self.awake.set()
        await self.task

    @property
    def assignment(self) -> frozenset[tuple[str, int]]:
        """What it has now."""
        if self.task.done():
            self.task.result()  # what it died of
        return self.consumer.assignment() if self.consumer is not None else frozenset()

    async def _run(self) -> None:
        plan = self.plan
        settings: dict[str, Any] = {
            "bootstrap_servers": self._bootstrap,
            "group_id": plan.name,
            "client_id": f"{plan.name}-client-{self.number}",
            "group_instance_id": f"{plan.name}-{self.number}" if self.is_static else None,
            "group_protocol": "consumer" if plan.is_modern else "classic",
            "enable_auto_commit": False,
            "max_poll_interval_ms": 3_600_000,  # in the end nobody polls any more
            "heartbeat_interval_ms": None if plan.is_modern else HEARTBEAT_MS,
            "auto_offset_reset": "earliest",
            "isolation_level": "read_committed" if plan.reads_committed else "read_uncommitted",
            "fetch_min_bytes": 1_000_000 if plan.cycle_ms > LINGER_MS else 1,
            "fetch_max_wait_ms": plan.cycle_ms,
        }
        async with contextlib.AsyncExitStack() as stack:
            consumer = await stack.enter_async_context(Consumer(*plan.topics, **settings))
            producer = None
            if plan.is_transactional:
                name = f"{plan.name}-{self.number}"
                producer = await stack.enter_async_context(Producer(self._bootstrap, transactional_id=name))
            self.consumer = consumer
            try:
                while not self._leaving.is_set() and not self._quiet.is_set():
                    await self.awake.wait()
                    records = await consumer.getmany(timeout_ms=plan.cycle_ms)
                    with contextlib.suppress(RebalanceInProgressError, CommitFailedError):
                        if producer is None:
                            await self._commit(consumer)
                        elif records:
                            positions = {place: some[-1].offset + 1 for place, some in records.items()}
                            async with producer.transaction():
                                await producer.send("ledger", b"x" * 20, partition=1)
                                await producer.send_offsets_to_transaction(positions, consumer.group_metadata())
                self.is_quiet = True
                await self._leaving.wait()
            finally:
                self.consumer = None

    async def _commit(self, consumer: Consumer) -> None:
        """As Java's consumers do by themselves: whatever is assigned, moved on or not."""
        places = consumer.assignment()
        if places:
            await consumer.commit()
            self.committed_at_s = asyncio.get_running_loop().time()
            for place in places:
                self.commits[place] += 1


class LivingGroups:
    """The life of ``plans(groups)`` on a broker, in a thread of its own while the block runs."""

    def __init__(self, bootstrap: str, groups: int) -> None:
        self._bootstrap = bootstrap
        self._changes_left = groups
        """Members that are still to come, go or restart."""
        self.plans = plans(groups)
        self.members: dict[str, list[Member]] = {}
        self._life: Future[None]
        self._tasks: list[asyncio.Task[None]] = []
        self._chance = random.Random(groups)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        admin = AdminClient({"bootstrap.servers": self._bootstrap})
        for created in admin.create_topics([NewTopic(name, count) for name, count in TOPICS.items()]).values():
            created.result()
        self._thread.start()
        self._life = asyncio.run_coroutine_threadsafe(self._live(), self._loop)
        return self

    def wait(self) -> None:
        """Until all that is to happen has happened: nobody commits any more, the members are there and send heartbeats."""
        self._life.result()

    def __exit__(self, *_: object) -> None:
        self._life.cancel()  # whoever waits for it may have been interrupted
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _live(self) -> None:
        self._quiet, self._wrote = asyncio.Event(), asyncio.Condition()
        self._written_at_s = 0.0
        self._tasks.append(asyncio.create_task(self._write()))
        sleeping, *others = self.plans
        self._begin(sleeping)
        [sleeper] = self.members[SLEEPER]
        await self._until(
            lambda: len(sleeper.commits) == TOPICS["deliveries"] and min(sleeper.commits.values()) >= COMMITS_BEFORE
        )
        sleeper.awake.clear()
        for plan in others:
            self._begin(plan)
        await self._until(lambda: all(map(self._is_settled, others)))
        await asyncio.to_thread(leave_a_transaction_open, self._bootstrap)
        left_open_at_s = self._loop.time()
        churners = [asyncio.create_task(self._churn(worker)) for worker in range(4)]
        self._tasks += churners
        await asyncio.gather(*churners)
        leaving = [member for plan in self.plans if plan.is_empty for member in self.members[plan.name]]
        await asyncio.gather(*(member.leave() for member in leaving))
        for plan in self.plans:
            if plan.is_empty:
                self.members[plan.name] = []
        await self._until(lambda: all(map(self._is_settled, others)))
        minute_began_at_s = max(sleeper.committed_at_s, left_open_at_s)
        await self._until(lambda: self._written_at_s > minute_began_at_s + ASLEEP_S)
        before = dict(sleeper.commits)
        sleeper.awake.set()
        await self._until(lambda: all(sleeper.commits[place] >= count + 2 for place, count in before.items()))
        self._quiet.set()
        await self._until(lambda: all(member.is_quiet for some in self.members.values() for member in some))
        quiet_at_s = self._loop.time()
        await self._until(lambda: self._written_at_s > quiet_at_s)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.to_thread(delete_and_commit_alone, self._bootstrap)

    async def _end(self) -> None:
        for task in self._tasks:
            task.cancel()
        members = [member for some in self.members.values() for member in some]
        await asyncio.gather(*self._tasks, *(member.leave() for member in members), return_exceptions=True)

    def _begin(self, plan: Plan) -> None:
        self.members[plan.name] = []
        for number in range(plan.members):
            self._join(plan, number)

    def _join(self, plan: Plan, number: int) -> None:
        member = Member(plan, number, self._bootstrap, self._quiet)
        self.members[plan.name].append(member)
        member.start()

    def _is_settled(self, plan: Plan) -> bool:
        """Has each partition of its topics one owner, if there are members?"""
        members = self.members[plan.name]
        had = [place for member in members for place in member.assignment]
        return not members or sorted(had) == [
            (topic, one) for topic in sorted(plan.topics) for one in range(TOPICS[topic])
        ]

    async def _until(self, condition: Any) -> None:
        """Asked whenever records have been written."""
        async with asyncio.timeout(PATIENCE_S), self._wrote:
            await self._wrote.wait_for(condition)

    async def _write(self) -> None:
        """A record a partition in each round; those of a transaction that hangs are not a hindrance."""
        async with Producer(self._bootstrap, linger_ms=LINGER_MS, batch_size=1_000_000) as producer:
            while True:
                sent = [
                    await producer.send(topic, b"x" * 50, partition=partition)
                    for topic, count in TOPICS.items()
                    for partition in range(count)
                ]
                await asyncio.gather(*sent)
                self._written_at_s = self._loop.time()
                async with self._wrote:
                    self._wrote.notify_all()

    async def _churn(self, worker: int) -> None:
        """Members of groups restart, leave and join, of the first group more often, so that it has a storm. No two workers have
        a group in common."""
        restless = [plan for plan in self.plans if plan.is_restless][worker::4]
        while self._changes_left > 0:
            self._changes_left -= 1
            plan = restless[0] if self._chance.random() < 0.25 else self._chance.choice(restless)
            members = self.members[plan.name]
            numbers = {member.number for member in members}
            if len(members) > 1 and self._chance.random() < 0.5:
                leaving = self._chance.choice(members)
                await leaving.leave()
                members.remove(leaving)
                if leaving.is_static or self._chance.random() < 0.5:
                    self._join(plan, leaving.number)
            else:
                self._join(plan, next(number for number in range(10) if number not in numbers))
                if len(members) > 3:
                    leaving = next(member for member in members if not member.is_static)
                    await leaving.leave()
                    members.remove(leaving)
            await self._until(lambda plan=plan: self._is_settled(plan))


def leave_a_transaction_open(bootstrap: str) -> None:
    """A producer writes, commits offsets of WRITER, and goes away without a word. Its time is up in ten minutes."""
    producer = ck.Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": "gone", "transaction.timeout.ms": 600_000}
    )
    producer.init_transactions(60)
    producer.begin_transaction()
    for partition in HELD_UP:
        producer.produce("ledger", b"never to be seen", partition=partition)
    producer.flush(60)
    consumer = ck.Consumer({"bootstrap.servers": bootstrap, "group.id": WRITER})
    offsets = [ck.TopicPartition("orders", 0, 1)]
    producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), 60)
    consumer.close()


def delete_and_commit_alone(bootstrap: str) -> None:
    """DELETED is deleted, and SIMPLE, which has never had members, commits."""
    admin = AdminClient({"bootstrap.servers": bootstrap})  # without a name it would be gone before its answer comes
    admin.delete_consumer_groups([DELETED])[DELETED].result()
    consumer = ck.Consumer({"bootstrap.servers": bootstrap, "group.id": SIMPLE})
    consumer.commit(offsets=[ck.TopicPartition("orders", 3, 5)], asynchronous=False)
    consumer.close()
