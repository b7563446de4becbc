"""How transactions end: asked by a producer, by its timeout, after a move; and what partitions are told."""

from dataclasses import replace
from typing import Any

import pytest

from groupcoord.coordinator import forced_actions
from groupcoord.coordinator.transaction.events import AbortReason, MarkerWritten, TransactionChanged, TransactionRefused
from groupcoord.coordinator.transaction.metadata import MAX_EPOCH, TransactionState
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.events import AdminAction
from groupcoord.core.transaction_verification_types import TransactionMarker
from groupcoord.protocol.errors import ErrorCode as E
from tests.coordinator.transaction.world import P0, P1, World


@pytest.fixture
def world() -> World:
    made = World()
    made.init()
    made.add(P0, P1)
    return made


def states(world: World) -> list[str]:
    """The states that were stored, in order."""
    return [event.after for event in world.told(TransactionChanged)]


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("version", range(6))
def test_a_transaction_ends(world: World, version: int, commit: bool) -> None:
    answer = world.end(version, commit=commit)
    epoch = 1 if version == 5 else 0
    assert answer.error_code == 0
    if version == 5:
        assert (answer.producer_id, answer.producer_epoch) == (1, 1)
    word = "Commit" if commit else "Abort"
    assert states(world) == ["Empty", "Ongoing", f"Prepare{word}", f"Complete{word}"]
    marker = TransactionMarker(1, epoch, 7, commit, 2 if version == 5 else 0)
    assert world.markers == [(marker, each) for each in sorted((P0, P1), reverse=world.markers[0][1] == P1)]
    assert [event.committed for event in world.told(MarkerWritten)] == [commit] * 2
    assert (world.data().partitions, world.data().start_ms) == ((), 1_000)
    reason = None if commit else AbortReason.ASKED
    assert [event.reason for event in world.told(TransactionChanged)] == [None, None, reason, None]


def test_the_answer_is_lost_and_the_producer_asks_again(world: World) -> None:
    world.end(5)
    again = world.end(5, producer_epoch=0)
    assert (again.error_code, again.producer_id, again.producer_epoch) == (0, 1, 1)
    assert world.end(5, producer_epoch=0, commit=False).error_code == E.INVALID_TXN_STATE
    world.end(5, commit=False)
    assert world.end(5, producer_epoch=1, commit=False).producer_epoch == 2
    assert world.end(5, producer_epoch=1).error_code == E.INVALID_TXN_STATE


def test_old_producers_ask_again(world: World) -> None:
    world.end(4)
    assert world.end(4).error_code == E.NONE
    assert world.end(4, commit=False).error_code == E.INVALID_TXN_STATE


def test_with_nothing_open() -> None:
    world = World()
    world.init()
    assert world.end(4).error_code == E.INVALID_TXN_STATE
    assert world.end(5).error_code == E.INVALID_TXN_STATE
    aborted = world.end(5, commit=False)
    assert (aborted.error_code, aborted.producer_epoch) == (0, 1)
    assert states(world) == ["Empty", "PrepareAbort", "CompleteAbort"]
    assert world.end(5).error_code == E.INVALID_TXN_STATE
    assert world.end(5, commit=False).producer_epoch == 2


@pytest.mark.parametrize("version", [1, 4, 5])
@pytest.mark.parametrize(
    ("said", "error"),
    [
        ({"producer_id": 9}, E.INVALID_PRODUCER_ID_MAPPING),
        ({"producer_epoch": 9}, E.PRODUCER_FENCED),
        ({"transactional_id": "unknown"}, E.INVALID_PRODUCER_ID_MAPPING),
        ({"transactional_id": ""}, E.INVALID_REQUEST),
    ],
)
def test_who_may_not_end_it(world: World, said: dict[str, Any], error: E, version: int) -> None:
    if error is E.PRODUCER_FENCED and version == 1:
        error = E.INVALID_PRODUCER_EPOCH
    answer = world.end(version, **said)
    assert answer.error_code == error
    assert (getattr(answer, "producer_id", -1), getattr(answer, "producer_epoch", -1)) == (-1, -1)
    assert world.told(TransactionRefused)
    assert states(world)[-1] == "Ongoing"


@pytest.mark.parametrize("version", [4, 5])
def test_partitions_that_cannot_be_told_yet(world: World, version: int) -> None:
    world.marker_errors[P1] = E.NOT_LEADER_OR_FOLLOWER
    world.end(version)
    assert world.data().partitions == (P1,)
    assert world.init().error_code == E.CONCURRENT_TRANSACTIONS
    # While its end is on its way, its completion is pending.
    assert world.end(version, producer_epoch=0).error_code == E.CONCURRENT_TRANSACTIONS
    world.wait(150)
    assert len(world.markers) == 3
    world.marker_errors.clear()
    world.wait(100)
    assert states(world)[-1] == "CompleteCommit"


