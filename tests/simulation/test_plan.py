import random

import pytest

from groupcoord.simulation.actions import (
    BROKER_ACTIONS,
    CLASSIC_KINDS,
    FAILURES,
    GROUP_KINDS,
    TOPIC_ACTIONS,
    ActionKind,
)
from groupcoord.simulation.plan import (
    CHANGING_TOPIC,
    CONSUMER_OPTIONS,
    TRANSACTION_OPTIONS,
    MemberPlan,
    PlannedAction,
    PlanOptions,
    SimulationPlan,
    duration,
    generate,
    plan_from_seed,
)

A = MemberPlan(name="a", assignors=("range", "sticky"), topics=("orders",), instance_id="one")
ACTIONS = tuple(PlannedAction(at_ms=at_ms, kind=kind, for_ms=2_500, amount=1) for at_ms, kind in enumerate(ActionKind))
PLAN = SimulationPlan(members=(A,), topics={"orders": 2}, actions=ACTIONS, heal_ms=60_000)


def test_every_action_can_be_said() -> None:
    texts = [action.text((A,)) for action in ACTIONS]
    assert texts[list(ActionKind).index(ActionKind.CRASH)] == "a crashes, and is started again 2.5 s later"
    assert "NOT_LEADER_OR_FOLLOWER" in texts[list(ActionKind).index(ActionKind.FAIL_APPEND)]
    assert not any("{" in text for text in texts)


def test_a_member_can_be_said() -> None:
    assert A.text().startswith("a has the assignors range, sticky, subscribes to orders, static as one; session 45 s")
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


def test_a_seed_is_a_plan() -> None:
    assert plan_from_seed(3) == plan_from_seed(3)
    assert plan_from_seed(3) != plan_from_seed(4)
    assert plan_from_seed(3, keep=[0]).actions == plan_from_seed(3).actions[:1]


def test_plans_make_sense() -> None:
    kinds = set()
    for seed in range(150):
        plan = plan_from_seed(seed)
        assert 1 <= len(plan.members) <= 4
        assert 4 <= len(plan.actions) <= 14
        assert list(plan.actions) == sorted(plan.actions, key=lambda action: action.at_ms)
        for action in plan.actions:
            kinds.add(action.kind)
            static = plan.members[action.member].instance_id is not None
            assert action.kind is not ActionKind.TWIN or static
            assert action.kind is not ActionKind.SUBSCRIBE or not static
            assert action.kind is not ActionKind.MOVE or plan.brokers > 1
            assert action.kind not in BROKER_ACTIONS or action.member == 0
        for member in plan.members:
            assert member.max_poll_interval_ms >= 2 * member.heartbeat_interval_ms
        assignor_mixes = [set(member.assignors) for member in plan.members]
        assert set.intersection(*assignor_mixes), "the members have no assignor in common"
    assert kinds == set(CLASSIC_KINDS)


def test_plans_of_consumer_groups_make_sense() -> None:
    kinds, policies = set(), set()
    for seed in range(300):
        plan = plan_from_seed(seed, options=CONSUMER_OPTIONS)
        protocols = {member.protocol for member in plan.members}
        kinds |= {action.kind for action in plan.actions}
        policies.add(plan.migration_policy)
        assert (CHANGING_TOPIC in plan.topics) <= (protocols == {"consumer"})
        assert not plan.may_migrate or CHANGING_TOPIC not in plan.topics
    assert kinds == set(GROUP_KINDS)
    assert policies == {"bidirectional", "upgrade", "downgrade", "disabled"}
    assert (
        "consumer protocol"
        in MemberPlan(name="b", assignors=("range",), topics=("orders",), protocol="consumer").text()
    )


def test_plans_with_transactions_make_sense() -> None:
    plans = [plan_from_seed(seed, options=TRANSACTION_OPTIONS) for seed in range(300)]
    kinds = {action.kind for plan in plans for action in plan.actions}
    assert kinds == set(ActionKind) - TOPIC_ACTIONS - FAILURES - {ActionKind.SWITCH}
    for plan in plans:
        assert plan.is_transactional
        assert plan.heal_ms < plan.last_begin_ms < plan.end_ms
        assert len({member.protocol for member in plan.members}) == 1
        for action in plan.actions:
            assert not action.of_transactions or action.error == "NOT_ENOUGH_REPLICAS"
        for member in plan.members:
            assert member.transactions is not None
            assert 2 * member.transactions.processing_ms < member.transactions.timeout_ms


def test_more_members_than_letters() -> None:
    plan = generate(random.Random(1), PlanOptions(members=(30, 30)))
    assert [member.name for member in plan.members[24:28]] == ["y", "z", "a1", "b1"]


def test_a_mix_in_which_nothing_can_be_done() -> None:
    with pytest.raises(ValueError, match="MOVE"):
        generate(random.Random(1), PlanOptions(kinds=(ActionKind.MOVE,), brokers=(1,)))
    assert not generate(random.Random(1), PlanOptions(kinds=(), actions=(0, 0))).actions
