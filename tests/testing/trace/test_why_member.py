"""Why a member came or left, why a partition is another's, and what a cause led to: no test has to know a generation."""

from collections.abc import Mapping

import pytest

from groupcoord.coordinator.events import GenerationStarted, GroupEpochBumped, MemberRemoved
from groupcoord.testing import Cluster, Trace
from groupcoord.testing.trace import AdminActionRun, RequestReceived, ResponseSent
from tests.coordinator.world import assignment, subscription
from tests.testing.trace.stage import GROUP, Member, Stage


def two(stage: Stage) -> tuple[Member, Member]:
    """bob has t-0, alice t-1 and t-2."""
    bob, alice = stage.member("bob"), stage.member("alice")
    stage.joined(bob, alice)
    leader = bob if bob.leads else alice
    leader.sync({bob: assignment("t", 0), alice: assignment("t", 1, 2)})
    return bob, alice


def again(*members: Member, gives: Mapping[Member, tuple[int, ...]]) -> None:
    for member in members:
        member.join()
    leader = next(member for member in gives if member.leads)
    leader.sync({member: assignment("t", *numbers) for member, numbers in gives.items()})


def ask(stage: Stage, **what: object) -> str:
    return stage.trace.why(GROUP, **what)  # type: ignore[arg-type]


# A member.


def test_why_a_member_came() -> None:
    stage = Stage()
    two(stage)
    first, second = ask(stage, member="alice").splitlines()
    assert first == "member alice came at 0.0 s; it led to generation 1"
    assert second == stage.why(1)


def test_why_a_member_left() -> None:
    stage = Stage()
    bob, alice = two(stage)
    bob.leave(reason="closing time")
    alice.join()
    for name in "bob", bob.member_id:
        first, second = ask(stage, member=name).splitlines()
        assert first == "member bob left at 6.0 s (closing time); it led to generation 2"
        assert second == stage.why(2)


def test_a_member_that_left_while_the_others_have_not_joined_again_yet() -> None:
    stage = Stage()
    bob, _ = two(stage)
    bob.leave()
    assert ask(stage, member="bob") == "member bob left at 6.0 s; it led to no generation"


def test_the_last_of_several_of_one_name_is_told() -> None:
    stage = Stage()
    bob, alice = two(stage)
    stage.member("bob").enter()
    bob.join()
    alice.join()
    assert ask(stage, member="bob").startswith("member bob-00000005 came at 6.0 s; it led to generation 2\n")
    assert ask(stage, member="bob-00000003").startswith("member bob-00000003 came at 0.0 s; it led to generation 1\n")


def test_another_subscription_is_a_change_and_other_metadata_is_none() -> None:
    stage = Stage()
    bob, alice = two(stage)
    bob.protocols = {"range": subscription("t", "u")}
    bob.join()
    alice.join()
    told = ask(stage, member="bob")
    assert "bob joined again at 6.0 s with another subscription: t, u instead of t; it led to generation 2\n" in told
    alice.protocols = {"range": subscription("t") + b"\0"}
    alice.join()
    assert ask(stage, member="alice").startswith("member alice came at 0.0 s; ")


def test_a_static_member_that_comes_back() -> None:
    stage = Stage()
    a, b = stage.stable(stage.member("a", instance="i"), stage.member("b"))
    stage.member("a", instance="i").enter()
    assert ask(stage, member="i").startswith(
        "static member i came back as a new member (i-00000005) at 6.0 s; it led to no "
    )
    assert ask(stage, member=a.member_id).startswith("static member i-0000")
    assert ask(stage, member=b.member_id).startswith("member b came at 0.0 s; ")


def test_a_member_that_is_not_there() -> None:
    stage = Stage()
    with pytest.raises(LookupError, match=r"no member 'carol' of group 'g', nor any other$"):
        ask(stage, member="carol")
    two(stage)
    with pytest.raises(LookupError, match=r"no member 'carol' of group 'g', but bob and alice$"):
        ask(stage, member="carol")


