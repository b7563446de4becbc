"""Produce with transactional batches: what the coordinator is asked, and what producers are told."""

from typing import Any

import pytest

from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.events import AdminAction
from groupcoord.core.transaction_verification_types import TransactionalWrite
from groupcoord.protocol.apis.produce import PartitionProduceResponse
from groupcoord.protocol.batches.record_batch import CONTROL, TRANSACTIONAL
from groupcoord.protocol.errors import ErrorCode
from tests.broker.data_plane import DataPlane, batch, patched, produce_request
from tests.broker.transactions import Coordinator, end, part, write

UNVERIFIED = "Unable to verify the partition has been added to the transaction. Underlying error: "


@pytest.fixture
def plane() -> DataPlane:
    made = DataPlane()
    made.topic("orders", 3)
    return made


def coordinator(plane: DataPlane, errors: dict[int, ErrorCode] | None = None, *, later: bool = False) -> Coordinator:
    made = Coordinator({("orders", number): error for number, error in (errors or {}).items()}, later=later)
    plane.broker.verify_transaction = made
    return made


def request(plane: DataPlane, *batches: bytes, version: int = 12, transactional_id: str | None = "t") -> Any:
    return produce_request(plane, "orders", dict(enumerate(batches)), version, transactional_id=transactional_id)


def produce(
    plane: DataPlane, *batches: bytes, version: int = 12, transactional_id: str | None = "t", **how: Any
) -> list[PartitionProduceResponse]:
    asked = request(plane, *batches, version=version, transactional_id=transactional_id)
    response = plane.ask(asked, version, **how)
    return [outcome for topic in response.responses for outcome in topic.partition_responses]


def errors(outcomes: list[PartitionProduceResponse]) -> list[tuple[int, int, str | None]]:
    return [(one.index, one.error_code, one.error_message) for one in outcomes]


