"""How a member got out, in words, where that made a generation; what does not is at the end."""

import dataclasses

from groupcoord.coordinator.events import Departure, MemberJoined, MemberRemoved
from groupcoord.core.events import Requested
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.apis.leave_group import MemberIdentity
from groupcoord.protocol.messages import LeaveGroupRequest
from groupcoord.testing.trace import RequestReceived, Trace
from groupcoord.testing.trace.events import TraceEntry
from groupcoord.testing.trace.generation_history import GenerationHistory
from groupcoord.testing.trace.short_member_names import ShortMemberNames
from groupcoord.testing.trace.why_generation import DepartureReasons
from tests.testing.trace.stage import GROUP, Stage

ASKED = Requested("Heartbeat", 4, "a", "/127.0.0.1", 1, 1)
ALONE = "then nobody was missing any more, so it began at {} with 1 member, a (leader); the vote chose range (range 1)"
BOTH = "then nobody was missing any more, so it began at {} with 2 members, b and a (leader); the vote chose range (range 2)"


def test_a_member_leaves() -> None:
    stage = Stage()
    a, b = stage.stable("a", "b")
    b.leave(reason="closing time")
    stage.advance(500)
    a.join()
    assert stage.why() == (
        "generation 2: member b left at 6.0 s (closing time); a had 60,000 ms to join again; a joined again at 6.5 s; "
        + ALONE.format("6.5 s")
    )


def test_a_member_is_removed_by_an_administrator() -> None:
    stage = Stage()
    a, b = stage.stable("a", "b")
    request = LeaveGroupRequest(group_id=GROUP, members=(MemberIdentity(member_id=b.member_id, reason="by hand"),))
    stage.ask(ApiKey.LEAVE_GROUP, request, client_id="admin")
    a.join()
    assert stage.why().startswith("generation 2: member b was removed at 6.0 s by admin (by hand); a had ")


def test_a_member_is_removed_by_somebody_without_a_name() -> None:
    stage = Stage()
    a, b = stage.stable("a", "b")
    request = LeaveGroupRequest(group_id=GROUP, members=(MemberIdentity(member_id=b.member_id),))
    stage.ask(ApiKey.LEAVE_GROUP, request, client_id=None)
    a.join()
    assert stage.why().startswith("generation 2: member b was removed at 6.0 s by a client without id; a had ")


def test_the_last_member_leaves() -> None:
    stage = Stage()
    (a,) = stage.stable("a")
    a.leave()
    assert stage.why() == "generation 2: member a left at 3.0 s; nobody was left, so the group was Empty from 3.0 s on"


def test_a_session_runs_out() -> None:
    stage = Stage()
    a, b = stage.stable("a", "b")
    stage.advance(4_200)
    b.heartbeat()
    stage.advance(5_000)
    a.heartbeat()
    stage.advance(5_000)
    stage.advance(500)
    a.join()
    assert stage.why() == (
        "generation 2: member b's session of 10,000 ms ran out at 20.2 s, last heartbeat at 10.2 s; "
        f"a had 60,000 ms to join again; a joined again at 20.7 s; {ALONE.format('20.7 s')}"
    )


def test_heartbeats_that_did_not_count() -> None:
    stage = Stage()
    a, b = stage.stable("a", "b")
    stage.advance(4_000)
    b.heartbeat()
    stage.advance(5_000)
    a.heartbeat()
    b.heartbeat(generation=0)
    b.heartbeat(generation=0)
    stage.advance(6_000)
    a.join()
    assert stage.why().startswith(
        "generation 2: member b's session of 10,000 ms ran out at 20.0 s, last heartbeat at 10.0 s "
        "(2 later requests did not count: ILLEGAL_GENERATION); "
    )


def test_heartbeats_that_were_not_answered() -> None:
    """As if a rule of the test had dropped them."""
    stage = Stage()
    a, b = stage.stable("a", "b")
    stage.advance(4_000)
    b.heartbeat()
    beat = stage.trace.of(RequestReceived, api="Heartbeat").one()
    stage.trace(dataclasses.replace(beat, at_ms=12_000, correlation_id=1_000))
    stage.advance(5_000)
    a.heartbeat()
    stage.advance(5_000)
    a.join()
    assert " ran out at 20.0 s, last heartbeat at 10.0 s (1 later request did not count: no answer); " in stage.why()


def test_a_session_that_an_answer_began() -> None:
    stage = Stage()
    (_a,) = stage.stable("a")
    stage.advance(10_000)
    assert stage.why() == (
        "generation 2: member a's session of 10,000 ms ran out at 13.0 s, last heard of at 3.0 s by SyncGroup; "
        "nobody was left, so the group was Empty from 13.0 s on"
    )


def test_a_session_that_began_with_nothing_in_the_trace() -> None:
    stage = Stage()
    stage.stable("a")
    stage.advance(10_000)
    deaf = Trace()
    for event in stage.trace.of(MemberJoined):
        deaf(event)
    for entry in stage.trace:
        if entry.group and not hasattr(entry.event, "api"):
            deaf(entry.event)
    assert " ran out at 13.0 s, last heard of at 3.0 s; nobody " in deaf.why(GROUP)


