from unittest.mock import patch

from groupcoord.client import actions as a
from groupcoord.testing.simulation import MemberPlan, Plan, World, process, simulate_plan
from groupcoord.testing.simulation.process import Process

PLAN = Plan(
    members=(MemberPlan(name="a", assignors=("range",), topics=("orders",)),),
    topics={"orders": 2},
    actions=(),
    heal_ms=10_000,
)


def running() -> tuple[World, Process]:
    world = World(PLAN)
    world.run()
    (one,) = world.processes()
    return world, one


def test_it_can_be_shown() -> None:
    assert repr(running()[1]).startswith("<Process a <Membership")


def test_another_coordinator_has_other_connections() -> None:
    world, one = running()
    rested = one.is_at_rest
    coordinator = one.membership.coordinator
    assert coordinator is not None
    one.feed([a.Disconnect(coordinator)])
    assert (rested, one.is_at_rest) == (True, False)
    assert world.processes() == [one]


def test_not_every_error_is_the_end() -> None:
    world, one = running()
    one.feed([a.Raise(ValueError("a callback"), final=False)])
    assert world.processes() == [one]


def test_an_assignor_that_fails_ends_the_leader() -> None:
    with patch.object(process, "run", side_effect=ValueError("nobody gets anything")):
        broken = simulate_plan(PLAN).broken
    assert broken is not None
    assert broken.name == "no-surprise"
    assert "nobody gets anything" in broken.what
