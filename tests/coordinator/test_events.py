"""Every event reads as a sentence; that each has a cause and a time the world of these tests checks itself."""

import dataclasses
from typing import Any

import pytest

from groupcoord.coordinator import events
from groupcoord.core.events import AdminAction
from tests.coordinator.world import World

EVENTS: list[tuple[type[events.GroupEvent], dict[str, Any], str]] = [
    (events.GroupCreated, {"simple": False}, "new group g"),
    (events.MemberIdAssigned, {"member": "m"}, "newcomer gets the id m and is told to come back with it"),
    (
        events.MemberJoined,
        {
            "member": "m",
            "instance_id": "i",
            "client_id": "c",
            "client_host": "/h",
            "protocols": ("range",),
            "session_timeout_ms": 1,
            "rebalance_timeout_ms": 2,
            "reason": "",
        },
        "m (static, instance i) joins, offers range",
    ),
    (events.MemberRejoined, {"member": "m", "changed": False, "reason": ""}, "m joins again"),
    (events.StateChanged, {"origin": "Empty", "target": "Stable", "generation": 2}, "g Empty → Stable gen=2"),
    (events.AssignmentReceived, {"generation": 1, "leader": "m", "owners": None}, "leader m assigns generation 1"),
    (events.OffsetsRemoved, {"partitions": (), "reason": "so"}, "offsets of nothing are gone: so"),
    (
        events.RequestRefused,
        {"api": "DeleteGroups", "member": "", "error": "NON_EMPTY_GROUP", "why": "it has members"},
        "DeleteGroups is refused with NON_EMPTY_GROUP: it has members",
    ),
    (
        events.RequestRefused,
        {"api": "Heartbeat", "member": "m", "error": "ILLEGAL_GENERATION", "why": "so"},
        "Heartbeat of m is refused with ILLEGAL_GENERATION: so",
    ),
]


@pytest.mark.parametrize(("kind", "fields", "text"), EVENTS)
def test_an_event_reads_as_a_sentence(kind: type[events.GroupEvent], fields: dict[str, Any], text: str) -> None:
    assert kind(at_ms=0, cause=AdminAction("a test"), group="g", **fields).text() == text


def test_an_event_cannot_be_changed() -> None:
    event = events.GroupCreated(at_ms=0, cause=AdminAction("a test"), group="g", simple=False)
    with pytest.raises(dataclasses.FrozenInstanceError):
        event.simple = True  # type: ignore[misc]


def test_a_refusal_names_the_request_and_what_was_wrong() -> None:
    world = World()
    world.stable("a")
    world.member("x", member_id="x-9").heartbeat(generation=1)
    refused = world.seen(events.RequestRefused)[-1]
    assert refused.text() == "Heartbeat of x-9 is refused with UNKNOWN_MEMBER_ID: member_id 'x-9' is not in the group"
    assert str(refused.cause) == "Heartbeat v4 from x"
    assert refused.group == "g"


def test_the_life_of_a_small_group_reads_as_a_story() -> None:
    world = World()
    a, b = world.stable("a", "b")
    a.commit()
    b.leave(reason="done")
    a.heartbeat()
    a.join()
    a.sync()
    world.advance(10_000)
    assert [f"{event.at_ms:>6} {event.text()}" for event in world.events] == [
        "     0 new group g",
        "     0 newcomer gets the id a-1 and is told to come back with it",
        "     0 a-1 joins, offers range",
        "     0 rebalance because member a-1 is new; nobody else was there, so it waits 3000 ms for others",
        "     0 g Empty → PreparingRebalance gen=0",
        "     0 newcomer gets the id b-2 and is told to come back with it",
        "     0 b-2 joins, offers range",
        "  3000 somebody new came: waiting 3000 ms more (54000 ms left after that)",
        "  6000 g PreparingRebalance → CompletingRebalance gen=1",
        "  6000 generation 1: 2 members, protocol range (votes: range 2), leader a-1",
        "  6000 leader a-1 assigns generation 1",
        "  6000 g CompletingRebalance → Stable gen=1",
        "  6000 a-1 commits t-0 at 5",
        "  6000 b-2 is out: it left (done)",
        "  6000 rebalance of generation 1 because b-2 left; the members have 60000 ms to join again",
        "  6000 g Stable → PreparingRebalance gen=1",
        "  6000 a-1 joins again",
        "  6000 g PreparingRebalance → CompletingRebalance gen=2",
        "  6000 generation 2: 1 member, protocol range (votes: range 1), leader a-1",
        "  6000 leader a-1 assigns generation 2",
        "  6000 g CompletingRebalance → Stable gen=2",
        " 16000 a-1 is out: nothing was heard of it in its session of 10000 ms",
        (
            " 16000 rebalance of generation 2 because member a-1 is out: nothing was heard of it in its session of 10000 ms; "
            "the members have 0 ms to join again"
        ),
        " 16000 g Stable → PreparingRebalance gen=2",
        " 16000 g PreparingRebalance → Empty gen=3",
    ]
