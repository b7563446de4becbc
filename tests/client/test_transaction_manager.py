"""What a transactional producer asks for, and what it makes of answers: as Kafka's own TransactionManager does."""

from typing import Any

import pytest

from groupcoord.client.client_errors import BrokerError, DisconnectedError, RequestTimedOutError
from groupcoord.client.producer.producer_config import ProducerConfig
from groupcoord.client.producer.transaction_manager import (
    GroupMetadata,
    ProducerState,
    TransactionBatch,
    TransactionManager,
    TransactionStateError,
)
from groupcoord.protocol.apis.end_txn import EndTxnRequest, EndTxnResponse
from groupcoord.protocol.apis.find_coordinator import (
    GROUP,
    TRANSACTION,
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from groupcoord.protocol.apis.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from groupcoord.protocol.apis.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from groupcoord.protocol.batches.record_batch import read_header
from groupcoord.protocol.errors import ErrorCode as E
from groupcoord.simulation.transactional_application import transactional_produce

ONE, TWO = ("out", 0), ("out", 1)
MEMBER = GroupMetadata("app", 3, "member-1", "instance-1")
SETTINGS = ProducerConfig(transactional_id="tx", transaction_timeout_ms=7_000)


class Talk:
    """A producer and what is said to it; each request is answered at the moment at which it is asked for."""

    def __init__(self) -> None:
        self.manager = TransactionManager(SETTINGS, chance=lambda: 0.5)
        self.now_ms = 0

    def has(self, state: ProducerState) -> bool:
        """Is it in that state?"""
        return self.manager.state is state

    def asks(self) -> Any:
        """The request that it asks for now; where it is to go is ``sent_to``."""
        deadline = self.manager.next_deadline()
        self.now_ms = self.now_ms if deadline is None else max(deadline, self.now_ms)
        wanted = self.manager.next_request(self.now_ms)
        if wanted is None:
            return None
        self.sent_to = None if wanted.to is None else wanted.to.node_id
        return wanted.request

    def answer(self, response: Any) -> None:
        self.manager.complete(response, self.now_ms)

    def finds(self, key_type: int, node_id: int, code: E = E.NONE) -> None:
        """It looks for a coordinator, and is told."""
        request = self.asks()
        assert isinstance(request, FindCoordinatorRequest)
        assert (request.key_type, self.sent_to) == (key_type, None)
        found = Coordinator(key=request.coordinator_keys[0], node_id=node_id, host="h", port=9, error_code=code)
        self.answer(FindCoordinatorResponse(coordinators=(found,)))

    def ended(self, code: E = E.NONE, epoch: int = 1) -> EndTxnRequest:
        """It ends the transaction, and is answered."""
        request = self.asks()
        assert isinstance(request, EndTxnRequest)
        self.answer(EndTxnResponse(error_code=code, producer_id=5, producer_epoch=epoch))
        return request

    def offsets_answered(self, *codes: E) -> TxnOffsetCommitRequest:
        """It commits offsets of ("in", 0), ("in", 1) …, and is answered."""
        request = self.asks()
        assert isinstance(request, TxnOffsetCommitRequest)
        parts = tuple(
            TxnOffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
            for each, code in zip(request.topics[0].partitions, codes, strict=True)
        )
        self.answer(TxnOffsetCommitResponse(topics=(TxnOffsetCommitResponseTopic(name="in", partitions=parts),)))
        return request

    def ready(self) -> None:
        """It has a producer id."""
        self.manager.init_transactions()
        self.finds(TRANSACTION, 1)
        assert isinstance(self.asks(), InitProducerIdRequest)
        self.answer(InitProducerIdResponse(producer_id=5, producer_epoch=0))

    def begins(self, *, offsets: bool = False) -> TransactionBatch:
        """It is in a transaction, in which it has written, and perhaps sent an offset."""
        self.ready()
        self.manager.begin_transaction()
        batch = self.manager.new_batch(ONE, 2)
        assert not self.manager.batch_answered(batch, E.NONE)
        if offsets:
            self.manager.send_offsets_to_transaction({("in", 1): 4, ("in", 0): 9}, MEMBER)
        return batch


@pytest.fixture
def talk() -> Talk:
    return Talk()


def test_a_transaction_from_its_begin_to_the_next_one(talk: Talk) -> None:
    talk.manager.init_transactions()
    talk.finds(TRANSACTION, 1)
    init = talk.asks()
    assert (init.transactional_id, init.transaction_timeout_ms, talk.sent_to) == ("tx", 7_000, 1)
    assert talk.manager.next_request(0) is None
    talk.answer(InitProducerIdResponse(producer_id=5, producer_epoch=0))
    assert talk.has(ProducerState.READY)
    talk.manager.begin_transaction()
    first, second, other = (talk.manager.new_batch(where, size) for where, size in ((ONE, 2), (ONE, 3), (TWO, 1)))
    assert [(each.producer_id, each.producer_epoch, each.base_sequence) for each in (first, second, other)] == [
        (5, 0, 0),
        (5, 0, 2),
        (5, 0, 0),
    ]
    talk.manager.send_offsets_to_transaction({("in", 1): 4, ("in", 0): 9}, MEMBER)
    talk.finds(GROUP, 2)
    commit = talk.offsets_answered(E.NONE, E.NONE)
    assert [(each.partition_index, each.committed_offset) for each in commit.topics[0].partitions] == [(0, 9), (1, 4)]
    assert (commit.group_id, commit.generation_id, commit.member_id, commit.group_instance_id, talk.sent_to) == (
        *MEMBER,
        2,
    )
    talk.manager.commit_transaction()
    for batch in (first, second):
        assert not talk.manager.batch_answered(batch, E.NONE)
        assert talk.asks() is None  # until all batches are answered
    assert not talk.manager.batch_answered(other, E.DUPLICATE_SEQUENCE_NUMBER)
    end = talk.ended(epoch=1)
    assert (end.committed, end.producer_id, end.producer_epoch, talk.sent_to) == (True, 5, 0, 1)
    assert talk.has(ProducerState.READY)
    talk.manager.begin_transaction()
    assert talk.manager.new_batch(ONE, 1)[2:] == (5, 1, 0)
    assert repr(talk.manager) == "<TransactionManager InTransaction 'tx' producer=5 epoch=1>"


def test_of_a_transaction_in_which_nothing_happened_nobody_is_told(talk: Talk) -> None:
    talk.ready()
    for end in (talk.manager.commit_transaction, talk.manager.abort_transaction):
        talk.manager.begin_transaction()
        end()
        assert talk.asks() is None
        assert talk.has(ProducerState.READY)


@pytest.mark.parametrize("code", [E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE])
def test_a_coordinator_that_has_moved_is_looked_for_again(talk: Talk, code: E) -> None:
    talk.begins(offsets=True)
    talk.finds(GROUP, 2, E.COORDINATOR_NOT_AVAILABLE)
    assert talk.manager.next_request(talk.now_ms) is None
    assert talk.manager.next_deadline() == talk.now_ms + 100
    talk.finds(GROUP, 2)
    talk.offsets_answered(code, E.NONE)
    talk.finds(GROUP, 3)
    left = talk.offsets_answered(E.NONE)
    assert len(left.topics[0].partitions) == 1
    talk.manager.commit_transaction()
    talk.ended(code)
    talk.finds(TRANSACTION, 4)
    talk.ended()
    assert talk.has(ProducerState.READY)
    assert talk.sent_to == 4


def test_the_first_coordinator_may_not_be_one(talk: Talk) -> None:
    talk.manager.init_transactions()
    talk.finds(TRANSACTION, 1)
    talk.asks()
    talk.answer(InitProducerIdResponse(error_code=E.NOT_COORDINATOR))
    talk.finds(TRANSACTION, 2)
    for code in (E.CONCURRENT_TRANSACTIONS, E.COORDINATOR_LOAD_IN_PROGRESS, E.NONE):
        assert isinstance(talk.asks(), InitProducerIdRequest)
        assert talk.sent_to == 2
        talk.answer(InitProducerIdResponse(error_code=code, producer_id=5))
    assert talk.has(ProducerState.READY)


def test_back_off_grows_and_begins_anew_after_a_success(talk: Talk) -> None:
    talk.begins()
    talk.manager.commit_transaction()
    waits = []
    for _ in range(5):
        talk.ended(E.CONCURRENT_TRANSACTIONS)
        waits.append((talk.manager.next_deadline() or 0) - talk.now_ms)
    talk.ended()
    assert waits == [100, 200, 400, 800, 1_000]
    talk.manager.begin_transaction()
    talk.manager.new_batch(ONE, 1)
    talk.manager.abort_transaction()
    assert talk.asks() is None


def test_what_has_no_answer_is_sent_again_to_whoever_is_the_coordinator_then(talk: Talk) -> None:
    talk.begins()
    talk.manager.commit_transaction()
    assert isinstance(talk.asks(), EndTxnRequest)
    talk.manager.fail(RequestTimedOutError("no answer"), talk.now_ms)
    assert isinstance(talk.asks(), FindCoordinatorRequest)
    talk.manager.fail(DisconnectedError("gone"), talk.now_ms)
    talk.finds(TRANSACTION, 3)
    talk.ended()
    assert talk.has(ProducerState.READY)
    assert talk.sent_to == 3


@pytest.mark.parametrize("error", [ValueError("odd"), BrokerError(E.UNKNOWN_SERVER_ERROR, "x")])
def test_any_other_failure_is_the_end(talk: Talk, error: Exception) -> None:
    talk.manager.init_transactions()
    talk.asks()
    talk.manager.fail(error, 0)
    assert talk.has(ProducerState.FATAL_ERROR)
    assert str(talk.manager.error) == str(error)
    assert talk.asks() is None


@pytest.mark.parametrize(
    ("code", "state"),
    [
        (E.ILLEGAL_GENERATION, ProducerState.ABORTABLE_ERROR),
        (E.UNKNOWN_MEMBER_ID, ProducerState.ABORTABLE_ERROR),
        (E.FENCED_INSTANCE_ID, ProducerState.ABORTABLE_ERROR),
        (E.TRANSACTION_ABORTABLE, ProducerState.ABORTABLE_ERROR),
        (E.GROUP_AUTHORIZATION_FAILED, ProducerState.ABORTABLE_ERROR),
        (E.INVALID_PRODUCER_EPOCH, ProducerState.FATAL_ERROR),
        (E.INVALID_TXN_STATE, ProducerState.FATAL_ERROR),
    ],
)
def test_offsets_that_are_refused(talk: Talk, code: E, state: ProducerState) -> None:
    talk.begins(offsets=True)
    talk.manager.commit_transaction()
    talk.finds(GROUP, 2)
    talk.offsets_answered(E.UNKNOWN_TOPIC_OR_PARTITION, code)
    assert talk.has(state)
    if state is ProducerState.ABORTABLE_ERROR:
        assert talk.asks() is None
        with pytest.raises(TransactionStateError, match="AbortableError"):
            talk.manager.begin_transaction()
        talk.manager.abort_transaction()
        assert not talk.ended().committed
        assert talk.has(ProducerState.READY)
        assert talk.manager.error is None


@pytest.mark.parametrize("code", [E.REQUEST_TIMED_OUT, E.COORDINATOR_LOAD_IN_PROGRESS])
def test_offsets_that_are_not_stored_yet(talk: Talk, code: E) -> None:
    talk.begins(offsets=True)
    talk.finds(GROUP, 2)
    talk.offsets_answered(code, code)
    if code is E.REQUEST_TIMED_OUT:
        talk.finds(GROUP, 2)
    talk.offsets_answered(E.NONE, E.NONE)
    talk.manager.send_offsets_to_transaction({("in", 0): 10}, MEMBER)
    talk.offsets_answered(E.NONE)
    talk.manager.send_offsets_to_transaction({("in", 0): 11}, MEMBER._replace(group_id="other"))
    talk.finds(GROUP, 4)  # another group has another coordinator


@pytest.mark.parametrize("code", [E.PRODUCER_FENCED, E.INVALID_PRODUCER_EPOCH])
def test_a_producer_that_is_fenced_is_of_no_use_any_more(talk: Talk, code: E) -> None:
    batch = talk.begins()
    talk.manager.commit_transaction()
    talk.ended(code)
    assert talk.has(ProducerState.FATAL_ERROR)
    assert isinstance(talk.manager.error, BrokerError)
    assert talk.manager.error.code is E.PRODUCER_FENCED
    assert not talk.manager.batch_answered(batch, E.NOT_LEADER_OR_FOLLOWER)
    talk.manager.batch_failed(batch, RequestTimedOutError("late"))
    assert talk.manager.error.code is E.PRODUCER_FENCED
    with pytest.raises(TransactionStateError):
        talk.manager.abort_transaction()


def test_a_transactional_id_may_be_refused(talk: Talk) -> None:
    talk.manager.init_transactions()
    talk.finds(TRANSACTION, 1, E.TRANSACTION_ABORTABLE)  # there is no transaction yet that could be aborted
    assert talk.has(ProducerState.FATAL_ERROR)


def test_a_commit_that_cannot_be_is_aborted_and_an_abort_that_cannot_be_is_the_end(talk: Talk) -> None:
    talk.begins()
    talk.manager.commit_transaction()
    talk.ended(E.TRANSACTION_ABORTABLE)
    assert talk.has(ProducerState.ABORTABLE_ERROR)
    talk.manager.abort_transaction()
    talk.ended(E.TRANSACTION_ABORTABLE)
    assert talk.has(ProducerState.FATAL_ERROR)


@pytest.mark.parametrize(
    ("code", "again", "state"),
    [
        (E.NOT_LEADER_OR_FOLLOWER, True, ProducerState.IN_TRANSACTION),
        (E.CONCURRENT_TRANSACTIONS, True, ProducerState.IN_TRANSACTION),
        (E.INVALID_PRODUCER_EPOCH, False, ProducerState.ABORTABLE_ERROR),
        (E.OUT_OF_ORDER_SEQUENCE_NUMBER, False, ProducerState.ABORTABLE_ERROR),
        (E.INVALID_TXN_STATE, False, ProducerState.ABORTABLE_ERROR),
        (E.PRODUCER_FENCED, False, ProducerState.FATAL_ERROR),
        (E.INVALID_PRODUCER_ID_MAPPING, False, ProducerState.FATAL_ERROR),
    ],
)
def test_batches_that_are_refused(talk: Talk, code: E, again: bool, state: ProducerState) -> None:
    talk.begins()
    batch, other = talk.manager.new_batch(TWO, 1), talk.manager.new_batch(ONE, 1)
    assert talk.manager.batch_answered(batch, code) is again
    assert talk.has(state)
    if state is ProducerState.ABORTABLE_ERROR:
        error = talk.manager.error
        talk.manager.batch_answered(other, E.MESSAGE_TOO_LARGE)
        assert talk.manager.error is error  # the first one counts


def test_a_batch_that_is_given_up_can_only_be_aborted(talk: Talk) -> None:
    talk.begins()
    batch, other = talk.manager.new_batch(TWO, 1), talk.manager.new_batch(ONE, 1)
    talk.manager.batch_failed(batch, RequestTimedOutError("late"))
    assert talk.has(ProducerState.ABORTABLE_ERROR)
    talk.manager.abort_transaction()
    assert talk.asks() is None
    talk.manager.batch_failed(other, RequestTimedOutError("late"))
    assert talk.has(ProducerState.ABORTING_TRANSACTION)
    assert not talk.ended().committed


def test_offsets_of_a_transaction_that_is_aborted_are_not_sent(talk: Talk) -> None:
    talk.begins(offsets=True)
    talk.finds(GROUP, 2)
    assert isinstance(talk.asks(), TxnOffsetCommitRequest)
    talk.manager.abort_transaction()
    part = TxnOffsetCommitResponsePartition(partition_index=0, error_code=E.ILLEGAL_GENERATION)
    talk.answer(TxnOffsetCommitResponse(topics=(TxnOffsetCommitResponseTopic(name="in", partitions=(part,)),)))
    assert not talk.ended().committed
    assert talk.has(ProducerState.READY)


def test_only_what_was_asked_is_answered(talk: Talk) -> None:
    with pytest.raises(TransactionStateError, match="Uninitialized"):
        talk.manager.begin_transaction()
    with pytest.raises(TransactionStateError, match="no request"):
        talk.answer(EndTxnResponse())
    talk.manager.init_transactions()
    talk.asks()
    with pytest.raises(AssertionError):
        talk.answer(MEMBER)


def test_a_batch_on_the_wire(talk: Talk) -> None:
    batch = talk.begins()
    request = transactional_produce(SETTINGS, batch, [(b"k", b"v"), (None, b"w")], 99)
    (topic,) = request.topic_data
    header = read_header(topic.partition_data[0].records or b"")
    assert (request.transactional_id, request.acks, topic.name, topic.partition_data[0].index) == ("tx", -1, "out", 0)
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.record_count) == (5, 0, 0, 2)
    assert header.transactional
