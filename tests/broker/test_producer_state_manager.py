from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupcoord.broker.producer_state_manager import (
    BATCHES_TO_RETAIN,
    AbortedTransaction,
    BatchMetadata,
    ProducerStateManager,
)
from groupcoord.core.transaction_verification_types import TransactionMarker
from groupcoord.protocol.batches.record_batch import (
    CONTROL,
    TRANSACTIONAL,
    BatchError,
    BatchHeader,
    EndTransactionMarker,
    build_marker,
    empty_batch,
    read_header,
)
from groupcoord.protocol.errors import ErrorCode
from tests.broker.data_plane import THEN_MS, batch

LARGEST = (1 << 31) - 1


def header(
    sequence: int,
    count: int = 1,
    *,
    epoch: int = 0,
    producer: int = 7,
    offset: int = 0,
    at_ms: int = THEN_MS,
    attributes: int = 0,
) -> BatchHeader:
    data = batch(
        *[b"x"] * count,
        producer_id=producer,
        producer_epoch=epoch,
        base_sequence=sequence,
        at_ms=at_ms,
        attributes=attributes,
    )
    return read_header(data)._replace(base_offset=offset)


def in_transaction(sequence: int, **fields: int) -> BatchHeader:
    return header(sequence, attributes=TRANSACTIONAL, **fields)


def marker(
    *, epoch: int = 0, producer: int = 7, coordinator: int = 0, committed: bool = False, version: int = 0
) -> TransactionMarker:
    return TransactionMarker(producer, epoch, coordinator, committed, version)


def states(*headers: BatchHeader) -> ProducerStateManager:
    known = ProducerStateManager("orders-0")
    for one in headers:
        known.check(one)
        known.appended(one)
    return known


def refused(known: ProducerStateManager, one: BatchHeader) -> tuple[ErrorCode, str]:
    with pytest.raises(BatchError) as refusal:
        known.check(one)
    return refusal.value.error, refusal.value.reason


def test_a_producer_that_is_not_known_may_start_anywhere() -> None:
    states(header(77))


def test_batches_follow_one_another() -> None:
    known = states(header(0, 3), header(3, 2, offset=3), header(5, offset=5))
    assert known[7].batches[-1] == BatchMetadata(5, 5, 0, THEN_MS)
    assert (known[7].batches[0].first_sequence, known[7].batches[0].first_offset) == (0, 0)


@pytest.mark.parametrize("sequence", [0, 2, 4, 99])
def test_a_gap_or_an_overlap_is_out_of_order(sequence: int) -> None:
    error, reason = refused(states(header(0, 3)), header(sequence, offset=3))
    assert error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert reason == (
        f"Out of order sequence number for producer 7 at offset 3 in partition orders-0: {sequence} (incoming seq. number), "
        "2 (current end sequence number)"
    )


@pytest.mark.parametrize(("last", "following"), [(LARGEST, 0), (1, 2)])
def test_zero_follows_the_largest_sequence_number(last: int, following: int) -> None:
    known = states(header(LARGEST - 1, 2 + (last + 1 if last < LARGEST else 0)))
    assert known[7].batches[-1].last_sequence == last
    known.check(header(following))
    assert refused(known, header(following + 1))[0] == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_an_old_epoch_is_refused() -> None:
    error, reason = refused(states(header(0, epoch=3)), header(1, epoch=2, offset=1))
    assert error == ErrorCode.INVALID_PRODUCER_EPOCH
    assert "is 2, which is < the last seen epoch 3" in reason


def test_a_new_epoch_starts_at_zero() -> None:
    known = states(header(0, 5))
    error, reason = refused(known, header(5, epoch=1))
    assert error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert "5 (incoming seq. number), 0 is expected in the new epoch 1" in reason
    known.check(header(0, epoch=1))
    known.appended(header(0, epoch=1, offset=5))
    assert (known[7].epoch, list(known[7].batches)) == (1, [BatchMetadata(0, 5, 0, THEN_MS)])


