import pytest

from groupcoord.testing.simulation.plan import Action, Kind, MemberPlan, Plan, duration

A = MemberPlan(name="a", assignors=("range", "sticky"), topics=("orders",), instance_id="one")
ACTIONS = tuple(Action(at_ms=at_ms, kind=kind, for_ms=2_500, amount=1) for at_ms, kind in enumerate(Kind))
PLAN = Plan(members=(A,), topics={"orders": 2}, actions=ACTIONS, heal_ms=60_000)


def test_every_action_can_be_said() -> None:
    texts = [action.text((A,)) for action in ACTIONS]
    assert texts[list(Kind).index(Kind.CRASH)] == "a crashes, and is started again 2.5 s later"
    assert "NOT_LEADER_OR_FOLLOWER" in texts[list(Kind).index(Kind.FAIL_APPEND)]
    assert not any("{" in text for text in texts)


def test_a_member_can_be_said() -> None:
    assert A.text().startswith("a offers range, sticky, wants orders, static as one; session 45 s")
    plain = MemberPlan(name="b", assignors=("range",), topics=("orders",))
    assert "static" not in plain.text()


def test_keeping_some_actions_keeps_their_numbers() -> None:
    few = PLAN.keep([7, 2])
    assert [number for number, _ in few.numbered()] == [2, 7]
    assert [action.at_ms for action in few.actions] == [2, 7]
    assert few.keep([7]).numbered() == [(7, ACTIONS[7])]
    with pytest.raises(ValueError, match="only the actions 2, 7"):
        few.keep([3])
    with pytest.raises(ValueError, match="none"):
        few.keep([]).keep([3])


def test_a_plan_knows_its_end() -> None:
    assert PLAN.recovery_ms == 300_000 + 2 * 45_000 + 3 * 60_000
    assert PLAN.end_ms == 60_000 + PLAN.recovery_ms


def test_times_are_said_for_people() -> None:
    assert (duration(999), duration(1_500), duration(60_000)) == ("999 ms", "1.5 s", "60 s")
