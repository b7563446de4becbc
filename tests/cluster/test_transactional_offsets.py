"""Offsets in transactions, from the producer's requests to the log of ``__consumer_offsets`` and back."""

import pytest

from groupcoord.cluster.coordinator_partition_writer import STORE, AppendDecision
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Append, TransactionMarker
from groupcoord.core.events import AdminAction
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.apis.txn_offset_commit import TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic
from groupcoord.protocol.batches.record_batch import read_header
from groupcoord.protocol.coordinator_records.commit_fast_path import batch_size
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import (
    AddOffsetsToTxnRequest,
    EndTxnRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
)
from tests.cluster.gated import Bench

OK, UNSTABLE = ErrorCode.NONE, ErrorCode.UNSTABLE_OFFSET_COMMIT


class Producer:
    """A producer with a transactional id, on a node of its own; ``epoch`` is what it was told last."""

    def __init__(self, **config: int) -> None:
        self.bench = Bench(transaction_state_log_num_partitions=1, **config)
        self.bench.ask(ApiKey.FIND_COORDINATOR, FindCoordinatorRequest(key_type=1, coordinator_keys=("tx",)))
        request = InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=60_000)
        told = self.bench.answer(self.bench.ask(ApiKey.INIT_PRODUCER_ID, request))
        assert told.error_code == 0
        self.id, self.epoch = told.producer_id, told.producer_epoch

    def adds_offsets(self) -> ErrorCode | None:
        request = AddOffsetsToTxnRequest(
            transactional_id="tx", producer_id=self.id, producer_epoch=self.epoch, group_id="g"
        )
        return self.bench.error(self.bench.ask(ApiKey.ADD_OFFSETS_TO_TXN, request))

    def commits(
        self, offset: int, version: int = 5, transactional_id: str = "tx", epoch: int | None = None
    ) -> ErrorCode | None:
        partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata=None)
        request = TxnOffsetCommitRequest(
            transactional_id=transactional_id,
            group_id="g",
            producer_id=self.id,
            producer_epoch=self.epoch if epoch is None else epoch,
            topics=(TxnOffsetCommitRequestTopic(name="t", partitions=(partition,)),),
        )
        return self.bench.committed(self.bench.ask(ApiKey.TXN_OFFSET_COMMIT, request, version))

    def ends(self, *, committed: bool) -> None:
        request = EndTxnRequest(
            transactional_id="tx", producer_id=self.id, producer_epoch=self.epoch, committed=committed
        )
        told = self.bench.answer(self.bench.ask(ApiKey.END_TXN, request))
        assert told.error_code == 0
        self.epoch = told.producer_epoch

    def stable(self) -> int:
        """The offset, or the error, that a reader is told who wants nothing that may change."""
        (group,) = self.bench.answer(self.bench.fetch(stable=True)).groups
        (partition,) = group.topics[0].partitions
        found: int = partition.error_code or partition.committed_offset
        return found

    def batches(self) -> list[tuple[int, int, bool, bool]]:
        """(producer id, epoch, is it of a transaction, is it a marker) of each batch of the log."""
        log = self.bench.node.broker.log("__consumer_offsets", 0)
        assert log is not None
        data = log.read(0, 10_000, at_least_one=True).data()
        found, position = [], 0
        while size := batch_size(data, position):
            header = read_header(data[position : position + size])
            found.append((header.producer_id, header.producer_epoch, header.transactional, header.control))
            position += size
        return found


@pytest.mark.parametrize("committed", [True, False])
def test_they_count_when_the_transaction_is_committed(committed: bool) -> None:
    producer = Producer()
    producer.bench.commit(1)
    assert producer.commits(5) is OK
    assert (producer.bench.offset(), producer.stable()) == (1, UNSTABLE)
    producer.ends(committed=committed)
    expected = 5 if committed else 1
    assert (producer.bench.offset(), producer.stable()) == (expected, expected)
    epoch = producer.epoch
    assert producer.batches() == [
        (-1, -1, False, False),
        (producer.id, epoch - 1, True, False),
        (producer.id, epoch, True, True),
    ]


def test_before_version_5_they_must_be_in_the_transaction() -> None:
    producer = Producer()
    assert producer.commits(5, version=3) is ErrorCode.INVALID_TXN_STATE
    assert producer.commits(5, version=4) is ErrorCode.TRANSACTION_ABORTABLE
    assert producer.adds_offsets() is OK
    assert producer.commits(5, version=3) is OK
    producer.ends(committed=True)
    assert producer.bench.offset() == 5


def test_while_the_transaction_is_open_in_the_log_nobody_is_asked() -> None:
    producer = Producer()
    assert producer.commits(5, transactional_id="nobody's") is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert producer.commits(5) is OK
    assert producer.commits(6, version=3, transactional_id="nobody's") is OK
    producer.ends(committed=True)
    assert producer.bench.offset() == 6


def test_the_log_itself_knows_that_an_epoch_is_over() -> None:
    producer = Producer()
    producer.commits(5)
    producer.ends(committed=True)
    assert (
        producer.commits(6, epoch=producer.epoch - 1, transactional_id="nobody's") is ErrorCode.INVALID_PRODUCER_EPOCH
    )
    assert producer.stable() == 5


def test_verification_can_be_turned_off() -> None:
    """``transaction.partition.verification.enable``; what a commit adds to the transaction is added all the same."""
    producer = Producer(transaction_partition_verification_enable=False)
    assert producer.commits(5, version=4, transactional_id="nobody's") is OK
    assert producer.commits(5, version=5, epoch=producer.epoch + 1) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_marker_that_the_log_refuses_leaves_them_pending() -> None:
    producer = Producer()
    producer.commits(5)
    told: list[str] = []
    ctx = HandlerContext(0, AdminAction("an operator ends the transaction"))
    marker = TransactionMarker(producer.id, producer.epoch - 1, coordinator_epoch=0, committed=True)
    producer.bench.node.coordinator.shard_of("g").complete_transaction(
        ctx, marker, lambda _: told.append("stored"), lambda _, error: told.append(error.name)
    )
    (append,) = ctx.effects
    assert isinstance(append, Append)
    producer.bench.take(producer.bench.node.appends.submit(append, 0))
    assert (told, producer.stable()) == (["INVALID_PRODUCER_EPOCH"], UNSTABLE)


def test_the_gate_is_asked_about_markers_too() -> None:
    producer = Producer()
    producer.commits(5)
    seen: list[TransactionMarker | None] = []

    def hold(append: Append) -> AppendDecision:
        if append.topic == "__consumer_offsets":
            seen.append(append.marker)
            return "hold"
        return STORE

    producer.bench.decision = hold
    producer.ends(committed=True)
    (marker,) = seen
    assert marker is not None
    assert (marker.producer_id, marker.committed, producer.bench.offset()) == (producer.id, True, -1)
    producer.bench.release()
    assert producer.bench.offset() == 5


def test_they_are_still_pending_when_another_coordinator_has_read_the_log() -> None:
    producer = Producer()
    producer.commits(5)
    node = producer.bench.node
    producer.bench.take(node.resign(0, 0))
    node.load(0, 0)
    producer.bench.take(node.expire(0))
    assert (producer.bench.offset(), producer.stable()) == (-1, UNSTABLE)
    producer.ends(committed=True)
    assert producer.stable() == 5
