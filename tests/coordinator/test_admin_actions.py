"""What a test does to a group from outside of the protocol is what would happen by itself."""

from collections.abc import Callable
from typing import Any

import pytest

from groupcoord.coordinator import forced_actions
from groupcoord.coordinator.classic.classic_group_state import GroupState
from groupcoord.coordinator.events import GenerationStarted, MemberRemoved, RebalanceStarted, StaticMemberReplaced
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Append
from groupcoord.core.events import AdminAction
from groupcoord.protocol.errors import ErrorCode
from tests.coordinator.world import GROUP, NEW_MEMBER_MS, World

CAUSE = AdminAction("the test")


def run(world: World, act: Callable[..., None], *arguments: Any) -> None:
    ctx = HandlerContext(world.now_ms, CAUSE)
    act(world.coordinator, ctx, GROUP, *arguments)
    world.carry_out(ctx.effects)


class TestForceRebalance:
    def test_all_members_have_to_join_again(self) -> None:
        world = World()
        a, b = world.stable("a", "b")
        run(world, forced_actions.force_rebalance, "I say so")
        assert world.group.state is GroupState.PREPARING_REBALANCE
        assert a.heartbeat().error == b.heartbeat().error == ErrorCode.REBALANCE_IN_PROGRESS
        told = world.seen(RebalanceStarted)[-1]
        assert (told.reason, told.cause) == ("I say so", CAUSE)
        world.joined(a, b)
        assert world.group.generation_id == 2

    def test_also_while_they_wait_for_their_assignment(self) -> None:
        world = World()
        a, b = world.member("a"), world.member("b")
        world.joined(a, b)
        follower = b if a.leads else a
        waiting = follower.sync()
        run(world, forced_actions.force_rebalance, "I say so")
        assert waiting.error == ErrorCode.REBALANCE_IN_PROGRESS

    def test_not_while_they_are_asked_already(self) -> None:
        world = World()
        world.stable("a")
        run(world, forced_actions.force_rebalance, "I say so")
        with pytest.raises(ValueError, match="group 'g' is waiting for its members to join already"):
            run(world, forced_actions.force_rebalance, "I say so")

    def test_not_where_nobody_is(self) -> None:
        world = World()
        (a,) = world.stable("a")
        a.leave()
        with pytest.raises(ValueError, match="group 'g' has no members"):
            run(world, forced_actions.force_rebalance, "I say so")


class TestExpireMember:
    def test_it_is_what_the_timer_does(self) -> None:
        """The same events, at another time and with another cause."""
        by_timer, by_action = World(), World()
        (c, _), (a, b) = by_timer.stable("a", "b"), by_action.stable("a", "b")
        for _ in range(2):
            by_timer.advance(5_000)
            c.heartbeat()
        run(by_action, forced_actions.expire_member, b.member_id)
        (one,), (other,) = by_timer.seen(MemberRemoved), by_action.seen(MemberRemoved)
        assert one.text() == other.text()
        assert other.cause == CAUSE
        assert by_timer.seen(RebalanceStarted)[-1].text() == by_action.seen(RebalanceStarted)[-1].text()
        assert b.heartbeat().error == ErrorCode.UNKNOWN_MEMBER_ID
        assert a.heartbeat().error == ErrorCode.REBALANCE_IN_PROGRESS
        assert by_action.deadline("session", b.member_id) is None

    def test_somebody_who_was_only_handed_an_id(self) -> None:
        world = World()
        (a,) = world.stable("a")
        handed = world.member("b").join().answer.member_id
        run(world, forced_actions.expire_member, handed)
        assert not world.group.pending_join_members
        assert world.seen(MemberRemoved)[-1].member == handed
        assert a.heartbeat().error == ErrorCode.NONE

    def test_a_newcomer_that_waits_may_be_missed(self) -> None:
        world = World()
        a = world.member("a")
        waiting = a.enter()
        assert world.deadline("session", a.member_id) == NEW_MEMBER_MS
        run(world, forced_actions.expire_member, a.member_id)
        assert waiting.error == ErrorCode.UNKNOWN_MEMBER_ID

    def test_not_one_that_waits_for_an_answer(self) -> None:
        world = World()
        a, _ = world.stable("a", "b")
        waiting = a.join(protocols={"range": b"x"})
        assert waiting.parked
        with pytest.raises(ValueError, match="waits for an answer, and while it does, its session does not run out"):
            run(world, forced_actions.expire_member, a.member_id)

    def test_not_somebody_else(self) -> None:
        world = World()
        (a,) = world.stable("a")
        with pytest.raises(ValueError, match=f"group 'g' has no member 'x'; its members: '{a.member_id}'"):
            run(world, forced_actions.expire_member, "x")
        a.leave()
        with pytest.raises(ValueError, match="its members: none"):
            run(world, forced_actions.expire_member, "x")


class TestFenceInstance:
    def test_the_member_that_had_the_id_is_fenced(self) -> None:
        world = World()
        a, b = world.stable(world.member("a", instance="one"), "b")
        run(world, forced_actions.fence_instance, "one")
        assert a.heartbeat().error == ErrorCode.FENCED_INSTANCE_ID
        assert b.heartbeat().error == ErrorCode.NONE
        assert (world.group.state, world.group.generation_id) == (GroupState.STABLE, 1)
        (told,) = world.seen(StaticMemberReplaced)
        assert (told.old_member, told.rebalances, told.cause) == (a.member_id, False, CAUSE)

    def test_the_newcomer_is_missed_in_its_time(self) -> None:
        world = World()
        a, b = world.stable(world.member("a", instance="one", session_ms=12_000), "b")
        run(world, forced_actions.fence_instance, "one")
        for _ in range(3):
            world.advance(4_000)
            b.heartbeat()
        told = world.seen(MemberRemoved)[-1]
        assert told.member.startswith("one-")
        assert told.member != a.member_id
        assert len(world.group.members) == 1

    def test_who_waits_under_the_id_is_told(self) -> None:
        world = World()
        a, b = world.stable(world.member("a", instance="one"), "b")
        waiting = a.join(protocols={"range": b"x"})
        run(world, forced_actions.fence_instance, "one")
        assert waiting.error == ErrorCode.FENCED_INSTANCE_ID
        b.join()
        assert world.seen(GenerationStarted)[-1].generation == 2

    def test_not_an_id_that_nobody_has(self) -> None:
        world = World()
        world.stable(world.member("a", instance="one"))
        with pytest.raises(ValueError, match="group 'g' has no static member 'two'; its static members: 'one'"):
            run(world, forced_actions.fence_instance, "two")


def test_a_group_has_to_be_there() -> None:
    world = World()
    with pytest.raises(ValueError, match="there is no group 'g'; groups: none"):
        run(world, forced_actions.force_rebalance, "I say so")
    world.stable(world.member("a", group="other"), "b")
    with pytest.raises(ValueError, match="no static member"):
        run(world, forced_actions.fence_instance, "one")


def test_and_here() -> None:
    world = World()
    world.stable("a")
    world.resign(world.coordinator.shard_of(GROUP).partition)
    with pytest.raises(ValueError, match="another broker has partition"):
        run(world, forced_actions.expire_member, "a")


def test_an_instance_over_which_kafka_fails_is_not_fenced() -> None:
    world = World()
    world.stable(world.member("a", instance="one"))
    world.group.supported_protocols.clear()
    ctx = HandlerContext(world.now_ms, CAUSE)
    forced_actions.fence_instance(world.coordinator, ctx, GROUP, "one")
    assert not any(isinstance(effect, Append) for effect in ctx.effects)
