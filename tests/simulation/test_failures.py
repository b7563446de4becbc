"""Clusters whose brokers fail, and every way in which what they promise can be broken."""

from types import SimpleNamespace
from typing import Any

import pytest

from groupcoord.broker.events import LeaderChanged
from groupcoord.core.effects import Call
from groupcoord.core.events import AdminAction
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.apis.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from groupcoord.protocol.apis.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from groupcoord.protocol.batches.record_batch import build_batch
from groupcoord.protocol.batches.records import Record
from groupcoord.simulation import (
    FAILURE_OPTIONS,
    ActionKind,
    InvariantViolation,
    MemberPlan,
    PlannedAction,
    SimulatedWorld,
    SimulationPlan,
    SimulationResult,
    StandaloneProducerPlan,
    TransactionPlan,
    plan_from_seed,
    simulate_plan,
)
from groupcoord.simulation.actions import FAILURES
from groupcoord.simulation.invariants.replication import (
    AcknowledgedStays,
    OneLeader,
    ReadStays,
    ReplicasConverge,
    WrittenOnce,
)
from groupcoord.simulation.plan import CLASSIC, CONSUMER, OUTPUT_TOPIC, WRITTEN_TOPIC
from tests.simulation import runs

pytestmark = pytest.mark.slow

WRITERS = tuple(
    StandaloneProducerPlan(name=f"w{number}", acks=acks, idempotent=idempotent, interval_ms=2_000)
    for number, (acks, idempotent) in enumerate([(-1, False), (-1, True), (1, False), (0, False)], 1)
)


def plan_with(
    *actions: PlannedAction, protocol: str = CLASSIC, transactional: bool = False, heal_ms: int = 90_000
) -> SimulationPlan:
    members = tuple(
        MemberPlan(
            name=name,
            assignors=("range",),
            topics=("orders",),
            session_timeout_ms=10_000,
            max_poll_interval_ms=10_000,
            commit_interval_ms=5_000,
            protocol=protocol,
            transactions=TransactionPlan(timeout_ms=20_000, processing_ms=500) if transactional else None,
        )
        for name in "ab"
    )
    return SimulationPlan(
        members=members,
        topics={"orders": 4, OUTPUT_TOPIC: 2, WRITTEN_TOPIC: 3},
        actions=actions,
        heal_ms=heal_ms,
        key=7,
        brokers=3,
        replicated=True,
        standalone_producers=WRITERS,
    )


def fails(kind: ActionKind, broker: int, at_ms: int, for_ms: int) -> PlannedAction:
    return PlannedAction(at_ms=at_ms, kind=kind, for_ms=for_ms, amount=broker)


def run(plan: SimulationPlan) -> str:
    """What is told of a run in which all invariants hold, with and without skipping."""
    return told(runs.run(plan))


def told(result: SimulationResult) -> str:
    return "\n".join(f"{line.source}: {line.text}" for line in result.lines)


@pytest.mark.untraced  # plans that are written for one thing each reach every line
@pytest.mark.parametrize("kind", [kind for kind in ActionKind if kind in FAILURES])
@pytest.mark.parametrize("protocol", [CLASSIC, CONSUMER])
@pytest.mark.parametrize("transactional", [False, True])
def test_each_broker_fails_in_turn(kind: ActionKind, protocol: str, transactional: bool) -> None:
    actions = [fails(kind, broker, 12_000 * broker, 11_500) for broker in (1, 2, 3)]
    result = simulate_plan(plan_with(*actions, protocol=protocol, transactional=transactional, heal_ms=50_000))
    assert result.ok, result.text()


@pytest.mark.untraced  # other plans reach every line, too
def test_the_coordinator_is_killed_and_another_broker_has_every_commit() -> None:
    text = run(plan_with(*(fails(ActionKind.KILL_BROKER, broker, 21_000, 30_000) for broker in (1, 2))))
    assert "coordinator: broker 1 is fenced" in text
    assert "records of __consumer_offsets-0 in 200 ms" in text


@pytest.mark.untraced  # other plans reach every line, too
def test_a_broker_that_is_killed_while_it_is_suspended_or_starts() -> None:
    text = run(
        plan_with(
            fails(ActionKind.PAUSE_BROKER, 1, 20_000, 15_000),
            fails(ActionKind.KILL_BROKER, 1, 22_000, 1_000),
            fails(ActionKind.KILL_BROKER, 1, 24_000, 20_000),
            fails(ActionKind.STOP_BROKER, 1, 25_000, 500),
        )
    )
    assert "coordinator: broker 1 is starting" in text


def test_brokers_that_lose_their_disks_one_after_the_other() -> None:
    text = run(
        plan_with(
            fails(ActionKind.STOP_BROKER, 1, 20_000, 20_000),
            *(fails(ActionKind.LOSE_DISK, broker, 5_000 + 20_000 * broker, 12_000) for broker in (1, 2, 3)),
        )
    )
    assert text.count("is without its disk") == 3


