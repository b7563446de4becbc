from dataclasses import replace
from typing import Any

import pytest

from groupcoord.core.effects import Call, CloseConnection, Effect, NoReply, RawReply, Reply
from groupcoord.core.events import AdminAction, Requested, TimerFired
from groupcoord.core.timers import TimerKey
from groupcoord.protocol import messages as m
from groupcoord.protocol.apis.fetch import FetchPartition, FetchTopic
from groupcoord.protocol.apis.offset_fetch import OffsetFetchRequestGroup
from groupcoord.protocol.apis.produce import PartitionProduceData, TopicProduceData
from groupcoord.protocol.errors import ErrorCode
from groupcoord.testing.faults import (
    FaultEnded,
    FaultInjected,
    FaultLayer,
    FaultRulesFailed,
    HeldRequest,
    HoldRule,
    Rulebook,
    when,
)
from tests.broker.data_plane import batch
from tests.server.support import FakeCluster
from tests.testing.faults.support import (
    ApiVersions,
    Asking,
    Fetch,
    Heartbeat,
    JoinGroup,
    OffsetCommit,
    OffsetFetch,
    Produce,
    World,
    heartbeat,
    join,
    produce,
)

LOST = ErrorCode.NOT_COORDINATOR
NO = ErrorCode.UNKNOWN_MEMBER_ID


@pytest.fixture
def world() -> World:
    return World()


def committed(world: World) -> int:
    """The offset of orders-0 that the group has, as the node itself says; -1: none."""
    request = m.OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id="app", topics=None),))
    call = Call(999, 0, OffsetFetch, 9, "c", "/127.0.0.1")
    (reply,) = world.node.handle(call, request, world.now)
    assert isinstance(reply, Reply)
    topics = reply.response.groups[0].topics
    return topics[0].partitions[0].committed_offset if topics else -1


def error_of(asking: Asking) -> ErrorCode:
    return ErrorCode(asking.answer.topics[0].partitions[0].error_code)


class TestRefuse:
    def test_the_request_is_not_handled(self, world: World) -> None:
        world.when(OffsetCommit).refuse(LOST)
        assert (error_of(world.commit()), committed(world)) == (LOST, -1)

    def test_its_answer_is_refused_though_it_was_handled(self, world: World) -> None:
        world.when(OffsetCommit).refuse_answer("REQUEST_TIMED_OUT")
        assert (error_of(world.commit()), committed(world)) == (ErrorCode.REQUEST_TIMED_OUT, 5)

    def test_an_api_versions_that_is_not_understood(self, world: World) -> None:
        world.when(ApiVersions).refuse(LOST)
        (reply,) = world.ask(ApiVersions, None, version=4).ends
        assert isinstance(reply, Reply)
        assert (reply.call.version, reply.response.error_code) == (0, LOST)


class TestDelay:
    def test_the_request_is_handled_later(self, world: World) -> None:
        world.when(OffsetCommit).delay(500)
        asking = world.commit()
        world.advance(499)
        assert (asking.is_open, committed(world)) == (True, -1)
        world.advance(1)
        assert (error_of(asking), committed(world)) == (ErrorCode.NONE, 5)

    def test_only_the_answer_is_late(self, world: World) -> None:
        world.when(OffsetCommit).delay_answer(500)
        asking = world.commit()
        assert (asking.is_open, committed(world)) == (True, 5)
        world.advance(500)
        assert error_of(asking) == ErrorCode.NONE

    def test_the_node_wants_to_be_woken_for_it(self, world: World) -> None:
        faulty = world.faulty
        assert faulty.next_deadline() == world.node.next_deadline() is not None
        world.when(OffsetCommit).delay(500)
        asking = world.commit()
        assert (faulty.next_deadline(), faulty.deadline_lower_bound()) == (1_500, 1_500)
        (deadline,) = faulty.deadlines()
        assert deadline.key == TimerKey(
            "fault", "rule 1", f"OffsetCommit {asking.call.connection_id}:{asking.call.correlation_id}"
        )
        world.advance(500)
        assert faulty.deadlines() == []
        assert faulty.next_deadline() == world.node.next_deadline()

    def test_a_session_that_runs_out_before_runs_out_first(self, world: World) -> None:
        member = world.stable()
        world.when(Heartbeat).delay(11_000)
        asking = world.heartbeat(member)
        world.now += 20_000  # in one step, past both
        world.execute_effects(world.faulty.expire(world.now))
        assert asking.error == NO

    def test_a_heartbeat_that_is_due_before_the_session_comes_in_time(self, world: World) -> None:
        member = world.stable()
        world.when(Heartbeat).delay(9_000)
        asking = world.heartbeat(member)
        world.now += 20_000
        world.execute_effects(world.faulty.expire(world.now))
        assert asking.error == ErrorCode.NONE


