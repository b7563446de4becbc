import random

import pytest

from groupcoord.testing.simulation.front import plan_of
from groupcoord.testing.simulation.generate import Mix, generate
from groupcoord.testing.simulation.plan import OF_BROKERS, Kind


def test_a_seed_is_a_plan() -> None:
    assert plan_of(3) == plan_of(3)
    assert plan_of(3) != plan_of(4)
    assert plan_of(3, keep=[0]).actions == plan_of(3).actions[:1]


def test_plans_make_sense() -> None:
    kinds = set()
    for seed in range(150):
        plan = plan_of(seed)
        assert 1 <= len(plan.members) <= 4
        assert 4 <= len(plan.actions) <= 14
        assert list(plan.actions) == sorted(plan.actions, key=lambda action: action.at_ms)
        for action in plan.actions:
            kinds.add(action.kind)
            static = plan.members[action.member].instance_id is not None
            assert action.kind is not Kind.TWIN or static
            assert action.kind is not Kind.SUBSCRIBE or not static
            assert action.kind is not Kind.MOVE or plan.brokers > 1
            assert action.kind not in OF_BROKERS or action.member == 0
        for member in plan.members:
            assert member.max_poll_interval_ms >= 2 * member.heartbeat_interval_ms
        offers = [set(member.assignors) for member in plan.members]
        assert set.intersection(*offers), "somebody could not be a member"
    assert kinds == set(Kind)


def test_more_members_than_letters() -> None:
    plan = generate(random.Random(1), Mix(members=(30, 30)))
    assert [member.name for member in plan.members[24:28]] == ["y", "z", "a1", "b1"]


def test_a_mix_in_which_nothing_can_be_done() -> None:
    with pytest.raises(ValueError, match="MOVE"):
        generate(random.Random(1), Mix(kinds=(Kind.MOVE,), brokers=(1,)))
    assert not generate(random.Random(1), Mix(kinds=(), actions=(0, 0))).actions