class TestAsking:
    @pytest.mark.parametrize(
        ("version", "adds", "gives_abortable"),
        [(3, False, False), (10, False, False), (11, False, True), (12, True, True), (13, True, True)],
    )
    def test_the_coordinator_is_asked_before_a_transaction_opens(
        self, plane: DataPlane, version: int, adds: bool, gives_abortable: bool
    ) -> None:
        asked = coordinator(plane)
        outcomes = produce(plane, part(0, producer=5, epoch=2), part(0, producer=5, epoch=2), version=version)
        assert [one.base_offset for one in outcomes] == [0, 0]
        write = TransactionalWrite("t", 5, 2, adds=adds, gives_abortable=gives_abortable)
        assert asked.asked == [(write, (("orders", 0), ("orders", 1)))]
        assert plane.log("orders").last_stable_offset == 0

    def test_it_is_not_while_it_is_open(self, plane: DataPlane) -> None:
        asked = coordinator(plane)
        produce(plane, part(0))
        produce(plane, part(1), part(0))
        assert [partitions for _, partitions in asked.asked] == [(("orders", 0),), (("orders", 1),)]
        produce(plane, part(2), part(1))
        assert len(asked.asked) == 2

    def test_it_is_not_about_what_is_in_no_transaction(self, plane: DataPlane) -> None:
        asked = coordinator(plane)
        outcomes = produce(plane, part(0, transactional=False), part(0, producer=-1, epoch=-1))
        assert [one.error_code for one in outcomes] == [0, 0]
        assert asked.asked == []
        assert plane.log("orders", 1).last_stable_offset == 1

    def test_without_a_coordinator_producers_are_to_try_again(self, plane: DataPlane) -> None:
        coordinator(plane, {0: ErrorCode.COORDINATOR_NOT_AVAILABLE})
        (outcome,) = produce(plane, part(0))
        assert (outcome.error_code, outcome.error_message) == (
            ErrorCode.NOT_ENOUGH_REPLICAS,
            f"{UNVERIFIED}COORDINATOR_NOT_AVAILABLE",
        )

    def test_the_answer_may_come_later(self, plane: DataPlane) -> None:
        asked = coordinator(plane, {1: ErrorCode.TRANSACTION_ABORTABLE}, later=True)
        call = plane.send(request(plane, part(0), part(0)), 12)
        assert plane.answer_to(call) is None
        assert plane.log("orders").log_end_offset == 0
        ctx = HandlerContext(plane.now_ms, AdminAction("a test"))
        asked.answer(ctx)
        plane.later += ctx.effects
        (topic,) = plane.answer_to(call).responses
        assert errors(list(topic.partition_responses)) == [(1, ErrorCode.TRANSACTION_ABORTABLE, None), (0, 0, None)]

    def test_a_topic_may_be_gone_by_then(self, plane: DataPlane) -> None:
        asked = coordinator(plane, later=True)
        call = plane.send(request(plane, part(0)), 12)
        plane.broker.topics.delete("orders")
        ctx = HandlerContext(plane.now_ms, AdminAction("a test"))
        asked.answer(ctx)
        plane.later += ctx.effects
        (topic,) = plane.answer_to(call).responses
        assert topic.partition_responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def test_the_transaction_may_have_ended_by_then(self, plane: DataPlane) -> None:
        asked = coordinator(plane, later=True)
        call = plane.send(request(plane, part(0), version=9), 9)
        write(plane.log("orders"), end())
        ctx = HandlerContext(plane.now_ms, AdminAction("a test"))
        asked.answer(ctx)
        plane.later += ctx.effects
        (topic,) = plane.answer_to(call).responses
        assert errors(list(topic.partition_responses)) == [(0, ErrorCode.INVALID_TXN_STATE, None)]

    def test_an_old_epoch_is_refused_without_asking(self, plane: DataPlane) -> None:
        asked = coordinator(plane)
        write(plane.log("orders"), end(epoch=3))
        outcomes = produce(plane, part(0, epoch=2), part(0, epoch=2))
        assert errors(outcomes) == [(0, ErrorCode.INVALID_PRODUCER_EPOCH, None), (1, 0, None)]
        assert [partitions for _, partitions in asked.asked] == [(("orders", 1),)]

    def test_only_the_leader_asks(self) -> None:
        plane = DataPlane(brokers=2, node_id=1)
        plane.broker.topics.create("orders", 2, {}, plane.now_ms, replicas=[(1,), (2,)])
        asked = coordinator(plane)
        outcomes = produce(plane, part(0), part(0), to=1)
        assert [one.error_code for one in outcomes] == [0, ErrorCode.NOT_LEADER_OR_FOLLOWER]
        assert outcomes[1].current_leader.leader_id == 2
        assert [partitions for _, partitions in asked.asked] == [(("orders", 0),)]

    def test_what_takes_long_to_check_is_asked_about_once(self, plane: DataPlane) -> None:
        asked = coordinator(plane)
        works: list[Any] = []

        def aside(_ctx: HandlerContext, _call: Any, work: Any, then: Any) -> None:
            works.append((work, then))

        plane.broker.run_work = aside
        large = batch(*[b""] * 3_000, attributes=TRANSACTIONAL, producer_id=7, producer_epoch=0, base_sequence=0)
        call = plane.send(request(plane, large), 12)
        ((work, then),) = works
        try:
            while True:
                next(work)
        except StopIteration as done:
            ctx = HandlerContext(plane.now_ms, AdminAction("a test"))
            then(ctx, done.value)
        plane.later += ctx.effects
        (topic,) = plane.answer_to(call).responses
        assert (topic.partition_responses[0].error_code, len(asked.asked)) == (0, 1)


class TestVerificationDisabled:
    """``transaction.partition.verification.enable=false``."""

    @pytest.fixture
    def plane(self) -> DataPlane:
        made = DataPlane(transaction_partition_verification_enable=False)
        made.topic("orders", 2)
        return made

    def test_nobody_is_asked(self, plane: DataPlane) -> None:
        asked = coordinator(plane)
        assert errors(produce(plane, part(0), version=11)) == [(0, 0, None)]
        assert asked.asked == []

    def test_partitions_are_added_all_the_same(self, plane: DataPlane) -> None:
        asked = coordinator(plane, {0: ErrorCode.INVALID_PRODUCER_EPOCH})
        assert errors(produce(plane, part(0))) == [(0, ErrorCode.INVALID_PRODUCER_EPOCH, None)]
        assert len(asked.asked) == 1


