"""A call whose ``await`` was forgotten fails the test."""

import asyncio
from collections.abc import Coroutine

import pytest

from groupcoord.testing import Cluster, RemoteCluster


@pytest.mark.asyncio
async def test_a_call_that_was_never_awaited_is_an_error_that_says_where_it_stands() -> None:
    async def story() -> None:
        async with Cluster(topics={"orders": 1}, clock="manual") as kafka:
            began_ms = kafka.clock.now_ms()
            kafka.clock.advance(46)  # type: ignore[unused-coroutine]
            kafka.group("app").wait_stable()  # type: ignore[unused-coroutine]
            assert kafka.clock.now_ms() == began_ms

    with pytest.raises(AssertionError) as found:
        await story()
    line = story.__code__.co_firstlineno + 3
    assert str(found.value) == (
        "never awaited, so nothing of it was done: "
        f"ClusterClock.advance(…) at {__file__}:{line}, ClusterGroup.wait_stable(…) at {__file__}:{line + 1}. "
        "Write `await` before it"
    )


@pytest.mark.asyncio
async def test_a_call_that_is_kept_may_be_awaited_later() -> None:
    async with Cluster(topics={"orders": 1}, clock="manual") as kafka:
        kept = kafka.clock.advance(46)
        async with Cluster(clock="manual") as other:
            await other.check()
        await kafka.check()
        began_ms = kafka.clock.now_ms()
        await kept
        assert kafka.clock.now_ms() == began_ms + 46_000


@pytest.mark.asyncio
async def test_it_is_said_beside_what_failed_because_of_it() -> None:
    async def story() -> None:
        async with Cluster(clock="manual") as kafka:
            kafka.create_topic("orders")  # type: ignore[unused-coroutine]
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as found:
        await story()
    assert found.value.__notes__[0].startswith("never awaited, so nothing of it was done: Cluster.create_topic(…) at ")


@pytest.mark.asyncio
async def test_a_remote_cluster_says_it_too() -> None:
    async with Cluster(clock="manual") as kafka:
        with pytest.raises(AssertionError, match=r"never awaited.*RemoteCluster.create_topic\(…\) at .*\.py:\d+"):
            async with RemoteCluster(kafka.address) as remote:
                remote.create_topic("orders")  # type: ignore[unused-coroutine]


@pytest.mark.asyncio
async def test_what_a_task_begins_is_awaited() -> None:
    async with Cluster(clock="manual") as kafka:
        task = asyncio.create_task(kafka.create_topic("orders"))
    await task


def test_a_call_without_an_event_loop_and_one_in_another_loop() -> None:
    clusters: list[Cluster] = []
    calls: list[Coroutine[None, None, object]] = []

    async def story() -> None:
        async with Cluster(clock="manual") as kafka:
            clusters.append(kafka)

    async def in_another_loop() -> None:
        calls.append(clusters[0].list_groups())

    asyncio.run(story())
    asyncio.run(in_another_loop())
    asyncio.run(story())  # that is no business of this one
    clusters[0].list_groups()  # type: ignore[unused-coroutine]
    with pytest.raises(AssertionError, match=r"of it was done: Cluster.list_groups\(…\) at .* the fixture kafka_sync"):
        asyncio.run(story())
    calls[0].close()
