"""The story of ``groupcoord demo``: a consumer group from its first member to its last commit, in chapters."""

import asyncio
import contextlib
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from importlib import metadata
from typing import NamedTuple

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError
from rich.console import Console

from groupcoord.cli.demo import final_check, protocol_migration
from groupcoord.cli.demo.clients.consumer_common import Settings
from groupcoord.cli.demo.consumer_process import ConsumerProcess, start_consumer
from groupcoord.cli.demo.demo_cluster import play_on_cluster
from groupcoord.cli.demo.final_check import CheckResult, check_results, counts_table, positions_text
from groupcoord.cli.demo.narrator import Narrator
from groupcoord.cli.demo.observed_group import ObservedGroup, RecordPosition
from groupcoord.cli.demo.output import DemoOutput, after_compaction, before_compaction, compaction_strips, rows
from groupcoord.cli.demo.protocol_migration import Migration, tell_migration
from groupcoord.cli.demo.story_progress import StoryProgress
from groupcoord.core.events import Event
from groupcoord.offsets_log.compaction_preview import of_group
from groupcoord.server.clock_and_random_ids import NowMs
from groupcoord.testing.cluster import Cluster
from groupcoord.wall_clock import wall_clock

GROUP = "billing"
TOPIC = "orders"
PARTITIONS = 6

HEARTBEAT_MS = 250
POLL_MS = 100
COMMIT_EVERY_MS = 1_000
INITIAL_DELAY_MS = 300

LONG_SESSION_MS = 10_000
"""The session timeout of members that are not killed: longer than any pause of a busy machine."""
SHORT_SESSION_MS = 2_500
"""The session timeout of the member that is killed: short, because the audience has to wait for it."""


class ConsumerSettings(NamedTuple):
    """One consumer. ``protocols`` are its assignors, the preferred one first; ``session_ms`` is its session timeout."""

    name: str
    library: str
    module: str
    protocols: tuple[str, ...]
    session_ms: int


KILLED = ConsumerSettings(
    "kafka-python", "kafka-python", "kafka_python_consumer", ("sticky", "range", "roundrobin"), SHORT_SESSION_MS
)
LAST = ConsumerSettings("confluent", "confluent-kafka", "confluent_consumer", ("roundrobin", "range"), LONG_SESSION_MS)
# Only one protocol: aiokafka 0.14 sends a JoinGroup for each of its assignors, and each starts a rebalance.
LEAVING = ConsumerSettings("aiokafka", "aiokafka", "aiokafka_consumer", ("roundrobin",), LONG_SESSION_MS)

CONSUMERS = (KILLED, LAST, LEAVING)


def library_version(library: str) -> str:
    """Name and version of an installed library."""
    return f"{library} {metadata.version(library)}"


CUSTOMERS = tuple(f"customer-{number}" for number in range(1, 25))
ORDERS_PER_SECOND = 25


async def produce(
    producer: AIOKafkaProducer, topic: str, stopping: asyncio.Event, acknowledged: Callable[[RecordPosition, str], None]
) -> None:
    """Produce one order after the other until ``stopping``; each is ``acknowledged`` before this returns.

    The key is the customer, so that all orders of one customer are in one partition, in order.
    """
    number = 0
    while not stopping.is_set():
        customer = CUSTOMERS[number % len(CUSTOMERS)]
        order = json.dumps({"order": number, "customer": customer, "cents": 100 + number * 37 % 9_900})
        stored = await producer.send_and_wait(topic, key=customer.encode(), value=order.encode())
        acknowledged(RecordPosition(stored.partition, stored.offset), customer)
        number += 1
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stopping.wait(), 1 / ORDERS_PER_SECOND)


BREATH_S = 0.25
"""A pause after each event, long enough to read a line; none with ``--fast``."""
UNCOMMITTED_AT_DEATH = 4
"""How many records the killed member must have read without committing them, so that some are read twice."""
AUDIT_LIMIT_S = 10.0
"""How long the final check of all offsets may take, in addition to the time limit."""


