"""Every cause that a generation can have, told in words."""

import dataclasses

import pytest

from groupcoord.coordinator.events import GroupRemoved
from groupcoord.core.effects import EmitEvent
from groupcoord.core.events import AdminAction
from groupcoord.protocol.errors import ErrorCode
from groupcoord.testing.trace import RequestReceived, Trace
from tests.coordinator.world import World, subscription
from tests.testing.trace.stage import GROUP, Stage

ALONE = "then nobody was missing any more, so it began at {} with 1 member, a (leader); the vote chose range (range 1)"
BOTH = "then nobody was missing any more, so it began at {} with 2 members, b and a (leader); the vote chose range (range 2)"


# Somebody comes.


def test_the_first_members_of_an_empty_group() -> None:
    stage = Stage()
    stage.member("a").enter()
    stage.advance(1_000)
    stage.member("b").enter()
    stage.advance(5_000)
    assert stage.why() == (
        "generation 1: member a came at 0.0 s; the group had no members, and it waited 3,000 ms for others; b came at 1.0 s; "
        "because of that it waited 3,000 ms more; then the waiting was over, so it began at 6.0 s with 2 members, "
        "b and a (leader); the vote chose range (range 2)"
    )


def test_a_first_member_where_nobody_is_waited_for() -> None:
    stage = Stage("group.initial.rebalance.delay.ms=0")
    stage.member("a").enter(reason="hello")
    stage.advance(0)
    assert stage.why(1) == (
        "generation 1: member a came at 0.0 s (hello); the group had no members, and it waits for nobody; "
        "so it began at 0.0 s with 1 member, a (leader); the vote chose range (range 1)"
    )


def test_first_members_where_nobody_is_waited_for() -> None:
    stage = Stage("group.initial.rebalance.delay.ms=0")
    stage.member("a").enter()
    stage.member("b").enter()
    stage.advance(0)
    assert "and it waits for nobody; b came at 0.0 s; so it began at 0.0 s with 2 members, " in stage.why()


def test_the_last_of_the_first_members_is_gone_before_it_begins() -> None:
    stage = Stage()
    a = stage.member("a")
    a.enter()
    a.leave()
    stage.advance(3_000)
    assert stage.why() == (
        "generation 1: member a came at 0.0 s; the group had no members, and it waited 3,000 ms for others; "
        "member a left at 0.0 s; nobody was left, so the group was Empty from 3.0 s on"
    )


def test_a_newcomer_in_a_stable_group() -> None:
    stage = Stage()
    a, b = stage.stable("a", "b")
    stage.member("c").enter()
    stage.advance(500)
    a.join()
    stage.advance(100)
    b.join()
    assert stage.why() == (
        "generation 2: member c came at 6.0 s; b and a had 60,000 ms to join again; a joined again at 6.5 s and b at 6.6 s; "
        "then nobody was missing any more, so it began at 6.6 s with 3 members, c, b and a (leader); "
        "the vote chose range (range 3)"
    )


def test_two_newcomers_one_of_them_static() -> None:
    stage = Stage()
    (a,) = stage.stable("a")
    stage.member("c", instance="i").enter()
    stage.member("d").enter()
    stage.member("e").enter()
    a.join()
    assert stage.why() == (
        "generation 2: static member i came at 3.0 s; a had 60,000 ms to join again; d came at 3.0 s and e at 3.0 s; "
        "a joined again at 3.0 s; then nobody was missing any more, so it began at 3.0 s with 4 members, "
        "a (leader), i, e and d; the vote chose range (range 4)"
    )


# Somebody who is there changes something.


def test_another_subscription() -> None:
    stage = Stage()
    a, b = stage.stable("a", "b")
    b.protocols = {"range": subscription("t", "u")}
    b.join()
    a.join()
    assert stage.why() == (
        "generation 2: member b joined again at 6.0 s with another subscription: t, u instead of t; "
        f"a had 60,000 ms to join again; a joined again at 6.0 s; {BOTH.format('6.0 s')}"
    )


@pytest.mark.slow
def test_other_assignors() -> None:
    stage = Stage()
    a, b = stage.stable("a", "b")
    b.protocols = {"range": subscription("t"), "sticky": b""}
    b.join()
    a.join()
    assert " joined again at 6.0 s with other assignors: range, sticky instead of range; " in stage.why()