def test_a_member_of_which_only_a_generation_speaks() -> None:
    trace = Trace()
    stage = Stage()
    bob, _ = two(stage)
    trace(stage.trace.of(GenerationStarted).one())
    with pytest.raises(
        LookupError, match=r"how member '.*' of group 'g' came or left; the trace has the beginning of generation 1$"
    ):
        trace.why(GROUP, member=bob.member_id)
    assert trace.generations(GROUP, cause=trace[1]) == ()
    assert trace.generations(GROUP, cause=trace[2]) == (1,)
    small = Trace(limit=1)
    small(stage.trace.of(GenerationStarted).one())
    small(stage.trace.of(GenerationStarted).one())
    with pytest.raises(LookupError, match=r"; 3 older entries were dropped$"):
        small.why(GROUP, member="bob")


# A partition.


def test_why_a_member_lost_a_partition_to_another() -> None:
    stage = Stage()
    bob, alice = two(stage)
    carol = stage.member("carol")
    carol.enter()
    stage.advance(500)
    again(bob, alice, gives={bob: (), alice: (1, 2), carol: (0,)})
    told = f"bob lost t-0 with the assignment of generation 2 at 6.5 s, which gave it to carol\n{stage.why(2)}"
    assert ask(stage, member="bob", lost=("t", 0)) == told
    assert ask(stage, lost=("t", 0)) == told
    told = f"carol got t-0 with the assignment of generation 2 at 6.5 s; bob had it before\n{stage.why(2)}"
    assert ask(stage, member="carol", got=("t", 0)) == told
    assert ask(stage, got=("t", 0)) == told
    told = f"bob got t-0 with the assignment of generation 1 at 6.0 s; nobody had it before\n{stage.why(1)}"
    assert ask(stage, member="bob", got=("t", 0)) == told


def test_why_a_member_lost_a_partition_when_it_left() -> None:
    stage = Stage()
    bob, alice = two(stage)
    bob.leave()
    assert ask(stage, lost=("t", 0)) == "bob lost t-0 at 6.0 s: member bob left at 6.0 s; nobody has had it since"
    stage.advance(500)
    again(alice, gives={alice: (0, 1, 2)})
    assert ask(stage, member="bob", lost=("t", 0)) == (
        "bob lost t-0 at 6.0 s: member bob left at 6.0 s; alice got it with the assignment of generation 2 at 6.5 s"
    )
    assert ask(stage, got=("t", 0)).startswith(
        "alice got t-0 with the assignment of generation 2 at 6.5 s; bob had it before\n"
    )


def test_a_partition_that_first_is_taken_and_then_given() -> None:
    """As cooperative assignors do."""
    stage = Stage()
    bob, alice = two(stage)
    (bob if bob.leads else alice).join()
    again(alice if bob.leads else bob, gives={bob: (), alice: (1, 2)})
    lost = ask(stage, member="bob", lost=("t", 0))
    assert lost.startswith(
        "bob lost t-0 with the assignment of generation 2 at 6.0 s, which gave it to nobody; nobody has had it since\n"
    )
    (bob if bob.leads else alice).join()
    again(alice if bob.leads else bob, gives={bob: (), alice: (0, 1, 2)})
    lost = ask(stage, member="bob", lost=("t", 0))
    assert "gave it to nobody; alice got it with the assignment of generation 3 at 6.0 s\n" in lost
    assert lost.splitlines()[1:] == [stage.why(2)]


def test_generations_that_ended_before_they_had_an_assignment_are_told_too() -> None:
    stage = Stage()
    bob, alice = two(stage)
    carol, dave = stage.member("carol"), stage.member("dave")
    carol.enter()
    bob.join()
    alice.join()
    dave.enter()
    again(bob, alice, carol, gives={bob: (), alice: (1, 2), carol: (0,), dave: ()})
    assert ask(stage, lost=("t", 0)).splitlines()[1:] == [stage.why(2), stage.why(3)]


