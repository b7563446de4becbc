"""What a member gives up before it joins, eager and cooperative, and what it has lost."""

import pytest

from groupcoord.assignors import (
    Assignment,
    Assignor,
    GroupSubscription,
    RebalanceProtocol,
    read_subscription,
    write_assignment,
)
from groupcoord.client.client_errors import AssignorFailedError, CallbackFailedError
from groupcoord.client.member import actions as a
from groupcoord.client.member import member_events as e
from groupcoord.protocol.apis.sync_group import SyncGroupRequest, SyncGroupResponse
from groupcoord.protocol.errors import ErrorCode as E
from tests.client.talk import COOPERATIVE, EAGER, ME, Talk, beat_brings, partitions, settled

BOTH = [EAGER, COOPERATIVE]
P = partitions


# Eager.
def test_eager_gives_everything_up_before_it_joins_again() -> None:
    talk = settled(EAGER, *P(0, 1))
    beat_brings(talk, E.REBALANCE_IN_PROGRESS)
    talk.told("revoked", *P(0, 1))
    talk.owns()
    request = talk.join(generation=2)
    assert read_subscription(request.protocols[0].metadata).owned_partitions == []
    talk.sync(*P(1))
    talk.owns(*P(1))
    talk.told("assigned", *P(1))
    assert talk.is_quiet()


def test_eager_tells_that_nothing_is_revoked_too() -> None:
    """As ``onPartitionsRevoked``, so that a user always hears of the beginning of a rebalance."""
    talk = settled(EAGER)
    beat_brings(talk, E.REBALANCE_IN_PROGRESS)
    talk.told("revoked")


def test_eager_commits_what_was_consumed_and_hands_out_nothing_meanwhile() -> None:
    talk = settled(EAGER, *P(0), auto_commit=True)
    beat_brings(talk, E.REBALANCE_IN_PROGRESS)
    assert talk.wish(a.StopDelivery).partitions == frozenset(P(0))
    commit = talk.wish(a.CommitOffsets)
    assert commit.timeout_ms == 300_000
    assert talk.is_quiet()
    talk.completes(commit)
    talk.told("revoked", *P(0))


def test_a_commit_that_fails_does_not_stop_a_rebalance() -> None:
    talk = settled(EAGER, *P(0), auto_commit=True)
    beat_brings(talk, E.REBALANCE_IN_PROGRESS)
    talk.wish(a.StopDelivery)
    talk.fails(talk.wish(a.CommitOffsets), ValueError())
    talk.told("revoked", *P(0))


def test_nothing_is_taken_from_a_user_who_is_busy() -> None:
    talk = settled(EAGER, *P(0))
    talk.goes_away()
    beat_brings(talk, E.REBALANCE_IN_PROGRESS)
    talk.waits(3_000)
    talk.beat(E.REBALANCE_IN_PROGRESS)
    assert talk.is_quiet()
    talk.polls()
    talk.told("revoked", *P(0))


def test_a_user_who_goes_away_during_the_commit_is_told_when_it_is_back() -> None:
    talk = settled(EAGER, *P(0), auto_commit=True)
    beat_brings(talk, E.REBALANCE_IN_PROGRESS)
    talk.wish(a.StopDelivery)
    commit = talk.wish(a.CommitOffsets)
    talk.goes_away()
    talk.completes(commit)
    assert talk.is_quiet()
    talk.polls()
    talk.told("revoked", *P(0))


# Cooperative (KIP-429).
def test_cooperative_keeps_everything_while_it_joins() -> None:
    talk = settled(COOPERATIVE, *P(0, 1))
    beat_brings(talk, E.REBALANCE_IN_PROGRESS)
    request = talk.join(generation=2)
    said = read_subscription(request.protocols[0].metadata)
    assert (said.owned_partitions, said.generation_id) == ([*P(0, 1)], 1)
    assert talk.membership.owned == frozenset(P(0, 1))


