"""The face of a member of the consumer protocol: what it takes and shows, how it ends, and what a commit means to it."""

import pytest

from groupcoord.client.client_errors import BrokerError, CallbackFailedError, CommitFailedError
from groupcoord.client.member import actions as a
from groupcoord.client.member import member_events as e
from groupcoord.client.member.consumer_heartbeat import ConsumerMemberState as State
from groupcoord.client.member.context import Generation
from groupcoord.protocol.apis.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from groupcoord.protocol.errors import ErrorCode as E
from tests.client.consumer_talk import INTERVAL_MS, ME, ConsumerTalk, listed, settled
from tests.client.talk import BROKER, partitions

P = partitions


def leaves(talk: ConsumerTalk) -> ConsumerGroupHeartbeatRequest:
    """It says goodbye, and is answered."""
    send, request = talk.sends(ConsumerGroupHeartbeatRequest)
    talk.completes(send, ConsumerGroupHeartbeatResponse(member_id=ME, member_epoch=request.member_epoch))
    return request


def test_what_it_shows() -> None:
    talk = settled(0)
    membership = talk.membership
    assert (membership.state, membership.generation, membership.coordinator) == (
        State.STABLE,
        Generation(1, ME),
        BROKER,
    )
    assert (membership.owned, membership.watched_topics) == (frozenset(P(0)), frozenset({"t"}))
    assert (membership.is_stable, membership.in_callback, membership.failure) == (True, False, None)
    assert membership.settings.group_id == "g"
    assert repr(membership) == "<ConsumerMembership g Stable me epoch=1 owns 1>"
    assert ConsumerTalk(topics=()).membership.generation == Generation(-1, ME)


def test_a_group_without_topics_is_none() -> None:
    with pytest.raises(ValueError, match="one topic at least"):
        ConsumerTalk(topics=()).subscribes()


def test_without_a_subscription_it_does_nothing() -> None:
    talk = ConsumerTalk(topics=())
    assert talk.membership.state is State.UNSUBSCRIBED
    assert talk.is_quiet()
    talk.closes()
    talk.wish(a.MembershipEnded)


def test_the_user_cannot_make_the_group_rebalance() -> None:
    talk = settled(0)
    talk.hears(talk.membership.rejoin("for fun", talk.now_ms))
    assert talk.is_quiet()
    assert talk.quiet_beat().member_epoch == 1


# Leaving.


@pytest.mark.parametrize(("instance_id", "epoch"), [(None, -1), ("i", -2)])
def test_a_member_that_closes_gives_up_what_it_owns_then_leaves(instance_id: str | None, epoch: int) -> None:
    talk = settled(0, instance_id=instance_id)
    talk.goes_away()
    talk.closes("done")
    assert "PrepareLeaving" in repr(talk.membership)
    talk.told("revoked", *P(0))
    talk.owns()
    request = leaves(talk)
    assert (request.member_id, request.member_epoch, request.instance_id) == (ME, epoch, instance_id)
    talk.wish(a.MembershipEnded)
    assert [event.reason for event in talk.said(e.LeaveSent)] == ["done"]
    talk.closes("again")
    talk.subscribes("t")
    talk.waits(10 * INTERVAL_MS)
    assert talk.is_quiet()
    assert talk.membership.state is State.UNSUBSCRIBED


def test_heartbeats_go_on_during_the_last_callback() -> None:
    talk = settled(0)
    talk.closes()
    callback = talk.wish(a.InvokeCallback)
    assert talk.membership.in_callback
    assert talk.membership.commits_as() == Generation(1, ME)
    talk.quiet_beat()
    talk.completes(callback)
    talk.owns()
    send, _ = talk.sends(ConsumerGroupHeartbeatRequest)
    talk.closes()
    assert talk.is_quiet()
    talk.fails(send)
    talk.wish(a.MembershipEnded)


