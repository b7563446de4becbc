"""Compaction: which records stay, where, and what is not touched."""

import dataclasses
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupcoord.broker import cleaner
from groupcoord.broker.cleaner import Cleaned, cleanable, survivors
from groupcoord.broker.log_segment import LogSegment
from groupcoord.broker.partition_log import PartitionLog
from groupcoord.broker.topic_config import LogConfig
from groupcoord.protocol.batches.record_batch import (
    COMPRESSION_MASK,
    BatchError,
    BatchHeader,
    build_batch,
    checksum_matches,
    delete_horizon_ms,
    iter_batch_extents,
    read_header,
    records_in,
    records_of,
)
from groupcoord.protocol.batches.records import Record
from tests.broker.kafkas_cleaner import RUNS, cleaned_at_ms, cleaned_to, headers_in, log_before, recorded

NOW_MS = 1_800_000_000_000
DAY_MS = 86_400_000
SETTINGS = LogConfig(cleanup_policy=frozenset({"compact"}), segment_bytes=10_000)

Entry = tuple[bytes | None, bytes | None]


def put(log: PartitionLog, batch: bytes) -> None:
    """Append a batch or a marker as it is, unchecked."""
    log.append_as_follower(batch, NOW_MS)


def log_of(*segments: list[list[Entry]], settings: LogConfig = SETTINGS, producer: int = -1) -> PartitionLog:
    """A log with these batches in these segments, and an active segment without any; a millisecond from record to record."""
    log = PartitionLog(settings, "orders-0")
    sequence = 0
    for batches in segments:
        for entries in batches:
            start = log.log_end_offset
            records = [Record(start + index, NOW_MS + start + index, *entry) for index, entry in enumerate(entries)]
            batch = build_batch(
                records,
                producer_id=producer,
                producer_epoch=0 if producer >= 0 else -1,
                base_sequence=sequence if producer >= 0 else -1,
            )
            put(log, batch)
            sequence += len(entries)
        log.roll(NOW_MS)
    return log


def clean(log: PartitionLog, now_ms: int) -> Cleaned | None:
    return cleaner.clean(log, cleanable(log, now_ms), now_ms)


def is_due(log: PartitionLog, now_ms: int) -> bool:
    return cleaner.is_due(log, cleanable(log, now_ms), now_ms)


def records(log: PartitionLog) -> list[Record]:
    return [record for segment in log.segments for record in records_in(segment.copy(0, segment.size))]


def kept(log: PartitionLog) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(record.offset, record.key, record.value) for record in records(log)]


def test_the_last_record_of_each_key_stays_where_it_was() -> None:
    log = log_of([[(b"a", b"1"), (b"b", b"1")], [(b"a", b"2")]], [[(b"a", b"3"), (b"c", b"1")]])
    before = records(log)
    done = clean(log, NOW_MS)
    assert kept(log) == [(1, b"b", b"1"), (3, b"a", b"3"), (4, b"c", b"1")]
    assert [record.timestamp_ms for record in records(log)] == [NOW_MS + 1, NOW_MS + 3, NOW_MS + 4]
    assert done is not None
    assert (done.first_dirty_offset, done.end_offset, done.records_read, done.records_kept) == (0, 5, len(before), 3)
    assert done.bytes_kept == log.size < done.bytes_read
    assert len(log.segments) == 2, "what was two small segments is one, and the active one"


def test_the_active_segment_is_not_touched_and_does_not_count() -> None:
    log = log_of([[(b"a", b"1")]])
    put(log, build_batch([Record(1, NOW_MS, b"a", b"2")]))
    clean(log, NOW_MS)
    assert kept(log) == [(0, b"a", b"1"), (1, b"a", b"2")]
    assert clean(log, NOW_MS) is None
    log.roll(NOW_MS)
    clean(log, NOW_MS)
    assert kept(log) == [(1, b"a", b"2")]