def test_a_session_that_runs_out_while_others_join() -> None:
    stage = Stage()
    a, _b = stage.stable("a", "b")
    stage.member("c").enter()
    a.join()
    stage.advance(10_000)
    assert stage.why() == (
        "generation 2: member c came at 6.0 s; b and a had 60,000 ms to join again; a joined again at 6.0 s; member b's "
        "session of 10,000 ms ran out at 16.0 s, last heard of at 6.0 s by SyncGroup; then nobody was missing any more, so it "
        "began at 16.0 s with 2 members, c and a (leader); the vote chose range (range 2)"
    )


def test_a_member_that_does_not_join_again() -> None:
    stage = Stage()
    a, b = stage.stable("a", "b")
    stage.member("c").enter()
    a.join()
    for _ in range(12):
        stage.advance(5_000)
        b.heartbeat()
    assert stage.why() == (
        "generation 2: member c came at 6.0 s; b and a had 60,000 ms to join again; a joined again at 6.0 s; member b did not "
        "join again within 60,000 ms, by 66.0 s, though it was told to 11 times; then the waiting was over, so it began at "
        "66.0 s with 2 members, c and a (leader); the vote chose range (range 2)"
    )


def test_members_that_do_not_sync() -> None:
    stage = Stage()
    a, b, c = (stage.member(name, session_ms=100_000) for name in "abc")
    stage.joined(a, b, c)
    a.sync()
    stage.advance(60_000)
    stage.advance(5)
    a.join()
    assert stage.why() == (
        "generation 2: members c and b did not send SyncGroup within 60,000 ms of the beginning of generation 1 at 6.0 s, "
        f"by 66.0 s; a had 60,000 ms to join again; a joined again at 66.005 s; {ALONE.format('66.005 s')}"
    )


def test_a_member_that_does_not_sync() -> None:
    stage = Stage()
    a, b = (stage.member(name, session_ms=100_000) for name in "ab")
    stage.joined(a, b)
    a.sync()
    stage.advance(60_000)
    a.join()
    assert stage.why().startswith(
        "generation 2: member b did not send SyncGroup within 60,000 ms of the beginning of generation 1 at 6.0 s, by 66.0 s; "
    )


def test_somebody_who_never_came_back_with_its_id() -> None:
    stage = Stage()
    a, b = stage.stable("a", "b")
    stage.member("c").join()
    a.join()
    b.join()
    stage.advance(10_000)
    assert stage.why() == (
        "generation 2: leader a joined again at 6.0 s, and whenever the leader does, all have to; b had 60,000 ms to join "
        "again; b joined again at 6.0 s; c, given that id at 6.0 s, did not come back with it within 10,000 ms, by 16.0 s; "
        + BOTH.format("16.0 s")
    )


def test_a_newcomer_kept_waiting_too_long() -> None:
    stage = Stage()
    terms = {"rebalance_ms": 400_000, "session_ms": 100_000}
    a, b = stage.stable(stage.member("a", **terms), stage.member("b", **terms))
    stage.member("c", **terms).enter()
    for _ in range(6):
        stage.advance(60_000)
        a.heartbeat()
        b.heartbeat()
    a.join()
    b.join()
    assert (
        "; member c waited for its first generation until 306.0 s, which is 300,000 ms, the most a new member may; "
    ) in stage.why()


def test_a_member_for_which_there_is_no_room_any_more() -> None:
    stage = Stage("group.max.size=2")
    a, b = stage.stable("a", "b")
    b.leave()
    stage.member("c").enter()
    stage.member("d").enter()
    a.join()
    stage.advance(60_000)
    assert stage.why() == (
        "generation 2: member b left at 6.0 s; a had 60,000 ms to join again; c came at 6.0 s and d at 6.0 s; member a came "
        "back at 6.0 s when there was no room any more; then the waiting was over, so it began at 66.0 s with 2 members, "
        "c (leader) and d; the vote chose range (range 2)"
    )


# DepartureReasons that no coordinator notes.


def told(how: Departure, timeout_ms: int | None, **fields: str) -> str:
    event = MemberRemoved(
        at_ms=9_000,
        cause=ASKED,
        group="g",
        member="b",
        reason=fields.get("reason", "so"),
        how=how,
        timeout_ms=timeout_ms,
    )
    entry = TraceEntry(1, 8_000, event)
    return DepartureReasons(GenerationHistory([entry], "g"), ShortMemberNames([entry])).explain([entry])


def test_a_session_that_no_timer_ended() -> None:
    assert told(Departure.SESSION_OVER, 10_000) == "member b's session of 10,000 ms ran out at 8.0 s"


def test_a_departure_of_which_nothing_before_is_known() -> None:
    assert (
        told(Departure.NEVER_CAME_BACK, 10_000)
        == "b, given that id, did not come back with it within 10,000 ms, by 8.0 s"
    )
    assert told(Departure.NOT_SYNCED, 10_000) == "member b did not send SyncGroup within 10,000 ms, by 8.0 s"
    assert told(Departure.LEFT, None, reason="it left") == "member b left at 8.0 s"