def test_a_last_callback_that_raises_is_told() -> None:
    talk = settled(0)
    talk.closes()
    talk.told("revoked", *P(0), error=ValueError("no"))
    talk.owns()
    assert isinstance(talk.wish(a.RaiseError).error, CallbackFailedError)
    leaves(talk)
    talk.wish(a.MembershipEnded)


def test_a_member_that_closes_while_it_joins_leaves_too() -> None:
    talk = ConsumerTalk()
    talk.find()
    join, _ = talk.sends(ConsumerGroupHeartbeatRequest)
    talk.closes()
    assert leaves(talk).member_epoch == -1
    talk.wish(a.MembershipEnded)
    talk.answer(join, *listed(0), epoch=1)
    assert talk.is_quiet()


def test_a_member_that_knows_no_coordinator_just_ends() -> None:
    talk = settled(0)
    talk.hears(talk.membership.coordinator_unreachable(BROKER, "gone", 0))
    talk.wish(a.Disconnect)
    talk.wish(a.SendRequest)
    talk.closes()
    talk.told("revoked", *P(0))
    talk.owns()
    talk.wish(a.MembershipEnded)


def test_a_member_fenced_while_it_closes_does_not_leave() -> None:
    talk = settled(0)
    talk.closes()
    callback = talk.wish(a.InvokeCallback)
    talk.beat_brings(code=E.UNKNOWN_MEMBER_ID)
    talk.wish(a.StopDelivery)
    talk.completes(callback)
    talk.owns()
    talk.wish(a.MembershipEnded)
    assert talk.is_quiet()


def test_a_member_that_closes_after_it_was_fenced_has_lost_everything() -> None:
    talk = settled(0)
    talk.goes_away()
    talk.beat_brings(code=E.UNKNOWN_MEMBER_ID)
    talk.wish(a.StopDelivery)
    talk.closes()
    talk.told("lost", *P(0))
    talk.owns()
    talk.wish(a.MembershipEnded)
    assert talk.is_quiet()


def test_a_member_that_failed_says_so_and_ends_without_a_word_to_the_group() -> None:
    talk = settled(0)
    talk.goes_away()
    talk.beat_brings(code=E.FENCED_INSTANCE_ID)
    talk.wish(a.StopDelivery)
    talk.closes()
    talk.told("lost", *P(0))
    talk.owns()
    assert talk.wish(a.RaiseError).final
    talk.wish(a.MembershipEnded)
    assert talk.membership.state is State.FATAL
    assert [event.error for event in talk.said(e.MemberFailed)] == [str(talk.membership.failure)]


def test_a_search_that_fails_while_it_closes_ends_it() -> None:
    talk = settled(0)
    talk.closes()
    callback = talk.wish(a.InvokeCallback)
    talk.hears(talk.membership.coordinator_unreachable(BROKER, "gone", 0))
    talk.wish(a.Disconnect)
    talk.find(E.GROUP_AUTHORIZATION_FAILED)
    talk.wish(a.StopDelivery)
    talk.completes(callback)
    talk.owns()
    assert isinstance(talk.wish(a.RaiseError).error, BrokerError)
    talk.wish(a.MembershipEnded)


def test_only_the_first_failure_counts() -> None:
    talk = ConsumerTalk(knows=())
    talk.find()
    talk.beat(*listed(0), epoch=1)
    fetch = talk.wish(a.FetchMetadata)
    talk.beat_brings(code=E.INVALID_REQUEST)
    failure = talk.wish(a.RaiseError).error
    talk.fails(fetch, ValueError("no"))
    assert talk.membership.failure is failure
    assert talk.is_quiet()


# The poll interval.