def test_a_tombstone_is_kept_until_its_horizon() -> None:
    log = log_of([[(b"a", b"1")], [(b"a", None), (b"b", b"1")]])
    clean(log, NOW_MS)
    assert kept(log) == [(1, b"a", None), (2, b"b", b"1")]
    (batch,) = [header for segment in log.segments for header in headers(segment)]
    assert delete_horizon_ms(batch) == NOW_MS + DAY_MS
    assert [record.timestamp_ms for record in records(log)] == [NOW_MS + 1, NOW_MS + 2]
    for at_ms, offsets in ((NOW_MS + DAY_MS - 1, [1, 2, 3]), (NOW_MS + DAY_MS, [2, 3, 4])):
        end = log.log_end_offset
        put(log, build_batch([Record(end, NOW_MS, b"%d" % end, b"")]))
        log.roll(NOW_MS)
        clean(log, at_ms)
        assert [offset for offset, _, _ in kept(log)] == offsets


def headers(segment: object) -> list[BatchHeader]:
    assert isinstance(segment, LogSegment)
    return [read_header(segment.data, batch.position) for batch in iter_batch_extents(segment.data)]


def test_batches_that_are_larger_than_what_is_read_in_one_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cleaner, "PIECE_BYTES", 62)  # a header, and not a batch
    log = log_of([[(b"a", b"1"), (b"b", b"1")], [(b"a", b"2")]])
    clean(log, NOW_MS)
    assert kept(log) == [(1, b"b", b"1"), (2, b"a", b"2")]


def test_a_record_without_a_key_goes() -> None:
    log = log_of([[(None, b"1"), (b"a", b"1")]])
    clean(log, NOW_MS)
    assert kept(log) == [(1, b"a", b"1")]


def test_the_last_batch_of_a_cleaning_stays_if_only_its_header() -> None:
    """Otherwise nobody would know any more where the log ended."""
    log = log_of([[(b"a", b"1"), (b"b", b"1")]], [[(None, b"x")]])
    clean(log, NOW_MS)
    assert kept(log) == [(0, b"a", b"1"), (1, b"b", b"1")]
    last = headers(log.segments[0])[-1]
    assert (last.record_count, last.last_offset, last.size) == (0, 2, 61)
    assert log.read(2, 1_000, at_least_one=True).length == 61


def test_the_last_batch_of_a_producer_stays_if_only_its_header() -> None:
    log = log_of([[(b"a", b"1")], [(b"a", b"2")]], producer=7)
    put(log, build_batch([Record(2, NOW_MS, b"a", b"3")]))
    log.roll(NOW_MS)
    clean(log, NOW_MS)
    assert kept(log) == [(2, b"a", b"3")]
    empty, _ = headers(log.segments[0])
    assert (empty.producer_id, empty.base_sequence, empty.last_offset, empty.record_count) == (7, 1, 1, 0)


@pytest.mark.parametrize("compression", range(5))
def test_what_is_left_is_compressed_as_it_was(compression: int) -> None:
    log = PartitionLog(SETTINGS, "orders-0")
    entries = [Record(index, NOW_MS, b"a" if index < 5 else b"b", b"x" * 50) for index in range(10)]
    put(log, build_batch(entries, attributes=compression))
    log.roll(NOW_MS)
    clean(log, NOW_MS)
    assert [offset for offset, _, _ in kept(log)] == [4, 9]
    (header,) = headers(log.segments[0])
    assert header.attributes == compression


def test_records_that_are_too_young_wait() -> None:
    settings = dataclasses.replace(SETTINGS, min_compaction_lag_ms=100)
    log = log_of([[(b"a", b"1")]], [[(b"a", b"2")]], settings=settings)
    assert clean(log, NOW_MS + 50) is None
    assert cleanable(log, NOW_MS + 100).first_uncleanable_offset == 1
    clean(log, NOW_MS + 101)
    assert kept(log) == [(1, b"a", b"2")]


def test_it_is_due_when_enough_is_dirty() -> None:
    log = log_of([[(b"a", b"1")]], [[(b"b", b"2")]])
    assert is_due(log, NOW_MS)
    clean(log, NOW_MS)
    assert not is_due(log, NOW_MS)
    for value in range(3):
        assert not is_due(log, NOW_MS)
        end = log.log_end_offset
        put(log, build_batch([Record(end, NOW_MS, b"c", b"%d" % value)]))
        log.roll(NOW_MS)
    assert cleanable(log, NOW_MS).ratio == 0.6
    assert is_due(log, NOW_MS)
    log.settings = dataclasses.replace(SETTINGS, cleanup_policy=frozenset({"delete"}))
    assert not is_due(log, NOW_MS)


