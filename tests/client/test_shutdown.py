"""How a member leaves, and how one ends that failed."""

import pytest

from groupcoord.client.member import actions as a
from groupcoord.client.member import member_events as e
from groupcoord.protocol.apis.heartbeat import HeartbeatResponse
from groupcoord.protocol.apis.join_group import JoinGroupRequest
from groupcoord.protocol.apis.leave_group import LeaveGroupRequest
from groupcoord.protocol.apis.sync_group import SyncGroupRequest
from groupcoord.protocol.errors import ErrorCode as E
from tests.client.talk import BROKER, COOPERATIVE, EAGER, ME, Talk, partitions, settled

P = partitions
BOTH = [EAGER, COOPERATIVE]


@pytest.mark.parametrize("assignors", BOTH)
def test_a_member_tells_its_user_then_its_group(assignors: tuple[str]) -> None:
    talk = settled(assignors, *P(0, 1))
    talk.goes_away()
    talk.closes("enough")
    talk.told("revoked", *P(0, 1))
    talk.owns()
    request = talk.leave()
    assert (request.group_id, request.members[0].member_id) == ("g", ME)
    assert [(each.member_id, each.reason) for each in request.members] == [(ME, "enough")]
    talk.wish(a.MembershipEnded)
    assert talk.is_quiet()
    talk.waits(1_000_000)
    assert talk.is_quiet()
    assert [event.reason for event in talk.said(e.LeaveSent)] == ["enough"]


def test_a_member_without_partitions_just_leaves() -> None:
    talk = settled(EAGER)
    talk.closes()
    talk.leave()
    talk.wish(a.MembershipEnded)


@pytest.mark.parametrize("assignors", BOTH)
def test_a_static_member_stays_in_its_group(assignors: tuple[str]) -> None:
    """KIP-345: whoever comes back in time finds its partitions."""
    talk = settled(assignors, *P(0), instance_id="i")
    talk.closes()
    talk.told("revoked", *P(0))
    talk.owns()
    talk.wish(a.MembershipEnded)
    assert talk.is_quiet()


def test_a_member_leaves_even_if_nobody_answers() -> None:
    talk = settled(EAGER)
    talk.closes()
    send, _ = talk.sends(LeaveGroupRequest)
    talk.closes("impatient")
    assert talk.is_quiet()
    talk.fails(send)
    talk.wish(a.MembershipEnded)


def test_who_has_not_joined_yet_has_nobody_to_say_goodbye_to() -> None:
    talk = Talk()
    talk.find()
    join, _ = talk.sends(JoinGroupRequest)
    talk.closes()
    assert talk.wish(a.CancelAction).ticket == join.ticket
    talk.wish(a.MembershipEnded)


def test_who_knows_no_coordinator_has_nobody_to_say_goodbye_to() -> None:
    talk = settled(EAGER)
    talk.waits(3_000)
    talk.beat(E.NOT_COORDINATOR)
    talk.wish(a.Disconnect)
    talk.wish(a.SendRequest)
    talk.closes()
    talk.wish(a.MembershipEnded)


def test_who_leaves_in_a_rebalance_has_lost_its_partitions() -> None:
    talk = settled(COOPERATIVE, *P(0))
    talk.waits(3_000)
    talk.beat(E.REBALANCE_IN_PROGRESS)
    join, _ = talk.sends(JoinGroupRequest)
    talk.closes()
    assert talk.wish(a.CancelAction).ticket == join.ticket
    talk.told("lost", *P(0))
    talk.owns()
    talk.leave()
    talk.wish(a.MembershipEnded)


def test_who_leaves_while_it_backs_off() -> None:
    talk = Talk()
    talk.find()
    talk.join(E.COORDINATOR_LOAD_IN_PROGRESS)
    talk.closes()
    talk.wish(a.MembershipEnded)
    assert talk.membership.next_deadline() is None


def test_a_callback_that_raises_at_the_end_is_told() -> None:
    talk = settled(EAGER, *P(0))
    talk.closes()
    talk.told("revoked", *P(0), error=ValueError("no"))
    talk.owns()
    raised = talk.wish(a.RaiseError)
    assert (raised.final, "ValueError: no" in str(raised.error)) == (False, True)
    talk.leave()


def test_a_callback_that_runs_is_waited_for() -> None:
    talk = Talk(COOPERATIVE)
    talk.find()
    talk.join()
    talk.sync(*P(0))
    talk.owns(*P(0))
    tell = talk.wish(a.InvokeCallback)
    talk.closes()
    assert talk.is_quiet()
    talk.completes(tell)
    talk.told("revoked", *P(0))
    talk.owns()
    talk.leave()