def test_a_static_member_that_comes_back_loses_nothing() -> None:
    stage = Stage()
    a = stage.member("a", instance="i")
    stage.joined(a)
    a.sync({a: assignment("t", 0)})
    came_back = stage.member("a", instance="i")
    came_back.enter()
    with pytest.raises(
        LookupError, match=r"does not say how i lost t-0 of group 'g'; i-.* got it with the assignment of generation 1"
    ):
        ask(stage, member="i", lost=("t", 0))
    came_back.leave()
    assert "i-00000004 lost t-0 at 3.0 s: member " in ask(stage, member="i", lost=("t", 0))


def test_what_nobody_was_given() -> None:
    stage = Stage()
    stage.stable("a")
    with pytest.raises(
        LookupError, match=r"how anybody lost t-7 of group 'g'; the assignments that it has are of nothing$"
    ):
        ask(stage, lost=("t", 7))
    stage = Stage()
    two(stage)
    with pytest.raises(
        LookupError, match=r"how bob got t-7 of group 'g'; the assignments that it has are of t-0, t-1 and t-2$"
    ):
        ask(stage, member="bob", got=("t", 7))
    with pytest.raises(
        LookupError, match=r"how bob got t-2 of group 'g'; alice got it with the assignment of generation 1 at "
    ):
        ask(stage, member="bob", got=("t", 2))


# A cause.


def test_what_a_request_led_to() -> None:
    stage = Stage()
    bob, alice = two(stage)
    bob.leave()
    alice.join()
    request = stage.trace.of(RequestReceived, api="LeaveGroup").entries[0]
    answer = stage.trace.of(ResponseSent, api="LeaveGroup").one()
    removed = stage.trace.of(MemberRemoved).one()
    for cause in (request, request.event, answer, removed):
        assert stage.trace.generations(GROUP, cause=cause) == (2,)
        assert ask(stage, cause=cause) == stage.why(2)
    assert stage.trace.generations(GROUP) == (1, 2)
    assert stage.trace.groups() == (GROUP,)


def test_who_comes_while_the_group_waits_leads_to_the_same_generation() -> None:
    stage = Stage()
    bob, alice = two(stage)
    bob.leave()
    stage.member("carol").enter()
    alice.join()
    for request in stage.trace.of(RequestReceived, api="JoinGroup", client_id="carol").entries[1:]:
        assert stage.trace.generations(GROUP, cause=request) == (2,)
    joined_again = stage.trace.of(RequestReceived, api="JoinGroup", client_id="alice").entries[-1]
    assert stage.trace.generations(GROUP, cause=joined_again) == ()


def test_an_action_that_is_equal_to_another_led_to_its_own_generation() -> None:
    stage = Stage()
    (bob,) = stage.stable("bob")
    for _ in range(2):
        stage.operate("a drill", lambda ctx: stage.group.prepare_rebalance(ctx, "a drill"))
        bob.join()
        bob.sync()
    assert [stage.trace.generations(GROUP, cause=entry) for entry in stage.trace.of(AdminActionRun).entries] == [
        (2,),
        (3,),
    ]


def test_what_led_to_nothing() -> None:
    stage = Stage()
    bob, _ = two(stage)
    bob.heartbeat()
    beat = stage.trace.of(RequestReceived, api="Heartbeat").one()
    with pytest.raises(
        LookupError,
        match=r"no generation or epoch of group 'g' began because of '#\d+ .* asks Heartbeat v4.*'; "
        r"the trace has the beginning of generation 1$",
    ):
        ask(stage, cause=beat)
    assert stage.trace.generations(GROUP, cause=beat) == ()
    with pytest.raises(LookupError, match=r"of group 'h' began .*; the trace has the beginning of none$"):
        stage.trace.why("h", cause=beat)
    other = Stage()
    other.stable("a")
    with pytest.raises(LookupError, match="no entry of"):
        ask(stage, cause=other.trace.of(GenerationStarted).one())


