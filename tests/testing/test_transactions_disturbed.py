"""A coordinator moves or restarts in the middle of a step of a transaction, and its producer tries again: all counts once."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from groupcoord.core.effects import Append
from groupcoord.protocol.errors import ErrorCode
from groupcoord.testing import Cluster, ManualProducer
from tests.testing.retrying import codes

pytestmark = pytest.mark.asyncio

Disturb = Callable[[Cluster, Append], Any]

APPENDS = ["Empty", "Ongoing", "Ongoing", "offsets", "PrepareCommit", "marker", "CompleteCommit"]
"""What coordinators write for the transaction below, whether its producer says itself what is in it or not."""


def what_is_stored(append: Append) -> str:
    if append.marker is not None:
        return "marker"
    state = getattr(append.records[0].value, "state", None)
    return "offsets" if state is None else str(state.value)


async def restart(kafka: Cluster, _: Append) -> None:
    await kafka.restart()


async def move(kafka: Cluster, append: Append) -> None:
    topic = kafka.core.broker.topics.get(append.topic)
    assert topic is not None
    await kafka.move_leader(append.topic, append.partition, to=3 - topic.metadata.leaders[append.partition])


async def unload_and_load(kafka: Cluster, append: Append) -> None:
    of = kafka.group("app") if append.topic == "__consumer_offsets" else kafka.transaction("billing")
    await of.unload_coordinator()
    await of.load_coordinator()


class Loop:
    """One turn of consume, transform and produce, whose coordinators' append ``number`` ``disturb`` finds on its way."""

    def __init__(self, kafka: Cluster, version: int, number: int, disturb: Disturb) -> None:
        self.kafka, self.number, self.disturb = kafka, number, disturb
        self.producer = kafka.manual_producer("billing", version=version)
        self.held = kafka.hold_append(times=1_000)
        self.seen: list[str] = []

    async def go_on(self, until: Callable[[], bool]) -> None:
        """Let appends be stored one by one, but the one that is disturbed."""
        for _ in range(100):
            await self.kafka.settle()
            if self.held.held:
                self.seen.append(what_is_stored(self.held.held[0]))
                if len(self.seen) == self.number:
                    await self.disturb(self.kafka, self.held.held[0])
                    self.seen += map(what_is_stored, self.held.held[1:])  # what is written again already
                self.held.release()
            elif until():
                return
            else:
                await self.kafka.clock.advance(0.1)  # for who tries again later
        raise AssertionError(f"it does not go on after {self.seen}")

    async def step(self, ask: Callable[[ManualProducer], "asyncio.Future[Any]"]) -> None:
        """Ask until it is done, as a client does it."""
        for _ in range(10):
            before = dict(self.producer.sequences)
            asked = ask(self.producer)
            await self.go_on(asked.done)
            try:
                answer = await asked
            except ConnectionResetError:
                self.producer.sequences = before
                continue
            if codes(answer) == {ErrorCode.NONE}:
                return
            assert all(code.retriable for code in codes(answer)), answer
        raise AssertionError("it is refused again and again")

    async def run(self) -> None:
        explicit = self.producer.version == 1
        await self.step(lambda producer: producer.init())
        if explicit:
            await self.step(lambda producer: producer.add_partitions(("invoices", 0)))
        await self.step(lambda producer: producer.produce("invoices", b"one"))
        if explicit:
            await self.step(lambda producer: producer.add_offsets("app"))
        await self.step(lambda producer: producer.commit_offsets("app", {("orders", 0): 1}))
        await self.step(lambda producer: producer.end())
        billing = self.kafka.transaction("billing")
        await self.go_on(lambda: billing.description().state == "CompleteCommit")


def cluster() -> Cluster:
    return Cluster(topics={"orders": 1, "invoices": 1}, brokers=2, clock="manual")


@pytest.mark.parametrize("version", [1, 2])
async def test_what_coordinators_write(version: int) -> None:
    async with cluster() as kafka:
        loop = Loop(kafka, version, 0, restart)
        await loop.run()
        assert loop.seen == APPENDS


@pytest.mark.parametrize("number", range(1, len(APPENDS) + 1))
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("disturb", [restart, move, unload_and_load])
async def test_what_is_done_again_counts_once(disturb: Disturb, version: int, number: int) -> None:
    async with cluster() as kafka:
        loop = Loop(kafka, version, number, disturb)
        await loop.run()
        assert len(loop.seen) > len(APPENDS)  # what was on its way was lost, and written again
        for isolation in ("read_committed", "read_uncommitted"):
            found = await kafka.records("invoices", isolation=isolation)
            assert [record.value for record in found] == [b"one"]
        assert await kafka.group("app").committed("orders", 0) == 1
