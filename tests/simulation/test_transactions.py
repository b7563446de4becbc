"""Members that consume, transform and produce in transactions, and every way in which what they are promised can be broken."""

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from groupcoord.client.producer.transaction_manager import GroupMetadata
from groupcoord.coordinator.transaction.events import MarkerWritten, TransactionChanged
from groupcoord.coordinator.transaction.metadata import TransactionState
from groupcoord.core.events import AdminAction
from groupcoord.core.transaction_verification_types import TransactionMarker
from groupcoord.simulation import (
    TRANSACTION_OPTIONS,
    ActionKind,
    InvariantViolation,
    MemberPlan,
    PlannedAction,
    SimulatedWorld,
    SimulationPlan,
    SimulationResult,
    TransactionPlan,
    plan_from_seed,
)
from groupcoord.simulation.actions import COORDINATOR_ACTIONS
from groupcoord.simulation.invariants.base import Invariant
from groupcoord.simulation.invariants.transactions import (
    ExactlyOnce,
    FencedWrites,
    OneTransaction,
    OnlyCommitted,
    StableOffset,
    TransactionReplay,
    TransactionsEnd,
)
from groupcoord.simulation.plan import CLASSIC, CONSUMER, OFFSETS_TOPIC, OUTPUT_TOPIC
from groupcoord.simulation.transactional_application import OpenTransaction
from tests.simulation.runs import run

pytestmark = pytest.mark.slow

EMPTY, ONGOING = TransactionState.EMPTY.value, TransactionState.ONGOING.value
COMMITS, ABORTS = TransactionState.PREPARE_COMMIT.value, TransactionState.PREPARE_ABORT.value
COMMITTED, ABORTED = TransactionState.COMPLETE_COMMIT.value, TransactionState.COMPLETE_ABORT.value
OUTPUT = (OUTPUT_TOPIC, 0)


def plan_with(
    *actions: PlannedAction, brokers: int = 1, protocol: str = CLASSIC, static: bool = False, **of_transactions: Any
) -> SimulationPlan:
    members = tuple(
        MemberPlan(
            name=name,
            assignors=("range",),
            topics=("orders",),
            instance_id="instance-a" if static and name == "a" else None,
            session_timeout_ms=10_000,
            max_poll_interval_ms=10_000,
            commit_interval_ms=5_000,
            protocol=protocol,
            transactions=TransactionPlan(**{"timeout_ms": 8_000, "processing_ms": 1_000} | of_transactions),
        )
        for name in "ab"
    )
    return SimulationPlan(
        members=members, topics={"orders": 4, OUTPUT_TOPIC: 2}, actions=actions, heal_ms=60_000, key=7, brokers=brokers
    )


def told(result: SimulationResult) -> str:
    return "\n".join(f"{line.source}: {line.text}" for line in result.lines)


@pytest.mark.untraced  # other plans reach every line, too
@pytest.mark.parametrize("protocol", [CLASSIC, CONSUMER])
def test_output_and_offsets_are_committed_at_once(protocol: str) -> None:
    text = told(run(plan_with(protocol=protocol)))
    assert "transaction a: Ongoing → PrepareCommit with" in text
    assert "transaction b: PrepareCommit → CompleteCommit" in text


@pytest.mark.untraced  # other plans reach every line, too
@pytest.mark.parametrize("kind", [kind for kind in ActionKind if kind in COORDINATOR_ACTIONS])
def test_what_happens_to_the_coordinator_of_transactions(kind: ActionKind) -> None:
    actions = [
        PlannedAction(at_ms=at_ms, kind=kind, for_ms=2_500, amount=700, of_transactions=True)
        for at_ms in (6_100, 7_100, 8_300, 26_100)
    ]
    run(plan_with(*actions, brokers=3))


def test_a_coordinator_of_transactions_that_is_not_there_yet_has_nothing_to_load() -> None:
    early = PlannedAction(at_ms=10, kind=ActionKind.RELOAD, for_ms=50, of_transactions=True)
    assert "records of __transaction_state-0" not in told(run(replace(plan_with(early), heal_ms=1_000)))
    late = replace(early, at_ms=900)
    assert "records of __transaction_state-0" in told(run(replace(plan_with(late), heal_ms=1_000)))