@pytest.mark.untraced  # other plans reach every line, too
def test_the_last_broker_that_is_in_sync_keeps_its_disk() -> None:
    text = run(
        plan_with(
            *(fails(ActionKind.STOP_BROKER, broker, 20_000, 30_000) for broker in (1, 2)),
            fails(ActionKind.LOSE_DISK, 3, 30_000, 5_000),
        )
    )
    assert "is without its disk" not in text


@pytest.mark.untraced  # other plans reach every line, too
def test_the_last_broker_with_a_disk_goes_on_until_the_controller_knows_that_a_broker_in_sync_has_lost_its_own() -> (
    None
):
    stops = [fails(ActionKind.STOP_BROKER, 3, at_ms, 10_000) for at_ms in (20_002, 30_000)]
    text = run(
        plan_with(
            fails(ActionKind.KILL_BROKER, 1, 20_000, 50_000),
            fails(ActionKind.LOSE_DISK, 2, 20_001, 50_000),
            *stops,
        )
    )
    before, _, after = text.partition("broker 2 is fenced")
    assert "broker 3 is stop" not in before
    assert "broker 3 is stop" in after


@pytest.mark.untraced  # other plans reach every line, too
def test_a_follower_that_copies_nothing_is_out_of_the_isr_and_comes_back() -> None:
    text = run(plan_with(fails(ActionKind.PAUSE_REPLICATION, 2, 20_000, 25_000)))
    assert "in sync of shipments-0: 1, 3 (before" in text


@pytest.mark.untraced  # other plans reach every line, too
def test_brokers_that_are_cut_off_from_each_other_and_from_the_controller() -> None:
    text = run(
        plan_with(
            *(fails(ActionKind.CUT_BROKERS, broker, 20_000 + broker, 25_000) for broker in (1, 2)),
            fails(ActionKind.CUT_CONTROLLER, 3, 50_000, 12_000),
        )
    )
    assert "broker 1 is cut off from broker 2" in text
    assert "broker 3 is cut off from the controller" in text
    assert "broker 3 is fenced" in text


@pytest.mark.untraced  # other plans reach every line, too
def test_a_broker_that_stops_while_it_is_cut_off() -> None:
    text = run(
        plan_with(
            fails(ActionKind.CUT_CONTROLLER, 1, 20_000, 15_000),
            fails(ActionKind.STOP_BROKER, 1, 22_000, 1_000),
        )
    )
    assert "broker 1 is cut off from the controller" in text


def test_a_broker_that_says_nothing_for_so_long_that_clients_give_up() -> None:
    text = run(
        plan_with(fails(ActionKind.PAUSE_BROKER, 1, 20_000, 25_000), fails(ActionKind.PAUSE_BROKER, 2, 50_000, 9_500))
    )
    assert "coordinator: broker 1 is fenced" in text


def test_what_a_producer_was_not_told_for_half_a_minute_it_gives_up() -> None:
    kills = [fails(ActionKind.KILL_BROKER, broker, 20_000, 65_000) for broker in (1, 2, 3)]
    text = run(plan_with(*kills, transactional=True))
    assert "nobody leads shipments-0" in text


@pytest.mark.untraced  # other plans reach every line, too
def test_all_is_as_it_was_when_the_brokers_are_mended_by_the_end() -> None:
    kinds = [kind for kind in ActionKind if kind in FAILURES]
    text = run(plan_with(*(fails(kind, 1 + number % 3, 80_000 + number, 60_000) for number, kind in enumerate(kinds))))
    assert "in sync of shipments-0: 1, 2, 3" in text or "in sync of shipments-1: 1, 2, 3" in text


def test_plans_with_failures_make_sense() -> None:
    plans = [plan_from_seed(seed, options=FAILURE_OPTIONS) for seed in range(200)]
    assert {action.kind for plan in plans for action in plan.actions} == set(FAILURE_OPTIONS.kinds)
    assert {plan.is_transactional for plan in plans} == {True, False}
    assert plans[0].standalone_producers[0].text().startswith("w1 writes every ")
    assert {(writer.acks, writer.idempotent) for plan in plans for writer in plan.standalone_producers} == {
        (0, False),
        (1, False),
        (-1, False),
        (-1, True),
    }
    for plan in plans:
        assert plan.replicated
        assert plan.standalone_producers[0].acks == -1
        for action in plan.actions:
            assert action.kind not in FAILURES or 1 <= action.amount <= plan.brokers == 3


# --- invariants, by states that no cluster should get into


@pytest.fixture(scope="module")
def world() -> SimulatedWorld:
    ended = SimulatedWorld(plan_with())
    ended.run()
    return ended


