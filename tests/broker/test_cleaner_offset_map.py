"""What is known of a log before it is cleaned: the last offset of each key, and what of transactions goes."""

import pytest

from groupcoord.broker.cleaner import CleanedTransactions, CleanerOffsetMap, batches
from groupcoord.broker.log_segment import LogSegment
from groupcoord.broker.producer_state_manager import AbortedTransaction
from groupcoord.core.background_work import run_to_end
from groupcoord.protocol.batches.key_value_reader import read_key_values
from groupcoord.protocol.batches.record_batch import BatchError, build_batch, empty_batch, read_header
from groupcoord.protocol.batches.records import Record

COMMIT, ABORT, LEADER_CHANGE = b"\x00\x00\x00\x01", b"\x00\x00\x00\x00", b"\x00\x00\x00\x02"


def segment(*made: bytes) -> LogSegment:
    found = LogSegment(read_header(made[0]).base_offset, 0)
    for batch in made:
        found.append(batch, read_header(batch), 0)
    return found


def data(offset: int, *keys: bytes | None, producer: int = -1) -> bytes:
    records = [Record(offset + index, 9, key, b"") for index, key in enumerate(keys)]
    attributes = 0 if producer < 0 else 0x10
    return build_batch(records, attributes=attributes, producer_id=producer, producer_epoch=0)


def marker(offset: int, key: bytes, producer: int) -> bytes:
    return build_batch([Record(offset, 9, key, bytes(6))], attributes=0x30, producer_id=producer, producer_epoch=0)


def survey(segments: list[LogSegment], from_offset: int, *aborted: AbortedTransaction) -> CleanerOffsetMap:
    offset_map = CleanerOffsetMap(from_offset, aborted)
    run_to_end(offset_map.read_segments(segments))
    return offset_map


def test_the_last_offset_of_each_key() -> None:
    offset_map = survey([segment(data(0, b"a", b"b", None)), segment(data(3, b"a"))], 1)
    assert offset_map.last_offsets == {b"b": 1, b"a": 3}
    assert survey([segment(data(0, b"a", b"b", None))], 3).last_offsets == {}


def test_which_batches_have_to_be_read_again() -> None:
    tombstone = build_batch([Record(4, 9, b"a", None)], attributes=0x10, producer_id=1)
    log = segment(data(0, b"a"), data(1, b"a", b"b", None), tombstone, data(5, b"c"))
    assert survey([log], 0).unusual == {1, 4}
    assert survey([log], 2).unusual == {4}, "of a batch that lies before, or in part, nothing is said"


def test_transactions_of_several_producers_side_by_side() -> None:
    log = segment(
        data(0, b"a", producer=1),
        data(1, b"a", producer=2),
        data(2, b"b", producer=1),
        marker(3, ABORT, 2),
        data(4, b"b", producer=2),
        marker(5, COMMIT, 1),
        marker(6, COMMIT, 2),
    )
    assert survey([log], 0, AbortedTransaction(2, 1, 3, 0)).last_offsets == {b"a": 0, b"b": 4}


def walk(transactions: CleanedTransactions, *log: bytes) -> list[bool]:
    """Of each batch, whether it is aborted; of each marker, whether it ends nothing."""
    said = []
    for batch in log:
        header = read_header(batch)
        if header.control:
            said.append(transactions.can_discard(header, read_key_values(batch)))
        else:
            said.append(transactions.is_aborted(header))
    return said


def test_an_aborted_transaction_stays_in_the_index_while_a_batch_of_it_is_there() -> None:
    first, second = AbortedTransaction(1, 0, 2, 3), AbortedTransaction(1, 5, 9, 10)
    transactions = CleanedTransactions([second, first])
    log = (data(1, b"a", producer=1), marker(2, ABORT, 1), data(3, b"a", producer=1), marker(4, COMMIT, 1))
    assert walk(transactions, *log, marker(9, ABORT, 1)) == [True, False, False, False, True]
    assert transactions.index == [first], "of the second no batch was left"


def test_a_marker_without_its_transaction_ends_nothing() -> None:
    emptied = empty_batch(read_header(marker(7, ABORT, 3)))
    log = (marker(0, COMMIT, 1), marker(1, ABORT, 1), data(2, b"a", producer=3), emptied, marker(8, COMMIT, 3))
    assert walk(CleanedTransactions(()), *log) == [True, True, False, True, False]


def test_other_control_records_are_none_of_its_business() -> None:
    change = build_batch([Record(0, 9, LEADER_CHANGE, bytes(6))], attributes=0x20)
    assert walk(CleanedTransactions(()), change) == [False]


def test_a_batch_without_a_transaction_is_never_aborted() -> None:
    plain = build_batch([Record(1, 9, b"a", b"")], producer_id=1, producer_epoch=0)
    assert walk(CleanedTransactions([AbortedTransaction(1, 0, 9, 10)]), plain) == [False]


@pytest.mark.parametrize(("at", "value"), [(16, 1), (11, 48), (11, 99)], ids=["magic", "too short", "too long"])
def test_what_is_no_batch_is_told(at: int, value: int) -> None:
    broken = segment(data(0, b"a"), data(1, b"b"))
    size = len(data(0, b"a"))
    broken.data[size + at] = value
    found = batches(broken)
    assert next(found)[0].base_offset == 0
    with pytest.raises(BatchError, match=r"^what begins with offset 1, length \d+ and magic \d is not a batch$"):
        next(found)