def test_without_an_epoch_batches_need_not_follow_one_another() -> None:
    known = states(header(5, epoch=-1), header(3, epoch=-1, offset=1))
    known.check(header(7, epoch=0, offset=2))


def test_a_repetition_is_recognised_while_it_is_among_the_last_five() -> None:
    sent = [header(sequence, offset=sequence) for sequence in range(7)]
    known = states(*sent)
    found = [known.duplicate_of(one) for one in sent]
    assert found[:2] == [None, None]
    assert [kept.first_offset for kept in found[2:] if kept] == [2, 3, 4, 5, 6]
    assert len(known[7].batches) == BATCHES_TO_RETAIN


@pytest.mark.parametrize("other", [header(0, 2), header(1, 2), header(0, 3, epoch=1), header(0, 3, producer=8)])
def test_only_the_same_records_are_a_repetition(other: BatchHeader) -> None:
    assert states(header(0, 3)).duplicate_of(other) is None


def test_a_repetition_over_the_end_of_the_numbers_is_recognised() -> None:
    kept = states(header(LARGEST - 1, 4, offset=10)).duplicate_of(header(LARGEST - 1, 4))
    assert kept is not None
    assert (kept.first_offset, kept.last_offset, kept.first_sequence, kept.last_sequence) == (10, 13, LARGEST - 1, 1)


def test_a_producer_is_forgotten_when_its_last_record_is_old() -> None:
    known = states(header(0, producer=1, at_ms=1_000), header(0, producer=2, at_ms=1_001))
    known.expire(now_ms=2_000, expiration_ms=1_000)
    assert len(known) == 1
    with pytest.raises(KeyError):
        known[1]
    known.check(header(55, producer=1))


class TestTransactions:
    def test_one_opens_with_its_first_batch_and_ends_with_its_marker(self) -> None:
        known = states(in_transaction(0, offset=3), in_transaction(1, offset=4))
        assert (known.first_unstable_offset, known[7].current_txn_first_offset) == (3, 3)
        assert known.has_ongoing_transaction(7, 0)
        assert known.end_transaction(marker(coordinator=2, committed=True), 5, THEN_MS + 9) is None
        assert known.first_unstable_offset is None
        assert not known.has_ongoing_transaction(7, 0)
        entry = known[7]
        assert (entry.current_txn_first_offset, entry.coordinator_epoch) == (None, 2)
        assert (entry.last_timestamp_ms, entry.last_sequence, entry.last_data_offset) == (THEN_MS + 9, 1, 4)

    def test_one_is_unstable_until_its_marker_is_replicated(self) -> None:
        known = states(*(in_transaction(0, producer=producer, offset=producer) for producer in (1, 2, 3)))
        known.end_transaction(marker(producer=2), 4, THEN_MS)
        known.end_transaction(marker(producer=1), 5, THEN_MS)
        assert [known.first_unstable_at(high_watermark) for high_watermark in (4, 5, 6)] == [1, 1, 3]
        known.end_transaction(marker(producer=3), 6, THEN_MS)
        assert [known.first_unstable_at(high_watermark) for high_watermark in (6, 7)] == [3, None]

    def test_of_several_the_oldest_that_is_open_says_what_is_stable(self) -> None:
        known = states(*(in_transaction(0, producer=producer, offset=producer) for producer in (1, 2, 3)))
        assert known.first_unstable_offset == 1
        assert known.end_transaction(marker(producer=2), 4, THEN_MS) == AbortedTransaction(2, 2, 4, 1)
        assert known.end_transaction(marker(producer=1), 5, THEN_MS) == AbortedTransaction(1, 1, 5, 3)
        assert known.end_transaction(marker(producer=3), 6, THEN_MS) == AbortedTransaction(3, 3, 6, 7)

    def test_an_end_without_a_beginning_is_remembered_all_the_same(self) -> None:
        known = states()
        assert known.end_transaction(marker(epoch=4, coordinator=1), 0, THEN_MS) is None
        entry = known[7]
        assert (entry.epoch, entry.coordinator_epoch, entry.last_sequence, entry.last_data_offset) == (4, 1, -1, -1)

    def test_a_marker_of_a_new_epoch_lets_sequences_start_again(self) -> None:
        known = states(in_transaction(0, offset=0))
        known.end_transaction(marker(epoch=1), 1, THEN_MS)
        assert not known[7].batches
        assert refused(known, in_transaction(1, epoch=1))[0] == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        known.check(in_transaction(0, epoch=1))

    def test_what_is_not_transactional_has_to_wait_for_the_end(self) -> None:
        known = states(in_transaction(0))
        assert refused(known, header(1, offset=1)) == (
            ErrorCode.INVALID_TXN_STATE,
            "Expected transactional write from producer 7 at offset 1 in partition orders-0",
        )
        with pytest.raises(BatchError):
            known.check_own(header(-1, offset=1))

    def test_what_a_coordinator_writes_has_no_sequence_numbers_but_an_epoch(self) -> None:
        known = states()
        for offset in (0, 1):
            own = in_transaction(-1, epoch=2, offset=offset)
            known.check_own(own)
            known.appended(own)
        assert (known[7].last_sequence, known.first_unstable_offset) == (-1, 0)
        with pytest.raises(BatchError, match="is 1, which is < the last seen epoch 2"):
            known.check_own(in_transaction(-1, epoch=1, offset=2))

    def test_who_has_one_open_is_not_forgotten(self) -> None:
        known = states(in_transaction(0, at_ms=1_000))
        known.expire(now_ms=9_000, expiration_ms=1_000)
        assert len(known) == 1
        known.end_transaction(marker(), 1, 1_000)
        known.expire(now_ms=9_000, expiration_ms=1_000)
        assert len(known) == 0


