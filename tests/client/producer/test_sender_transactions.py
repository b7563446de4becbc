"""What a transaction means for batches: which are sent, and what becomes of the others."""

import pytest

from groupcoord.client.client_errors import ClientError
from groupcoord.client.producer import producer_events as e
from groupcoord.client.producer.producer_config import ProducerConfig
from groupcoord.client.producer.producer_errors import TransactionAbortedError
from groupcoord.client.producer.transaction_manager import ProducerState, TransactionManager
from groupcoord.client.trouble_log import TroubleBegan
from groupcoord.protocol.batches.record_batch import read_header
from groupcoord.protocol.errors import ErrorCode
from tests.client.producer.sending import Sending, sequences

E = ErrorCode


def in_transaction(**settings: int) -> tuple[Sending, TransactionManager]:
    """A sender whose transaction has begun."""
    manager = TransactionManager(ProducerConfig(transactional_id="x"), chance=lambda: 0.5)
    manager.state, manager.producer_id, manager.producer_epoch = ProducerState.IN_TRANSACTION, 5, 3
    it = Sending(transactions=manager, transactional_id="x", **settings)  # type: ignore[arg-type]
    return it, manager


def test_batches_are_of_the_transaction() -> None:
    it, manager = in_transaction()
    it.append()
    (sent,) = it.poll()
    assert it.asked_for_id == []
    header = read_header(sent.batches[0].data())
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.transactional) == (5, 3, 0, True)
    manager.commit_transaction()
    assert manager.next_request(0) is None  # a batch has no answer yet
    it.answer(sent)
    assert manager.next_request(0) is not None


def test_nothing_is_sent_outside_of_a_transaction() -> None:
    it, manager = in_transaction()
    manager.state = ProducerState.READY
    it.append()
    assert it.poll() == []


def test_what_is_not_under_way_when_it_is_aborted_is_not_sent() -> None:
    it, manager = in_transaction(max_in_flight_requests_per_connection=1)
    it.append()
    (sent,) = it.poll()
    it.append()
    manager.abort_transaction()
    it.poll()
    (done,) = it.done
    assert isinstance(done.error, TransactionAbortedError)
    assert done.batch is not sent.batches[0]
    assert it.texts(TroubleBegan) == []
    it.lose(sent)
    assert manager.next_request(0) is None
    (again,) = it.poll(200)
    it.answer(again)
    assert manager.next_request(200) is not None


def test_a_refused_batch_is_the_end_of_the_transaction_and_the_others_close_the_gap() -> None:
    it, manager = in_transaction()
    sent = []
    for _ in range(3):
        it.append()
        sent += it.poll()
    it.answer(sent[2], E.OUT_OF_ORDER_SEQUENCE_NUMBER)
    it.answer(sent[1], E.INVALID_RECORD)
    it.answer(sent[0])
    assert manager.state is ProducerState.ABORTABLE_ERROR
    assert sequences(it.poll(200)) == [(3, 1, 1)]
    it.append()
    it.poll()
    assert isinstance(it.done[-1].error, TransactionAbortedError)
    assert it.done[-1].error.__cause__ is manager.error


def test_one_that_ran_out_of_retries_leaves_the_numbers_as_they_are() -> None:
    it, manager = in_transaction(retries=1)
    it.append()
    (sent,) = it.poll()
    it.append()
    (second,) = it.poll()
    it.lose(sent)
    (again,) = it.poll(200)
    it.lose(again)
    assert manager.state is ProducerState.ABORTABLE_ERROR
    assert second.batches[0].base_sequence == 1


def test_out_of_order_without_a_missing_one_cannot_be_committed() -> None:
    it, manager = in_transaction()
    it.append()
    (sent,) = it.poll()
    it.answer(sent, E.OUT_OF_ORDER_SEQUENCE_NUMBER)
    assert manager.state is ProducerState.ABORTABLE_ERROR


@pytest.mark.parametrize(("log_start_offset", "sent_again"), [(5, True), (0, False)])
def test_a_partition_that_has_lost_what_it_knew(log_start_offset: int, sent_again: bool) -> None:
    """If its log begins behind what was acknowledged, it is retention that took it; otherwise something else is wrong."""
    it, manager = in_transaction()
    it.append()
    (first,) = it.poll()
    it.answer(first, base_offset=0)
    it.append()
    (second,) = it.poll()
    it.answer(second, E.UNKNOWN_PRODUCER_ID, log_start_offset=log_start_offset)
    assert sequences(it.poll(200)) == ([(3, 0, 1)] if sent_again else [])
    assert (manager.state is ProducerState.IN_TRANSACTION) is sent_again


def test_what_expires_cannot_be_committed() -> None:
    it, manager = in_transaction(delivery_timeout_ms=30_000)
    it.append()
    it.poll()
    it.poll(30_000)
    assert manager.state is ProducerState.ABORTABLE_ERROR
    assert it.texts(e.EpochBumped) == []


def test_a_producer_that_is_fenced_is_at_its_end() -> None:
    it, manager = in_transaction()
    it.append()
    (sent,) = it.poll()
    it.append()
    it.answer(sent, E.PRODUCER_FENCED)
    assert manager.state is ProducerState.FATAL_ERROR
    assert [type(done.error) for done in it.done] == [type(manager.error)] * 2
    assert it.sender.failure is not None


def test_a_transaction_that_fails_for_good_takes_its_batches_along() -> None:
    it, manager = in_transaction()
    it.append()
    manager.state, manager.error = ProducerState.FATAL_ERROR, ClientError("no coordinator")
    it.poll()
    assert it.done[0].error is manager.error
