"""What a member makes of its assignment."""

import pytest

from groupcoord.assignors import (
    Assignment,
    Assignor,
    Group,
    RebalanceProtocol,
    write_assignment,
)
from groupcoord.client import actions as a
from groupcoord.client.errors import AssignorFailedError, CallbackFailedError
from groupcoord.protocol.errors import ErrorCode as E
from groupcoord.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from tests.client.talk import COOPERATIVE, EAGER, Talk, beat_brings, partitions, settled

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
    raised = talk.wish(a.Raise)
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
    raised = talk.wish(a.Raise)
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
        assert "revoked partitions raised ValueError: first" in str(talk.wish(a.Raise).error)
    talk.join(generation=2)
    talk.sync(*P(0))
    talk.owns(*P(0))
    talk.told("assigned", *P(0), error=ValueError("second") if news == "assigned" else None)
    if news == "assigned":
        assert "assigned partitions raised ValueError: second" in str(talk.wish(a.Raise).error)
    assert talk.is_quiet()


class Forgetful(Assignor):
    """Cannot remember what it is told."""

    name = "forgetful"
    protocols = (RebalanceProtocol.COOPERATIVE,)

    def assign(self, group: Group) -> Assignment:
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
    assert "ValueError: too much" in str(talk.wish(a.Raise).error)
