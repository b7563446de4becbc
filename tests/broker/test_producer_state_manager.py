import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupcoord.broker.producer_state_manager import BATCHES_TO_RETAIN, BatchMetadata, ProducerStateManager
from groupcoord.protocol.batches.record_batch import BatchError, BatchHeader, read_header
from groupcoord.protocol.errors import ErrorCode
from tests.broker.data_plane import THEN_MS, batch

LARGEST = (1 << 31) - 1


def header(
    sequence: int, count: int = 1, *, epoch: int = 0, producer: int = 7, offset: int = 0, at_ms: int = THEN_MS
) -> BatchHeader:
    data = batch(*[b"x"] * count, producer_id=producer, producer_epoch=epoch, base_sequence=sequence, at_ms=at_ms)
    return read_header(data)._replace(base_offset=offset)


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
    assert reason.startswith("Invalid sequence number for new epoch of producer 7")
    known.check(header(0, epoch=1))
    known.appended(header(0, epoch=1, offset=5))
    assert (known[7].epoch, list(known[7].batches)) == (1, [BatchMetadata(0, 5, 0, THEN_MS)])


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
