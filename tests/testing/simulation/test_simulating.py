from typing import Any
from unittest.mock import patch

import pytest

from groupcoord.protocol.messages import HeartbeatResponse
from groupcoord.testing.simulation import Action, Kind, MemberPlan, Plan, brokers, explain, simulate, simulate_plan
from groupcoord.testing.simulation.ablations import ABLATIONS
from groupcoord.testing.simulation.ahead import Ahead
from groupcoord.testing.simulation.brokers import Brokers

MEMBERS = tuple(
    MemberPlan(name=name, assignors=("range",), topics=("orders",), max_poll_interval_ms=10_000) for name in "ab"
)
ACTIONS = (
    Action(at_ms=15_000, kind=Kind.REJOIN),
    Action(at_ms=20_000, kind=Kind.CRASH, member=0, for_ms=300),
    Action(at_ms=25_000, kind=Kind.REJOIN, member=1),
    Action(at_ms=100_000, kind=Kind.RESET),
)
PLAN = Plan(members=MEMBERS, topics={"orders": 2}, actions=ACTIONS, heal_ms=110_000)


def test_what_is_well_has_nothing_to_explain() -> None:
    outcome = simulate(plan=PLAN)
    assert outcome.ok
    assert "every promise was kept" in outcome.text()
    with pytest.raises(ValueError, match="nothing to explain"):
        explain(outcome)


def test_a_failure_is_told_with_what_it_needs() -> None:
    with ABLATIONS["leader-stays"].applied():
        outcome = simulate(plan=PLAN)
        assert not simulate(plan=PLAN, shrink=False).ok
        text = outcome.text(shown=5)
    assert outcome.broken is not None
    assert outcome.broken.name == "leader-is-member"
    assert [number for number, _ in outcome.plan.numbered()] == [1]
    assert "lines before)" in text
    assert text.count("\n") < 20
    assert "broken: leader-is-member at " in text


def test_code_that_raises_breaks_a_promise() -> None:
    with patch.object(Brokers, "reload", side_effect=KeyError("oh")):
        outcome = simulate(
            plan=Plan(members=MEMBERS, topics={"orders": 2}, actions=(Action(at_ms=9, kind=Kind.RELOAD),), heal_ms=50)
        )
    assert str(outcome.broken) == "no-crash at 0.009 s: KeyError: 'oh'"


def _deaf(self: Ahead, *args: Any, **named: Any) -> None:
    with patch.object(self._membership, "expire", return_value=[]):
        _RIGHT(self, *args, **named)


_RIGHT = Ahead._exchange


@pytest.mark.parametrize(
    ("where", "name", "wrong"),
    [
        (Ahead, "_exchange", _deaf),
        (Brokers, "beat_ahead", lambda *_: HeartbeatResponse(error_code=27)),
        (brokers, "_is_fine", lambda _: False),
    ],
)
def test_what_cannot_be_skipped_is_simulated(where: Any, name: str, wrong: Any) -> None:
    with patch.object(where, name, wrong):
        outcome = simulate_plan(PLAN, tell=True)
    assert outcome.ok
    assert outcome.lines == simulate_plan(PLAN, skip=False, tell=True).lines


def test_a_failure_of_skipping_itself_is_still_one() -> None:
    right = Ahead._exchange

    def wrong(self: Ahead, *args: Any, **named: Any) -> None:
        right(self, *args, **named)
        raise KeyError("ahead")

    with patch.object(Ahead, "_exchange", wrong):
        outcome = simulate(plan=PLAN)
    assert not outcome.ok
