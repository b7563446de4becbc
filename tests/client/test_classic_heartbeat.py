"""Heartbeats, the session and the poll interval."""

import pytest

from groupcoord.client.client_errors import BrokerError
from groupcoord.client.member import actions as a
from groupcoord.client.member import member_events as e
from groupcoord.client.member.context import MemberState
from groupcoord.protocol.apis.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from groupcoord.protocol.apis.heartbeat import HeartbeatRequest, HeartbeatResponse
from groupcoord.protocol.apis.join_group import JoinGroupRequest
from groupcoord.protocol.apis.sync_group import SyncGroupRequest
from groupcoord.protocol.errors import ErrorCode as E
from tests.client.talk import BROKER, COOPERATIVE, EAGER, ME, OTHER, Talk, partitions, settled

P = partitions


def test_a_member_beats_at_its_interval() -> None:
    talk = settled(EAGER, *P(0), instance_id="i")
    talk.waits(2_999)
    assert talk.is_quiet()
    talk.waits(1)
    request = talk.beat()
    assert (request.generation_id, request.member_id, request.group_instance_id) == (1, ME, "i")
    talk.waits(2_999)
    assert talk.is_quiet()
    talk.waits(1)
    talk.beat()


def test_a_member_that_waits_for_the_others_does_not_beat() -> None:
    talk = Talk()
    talk.find()
    talk.sends(JoinGroupRequest)
    talk.waits(1_000_000)
    assert talk.is_quiet()


def test_a_member_that_waits_for_the_leader_beats() -> None:
    talk = Talk()
    talk.find()
    talk.join()
    talk.sends(SyncGroupRequest)
    talk.waits(3_000)
    talk.beat()


def test_beats_go_on_while_the_user_is_busy_but_not_for_ever() -> None:
    talk = settled(COOPERATIVE, *P(0), max_poll_interval_ms=10_000)
    talk.goes_away()
    for _ in range(3):
        talk.waits(3_000)
        talk.beat()
    talk.waits(1_000)
    request = talk.leave()
    assert (request.members[0].member_id, request.members[0].reason) == (ME, "consumer poll timeout has expired.")
    assert talk.membership.state is MemberState.UNJOINED
    assert [event.max_poll_interval_ms for event in talk.said(e.PolledTooLate)] == [10_000]
    talk.waits(1_000_000)
    assert talk.is_quiet(), "it joins again only when the user is back"
    talk.polls()
    talk.told("lost", *P(0))
    talk.owns()
    assert talk.join().member_id == ""


def test_a_static_member_whose_user_is_gone_only_stops_to_beat() -> None:
    talk = settled(COOPERATIVE, *P(0), max_poll_interval_ms=2_000, instance_id="i")
    talk.goes_away()
    talk.waits(1_000_000)
    assert talk.is_quiet()
    talk.polls()
    talk.told("lost", *P(0))


def test_a_user_that_waits_is_never_too_late() -> None:
    talk = settled(EAGER, max_poll_interval_ms=4_000)
    for _ in range(5):
        talk.waits(3_000)
        talk.beat()


def test_a_rebalance_that_tries_again_waits_for_the_user_who_is_gone() -> None:
    talk = Talk(max_poll_interval_ms=50, retry_backoff_ms=100)
    talk.find()
    talk.join()
    talk.goes_away()
    talk.sync(code=E.COORDINATOR_LOAD_IN_PROGRESS)
    talk.waits(50)
    talk.leave()
    assert talk.membership.next_deadline() is None
    talk.waits(1_000)
    talk.polls()
    assert talk.is_quiet()
    talk.waits(0)
    talk.sends(JoinGroupRequest)


def test_one_beat_at_a_time() -> None:
    talk = settled(EAGER)
    talk.waits(3_000)
    send, _ = talk.sends(HeartbeatRequest)
    talk.waits(6_000)
    assert talk.is_quiet()
    talk.completes(send, HeartbeatResponse())
    talk.waits(0)
    talk.beat()