@pytest.mark.parametrize(("instance_id", "epoch"), [(None, -1), ("i", -2)])
def test_a_member_whose_user_is_away_too_long_leaves_until_it_is_back(instance_id: str | None, epoch: int) -> None:
    talk = settled(0, max_poll_interval_ms=7_000, instance_id=instance_id)
    talk.goes_away()
    talk.quiet_beat()
    talk.waits(1_999)
    assert talk.is_quiet()
    talk.waits(1)
    assert leaves(talk).member_epoch == epoch
    assert talk.wish(a.StopDelivery).partitions == frozenset(P(0))
    assert talk.membership.state is State.STALE
    assert [event.max_poll_interval_ms for event in talk.said(e.PolledTooLate)] == [7_000]
    talk.waits(10 * INTERVAL_MS)
    assert talk.is_quiet()
    talk.polls()
    talk.told("lost", *P(0))
    talk.owns()
    assert talk.settles(1, epoch=4).member_epoch == 0


def test_a_member_that_owns_nothing_waits_for_its_user_too() -> None:
    talk = settled(max_poll_interval_ms=7_000)
    talk.goes_away()
    talk.quiet_beat()
    talk.waits(2_000)
    leaves(talk)
    assert talk.is_quiet()
    talk.polls()
    assert talk.beat(epoch=3, unchanged=True).member_epoch == 0


def test_the_answer_to_an_old_heartbeat_is_nothing_to_a_member_that_left() -> None:
    talk = settled(max_poll_interval_ms=7_000)
    talk.goes_away()
    talk.waits(INTERVAL_MS)
    old, _ = talk.sends(ConsumerGroupHeartbeatRequest)
    talk.waits(2_000)
    leaves(talk)
    talk.answer(old, *listed(0), epoch=9)
    assert talk.membership.state is State.STALE
    assert talk.is_quiet()
    talk.polls()
    talk.beat(epoch=3, unchanged=True)


def test_the_failure_of_an_old_heartbeat_is_nothing_to_a_member_that_left() -> None:
    talk = settled(max_poll_interval_ms=7_000)
    talk.goes_away()
    talk.waits(INTERVAL_MS)
    old, _ = talk.sends(ConsumerGroupHeartbeatRequest)
    talk.waits(2_000)
    leaves(talk)
    talk.fails(old)
    assert talk.membership.coordinator == BROKER


# Offsets.


def test_commits_and_fetches_go_out_with_member_id_and_epoch() -> None:
    talk = ConsumerTalk()
    with pytest.raises(CommitFailedError, match="not part of the group"):
        talk.membership.commits_as()
    assert talk.membership.fetches_as() is None
    talk.settles(0, epoch=3)
    assert talk.membership.commits_as() == Generation(3, ME)
    assert talk.membership.fetches_as() == Generation(3, ME)


@pytest.mark.parametrize("code", [E.UNKNOWN_MEMBER_ID, E.STALE_MEMBER_EPOCH, E.NOT_COORDINATOR])
def test_a_refused_commit_does_not_throw_the_member_out(code: E) -> None:
    talk = settled(0)
    talk.hears(talk.membership.commit_answered(code, Generation(1, ME), 0))
    if code == E.NOT_COORDINATOR:
        assert talk.wish(a.Disconnect).coordinator == BROKER
        talk.find()
    assert talk.is_quiet()
    assert talk.membership.state is State.STABLE


@pytest.mark.parametrize(
    ("code", "kind"), [(E.UNKNOWN_MEMBER_ID, CommitFailedError), (E.OFFSET_METADATA_TOO_LARGE, BrokerError)]
)
def test_what_a_refused_commit_raises(code: E, kind: type[Exception]) -> None:
    error = settled(0).membership.commit_error(code, Generation(1, ME))
    assert isinstance(error, kind)
    assert code.name in str(error)


def test_a_member_that_is_stale_looks_for_a_coordinator_that_is_lost() -> None:
    talk = settled(max_poll_interval_ms=4_000)
    talk.goes_away()
    talk.waits(4_000)
    leaves(talk)
    talk.hears(talk.membership.coordinator_unreachable(BROKER, "gone", talk.now_ms))
    talk.wish(a.Disconnect)
    talk.find()
    assert talk.is_quiet(), "it joins when its user is back"
