"""Coordinators that are unavailable: loading, restarting, or unreachable."""

import pytest

from groupcoord.client.member.member_events import CoordinatorLost
from groupcoord.coordinator.events import MemberRemoved, RebalanceStarted
from groupcoord.protocol.errors import ErrorCode as E
from groupcoord.testing import Cluster
from groupcoord.testing.trace import RequestReceived

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]

P0, P1 = ("orders", 0), ("orders", 1)


async def test_loading_passes(kafka: Cluster) -> None:
    """tulios/kafkajs#267 "[Consumer] Stopped when Kafka broker restarts"
    tulios/kafkajs#1779 "Handle GROUP_LOAD_IN_PROGRESS and re-discover coordinator after NOT_COORDINATOR_FOR_GROUP"

    After a restart the new coordinator returns COORDINATOR_LOAD_IN_PROGRESS for a second or two. The client did not know
    that this error is temporary, and ended.

    Right: repeat the request at the same broker, with exponential backoff.
    """
    await kafka.create_topic("orders", 2)
    begun_ms = kafka.clock.now_ms()
    with kafka.faults.when("JoinGroup").refuse("COORDINATOR_LOAD_IN_PROGRESS").times(4):
        (a,) = await kafka.consumers(1, group="app", topics="orders")
    asked = kafka.trace.of(RequestReceived, api="JoinGroup")
    assert len(asked) == 6  # 4 refused, one that is given an id, one that joins
    pauses = [asked[number + 1].at_ms - asked[number].at_ms for number in range(4)]
    assert pauses == sorted(pauses)
    assert 80 <= pauses[0] < pauses[-1] <= 1_200
    assert kafka.clock.now_ms() - begun_ms < 10_000
    kafka.trace.of(CoordinatorLost).none()
    assert (a.errors, len(a.assigned)) == ([], 2)


async def test_a_member_that_has_joined_does_not_mind_loading(kafka: Cluster) -> None:
    """tulios/kafkajs#1779 "Handle GROUP_LOAD_IN_PROGRESS and re-discover coordinator after NOT_COORDINATOR_FOR_GROUP"

    The same for existing members: a commit that arrives while the coordinator loads.

    Right: the commit fails with a retriable error, the member stays a member, and there is no rebalance.
    """
    await kafka.create_topic("orders", 2)
    (a,) = await kafka.consumers(1, group="app", topics="orders")
    kafka.faults.when("OffsetCommit").refuse("COORDINATOR_LOAD_IN_PROGRESS").times(2)
    codes: list[dict[tuple[str, int], E]] = []
    for _ in range(3):
        a.commit({P0: 5}, codes.append)
        await kafka.settle()
    assert [each[P0] for each in codes] == [E.COORDINATOR_LOAD_IN_PROGRESS] * 2 + [E.NONE]
    await kafka.clock.advance(20)
    assert (a.is_stable, a.generation, a.errors) == (True, 1, [])
    assert await kafka.group("app").committed("orders", 0) == 5


async def test_a_coordinator_after_ten_minutes(kafka: Cluster) -> None:
    """dpkp/kafka-python#1310 "Rolling Kafka cluster results in Consumer not recovering"
    dpkp/kafka-python#1134 "Add a test that when groupcoordinator dies, the consumer will pick up the new coordinator"
    IBM/sarama#2427 "fix(consumer): don't retry FindCoordinator forever"

    During a rolling restart the coordinator was lost. For a week the consumer logged "Coordinator unknown during heartbeat
    -- will retry" ten times a second and, as a packet trace showed, sent nothing.

    Right: the client repeats FindCoordinator with a backoff until it succeeds. Then the member gets UNKNOWN_MEMBER_ID,
    reports its partitions as lost, and joins again.
    """
    await kafka.create_topic("orders", 2)
    (a,) = await kafka.consumers(1, group="app", topics="orders", retry_backoff_max_ms=5_000)
    before = a.member_id
    with kafka.faults.when("FindCoordinator").refuse("COORDINATOR_NOT_AVAILABLE"):
        await kafka.stop()
        await kafka.clock.advance(5)
        await kafka.restart()
        await kafka.clock.advance(600)
        assert before not in await kafka.group("app").assignment()  # its session is long over
        asked = len(kafka.trace.of(RequestReceived, api="FindCoordinator"))
    assert 100 <= asked <= 200  # once in five seconds or so
    await kafka.clock.advance(10)
    assert (a.is_stable, len(a.assigned), a.errors) == (True, 2, [])
    assert a.member_id != before
    assert [what for what, some in a.rebalance_callbacks if some] == ["assigned", "lost", "assigned"]