@pytest.mark.untraced  # other plans reach every line, too
def test_a_producer_that_crashes_is_fenced_by_its_next_process() -> None:
    crash = PlannedAction(at_ms=10_500, kind=ActionKind.CRASH, for_ms=500)
    assert "because another producer was initialised with its transactional id" in told(run(plan_with(crash)))


@pytest.mark.untraced  # other plans reach every line, too
def test_a_producer_that_comes_back_under_another_id_leaves_a_transaction_that_times_out() -> None:
    crash = PlannedAction(at_ms=10_500, kind=ActionKind.CRASH, for_ms=500)
    text = told(run(plan_with(crash, new_id_per_start=True)))
    assert "because it was open for longer than its timeout" in text


def test_a_zombie_cannot_commit_for_a_generation_that_is_over() -> None:
    pause = PlannedAction(at_ms=10_500, kind=ActionKind.PAUSE, for_ms=12_000)
    text = told(run(plan_with(pause, timeout_ms=60_000)))
    assert re.search(r"TxnOffsetCommit of a-\S+ is refused with", text)


def test_a_twin_and_its_member_fence_each_other() -> None:
    twin = PlannedAction(at_ms=10_500, kind=ActionKind.TWIN, for_ms=12_000)
    assert "PRODUCER_FENCED" in told(run(plan_with(twin, static=True)))


@pytest.mark.untraced  # other plans reach every line, too
def test_a_broker_restarts_and_the_leader_of_the_output_moves() -> None:
    restarts = [
        PlannedAction(at_ms=9_000 + 1_700 * number, kind=ActionKind.RESTART, for_ms=900, amount=300 + number)
        for number in range(3)
    ]
    moves = [PlannedAction(at_ms=at_ms, kind=ActionKind.MOVE_OUTPUT, amount=1) for at_ms in (9_950, 10_030, 15_000)]
    assert "records of __consumer_offsets-0 in" in told(run(plan_with(*restarts, *moves, brokers=3)))


@pytest.mark.untraced  # other plans reach every line, too
def test_a_static_member_that_missed_a_generation_keeps_what_it_owned_until_its_next_assignment() -> None:
    text = told(run(plan_from_seed(970134, options=TRANSACTION_OPTIONS, keep=(0, 3))))
    assert re.search(r"the leader before, instance-b\S+, did not join again in time", text)


def test_at_the_end_nobody_aborts_by_chance() -> None:
    run(plan_from_seed(970219, options=TRANSACTION_OPTIONS, keep=()))


def test_what_cannot_be_delivered_is_aborted() -> None:
    cut = PlannedAction(at_ms=9_990, kind=ActionKind.BLACKOUT, for_ms=45_000)
    run(plan_with(cut, timeout_ms=60_000))


def test_who_leaves_in_a_transaction_ends_it_first() -> None:
    leave = PlannedAction(at_ms=10_500, kind=ActionKind.LEAVE, for_ms=5_000)
    busy = PlannedAction(at_ms=14_000, kind=ActionKind.BUSY, member=1, for_ms=4_000)
    lines = [line.text for line in run(plan_with(leave, busy)).lines if line.source in ("a", "coordinator")]
    ends = next(index for index, text in enumerate(lines) if "transaction a: PrepareCommit" in text)
    assert ends < next(index for index, text in enumerate(lines) if text.startswith("leaves app"))


@pytest.mark.untraced  # plans that are written for one thing each reach every line
@pytest.mark.parametrize("seed", range(8))
def test_skipping_changes_nothing(seed: int) -> None:
    run(plan_from_seed(seed, options=TRANSACTION_OPTIONS))