def test_cooperative_joins_without_bothering_a_busy_user() -> None:
    talk = settled(COOPERATIVE, *P(0), auto_commit=True)
    talk.goes_away()
    beat_brings(talk, E.REBALANCE_IN_PROGRESS)
    talk.completes(talk.wish(a.CommitOffsets))
    talk.join(generation=2)
    talk.sync(*P(0))
    assert talk.is_quiet()
    talk.polls()
    talk.owns(*P(0))
    talk.told("assigned")


def test_cooperative_gives_up_only_the_difference_and_joins_a_second_time() -> None:
    talk = settled(COOPERATIVE, *P(0, 1, 2))
    beat_brings(talk, E.REBALANCE_IN_PROGRESS)
    talk.join(generation=2)
    talk.sync(*P(0, 3))
    talk.told("revoked", *P(1, 2))
    talk.owns(*P(0, 3))
    talk.told("assigned", *P(3))
    second = talk.join(generation=3)
    assert second.reason == "need to revoke partitions and re-join"
    assert read_subscription(second.protocols[0].metadata).owned_partitions == [*P(0, 3)]
    talk.sync(*P(0, 3))
    talk.owns(*P(0, 3))
    talk.told("assigned")
    assert talk.is_quiet(), "the second join is the last, because nothing was revoked"
    assert [synced.gives_up for synced in talk.said(e.Synced)] == [(), P(1, 2), ()]


def test_cooperative_joins_once_if_nothing_is_taken_away() -> None:
    talk = settled(COOPERATIVE, *P(0))
    beat_brings(talk, E.REBALANCE_IN_PROGRESS)
    talk.join(generation=2)
    talk.sync(*P(0, 1))
    talk.owns(*P(0, 1))
    talk.told("assigned", *P(1))
    assert talk.is_quiet()


def test_cooperative_gives_up_what_it_no_longer_wants_before_it_joins() -> None:
    talk = settled(COOPERATIVE, ("t", 0), ("u", 0), topics=["t", "u"])
    talk.subscribes("t")
    talk.told("revoked", ("u", 0))
    talk.owns(("t", 0))
    request = talk.join(generation=2)
    assert request.reason == "subscription has changed"
    assert read_subscription(request.protocols[0].metadata).topics == ("t",)


def test_the_assignors_say_which_protocol_a_member_follows() -> None:
    """The highest that all of them support, whichever the group chooses."""
    talk = settled(["cooperative-sticky", "range"], *P(0))
    beat_brings(talk, E.REBALANCE_IN_PROGRESS)
    talk.told("revoked", *P(0))


# Partitions that are lost.
@pytest.mark.parametrize("assignors", BOTH)
@pytest.mark.parametrize(("code", "comes_back_as"), [(E.ILLEGAL_GENERATION, ME), (E.UNKNOWN_MEMBER_ID, "")])
def test_who_lost_its_generation_lost_its_partitions(assignors: tuple[str], code: E, comes_back_as: str) -> None:
    talk = settled(assignors, *P(0, 1), auto_commit=True)
    beat_brings(talk, code)
    talk.told("lost", *P(0, 1))
    talk.owns()
    assert talk.join().member_id == comes_back_as


def test_partitions_lost_while_the_user_is_busy_are_told_when_it_is_back() -> None:
    talk = settled(COOPERATIVE, *P(0))
    talk.goes_away()
    beat_brings(talk, E.UNKNOWN_MEMBER_ID)
    assert talk.is_quiet()
    talk.polls()
    talk.told("lost", *P(0))


def test_who_owned_nothing_has_nothing_to_lose() -> None:
    talk = settled(COOPERATIVE)
    talk.goes_away()
    beat_brings(talk, E.UNKNOWN_MEMBER_ID)
    talk.join()


def test_a_generation_that_ends_before_the_user_was_told_of_it_is_never_told() -> None:
    talk = Talk()
    talk.find()
    talk.join()
    talk.goes_away()
    talk.sync(*P(0))
    beat_brings(talk, E.ILLEGAL_GENERATION)
    talk.join(generation=2)
    talk.sync(*P(1))
    assert talk.is_quiet()
    talk.polls()
    talk.owns(*P(1))
    talk.told("assigned", *P(1))


