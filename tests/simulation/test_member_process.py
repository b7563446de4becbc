from unittest.mock import patch

from groupcoord.client.member import action_executor
from groupcoord.client.member import actions as a
from groupcoord.simulation import MemberPlan, SimulatedWorld, SimulationPlan, simulate_plan
from groupcoord.simulation.member_process import MemberProcess

PLAN = SimulationPlan(
    members=(MemberPlan(name="a", assignors=("range",), topics=("orders",)),),
    topics={"orders": 2},
    actions=(),
    heal_ms=10_000,
)


def running() -> tuple[SimulatedWorld, MemberProcess]:
    world = SimulatedWorld(PLAN)
    world.run()
    (one,) = world.processes()
    return world, one


def test_it_can_be_shown() -> None:
    assert repr(running()[1]).startswith("<MemberProcess a <Membership")


def test_another_coordinator_has_other_connections() -> None:
    world, one = running()
    rested = one.is_at_rest
    coordinator = one.membership.coordinator
    assert coordinator is not None
    one.execute_actions([a.Disconnect(coordinator)])
    assert (rested, one.is_at_rest) == (True, False)
    assert world.processes() == [one]


def test_not_every_error_is_the_end() -> None:
    world, one = running()
    one.execute_actions([a.RaiseError(ValueError("a callback"), final=False)])
    assert world.processes() == [one]


def test_an_assignor_that_fails_ends_the_leader() -> None:
    with patch.object(action_executor, "run_assignor", side_effect=ValueError("no assignment")):
        violation = simulate_plan(PLAN).violation
    assert violation is not None
    assert violation.name == "no-unexpected-exit"
    assert "no assignment" in violation.reason
