"""Steps of a rebalance that fail: the right answer to every error code of JoinGroup and SyncGroup."""

from typing import Any

import pytest

from groupcoord.client.client_errors import BrokerError
from groupcoord.client.member import actions as a
from groupcoord.protocol.apis.find_coordinator import FindCoordinatorRequest
from groupcoord.protocol.apis.join_group import JoinGroupRequest, JoinGroupResponse
from groupcoord.protocol.apis.sync_group import SyncGroupRequest, SyncGroupResponse
from groupcoord.protocol.errors import ErrorCode as E
from tests.client.talk import BROKER, COOPERATIVE, EAGER, LEADER, ME, OTHER, Talk, beat_brings, partitions, settled

BOTH = [EAGER, COOPERATIVE]
P = partitions


# Errors of JoinGroup.
@pytest.mark.parametrize("assignors", BOTH)
def test_a_coordinator_that_is_loading_is_asked_again(assignors: tuple[str]) -> None:
    talk = Talk(assignors)
    talk.find()
    talk.join(E.COORDINATOR_LOAD_IN_PROGRESS)
    assert talk.is_quiet()
    assert talk.membership.next_deadline() == 100
    talk.waits(100)
    talk.join(E.COORDINATOR_LOAD_IN_PROGRESS)
    talk.waits(199)
    assert talk.is_quiet()
    talk.waits(1)
    assert talk.join().reason == "rebalance failed due to COORDINATOR_LOAD_IN_PROGRESS"


@pytest.mark.parametrize("code", [E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE])
def test_a_coordinator_that_is_none_is_looked_for_again(code: E) -> None:
    talk = Talk()
    talk.find()
    talk.join(code)
    assert talk.wish(a.Disconnect).coordinator == BROKER
    talk.find(at=OTHER)
    assert talk.is_quiet()
    talk.waits(100)
    send, _ = talk.sends(JoinGroupRequest)
    assert send.to == OTHER


def test_a_member_nobody_knows_joins_as_a_newcomer_at_once() -> None:
    talk = Talk()
    talk.find()
    talk.join(E.MEMBER_ID_REQUIRED, member_id="given")
    talk.join(E.UNKNOWN_MEMBER_ID, member_id="given")
    assert talk.join().member_id == ""


def test_a_join_that_is_answered_with_a_rebalance_is_sent_again_at_once() -> None:
    talk = Talk()
    talk.find()
    talk.join(E.REBALANCE_IN_PROGRESS)
    talk.join()


FATAL_FOR_JOIN = [
    E.FENCED_INSTANCE_ID,
    E.INCONSISTENT_GROUP_PROTOCOL,
    E.INVALID_SESSION_TIMEOUT,
    E.INVALID_GROUP_ID,
    E.GROUP_AUTHORIZATION_FAILED,
    E.GROUP_MAX_SIZE_REACHED,
    E.UNSUPPORTED_VERSION,
    E.UNKNOWN_SERVER_ERROR,
    E(999),
]


@pytest.mark.parametrize("code", FATAL_FOR_JOIN)
def test_errors_of_a_join_that_end_the_member(code: E) -> None:
    talk = Talk()
    talk.find()
    talk.join(code)
    raised = talk.wish(a.RaiseError)
    assert raised.final
    assert isinstance(raised.error, BrokerError)
    assert (raised.error.code, code.name in str(raised.error)) == (code, True)
    assert talk.is_quiet()
    talk.waits(1_000_000)
    assert talk.is_quiet()


def test_a_group_of_another_kind_is_none_for_consumers() -> None:
    talk = Talk()
    talk.find()
    talk.join(protocol_type="connect")
    assert E.INCONSISTENT_GROUP_PROTOCOL.name in str(talk.wish(a.RaiseError).error)


def test_old_coordinators_do_not_say_what_kind_a_group_is() -> None:
    talk = Talk()
    talk.find()
    talk.join(protocol_type=None)
    talk.sends(SyncGroupRequest)


def test_an_assignor_that_the_member_does_not_have_ends_it() -> None:
    talk = Talk()
    talk.find()
    talk.join(protocol="roundrobin")
    talk.leave()
    assert "assignor roundrobin: the coordinator chose it" in str(talk.wish(a.RaiseError).error)


def test_a_connection_that_breaks_while_it_joins() -> None:
    talk = settled(COOPERATIVE, *P(0))
    beat_brings(talk, E.REBALANCE_IN_PROGRESS)
    send, _ = talk.sends(JoinGroupRequest)
    talk.fails(send)
    talk.wish(a.Disconnect)
    talk.find()
    talk.waits(100)
    request = talk.join(generation=2)
    assert (request.member_id, request.reason) == (ME, "rebalance failed due to DisconnectedError")
    assert talk.membership.owned == frozenset(P(0))


def test_a_broken_connection_to_a_coordinator_that_is_none_any_more_changes_nothing() -> None:
    talk = Talk()
    talk.find()
    send, _ = talk.sends(JoinGroupRequest)
    talk.hears(talk.membership.coordinator_unreachable(BROKER, "an offset request failed", 0))
    talk.wish(a.Disconnect)
    talk.find(at=OTHER)
    talk.fails(send)
    talk.waits(100)
    again, _ = talk.sends(JoinGroupRequest)
    assert again.to == OTHER