def test_no_subscription_any_more() -> None:
    stage = Stage()
    a, b = stage.stable("a", "b")
    b.protocols = {"range": subscription()}
    b.join()
    a.join()
    assert " with another subscription: nothing instead of t; " in stage.why()


def test_other_metadata() -> None:
    stage = Stage()
    a, b = stage.stable("a", "b")
    b.protocols = {"range": subscription("t") + b"owned"}
    b.join()
    a.join()
    assert " with other metadata, such as the partitions it owns; " in stage.why()


def test_new_metadata_where_nobody_saw_the_requests() -> None:
    stage = Stage()
    a, b = stage.stable("a", "b")
    b.protocols = {"range": subscription("t", "u")}
    b.join()
    a.join()
    deaf = Trace()
    for entry in stage.trace:
        if not isinstance(entry.event, RequestReceived):
            deaf(entry.event)
    assert deaf.why(GROUP, 2).startswith("generation 2: member b joined again at 6.0 s with new metadata; ")


def test_new_metadata_where_the_request_before_was_not_seen() -> None:
    stage = Stage()
    a, b = stage.stable("a", "b")
    before = len(stage.trace)
    b.protocols = {"range": subscription("t", "u")}
    b.join()
    a.join()
    late = Trace(start_ms=0)
    for entry in stage.trace:
        if entry.seq > before:
            late(entry.event)
    assert late.why(GROUP, 2).startswith(
        f"generation 2: member {b.member_id} joined again at 6.0 s with new metadata; "
    )


def test_the_leader_joins_again() -> None:
    stage = Stage()
    a, b = stage.stable("a", "b")
    a.join(reason="partitions were added")
    b.join()
    assert stage.why() == (
        "generation 2: leader a joined again at 6.0 s (partitions were added), and whenever the leader does, all have to; "
        f"b had 60,000 ms to join again; b joined again at 6.0 s; {BOTH.format('6.0 s')}"
    )


def test_the_leader_joins_again_with_something_new() -> None:
    stage = Stage()
    a, b = stage.stable("a", "b")
    a.protocols = {"range": subscription("u")}
    a.join()
    b.join()
    assert stage.why().startswith(
        "generation 2: leader a joined again at 6.0 s with another subscription: u instead of t; b had "
    )


def test_a_lone_leader_joins_again() -> None:
    stage = Stage()
    (a,) = stage.stable("a")
    a.join()
    assert stage.why() == (
        "generation 2: leader a joined again at 3.0 s, and whenever the leader does, all have to; nobody else had to join "
        "again, so it began at 3.0 s with 1 member, a (leader); the vote chose range (range 1)"
    )


# Static members come back.


def offering(*names: str) -> dict[str, bytes]:
    return {name: subscription("t") for name in names}


def test_a_static_member_that_changes_the_vote() -> None:
    stage = Stage()
    a = stage.member("a", instance="i", protocols=offering("range", "sticky"))
    b = stage.member("b", protocols=offering("range", "sticky"))
    stage.stable(a, b)
    stage.member("a", instance="i", protocols=offering("sticky")).enter()
    b.join()
    assert stage.why() == (
        "generation 2: static member i came back as a new member (i-0000) at 6.0 s, and the voted protocol changed with it; "
        "b had 60,000 ms to join again; b joined again at 6.0 s; then nobody was missing any more, so it began at 6.0 s with "
        "2 members, b and i-0000 (leader); the vote chose sticky (sticky 2)"
    ).replace("i-0000", "i-00000005")


def test_a_static_member_comes_back_before_the_leader_has_assigned() -> None:
    stage = Stage()
    a, b = stage.member("a"), stage.member("b", instance="i")
    stage.joined(a, b)
    stage.member("b", instance="i").enter()
    stage.advance(7)
    a.join()
    assert stage.why(2).startswith(
        "generation 2: static member i came back as a new member (i-00000005) at 6.0 s; a had 60,000 ms to join again; "
        "a joined again at 6.007 s; then nobody"
    )


def test_a_static_member_comes_back_while_others_join() -> None:
    stage = Stage()
    a, b = stage.member("a"), stage.member("b", instance="i")
    stage.stable(a, b)
    stage.member("c").enter()
    stage.member("b", instance="i").enter()
    a.join()
    assert stage.why(2).startswith(
        "generation 2: member c came at 6.0 s; a and i-00000004 had 60,000 ms to join again; static member i came back as a "
        "new member (i-00000006) at 6.0 s; a joined again at 6.0 s; "
    )