class TestDrop:
    def test_the_request_is_lost(self, world: World) -> None:
        world.when(OffsetCommit).drop()
        asking = world.commit()
        world.advance(100_000)
        assert (asking.is_open, committed(world)) == (True, -1)

    def test_the_answer_is_lost(self, world: World) -> None:
        world.when(OffsetCommit).drop_answer()
        asking = world.commit()
        world.advance(100_000)
        assert (asking.is_open, committed(world)) == (True, 5)

    def test_a_produce_without_acks_keeps_no_connection_waiting(self, world: World) -> None:
        world.when(Produce).drop()
        asking = world.ask(Produce, produce(0))
        assert asking.ends == [NoReply(asking.call, asking.call)]


class TestDisconnect:
    def test_before_it_is_handled(self, world: World) -> None:
        world.when(OffsetCommit).disconnect()
        asking = world.commit()
        assert asking.ends == [CloseConnection(asking.call, "rule 1 says so", asking.call)]
        assert committed(world) == -1

    def test_after_it_was_handled(self, world: World) -> None:
        world.when(OffsetCommit).disconnect_answer()
        asking = world.commit()
        assert asking.ends == [CloseConnection(asking.call, "rule 1 says so", asking.call)]
        assert committed(world) == 5


class TestHold:
    def test_the_request_is_handled_when_it_is_released(self, world: World) -> None:
        hold = world.when(OffsetCommit).hold()
        asking = world.commit()
        (held,) = hold.waiting
        assert (held.call, held.request.group_id, held.at_ms) == (asking.call, "app", 1_000)
        assert repr(held).startswith("<HeldRequest OffsetCommit v9 from 'c' at 0 ms")
        world.advance(100_000)
        assert (asking.is_open, committed(world)) == (True, -1)
        hold.release()
        assert (error_of(asking), committed(world), hold.waiting) == (ErrorCode.NONE, 5, ())

    def test_the_answer_is_held(self, world: World) -> None:
        hold = world.when(OffsetCommit).hold_answer()
        asking = world.commit()
        assert (asking.is_open, committed(world)) == (True, 5)
        hold.release()
        assert error_of(asking) == ErrorCode.NONE

    def test_several_are_released_in_the_order_that_is_wanted(self, world: World) -> None:
        hold = world.when(OffsetCommit).hold().times(3)
        asked = [world.commit(offset) for offset in (1, 2, 3)]
        one, two, three = hold.waiting
        hold.release(two, one)
        assert [asking.is_open for asking in asked] == [False, False, True]
        assert committed(world) == 1
        hold.release()
        assert committed(world) == 3
        assert hold.arrivals == 3
        with pytest.raises(ValueError, match="was released before"):
            hold.release(three)


class TestFunctions:
    def test_the_answer_of_a_function(self, world: World) -> None:
        seen: list[Any] = []

        def answered(request: Any) -> m.HeartbeatResponse:
            seen.append(request)
            return m.HeartbeatResponse(error_code=LOST, throttle_time_ms=7)

        world.when(Heartbeat).answer(answered)
        assert world.heartbeat().answer == m.HeartbeatResponse(error_code=LOST, throttle_time_ms=7)
        assert seen == [heartbeat()]

    def test_the_real_answer_edited(self, world: World) -> None:
        world.when(Heartbeat).after(lambda request, answer: replace(answer, throttle_time_ms=request.generation_id))
        assert world.heartbeat(generation=9).answer == m.HeartbeatResponse(error_code=NO, throttle_time_ms=9)

    def test_the_answer_to_a_parked_join_is_edited_when_it_comes(self) -> None:
        world = World(group_initial_rebalance_delay_ms=3_000)
        world.when(JoinGroup).after(lambda request, answer: replace(answer, leader="another"))
        joined = world.join(instance="one")
        assert joined.is_open
        assert not world.told(FaultInjected)
        world.advance(5_000)
        assert (joined.answer.leader, joined.error) == ("another", ErrorCode.NONE)
        (told,) = world.told(FaultInjected)
        assert told.at_ms == 4_000

    @pytest.mark.parametrize("verb", ["answer", "after"])
    def test_one_that_fails_is_told_to_the_client_and_at_the_end(self, world: World, verb: str) -> None:
        def fail(*_: Any) -> Any:
            raise ZeroDivisionError("a bug of the test")

        getattr(world.when(Heartbeat), verb)(fail)
        assert world.heartbeat().error == ErrorCode.UNKNOWN_SERVER_ERROR
        with pytest.raises(FaultRulesFailed, match="raised ZeroDivisionError"):
            world.faults.check()

    def test_so_is_one_that_answers_something_else(self, world: World) -> None:
        world.when(Heartbeat).answer(lambda request: m.JoinGroupResponse(member_id=""))
        assert world.heartbeat().error == ErrorCode.UNKNOWN_SERVER_ERROR
        with pytest.raises(
            FaultRulesFailed, match="HeartbeatResponse is what answers Heartbeat, not JoinGroupResponse"
        ):
            world.faults.check()

    def test_where_an_error_cannot_be_said_the_connection_ends(self, world: World) -> None:
        world.when(ApiVersions).answer(lambda request: None)
        asking = world.ask(ApiVersions, None, version=4)
        assert asking.ends == [CloseConnection(asking.call, "a function of rule 1 failed", asking.call)]


