"""A member of the consumer protocol changes to what it is assigned: commit, give up, take, acknowledge."""

import uuid

import pytest

from groupcoord.client.client_errors import CallbackFailedError, UnsupportedVersionError
from groupcoord.client.member import actions as a
from groupcoord.client.member import member_events as e
from groupcoord.client.member.consumer_heartbeat import ConsumerMemberState as State
from groupcoord.client.member.metadata_and_commit_requests import MetadataSnapshot
from groupcoord.protocol.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from groupcoord.protocol.errors import ErrorCode as E
from tests.client.consumer_talk import IDS, INTERVAL_MS, ConsumerTalk, listed, settled
from tests.client.talk import partitions

P = partitions
T, U = IDS["t"], IDS["u"]


def test_partitions_go_before_others_come_and_then_the_coordinator_is_told() -> None:
    talk = settled(0, 1, auto_commit=True, max_poll_interval_ms=9_000)
    talk.beat_brings(*listed(1, 2), epoch=2)
    assert talk.membership.state is State.RECONCILING
    assert talk.wish(a.StopDelivery).partitions == frozenset(P(0))
    commit = talk.wish(a.CommitOffsets)
    assert commit.timeout_ms == 9_000
    assert talk.is_quiet(), "it commits first"
    talk.completes(commit)
    talk.told("revoked", *P(0))
    talk.owns(*P(1, 2))
    assert talk.membership.state is State.RECONCILING
    talk.told("assigned", *P(2))
    assert talk.beat(unchanged=True).topic_partitions == listed(1, 2)
    received = talk.said(e.AssignmentReceived)[-1]
    assert (received.epoch, received.keeps, received.gains, received.gives_up) == (2, P(1), P(2), P(0))
    assert [said.owns for said in talk.said(e.AssignmentAcknowledged)] == [P(0, 1), P(1, 2)]


def test_a_commit_that_fails_does_not_keep_partitions() -> None:
    talk = settled(0, auto_commit=True)
    talk.beat_brings(epoch=2)
    talk.wish(a.StopDelivery)
    talk.fails(talk.wish(a.CommitOffsets))
    talk.told("revoked", *P(0))
    talk.owns()
    talk.told("assigned")
    assert talk.beat(unchanged=True).topic_partitions == ()


def test_nothing_comes_or_goes_while_the_user_is_busy() -> None:
    talk = settled(0)
    talk.goes_away()
    talk.beat_brings(*listed(1), epoch=2)
    assert talk.quiet_beat().topic_partitions is None
    assert talk.is_quiet()
    talk.polls()
    talk.wish(a.StopDelivery)
    talk.told("revoked", *P(0))
    talk.owns(*P(1))
    talk.told("assigned", *P(1))
    talk.beat(unchanged=True)


def test_a_user_that_goes_away_during_the_commit_is_told_later() -> None:
    talk = settled(0, auto_commit=True)
    talk.beat_brings(*listed(0, 1), epoch=2)
    talk.goes_away()
    talk.completes(talk.wish(a.CommitOffsets))
    assert talk.is_quiet()
    talk.polls()
    talk.owns(*P(0, 1))
    talk.told("assigned", *P(1))
    talk.beat(unchanged=True)


def test_an_assignment_that_comes_meanwhile_is_next() -> None:
    talk = settled(0, auto_commit=True)
    talk.beat_brings(*listed(0, 1), epoch=2)
    commit = talk.wish(a.CommitOffsets)
    talk.waits(INTERVAL_MS)
    talk.beat(*listed(0, 1, 2), epoch=3)
    talk.completes(commit)
    talk.owns(*P(0, 1))
    talk.told("assigned", *P(1))
    assert talk.membership.state is State.RECONCILING
    send, request = talk.sends(ConsumerGroupHeartbeatRequest)
    assert request.topic_partitions == listed(0, 1)
    talk.completes(talk.wish(a.CommitOffsets))
    talk.owns(*P(0, 1, 2))
    talk.told("assigned", *P(2))
    assert talk.is_quiet(), "one heartbeat at a time"
    talk.answer(send, unchanged=True)
    assert talk.beat(unchanged=True).topic_partitions == listed(0, 1, 2)


def test_the_same_assignment_again_changes_nothing() -> None:
    talk = settled(0)
    talk.beat_brings(*listed(0))
    assert talk.membership.state is State.STABLE
    assert talk.is_quiet()


def test_what_was_given_up_and_comes_back_is_acknowledged_again() -> None:
    talk = settled(0)
    talk.beat_brings(epoch=2)
    talk.wish(a.StopDelivery)
    talk.told("revoked", *P(0))
    talk.owns()
    talk.told("assigned")
    talk.beat(*listed(0), epoch=3)
    talk.owns(*P(0))
    talk.told("assigned", *P(0))
    assert talk.beat(unchanged=True).topic_partitions == listed(0)


@pytest.mark.parametrize("which", ["revoked", "assigned"])
def test_a_callback_that_raises_is_called_again_at_the_next_poll(which: str) -> None:
    talk = settled(0)
    talk.beat_brings(*listed(1), epoch=2)
    talk.wish(a.StopDelivery)
    problem = ValueError("no")
    if which == "assigned":
        talk.told("revoked", *P(0))
        talk.owns(*P(1))
        talk.told("assigned", *P(1), error=problem)
    else:
        talk.told("revoked", *P(0), error=problem)
    raised = talk.wish(a.RaiseError)
    assert isinstance(raised.error, CallbackFailedError)
    assert raised.error.__cause__ is problem
    assert talk.quiet_beat().topic_partitions is None, "the coordinator is not told yet"
    assert talk.is_quiet()
    talk.polls()
    if which == "revoked":
        talk.wish(a.StopDelivery)
        talk.told("revoked", *P(0))
    talk.owns(*P(1))
    talk.told("assigned", *(P(1) if which == "revoked" else ()))
    assert talk.beat(unchanged=True).topic_partitions == listed(1)


