"""From batches to records."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupcoord.client.decoding import decode
from groupcoord.client.errors import CorruptRecordsError
from groupcoord.protocol.batches.compression import Compression
from groupcoord.protocol.batches.record_batch import CONTROL, TRANSACTIONAL, build_batch
from groupcoord.protocol.batches.records import Header, Record
from groupcoord.protocol.messages.fetch import AbortedTransaction

T = ("t", 0)
ABORT, COMMIT = b"\0\0\0\0", b"\0\0\0\1"


def batch(*offsets: int, attributes: int = 0, producer: int = -1, key: bytes | None = None) -> bytes:
    records = [Record(offset, 1_000 + offset, key, b"v%d" % offset, (Header("h", b"x"),)) for offset in offsets]
    return build_batch(records, attributes=attributes, producer_id=producer, leader_epoch=3)


def offsets_of(data: bytes, start: int = 0, *aborted: tuple[int, int]) -> tuple[list[int], int]:
    transactions = [AbortedTransaction(producer_id=producer, first_offset=first) for producer, first in aborted]
    decoded = decode(T, data, start, transactions)
    return [record.offset for record in decoded.records], decoded.next_offset


@pytest.mark.parametrize("compression", Compression)
def test_records_are_what_they_were_however_compressed(compression: Compression) -> None:
    (record, _), next_offset = decode(T, batch(5, 6, attributes=compression), 0)
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
        decode(T, bytes(data), 0)
    assert "t-0 at offset 0 or behind" in str(raised.value)


def test_checksums_may_be_left_unread() -> None:
    data = bytearray(batch(0))
    data[-1] ^= 1  # the header's value
    (record,), _ = decode(T, bytes(data), 0, check_crcs=False)
    assert record.headers[0].value != b"x"


@given(st.binary(max_size=200), st.integers(0, 10))
def test_hostile_bytes_are_refused_or_read(data: bytes, at: int) -> None:
    good = batch(0, 1)
    with contextlib.suppress(CorruptRecordsError):
        decode(T, good[: at * 10] + data, 0, check_crcs=False)
