"""Sequence numbers: nothing is stored twice, nothing in another order, and what cannot be known leads to another epoch."""

from collections import deque
from typing import Any

import pytest

from groupcoord.client.producer import producer_events as e
from groupcoord.client.producer.sender import SendBatches
from groupcoord.client.producer.sequence_numbers import ProducerIdAndEpoch
from groupcoord.protocol.errors import ErrorCode
from tests.client.producer.sending import Sending, sequences

E = ErrorCode


def two_in_flight(**settings: Any) -> tuple[Sending, SendBatches, SendBatches]:
    """Two requests with one batch each are in flight to a partition."""
    it = Sending(**settings)
    it.append(records=2)
    (first,) = it.poll()
    it.append()
    (second,) = it.poll()
    assert sequences([first, second]) == [(0, 0, 2), (0, 2, 1)]
    return it, first, second


def test_a_batch_that_is_sent_again_keeps_its_number() -> None:
    it, first, second = two_in_flight()
    it.answer(first, E.NOT_ENOUGH_REPLICAS)
    it.answer(second, E.OUT_OF_ORDER_SEQUENCE_NUMBER)
    it.append()
    (again,) = it.poll(200)
    assert sequences([again]) == [(0, 0, 2)]
    assert sequences(it.answer(again)) == [(0, 2, 1), (0, 3, 1)]
    assert it.texts(e.EpochBumped) == []


def test_a_repeated_batch_that_the_broker_knows_is_stored() -> None:
    it, first, second = two_in_flight()
    it.lose(first)
    it.lose(second)
    (again,) = it.poll(200)
    (then,) = it.answer(again, E.DUPLICATE_SEQUENCE_NUMBER)
    it.answer(then, base_offset=2)
    assert [done.base_offset for done in it.done] == [-1, 2]


def test_what_was_given_up_and_stored_leaves_no_gap() -> None:
    it, _, second = two_in_flight(delivery_timeout_ms=30_000)
    second.batches[0].created_ms = 5
    it.poll(30_000)
    it.append()
    assert it.poll() == []
    assert len(it.done) == 1
    (third,) = it.answer(second, base_offset=2)
    assert sequences([third]) == [(0, 3, 1)]
    assert it.texts(e.EpochBumped) == []


def test_what_was_given_up_and_cannot_be_known_begins_anew_in_the_next_epoch() -> None:
    it, *_ = two_in_flight(delivery_timeout_ms=30_000)
    it.poll(30_000)
    assert len(it.done) == 2
    it.append()
    (third,) = it.poll()
    assert sequences([third]) == [(1, 0, 1)]
    assert it.texts(e.EpochBumped) == ["goes on with epoch 1, in which the sequence numbers of t-0 begin at 0"]


def test_a_missing_predecessor_that_was_given_up_is_the_reason_for_the_next_epoch() -> None:
    it, _, second = two_in_flight(delivery_timeout_ms=30_000)
    second.batches[0].created_ms = 20_000
    it.poll(30_000)
    it.answer(second, E.OUT_OF_ORDER_SEQUENCE_NUMBER)
    assert it.texts(e.EpochBumped) == []  # what is unresolved may yet be resolved
    (again,) = it.poll(30_200)
    assert sequences([again]) == [(0, 2, 1)]
    it.poll(50_000)
    it.append()
    assert sequences(it.poll()) == [(1, 0, 1)]


def test_a_refused_batch_leaves_a_gap_and_the_others_begin_anew() -> None:
    it, first, second = two_in_flight()
    it.answer(first, E.INVALID_RECORD)
    assert sequences([second]) == [(1, 0, 1)]  # its numbers for the next time
    it.answer(second, E.OUT_OF_ORDER_SEQUENCE_NUMBER)
    (again,) = it.poll(200)
    it.answer(again)
    assert [done.error is None for done in it.done] == [False, True]


def test_a_batch_that_ran_out_of_retries_may_be_stored() -> None:
    it = Sending(retries=1)
    it.append()
    (sent,) = it.poll()
    it.lose(sent)
    (again,) = it.poll(200)
    it.lose(again)
    assert it.texts(e.EpochBumped) == []
    it.append()
    assert sequences(it.poll(500)) == [(0, 1, 1)]


