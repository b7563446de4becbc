"""Every step can be told in one line."""

from typing import Any

import pytest

from groupcoord.client.member import member_events as e
from groupcoord.core.events import AdminAction, Answered

P = (("t", 0), ("t", 1))
TELLING: list[tuple[type[e.MemberEvent], dict[str, Any], str]] = [
    (e.CoordinatorFound, {"coordinator": "broker 1"}, "the coordinator of g is broker 1"),
    (e.CoordinatorLost, {"coordinator": "broker 1", "reason": "gone"}, "broker 1 is no longer the coordinator: gone"),
    (e.RejoinWanted, {"reason": "x"}, "has to join again: x"),
    (
        e.JoinSent,
        {"generation": -1, "protocol": "eager", "assignors": ("range", "sticky"), "keeps": (), "reason": ""},
        "joins (eager, offers range, sticky), owns nothing meanwhile",
    ),
    (
        e.JoinSent,
        {"generation": 1, "protocol": "cooperative", "assignors": ("c",), "keeps": P, "reason": "x"},
        "joins (cooperative, offers c), keeps t-0, t-1 meanwhile because x",
    ),
    (e.MemberIdGiven, {}, "is m from now on and joins with that id"),
    (
        e.Joined,
        {"generation": 1, "assignor": "range", "leader": "m", "members": 2},
        "is in generation 1 and leads 2 member(s); the vote chose range",
    ),
    (
        e.Joined,
        {"generation": 1, "assignor": "range", "leader": "n", "members": 0},
        "is in generation 1 and follows n; the vote chose range",
    ),
    (
        e.AssignorRan,
        {"assignor": "range", "assignment": (("m", P), ("n", ())), "withheld": ()},
        "range gives m: t-0, t-1; n: nothing",
    ),
    (
        e.AssignorRan,
        {"assignor": "c", "assignment": (("m", ()),), "withheld": P},
        "c gives m: nothing; nobody gets yet: t-0, t-1",
    ),
    (e.AssignmentSkipped, {}, "leads a group whose assignment stands, and assigns nothing"),
    (
        e.Synced,
        {"generation": 2, "keeps": P, "gains": (), "gives_up": ()},
        "generation 2: keeps t-0, t-1, gains nothing, gives up nothing",
    ),
    (
        e.Synced,
        {"generation": 2, "keeps": (), "gains": (), "gives_up": P},
        "generation 2: keeps nothing, gains nothing, gives up t-0, t-1 and joins a second time",
    ),
    (e.HeartbeatJoinSent, {"subscription": "t, u"}, "joins with epoch 0, subscribes to t, u"),
    (e.EpochReached, {"epoch": 3}, "is at epoch 3"),
    (
        e.AssignmentReceived,
        {"epoch": 3, "keeps": P, "gains": (), "gives_up": P[:1]},
        "epoch 3: keeps t-0, t-1, gains nothing, gives up t-0",
    ),
    (e.AssignmentAcknowledged, {"owns": P}, "tells the coordinator that it owns t-0, t-1"),
    (e.Fenced, {"reason": "x"}, "is out of the group, loses what it owned and joins again: x"),
    (e.PartitionsTold, {"news": "revoked", "partitions": P}, "revoked: t-0, t-1"),
    (e.MembershipReset, {"reason": "x", "forgets_id": False}, "is out of its generation: x"),
    (e.MembershipReset, {"reason": "x", "forgets_id": True}, "is out of its generation and starts as a newcomer: x"),
    (
        e.RequestFailed,
        {"request": "JoinGroup", "error": "X", "then": "it waits"},
        "JoinGroup refused with X: it waits",
    ),
    (
        e.PolledTooLate,
        {"max_poll_interval_ms": 5},
        "nobody asked for records for 5 ms, so it leaves the group until somebody does",
    ),
    (e.LeaveSent, {"reason": "x"}, "leaves g because x"),
    (e.MemberFailed, {"error": "x"}, "has ended: x"),
]


@pytest.mark.parametrize(("event", "fields", "text"), TELLING)
def test_an_event_in_one_line(event: type[e.MemberEvent], fields: dict[str, Any], text: str) -> None:
    assert event(at_ms=0, cause=AdminAction("poll"), group="g", member="m", **fields).text() == text


def test_every_event_is_told_here() -> None:
    events = {each for each in vars(e).values() if isinstance(each, type) and issubclass(each, e.MemberEvent)}
    assert {event for event, _, _ in TELLING} == events - {e.MemberEvent}


@pytest.mark.parametrize(("error", "text"), [("NONE", "the answer to Heartbeat"), ("X", "the answer to Heartbeat, X")])
def test_an_answer_as_a_cause(error: str, text: str) -> None:
    assert str(Answered("Heartbeat", error)) == text