def test_it_is_due_when_something_has_waited_too_long() -> None:
    settings = dataclasses.replace(SETTINGS, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=500)
    log = log_of([[(b"a", b"1")]], settings=settings)
    assert not is_due(log, NOW_MS + 500)
    assert is_due(log, NOW_MS + 501)


def test_any_dirty_segment_may_have_waited_too_long() -> None:
    settings = dataclasses.replace(SETTINGS, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=500)
    log = log_of([[(b"a", b"1")]], [[(b"b", b"1")]], settings=settings)
    put(log, build_batch([Record(2, NOW_MS - 1_000, b"c", b"1")]))
    log.roll(NOW_MS)
    assert is_due(log, NOW_MS)


def test_an_empty_log_has_nothing_to_clean() -> None:
    log = PartitionLog(SETTINGS, "orders-0")
    log.roll(NOW_MS)
    assert log.segments == []
    assert cleanable(log, NOW_MS).ratio == 0
    assert clean(log, NOW_MS) is None


def test_segments_grow_together_only_as_far_as_one_may() -> None:
    segments: list[list[list[Entry]]] = [[[(b"%d" % index, b"x" * 3_000)]] for index in range(5)]
    log = log_of(*segments)
    clean(log, NOW_MS)
    assert [segment.base_offset for segment in log.segments] == [0, 3, 5]


def test_segments_that_are_too_far_apart_for_one_index_stay_apart() -> None:
    log = PartitionLog(SETTINGS, "orders-0")
    for base in (0, 1 << 31, (1 << 31) + 1):
        more = build_batch([Record(base, NOW_MS, b"%d" % base, b"")])
        log.log_end_offset = base
        log.roll(NOW_MS)
        log.append_as_follower(more, NOW_MS)
    log.roll(NOW_MS)
    clean(log, NOW_MS)
    assert [segment.base_offset for segment in log.segments] == [0, 1 << 31, (1 << 31) + 2]


def test_a_log_whose_beginning_was_deleted_inside_a_segment_is_dirty_with_all_of_that() -> None:
    """Otherwise nothing of that segment would ever be compacted."""
    log = log_of([[(b"a", b"1")], [(b"a", b"2")], [(b"a", b"3")]])
    log.log_start_offset = 1
    found = cleanable(log, NOW_MS)
    assert (found.first_dirty_offset, found.first_uncleanable_offset) == (1, 3)
    assert found.clean_bytes == found.dirty_bytes == log.size
    clean(log, NOW_MS)
    assert kept(log) == [(2, b"a", b"3")]


def test_a_log_that_starts_further_on_is_dirty_from_there() -> None:
    log = log_of([[(b"a", b"1")]], [[(b"a", b"2")]])
    clean(log, NOW_MS)
    log.cleaned_to = 99  # as after a truncation
    assert cleanable(log, NOW_MS).first_dirty_offset == 0


@pytest.mark.parametrize("at", [16, 61], ids=["magic", "length of a record"])
def test_a_broken_batch_leaves_the_log_as_it_was(at: int) -> None:
    log = log_of([[(b"a", b"1")], [(b"a", b"2")]])
    segment = log.segments[0]
    assert isinstance(segment, LogSegment)
    segment.data[at] = 99
    before = bytes(segment.data)
    with pytest.raises(BatchError):
        clean(log, NOW_MS)
    assert log.segments[0] is segment
    assert bytes(segment.data) == before


entries = st.lists(
    st.lists(
        st.tuples(st.sampled_from([b"a", b"b", b"c", b"d"]), st.sampled_from([None, b"1", b"2"])),
        min_size=1,
        max_size=4,
    ),
    min_size=1,
    max_size=5,
)


