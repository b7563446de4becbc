"""What a consumer knows of its partitions."""

import contextlib
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupcoord.client.assigned_partitions import AssignedPartitions, PartitionState, StartPosition
from groupcoord.client.client_errors import CorruptRecordsError
from groupcoord.client.completed_fetch import ConsumerRecord, FetchedBatches, check_batches, decode_records
from groupcoord.protocol.apis.fetch import AbortedTransaction
from groupcoord.protocol.batches.compression import Compression
from groupcoord.protocol.batches.record_batch import (
    CONTROL,
    TRANSACTIONAL,
    build_batch,
    empty_batch,
    frame_batch,
    read_header,
)
from groupcoord.protocol.batches.records import Header, Record

A, B = ("t", 0), ("t", 1)


def records(*offsets: int, partition: tuple[str, int] = A) -> list[ConsumerRecord]:
    return [ConsumerRecord(*partition, offset, 0, None, b"%d" % offset, (), 4) for offset in offsets]


def fetched(*batches: Sequence[int], partition: tuple[str, int] = A, start: int = 0) -> FetchedBatches:
    """Batches with records at these offsets."""
    data = b"".join(
        build_batch([Record(offset, 0, None, b"%d" % offset) for offset in offsets], leader_epoch=4)
        for offsets in batches
    )
    return check_batches(partition, data, start)


def emptied(first: int, last: int) -> bytes:
    """A batch whose records compaction has taken."""
    return empty_batch(read_header(build_batch([Record(first, 0, None, b""), Record(last, 0, None, b"")])))


def unreadable(offset: int) -> bytes:
    """A batch that has the right checksum, and a record that is none."""
    return frame_batch(read_header(build_batch([Record(offset, 0, None, b"")])), b"\xff")


def stocked(*partitions: tuple[str, int], each: int = 3) -> AssignedPartitions:
    """Each with as many records, from offset 0."""
    table = AssignedPartitions()
    table.assign(partitions)
    for state in table:
        state.move_to(0)
        state.put(fetched(range(each), partition=state.partition))
    return table


def test_a_new_partition_begins_where_the_group_left_off() -> None:
    table = AssignedPartitions()
    table.assign([A])
    assert (table[A].start, table[A].deliverable, table[A].in_flight) == (StartPosition.COMMITTED, True, False)
    assert A in table
    assert table.consumed() == {}


def test_what_stays_goes_on_undisturbed() -> None:
    table = stocked(A, B)
    kept, gone = table[A], table[B]
    table.assign([A, ("t", 2)])
    assert table[A] is kept
    assert (gone.version, B in table, table.get(B)) == (2, False, None)
    with pytest.raises(KeyError, match="t-1 is not assigned"):
        table[B]


def test_positions_follow_what_is_handed_out_and_settle_at_the_next_poll() -> None:
    table = stocked(A)
    assert [record.offset for record in table.take(2)[A]] == [0, 1]
    assert (table.consumed(), table.consumed(settled=True)) == ({A: (2, 4)}, {A: (0, -1)})
    table.mark_processed()
    assert table.consumed(settled=True) == {A: (2, 4)}
    table.take(9)
    assert (table[A].position, table[A].buffered, table.take(9)) == (3, 0, {})


def test_the_last_record_leads_past_what_is_behind_it() -> None:
    """Markers and gaps are nothing to wait for."""
    table = AssignedPartitions()
    table.assign([A])
    table[A].move_to(0)
    table[A].put(check_batches(A, batch(0, 3) + emptied(4, 6), 0))
    assert table[A].buffered == 2
    table.take(1)
    assert table[A].position == 1
    table.take(1)
    assert table[A].position == 7
    table[A].put(check_batches(A, emptied(7, 8), 7))
    assert table[A].position == 7, "what was handed out is not settled yet"
    table.mark_processed()
    table[A].put(check_batches(A, emptied(9, 9), 9))
    assert (table[A].position, table[A].settled, table.take(9)) == (10, 10, {})


def test_batches_are_read_when_their_turn_comes() -> None:
    table = AssignedPartitions()
    table.assign([A])
    table[A].move_to(1)
    table[A].put(fetched([0, 1], [2, 3], [4], start=1))
    assert (len(table[A].unread), table[A].buffered) == (2, 4)
    assert [record.offset for record in table.take(2)[A]] == [1, 2]
    assert (len(table[A].unread), table[A].buffered) == (1, 2)
    assert [record.offset for record in table.take(9)[A]] == [3, 4]
    assert (table[A].position, table[A].buffered) == (5, 0)


