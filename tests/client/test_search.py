"""Looking for the coordinator."""

import pytest

from groupcoord.client import actions as a
from groupcoord.client import events as e
from groupcoord.client.errors import BrokerError
from groupcoord.protocol.errors import ErrorCode as E
from groupcoord.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from groupcoord.protocol.messages.join_group import JoinGroupRequest
from tests.client.talk import BROKER, Talk


def test_any_broker_is_asked_and_the_one_it_names_is_the_coordinator() -> None:
    talk = Talk()
    send, request = talk.sends(FindCoordinatorRequest)
    assert (send.to, request.key, request.key_type) == (None, "g", 0)
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
    raised = talk.wish(a.Raise)
    assert isinstance(raised.error, BrokerError)
    assert (raised.final, raised.error.code) == (True, code)


def test_an_answer_for_another_group_ends_the_member() -> None:
    talk = Talk()
    send, _ = talk.sends(FindCoordinatorRequest)
    talk.completes(send, FindCoordinatorResponse())
    assert "another group" in str(talk.wish(a.Raise).error)


def test_no_broker_that_answers_is_waited_for_too() -> None:
    talk = Talk()
    send, _ = talk.sends(FindCoordinatorRequest)
    talk.fails(send)
    talk.waits(100)
    talk.find()


def test_what_is_not_a_broken_connection_ends_the_member() -> None:
    talk = Talk()
    send, _ = talk.sends(FindCoordinatorRequest)
    talk.fails(send, ValueError("the client is wrong"))
    assert isinstance(talk.wish(a.Raise).error, ValueError)