async def show(
    console: Console,
    *,
    fast: bool,
    time_limit_s: float,
    page: str | None = None,
    afterwards: Callable[[str], Awaitable[int]] | None = None,
) -> int:
    """Run the story on ``console``; returns the exit code: 0 if every record was read and every offset is right.

    ``page`` is the HTML of a live page, which is served until a signal comes. ``afterwards`` is called with the address of the
    server when the story has succeeded, and returns the exit code.
    """
    now_ms = wall_clock()
    output = DemoOutput(console, now_ms())
    narrator = Narrator(output, GROUP, TOPIC, PARTITIONS)

    def tell(event: Event) -> bool:
        return narrator.tell(event) or tell_migration(output, event)

    progress = StoryProgress(ObservedGroup(GROUP, TOPIC), tell, 0 if fast else BREATH_S)
    config = {
        "group.initial.rebalance.delay.ms": INITIAL_DELAY_MS,
        "group.consumer.min.heartbeat.interval.ms": HEARTBEAT_MS,
        "group.consumer.heartbeat.interval.ms": HEARTBEAT_MS,
        "group.consumer.assignment.interval.ms": 0,
    }

    async def play(kafka: Cluster) -> int:
        return await DemoStory(output, narrator, progress, kafka, now_ms).play(time_limit_s)

    topics = {TOPIC: PARTITIONS}
    return await play_on_cluster(play, progress, output, page, afterwards=afterwards, topics=topics, config=config)