def test_a_static_member_that_does_not_come_is_kept() -> None:
    stage = Stage()
    a, b = stage.member("a", instance="i", session_ms=100_000), stage.member("b")
    stage.stable(a, b)
    stage.member("c").enter()
    b.join()
    stage.advance(60_000)
    assert stage.why() == (
        "generation 2: member c came at 6.0 s; b and i had 60,000 ms to join again; b joined again at 6.0 s; then the waiting "
        "was over, and static i, not there but still in session, stayed, so it began at 66.0 s with 3 members, "
        "c (leader), b and i; the vote chose range (range 3)"
    )


def test_a_static_member_that_came_back_did_come() -> None:
    stage = Stage()
    a, b = stage.member("a", instance="i", session_ms=100_000), stage.member("b", session_ms=100_000)
    stage.stable(a, b)
    stage.member("c").enter()
    stage.member("a", instance="i", session_ms=100_000).enter()
    stage.advance(60_000)
    assert "stayed" not in stage.why()
    assert "member b did not join again within 60,000 ms, by 66.0 s, and did not ask how the group is; " in stage.why()


# An administrator, the log, and what Kafka itself fails over.


def test_an_administrator_forces_it() -> None:
    stage = Stage()
    a, b = stage.stable("a", "b")
    stage.operate("force_rebalance: a drill", lambda ctx: stage.group.prepare_rebalance(ctx, "a drill"))
    a.join()
    b.join()
    assert stage.why().startswith(
        "generation 2: an administrator forced it at 6.0 s: force_rebalance: a drill; b and a had 60,000 ms to join again; "
    )


def test_an_administrator_forces_it_for_another_reason() -> None:
    stage = Stage()
    a, b = stage.stable("a", "b")
    stage.operate("the test", lambda ctx: stage.group.prepare_rebalance(ctx, "a drill"))
    a.join()
    b.join()
    assert stage.why().startswith("generation 2: an administrator forced it at 6.0 s: the test (a drill); b and a had ")


def test_an_administrator_ends_a_membership() -> None:
    stage = Stage()
    a, b = stage.stable("a", "b")
    key = stage.group.members[b.member_id].session_key
    stage.operate("expire b", lambda ctx: stage.group.timers.fire(key, ctx))
    a.join()
    assert stage.why().startswith("generation 2: an administrator ended the membership of b at 6.0 s: expire b; a had ")


def test_a_session_that_is_ended_early() -> None:
    stage = Stage()
    a, b = stage.stable("a", "b")
    stage.advance(1_000)
    b.heartbeat()
    stage.advance(1_000)
    key = stage.group.members[b.member_id].session_key
    effects = stage.coordinator.timers.fire_early(key, stage.now_ms)
    stage._carry_out(stage.tracing.outgoing(effects, stage.now_ms))
    a.join()
    assert stage.why().startswith(
        "generation 2: member b's session of 10,000 ms was ended early, at 8.0 s, last heartbeat at 7.0 s; a had "
    )


def test_a_group_that_is_too_large_when_it_is_read_back() -> None:
    stage = Stage()
    a, _b = stage.stable("a", "b")
    coordinator = stage.node.coordinator
    coordinator.config = dataclasses.replace(coordinator.config, group_max_size=1)
    stage.operate("partition 0 moves away", lambda ctx: stage.coordinator.runtime.resign(0, ctx))
    stage.node.load(0, stage.now_ms)
    stage.advance(0)
    a.join()
    stage.advance(10_000)
    assert stage.why() == (
        "generation 2: the group was read back from __consumer_offsets-0 at 6.0 s, and the group has 2 members, and "
        "group.max.size is 1 now; b and a had 60,000 ms to join again; a joined again at 6.0 s; member b's session of 10,000 "
        "ms ran out at 16.0 s, counted from 6.0 s, when the group was read back; " + ALONE.format("16.0 s")
    )