def test_a_broker_that_misses_what_it_had_is_given_the_next_epoch() -> None:
    it = Sending()
    it.append()
    (first,) = it.poll()
    it.answer(first)
    it.append()
    (second,) = it.poll()
    it.answer(second, E.OUT_OF_ORDER_SEQUENCE_NUMBER)
    (again,) = it.poll(200)
    assert sequences([again]) == [(1, 0, 1)]


def test_out_of_order_without_retries_left_is_the_next_epoch_too() -> None:
    it = Sending(retries=1)
    for _ in range(2):
        it.append()
        (sent,) = it.poll(it.now_ms + 200)
        if it.done == []:
            it.answer(sent)
    it.answer(sent, E.NOT_ENOUGH_REPLICAS)
    (again,) = it.poll(600)
    it.answer(again, E.OUT_OF_ORDER_SEQUENCE_NUMBER)
    assert it.texts(e.EpochBumped) != []


@pytest.mark.parametrize(
    ("log_start_offset", "epoch"),
    [(-1, 0), (100, 1)],
    ids=["the start of the log is not known", "its records are gone"],
)
def test_a_broker_that_does_not_know_the_producer(log_start_offset: int, epoch: int) -> None:
    it = Sending()
    it.append()
    (first,) = it.poll()
    it.answer(first)
    it.append()
    (second,) = it.poll()
    it.answer(second, E.UNKNOWN_PRODUCER_ID, log_start_offset=log_start_offset)
    (again,) = it.poll(200)
    assert sequences([again]) == [(epoch, 0 if epoch else 1, 1)]
    if epoch:
        it.answer(again, E.UNKNOWN_PRODUCER_ID, log_start_offset=log_start_offset)
        assert sequences(it.poll(600)) == [(1, 0, 1)]


def test_partitions_that_are_well_go_on_in_the_next_epoch_when_theirs_is_over() -> None:
    it = Sending(partitions=2)
    it.append(0)
    it.append(1)
    (both,) = it.poll()
    it.answer(both)
    it.append(0)
    (zero,) = it.poll()
    it.append(1)
    (one,) = it.poll()
    it.answer(zero, E.OUT_OF_ORDER_SEQUENCE_NUMBER)
    it.append(1)
    assert sequences(it.poll(1)) == []  # one of the former epoch is in flight
    (after,) = it.answer(one)
    assert sequences([after]) == [(1, 0, 1)]


def test_behind_the_last_epoch_there_is_another_id() -> None:
    it = Sending()
    it.append()
    (first,) = it.poll()
    assert it.sender.sequences is not None
    it.sender.sequences.producer = ProducerIdAndEpoch(5, (1 << 15) - 1)
    it.gives_ids = False
    it.answer(first, E.INVALID_RECORD)
    it.append()
    assert it.poll() == []
    it.give_id(6)
    (sent,) = it.poll()
    assert (sent.batches[0].producer_id, *sequences([sent])) == (6, (0, 0, 1))


def test_what_is_in_flight_without_an_id_gets_the_next_one() -> None:
    it, first, second = two_in_flight()
    assert it.sender.sequences is not None
    it.sender.sequences.producer = ProducerIdAndEpoch(5, (1 << 15) - 1)
    it.gives_ids = False
    it.answer(first, E.INVALID_RECORD)
    assert second.batches[0].producer_id == -1
    it.give_id(6)
    assert (second.batches[0].producer_id, second.batches[0].base_sequence) == (6, 0)


def test_numbers_go_on_behind_the_largest() -> None:
    it = Sending()
    it.append()
    (first,) = it.poll()
    it.answer(first)
    assert it.sender.sequences is not None
    it.sender.sequences._of(("t", 0)).next = (1 << 31) - 1
    it.append(records=2)
    (second,) = it.poll()
    assert (second.batches[0].base_sequence, second.batches[0].last_sequence) == ((1 << 31) - 1, 0)


def test_the_queue_is_left_in_order_whatever_is_put_back() -> None:
    it, first, second = two_in_flight()
    it.append()
    (third,) = it.poll()
    for each in (third, first, second):
        it.lose(each)
    queue: deque[object] = it.sender.accumulator.topics["t"].queues[0]  # type: ignore[assignment]
    assert list(queue) == [first.batches[0], second.batches[0], third.batches[0]]