def test_a_batch_that_cannot_be_read_stays_where_it_is_and_stops_no_other() -> None:
    table = AssignedPartitions()
    table.assign([A, B])
    for state in table:
        state.move_to(0)
    table[A].put(check_batches(A, batch(0) + unreadable(1), 0))
    assert [record.offset for record in table.take(9)[A]] == [0]
    assert table[A].position == 1
    table[B].put(fetched([0], [1], partition=B))
    assert table.take(1) == {B: records(0, partition=B)}, "it is asked first now"
    for _ in range(2):
        with pytest.raises(CorruptRecordsError, match="t-0 at offset 1 or behind: the records reach beyond the batch"):
            table.take(9)
        table[B].move_to(0)
        table[B].put(fetched([0], partition=B))
        assert table.take(9) == {B: records(0, partition=B)}
    assert table[A].position == 1
    table[A].move_to(2)
    assert not table[A].has_records


def test_turns_are_taken() -> None:
    table = stocked(A, B)
    assert list(table.take(4)) == [A, B]
    assert list(table.take(1)) == [B]
    assert table.take(1) == {B: records(2, partition=B)}


def test_a_run_hands_out_one_record_after_the_other_and_takes_those_before_for_processed() -> None:
    table = AssignedPartitions()
    table.assign([A])
    table[A].move_to(0)
    table[A].put(fetched([0, 1], [2], [3, 4]))
    assert table.take_next() is None, "no run has begun"
    table.take(1)
    table.begin_run(A, 3)
    assert [table.take_next() for _ in range(2)] == records(1, 2)
    assert (table.consumed(), table.consumed(settled=True)) == ({A: (3, 4)}, {A: (2, 4)})
    assert [table.take_next(), table.take_next()] == [*records(3), None], "it was to be of three records"
    table.begin_run(A, 3)
    table.end_run()
    assert table.take_next() is None
    table.begin_run(A, 3)
    assert [table.take_next(), table.take_next()] == [*records(4), None]
    assert (table[A].position, table[A].buffered) == (5, 0)


def test_a_run_ends_before_what_cannot_be_read() -> None:
    table = AssignedPartitions()
    table.assign([A])
    table[A].move_to(0)
    table[A].put(check_batches(A, batch(0, 1) + unreadable(2), 0))
    table.take(1)
    table.begin_run(A, 9)
    assert [record and record.offset for record in (table.take_next(), table.take_next())] == [1, None]
    assert table[A].position == 2


def test_nothing_comes_of_what_is_paused_or_held() -> None:
    table = stocked(A, B)
    table[A].paused = True
    table.stop_delivery([B, ("gone", 0)])
    assert table.take(9) == {}
    table[A].paused = False
    assert list(table.take(9)) == [A]


def test_a_seek_forgets_what_was_fetched() -> None:
    state = PartitionState(A)
    state.asked_version = state.version
    state.read_replica = 7
    in_flight = [state.in_flight]
    state.move_to(5, 2)
    in_flight.append(state.in_flight)
    assert in_flight == [True, False]
    assert [state.position, state.settled, state.fetched_to, state.leader_epoch] == [5, 5, 5, 2]
    assert [state.read_replica] == [None]
    state.put(fetched([5, 6], [7], start=5))
    state.find(StartPosition.LATEST)
    assert [state.start, state.has_records, state.buffered] == [StartPosition.LATEST, False, 0]


def test_what_is_gone_is_not_settled() -> None:
    table = stocked(A)
    table.take(1)
    table.assign([])
    table.mark_processed()
    assert table.consumed() == {}


T = ("t", 0)
ABORT, COMMIT = b"\0\0\0\0", b"\0\0\0\1"


def batch(*offsets: int, attributes: int = 0, producer: int = -1, key: bytes | None = None) -> bytes:
    records = [Record(offset, 1_000 + offset, key, b"v%d" % offset, (Header("h", b"x"),)) for offset in offsets]
    return build_batch(records, attributes=attributes, producer_id=producer, leader_epoch=3)


