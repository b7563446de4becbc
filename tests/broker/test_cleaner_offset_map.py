"""What is known of a log before it is cleaned."""

import pytest

from groupcoord.broker.cleaner_offset_map import CleanerOffsetMap, batches
from groupcoord.broker.log_segment import LogSegment
from groupcoord.core.background_work import run_to_end
from groupcoord.protocol.batches.record_batch import BatchError, build_batch, read_header
from groupcoord.protocol.batches.records import Record

COMMIT, ABORT = b"\x00\x00\x00\x01", b"\x00\x00\x00\x00"


def segment(*made: bytes) -> LogSegment:
    found = LogSegment(read_header(made[0]).base_offset, 0)
    for batch in made:
        found.append(batch, read_header(batch), 0)
    return found


def data(offset: int, *keys: bytes | None, producer: int = -1, epoch: int = 0) -> bytes:
    records = [Record(offset + index, 9, key, b"") for index, key in enumerate(keys)]
    attributes = 0 if producer < 0 else 0x10
    return build_batch(records, attributes=attributes, producer_id=producer, producer_epoch=epoch)


def marker(offset: int, key: bytes, producer: int, epoch: int = 0) -> bytes:
    record = Record(offset, 9, key, bytes(6))
    return build_batch([record], attributes=0x30, producer_id=producer, producer_epoch=epoch)


def test_the_last_offset_of_each_key() -> None:
    offset_map = CleanerOffsetMap([segment(data(0, b"a", b"b", None)), segment(data(3, b"a"))], 1, 0)
    assert offset_map.last_offsets == {b"b": 1, b"a": 3}
    assert not offset_map.has_transactions
    offset_map = CleanerOffsetMap([segment(data(0, b"a", b"b", None))], 3, 0)
    assert offset_map.last_offsets == {}


def test_which_batches_have_to_be_read_again() -> None:
    tombstone = build_batch([Record(4, 9, b"a", None)], attributes=0x10, producer_id=1)
    log = segment(data(0, b"a"), data(1, b"a", b"b", None), tombstone, data(5, b"c"))
    assert CleanerOffsetMap([log], 0, 0).unusual == {1, 4}
    assert CleanerOffsetMap([log], 2, 0).unusual == {4}, "of a batch that lies before, or in part, nothing is said"


def test_transactions_of_several_producers_side_by_side() -> None:
    log = segment(
        data(0, b"a", producer=1),
        data(1, b"a", producer=2),
        data(2, b"b", producer=1),
        marker(3, ABORT, 2),
        data(4, b"c", producer=3),
        marker(5, COMMIT, 1),
    )
    offset_map = CleanerOffsetMap([log], 0, 0)
    assert offset_map.last_offsets == {b"a": 0, b"b": 2}
    assert offset_map.aborted == {1}
    assert (offset_map.has_transactions, offset_map.first_open_offset) == (True, 4)
    run_to_end(
        offset_map.read_later_segments([segment(data(6, b"c"), data(7, b"d", producer=3), marker(8, COMMIT, 3))])
    )
    assert offset_map.first_open_offset is None
    assert offset_map.last_offsets == {b"a": 0, b"b": 2, b"c": 4}, "what comes later does not count"


def test_the_epoch_of_a_marker_is_remembered_until_there_is_a_batch_of_it() -> None:
    first = [data(0, b"a", producer=1), marker(1, COMMIT, 1, epoch=1), marker(2, COMMIT, 2, epoch=4)]
    assert CleanerOffsetMap([segment(*first)], 0, 0).markers == {1: 1, 2: 4}
    assert CleanerOffsetMap([segment(*first, data(3, b"a", producer=1, epoch=1))], 0, 0).markers == {2: 4}
    assert CleanerOffsetMap([segment(*first)], 0, 9).markers == {}, "nobody has heard of them since"


@pytest.mark.parametrize(("at", "value"), [(16, 1), (11, 48), (11, 99)], ids=["magic", "too short", "too long"])
def test_what_is_no_batch_is_told(at: int, value: int) -> None:
    broken = segment(data(0, b"a"), data(1, b"b"))
    size = len(data(0, b"a"))
    broken.data[size + at] = value
    found = batches(broken)
    assert next(found)[0].base_offset == 0
    with pytest.raises(BatchError, match=r"^what begins at offset 1, of length \d+ and magic \d, is no batch$"):
        next(found)
