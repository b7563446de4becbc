"""The attack runs and reports its figures. In which order requests are served is tested in ``tests/server``, without a
clock."""

import math

import pytest

from tests.reliability import fairness

pytestmark = pytest.mark.slow


def test_a_quiet_client_is_answered_beside_greedy_ones() -> None:
    outcome = fairness.attack(20, requests=500, seconds=0.2, bound_ms=math.inf)
    assert outcome.problems == ()
    assert outcome.tried.startswith("20 clients that send 500 Metadata requests each at once, and ")
    assert "a heartbeat waits" in outcome.result


def test_who_waits_too_long_is_a_problem() -> None:
    (problem,) = fairness.attack(1, requests=1, seconds=0, bound_ms=-math.inf).problems
    assert problem.startswith("the quiet client waited ")