def test_a_session_without_an_answer_ends() -> None:
    talk = settled(EAGER, session_timeout_ms=10_000)
    talk.waits(3_000)
    send, _ = talk.sends(HeartbeatRequest)
    talk.waits(6_999)
    assert talk.is_quiet()
    talk.waits(1)
    talk.wish(a.Disconnect)
    (lost,) = talk.said(e.CoordinatorLost)
    assert lost.reason == "the session timed out without an answer to a heartbeat"
    talk.fails(send)
    talk.find(at=OTHER)
    talk.waits(100)
    again, _ = talk.sends(HeartbeatRequest)
    assert again.to == OTHER


def test_a_new_coordinator_has_a_session_to_answer() -> None:
    talk = settled(EAGER, session_timeout_ms=10_000)
    talk.waits(3_000)
    send, _ = talk.sends(HeartbeatRequest)
    talk.waits(7_000)
    talk.wish(a.Disconnect)
    talk.fails(send)
    talk.waits(50_000)
    talk.find(at=OTHER)
    talk.waits(0)
    talk.sends(HeartbeatRequest)
    talk.waits(9_999)
    assert talk.is_quiet()


@pytest.mark.parametrize("code", [E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE])
def test_a_coordinator_that_is_none_is_looked_for_while_the_member_stays(code: E) -> None:
    talk = settled(COOPERATIVE, *P(0))
    talk.waits(3_000)
    talk.beat(code)
    talk.wish(a.Disconnect)
    talk.find(at=OTHER)
    talk.waits(99)
    assert talk.is_quiet()
    talk.waits(1)
    talk.beat()
    assert talk.is_quiet()
    assert talk.membership.owned == frozenset(P(0))


@pytest.mark.parametrize("code", [E.COORDINATOR_LOAD_IN_PROGRESS, E.GROUP_AUTHORIZATION_FAILED, E(999)])
def test_what_else_a_beat_is_answered_counts_as_missed(code: E) -> None:
    talk = settled(EAGER, *P(0))
    talk.waits(3_000)
    talk.beat(code)
    talk.waits(100)
    talk.beat(code)
    talk.waits(199)
    assert talk.is_quiet()
    talk.waits(1)
    talk.beat()
    talk.waits(2_999)
    assert talk.is_quiet()
    assert [event.error for event in talk.said(e.RequestFailed)] == [code.name] * 2


def test_a_member_that_was_fenced_ends() -> None:
    talk = settled(EAGER, *P(0), instance_id="i")
    talk.waits(3_000)
    talk.beat(E.FENCED_INSTANCE_ID)
    assert talk.wish(a.StopDelivery).partitions == frozenset(P(0))
    talk.told("lost", *P(0))
    talk.owns()
    raised = talk.wish(a.RaiseError)
    assert (raised.final, "FENCED_INSTANCE_ID" in str(raised.error)) == (True, True)


@pytest.mark.parametrize("code", [E.UNKNOWN_MEMBER_ID, E.ILLEGAL_GENERATION, E.FENCED_INSTANCE_ID])
def test_an_answer_for_an_earlier_generation_is_no_news(code: E) -> None:
    talk = settled(COOPERATIVE, *P(0))
    talk.waits(3_000)
    send, _ = talk.sends(HeartbeatRequest)
    talk.hears(talk.membership.rejoin("why not", talk.now_ms))
    talk.settles_again()
    talk.completes(send, HeartbeatResponse(error_code=code))
    assert talk.is_quiet()
    assert talk.membership.owned == frozenset(P(0))


def test_a_rebalance_is_no_news_to_a_member_that_is_in_it() -> None:
    talk = Talk()
    talk.find()
    talk.join()
    talk.sends(SyncGroupRequest)
    talk.waits(3_000)
    talk.beat(E.REBALANCE_IN_PROGRESS)
    assert talk.is_quiet()


def test_a_connection_that_breaks() -> None:
    talk = settled(EAGER)
    talk.waits(3_000)
    send, _ = talk.sends(HeartbeatRequest)
    talk.fails(send)
    talk.wish(a.Disconnect)
    talk.find()
    talk.waits(100)
    talk.beat()