def call(key: ApiKey, broker: int = 0) -> Call:
    return Call(1, 1, APIS[key], 12, "a", "/127.0.0.1", broker)


def led(leader: int, epoch: int) -> LeaderChanged:
    cause = AdminAction("test")
    return LeaderChanged(at_ms=0, cause=cause, topic=WRITTEN_TOPIC, partition=0, leader=leader, epoch=epoch, isr=())


@pytest.mark.parametrize("invariant", [AcknowledgedStays, ReadStays])
def test_what_is_kept_stays(world: SimulatedWorld, invariant: Any) -> None:
    looks = invariant(world)
    looks.event_emitted(led(1, 5))  # nothing is kept of it
    looks.step_done()
    for offset, there in ((0, "something else"), (100_000, "nothing")):
        looks.kept = {(WRITTEN_TOPIC, 0): {offset: (-5,)}}
        looks.event_emitted(led(1, 5))
        with pytest.raises(InvariantViolation, match=rf"leads of shipments-0, and at offset {offset} it has {there}: "):
            looks.step_done()
        with pytest.raises(InvariantViolation, match="has a replica of shipments-0"):
            looks.finish()


def test_a_reader_is_never_given_anything_else(world: SimulatedWorld) -> None:
    looks = ReadStays(world)
    records = build_batch([Record(0, 0, b"k", b"v")])
    found = PartitionData(partition_index=0, high_watermark=1, records=records)
    response = FetchResponse(responses=(FetchableTopicResponse(topic=WRITTEN_TOPIC, partitions=(found,)),))
    looks.response_sent(call(ApiKey.FETCH), response)
    looks.response_sent(call(ApiKey.FETCH), response)
    looks.kept = {(WRITTEN_TOPIC, 0): {0: (-5,)}}
    with pytest.raises(InvariantViolation, match="at offset 0 of shipments-0 a reader is given something else"):
        looks.response_sent(call(ApiKey.FETCH), response)


def test_one_leader_in_an_epoch(world: SimulatedWorld) -> None:
    looks = OneLeader(world)
    looks.event_emitted(led(1, 5))
    looks.event_emitted(led(2, 6))
    with pytest.raises(InvariantViolation, match="shipments-0 has two leaders in epoch 6: 2 and 3"):
        looks.event_emitted(led(3, 6))


def test_only_the_leader_acknowledges_in_its_epoch(world: SimulatedWorld) -> None:
    looks = OneLeader(world)
    looks.event_emitted(led(1, 0))
    each = PartitionProduceResponse(index=0, base_offset=0)
    response = ProduceResponse(responses=(TopicProduceResponse(name=WRITTEN_TOPIC, partition_responses=(each,)),))
    looks.response_sent(call(ApiKey.PRODUCE, broker=0), response)
    with pytest.raises(InvariantViolation, match="shipments-0 has two leaders in epoch 0: 1 and 2"):
        looks.response_sent(call(ApiKey.PRODUCE, broker=1), response)


def test_what_is_idempotent_is_written_once() -> None:
    ended = SimulatedWorld(plan_with())
    ended.run()
    looks = WrittenOnce(ended)
    looks.finish()
    log = ended.brokers.cluster.broker.topics[WRITTEN_TOPIC].partitions[0]
    log.append(build_batch([Record(0, 0, b"w2-0", b"")]), 0)
    with pytest.raises(InvariantViolation, match=r"record 0 of w2 is at offset \d+ of shipments-0, behind record"):
        looks.finish()


def test_all_replicas_converge() -> None:
    ended = SimulatedWorld(plan_with())
    ended.run()
    looks, broker = ReplicasConverge(ended), ended.brokers.cluster.broker
    looks.finish()
    topic = broker.topics[WRITTEN_TOPIC]
    log, state = topic.partitions[0], topic.metadata.partitions[0]

    def finds(reason: str) -> None:
        with pytest.raises(InvariantViolation, match=reason):
            looks.finish()

    records = build_batch([Record(log.log_end_offset, 0, b"x", b"")], leader_epoch=0)
    log.append_as_follower(records, 0)
    finds("shipments-0 ends at")
    for broker_id in set(state.replicas) - {state.leader}:
        topic.copies[0][broker_id].append_as_follower(records, 0)
    finds("the high watermark of shipments-0 is")
    log.held_back_to = None
    ended.standalone_producers[0].act()
    finds("w1 waits for an acknowledgement")
    ended.standalone_producers.clear()
    ended.brokers.shard = SimpleNamespace(is_idle=False)  # type: ignore[assignment]
    finds("the coordinator of __consumer_offsets waits for the replicas of what it has written")
    topic.set_state(0, state._replace(isr=state.isr[:1]))
    finds("shipments-0 is PartitionState")