def offsets_of(data: bytes, start: int = 0, *aborted: tuple[int, int]) -> tuple[list[int], int]:
    transactions = [AbortedTransaction(producer_id=producer, first_offset=first) for producer, first in aborted]
    decoded = decode_records(T, data, start, transactions)
    return [record.offset for record in decoded.records], decoded.next_offset


@pytest.mark.parametrize("compression", Compression)
def test_records_are_what_they_were_however_compressed(compression: Compression) -> None:
    (record, _), next_offset = decode_records(T, batch(5, 6, attributes=compression), 0)
    assert tuple(record) == ("t", 0, 5, 1_005, None, b"v5", (("h", b"x"),), 3)
    assert next_offset == 7


def test_no_data_leads_nowhere() -> None:
    assert offsets_of(b"", 9) == ([], 9)


def test_a_batch_may_begin_or_end_before_the_offset() -> None:
    assert offsets_of(batch(0, 1, 2) + batch(3, 4, 5), 4) == ([4, 5], 6)
    assert offsets_of(batch(0, 1), 5) == ([], 5)


def test_a_batch_that_is_cut_off_comes_next_time() -> None:
    data = batch(0, 1)
    assert offsets_of(data + batch(2, 3)[:-1]) == ([0, 1], 2)


def test_markers_are_passed_over() -> None:
    marker = batch(2, attributes=CONTROL | TRANSACTIONAL, producer=7, key=COMMIT)
    assert offsets_of(batch(0, 1, attributes=TRANSACTIONAL, producer=7) + marker) == ([0, 1], 3)


def test_aborted_transactions_are_hidden_until_their_marker() -> None:
    data = b"".join(
        [
            batch(0, attributes=TRANSACTIONAL, producer=7),
            batch(1, attributes=TRANSACTIONAL, producer=8),
            batch(2),
            batch(3, attributes=TRANSACTIONAL, producer=7),
            batch(4, attributes=CONTROL | TRANSACTIONAL, producer=7, key=ABORT),
            batch(5, attributes=TRANSACTIONAL, producer=7),
            batch(6, attributes=CONTROL | TRANSACTIONAL, producer=7, key=COMMIT),
            batch(7, attributes=CONTROL | TRANSACTIONAL, producer=8, key=COMMIT),
        ]
    )
    assert offsets_of(data) == ([0, 1, 2, 3, 5], 8)
    assert offsets_of(data, 0, (7, 0)) == ([1, 2, 5], 8)
    assert offsets_of(data, 3, (7, 0)) == ([5], 8)


def test_a_marker_without_a_record_hides_nothing_more() -> None:
    empty = bytearray(batch(1, attributes=CONTROL | TRANSACTIONAL, producer=7, key=None))
    data = (
        batch(0, attributes=TRANSACTIONAL, producer=7) + bytes(empty) + batch(2, attributes=TRANSACTIONAL, producer=7)
    )
    assert offsets_of(data, 0, (7, 0)) == ([], 3)


@pytest.mark.parametrize(
    ("position", "value", "problem"),
    [(70, 0xFF, "does not fit its checksum"), (16, 1, "format 1"), (16, 9, "Invalid magic"), (11, 3, "Record size")],
)
def test_what_is_broken_is_named(position: int, value: int, problem: str) -> None:
    data = bytearray(batch(0, 1))
    if position == 11:
        data[8:12] = b"\0\0\0\3"
    else:
        data[position] = value
    with pytest.raises(CorruptRecordsError, match=problem) as raised:
        decode_records(T, bytes(data), 0)
    assert "t-0 at offset 0 or behind" in str(raised.value)


def test_checksums_may_be_left_unread() -> None:
    data = bytearray(batch(0))
    data[-1] ^= 1  # the header's value
    ((unchecked,), _) = check_batches(T, bytes(data), 0, check_crcs=False)
    (record,) = unchecked.read()
    assert record.headers[0].value != b"x"


@pytest.mark.slow
@given(st.binary(max_size=200), st.integers(0, 10))
def test_hostile_bytes_are_refused_or_read(data: bytes, at: int) -> None:
    good = batch(0, 1)
    with contextlib.suppress(CorruptRecordsError):
        for hostile in check_batches(T, good[: at * 10] + data, 0, check_crcs=False).batches:
            hostile.read()