def test_an_assignment_that_cannot_be_stored() -> None:
    world = World()
    a, b = world.member("a"), world.member("b")
    world.joined(a, b)
    world.fail_appends(ErrorCode.NOT_ENOUGH_REPLICAS)
    a.sync()
    world.fail_appends(None)
    a.join()
    b.join()
    trace = Trace()
    for event in world.events:
        trace(event)
    assert trace.why(GROUP).startswith(
        "generation 2: the assignment could not be stored: NOT_ENOUGH_REPLICAS, at 6.0 s; a and b had 60,000 ms to join again; "
    )


TWICE = [("range", subscription("t")), ("range", subscription("t"))]


def test_a_generation_that_gets_stuck_and_the_one_after_it() -> None:
    stage = Stage()
    stage.member("a", protocols=TWICE).enter()
    stage.advance(3_000)
    assert stage.why() == (
        "generation 1: member a came at 0.0 s; the group had no members, and it waited 3,000 ms for others; then the waiting "
        "was over, so it began at 3.0 s and got stuck, as it would in Kafka: member a offers no protocol that counts as "
        "offered by all"
    )
    stage.advance(300_000)
    assert stage.why() == (
        "generation 2: member a came at 0.0 s; the group had no members, and it waited 3,000 ms for others; generation 1 got "
        "stuck at 3.0 s: member a offers no protocol that counts as offered by all; member a waited for its first generation "
        "until 300.0 s, which is 300,000 ms, the most a new member may; nobody was left, so the group was Empty from 300.0 s on"
    )


def test_a_generation_that_gets_stuck_after_it_began() -> None:
    """Kafka counts a protocol that is listed twice as that of two members, and finds too late that one does not have it."""
    stage = Stage()
    a = stage.member("a", protocol_type="connect", protocols=[("sticky", b""), ("sticky", b""), ("range", b"")])
    b = stage.member("b", protocol_type="connect", protocols=[("range", b"")])
    b.enter()
    a.enter()
    stage.advance(6_000)
    assert stage.why(1).endswith(
        "so it began at 6.0 s with 2 members, b (leader) and a; the vote chose sticky (range 1, sticky 1); "
        "it got stuck, as it would in Kafka: member b does not offer protocol sticky"
    )


# What is not known.


def test_a_group_that_nobody_knows() -> None:
    with pytest.raises(
        LookupError, match=r"the trace does not have a generation of group 'x', of which it knows nothing$"
    ):
        Trace().why("x")
    with pytest.raises(
        LookupError, match=r"does not have the beginning of generation 3 of group 'x', of which it knows nothing$"
    ):
        Trace().why("x", 3)


def test_a_generation_that_is_not_there() -> None:
    stage = Stage()
    (a,) = stage.stable("a")
    a.join()
    with pytest.raises(LookupError, match=r"the beginning of generation 7 of group 'g', but that of 1 and 2$"):
        stage.why(7)


def test_a_generation_that_was_dropped() -> None:
    stage = Stage(trace=Trace(limit=3))
    stage.stable("a")
    with pytest.raises(LookupError, match=r"generation 1 of group 'g'; \d+ older entries were dropped$"):
        stage.why(1)


def test_a_group_without_generations() -> None:
    stage = Stage()
    stage.member("a").join()
    with pytest.raises(LookupError, match=r"the trace does not have a generation of group 'g'$"):
        stage.why()


def test_a_rebalance_whose_beginning_is_not_there() -> None:
    stage = Stage()
    a, b = stage.stable("a", "b")
    b.leave()
    before = len(stage.trace)
    a.join()
    late = Trace(start_ms=0)
    for entry in stage.trace:
        if entry.seq > before:
            late(entry.event)
    assert late.why(GROUP).startswith("generation 2: what started its rebalance is not in the trace; then nobody was ")


def test_a_generation_of_a_group_that_was_made_anew() -> None:
    """Of two generations with one number the later is told, and nothing of the group before it."""
    stage = Stage()
    (_a,) = stage.stable("a")
    stage.advance(1_000)
    gone = EmitEvent.of(GroupRemoved(at_ms=stage.now_ms, cause=AdminAction("the test"), group=GROUP, reason="the test"))
    born = [entry.event for entry in stage.trace if entry.seq >= 9]
    stage.tracing.outgoing([gone], stage.now_ms)
    for event in born:
        stage.trace(event)
    assert stage.why(1).startswith("generation 1: what started its rebalance is not in the trace; ")
