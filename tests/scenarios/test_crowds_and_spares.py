"""Many members at once, more members than partitions, and more than the group may have."""

import pytest

from groupcoord.coordinator.events import MemberRemoved, RebalanceStarted
from groupcoord.protocol.errors import ErrorCode as E
from groupcoord.testing import Cluster
from tests.scenarios.steps import gather, together


@pytest.mark.asyncio
@pytest.mark.kafka(topics={"orders": 40}, config={"group.initial.rebalance.delay.ms": 3000})
async def test_a_storm_of_newcomers_is_one_generation(kafka: Cluster) -> None:
    """apache/kafka#2758 "KAFKA-4925: delay initial rebalance of consumer group"
    robinhood/faust#616 "Constant rebalancing"

    A deployment with hundreds of members starts, and each new member starts a rebalance of all existing ones: state is
    moved about as often as there are members.

    Right: the first rebalance of an empty group waits for `group.initial.rebalance.delay.ms`, and again for the same time
    if members joined meanwhile, at most until the rebalance timeout of the first member. All join in one generation.
    """
    crew = [kafka.manual_member("app", "orders") for _ in range(20)]
    joining = [member.join() for member in crew[:10]]
    await kafka.clock.advance(2)
    joining += [member.join() for member in crew[10:]]
    await kafka.clock.advance(3.999)
    assert not any(each.done() for each in joining)
    await kafka.clock.advance(0.001)
    assert {each.generation_id for each in await gather(*joining)} == {1}
    await gather(*[member.sync() for member in crew])
    assert sorted(len(member.assigned) for member in crew) == [2] * 20
    assert len(frozenset().union(*[member.assigned for member in crew])) == 40
    assert len(kafka.trace.of(RebalanceStarted, group="app")) == 1


@pytest.mark.slow
@pytest.mark.asyncio
@pytest.mark.kafka(topics={"orders": 40})
async def test_a_storm_without_patience_still_ends(kafka: Cluster) -> None:
    """robinhood/faust#616 "Constant rebalancing"

    The same without an initial delay: a group has a member already, and twenty more join one after the other while it
    rebalances.

    Right: members that arrive during the join phase take part in the same rebalance, so there are fewer than twenty
    rebalances.
    """
    (a,) = await kafka.consumers(1, group="app", topics="orders")
    before = a.generation
    crew = await kafka.consumers(20, group="app", topics="orders")
    assert a.generation == before + 1
    assert sorted(len(member.assigned) for member in (a, *crew)) == [1, 1, *[2] * 19]
    assert len(frozenset().union(*[member.assigned for member in (a, *crew)])) == 40


@pytest.mark.slow
@pytest.mark.asyncio
@pytest.mark.kafka(topics={"orders": 1})
async def test_a_spare_stays_and_takes_over(kafka: Cluster) -> None:
    """aio-libs/aiokafka#720 "A Consumer with no partitions assigned will timeout and leave the consumer group"
    aio-libs/aiokafka#1187 "Consumer holding no partitions can never rejoin after max_poll_interval_ms"
    tulios/kafkajs#1361 "Members leave the group after not being assigned any partitions"
    robinhood/faust#134 "More workers then partitions cause re-balance to hang"

    The same problem in four libraries: a spare has nothing to fetch, so the client considers it idle, or never sends
    heartbeats, and it is removed. When the active member dies no other one takes over.

    Right: waiting for records counts as polling. A spare sends heartbeats all the time, has an empty assignment, and gets
    partitions when another member leaves.
    """
    crew = await kafka.consumers(3, group="app", topics="orders", heartbeat_interval_ms=15_000)
    await kafka.clock.advance(900)  # three times max.poll.interval.ms
    kafka.trace.of(MemberRemoved).none()
    assert [member.generation for member in crew] == [1, 1, 1]
    (active,) = [member for member in crew if member.assigned]
    active.vanish()
    await kafka.clock.advance(60)
    spares = [member for member in crew if member is not active]
    assert sorted(len(member.assigned) for member in spares) == [0, 1]


@pytest.mark.asyncio
@pytest.mark.kafka(topics={"orders": 2}, config={"group.max.size": 2})
async def test_the_group_is_full(kafka: Cluster) -> None:
    """apache/kafka#6163 'KAFKA-7641: Introduce "group.max.size" config to limit group sizes'

    A faulty deployment adds members to one group until the broker is overloaded.

    Right: the new member gets GROUP_MAX_SIZE_REACHED, which is a fatal error, and the other members are not affected. When
    a member leaves, another one can join.
    """
    a, b, c = (kafka.manual_member("app", "orders") for _ in range(3))
    await together(kafka, a, b)
    assert (await c.join()).error_code == E.GROUP_MAX_SIZE_REACHED
    assert await a.heartbeat() == await b.heartbeat() == E.NONE
    await a.leave()
    await gather(c.join(), b.join())
    await gather(c.sync(), b.sync())
    assert len(c.assigned) == 1


@pytest.mark.asyncio
@pytest.mark.kafka(topics={"orders": 2}, config={"group.max.size": 2})
async def test_an_id_is_no_place_in_a_full_group(kafka: Cluster) -> None:
    """apache/kafka#8525 "KAFKA-9885; Evict last members of a group when the maximum allowed is reached"

    A new member first gets an id and then joins with it. The limit was checked only for new members, so members with an id
    could exceed it; and when a group was too large the first one to join again was removed, each time another one.

    Right: a member id guarantees no place. The first members to join are accepted, up to the limit; later ones are refused,
    even former members. (Kafka then does not check whether all have joined: the generation starts at the rebalance
    timeout.)
    """
    a, b, c, d = (kafka.manual_member("app", "orders") for _ in range(4))
    await a.rejoin()
    for newcomer in (b, c, d):
        assert (await newcomer.join(come_back=False)).error_code == E.MEMBER_ID_REQUIRED
    joining = b.join(), c.join()
    await kafka.settle()
    assert (await d.join()).error_code == E.GROUP_MAX_SIZE_REACHED
    assert await a.heartbeat() == E.REBALANCE_IN_PROGRESS
    assert (await a.join()).error_code == E.GROUP_MAX_SIZE_REACHED
    await kafka.clock.advance(60)
    await gather(*joining)
    await gather(c.sync(), b.sync())
    assert set(await kafka.group("app").assignment()) == {b.member_id, c.member_id}
    assert len(b.assigned) == len(c.assigned) == 1