class TestCorrupt:
    def test_the_bytes_are_damaged(self, world: World) -> None:
        world.when(Heartbeat).corrupt("cut")
        asking = world.heartbeat()
        (raw,) = asking.ends
        assert isinstance(raw, RawReply)
        assert (raw.call, raw.hangs_up) == (asking.call, True)

    def test_a_checksum_waits_for_records(self, world: World) -> None:
        rule = world.when(Fetch, topic="orders").corrupt("crc")
        topic_id = world.node.broker.topics.topic_id("orders")
        partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000_000)
        request = m.FetchRequest(
            max_wait_ms=0, min_bytes=0, topics=(FetchTopic(topic_id=topic_id, partitions=(partition,)),)
        )

        def records() -> bytes:
            return bytes(world.ask(Fetch, request).answer.responses[0].partitions[0].records)

        assert records() == b""
        assert (rule.uses, rule.matches) == (0, 0)
        assert str(rule.why_unused()).endswith("      its answer has no records")
        data = TopicProduceData(
            topic_id=topic_id, partition_data=(PartitionProduceData(index=0, records=batch(b"espresso", at_ms=1_000)),)
        )
        world.ask(Produce, m.ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=(data,)))
        broken, whole = records(), records()
        assert [at for at, (one, other) in enumerate(zip(broken, whole, strict=True)) if one != other] == [17]
        assert rule.uses == 1


class TestEvents:
    def test_what_a_rule_does_is_told(self, world: World) -> None:
        world.when(Heartbeat, group="app").refuse(LOST)
        asking = world.heartbeat()
        (told,) = world.told(FaultInjected)
        call = asking.call
        cause = Requested("Heartbeat", 4, "c", "/127.0.0.1", call.connection_id, call.correlation_id)
        assert told == FaultInjected(
            at_ms=1_000,
            cause=cause,
            name="rule 1",
            rule="when(Heartbeat, group='app').refuse('NOT_COORDINATOR')",
            api="Heartbeat",
            client_id="c",
            group="app",
            member="m-1",
            action="is refused with NOT_COORDINATOR",
        )
        assert told.text() == "fault by rule 1: Heartbeat of m-1 is refused with NOT_COORDINATOR"

    def test_what_goes_on_after_a_delay(self, world: World) -> None:
        world.when(OffsetCommit).delay(500)
        asking = world.commit()
        world.advance(500)
        (told,) = world.told(FaultEnded)
        subject = f"OffsetCommit {asking.call.connection_id}:{asking.call.correlation_id}"
        assert told.cause == TimerFired("fault", "rule 1", subject, 1_500)
        assert (told.held_ms, told.member, told.group) == (500, "", "app")
        assert told.text() == "fault by rule 1 is over: OffsetCommit of c goes on after 500 ms"

    def test_what_is_released(self, world: World) -> None:
        hold = world.when(ApiVersions).hold_answer()
        world.ask(ApiVersions, m.ApiVersionsRequest(), client_id=None)
        world.advance(70)
        hold.release()
        (told,) = world.told(FaultEnded)
        assert told.cause == AdminAction("rule 1 releases ApiVersions")
        assert (told.held_ms, told.group) == (70, None)
        assert told.text() == "fault by rule 1 is over: ApiVersions of a client without id goes on after 70 ms"