@pytest.mark.untraced
@pytest.mark.slow
@given(st.lists(entries, min_size=1, max_size=4), st.data())
def test_it_keeps_what_a_plain_look_at_the_log_would_keep(
    segments: list[list[list[Entry]]], data: st.DataObject
) -> None:
    log = log_of(*segments)
    before = records(log)
    if data.draw(st.booleans()):  # in two steps as in one
        log.cleaned_to = 0
        done: Cleaned | None = clean(log, NOW_MS)
        assert done is None or done.records_read == len(before)
    clean(log, NOW_MS)
    expected = survivors(before)
    assert kept(log) == [(record.offset, record.key, record.value) for record in expected]
    end = before[-1].offset + 1
    for offset in range(end):
        found = log.read(offset, 1 << 20, at_least_one=True)
        first = next((record for record in records_in(found.data()) if record.offset >= offset), None)
        after = [record for record in expected if record.offset >= offset]
        assert first is None or first in after


@pytest.mark.parametrize(("topic", "run"), RUNS)
def test_it_leaves_the_bytes_that_kafka_leaves(topic: str, run: int) -> None:
    """Batch by batch: the first time, and after delete.retention.ms. What a compressor made may differ, and nothing else."""
    log = log_before(topic, run)
    clean(log, cleaned_at_ms(topic, run))
    expected = recorded(topic, f"after-{run}")
    assert [segment.base_offset for segment in log.segments] == [segment.base_offset for segment in expected]
    for segment, kafkas in zip(log.segments, expected, strict=True):
        data = segment.copy(0, segment.size)
        assert unpacked_batches(data) == unpacked_batches(kafkas.log)
        if not any(header.attributes & COMPRESSION_MASK for header in headers_in(data)):
            assert data == kafkas.log
        if topic == "aborted":
            assert segment.aborted == kafkas.aborted
    assert log.cleaned_to == cleaned_to(topic, run)


def unpacked_batches(data: bytes) -> list[tuple[object, ...]]:
    """All that there is to say of each batch; of a compressed one without its length and checksum."""
    found: list[tuple[object, ...]] = []
    for batch in iter_batch_extents(data):
        whole = data[batch.position : batch.position + batch.size]
        header = read_header(whole)
        assert checksum_matches(whole, header)
        if header.attributes & COMPRESSION_MASK:
            header = header._replace(length=0, crc=0)
        found.append((header, tuple(records_of(whole))))
    return found


PRODUCER = 7


def store(log: PartitionLog, *entries: Entry, epoch: int = 0, at_ms: int = NOW_MS, sequence: int = 0) -> None:
    """Append a batch of a transaction."""
    start = log.log_end_offset
    more = [Record(start + index, at_ms, *entry) for index, entry in enumerate(entries)]
    put(log, build_batch(more, attributes=0x10, producer_id=PRODUCER, producer_epoch=epoch, base_sequence=sequence))


def mark(log: PartitionLog, *, commit: bool, epoch: int = 0, at_ms: int = NOW_MS, producer: int = PRODUCER) -> None:
    """Append the end of a transaction."""
    record = Record(log.log_end_offset, at_ms, b"\x00\x00\x00" + bytes([commit]), bytes(6))
    put(log, build_batch([record], attributes=0x30, producer_id=producer, producer_epoch=epoch))


def data_of(log: PartitionLog) -> list[tuple[int, bytes | None, bytes | None]]:
    """The records that are not markers."""
    return kept(log)


def marker_offsets(log: PartitionLog) -> list[int]:
    return [header.base_offset for segment in log.segments for header in headers(segment) if header.control]


def test_what_was_aborted_does_not_count() -> None:
    log = log_of([[(b"a", b"1")]])
    store(log, (b"a", b"2"))
    mark(log, commit=False)
    log.roll(NOW_MS)
    clean(log, NOW_MS)
    assert data_of(log) == [(0, b"a", b"1")]
    assert marker_offsets(log) == [2]