class DemoStory:
    """The chapters of the story. It waits for conditions, never for time."""

    def __init__(
        self, output: DemoOutput, narrator: Narrator, progress: StoryProgress, kafka: Cluster, now_ms: NowMs
    ) -> None:
        self.output = output
        self.narrator = narrator
        self.progress = progress
        self.observed = progress.observed
        self.kafka = kafka
        self._now_ms = now_ms
        self._began_at = time.monotonic()
        self._consumers: dict[ConsumerSettings, ConsumerProcess] = {}
        self._no_more_orders = asyncio.Event()
        self._migration = Migration(output, progress, now_ms, PARTITIONS)
        self._sightings_told = 0
        self._lost_by_the_dead: set[RecordPosition] = set()

    async def play(self, time_limit_s: float) -> int:
        """Play all chapters within ``time_limit_s`` seconds, then check the results; returns the exit code."""
        async with self.progress.within(time_limit_s) as problems, AsyncExitStack() as stack:
            await self._opening(stack)
            what = f"One consumer wants to read the topic {TOPIC}. Whatever it does goes through the coordinator."
            await self._joining("A group of one", what, KILLED)
            what = "A second consumer comes, and it would rather have another protocol."
            await self._joining("Company: a rebalance and a vote", what, KILLED, LAST)
            what = "The group has to agree on something that all three libraries know."
            await self._joining("A third one, who knows only one protocol", what, KILLED, LAST, LEAVING)
            await self._leaving()
            await self._dying()
            await self._migrating()
            await self._finishing()
            await self._memory()
        return await self._reckoning(problems)

    # --- the chapters

    async def _opening(self, stack: AsyncExitStack) -> None:
        address = self.kafka.address
        self.output.title(
            "groupcoord demo: the life of a consumer group",
            "Three real client libraries share the work of reading one topic. Each consumer is a process of its "
            "own, and talks to groupcoord over TCP as it would to Apache Kafka.",
        )
        heads = ("consumer", "library", "the protocols it knows, most wanted first", "session")
        roles = [
            (role.name, library_version(role.library), ", ".join(role.protocols), f"{role.session_ms / 1000:g} s")
            for role in CONSUMERS
        ]
        self.output.show(rows([heads, *roles]))
        self.progress.begin()
        for role in CONSUMERS:
            consumer = await start_consumer(role.module, _settings(role, address))
            self._consumers[role] = consumer
            self.progress.watch(consumer)
        await self._migration.start(_settings(LAST, address))
        sender = AIOKafkaProducer(bootstrap_servers=address, client_id="producer", enable_idempotence=True)
        stack.push_async_callback(sender.stop)  # before its start, in which the time limit may end
        await sender.start()
        self._line("groupcoord", f"serves at {address}, with a topic {TOPIC} of {PARTITIONS} partitions", "partition")
        self._line(
            "producer",
            f"sends {ORDERS_PER_SECOND} records a second, one for each order; "
            f"the key is one of {len(CUSTOMERS)} customers",
        )
        self._production = self.progress.run("producing", self._produce(sender))

    async def _joining(self, title: str, paragraph: str, *members: ConsumerSettings) -> None:
        """The last of ``members`` joins the others."""
        await self._chapter(title, paragraph)
        await self._joins(members[-1])
        await self._works(*members)

    async def _leaving(self) -> None:
        await self._chapter("Leaving politely", "A client that is closed says so, and the others take over at once.")
        self._line("demo", f"asks {LEAVING.name} to close its client")
        guest = self._consumers[LEAVING]
        guest.leave()
        await self.progress.until(f"{LEAVING.name} to end", lambda: guest.exit_code is not None)
        await self._works(KILLED, LAST)

    async def _dying(self) -> None:
        await self._chapter("Dying without a word", "A client that crashes says nothing. Only time can tell.")
        enough = f"{KILLED.name} to have read something that it has not committed"
        await self.progress.until(enough, lambda: len(self.observed.uncommitted(KILLED.name)) >= UNCOMMITTED_AT_DEATH)
        mortal = self._consumers[KILLED]
        mortal.kill()
        killed_at_ms = self._now_ms()
        await self.progress.until(f"the end of {KILLED.name}", lambda: mortal.exit_code is not None)
        self._lost_by_the_dead = self.observed.uncommitted(KILLED.name)
        self.output.line(
            killed_at_ms,
            "demo",
            f"kills {KILLED.name} with SIGKILL. It had read, but not committed: "
            f"{positions_text(TOPIC, self._lost_by_the_dead)}",
        )
        self._line(
            "coordinator",
            f"cannot know: it just hears no heartbeat. For a session of {KILLED.session_ms / 1000:g} s "
            f"the partitions of {KILLED.name} wait, and nobody reads them",
            "session",
        )
        await self.progress.until(f"{LAST.name} to be alone", lambda: self.observed.is_stable_with(LAST.name))

    async def _migrating(self) -> None:
        await self._chapter(
            "A new protocol, while the group works",
            f"Another group, {protocol_migration.GROUP}, reads {TOPIC} by the classic protocol, too. Member by member it goes "
            "over to that of KIP-848, in which members keep what they keep. Look who has to stop when somebody comes or goes.",
        )
        await self._migration.play()

    async def _finishing(self) -> None:
        await self._chapter(
            "The last one finishes the work", "Everything is read by one consumer now, as in the beginning."
        )
        read_again = self._lost_by_the_dead
        await self.progress.until(
            f"{LAST.name} to read again what {KILLED.name} had not committed",
            lambda: not read_again - {seen.place for seen in self.observed.sightings if seen.reader == LAST.name},
        )
        self._line(
            LAST.name,
            f"goes on at the last commits, and so reads again: {positions_text(TOPIC, read_again)}",
            "at least once",
        )
        await self._works(LAST)
        self._no_more_orders.set()
        await self.progress.until("the last order to be acknowledged", self._production.done)
        self._line("producer", f"has sent its last order: {len(self.observed.produced)} in all")
        ends = self.observed.ends(PARTITIONS)
        await self.progress.until(
            f"{LAST.name} to commit the end of every partition",
            lambda: all(self.observed.committed.get(partition, 0) == end for partition, end in ends.items()),
        )
        await self._tell_work()
        self._line("demo", f"asks {LAST.name} to close its client, too")
        survivor = self._consumers[LAST]
        survivor.leave()
        await self.progress.until(f"{LAST.name} to end", lambda: survivor.exit_code is not None)
        await self.progress.until("the group to be Empty", lambda: self.observed.state == "Empty")

    async def _memory(self) -> None:
        await self._chapter(
            "What the log remembers", "All of this was stored in a topic like any other, record by record."
        )
        self.progress.waiting_for = "a client to read __consumer_offsets"
        number, log = await final_check.offsets_log(
            self.kafka.address, GROUP, self.kafka.core.config.offsets_topic_num_partitions
        )
        records = of_group(log, GROUP)
        self._line(
            "demo",
            f"reads partition {number} of __consumer_offsets with a client: the hash of the name {GROUP} leads there",
            "__consumer_offsets",
        )
        self.output.show(before_compaction(records))
        self._line(
            "demo",
            "compacts a copy, record by record: G is the group, a number the commit of that partition",
            "compaction",
        )
        self.output.show(compaction_strips(records))
        self.output.say("What is left says all that a coordinator needs to go on after a restart:")
        self.output.show(after_compaction(records))

    async def _reckoning(self, problems: Sequence[str]) -> int:
        await self._chapter(
            "The reckoning",
            "Has everything been read? And is each committed offset the end of its log, both as OffsetFetch tells a client "
            "and as the coordinator holds it?",
        )
        log_ends: dict[int, int] = {}
        told: dict[int, int] = {}
        more: list[str] = []
        try:
            async with asyncio.timeout(AUDIT_LIMIT_S):
                told, log_ends = await final_check.committed_and_ends(self.kafka.address, GROUP, TOPIC, PARTITIONS)
        except (TimeoutError, KafkaError) as problem:
            more.append(f"no client could learn the offsets within {AUDIT_LIMIT_S:g} s: {problem!r}")
        verdict = check_results(
            TOPIC,
            PARTITIONS,
            self.observed.produced,
            self.observed.sightings,
            log_ends=log_ends,
            told=told,
            held=self._held(),
        )
        more += [f"the server failed: {error!r}" for error in self.kafka.server_errors]
        more += [
            f"{role.name} ended with code {consumer.exit_code}"
            for role, consumer in self._consumers.items()
            if role is not KILLED and consumer.exit_code
        ]
        self.output.show(counts_table(TOPIC, verdict))
        return self._judge(verdict, [*problems, *more, *verdict.problems])

    def _judge(self, verdict: CheckResult, problems: Sequence[str]) -> int:
        seconds = time.monotonic() - self._began_at
        if problems:
            self.output.say(*(f"✗ {problem}" for problem in problems), style="bold red")
            return 1
        because = f"because {KILLED.name} died before it could commit them"
        others = verdict.twice - self._lost_by_the_dead
        if others:
            because = f"{because}, or because a rebalance came before the commit ({positions_text(TOPIC, others)})"
        twice = f"; {len(verdict.twice)} of them twice, {because}" if verdict.twice else ""
        self.output.say(
            f"✓ All {verdict.written} records were read{twice}.",
            "✓ Every committed offset is the end of its log, as a client is told and as the coordinator holds it.",
            f"✓ {self.observed.generation} generations, {seconds:.0f} seconds.",
            style="bold green",
        )
        return 0

    # --- what happens in several chapters

    async def _chapter(self, title: str, *paragraphs: str) -> None:
        await self.progress.wait_until_told()
        self.output.chapter(title, *paragraphs)

    def _line(self, actor: str, text: str, *words: str) -> None:
        self.output.line(self._now_ms(), actor, text, *words)

    async def _joins(self, role: ConsumerSettings) -> None:
        self._consumers[role].join()
        await self.progress.until(f"{role.name} to be a member", lambda: role.name in self.observed.members.values())

    async def _works(self, *roles: ConsumerSettings) -> None:
        """Wait until the group is Stable with ``roles`` as its members and each has committed, and report what they read."""
        names = [role.name for role in roles]
        await self.progress.until(
            f"the group to be Stable with {', '.join(names)}", lambda: self.observed.is_stable_with(*names)
        )
        await self.progress.until(
            f"a commit by each of {', '.join(names)}",
            lambda: all(self.observed.commits_in_generation[name] for name in names),
        )
        await self._tell_work()

    async def _tell_work(self) -> None:
        await self.progress.wait_until_told()
        reads = self.observed.reads(since=self._sightings_told)
        self._sightings_told = len(self.observed.sightings)
        # What the killed member last read was reported when it was killed.
        alive = [role.name for role in CONSUMERS if role is not KILLED or self._consumers[role].exit_code is None]
        self.narrator.tell_work(self._now_ms(), {name: reads[name] for name in alive})

    async def _produce(self, sender: AIOKafkaProducer) -> None:
        await produce(sender, TOPIC, self._no_more_orders, self.observed.produced_at)
        self.progress.news()

    def _held(self) -> dict[int, int]:
        """Partition → the committed offset in the coordinator's memory."""
        offsets = self.kafka.core.coordinator.shard_of(GROUP).machine.offsets
        held = {partition: offsets.get(GROUP, TOPIC, partition) for partition in range(PARTITIONS)}
        return {partition: committed.offset for partition, committed in held.items() if committed is not None}


def _settings(role: ConsumerSettings, bootstrap: str) -> Settings:
    return Settings(
        bootstrap=bootstrap,
        group=GROUP,
        topic=TOPIC,
        client_id=role.name,
        protocols=role.protocols,
        session_ms=role.session_ms,
        heartbeat_ms=HEARTBEAT_MS,
        poll_ms=POLL_MS,
        commit_every_ms=COMMIT_EVERY_MS,
    )
