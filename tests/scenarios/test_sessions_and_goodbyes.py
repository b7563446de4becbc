"""Sessions and LeaveGroup: members that are alive, members that are not, and zombies."""

import pytest

from groupcoord.client.member.member_events import PolledTooLate
from groupcoord.coordinator.events import Departure, MemberRemoved
from groupcoord.protocol.errors import ErrorCode as E
from groupcoord.testing import Cluster
from tests.scenarios.steps import gather

pytestmark = pytest.mark.asyncio

P0, P1 = ("orders", 0), ("orders", 1)


async def test_a_zombie_learns_that_it_is_one(kafka: Cluster) -> None:
    """dpkp/kafka-python#1435 "Consumer overruns its session timeout, drops out of the group and never rejoins--stuck in zombie
    state."
    aio-libs/aiokafka#625 "LeaveGroup but failed to rejoin"

    The process is suspended: by a debugger, a suspended machine, a long garbage collection. When it continues it still
    believes that it owns its partitions. It reads, but does not commit or join.

    Right: the first response tells the consumer that it is no longer a member. It reports all partitions as lost, stops
    reading them, and joins again.
    """
    await kafka.create_topic("orders", 2)
    a, b = await kafka.consumers(2, group="app", topics="orders")
    zombie, mine = b.member_id, min(b.assigned)
    b.pause()
    await kafka.clock.advance(60)
    assert a.assigned == {P0, P1}
    assert b.assigned == {mine}  # two owners, and nobody can help it
    b.resume()
    await kafka.settle()
    assert b.rebalance_callbacks[-1] == ("lost", (mine,))
    assert b.assigned == frozenset()
    await kafka.clock.advance(10)
    assert b.member_id != zombie
    assert len(a.assigned) == len(b.assigned) == 1
    kafka.trace.of(MemberRemoved, member=zombie, how=Departure.SESSION_OVER).one()


async def test_a_zombie_cannot_commit(kafka: Cluster) -> None:
    """dpkp/kafka-python#1435 "Consumer overruns its session timeout, drops out of the group and never rejoins--stuck in zombie
    state."

    Before the zombie noticed, it processed records of partitions that another member owned, and commits their offsets.

    Right: the coordinator refuses commits of removed members, and the offset that the new owner committed stays.
    """
    await kafka.create_topic("orders", 2)
    zombie, other = (
        kafka.manual_member("app", "orders"),
        kafka.manual_member("app", "orders", session_timeout_ms=300_000),
    )
    await zombie.rejoin()
    assert await zombie.commit({P0: 3}) == {P0: E.NONE}
    joining = other.join()
    await kafka.clock.advance(46)
    await gather(joining)
    await gather(other.sync())
    assert await other.commit({P0: 7}) == {P0: E.NONE}
    assert await zombie.commit({P0: 4}) == {P0: E.UNKNOWN_MEMBER_ID}
    zombie.generation = other.generation
    assert await zombie.commit({P0: 4}) == {P0: E.UNKNOWN_MEMBER_ID}
    assert await kafka.group("app").committed("orders", 0) == 7


async def test_lost_partitions_are_not_revoked(kafka: Cluster) -> None:
    """apache/kafka#6884 "KAFKA-8179: Part 3, Add PartitionsLost API for resetGenerations and metadata/subscription change"
    zio/zio-kafka#1252 "A lost partition is no longer fatal"
    twmb/franz-go#660 "no revoked message when rebalance"

    Partitions that already had another owner were reported as revoked: the callback committed, and stored state that was no
    longer its own. In other clients a lost partition ended the program, or was not reported at all.

    Right: one of the two callbacks is called, once, with all owned partitions: `lost` if the generation is invalid, without
    a commit; `revoked` otherwise. This also applies to the cooperative protocol.
    """
    await kafka.create_topic("orders", 4)
    a, b = await kafka.consumers(2, group="app", topics="orders", assignors="cooperative-sticky")
    owned, told = tuple(sorted(b.assigned)), len(b.rebalance_callbacks)
    assert len(owned) == 2
    b.consumed |= dict.fromkeys(owned, 9)
    b.pause()
    await kafka.clock.advance(60)
    assert len(a.assigned) == 4
    b.resume()
    await kafka.clock.advance(20)
    assert b.rebalance_callbacks[told] == ("lost", owned)
    assert [what for what, some in b.rebalance_callbacks[told + 1 :] if some] == ["assigned"]
    assert len(a.assigned) == len(b.assigned) == 2
    assert await kafka.group("app").offsets() == {}


