"""``groupcoord demo zombie``: a worker in an exactly-once loop is suspended, replaced, resumed, and fenced.

Its uncommitted records are never read by read_committed consumers: each order has one invoice.
"""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Sequence

from aiokafka import AIOKafkaProducer, TopicPartition
from rich.console import Console
from rich.table import Table

from groupcoord.cli.demo.clients.consumer_common import Settings
from groupcoord.cli.demo.clients.exactly_once_worker import (
    COMMITTED,
    FENCED,
    OUTPUT,
    STANDS_STILL_AT,
    SUCCESSOR,
    TRANSACTIONAL_ID,
    WROTE,
    ZOMBIE,
)
from groupcoord.cli.demo.consumer_process import ConsumerProcess, start_consumer
from groupcoord.cli.demo.demo_cluster import play_on_cluster
from groupcoord.cli.demo.final_check import read_all
from groupcoord.cli.demo.observed_group import MemberNames, ObservedGroup
from groupcoord.cli.demo.output import DemoOutput, new_table
from groupcoord.cli.demo.story_progress import StoryError, StoryProgress
from groupcoord.coordinator.events import GroupEvent, MemberJoined, MemberRemoved
from groupcoord.coordinator.transaction.events import MarkerWritten, TransactionChanged, TransactionRefused
from groupcoord.core.events import Event, TimerFired
from groupcoord.testing.cluster import Cluster
from groupcoord.wall_clock import wall_clock

GROUP, INPUT = "billing", "orders"
ORDERS = tuple(f"order {number}" for number in range(1, 7))
SESSION_MS = 2_500
BREATH_S = 0.25
WAKE_EVERY_S = 0.2


class TransactionNarrator:
    """Prints events of the transactional id; the first transaction in full, of later ones only how they end."""

    def __init__(self, output: DemoOutput) -> None:
        self.output = output
        self._names = MemberNames()
        self._is_first = True

    def tell(self, event: Event) -> bool:
        """Print ``event``, if it is part of the story; returns whether anything was printed."""
        if isinstance(event, TransactionChanged):
            return self._changed(event)
        if isinstance(event, MarkerWritten):
            return self._marked(event)
        if isinstance(event, TransactionRefused):
            return self._refused(event)
        return isinstance(event, GroupEvent) and self._moved(event)

    def _changed(self, event: TransactionChanged) -> bool:
        who = self._names.asking(event)
        partitions = " and ".join(f"{topic}-{number}" for topic, number in event.partitions)
        if event.after == "Empty":
            what = f"is initialised as {event.transactional_id}: producer {event.producer_id}, epoch {event.producer_epoch}"
            self.output.line(event.at_ms, who, what, "transactional id", "epoch")
        elif event.after == "Ongoing" and self._is_first:
            self.output.line(event.at_ms, who, f"has a transaction with {partitions}", "transaction")
        elif event.after == "PrepareCommit":
            what = f"wants to commit. Stored as PrepareCommit: from here on {partitions} will be told, whatever happens"
            if not self._is_first:
                what = "commits its transaction: an invoice, and that its order was read"
            self.output.line(event.at_ms, who, what, "PrepareCommit")
        elif event.after == "PrepareAbort":
            what = f"aborts the transaction of {event.transactional_id}, because {event.reason}"
            self.output.line(event.at_ms, "coordinator", what)
        elif event.after == "CompleteCommit":
            self._is_first = False
            return False
        else:
            return False
        return True

    def _marked(self, event: MarkerWritten) -> bool:
        if event.committed and not self._is_first:
            return False
        how = (
            "committed: readers may have it"
            if event.committed
            else "aborted: nobody who reads committed records gets it"
        )
        what = f"writes a marker into {event.topic}-{event.partition}. What the transaction wrote there is {how}"
        self.output.line(event.at_ms, "coordinator", what, "marker")
        return True

    def _refused(self, event: TransactionRefused) -> bool:
        if event.error == "CONCURRENT_TRANSACTIONS":
            return False  # until the transaction before has ended; the library retries
        what = f"refuses {event.api} of {self._names.asking(event)} with {event.error}: {event.why}"
        self.output.line(event.at_ms, "coordinator", what, "fenced")
        return True

    def _moved(self, event: GroupEvent) -> bool:
        if isinstance(event, MemberJoined):
            self._names.learn(event.member, event.client_id)
            self.output.line(event.at_ms, event.client_id, f"joins the group {event.group}", "group")
        elif isinstance(event, MemberRemoved) and isinstance(event.cause, TimerFired):
            what = f"takes {self._names.of(event.member)} out of the group: {event.reason}"
            self.output.line(event.at_ms, "coordinator", what, "session")
        else:
            return False
        return True