def test_a_generation_that_gets_stuck_is_told_once() -> None:
    stage = Stage()
    twice = [("sticky", b""), ("sticky", b""), ("range", b"")]
    a = stage.member("a", protocol_type="connect", protocols=twice)
    b = stage.member("b", protocol_type="connect", protocols=[("range", b"")])
    b.enter()
    a.enter()
    stage.advance(6_000)
    assert stage.trace.generations(GROUP) == (1,)
    assert "it got stuck" in ask(stage, member="b")
    assert ask(stage, member="b").count("generation 1: ") == 1


# One thing at a time.


def test_it_is_asked_one_thing() -> None:
    stage = Stage()
    cases: list[tuple[dict[str, object], str]] = [
        ({"generation": 1, "member": "bob"}, "not generation and member"),
        ({"epoch": 1, "lost": ("t", 0)}, "not epoch and lost"),
        ({"got": ("t", 0), "lost": ("t", 0), "member": "bob"}, "not lost and got"),
        ({"generation": 1, "epoch": 1}, "not generation and epoch"),
    ]
    for asked, words in cases:
        with pytest.raises(TypeError, match=f"explains one thing, {words}: ask for one after the other"):
            ask(stage, **asked)
    with pytest.raises(TypeError, match="one of the two"):
        stage.trace.why(transaction="billing", member="bob")


@pytest.mark.parametrize("partition", ["orders-3", ("orders",), ("orders", "3"), 3])
def test_a_partition_is_a_topic_and_a_number(partition: object) -> None:
    with pytest.raises(TypeError, match=r'lost=\("orders", 3\) is a topic and the number of a partition, not'):
        ask(Stage(), lost=partition)
    with pytest.raises(TypeError, match=r'got=\("orders", 3\) is a topic'):
        ask(Stage(), got=partition)


# A consumer group (KIP-848).


@pytest.mark.asyncio
async def test_of_a_consumer_group() -> None:
    async with Cluster(topics={"orders": 2}, clock="manual") as kafka:
        a, b = (kafka.manual_consumer("app", "orders", client_id=name) for name in "ab")
        await a.reconcile()
        await kafka.clock.advance(1)
        for member in (b, a, a, b):
            await member.reconcile()
        why, trace = kafka.trace.why, kafka.trace
        first, second = why("app", member="b").splitlines()
        assert first == "member b came at 1.0 s; it led to epoch 3"
        assert second == why("app", 3) == why("app", epoch=3) == why("app")
        moved = next(iter(b.assigned))
        assert why("app", member="a", lost=moved).splitlines() == [
            f"a lost {moved[0]}-{moved[1]} with the target assignment of epoch 3 at 1.0 s, which gave it to b",
            second,
        ]
        assert why("app", got=moved).splitlines()[1:] == [second]
        assert trace.generations("app") == (2, 3)
        bump = trace.of(GroupEpochBumped, epoch=3).one()
        assert trace.generations("app", cause=bump) == (3,)
        assert why("app", cause=bump) == second
        await b.leave()
        assert why("app", member="b") == f"member b left at 1.0 s; it led to epoch 4\n{why('app', 4)}"
        assert why("app", lost=moved) == (
            f"b lost {moved[0]}-{moved[1]} at 1.0 s: member b left at 1.0 s; nobody has had it since"
        )
        with pytest.raises(
            LookupError, match=r"the beginning of generation 9 of group 'app', but that of the epochs 2, 3 and 4$"
        ):
            why("app", 9)


@pytest.mark.asyncio
async def test_a_member_of_a_consumer_group_that_changes_or_is_away() -> None:
    async with Cluster(topics={"orders": 1, "bills": 1}, clock="manual") as kafka:
        a = kafka.manual_consumer("app", "orders", client_id="a", instance_id="i")
        await a.reconcile()
        await a.subscribe("orders", "bills")
        told = kafka.trace.why("app", member="i")
        assert told.startswith("member i subscribed to bills and orders at 0.0 s; it led to epoch 3\n")
        assert told == kafka.trace.why("app", member="a")
        await a.leave_for_now()
        assert kafka.trace.why("app", member="i") == (
            "static member i left for now at 0.0 s, and keeps what it has; it led to no generation"
        )