class TestAnswersThatAreStillToCome:
    def test_a_removed_rule_leaves_them_alone(self, world: World) -> None:
        with pytest.raises(FaultRulesFailed, match="it waits for the answer"), world.when(JoinGroup).drop_answer():
            joined = world.join(instance="one")
        world.advance(5_000)
        assert joined.error == ErrorCode.NONE

    def test_a_connection_that_is_closed_has_none(self, world: World) -> None:
        rule = world.when(JoinGroup).drop_answer()
        joined = world.join(instance="one")
        world.execute_effects(world.faulty.outgoing([CloseConnection(joined.call, "why not")], world.now))
        assert joined.ends == [CloseConnection(joined.call, "why not")]
        assert str(rule.why_unused()).endswith("what came: nothing")

    def test_of_a_member_in_this_process_several_wait_on_one_connection(self, world: World) -> None:
        world.when(JoinGroup).after(lambda request, answer: replace(answer, leader="another"))
        second = world.when(Heartbeat).after(lambda request, answer: replace(answer, throttle_time_ms=9))
        joined = world.ask(JoinGroup, join(instance="one"), connection=77)
        assert world.heartbeat(connection=77).answer.throttle_time_ms == 9
        world.advance(5_000)
        assert (joined.answer.leader, second.uses) == ("another", 1)

    def test_after_a_restart_of_the_server_its_numbers_begin_anew(self, world: World) -> None:
        rule = world.when(JoinGroup).drop_answer()
        joined = world.ask(JoinGroup, join(instance="one"), connection=77)
        call = joined.call._replace(api=Heartbeat, version=4)
        *_, reply = world.faulty.handle(call, heartbeat(), world.now)
        assert isinstance(reply, Reply)
        assert "it waits" not in str(rule.why_unused())

    def test_others_pass_by(self, world: World) -> None:
        world.when(JoinGroup).drop_answer()
        world.join(instance="one")
        assert world.heartbeat().error == NO

    def test_an_answer_to_a_former_call_of_the_connection_passes_by(self, world: World) -> None:
        world.when(JoinGroup).drop_answer()
        joined = world.ask(JoinGroup, join(instance="one"), connection=77)
        former = joined.call._replace(correlation_id=-5)
        effects: list[Effect] = [Reply(former, m.HeartbeatResponse())]
        assert world.faulty.outgoing(effects, world.now) == effects


def test_several_brokers_in_one_node_are_told_apart(world: World) -> None:
    """Their connections may have the same numbers."""
    world.when(Heartbeat, broker=2).refuse(LOST)
    late = world.when(JoinGroup, broker=1).drop_answer()
    joined = world.ask(JoinGroup, join(instance="one"), connection=77)
    call = Call(77, joined.call.correlation_id, Heartbeat, 4, "c", "/127.0.0.1", broker=1)
    (_, reply) = world.faulty.handle(call, heartbeat(), world.now)
    assert isinstance(reply, Reply)
    assert reply.response.error_code == LOST
    assert "it waits for the answer" in str(late.why_unused())


def test_a_rule_that_does_not_match_changes_nothing(world: World) -> None:
    world.when(JoinGroup).drop()
    assert world.heartbeat().error == NO


def test_it_stands_for_its_node() -> None:
    node = FakeCluster(node_id=5)
    faulty = FaultLayer(node, Rulebook())
    faulty.listening_at("h", 1)
    assert (faulty.config, node.listening) == (node.config, ("h", 1))
    assert (faulty.next_deadline(), faulty.deadline_lower_bound()) == (None, None)
    node.deadline_ms = 7
    assert (faulty.next_deadline(), faulty.deadline_lower_bound()) == (7, 7)


def test_without_timers_of_the_node_the_delays_are_all_there_is() -> None:
    node, book = FakeCluster(), Rulebook()
    faulty = FaultLayer(node, book)
    book.add(when(Heartbeat).delay(5))
    call = Call(1, 2, Heartbeat, 4, "c", "/127.0.0.1")
    faulty.handle(call, heartbeat(), 100)
    assert faulty.next_deadline() == faulty.deadline_lower_bound() == 105
    assert [type(effect) for effect in faulty.expire(105)][-1] is Reply
    assert node.times == [105]


def test_a_hold_of_a_node_without_a_way_out_is_a_mistake_of_the_harness(world: World) -> None:
    world.faulty.execute_effects = None
    hold = world.when(Heartbeat).hold()
    world.heartbeat()
    assert isinstance(hold, HoldRule)
    assert isinstance(hold.waiting[0], HeldRequest)
    with pytest.raises(RuntimeError, match="has no execute_effects"):
        hold.release()