def test_what_is_being_revoked_is_not_revoked_twice() -> None:
    talk = settled(COOPERATIVE, *P(0, 1))
    talk.hears(talk.membership.rejoin("why not", 0))
    talk.join(generation=2)
    talk.sync(*P(0, 2))
    tell = talk.wish(a.InvokeCallback)
    assert tell.partitions == P(1)
    talk.closes()
    talk.completes(tell)
    talk.owns(*P(0))
    talk.told("revoked", *P(0))
    talk.owns()
    talk.leave()
    talk.wish(a.MembershipEnded)


def test_a_user_who_wants_to_commit_at_the_end_needs_a_coordinator() -> None:
    talk = settled(EAGER, *P(0))
    talk.hears(talk.membership.coordinator_unreachable(BROKER, "the connection was closed", 0))
    talk.wish(a.Disconnect)
    talk.find(E.COORDINATOR_NOT_AVAILABLE)
    talk.closes()
    tell = talk.wish(a.InvokeCallback)
    talk.waits(100)
    talk.find()
    talk.completes(tell)
    talk.owns()
    talk.leave()
    talk.wish(a.MembershipEnded)


def test_a_goodbye_to_the_user_is_said_once() -> None:
    talk = settled(EAGER, *P(0))
    talk.closes()
    tell = talk.wish(a.InvokeCallback)
    talk.closes()
    talk.polls()
    assert talk.is_quiet()
    talk.completes(tell)
    talk.owns()
    talk.leave()
    talk.wish(a.MembershipEnded)


# Failures.


def test_a_member_that_fails_leaves_at_once_and_tells_its_user_when_it_is_there() -> None:
    talk = settled(COOPERATIVE, *P(0))
    talk.hears(talk.membership.rejoin("why not", 0))
    talk.join(generation=2)
    talk.goes_away()
    talk.sync(code=E.GROUP_AUTHORIZATION_FAILED)
    assert talk.wish(a.StopDelivery).partitions == frozenset(P(0))
    request = talk.leave()
    assert request.members[0].reason == "it failed: BrokerError"
    assert talk.is_quiet()
    failure = talk.membership.failure
    talk.polls()
    talk.told("lost", *P(0))
    talk.owns()
    assert talk.wish(a.RaiseError) == a.RaiseError(failure, final=True)  # type: ignore[arg-type]
    assert talk.is_quiet()
    talk.closes()
    talk.wish(a.MembershipEnded)
    assert [event.error for event in talk.said(e.MemberFailed)] == [
        "SyncGroup: GROUP_AUTHORIZATION_FAILED: Group authorization failed."
    ]


def test_a_member_fails_once() -> None:
    talk = settled(EAGER)
    talk.waits(3_000)
    beat = talk.wish(a.SendRequest)
    talk.hears(talk.membership.rejoin("why not", talk.now_ms))
    talk.told("revoked")
    talk.owns()
    talk.join(E.INVALID_GROUP_ID)
    talk.leave()
    assert "INVALID_GROUP_ID" in str(talk.wish(a.RaiseError).error)
    talk.fails(beat, ValueError("too late"))
    assert talk.is_quiet()


def test_a_member_that_fails_during_a_callback() -> None:
    talk = settled(COOPERATIVE, *P(0, 1))
    talk.hears(talk.membership.rejoin("why not", 0))
    talk.join(generation=2)
    talk.sync(*P(0))
    tell = talk.wish(a.InvokeCallback)
    talk.waits(3_000)
    beat = talk.wish(a.SendRequest)
    talk.completes(beat, HeartbeatResponse(error_code=E.FENCED_INSTANCE_ID))
    talk.wish(a.StopDelivery)
    talk.leave()
    talk.completes(tell)
    talk.owns(*P(0))
    talk.told("lost", *P(0))
    talk.owns()
    talk.wish(a.RaiseError)
    assert talk.is_quiet()


def test_a_member_that_fails_and_is_closed_before_its_goodbye_is_answered() -> None:
    talk = Talk()
    talk.find()
    talk.join()
    talk.sync(code=E.FENCED_INSTANCE_ID)
    goodbye, _ = talk.sends(LeaveGroupRequest)
    talk.wish(a.RaiseError)
    talk.closes()
    assert talk.is_quiet()
    talk.completes(goodbye)
    talk.wish(a.MembershipEnded)


def test_who_waits_for_the_leader_leaves_without_waiting() -> None:
    talk = Talk()
    talk.find()
    talk.join()
    sync, _ = talk.sends(SyncGroupRequest)
    talk.closes()
    assert talk.wish(a.CancelAction).ticket == sync.ticket
    talk.leave()
    talk.wish(a.MembershipEnded)