def test_a_partition_that_is_gone_need_not_be_told(world: World) -> None:
    world.marker_errors[P1] = E.UNKNOWN_TOPIC_OR_PARTITION
    world.end()
    assert states(world)[-1] == "CompleteCommit"
    assert len(world.told(MarkerWritten)) == 1


def test_a_partition_that_knows_better(world: World) -> None:
    world.marker_errors[P1] = E.INVALID_PRODUCER_EPOCH
    world.end()
    world.wait(10_000)
    assert states(world)[-1] == "PrepareCommit"
    assert world.data().partitions == (P1,)


def test_the_end_cannot_be_stored(world: World) -> None:
    world.held = []
    assert world.end() is None
    world.fail(world.held.pop(), E.NOT_ENOUGH_REPLICAS)
    assert world.answer(world.last_call).error_code == E.COORDINATOR_NOT_AVAILABLE
    world.held = None
    assert world.end().error_code == E.NONE


@pytest.mark.parametrize("error", [E.NOT_ENOUGH_REPLICAS, E.MESSAGE_TOO_LARGE])
def test_the_completion_cannot_be_stored(world: World, error: E) -> None:
    world.held = []
    world.end()
    world.store(world.held.pop())
    assert world.answer(world.last_call).error_code == E.NONE
    world.fail(world.held.pop(), error)
    world.held = None
    world.wait(100)
    if error is E.NOT_ENOUGH_REPLICAS:
        assert states(world)[-1] == "CompleteCommit"
        return
    assert states(world)[-1] == "PrepareCommit"  # and stays so, until another broker reads the log
    assert world.init().error_code == E.CONCURRENT_TRANSACTIONS
    assert world.end(producer_epoch=0).error_code == E.CONCURRENT_TRANSACTIONS
    assert world.end(producer_epoch=0, commit=False).error_code == E.INVALID_TXN_STATE
    assert world.end(producer_epoch=1).error_code == E.PRODUCER_FENCED


def test_the_epochs_are_used_up() -> None:
    world = World()
    world.init()
    world.metadata().data = replace(world.data(), producer_epoch=MAX_EPOCH - 1)
    world.add(P0)
    answer = world.end()
    assert (answer.producer_id, answer.producer_epoch) == (2, 0)
    assert world.markers[0][0].producer_epoch == MAX_EPOCH
    again = world.end(producer_id=1, producer_epoch=MAX_EPOCH - 1)
    assert (again.error_code, again.producer_id) == (0, 2)


def test_the_last_epoch_is_not_raised() -> None:
    world = World()
    world.init()
    world.add(P0)
    world.metadata().data = replace(world.data(), producer_epoch=MAX_EPOCH)
    assert world.init().error_code == E.CONCURRENT_TRANSACTIONS
    assert world.data().producer_epoch == 0
    assert world.data().producer_id == 2


# --- timers


def test_what_cannot_be(world: World) -> None:
    with pytest.raises(AssertionError, match="cannot become Dead"):
        world.metadata().dead()


def test_a_transaction_that_is_open_for_too_long_is_aborted() -> None:
    world = World()
    world.init(timeout_ms=15_000)
    world.add(P0)
    world.wait(18_999)  # 16,001 ms is over; Kafka looks every ten seconds
    assert states(world)[-1] == "Ongoing"
    world.wait(1)
    assert states(world)[-2:] == ["PrepareAbort", "CompleteAbort"]
    assert world.told(TransactionChanged)[-2].reason is AbortReason.TIMED_OUT
    assert world.data().producer_epoch == 1
    assert (
        world.end(producer_epoch=0, commit=False).producer_epoch == 1
    )  # it learns of it as of an answer that was lost


def test_what_cannot_be_aborted_is_tried_again_when_kafka_looks_the_next_time() -> None:
    """Its epochs are used up, and there is no producer id for a while."""
    world = World()
    world.init(timeout_ms=1_000)
    world.metadata().data = replace(world.data(), producer_epoch=MAX_EPOCH - 1)
    world.add(P0)
    world.no_producer_ids = E.KAFKA_STORAGE_ERROR
    ctx = HandlerContext(world.now_ms, AdminAction("a test"))
    with pytest.raises(ValueError, match="there is no producer id with which 'x' could go on"):
        forced_actions.abort_transaction(world.coordinator, ctx, "x")
    world.wait(60_000)
    assert world.data().state is TransactionState.ONGOING
    world.no_producer_ids = None
    world.wait(10_000)
    assert (world.data().state, world.data().producer_id) == (TransactionState.COMPLETE_ABORT, 2)


def test_nothing_times_out_while_something_is_being_stored() -> None:
    world = World()
    world.init(timeout_ms=1)
    world.add(P0)
    world.held = []
    world.add(P1)
    world.wait(9_000)
    assert len(world.held) == 1
    world.store(world.held.pop())
    world.held = None
    world.wait(10_000)
    assert states(world)[-1] == "CompleteAbort"


