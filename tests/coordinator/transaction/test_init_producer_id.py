"""A transactional id and its producer: ids, epochs, and who is fenced."""

from dataclasses import replace
from typing import Any

import pytest

from groupcoord.coordinator.transaction.events import AbortReason, TransactionChanged, TransactionRefused
from groupcoord.coordinator.transaction.metadata import MAX_EPOCH, TransactionData, TransactionState
from groupcoord.core.effects import Call
from groupcoord.protocol.apis import API_BY_REQUEST
from groupcoord.protocol.errors import ErrorCode as E
from groupcoord.protocol.messages import InitProducerIdRequest
from tests.coordinator.transaction.world import P0, World


def test_each_start_has_the_next_epoch() -> None:
    world = World()
    answers = [world.init(version) for version in range(6)]
    assert [(each.error_code, each.producer_id, each.producer_epoch) for each in answers] == [
        (0, 1, epoch) for epoch in range(6)
    ]
    assert world.init(transactional_id="y").producer_id == 2
    assert world.data().state is TransactionState.EMPTY
    assert [event.after for event in world.told(TransactionChanged)] == ["Empty"] * 7


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ({"transactional_id": ""}, E.INVALID_REQUEST),
        ({"producer_id": 1}, E.INVALID_REQUEST),
        ({"producer_epoch": 1}, E.INVALID_REQUEST),
        ({"timeout_ms": 0}, E.INVALID_TRANSACTION_TIMEOUT),
        ({"timeout_ms": 900_001}, E.INVALID_TRANSACTION_TIMEOUT),
    ],
)
def test_what_is_wrong_is_refused(said: dict[str, Any], error: E) -> None:
    world = World()
    answer = world.init(5, **said)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (error, -1, -1)
    assert world.told(TransactionRefused)[0].error == error.name


def test_a_producer_goes_on_with_what_it_had() -> None:
    world = World()
    world.init()
    again = world.init(producer_id=1, producer_epoch=0)
    assert (again.producer_id, again.producer_epoch) == (1, 1)
    lost = world.init(producer_id=1, producer_epoch=0)  # it has not seen the answer
    assert (lost.producer_id, lost.producer_epoch) == (1, 1)
    assert world.init(producer_id=1, producer_epoch=5).error_code == E.PRODUCER_FENCED
    assert world.init(3, producer_id=1, producer_epoch=5).error_code == E.INVALID_PRODUCER_EPOCH
    assert world.init(producer_id=99, producer_epoch=1).error_code == E.PRODUCER_FENCED


def test_an_id_that_was_never_stored_is_taken_from_anybody() -> None:
    assert World().init(producer_id=77, producer_epoch=0).producer_id == 1


def test_epochs_that_are_used_up() -> None:
    world = World()
    world.init()
    world.metadata().data = _at_epoch(world, MAX_EPOCH - 1)
    answer = world.init(producer_id=1, producer_epoch=MAX_EPOCH - 1)
    assert (answer.producer_id, answer.producer_epoch) == (2, 0)
    again = world.init(producer_id=1, producer_epoch=MAX_EPOCH - 1)
    assert (again.producer_id, again.producer_epoch) == (2, 0)
    world.metadata().data = _at_epoch(world, MAX_EPOCH - 1)
    assert world.init().producer_id == 3


def test_an_open_transaction_is_aborted_first() -> None:
    world = World()
    world.init()
    assert world.add(P0) == [E.NONE]
    assert world.init().error_code == E.CONCURRENT_TRANSACTIONS
    assert world.data().state is TransactionState.COMPLETE_ABORT
    aborted = next(event for event in world.told(TransactionChanged) if event.after == "PrepareAbort")
    assert aborted.reason is AbortReason.FENCED
    assert world.init().producer_epoch == 2
    assert world.end(producer_epoch=0).error_code == E.PRODUCER_FENCED


def test_while_something_is_being_stored() -> None:
    world = World()
    world.init()
    world.held = []
    assert world.init() is None
    first = world.last_call
    assert world.init().error_code == E.CONCURRENT_TRANSACTIONS
    assert world.add(P0, producer_epoch=0) == [E.CONCURRENT_TRANSACTIONS]
    assert world.end(producer_epoch=0).error_code == E.CONCURRENT_TRANSACTIONS
    assert world.end(4, producer_epoch=0).error_code == E.CONCURRENT_TRANSACTIONS
    world.store(world.held.pop())
    assert world.answer(first).producer_epoch == 1


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (E.NOT_ENOUGH_REPLICAS, E.COORDINATOR_NOT_AVAILABLE),
        (E.KAFKA_STORAGE_ERROR, E.NOT_COORDINATOR),
        (E.MESSAGE_TOO_LARGE, E.UNKNOWN_SERVER_ERROR),
        (E.INVALID_REQUIRED_ACKS, E.INVALID_REQUIRED_ACKS),
    ],
)
def test_what_cannot_be_stored(error: E, told: E) -> None:
    world = World()
    world.held = []
    assert world.init() is None
    world.fail(world.held.pop(), error)
    assert world.answer(world.last_call).error_code == told
    world.held = None
    assert world.init().producer_epoch == 0


def test_an_abort_that_cannot_be_stored_fences_only_once() -> None:
    world = World()
    world.init()
    world.add(P0)
    world.held = []
    assert world.init() is None
    world.fail(world.held.pop(), E.NOT_ENOUGH_REPLICAS)
    assert world.answer(world.last_call).error_code == E.COORDINATOR_NOT_AVAILABLE
    assert world.data().state is TransactionState.ONGOING
    assert world.metadata().fence_failed
    world.held = None
    assert world.init().error_code == E.CONCURRENT_TRANSACTIONS
    assert world.data().producer_epoch == 1
    assert not world.metadata().fence_failed


def test_without_a_producer_id() -> None:
    world = World()
    world.no_producer_ids = E.KAFKA_STORAGE_ERROR
    assert world.init().error_code == E.KAFKA_STORAGE_ERROR


def test_a_name_that_is_too_long_for_the_log() -> None:
    world = World()
    call = Call(99, 99, API_BY_REQUEST[InitProducerIdRequest], 5, "p", "/1.1.1.1")
    # What is no UTF-8 is read as characters that take more bytes.
    request = InitProducerIdRequest(transactional_id="x" * 32_768, transaction_timeout_ms=1)
    world.carry_out(world.coordinator.handle(call, request, 0))
    assert world.answer(call).error_code == E.UNKNOWN_SERVER_ERROR


def _at_epoch(world: World, epoch: int) -> TransactionData:
    return replace(world.data(), producer_epoch=epoch)
