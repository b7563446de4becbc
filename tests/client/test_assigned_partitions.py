"""What a consumer knows of its partitions."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupcoord.client.assigned_partitions import (
    AssignedPartitions,
    ConsumerRecord,
    FetchedRecords,
    PartitionState,
    StartPosition,
    decode_records,
)
from groupcoord.client.client_errors import CorruptRecordsError
from groupcoord.protocol.apis.fetch import AbortedTransaction
from groupcoord.protocol.batches.compression import Compression
from groupcoord.protocol.batches.record_batch import CONTROL, TRANSACTIONAL, build_batch
from groupcoord.protocol.batches.records import Header, Record

A, B = ("t", 0), ("t", 1)


def records(*offsets: int, partition: tuple[str, int] = A, epoch: int = 4) -> list[ConsumerRecord]:
    return [ConsumerRecord(*partition, offset, 0, None, b"%d" % offset, (), epoch) for offset in offsets]


def stocked(*partitions: tuple[str, int], each: int = 3) -> AssignedPartitions:
    """Each with as many records, from offset 0."""
    table = AssignedPartitions()
    table.assign(partitions)
    for state in table:
        state.move_to(0)
        state.put(FetchedRecords(records(*range(each), partition=state.partition), each))
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
    assert (table[A].position, table.take(9)) == (3, {})


def test_the_last_record_leads_past_what_is_behind_it() -> None:
    """Markers and gaps are nothing to wait for."""
    table = AssignedPartitions()
    table.assign([A])
    table[A].move_to(0)
    table[A].put(FetchedRecords(records(0, 3), 7))
    table.take(1)
    assert table[A].position == 1
    table.take(1)
    assert table[A].position == 7
    table[A].put(FetchedRecords([], 9))
    assert table[A].position == 7, "what was handed out is not settled yet"
    table.mark_processed()
    table[A].put(FetchedRecords([], 10))
    assert (table[A].position, table[A].settled) == (10, 10)


def test_turns_are_taken() -> None:
    table = stocked(A, B)
    assert list(table.take(4)) == [A, B]
    assert list(table.take(1)) == [B]
    assert table.take(1) == {B: records(2, partition=B)}


def test_one_by_one_they_come_in_runs() -> None:
    table = stocked(A, B, each=2)
    order = []
    while (record := table.take_one()) is not None:
        order.append((record.partition, record.offset))
        table.mark_processed()
    assert sorted(order) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    table = stocked(A, B, each=2)
    run = [table.take_one() for _ in range(4)]
    assert [record.partition for record in run if record] == [0, 0, 1, 1]


def test_nothing_comes_of_what_is_paused_or_held() -> None:
    table = stocked(A, B)
    table[A].paused = True
    table.stop_delivery([B, ("gone", 0)])
    assert table.take(9) == {}
    assert table.take_one() is None
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
    state.put(FetchedRecords(records(5), 6))
    state.find(StartPosition.LATEST)
    assert [state.start, len(state.store)] == [StartPosition.LATEST, 0]


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
    (record,), _ = decode_records(T, bytes(data), 0, check_crcs=False)
    assert record.headers[0].value != b"x"


@given(st.binary(max_size=200), st.integers(0, 10))
def test_hostile_bytes_are_refused_or_read(data: bytes, at: int) -> None:
    good = batch(0, 1)
    with contextlib.suppress(CorruptRecordsError):
        decode_records(T, good[: at * 10] + data, 0, check_crcs=False)
