"""Simulated time, for whole programs."""

import asyncio
import selectors
import socket
import threading
import time
from typing import Any

import aiokafka
import pytest

from groupcoord.testing import Cluster, VirtualTimeLoop, virtual_time
from groupcoord.testing.virtual_loop import DeadlockError, run

DAY_S = 86_400


def test_time_jumps_and_the_module_time_goes_along() -> None:
    async def main() -> tuple[float, float, float, int]:
        begin = time.time(), time.monotonic()
        assert time.time_ns() // 1_000_000 == round(begin[0] * 1000)
        await asyncio.sleep(DAY_S)
        return begin[0], time.time() - begin[0], time.monotonic() - begin[1], time.monotonic_ns() // 1_000_000_000

    before = time.perf_counter()
    started, wall, monotonic, nanoseconds = run(main(), start_s=1_000_000.0)
    assert started == pytest.approx(1_000_000.0, abs=0.01)
    assert wall == pytest.approx(DAY_S, abs=0.01)
    assert monotonic == pytest.approx(DAY_S, abs=0.01)
    assert nanoseconds == DAY_S
    assert time.perf_counter() - before < DAY_S
    assert time.time() > 1_600_000_000


def test_who_looks_at_the_clock_again_and_again_sees_it_move() -> None:
    async def main() -> int:
        rounds, until = 0, time.monotonic() + 0.001
        while time.monotonic() < until:
            await asyncio.sleep(0)
            rounds += 1
        deadline = time.monotonic() + 1e-9
        while (left := deadline - time.monotonic()) >= 0:  # noqa: ASYNC110 - nobody could set an event
            await asyncio.sleep(left)
        return rounds

    assert run(main()) == 1_000


def test_time_stands_still_while_a_thread_works() -> None:
    async def main() -> float:
        begin = time.monotonic()
        working, done = asyncio.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()
        work = asyncio.create_task(
            asyncio.to_thread(lambda: [loop.call_soon_threadsafe(working.set), list(range(1000))])
        )
        work.add_done_callback(lambda _: done.set())
        await asyncio.wait_for(done.wait(), 1.0)
        assert working.is_set()
        return time.monotonic() - begin

    assert run(main()) < 0.01


def test_the_loop_waits_as_long_as_a_thread_works(monkeypatch: pytest.MonkeyPatch) -> None:
    select, waits = selectors.DefaultSelector.select, threading.Event()

    def noted(selector: selectors.DefaultSelector, timeout: float | None = None) -> Any:
        if timeout is None:
            waits.set()
        return select(selector, timeout)

    async def main() -> bool:
        monkeypatch.setattr(selectors.DefaultSelector, "select", noted)
        return await asyncio.to_thread(waits.wait, 20)  # until the loop has nothing else to do

    assert run(main())


def test_a_program_that_hangs_is_told_so() -> None:
    async def main() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(DeadlockError, match="every task waits"):
        run(main())


def test_sockets_are_heard_at_the_time_it_is() -> None:
    async def main() -> bytes:
        loop = asyncio.get_running_loop()
        one, other = socket.socketpair()
        with one, other:
            for each in (one, other):
                each.setblocking(False)
            readable = asyncio.Event()
            loop.add_reader(one, readable.set)
            loop.add_writer(one, lambda: None)
            loop.remove_writer(one)
            other.send(b"hello")
            await readable.wait()
            loop.remove_reader(one)
            return one.recv(10)

    assert run(main()) == b"hello"


@pytest.mark.slow
@virtual_time
async def test_unmodified_clients_on_simulated_time() -> None:
    async with Cluster(topics={"orders": 2}, clock="virtual") as kafka:
        settings = {"bootstrap_servers": kafka.address, "group_id": "app", "fetch_max_wait_ms": 30_000}
        one = aiokafka.AIOKafkaConsumer("orders", auto_offset_reset="earliest", client_id="one", **settings)
        other = aiokafka.AIOKafkaConsumer("orders", client_id="other", **settings)
        async with one, other:
            await kafka.group("app").wait_stable(members=2)
            begin = kafka.clock.now_ms()
            await kafka.produce("orders", b"a")
            await kafka.produce("orders", b"b", partition=1)
            for consumer in (one, other):
                assert (await consumer.getone()).value in (b"a", b"b")
            await asyncio.sleep(290)  # one more does not poll: after 300 s aiokafka lets its partitions go
            assert await kafka.group("app").state() == "Stable"
            assert 290_000 <= kafka.clock.now_ms() - begin < 300_000
        (member,) = await kafka.consumers(1, group="mine", topics="orders")
        await asyncio.sleep(3_600)
        assert member.is_stable
        assert member.generation == 1
        assert isinstance(asyncio.get_running_loop(), VirtualTimeLoop)
    assert await kafka.group("app").state() == "Empty"
    assert (await kafka.group("mine").describe()).members


@pytest.mark.asyncio
async def test_a_virtual_clock_needs_a_loop_with_simulated_time() -> None:
    with pytest.raises(RuntimeError, match="put @virtual_time around the test"):
        async with Cluster(clock="virtual"):
            pass