def test_what_was_committed_counts_from_where_it_stands() -> None:
    """And not from the marker on: another record may have come between."""
    log = log_of([[(b"c", b"1")]])
    store(log, (b"a", b"2"), (b"b", b"2"), (b"c", b"2"))
    put(log, build_batch([Record(4, NOW_MS, b"a", b"3")]))
    mark(log, commit=True)
    log.roll(NOW_MS)
    clean(log, NOW_MS)
    assert data_of(log) == [(2, b"b", b"2"), (3, b"c", b"2"), (4, b"a", b"3")]


def test_nothing_behind_an_open_transaction_is_cleaned() -> None:
    log = log_of([[(b"a", b"1")], [(b"a", b"2")]])
    store(log, (b"b", b"1"))
    store(log, (b"b", b"2"), sequence=1)
    log.roll(NOW_MS)
    put(log, build_batch([Record(4, NOW_MS, b"a", b"3")]))
    log.roll(NOW_MS)
    clean(log, NOW_MS)
    assert kept(log) == [(1, b"a", b"2"), (2, b"b", b"1"), (3, b"b", b"2"), (4, b"a", b"3")]
    assert log.cleaned_to == 2
    assert clean(log, NOW_MS) is None
    mark(log, commit=True)
    clean(log, NOW_MS)
    assert kept(log) == [(3, b"b", b"2"), (4, b"a", b"3")], "the end of it may be in the active segment"


def test_an_aborted_transaction_may_end_in_the_active_segment() -> None:
    log = log_of([[(b"a", b"1")]])
    store(log, (b"a", b"2"))
    log.roll(NOW_MS)
    put(log, build_batch([Record(2, NOW_MS, b"a", b"3")]))
    mark(log, commit=False)
    clean(log, NOW_MS)
    assert kept(log) == [(0, b"a", b"1"), (2, b"a", b"3")]


def test_a_marker_goes_some_time_after_the_last_of_its_transaction_has_gone() -> None:
    log = log_of([[(b"x", b"1")]])
    store(log, (b"a", b"1"))
    mark(log, commit=True)
    store(log, (b"a", b"2"), sequence=1)
    mark(log, commit=True)
    log.roll(NOW_MS)
    clean(log, NOW_MS)
    assert marker_offsets(log) == [2, 4], "of the first transaction there was a record when the cleaning began"
    for at_ms, markers in ((NOW_MS, [2, 4]), (NOW_MS + DAY_MS - 1, [2, 4]), (NOW_MS + DAY_MS, [4])):
        put(log, build_batch([Record(log.log_end_offset, NOW_MS, b"y", b"")]))
        log.roll(NOW_MS)
        clean(log, at_ms)
        assert marker_offsets(log) == markers


def test_the_marker_that_is_the_last_word_of_a_producer_stays_without_its_record() -> None:
    """It has the producer's epoch, which nobody must use again. The producer is forgotten after days of silence."""
    log = log_of([[(b"x", b"1")]])
    store(log, (b"x", b"2"))
    mark(log, commit=True, epoch=1)
    mark(log, commit=True, epoch=5, producer=8)
    put(log, build_batch([Record(4, NOW_MS, b"x", b"3")]))
    log.roll(NOW_MS)
    clean(log, NOW_MS)
    assert [(each.base_offset, each.record_count) for each in headers(log.segments[0])] == [(2, 1), (3, 1), (4, 1)]
    cleanings: tuple[tuple[int, list[tuple[int, int]]], ...] = (
        (NOW_MS + DAY_MS - 1, [(2, 1), (3, 1)]),
        (NOW_MS + 2 * DAY_MS, [(2, 0), (3, 0)]),
        (NOW_MS + 3 * DAY_MS, []),
    )
    for at_ms, left in cleanings:
        put(log, build_batch([Record(log.log_end_offset, at_ms, b"x", b"4")]))
        log.roll(NOW_MS)
        log.producers.expire(at_ms, 3 * DAY_MS)
        clean(log, at_ms)
        found = [(each.base_offset, each.record_count) for each in headers(log.segments[0]) if each.control]
        assert found == left


class Written(NamedTuple):
    """A batch; ``producer`` is -1 for one of no transaction."""

    producer: int
    compression: int
    entries: list[Entry]


class Ended(NamedTuple):
    """The marker of a transaction."""

    producer: int
    commit: bool