def test_a_plan_says_what_its_members_do() -> None:
    plan = plan_with(new_id_per_start=True)
    assert (
        "in transactions with timeout 8 s, which take 2 s: each process has a transactional id"
        in plan.members[0].text()
    )
    assert plan_with().members[0].text().endswith("always the same id")
    reload = PlannedAction(at_ms=1, kind=ActionKind.RELOAD, for_ms=5, amount=7)
    assert "coordinator of the group" in reload.text(plan.members)
    assert "coordinator of transactions" in replace(reload, of_transactions=True).text(plan.members)


def test_it_does_not_go_on_with_what_it_has_lost() -> None:
    process = context().processes()[0]
    application = process._application
    before = application._positions.at(0)
    application._commits = True
    application._end(OpenTransaction({("orders", 99): (0, 1)}, GroupMetadata("app")))
    assert application._positions.at(0) == before


# --- the invariants


def context() -> Any:
    """A world in which a transaction of each member was committed."""
    world = SimulatedWorld(plan_with())
    world.run()
    return world


@pytest.fixture(scope="module", name="ended")
def ended_world() -> Any:
    """The same for all tests that change nothing in it."""
    return context()


def changed(before: str, after: str, epoch: int, producer_id: int = 5) -> TransactionChanged:
    return TransactionChanged(
        at_ms=0,
        cause=AdminAction("test"),
        transactional_id="x",
        before=before,
        after=after,
        producer_id=producer_id,
        producer_epoch=epoch,
        partitions=(),
    )


def marker(topic: str = OUTPUT_TOPIC) -> MarkerWritten:
    return MarkerWritten(
        at_ms=0, cause=AdminAction("test"), transactional_id="x", topic=topic, partition=0, committed=True
    )


def tell(invariant: Invariant, *events: Any) -> None:
    for event in events:
        invariant.event_emitted(event)


BEGINS = (changed(EMPTY, EMPTY, 0), changed(EMPTY, ONGOING, 0))


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ([changed(ONGOING, ONGOING, 0)], "it was not there"),
        ([*BEGINS, changed(EMPTY, ONGOING, 0)], "it was Ongoing"),
        ([*BEGINS, changed(ONGOING, COMMITS, -1)], "epoch 0 before"),
        ([*BEGINS, changed(ONGOING, COMMITS, 1), changed(COMMITS, ABORTED, 1)], "prepared to become CompleteCommit"),
        ([*BEGINS, changed(ONGOING, ABORTS, 0), changed(ABORTS, ABORTED, 0), changed(ABORTED, ONGOING, 0)], "has had"),
        ([changed(EMPTY, EMPTY, 0), changed(EMPTY, EMPTY, 0)], "epoch 0 before"),
    ],
)
def test_one_transaction_at_a_time(ended: Any, events: list[TransactionChanged], reason: str) -> None:
    invariant = OneTransaction(ended)
    tell(invariant, *events[:-1], marker())
    with pytest.raises(InvariantViolation, match=reason):
        tell(invariant, events[-1])


def test_the_log_tells_what_the_coordinator_knows() -> None:
    world = context()
    invariant, transactions = TransactionReplay(world), world.brokers.transaction_shard.machine.transactions
    invariant.transactions_unloading()
    known = transactions["a"]
    known.data = replace(known.data, state=TransactionState.PREPARE_COMMIT)
    with pytest.raises(InvariantViolation, match="and the log says"):
        invariant.finish()
    del transactions["a"]
    with pytest.raises(InvariantViolation, match="only in the log"):
        invariant.finish()


def test_what_is_not_stored_yet_is_not_in_the_log() -> None:
    world = context()
    transactions = world.brokers.transaction_shard.machine.transactions
    known = transactions["a"]
    transactions["x"] = SimpleNamespace(data=replace(known.data, producer_epoch=-1))
    TransactionReplay(world).finish()


def test_old_epochs_write_no_more(ended: Any) -> None:
    for offset, topic in ((10_000, OUTPUT_TOPIC), (None, OFFSETS_TOPIC)):
        invariant = FencedWrites(ended)
        tell(invariant, changed(ONGOING, COMMITS, 3), marker(topic), SimpleNamespace())
        invariant.accepted((topic, 0), 5, 3, offset)
        invariant.accepted((topic, 0), 6, 0, offset)
        with pytest.raises(InvariantViolation, match=f"{topic}-0 took something of producer 5 with epoch 2"):
            invariant.accepted((topic, 0), 5, 2, offset)