# Names.


def snapshot(**ids: uuid.UUID) -> MetadataSnapshot:
    return MetadataSnapshot(partitions=dict.fromkeys(ids, 4), ids=ids)


def test_names_that_are_not_known_are_fetched() -> None:
    talk = ConsumerTalk(topics=(), knows=())
    talk.hears(talk.membership.subscribe_pattern(".", 0))
    talk.find()
    talk.beat(*listed(0), *listed(1, topic="u"), epoch=1)
    fetch = talk.wish(a.FetchMetadata)
    assert fetch == a.FetchMetadata(fetch.ticket, frozenset(), frozenset({T, U}))
    assert talk.is_quiet(), "first it wants to know"
    talk.completes(fetch, snapshot(t=T, u=U))
    talk.owns(("t", 0), ("u", 1))
    talk.told("assigned", ("t", 0), ("u", 1))
    talk.beat(unchanged=True)
    assert talk.membership.watched_topics == {"t", "u"}


def test_a_topic_without_a_name_waits_and_the_others_do_not() -> None:
    talk = ConsumerTalk(topics=("t", "u"), knows=("t",), retry_backoff_ms=100)
    talk.find()
    talk.beat(*listed(0), *listed(1, topic="u"), epoch=1)
    talk.completes(talk.wish(a.FetchMetadata), snapshot())
    talk.owns(*P(0))
    talk.told("assigned", *P(0))
    assert talk.beat(unchanged=True).topic_partitions == listed(0)
    assert talk.membership.state is State.RECONCILING
    talk.waits(99)
    assert talk.is_quiet()
    talk.waits(1)
    fetch = talk.wish(a.FetchMetadata)
    assert fetch.topic_ids == {U}
    assert talk.is_quiet()
    talk.completes(fetch, snapshot(u=U))
    talk.owns(("t", 0), ("u", 1))
    talk.told("assigned", ("u", 1))
    assert talk.beat(unchanged=True).topic_partitions == (*listed(0), *listed(1, topic="u"))
    assert talk.membership.is_stable


def test_metadata_that_comes_by_itself_is_enough() -> None:
    talk = ConsumerTalk(topics=("t", "u"), knows=("t",))
    talk.find()
    talk.beat(*listed(1, topic="u"), epoch=1)
    fetch = talk.wish(a.FetchMetadata)
    talk.learns("t", "u")
    talk.owns(("u", 1))
    talk.told("assigned", ("u", 1))
    talk.beat(unchanged=True)
    talk.completes(fetch, snapshot(u=U))
    assert talk.is_quiet()


def test_an_assignment_that_changes_only_in_what_has_no_name_is_acknowledged() -> None:
    talk = settled(0, knows=("t",))
    talk.beat_brings(*listed(0), *listed(1, topic="u"), epoch=2)
    talk.completes(talk.wish(a.FetchMetadata), snapshot())
    assert talk.beat(unchanged=True).topic_partitions == listed(0)
    assert talk.is_quiet()
    talk.waits(INTERVAL_MS - 1)
    assert {type(wish) for wish in talk.wishes} == {a.FetchMetadata}, "it acknowledges once"


def test_a_metadata_request_that_fails_is_sent_again() -> None:
    talk = ConsumerTalk(knows=())
    talk.find()
    talk.beat(*listed(0), epoch=1)
    talk.fails(talk.wish(a.FetchMetadata))
    assert talk.is_quiet()
    talk.waits(100)
    talk.completes(talk.wish(a.FetchMetadata), snapshot(t=T))
    talk.owns(*P(0))


def test_a_broker_that_has_no_topic_ids_ends_the_member() -> None:
    talk = ConsumerTalk(knows=())
    talk.find()
    talk.beat(*listed(0), epoch=1)
    talk.fails(talk.wish(a.FetchMetadata), UnsupportedVersionError("no"))
    assert isinstance(talk.wish(a.RaiseError).error, UnsupportedVersionError)


# Fenced meanwhile.


def test_a_member_fenced_during_the_commit_forgets_it() -> None:
    talk = settled(0, auto_commit=True)
    talk.beat_brings(*listed(0, 1), epoch=2)
    commit = talk.wish(a.CommitOffsets)
    talk.waits(INTERVAL_MS)
    talk.beat(code=E.UNKNOWN_MEMBER_ID)
    assert talk.wish(a.CancelAction).ticket == commit.ticket
    talk.wish(a.StopDelivery)
    talk.told("lost", *P(0))
    talk.owns()
    assert talk.beat(unchanged=True, epoch=3).member_epoch == 0


@pytest.mark.parametrize("which", ["revoked", "assigned"])
def test_a_member_fenced_during_a_callback_waits_for_it(which: str) -> None:
    talk = settled(0, 1)
    talk.beat_brings(*listed(1, 2), epoch=2)
    talk.wish(a.StopDelivery)
    if which == "assigned":
        talk.told("revoked", *P(0))
        talk.owns(*P(1, 2))
    callback = talk.wish(a.InvokeCallback)
    talk.waits(INTERVAL_MS)
    talk.beat(code=E.FENCED_MEMBER_EPOCH)
    talk.wish(a.StopDelivery)
    assert talk.is_quiet()
    talk.completes(callback)
    if which == "revoked":
        talk.owns(*P(1))
    talk.told("lost", *(P(1) if which == "revoked" else P(1, 2)))
    talk.owns()
    assert talk.beat(unchanged=True, epoch=3).member_epoch == 0
