"""Members that produce, and every way in which what they are promised can be broken."""

from typing import Any

import pytest

from groupcoord.client.client_errors import ClientError
from groupcoord.simulation import (
    PRODUCER_OPTIONS,
    ActionKind,
    InvariantViolation,
    MemberPlan,
    PlannedAction,
    ProducingPlan,
    SimulatedWorld,
    SimulationPlan,
    SimulationResult,
    plan_from_seed,
    simulate_plan,
)
from groupcoord.simulation.invariants.producers import AcknowledgedIsStored, RecordsEnd, RecordsInOrder, StoredOnce
from groupcoord.simulation.plan import OUTPUT_TOPIC
from tests.simulation import runs


def plan_with(*actions: PlannedAction, brokers: int = 1, members: str = "a", **producing: int) -> SimulationPlan:
    return SimulationPlan(
        members=tuple(
            MemberPlan(
                name=name,
                assignors=("range",),
                topics=("orders",),
                session_timeout_ms=10_000,
                max_poll_interval_ms=10_000,
                producing=ProducingPlan(**producing),
            )
            for name in members
        ),
        topics={"orders": 2, OUTPUT_TOPIC: 2},
        actions=actions,
        heal_ms=20_000,
        key=7,
        brokers=brokers,
    )


def run(plan: SimulationPlan) -> SimulationResult:
    result = simulate_plan(plan, record=True)
    assert result.ok, result.text()
    return result


def told(result: SimulationResult) -> str:
    return "\n".join(f"{line.source}: {line.text}" for line in result.lines)


def test_each_step_of_a_producer_is_told() -> None:
    text = told(run(plan_with()))
    for step in (
        "is producer 0 with epoch 0",
        "is opened, for",
        "because it has waited for linger_ms",
        "is acknowledged",
    ):
        assert step in text


def test_a_lost_answer_is_sent_again_and_stored_once() -> None:
    lost = PlannedAction(at_ms=5_000, kind=ActionKind.LOSE_ANSWERS)
    assert "for the 2. time because the back-off is over" in told(run(plan_with(lost)))


def test_a_leader_that_moves_is_found() -> None:
    moves = [
        PlannedAction(at_ms=at_ms, kind=ActionKind.MOVE_OUTPUT, amount=at_ms) for at_ms in range(5_000, 9_000, 700)
    ]
    text = told(run(plan_with(*moves, brokers=3)))
    assert "NOT_LEADER_OR_FOLLOWER" in text
    assert "because its partition has another leader" in text


def test_what_cannot_be_delivered_is_given_up() -> None:
    cut = PlannedAction(at_ms=4_000, kind=ActionKind.BLACKOUT, for_ms=14_000)
    assert "is given up" in told(run(plan_with(cut, delivery_timeout_ms=10_005)))


def test_who_leaves_waits_for_what_it_has_sent() -> None:
    cut = PlannedAction(at_ms=9_900, kind=ActionKind.PARTITION, for_ms=2_000)
    leave = PlannedAction(at_ms=10_300, kind=ActionKind.LEAVE, for_ms=5_000)
    lines = [line for line in run(plan_with(cut, leave)).lines if line.source == "a" and line.at_ms > leave.at_ms]
    acknowledged = next(line for line in lines if "is acknowledged" in line.text)
    leaves = next(line for line in lines if line.text.startswith("leaves app"))
    assert leave.at_ms + 1_000 < acknowledged.at_ms < leaves.at_ms


def test_a_plan_says_how_its_members_produce() -> None:
    assert (
        plan_with()
        .members[0]
        .text()
        .endswith("and produces every 500 ms: batches of 200 bytes, linger 5 ms, 5 in flight, delivery 30 s")
    )


def test_a_producer_that_has_failed_ends_its_process() -> None:
    world = SimulatedWorld(plan_with())
    world.run()
    (process,) = world.processes()
    application: Any = process._application
    application.sender.failure = ClientError("it cannot go on")
    with pytest.raises(InvariantViolation, match=r"no-unexpected-exit.* it cannot go on"):
        application._poll()


@pytest.mark.untraced  # other plans reach every line, too
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_skipping_changes_nothing(seed: int) -> None:
    runs.run(plan_from_seed(seed, options=PRODUCER_OPTIONS))


# --- the invariants


@pytest.fixture(scope="module", name="ended")
def ended_world() -> Any:
    """A world in which a member has produced, for tests that change nothing in it."""
    world = SimulatedWorld(plan_with())
    world.run()
    return world


def test_records_in_order(ended: Any) -> None:
    invariant = RecordsInOrder(ended)
    invariant.finish()
    invariant.stored = lambda: {0: [b"p:1", b"q:0", b"p:3", b"p:1"], 1: [b"p:2"]}  # type: ignore[method-assign]
    invariant.finish()  # the repeated one is another promise
    invariant.stored = lambda: {0: [b"p:3", b"p:1"]}  # type: ignore[method-assign]
    with pytest.raises(InvariantViolation, match="b'p:1' is behind b'p:3' in invoices-0"):
        invariant.finish()


def test_stored_once(ended: Any) -> None:
    invariant = StoredOnce(ended)
    invariant.finish()
    invariant.stored = lambda: {0: [b"p:1"], 1: [b"p:1"]}  # type: ignore[method-assign]
    with pytest.raises(InvariantViolation, match="b'p:1' is stored again in invoices-1"):
        invariant.finish()


def test_acknowledged_is_stored(ended: Any) -> None:
    invariant = AcknowledgedIsStored(ended)
    first = invariant.stored()[0][0]
    invariant.record_ended(first, ((OUTPUT_TOPIC, 0), 0))
    invariant.record_ended(b"given up", None)
    invariant.finish()
    invariant.record_ended(b"p:1", ((OUTPUT_TOPIC, 0), 10_000))
    with pytest.raises(InvariantViolation, match="b'p:1' was acknowledged at 10000 of 0, where b'nothing' is"):
        invariant.finish()


def test_records_end(ended: Any) -> None:
    invariant = RecordsEnd(ended)
    (process,) = ended.processes()
    record = f"{process.producer_name}:9".encode()
    invariant.record_sent(record, (OUTPUT_TOPIC, 0))
    invariant.record_sent(b"crashed:1", (OUTPUT_TOPIC, 0))
    with pytest.raises(InvariantViolation, match=f"nobody was told what became of {record!r} for invoices-0"):
        invariant.finish()
    invariant.record_ended(record, None)
    invariant.finish()