def test_what_was_stored_before_may_be_acknowledged_again(ended: Any) -> None:
    invariant = FencedWrites(ended)
    tell(invariant, changed(ONGOING, COMMITS, 3), marker())
    invariant.accepted(OUTPUT, 5, 2, 0)


def test_the_last_stable_offset(ended: Any) -> None:
    invariant = StableOffset(ended)
    invariant.step_done()
    stable = ended.brokers.cluster.broker.log(*OUTPUT).last_stable_offset
    tell(invariant, changed(ONGOING, COMMITS, 3))
    invariant.accepted(OUTPUT, 5, 2, stable - 1)
    invariant.accepted((OUTPUT_TOPIC, 1), 5, 2, 1_000_000)
    invariant.accepted((OFFSETS_TOPIC, 0), 5, 2, None)
    with pytest.raises(InvariantViolation, match=f"has a transaction open from {stable - 1} on"):
        invariant.step_done()
    tell(invariant, marker(), marker(OFFSETS_TOPIC))
    invariant.accepted(OUTPUT, 5, 2, stable - 1)  # it was stored before
    invariant.step_done()
    invariant._stable[0] = stable + 1
    with pytest.raises(InvariantViolation, match="goes back"):
        invariant.step_done()


def test_a_marker_of_which_the_coordinator_does_not_know_yet_ends_a_transaction() -> None:
    world = context()
    invariant = StableOffset(world)
    log = world.brokers.cluster.broker.log(*OUTPUT)
    tell(invariant, changed(ONGOING, COMMITS, 3))
    invariant.accepted(OUTPUT, 5, 3, log.append_marker(TransactionMarker(5, 3, 0, committed=True), 0).base_offset - 1)
    invariant.step_done()
    assert not invariant._first


def test_every_transaction_ends() -> None:
    world = context()
    invariant, brokers = TransactionsEnd(world), world.brokers
    invariant.finish()
    brokers.shard.machine.pending_offsets.put(5, ("app", "orders", 0), SimpleNamespace(position=0, value=None))
    with pytest.raises(InvariantViolation, match="an offset of orders-0 is pending"):
        invariant.finish()
    producers = brokers.cluster.broker.log(*OUTPUT).producers
    producers._ongoing.append((3, 5))
    with pytest.raises(InvariantViolation, match="a transaction is open in invoices-0"):
        invariant.finish()
    known = brokers.transaction_shard.machine.transactions["b"]
    known.data = replace(known.data, state=TransactionState.ONGOING)
    with pytest.raises(InvariantViolation, match="b is <TransactionMetadata 'b' Ongoing"):
        invariant.finish()


@pytest.mark.untraced  # other plans reach every line, too
def test_only_what_was_committed_is_read(ended: Any) -> None:
    invariant = OnlyCommitted(ended)
    tell(invariant, marker(), *BEGINS, changed(ONGOING, ABORTS, 1), changed(ABORTS, ABORTED, 1))
    with pytest.raises(InvariantViolation, match="invoices-0 shows what producer 0, epoch 0 wrote at 0"):
        invariant.finish()


def test_every_record_once() -> None:
    world = context()
    invariant, offsets = ExactlyOnce(world), world.brokers.shard.machine.offsets
    invariant.finish()
    committed = offsets.get("app", "orders", 0)
    offsets.put("app", "orders", 0, committed._replace(offset=committed.offset + 1))
    with pytest.raises(InvariantViolation, match=f"offset {committed.offset} of orders-0 is 0 times"):
        invariant.finish()
    offsets.put("app", "orders", 0, committed._replace(offset=committed.offset - 1))
    with pytest.raises(InvariantViolation, match="is in the output, and its offset is not committed"):
        invariant.finish()
    offsets.remove("app", "orders", 0)
    with pytest.raises(InvariantViolation, match="is consumed up to 0 only"):
        invariant.finish()
