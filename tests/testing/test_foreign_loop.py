"""Who uses a cluster in another event loop than its own is told at once, instead of waiting for ever."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator

import pytest

from groupcoord.testing import Cluster

FOREIGN = "the cluster was started in another event loop than the one that uses it now, and that would wait for ever: "
PATIENCE_SECONDS = 60


@pytest.fixture
def kafka() -> Iterator[Cluster]:
    """A cluster in a loop that stands still while the test runs."""
    loop = asyncio.new_event_loop()
    kafka = Cluster(topics={"orders": 1}, clock="manual")
    loop.run_until_complete(kafka.__aenter__())
    yield kafka
    loop.run_until_complete(kafka.__aexit__(None, None, None))
    loop.close()


USES: dict[str, Callable[[Cluster], object]] = {
    "address": lambda kafka: kafka.address,
    "addresses": lambda kafka: kafka.addresses,
    "brokers": lambda kafka: kafka.brokers,
    "group": lambda kafka: kafka.group("app"),
    "create_topic": lambda kafka: kafka.create_topic("invoices"),
    "produce": lambda kafka: kafka.produce("orders", b"an espresso"),
    "records": lambda kafka: kafka.records("orders"),
    "consumers": lambda kafka: kafka.consumers(1, group="app", topics="orders"),
    "advance": lambda kafka: kafka.clock.advance(1),
    "reset": lambda kafka: kafka.reset(),
    "stop": lambda kafka: kafka.stop(),
    "acted": lambda kafka: kafka.faults.when("Heartbeat").drop().optional().acted(),
    "settle": lambda kafka: kafka.settle(),
}


@pytest.mark.parametrize("use", USES)
def test_every_use_in_another_loop_is_refused_while_its_own_stands_still(kafka: Cluster, use: str) -> None:
    async def used() -> None:
        found = USES[use](kafka)
        if isinstance(found, Awaitable):
            await found

    with pytest.raises(RuntimeError, match=f"^{FOREIGN}start it, its clients and what uses it in the same one"):
        asyncio.run(used())


def test_the_text_can_say_what_mends_it() -> None:
    async def address() -> str:
        return cluster.address

    loop = asyncio.new_event_loop()
    cluster = Cluster()
    cluster.loop_hint = "use the other one"
    loop.run_until_complete(cluster.__aenter__())
    with pytest.raises(RuntimeError, match=f"^{FOREIGN}use the other one$"):
        asyncio.run(address())
    loop.run_until_complete(cluster.__aexit__(None, None, None))
    loop.close()


def test_without_a_loop_and_after_the_end_there_is_no_danger(kafka: Cluster) -> None:
    async def told() -> tuple[str, int]:
        return repr(kafka), len(ended.trace)

    async def lived() -> Cluster:
        async with Cluster() as one:
            return one

    ended = asyncio.run(lived())
    assert asyncio.run(told()) == (f"<Cluster {kafka.address}>", 0)


def test_what_was_taken_in_the_right_loop_waits_in_no_other(kafka: Cluster) -> None:
    group, clock, member = kafka.group("app"), kafka.clock, kafka.manual_member("app", "orders")
    hold, append = kafka.faults.when("Heartbeat").hold().optional(), kafka.hold_append()
    append.uses = 1
    waits: list[Callable[[], Awaitable[object]]] = [
        group.wait_stable,
        lambda: clock.advance(1),
        member.join,
        hold.wait,
        append.wait,
    ]

    async def wait(use: Callable[[], Awaitable[object]]) -> None:
        await use()

    for use in waits:
        with pytest.raises(RuntimeError, match=FOREIGN):
            asyncio.run(wait(use))


def test_a_loop_that_runs_in_another_thread_serves_clients_and_refuses_waits() -> None:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    cluster = Cluster()

    async def used() -> None:
        host, port = cluster.address.split(":")
        _, writer = await asyncio.open_connection(host, int(port))
        writer.close()
        with pytest.raises(RuntimeError, match=FOREIGN):
            await cluster.group("app").wait_stable()

    try:
        asyncio.run_coroutine_threadsafe(cluster.__aenter__(), loop).result(PATIENCE_SECONDS)
        asyncio.run(used())
        asyncio.run_coroutine_threadsafe(cluster.__aexit__(None, None, None), loop).result(PATIENCE_SECONDS)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE_SECONDS)
    loop.close()