async def show(console: Console, *, fast: bool, time_limit_s: float, page: str | None = None) -> int:
    """Run the story on ``console``; returns the exit code: 0 if the zombie was fenced and each order has one invoice.

    ``page`` is the HTML of a live page, which is served until a signal comes.
    """
    now_ms = wall_clock()
    output = DemoOutput(console, now_ms())
    narrator = TransactionNarrator(output)
    progress = StoryProgress(ObservedGroup(GROUP, INPUT), narrator.tell, 0 if fast else BREATH_S)

    async def play(kafka: Cluster) -> int:
        return await Lesson(output, progress, kafka).play(time_limit_s)

    topics, config = {INPUT: 1, OUTPUT: 1}, {"group.initial.rebalance.delay.ms": 0}
    return await play_on_cluster(play, progress, output, page, topics=topics, config=config)


class Lesson:
    """The chapters of the story. It waits for conditions, never for time."""

    def __init__(self, output: DemoOutput, progress: StoryProgress, kafka: Cluster) -> None:
        self.output = output
        self.progress = progress
        self.kafka = kafka
        self.wrote: list[tuple[str, str]] = []
        """(worker, order) of each invoice that was written, committed or not."""
        self.committed: list[str] = []
        self.fenced: list[str] = []
        """The workers that were fenced."""
        self._now_ms = wall_clock()
        self._began_at = time.monotonic()
        self._workers: dict[str, ConsumerProcess] = {}

    async def play(self, time_limit_s: float) -> int:
        """Play all chapters within ``time_limit_s`` seconds, then check the results; returns the exit code."""
        async with self.progress.within(time_limit_s) as problems:
            await self._opening()
            await self._standing_still()
            await self._taking_over()
            await self._waking_up()
            problems.extend(await self._reckoning())
        return self._judge([*problems, *(f"the server failed: {error!r}" for error in self.kafka.server_errors)])

    # --- the chapters

    async def _opening(self) -> None:
        self.output.title(
            "groupcoord demo zombie: exactly once, whoever wakes up",
            f"A worker reads {INPUT} and writes {OUTPUT}, one transaction for each order: the invoice, and the offset that "
            "says that the order was read. Each worker is a process of its own, written with confluent-kafka.",
        )
        self.progress.begin()
        producer = AIOKafkaProducer(bootstrap_servers=self.kafka.address, client_id="shop")
        try:
            await producer.start()
            for order in ORDERS:
                await producer.send_and_wait(INPUT, order.encode())
        finally:
            await producer.stop()
        self._line("demo", f"writes {len(ORDERS)} orders into {INPUT}")
        for name in (ZOMBIE, SUCCESSOR):
            self._workers[name] = await start_consumer("exactly_once_worker", _settings(name, self.kafka.address))
            self.progress.watch(self._workers[name], self._heard)

    async def _standing_still(self) -> None:
        await self._chapter("An exactly-once loop", "Reads, writes, and commits both at once, order by order.")
        self._workers[ZOMBIE].join()
        order = ORDERS[STANDS_STILL_AT - 1]
        await self.progress.until(f"{ZOMBIE} to write for {order}", lambda: (ZOMBIE, order) in self.wrote)
        await self._chapter("A worker stands still", "Its machine swaps, or collects garbage. It will not know.")
        self._line(ZOMBIE, f"has written the invoice of {order}, not committed it, and is stopped (SIGSTOP)")
        log = self.kafka.core.broker.log(OUTPUT, 0)
        if log is None:
            raise StoryError(f"{OUTPUT} is gone")
        self._line(
            "demo",
            f"sees {OUTPUT}-0 end at offset {log.log_end_offset}; its last stable offset is {log.last_stable_offset}",
            "last stable offset",
        )

    async def _taking_over(self) -> None:
        await self._chapter(
            "Its successor takes over",
            f"{SUCCESSOR} has the same transactional id, {TRANSACTIONAL_ID}. Nobody has to know whether {ZOMBIE} is dead.",
        )
        self._workers[SUCCESSOR].join()
        await self.progress.until(
            f"{SUCCESSOR} to commit the rest of the orders", lambda: self.committed[-1:] == [ORDERS[-1]]
        )

    async def _waking_up(self) -> None:
        await self._chapter("The zombie wakes up", "For it no time has passed. It goes on where it was: at its commit.")
        self._line("demo", f"wakes {ZOMBIE} (SIGCONT)")
        zombie = self._workers[ZOMBIE]
        zombie.may_end = True
        waking = self.progress.run(f"waking {ZOMBIE}", self._wake(zombie))
        await self.progress.until(f"{ZOMBIE} to end", lambda: zombie.exit_code is not None and waking.done())
        await self.progress.wait_until_told()
        if self.fenced:
            self._line(
                ZOMBIE,
                "is told by its library that it is fenced, and ends: nothing it does can count any more",
                "fenced",
            )
        successor = self._workers[SUCCESSOR]
        successor.leave()
        await self.progress.until(f"{SUCCESSOR} to end", lambda: successor.exit_code is not None)

    async def _wake(self, zombie: ConsumerProcess) -> None:
        """Send SIGCONT until it ends, because it may not have been stopped yet."""
        while zombie.exit_code is None:
            zombie.wake()
            await asyncio.sleep(WAKE_EVERY_S)
        self.progress.news()

    async def _reckoning(self) -> list[str]:
        await self._chapter("The reckoning", "What is in the log, and what does a reader of committed records get?")
        self.progress.waiting_for = f"a client to read {OUTPUT}"
        everything = await _read(self.kafka.address, "read_uncommitted")
        committed = await _read(self.kafka.address, "read_committed")
        self.output.show(invoices_table(everything, committed))
        problems = [] if self.fenced == [ZOMBIE] else [f"{self.fenced or 'nobody'} was fenced, and not {ZOMBIE}"]
        return problems + wrong_invoices(committed)

    def _judge(self, problems: Sequence[str]) -> int:
        if problems:
            self.output.say(*(f"✗ {problem}" for problem in problems), style="bold red")
            return 1
        seconds = time.monotonic() - self._began_at
        self.output.say(
            f"✓ {ZOMBIE} was fenced: what it had written before its pause is in the log, and nobody reads it.",
            f"✓ Each of {len(ORDERS)} orders has one invoice; {seconds:.0f} seconds.",
            style="bold green",
        )
        return 0

    # --- what happens in several chapters

    async def _chapter(self, title: str, paragraph: str) -> None:
        await self.progress.wait_until_told()
        self.output.chapter(title, paragraph)

    def _line(self, actor: str, text: str, *words: str) -> None:
        self.output.line(self._now_ms(), actor, text, *words)

    def _heard(self, name: str, line: bytes) -> None:
        what, which = json.loads(line)
        if what == WROTE:
            self.wrote.append((name, which))
        elif what == COMMITTED:
            self.committed.append(which)
        elif what == FENCED:
            self.fenced.append(name)
        self.progress.news()


