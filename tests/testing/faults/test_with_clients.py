"""Faults as real clients meet them: over sockets, in real time, with rules that say when it is enough."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import kafka
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError

from groupcoord.cluster.cluster_core import ClusterCore
from groupcoord.config.broker_config import load
from groupcoord.coordinator.events import GenerationStarted, GroupEvent, MemberRejoined
from groupcoord.core.effects import event_listener
from groupcoord.core.events import Event
from groupcoord.protocol.errors import WireError
from groupcoord.server.clock_and_random_ids import SystemRandomSource
from groupcoord.server.server import Server
from groupcoord.testing.faults import Damage, FaultInjected, Faults
from groupcoord.wall_clock import wall_clock
from tests.server.sockets import PATIENCE_SECONDS, Client
from tests.testing.faults.support import (
    Fetch,
    FindCoordinator,
    Heartbeat,
    JoinGroup,
    OffsetCommit,
    SyncGroup,
    heartbeat,
)

ORDERS = TopicPartition("orders", 0)


class Broker:
    """A server with faults, and what happened there."""

    def __init__(self, run: Callable[[Callable[[], object]], object] = lambda code: code()) -> None:
        now_ms = wall_clock()
        self.node = ClusterCore(load([], dev=True), random=SystemRandomSource(), now_ms=now_ms())
        self.node.create_topic("orders", 1, now_ms())
        self.faults = Faults(now_ms=now_ms, run=run)
        self.when = self.faults.when
        self._faulty = self.faults.layer(self.node)
        self.server = Server(self._faulty, now_ms=now_ms, listeners=[event_listener(self._listen)])
        self._faulty.execute_effects = self.server.execute_effects
        self.events: list[Event] = []
        self._waiting: list[tuple[Callable[[Event], bool], asyncio.Event]] = []

    def _listen(self, event: Event) -> None:
        self.events.append(event)
        for holds, there in self._waiting:
            if holds(event):
                there.set()

    async def seen(self, holds: Callable[[Event], bool]) -> None:
        """Wait for an event, unless it was there before."""
        there = asyncio.Event()
        self._waiting.append((holds, there))
        if not any(map(holds, self.events)):
            await there.wait()

    def told(self, kind: type[Event]) -> list[Event]:
        return [event for event in self.events if isinstance(event, kind)]


@asynccontextmanager
async def serving() -> AsyncIterator[Broker]:
    """A broker until the block ends, in which every rule must have acted."""
    broker = Broker()
    async with asyncio.timeout(PATIENCE_SECONDS), broker.server:
        yield broker
    assert broker.server.unexpected_errors == []
    broker.faults.check()


@asynccontextmanager
async def consuming(broker: Broker, **options: Any) -> AsyncIterator[AIOKafkaConsumer]:
    consumer = AIOKafkaConsumer(
        "orders",
        bootstrap_servers=broker.server.address,
        group_id="app",
        client_id="c",
        heartbeat_interval_ms=20,
        retry_backoff_ms=5,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        **options,
    )
    await consumer.start()
    try:
        yield consumer
    finally:
        await consumer.stop()


def generation(number: int) -> Callable[[Event], bool]:
    return lambda event: isinstance(event, GenerationStarted) and event.generation == number


@pytest.mark.clients
class TestAiokafka:
    def test_it_joins_again_after_a_refused_heartbeat(self) -> None:
        async def story() -> None:
            async with serving() as broker, consuming(broker):
                await broker.seen(generation(1))
                broker.when(Heartbeat, group="app").refuse("REBALANCE_IN_PROGRESS")
                await broker.seen(generation(2))
                (told,) = broker.told(FaultInjected)
                assert "is refused with REBALANCE_IN_PROGRESS" in told.text()
                assert len(broker.told(MemberRejoined)) == 1

        asyncio.run(story())

    def test_it_asks_again_until_there_is_a_coordinator(self) -> None:
        async def story() -> None:
            async with serving() as broker:
                rule = broker.when(FindCoordinator, group="app").refuse("COORDINATOR_NOT_AVAILABLE").times(3)
                async with consuming(broker) as consumer:
                    await broker.seen(generation(1))
                    assert consumer.assignment() == {ORDERS}
                assert rule.uses == 3

        asyncio.run(story())

    def test_a_commit_whose_answer_is_lost_with_its_connection_counts(self) -> None:
        async def story() -> None:
            async with serving() as broker, consuming(broker) as consumer:
                await broker.seen(generation(1))
                broker.when(OffsetCommit, topic="orders").disconnect_answer()
                with suppress(KafkaError):  # whether it asks again or gives up
                    await consumer.commit({ORDERS: 3})
                assert await consumer.committed(ORDERS) == 3

        asyncio.run(story())

    def test_it_waits_for_the_answer_to_its_sync(self) -> None:
        async def story() -> None:
            async with serving() as broker, consuming(broker):
                await broker.seen(generation(1))
                hold = broker.when(SyncGroup, group="app").hold_answer()
                broker.when(Heartbeat).refuse("REBALANCE_IN_PROGRESS")
                (held,) = await hold.wait(timeout=PATIENCE_SECONDS)
                assert held.request.generation_id == 2
                hold.release()
                await broker.seen(generation(2))

        asyncio.run(story())

    def test_records_with_a_wrong_checksum_are_noticed(self) -> None:
        async def story() -> None:
            async with serving() as broker:
                producer = AIOKafkaProducer(bootstrap_servers=broker.server.address)
                await producer.start()
                await producer.send_and_wait("orders", b"espresso")
                await producer.stop()
                broker.when(Fetch, topic="orders").corrupt("crc")
                async with consuming(broker, check_crcs=True) as consumer:
                    with pytest.raises(KafkaError, match=r"CRC|[Cc]orrupt"):
                        await consumer.getone()

        asyncio.run(story())


class TestWire:
    """One connection, looked at byte by byte."""

    def test_what_a_cut_answer_looks_like(self) -> None:
        async def story() -> None:
            async with serving() as broker:
                broker.when(Heartbeat).corrupt(Damage.CUT)
                client = await Client.connect(broker.server)
                client.send(Heartbeat, heartbeat())
                assert await client.reader.read() == b"\0\0\0\x0c\0\0\0\1"
                await client.close()

        asyncio.run(story())

    def test_after_a_damaged_answer_the_connection_goes_on(self) -> None:
        async def story() -> None:
            async with serving() as broker:
                broker.when(Heartbeat).corrupt("truncated")
                client = await Client.connect(broker.server)
                client.send(Heartbeat, heartbeat())
                with pytest.raises(WireError):
                    await client.answer(Heartbeat)
                client.send(Heartbeat, heartbeat(), correlation_id=2)
                assert (await client.answer(Heartbeat))[0] == 2
                await client.close()

        asyncio.run(story())

    def test_a_lost_answer_keeps_the_connection_waiting_and_no_other(self) -> None:
        async def story() -> None:
            async with serving() as broker:
                broker.when(Heartbeat).drop()
                waiting, other = [await Client.connect(broker.server) for _ in range(2)]
                waiting.send(Heartbeat, heartbeat())
                waiting.send(Heartbeat, heartbeat(), correlation_id=2)
                await broker.seen(lambda event: isinstance(event, FaultInjected))
                other.send(Heartbeat, heartbeat())
                assert (await other.answer(Heartbeat))[0] == 1
                assert not waiting.reader._buffer  # type: ignore[attr-defined]
                await waiting.close()
                await other.close()

        asyncio.run(story())

    def test_a_delay_is_as_long_as_it_says(self) -> None:
        async def story() -> None:
            async with serving() as broker:
                broker.when(Heartbeat).delay(30)
                client = await Client.connect(broker.server)
                loop = asyncio.get_running_loop()
                asked_at = loop.time()
                client.send(Heartbeat, heartbeat())
                await client.answer(Heartbeat)
                assert loop.time() - asked_at >= 0.029
                await client.close()

        asyncio.run(story())


@pytest.mark.slow
@pytest.mark.clients
def test_a_synchronous_client_and_a_broker_in_a_thread_of_its_own() -> None:
    """The test holds the client's JoinGroup, looks, and lets it go."""
    ready = threading.Event()
    there: list[Any] = []

    async def live() -> None:
        loop = asyncio.get_running_loop()

        def run(code: Callable[[], object]) -> None:
            async def there_and_back() -> None:
                code()

            asyncio.run_coroutine_threadsafe(there_and_back(), loop).result(PATIENCE_SECONDS)

        broker = Broker(run)
        over = asyncio.Event()
        async with broker.server:
            there.extend([broker, lambda: loop.call_soon_threadsafe(over.set)])
            ready.set()
            await over.wait()

    thread = threading.Thread(target=asyncio.run, args=(live(),))
    thread.start()
    assert ready.wait(PATIENCE_SECONDS)
    broker, end = there
    try:
        hold = broker.faults.sync().when(JoinGroup, group="app").hold()
        consumer = kafka.KafkaConsumer("orders", bootstrap_servers=broker.server.address, group_id="app")
        polling = threading.Thread(target=consumer.poll, kwargs={"timeout_ms": 500})
        polling.start()
        (held,) = hold.wait(timeout=PATIENCE_SECONDS)
        assert held.call.client_id.startswith("kafka-python")
        assert not [event for event in broker.events if isinstance(event, GroupEvent)]
        hold.release()
        polling.join()
        consumer.close()
        broker.faults.check()
        assert broker.server.unexpected_errors == []
    finally:
        end()
        thread.join()