class TestMarkers:
    @staticmethod
    def error(known: ProducerStateManager, one: TransactionMarker) -> ErrorCode:
        try:
            known.check_marker(one)
        except BatchError as problem:
            return problem.error
        return ErrorCode.NONE

    @pytest.mark.parametrize(
        ("epoch", "version", "error"),
        [
            (2, 0, ErrorCode.INVALID_PRODUCER_EPOCH),
            (3, 0, ErrorCode.NONE),
            (3, 1, ErrorCode.NONE),
            (4, 0, ErrorCode.NONE),
            (2, 2, ErrorCode.INVALID_PRODUCER_EPOCH),
            (3, 2, ErrorCode.INVALID_PRODUCER_EPOCH),
            (4, 2, ErrorCode.NONE),
            (2, -1, ErrorCode.INVALID_PRODUCER_EPOCH),
            (3, -1, ErrorCode.UNKNOWN_SERVER_ERROR),
        ],
    )
    def test_the_epoch_is_that_of_the_records_or_larger(self, epoch: int, version: int, error: ErrorCode) -> None:
        known = states(in_transaction(0, epoch=3))
        assert self.error(known, marker(epoch=epoch, version=version)) == error

    @pytest.mark.parametrize("version", [0, 2])
    def test_a_marker_may_come_again(self, version: int) -> None:
        known = states(in_transaction(0, epoch=3))
        known.end_transaction(marker(epoch=4), 1, THEN_MS)
        assert self.error(known, marker(epoch=4, version=version)) == ErrorCode.NONE

    def test_there_is_no_larger_epoch_than_the_largest(self) -> None:
        known = states(in_transaction(0, epoch=32_767))
        assert self.error(known, marker(epoch=32_767, version=2)) == ErrorCode.NONE

    @pytest.mark.parametrize(
        ("epoch", "error"),
        [(4, ErrorCode.TRANSACTION_COORDINATOR_FENCED), (5, ErrorCode.NONE), (6, ErrorCode.NONE)],
    )
    def test_an_old_coordinator_is_fenced(self, epoch: int, error: ErrorCode) -> None:
        known = states(in_transaction(0))
        known.end_transaction(marker(coordinator=5), 1, THEN_MS)
        assert self.error(known, marker(coordinator=epoch)) == error

    def test_of_an_unknown_producer_nearly_any_is_welcome(self) -> None:
        assert self.error(states(), marker(epoch=0, coordinator=-1, version=2)) == ErrorCode.NONE
        assert self.error(states(), marker(coordinator=-2)) == ErrorCode.TRANSACTION_COORDINATOR_FENCED