def test_a_generation_lost_during_the_commit_is_lost_and_not_revoked() -> None:
    talk = settled(EAGER, *P(0), auto_commit=True)
    beat_brings(talk, E.REBALANCE_IN_PROGRESS)
    talk.wish(a.StopDelivery)
    commit = talk.wish(a.CommitOffsets)
    beat_brings(talk, E.UNKNOWN_MEMBER_ID)
    talk.completes(commit)
    talk.told("lost", *P(0))
    talk.owns()
    assert talk.join().member_id == ""


BOTH = [EAGER, COOPERATIVE]
P = partitions


# After the sync.
@pytest.mark.parametrize(("assignment", "problem"), [(b"", "not even nothing"), (b"\0\0\0\0\0\5", "unreadable")])
def test_an_assignment_that_is_none_ends_the_member(assignment: bytes, problem: str) -> None:
    talk = Talk()
    talk.find()
    talk.join()
    talk.sync(assignment=assignment)
    talk.leave()
    raised = talk.wish(a.RaiseError)
    assert isinstance(raised.error, AssignorFailedError)
    assert problem in str(raised.error)


def test_an_assignment_for_another_subscription_is_not_taken() -> None:
    talk = Talk()
    talk.find()
    talk.join()
    sync, _ = talk.sends(SyncGroupRequest)
    talk.subscribes("u")
    talk.completes(sync, SyncGroupResponse(assignment=write_assignment(P(0))))
    talk.told("revoked")
    talk.owns()
    assert talk.join(generation=2).reason == "received assignment does not match the current subscription"


def test_a_callback_that_raises_is_told_and_stops_nothing() -> None:
    talk = settled(COOPERATIVE, *P(0, 1))
    beat_brings(talk, E.REBALANCE_IN_PROGRESS)
    talk.join(generation=2)
    talk.sync(*P(1, 2))
    problem = ValueError("no")
    talk.told("revoked", *P(0), error=problem)
    talk.owns(*P(1, 2))
    talk.told("assigned", *P(2), error=KeyError("the second one is not told"))
    raised = talk.wish(a.RaiseError)
    assert (raised.final, raised.error.__cause__) == (False, problem)
    assert isinstance(raised.error, CallbackFailedError)
    talk.join(generation=3)


@pytest.mark.parametrize("news", ["assigned", "revoked"])
def test_a_callback_that_raises_before_or_after_a_join(news: str) -> None:
    talk = settled(EAGER, *P(0))
    beat_brings(talk, E.REBALANCE_IN_PROGRESS)
    talk.told("revoked", *P(0), error=ValueError("first") if news == "revoked" else None)
    talk.owns()
    if news == "revoked":
        assert "revoked partitions raised ValueError: first" in str(talk.wish(a.RaiseError).error)
    talk.join(generation=2)
    talk.sync(*P(0))
    talk.owns(*P(0))
    talk.told("assigned", *P(0), error=ValueError("second") if news == "assigned" else None)
    if news == "assigned":
        assert "assigned partitions raised ValueError: second" in str(talk.wish(a.RaiseError).error)
    assert talk.is_quiet()


class Forgetful(Assignor):
    """Cannot remember what it is told."""

    name = "forgetful"
    protocols = (RebalanceProtocol.COOPERATIVE,)

    def assign(self, group: GroupSubscription) -> Assignment:
        raise AssertionError

    def on_assignment(self, partitions: object, generation_id: int) -> None:
        raise ValueError("too much")


def test_an_assignor_that_fails_to_remember_stops_nothing() -> None:
    talk = Talk([Forgetful()])
    talk.find()
    talk.join()
    talk.sync(*P(0))
    talk.owns(*P(0))
    talk.told("assigned", *P(0))
    assert "ValueError: too much" in str(talk.wish(a.RaiseError).error)