class TestRefusals:
    @pytest.mark.parametrize(
        ("said", "told", "message"),
        [
            (ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_TXN_STATE, "Partition was not added to the transaction"),
            (ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.TRANSACTION_ABORTABLE, None),
            (ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.INVALID_PRODUCER_ID_MAPPING, None),
            (ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_ENOUGH_REPLICAS, f"{UNVERIFIED}NOT_COORDINATOR"),
            (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NOT_ENOUGH_REPLICAS, f"{UNVERIFIED}CONCURRENT_TRANSACTIONS"),
        ],
    )
    def test_what_the_coordinator_says_is_told(
        self, plane: DataPlane, said: ErrorCode, told: ErrorCode, message: str | None
    ) -> None:
        coordinator(plane, {0: said})
        outcomes = produce(plane, part(0), part(0), version=11)
        assert errors(outcomes) == [(0, told, message), (1, 0, None)]
        assert (outcomes[0].base_offset, outcomes[0].log_append_time_ms, outcomes[0].log_start_offset) == (-1, -1, -1)
        assert plane.log("orders").log_end_offset == 0

    def test_a_transaction_needs_an_id(self, plane: DataPlane) -> None:
        coordinator(plane)
        outcomes = produce(plane, batch(b"a"), part(0), transactional_id=None)
        assert [one.error_code for one in outcomes] == [ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED] * 2

    @pytest.mark.parametrize("other", [part(0, producer=8), part(0, epoch=1)])
    def test_there_is_one_producer_in_a_request(self, plane: DataPlane, other: bytes) -> None:
        asked = coordinator(plane)
        outcomes = produce(plane, part(0), other)
        message = "Transactional records contained more than one producer ID"
        assert errors(outcomes) == [
            (0, ErrorCode.INVALID_PRODUCER_ID_MAPPING, message),
            (1, ErrorCode.INVALID_PRODUCER_ID_MAPPING, message),
        ]
        assert (asked.asked, plane.log("orders").log_end_offset) == ([], 0)

    def test_clients_write_no_markers(self, plane: DataPlane) -> None:
        asked = coordinator(plane)
        marker = batch(b"x", attributes=TRANSACTIONAL | CONTROL, producer_id=7, producer_epoch=0, base_sequence=0)
        assert [one.error_code for one in produce(plane, marker)] == [ErrorCode.INVALID_RECORD]
        assert len(asked.asked) == 1

    @pytest.mark.parametrize(("size", "error"), [(56, ErrorCode.UNKNOWN_SERVER_ERROR), (57, ErrorCode.CORRUPT_MESSAGE)])
    def test_a_batch_may_end_before_its_sequence_number(self, plane: DataPlane, size: int, error: ErrorCode) -> None:
        coordinator(plane)
        short = patched(part(0), length=size - 12)[:size]
        assert [one.error_code for one in produce(plane, short)] == [error]

    def test_what_is_in_no_transaction_waits_for_its_end(self, plane: DataPlane) -> None:
        coordinator(plane)
        produce(plane, part(0))
        assert errors(produce(plane, part(1, transactional=False))) == [(0, ErrorCode.INVALID_TXN_STATE, None)]

    def test_what_failed_is_not_overtaken(self, plane: DataPlane) -> None:
        """As a real broker has it, even by what is in no transaction."""
        coordinator(plane, {0: ErrorCode.INVALID_TXN_STATE})
        for sequence in (3, 4):
            produce(plane, part(sequence), version=9)
        out_of_order = [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]
        idempotent = [part(sequence, transactional=False) for sequence in (5, 3, 4)]
        assert [one.error_code for one in produce(plane, idempotent[0])] == out_of_order
        assert [one.error_code for one in produce(plane, idempotent[1])] == [0]
        assert [one.error_code for one in produce(plane, idempotent[2])] == out_of_order


class TestTheTransactionBefore:
    """From v12 on the broker itself waits a little for the end of the transaction before."""

    def ask(self, plane: DataPlane, version: int = 12) -> tuple[Coordinator, Any]:
        asked = coordinator(plane, {0: ErrorCode.CONCURRENT_TRANSACTIONS})
        return asked, plane.send(request(plane, part(0), version=version), version)

    def test_it_asks_again_until_it_has_ended(self, plane: DataPlane) -> None:
        asked, call = self.ask(plane)
        plane.wait(19)
        assert len(asked.asked) == 1
        asked.errors.clear()
        plane.wait(1)
        assert len(asked.asked) == 2
        (topic,) = plane.answer_to(call).responses
        assert topic.partition_responses[0].error_code == 0

    def test_in_the_end_the_producer_is_to_try_again(self, plane: DataPlane) -> None:
        asked, call = self.ask(plane)
        plane.wait(99)
        assert plane.answer_to(call) is None
        plane.wait(1)
        assert len(asked.asked) == 6
        (topic,) = plane.answer_to(call).responses
        assert errors(list(topic.partition_responses)) == [(0, ErrorCode.CONCURRENT_TRANSACTIONS, None)]

    def test_before_that_it_does_not_wait(self, plane: DataPlane) -> None:
        asked, call = self.ask(plane, version=11)
        assert plane.answer_to(call) is not None
        assert len(asked.asked) == 1