class TestVerification:
    @staticmethod
    def started(known: ProducerStateManager, sequence: int = 0, epoch: int = 0, *, adds: bool = False) -> object:
        return known.start_verification(7, epoch, sequence, THEN_MS, adds=adds)

    def test_it_lets_a_batch_in_that_shows_it(self) -> None:
        known = states()
        shown = known.start_verification(7, 0, 0, THEN_MS, adds=False)
        known.check_verified(in_transaction(0), shown)
        with pytest.raises(BatchError, match="Record was not part of an ongoing transaction"):
            known.check_verified(in_transaction(0), None)

    def test_an_open_transaction_needs_none(self) -> None:
        known = states(in_transaction(0))
        assert self.started(known, 1) is None
        known.check_verified(in_transaction(1), None)
        assert self.started(known, 0, epoch=1) is not None

    def test_an_old_epoch_is_refused_before_anybody_is_asked(self) -> None:
        known = states(header(0, epoch=3))
        with pytest.raises(BatchError) as refusal:
            self.started(known, epoch=2)
        assert refusal.value.error == ErrorCode.INVALID_PRODUCER_EPOCH
        with pytest.raises(BatchError) as refusal:
            known.check_verified(in_transaction(0, epoch=2), None)
        assert refusal.value.error == ErrorCode.INVALID_PRODUCER_EPOCH

    def test_a_second_one_is_the_same(self) -> None:
        known = states()
        assert self.started(known, 3) is self.started(known, 5)

    @pytest.mark.parametrize(
        ("end", "stands"),
        [
            (lambda known: known.appended(in_transaction(0)), False),
            (lambda known: known.appended(header(0)), True),
            (lambda known: known.end_transaction(marker(), 0, THEN_MS), False),
        ],
    )
    def test_it_ends_with_the_transaction(self, end: Callable[[ProducerStateManager], object], stands: bool) -> None:
        known = states()
        before = self.started(known)
        end(known)
        assert (self.started(known, 1, epoch=1) is before) is stands

    def test_the_marker_of_the_transaction_before_leaves_it(self) -> None:
        known = states(in_transaction(0))
        before = self.started(known, 0, epoch=1, adds=True)
        known.end_transaction(marker(epoch=1), 1, THEN_MS)
        assert self.started(known, 0, epoch=1, adds=True) is before
        known.end_transaction(marker(epoch=2), 2, THEN_MS)
        assert self.started(known, 0, epoch=2, adds=True) is not before

    @pytest.mark.parametrize(
        ("before", "sequence", "allowed"),
        [
            ([(4, 0)], 5, False),
            ([(4, 0)], 4, True),
            ([(4, 0), (3, 0)], 4, False),
            ([(4, 0), (3, 0)], 3, True),
            ([(4, 0), (6, 0)], 5, False),
            ([(4, 0), (6, 1)], 5, True),
            ([(4, 1), (2, 0)], 4, True),
        ],
    )
    def test_nothing_overtakes_what_failed(self, before: list[tuple[int, int]], sequence: int, allowed: bool) -> None:
        known = states()
        for seen, epoch in before:
            self.started(known, seen, epoch)
        if allowed:
            known.check(header(sequence, epoch=1))
        else:
            assert refused(known, header(sequence, epoch=1))[0] == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    def test_who_adds_partitions_by_writing_starts_with_zero(self) -> None:
        known = states()
        self.started(known, 4, adds=True)
        assert refused(known, in_transaction(4))[0] == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        known.check(in_transaction(0))
        known.appended(header(0, 4))
        known.check(in_transaction(4))

    def test_it_is_forgotten_one_day(self) -> None:
        known = states()
        self.started(known)
        known.expire(THEN_MS + 999, 1_000)
        assert len(known) == 1
        known.expire(THEN_MS + 1_000, 1_000)
        assert len(known) == 0


