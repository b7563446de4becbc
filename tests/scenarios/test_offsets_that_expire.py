"""The expiration of offsets: when they are deleted, and which ones are kept."""

from typing import Any

import pytest

from groupcoord.coordinator.events import OffsetsRemoved
from groupcoord.protocol.errors import ErrorCode as E
from groupcoord.testing import Cluster
from tests.scenarios.steps import gather

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]

P0 = ("orders", 0)
AN_HOUR = {"offsets.retention.minutes": 60, "offsets.retention.check.interval.ms": 60_000}
A_MINUTE = {"offsets.retention.minutes": 1, "offsets.retention.check.interval.ms": 10_000}


@pytest.mark.kafka(topics={"orders": 1}, config=AN_HOUR)
async def test_offsets_of_an_empty_group_expire(kafka: Cluster) -> None:
    """confluentinc/librdkafka#1442 "Resetting offsets after offsets.retention.minutes has passed"
    dpkp/kafka-python#612 "offsets stored within kafka seem to have a life of less than 3 days"

    A batch consumer runs once in a while. When it runs again its offsets are gone: with `earliest` it reads everything
    again, with `latest` it skips the new records, in both cases without an error.

    Right: an empty group keeps its offsets for `offsets.retention.minutes` *since it became empty*. Then the offsets and
    the group are deleted.
    """
    a = kafka.manual_member("app", "orders", session_timeout_ms=1_800_000)
    await a.rejoin()
    assert await a.commit({P0: 5}) == {P0: E.NONE}
    await kafka.clock.advance(1_000)
    assert await a.leave() == E.NONE  # the hour begins here
    await kafka.clock.advance(3_599)
    assert await kafka.group("app").committed("orders", 0) == 5
    await kafka.clock.advance(61)
    assert await kafka.group("app").committed("orders", 0) is None
    assert await kafka.group("app").state() == "Dead"


@pytest.mark.kafka(topics={"orders": 1}, config=AN_HOUR)
async def test_who_comes_back_in_time_starts_the_clock_anew(kafka: Cluster) -> None:
    """confluentinc/librdkafka#1442 "Resetting offsets after offsets.retention.minutes has passed"

    A remedy for the batch consumer: it need not commit anything new, it only has to join the group.

    Right: each time the group becomes empty, the retention time starts again, however old the commit is.
    """
    a = kafka.manual_member("app", "orders")
    await a.rejoin()
    assert await a.commit({P0: 5}) == {P0: E.NONE}
    assert await a.leave() == E.NONE
    for _ in range(3):
        await kafka.clock.advance(3_000)
        a = kafka.manual_member("app", "orders")
        await a.rejoin()
        assert await a.leave() == E.NONE
    assert await kafka.group("app").committed("orders", 0) == 5
    await kafka.clock.advance(3_700)
    assert await kafka.group("app").state() == "Dead"


@pytest.mark.kafka(topics={"orders": 1, "old": 1}, config=AN_HOUR)
async def test_a_living_group_keeps_what_it_subscribes_to(kafka: Cluster) -> None:
    """apache/kafka#4896 "KAFKA-4682; Revise expiration semantics of consumer group offsets (KIP-211 - Part 1)"

    A topic had no traffic: there was nothing to commit, so the offsets grew old and were deleted although the consumer was
    running, and its next restart began at the wrong offset.

    Right: while the group is Stable, offsets of topics that it subscribes to do not expire. Offsets of other topics do.
    """
    (a,) = await kafka.consumers(1, group="app", topics="orders", heartbeat_interval_ms=30_000)
    a.commit({P0: 5, ("old", 0): 7})
    await kafka.settle()
    assert await kafka.group("app").offsets() == {P0: 5, ("old", 0): 7}
    await kafka.clock.advance(7_200)
    assert await kafka.group("app").offsets() == {P0: 5}
    assert a.is_stable


@pytest.mark.kafka(topics={"orders": 1, "old": 1}, config=A_MINUTE)
async def test_nothing_expires_during_a_rebalance(kafka: Cluster) -> None:
    """apache/kafka#11742 "KAFKA-13636: Fix for the group coordinator issue where the offsets are deleted for unstable groups"

    The cleanup ran while a group was rebalancing, found no subscriptions, and deleted the offsets of a live group.

    Right: only offsets of groups that are Stable or Empty expire, however long a rebalance takes; in a Stable group only
    those of topics to which no member subscribes.
    """
    long: dict[str, Any] = {"session_timeout_ms": 900_000, "rebalance_timeout_ms": 900_000}
    a, b = (kafka.manual_member("app", "orders", **long) for _ in range(2))
    await a.rejoin()
    committed = {P0: 5, ("old", 0): 7}
    await a.commit(committed)
    joining = b.join()
    await kafka.clock.advance(200)
    assert await kafka.group("app").state() == "PreparingRebalance"
    assert await kafka.group("app").offsets() == committed
    await gather(a.join(), joining)
    await kafka.clock.advance(200)
    assert await kafka.group("app").state() == "CompletingRebalance"
    assert await kafka.group("app").offsets() == committed
    kafka.trace.of(OffsetsRemoved).none()
    await gather(b.sync(), a.sync())
    await kafka.clock.advance(20)
    assert await kafka.group("app").offsets() == {P0: 5}