def wrong_invoices(committed: Sequence[str]) -> list[str]:
    """The problems of the invoices that a read_committed consumer reads, one sentence each."""
    counts = Counter(committed)
    wanted = [order.replace("order", "invoice") for order in ORDERS]
    return [f"{invoice} is read {counts[invoice]} times" for invoice in wanted if counts[invoice] != 1]


def invoices_table(everything: Sequence[str], committed: Sequence[str]) -> Table:
    """How often each invoice is in the log, and how often a read_committed consumer reads it."""
    table = new_table()
    table.add_column("invoice", no_wrap=True)
    for head in ("in the log", "read committed"):
        table.add_column(head, justify="right")
    for invoice in dict.fromkeys(everything):
        table.add_row(invoice, str(everything.count(invoice)), str(committed.count(invoice)))
    return table


async def _read(bootstrap: str, isolation: str) -> list[str]:
    """All invoices that a consumer of that isolation level reads."""
    found = await read_all(bootstrap, TopicPartition(OUTPUT, 0), isolation)
    return [(record.value or b"").decode() for record in found]


def _settings(name: str, bootstrap: str) -> Settings:
    return Settings(
        bootstrap=bootstrap,
        group=GROUP,
        topic=INPUT,
        client_id=name,
        protocols=("range",),
        session_ms=SESSION_MS,
        heartbeat_ms=250,
        poll_ms=100,
        commit_every_ms=1_000,
    )