_keys = st.sampled_from([b"a", b"b", b"c", b"d", b"e", b"f", None])
_written = st.builds(
    Written,
    st.sampled_from([-1, -1, 7, 8]),
    st.sampled_from([0, 0, 0, 1, 4]),
    st.lists(st.tuples(_keys, st.sampled_from([b"1", b"2" * 70, None])), min_size=1, max_size=4),
)
_ended = st.builds(Ended, st.sampled_from([7, 8]), st.booleans())
histories = st.lists(st.lists(st.one_of(_written, _written, _ended), min_size=1, max_size=5), min_size=1, max_size=4)


def log_with(history: list[list[Written | Ended]], *, ended: bool) -> PartitionLog:
    """A log of these segments. If ``ended``, the active segment commits every transaction that is open."""
    log = PartitionLog(SETTINGS, "orders-0")
    sequence = 0
    for segment in history:
        for each in segment:
            if isinstance(each, Ended):
                mark(log, commit=each.commit, producer=each.producer)
                continue
            start = log.log_end_offset
            more = [Record(start + index, NOW_MS + start + index, *entry) for index, entry in enumerate(each.entries)]
            batch = build_batch(
                more,
                attributes=each.compression | (0x10 if each.producer >= 0 else 0),
                producer_id=each.producer,
                producer_epoch=0 if each.producer >= 0 else -1,
                base_sequence=sequence if each.producer >= 0 else -1,
            )
            sequence += len(more)
            put(log, batch)
        log.roll(NOW_MS)
    for producer in (7, 8) if ended else ():
        mark(log, commit=True, producer=producer)
    return log


def read_plainly(header: BatchHeader, data: bytes, start: int, found: dict[bytes, int]) -> bool:
    """As ``collect_key_offsets``, and every batch is to be read again."""
    for record in records_of(data[start : start + header.size], header):
        if record.key is not None:
            found[record.key] = record.offset
    return False


def seen_plainly(log: PartitionLog, first_dirty: int, end: int) -> list[tuple[int, bytes | None, bytes | None]]:
    """What a first cleaning is to keep before ``end``: offset, key and value of each record that is not a marker."""
    committed: list[Record] = []
    open_ones: dict[int, list[Record]] = {}
    for header, data, position in (each for segment in log.segments for each in cleaner.batches(segment)):
        inside = list(records_of(data[position : position + header.size], header))
        if header.control:
            ended = open_ones.pop(header.producer_id, [])
            committed += ended if inside[0].key == b"\x00\x00\x00\x01" else []
        elif header.transactional:
            open_ones.setdefault(header.producer_id, []).extend(inside)
        else:
            committed += inside
    known = sorted((one for one in committed if one.offset < end), key=lambda one: one.offset)
    last = {record.key: record.offset for record in known if record.offset >= first_dirty}
    stay = [one for one in known if one.key is not None and one.offset >= last.get(one.key, -1)]
    return [(record.offset, record.key, record.value) for record in stay]


@pytest.mark.untraced
@pytest.mark.slow
@given(histories, st.booleans(), st.data())
def test_what_it_leaves_does_not_depend_on_what_is_read_twice(
    history: list[list[Written | Ended]], ended: bool, data: st.DataObject
) -> None:
    """A batch of which the survey has seen everything is not read again; nobody can tell from the bytes."""
    quick, slow, untouched = (log_with(history, ended=ended) for _ in range(3))
    limits = st.sampled_from([0, *(segment.base_offset for segment in quick.segments)])
    for at_ms in (NOW_MS, NOW_MS + DAY_MS):
        quick.cleaned_to = slow.cleaned_to = data.draw(limits)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(cleaner, "collect_key_offsets", read_plainly)
            done = clean(slow, at_ms)
        assert clean(quick, at_ms) == done
        assert [each.copy(0, each.size) for each in quick.segments] == [
            each.copy(0, each.size) for each in slow.segments
        ]
        if at_ms == NOW_MS and done is not None:
            expected = seen_plainly(untouched, done.first_dirty_offset, done.end_offset)
            assert [each for each in kept(quick) if each[0] < done.end_offset] == expected