async def test_a_goodbye_gives_back_what_a_crash_keeps(kafka: Cluster) -> None:
    """apache/kafka#6884 "KAFKA-8179: Part 3, Add PartitionsLost API for resetGenerations and metadata/subscription change"

    The counterpart: a member that leaves normally still owns its partitions.

    Right: the callback is `revoked`, after a commit, and the next owner starts at once at the committed offset.
    """
    await kafka.create_topic("orders", 2)
    a, b = await kafka.consumers(2, group="app", topics="orders", assignors="cooperative-sticky")
    (mine,) = b.assigned
    b.consumed[mine] = 9
    b.leave()
    await kafka.settle()
    assert b.rebalance_callbacks[-1] == ("revoked", (mine,))
    assert await kafka.group("app").committed(*mine) == 9
    await kafka.clock.advance(3)  # a's next heartbeat
    assert a.assigned == {P0, P1}


async def test_a_lost_goodbye_costs_a_session(kafka: Cluster) -> None:
    """confluentinc/librdkafka#2040 "Consumers subscribing back-to-back are delayed by session timeout (possible ungraceful
    shutdown)"
    apache/kafka#480 "KAFKA-2792: Don't wait for a response to the leave group message when closing the new consumer"

    The process ends before it has sent LeaveGroup, or sends it to a broker that is down. The next consumer of the group
    waits for the dead one: half a minute without records after each restart.

    Right: the client sends LeaveGroup, waits a moment for the response, and closes the connection. If LeaveGroup is lost,
    the coordinator lets the new member in exactly when the session of the dead one times out.
    """
    await kafka.create_topic("orders", 1)
    a, b = kafka.manual_member("app", "orders"), kafka.manual_member("app", "orders")
    await a.rejoin()
    kafka.faults.when("LeaveGroup").drop()
    a.leave()
    await kafka.settle()
    a.vanish()
    joining = b.join()
    await kafka.clock.advance(44.999)
    assert not joining.done()
    await kafka.clock.advance(0.001)
    assert (await joining).leader == b.member_id
    await gather(b.sync())
    assert await b.leave() == E.NONE
    c = kafka.manual_member("app", "orders")
    await c.rejoin()  # at once
    assert c.assigned == {P0}


async def test_too_long_between_two_polls(kafka: Cluster) -> None:
    """confluentinc/confluent-kafka-python#552 "Application maximum poll interval (300000ms) exceeded by 88ms…"
    confluentinc/confluent-kafka-dotnet#1220 "Consumer error Local_MaxPollExceeded is Fatal for consumer"
    apache/kafka#14873 "KAFKA-15818: ensure leave group on max poll interval"

    A call to another service, with retries, takes longer than `max.poll.interval.ms`. The client leaves the group, as it
    should; the application treats the error as fatal, or never polls again, and a running process reads nothing.

    Right: the client leaves and reports why. The others take over at once, since they do not have to wait for a session
    timeout. The next poll reports the lost partitions and joins again; the error is not fatal.
    """
    await kafka.create_topic("orders", 2)
    a, b = await kafka.consumers(2, group="app", topics="orders")
    slow, mine = b.member_id, min(b.assigned)
    b.be_busy()
    await kafka.clock.advance(299)
    assert slow in await kafka.group("app").assignment()  # it heartbeats
    await kafka.clock.advance(1)
    gone = kafka.trace.of(MemberRemoved, member=slow).one()
    assert gone.how is Departure.LEFT
    assert "poll timeout" in gone.reason
    await kafka.clock.advance(3)
    assert a.assigned == {P0, P1}
    kafka.trace.of(PolledTooLate, max_poll_interval_ms=300_000).one()
    told = len(b.rebalance_callbacks)
    b.poll()
    await kafka.clock.advance(10)
    assert b.rebalance_callbacks[told] == ("lost", (mine,))
    assert len(b.assigned) == 1
    assert b.errors == []


async def test_busy_is_not_dead(kafka: Cluster) -> None:
    """dpkp/kafka-python#2070 "time.sleep blocks heartbeat"
    dpkp/kafka-python#1418 "Heartbeat failed for group xxxWorker because it is rebalancing"
    robinhood/faust#231 "Stability: Move Kafka consumer to separate thread"

    Heartbeats share a thread, or an event loop, with the handler of records. It sleeps for a minute and the member is
    removed; it joins, gets the same record, and sleeps again: for ever.

    Right: a slow handler has no effect until the poll interval is over; a process that is suspended is removed after its
    session timeout. The reason with which a member leaves or is removed tells the two cases apart.
    """
    await kafka.create_topic("orders", 3)
    _, busy, still = await kafka.consumers(3, group="app", topics="orders")
    names = busy.member_id, still.member_id
    busy.be_busy()
    still.pause()
    stood_ms = kafka.clock.now_ms()
    await kafka.clock.advance(60)
    there = await kafka.group("app").assignment()
    assert names[0] in there
    assert names[1] not in there
    removed = kafka.trace.of(MemberRemoved).one()
    assert (removed.member, removed.how, removed.timeout_ms) == (names[1], Departure.SESSION_OVER, 45_000)
    assert removed.at_ms == stood_ms + 45_000