async def test_back_after_a_minute_without_network(kafka: Cluster) -> None:
    """aio-libs/aiokafka#344 "First commit after regaining connectivity causes group coordinator to raise exception and halt the
    loop"
    aio-libs/aiokafka#230 "Don't fail GroupCoordinator._on_join_prepare() if commit_offset() throws exception"

    There is no network for longer than the session timeout. When it is back, fetching continues; the first commit fails,
    the rebalance callback commits again, and the resulting error ends the background task: no records are read any more,
    without an error.

    Right: at the first response, UNKNOWN_MEMBER_ID, the partitions are lost. A failed commit does not keep the client from
    joining again; the records that it processed meanwhile belong to another member by now.
    """
    await kafka.create_topic("orders", 2)
    a, b = await kafka.consumers(2, group="app", topics="orders")
    mine = min(b.assigned)
    codes: list[dict[tuple[str, int], E]] = []
    with kafka.faults.when(client_id=b.client_id).drop():
        await kafka.clock.advance(100)
        assert a.assigned == {P0, P1}
        assert b.assigned == {mine}  # nobody could tell it
        b.consumed[mine] = 5
    b.commit({mine: 5}, codes.append)
    await kafka.clock.advance(60)
    assert codes == [{mine: E.UNKNOWN_MEMBER_ID}]
    assert ("lost", (mine,)) in b.rebalance_callbacks
    assert len(a.assigned) == len(b.assigned) == 1
    assert b.errors == []
    assert await kafka.group("app").committed(*mine) is None


async def test_a_restart_is_no_rebalance(kafka: Cluster) -> None:
    """confluentinc/confluent-kafka-python#173 "Consumer fails to consume on broker restart"
    confluentinc/librdkafka#1006 "KafkaConsumer loosing group on broker restart"
    akka/alpakka-kafka#1304 "Broker restart leads to no assigned partitions"

    After a restart of the only broker consumers hang in "querying for coordinator", or come back without partitions.

    Right: the log has the stable group with its members, generation and assignment. All sessions start again when the group
    is loaded, so members that then heartbeat in time notice nothing, however long the broker was down.
    """
    await kafka.create_topic("orders", 4)
    a, b = await kafka.consumers(2, group="app", topics="orders")
    before = (a.generation, a.assigned, b.assigned)
    await kafka.stop()
    await kafka.clock.advance(120)  # nobody counts meanwhile
    await kafka.restart()
    await kafka.clock.advance(60)
    assert (a.generation, a.assigned, b.assigned) == before
    assert a.is_stable
    assert b.is_stable
    kafka.trace.of(MemberRemoved).none()
    assert len(kafka.trace.of(RebalanceStarted)) == 1


async def test_who_died_while_the_broker_was_away_has_its_session_from_then_on(kafka: Cluster) -> None:
    """confluentinc/librdkafka#1006 "KafkaConsumer loosing group on broker restart"

    The other side of it: a restarted coordinator cannot know which members are still alive.

    Right: each member has a whole session timeout after the load; members that send no heartbeat in this time are removed.
    """
    await kafka.create_topic("orders", 4)
    a, b = await kafka.consumers(2, group="app", topics="orders")
    gone = b.member_id
    await kafka.stop()
    b.vanish()
    await kafka.clock.advance(120)
    await kafka.restart()
    back_ms = kafka.clock.now_ms()
    await kafka.clock.advance(44)
    assert gone in await kafka.group("app").assignment()
    await kafka.clock.advance(5)
    assert len(a.assigned) == 4
    assert kafka.trace.of(MemberRemoved, member=gone).one().at_ms - back_ms == 45_000


async def test_many_commits_lose_their_connection_together(kafka: Cluster) -> None:
    """apache/kafka#4349 "KAFKA-6366: Fix stack overflow in consumer due to many offset commits during coordinator disconnect"

    A hundred commits were in flight when the connection was lost. Each cancelled one marked the coordinator as unknown
    again, which cancelled the next one, until the stack of the consumer overflowed.

    Right: each commit fails once, the client looks up the coordinator once, and the last offset can be committed
    afterwards.
    """
    await kafka.create_topic("orders", 1)
    a = kafka.manual_member("app", "orders")
    await a.rejoin()
    hold = kafka.faults.when("OffsetCommit").hold().times(100)
    committing = [a.commit({P0: number}) for number in range(100)]
    await hold.wait(100)
    await kafka.stop()
    for each in committing:
        with pytest.raises(ConnectionResetError):
            await each
    await kafka.restart()
    assert await a.commit({P0: 100}) == {P0: E.NONE}
    assert await a.heartbeat() == E.NONE