def test_an_abort_that_cannot_be_stored_is_tried_again_when_kafka_looks_next() -> None:
    world = World()
    world.init(timeout_ms=15_000)
    world.add(P0)
    world.held = []
    world.wait(19_000)
    for _ in range(2):
        world.fail(world.held.pop(), E.NOT_ENOUGH_REPLICAS)
        world.wait(9_999)
        assert not world.held
        world.wait(1)
    world.store(world.held.pop())
    assert states(world)[-1] == "PrepareAbort"


def test_what_timed_out_while_nobody_coordinated_it_is_aborted_when_kafka_looks_next() -> None:
    world = World()
    world.init(timeout_ms=15_000)
    world.add(P0)
    world.now_ms = 33_000
    world.reload()
    world.wait(6_999)
    assert states(world)[-1] == "Ongoing"
    world.wait(1)
    assert states(world)[-1] == "CompleteAbort"


def test_a_transactional_id_is_forgotten() -> None:
    world = World(transactional_id_expiration_ms=7_200_000)
    world.init()
    world.add(P0)
    world.end()
    partition = world.shard().partition
    world.wait(3 * 3_600_000)
    assert not world.shard().machine.transactions
    assert world.log[-1][0] == partition
    assert world.log[-1][2] is None
    assert world.init().producer_id == 2


def test_the_end_of_a_transactional_id_cannot_be_stored() -> None:
    world = World(transactional_id_expiration_ms=3_600_000)
    world.init()
    world.held = []
    world.wait(7_200_000)
    assert world.init().error_code == E.CONCURRENT_TRANSACTIONS
    world.fail(world.held.pop(), E.NOT_ENOUGH_REPLICAS)
    world.held = None
    assert world.init().producer_epoch == 1
    world.held = []
    assert world.init() is None
    world.wait(7_200_000)
    assert len(world.held) == 1


# --- moves


def test_what_is_stored_is_there_after_a_move(world: World) -> None:
    before = replace(world.data(), last_producer_epoch=-1)
    world.reload()
    assert world.data() == before
    assert world.end().error_code == E.NONE
    world.wait(900_000_000)
    world.reload()
    assert not world.shard().machine.transactions


def test_who_does_not_coordinate_it_any_more_tells_nobody(world: World) -> None:
    world.marker_errors[P1] = E.NOT_LEADER_OR_FOLLOWER
    world.end()
    world.marker_errors.clear()
    world.reload()
    told = len(world.markers)
    world.wait(1_000)
    assert len(world.markers) == told


def test_a_marker_that_is_written_after_a_move_makes_no_difference(world: World) -> None:
    world.untold = []
    world.end()
    before = world.untold
    world.untold = None
    world.reload()
    for told in before:
        told(HandlerContext(world.now_ms, AdminAction("a test")), E.NOT_LEADER_OR_FOLLOWER)
    markers = len(world.markers)
    world.wait(1_000)
    assert (states(world).count("CompleteCommit"), len(world.markers)) == (1, markers)


def test_what_was_about_to_end_ends_after_a_move(world: World) -> None:
    world.marker_errors[P1] = E.NOT_LEADER_OR_FOLLOWER
    world.end(commit=False)
    world.marker_errors.clear()
    world.reload()
    assert states(world)[-1] == "CompleteAbort"
    assert world.data().state is TransactionState.COMPLETE_ABORT
    world.wait(1_000)
    assert states(world).count("CompleteAbort") == 1


def test_a_move_while_the_completion_is_being_stored(world: World) -> None:
    world.held = []
    world.end()
    world.store(world.held.pop())
    world.fail(world.held.pop(), E.NOT_ENOUGH_REPLICAS)
    world.held = None
    world.reload()
    world.wait(1_000)
    assert states(world).count("CompleteCommit") == 1


@pytest.mark.parametrize("level", [0, 1])
def test_a_lower_transaction_version_fences_by_one_epoch(level: int) -> None:
    world = World(transaction_abort_timed_out_transaction_cleanup_interval_ms=100)
    world.transaction_version = level
    world.init()
    world.add(version=3)
    world.wait(70_000)
    assert (world.data().state, world.data().producer_epoch) == (TransactionState.COMPLETE_ABORT, 1)
    assert {value[:2] for _, _, value in world.log if value is not None} == {bytes((0, level))}


def test_plain_values_cannot_say_that_a_client_goes_by_version_2(world: World) -> None:
    """As in Kafka 4.3.1, what could not be written stays pending."""
    world.transaction_version = 0
    assert world.end().error_code == E.UNSUPPORTED_VERSION
    assert world.end(version=4).error_code == E.CONCURRENT_TRANSACTIONS
    assert states(world)[-1] == "Ongoing"


def test_the_level_is_lowered_while_partitions_are_told(world: World) -> None:
    world.marker_errors[P1] = E.NOT_LEADER_OR_FOLLOWER
    world.end()
    world.transaction_version = 0
    world.marker_errors.clear()
    world.wait(1_000)
    assert world.data().state is TransactionState.PREPARE_COMMIT
    world.transaction_version = 2
    world.reload()
    assert world.data().state is TransactionState.COMPLETE_COMMIT