def test_a_coordinator_that_is_known_to_be_none_may_say_so_again() -> None:
    talk = Talk()
    talk.find()
    send, _ = talk.sends(JoinGroupRequest)
    talk.hears(talk.membership.coordinator_unreachable(BROKER, "an offset request failed", 0))
    talk.wish(a.Disconnect)
    talk.sends(FindCoordinatorRequest)
    talk.completes(send, JoinGroupResponse(error_code=E.NOT_COORDINATOR, member_id=""))
    assert talk.is_quiet()


def test_what_is_not_a_broken_connection_ends_the_member() -> None:
    talk = Talk()
    talk.find()
    send, _ = talk.sends(JoinGroupRequest)
    talk.fails(send, ValueError("the client is wrong"))
    assert isinstance(talk.wish(a.RaiseError).error, ValueError)


def test_a_join_that_comes_too_late_is_not_believed() -> None:
    """A commit has brought the news, while the join was under way, that nobody knows the member."""
    talk = settled(COOPERATIVE, *P(0))
    sent = talk.membership.generation
    beat_brings(talk, E.REBALANCE_IN_PROGRESS)
    send, _ = talk.sends(JoinGroupRequest)
    talk.hears(talk.membership.commit_answered(E.UNKNOWN_MEMBER_ID, sent, talk.now_ms))
    assert talk.is_quiet()
    talk.completes(
        send, JoinGroupResponse(generation_id=2, member_id=ME, leader=LEADER, protocol_name="cooperative-sticky")
    )
    talk.waits(100)
    talk.told("lost", *P(0))
    talk.owns()
    assert talk.join().member_id == ""


# Errors of SyncGroup.
def test_a_sync_that_is_answered_with_a_rebalance_joins_again_at_once() -> None:
    talk = Talk()
    talk.find()
    talk.join()
    talk.sync(code=E.REBALANCE_IN_PROGRESS)
    assert talk.join(generation=2).member_id == ME


@pytest.mark.parametrize(("code", "comes_back_as"), [(E.ILLEGAL_GENERATION, ME), (E.UNKNOWN_MEMBER_ID, "")])
def test_a_sync_for_a_generation_that_is_over(code: E, comes_back_as: str) -> None:
    talk = settled(COOPERATIVE, *P(0))
    beat_brings(talk, E.REBALANCE_IN_PROGRESS)
    talk.join(generation=2)
    talk.sync(code=code)
    talk.told("lost", *P(0))
    talk.owns()
    assert talk.join(generation=3).member_id == comes_back_as


@pytest.mark.parametrize("code", [E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE])
def test_a_sync_with_a_coordinator_that_is_none(code: E) -> None:
    talk = Talk()
    talk.find()
    talk.join()
    talk.sync(code=code)
    talk.wish(a.Disconnect)
    talk.find()
    talk.waits(100)
    assert talk.join().member_id == ME


def test_a_sync_with_a_coordinator_that_is_loading() -> None:
    talk = Talk()
    talk.find()
    talk.join()
    talk.sync(code=E.COORDINATOR_LOAD_IN_PROGRESS)
    assert talk.is_quiet()
    talk.waits(100)
    talk.join()


@pytest.mark.parametrize(
    "code", [E.FENCED_INSTANCE_ID, E.GROUP_AUTHORIZATION_FAILED, E.INCONSISTENT_GROUP_PROTOCOL, E(999)]
)
def test_errors_of_a_sync_that_end_the_member(code: E) -> None:
    talk = Talk()
    talk.find()
    talk.join()
    talk.sync(code=code)
    talk.leave()
    raised = talk.wish(a.RaiseError)
    assert (raised.final, code.name in str(raised.error)) == (True, True)


@pytest.mark.parametrize("fields", [{"protocol_type": "connect"}, {"protocol_name": "roundrobin"}])
def test_a_sync_that_is_answered_for_another_protocol(fields: dict[str, Any]) -> None:
    talk = Talk()
    talk.find()
    talk.join()
    talk.sync(**fields)
    talk.leave()
    assert "INCONSISTENT_GROUP_PROTOCOL" in str(talk.wish(a.RaiseError).error)


def test_a_heartbeat_that_ends_the_generation_ends_the_sync_too() -> None:
    """A parked sync of a member that is out is never answered, so that nobody must wait for it."""
    talk = Talk()
    talk.find()
    talk.join()
    sync, _ = talk.sends(SyncGroupRequest)
    talk.waits(3_000)
    talk.beat(E.UNKNOWN_MEMBER_ID)
    assert talk.wish(a.CancelAction).ticket == sync.ticket
    assert talk.join(generation=2).member_id == ""
    talk.completes(sync, SyncGroupResponse(assignment=b""))
    talk.sends(SyncGroupRequest)
    assert talk.is_quiet()