def test_what_is_not_a_broken_connection_ends_the_member() -> None:
    talk = settled(EAGER)
    talk.waits(3_000)
    send, _ = talk.sends(HeartbeatRequest)
    talk.fails(send, ValueError("the client is wrong"))
    talk.leave()
    assert isinstance(talk.wish(a.RaiseError).error, ValueError)


def test_any_broker_is_asked_and_the_one_it_names_is_the_coordinator() -> None:
    talk = Talk()
    send, request = talk.sends(FindCoordinatorRequest)
    assert (send.to, request.coordinator_keys, request.key_type) == (None, ("g",), 0)
    found = Coordinator(key="g", node_id=1, host="broker", port=9092)
    talk.completes(send, FindCoordinatorResponse(coordinators=(found,)))
    join, _ = talk.sends(JoinGroupRequest)
    assert join.to == talk.membership.coordinator == BROKER
    assert [event.coordinator for event in talk.said(e.CoordinatorFound)] == ["broker 1 at broker:9092"]


def test_nobody_is_asked_before_the_member_wants_anything() -> None:
    talk = Talk(topics=())
    talk.waits(1_000)
    assert talk.is_quiet()


def test_one_broker_is_asked_at_a_time() -> None:
    talk = Talk()
    talk.sends(FindCoordinatorRequest)
    talk.polls()
    talk.goes_away()
    assert talk.is_quiet()


@pytest.mark.parametrize("code", [E.COORDINATOR_NOT_AVAILABLE, E.COORDINATOR_LOAD_IN_PROGRESS])
def test_what_may_pass_is_waited_for_longer_and_longer(code: E) -> None:
    talk = Talk()
    talk.find(code)
    for wait_ms in (100, 200, 400, 800, 1_000, 1_000):
        talk.waits(wait_ms - 1)
        assert talk.is_quiet()
        talk.waits(1)
        talk.find(code)
    talk.waits(1_000)
    talk.find()
    talk.sends(JoinGroupRequest)


def test_a_success_makes_the_next_wait_short_again() -> None:
    talk = Talk()
    for _ in range(3):
        talk.find(E.COORDINATOR_NOT_AVAILABLE)
        talk.waits(1_000)
    talk.find()
    talk.join(E.NOT_COORDINATOR)
    talk.wish(a.Disconnect)
    talk.find(E.COORDINATOR_NOT_AVAILABLE)
    talk.waits(100)
    talk.find()


def test_the_back_off_is_spread() -> None:
    for chance, wait_ms in ((0.0, 80), (0.5, 100), (1.0, 120)):
        talk = Talk(chance=chance)
        talk.find(E.COORDINATOR_NOT_AVAILABLE)
        assert talk.membership.next_deadline() == wait_ms


def test_a_time_that_is_not_yet_up_is_waited_for() -> None:
    talk = Talk()
    talk.find(E.COORDINATOR_NOT_AVAILABLE)
    talk.hears(talk.membership.expire(99))
    assert talk.is_quiet()


@pytest.mark.parametrize("code", [E.GROUP_AUTHORIZATION_FAILED, E.INVALID_GROUP_ID, E(999)])
def test_what_does_not_pass_ends_the_member(code: E) -> None:
    talk = Talk()
    talk.find(code)
    raised = talk.wish(a.RaiseError)
    assert isinstance(raised.error, BrokerError)
    assert (raised.final, raised.error.code) == (True, code)


def test_an_answer_for_another_group_ends_the_member() -> None:
    talk = Talk()
    send, _ = talk.sends(FindCoordinatorRequest)
    talk.completes(send, FindCoordinatorResponse())
    assert "another group" in str(talk.wish(a.RaiseError).error)


def test_no_broker_that_answers_is_waited_for_too() -> None:
    talk = Talk()
    send, _ = talk.sends(FindCoordinatorRequest)
    talk.fails(send)
    talk.waits(100)
    talk.find()


def test_what_is_not_a_broken_connection_while_looking_for_the_coordinator_ends_the_member() -> None:
    talk = Talk()
    send, _ = talk.sends(FindCoordinatorRequest)
    talk.fails(send, ValueError("the client is wrong"))
    assert isinstance(talk.wish(a.RaiseError).error, ValueError)
