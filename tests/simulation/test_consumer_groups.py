"""Lives of consumer groups and of groups that migrate; and every way in which their invariants can be broken."""

import dataclasses
from types import SimpleNamespace
from typing import Any

import pytest

from groupcoord.coordinator.consumer.consumer_group_sessions import ConsumerGroupSessions
from groupcoord.core.effects import Call
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.messages import ConsumerGroupHeartbeatResponse
from groupcoord.simulation import (
    CONSUMER_OPTIONS,
    ActionKind,
    MemberPlan,
    PlannedAction,
    SimulationPlan,
    plan_from_seed,
    simulate_plan,
)
from groupcoord.simulation.actions import GROUP_KINDS, TOPIC_ACTIONS
from groupcoord.simulation.invariants.base import InvariantViolation
from groupcoord.simulation.invariants.consumer_groups import ConsumerReplay, MonotonicEpochs
from tests.simulation.runs import run

pytestmark = pytest.mark.slow

A = Call(1, 1, APIS[ApiKey.CONSUMER_GROUP_HEARTBEAT], 1, "a", "/127.0.0.1", 0)


def plan_with(*actions: PlannedAction, other: str = "consumer", static: bool = False) -> SimulationPlan:
    topics = ("orders", "refunds") if other == "consumer" else ("orders",)
    members = tuple(
        MemberPlan(
            name=name,
            assignors=("range",),
            topics=topics,
            instance_id=f"instance-{name}" if static else None,
            session_timeout_ms=10_000,
            max_poll_interval_ms=10_000,
            commit_interval_ms=20_000,
            protocol=protocol,
        )
        for name, protocol in (("a", "consumer"), ("b", other))
    )
    return SimulationPlan(
        members=members,
        topics={"orders": 4, "payments": 1, "refunds": 2},
        actions=actions,
        heal_ms=60_000,
        key=11,
        brokers=3,
    )


ALONE = [
    (kind, other)
    for kind in GROUP_KINDS
    for other in ("consumer", "classic")
    if kind is not ActionKind.TWIN and (other == "consumer" or kind not in TOPIC_ACTIONS)
]


@pytest.mark.parametrize(("kind", "other"), ALONE)
def test_each_thing_alone(kind: ActionKind, other: str) -> None:
    first = PlannedAction(at_ms=10_000, kind=kind, for_ms=5_500, amount=700)
    again = PlannedAction(at_ms=14_000, kind=kind, for_ms=300, amount=2)
    run(plan_with(first, again, other=other))


def test_a_twin_finds_the_name_taken() -> None:
    result = run(plan_with(PlannedAction(at_ms=20_000, kind=ActionKind.TWIN, for_ms=20_000), static=True))
    assert any("UNRELEASED_INSTANCE_ID" in line.text for line in result.lines)


def test_a_group_goes_over_and_back() -> None:
    back = PlannedAction(at_ms=20_000, kind=ActionKind.SWITCH, member=0, for_ms=500)
    over = PlannedAction(at_ms=40_000, kind=ActionKind.SWITCH, member=1, for_ms=500)
    told = [line.text for line in run(plan_with(back, over, other="classic")).lines]
    assert any("is a classic group now" in text for text in told)
    assert any("is a consumer group now" in text for text in told)


@pytest.mark.untraced  # plans that are written for one thing each reach every line
@pytest.mark.parametrize("seed", range(12))
def test_skipping_changes_nothing(seed: int) -> None:
    run(plan_from_seed(seed, options=CONSUMER_OPTIONS))


def context() -> Any:
    return SimpleNamespace(
        event_queue=SimpleNamespace(now_ms=0),
        brokers=SimpleNamespace(
            consumer_group=None, has_coordinator=True, shard=SimpleNamespace(committed=SimpleNamespace(pending=()))
        ),
    )


def answer(epoch: int) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(member_id="a", member_epoch=epoch)


def test_a_member_is_told_an_earlier_epoch() -> None:
    invariant = MonotonicEpochs(context())
    invariant.response_sent(A, answer(3))
    with pytest.raises(InvariantViolation, match="told epoch 2, and was told 3 before"):
        invariant.response_sent(A, answer(2))
    invariant.response_sent(A, answer(-1))
    invariant.response_sent(A, answer(2))


def test_a_group_that_is_lost() -> None:
    invariant = ConsumerReplay(context())
    invariant.coordinator_unloading()
    invariant.coordinator_loaded()
    invariant._expected = SimpleNamespace()  # type: ignore[assignment]
    with pytest.raises(InvariantViolation, match="not there any more"):
        invariant.coordinator_loaded()


def test_a_topic_that_is_gone_does_not_grow() -> None:
    gone = PlannedAction(at_ms=10_000, kind=ActionKind.DELETE, for_ms=20_000)
    run(plan_with(gone, PlannedAction(at_ms=15_000, kind=ActionKind.GROW)))


@pytest.mark.parametrize("policy", ["upgrade", "downgrade", "disabled"])
def test_in_the_end_all_have_the_protocol_that_is_allowed(policy: str) -> None:
    run(dataclasses.replace(plan_with(other="classic"), migration_policy=policy))


def test_a_member_without_a_session() -> None:
    def remember(self: ConsumerGroupSessions, *_: object) -> None:
        self.cancel_timers()

    with pytest.MonkeyPatch.context() as patching:
        patching.setattr(ConsumerGroupSessions, "restart_session", remember)
        violation = simulate_plan(plan_with()).violation
    assert violation is not None
    assert "has no session timer" in violation.reason


def test_a_member_has_nothing_from_a_response_on_a_connection_that_was_reset() -> None:
    """Appends are slow: the response to the heartbeat before has partitions that are given to another member with the next."""
    run(plan_from_seed(940754, options=CONSUMER_OPTIONS, keep=(0, 1)))


def test_a_static_member_that_left_for_now_when_it_had_partitions_to_give_back_is_in_no_hurry() -> None:
    """Its rebalance timer ends without a consequence; its session timer runs."""
    run(plan_from_seed(941069, options=CONSUMER_OPTIONS, keep=(3, 4)))


def test_of_a_group_whose_first_records_are_never_stored_nothing_is_loaded() -> None:
    run(plan_from_seed(9910021, options=CONSUMER_OPTIONS, keep=(0, 1)))


def test_a_group_that_was_loaded_knows_only_the_assignor_that_was_chosen() -> None:
    result = run(plan_from_seed(9910114, options=CONSUMER_OPTIONS, keep=(1, 7)))
    assert any("is refused with INCONSISTENT_GROUP_PROTOCOL" in line.text for line in result.lines)