class TestFromALog:
    @staticmethod
    def replayed(*batches: bytes) -> tuple[ProducerStateManager, list[AbortedTransaction | None]]:
        known = ProducerStateManager("orders-0")
        return known, [known.replay(read_header(one), one) for one in batches]

    @staticmethod
    def end(offset: int, *, committed: bool) -> bytes:
        said = EndTransactionMarker(committed, coordinator_epoch=3, timestamp_ms=THEN_MS + 1)
        return build_marker(offset, said, leader_epoch=0, producer_id=7, producer_epoch=1)

    def test_what_it_has_is_known(self) -> None:
        written = batch(b"x", attributes=TRANSACTIONAL, producer_id=7, producer_epoch=0, base_sequence=0)
        known, aborted = self.replayed(
            batch(b"nobody's"),
            written,
            self.end(1, committed=False),
            self.end(2, committed=True),
        )
        assert aborted == [None, None, AbortedTransaction(7, 0, 1, 2), None]
        entry = known[7]
        assert (entry.epoch, entry.coordinator_epoch, entry.last_timestamp_ms) == (1, 3, THEN_MS + 1)

    @pytest.mark.parametrize(
        "odd",
        [
            empty_batch(read_header(end(0, committed=True))),
            batch(b"\0\0\0\0\0\0", key=b"\0\0\0\4", attributes=CONTROL, producer_id=7, producer_epoch=0),
            batch(b"\0\0", key=b"\0\0\0\0", attributes=CONTROL, producer_id=7, producer_epoch=0),
            batch(None, key=b"\0\0\0\0", attributes=CONTROL, producer_id=7, producer_epoch=0),
        ],
    )
    def test_what_ends_no_transaction_says_nothing(self, odd: bytes) -> None:
        known, _ = self.replayed(odd)
        assert len(known) == 0

    def test_a_snapshot_has_the_open_transactions_in_any_order(self) -> None:
        known = ProducerStateManager("orders-0")
        for producer, first in ((1, 9), (2, 4)):
            last = BatchMetadata(0, first, 0, THEN_MS)
            known.restore(producer, 0, last, coordinator_epoch=5, current_txn_first_offset=first)
        known.restore(3, 2, None, last_timestamp_ms=THEN_MS + 1)
        assert known.first_unstable_offset == 4
        assert (known[1].coordinator_epoch, known[1].last_timestamp_ms) == (5, THEN_MS)
        assert (known[3].epoch, known[3].last_sequence, known[3].last_timestamp_ms) == (2, -1, THEN_MS + 1)
        assert known.end_transaction(marker(producer=2), 10, THEN_MS) == AbortedTransaction(2, 4, 10, 9)


@pytest.mark.slow
@given(
    counts=st.lists(st.integers(1, 5), min_size=1, max_size=12),
    start=st.integers(LARGEST - 8, LARGEST) | st.integers(0, 5),
)
def test_a_producer_that_counts_right_is_never_refused(counts: list[int], start: int) -> None:
    known, sequence, offset = ProducerStateManager("orders-0"), start, 0
    for count in counts:
        one = header(sequence, count, offset=offset)
        known.check(one)
        known.appended(one)
        again = known.duplicate_of(one)
        assert again is not None
        assert again.first_offset == offset
        sequence, offset = (sequence + count) & LARGEST, offset + count
