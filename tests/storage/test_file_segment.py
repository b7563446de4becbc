"""A segment in files is one in memory, to whoever asks it anything; and its files are those Kafka would have written."""

from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from groupcoord.broker.log_segment import LogSegment
from groupcoord.broker.topic_config import LogConfig
from groupcoord.protocol.batches.record_batch import INT32_MAX, read_header, stamp_offsets
from groupcoord.storage.file_segment import FileSegment, create_segment, delete_segment
from groupcoord.storage.log_file_reader import CorruptBatchError, checked_batches
from tests.broker.data_plane import NOW_MS, THEN_MS, batch
from tests.storage.directory import KAFKA_FILES

DENSE = LogConfig(index_interval_bytes=100)


class Both(NamedTuple):
    """The same segment twice."""

    stored: FileSegment
    memory: LogSegment

    def append(self, *values: bytes, gap: int = 0, **fields: Any) -> None:
        data = bytearray(batch(*values, **fields))
        following = self.memory.base_offset
        for _, header in self.memory.batches():
            following = header.last_offset + 1
        stamp_offsets(data, following + gap, 0)
        for segment in self:
            segment.append(data, read_header(data), NOW_MS)


def both(folder: Path, base_offset: int = 0, how: LogConfig = DENSE) -> Both:
    folder.mkdir(exist_ok=True)
    create_segment(folder, base_offset)
    memory = LogSegment(base_offset, NOW_MS, index_interval_bytes=how.index_interval_bytes)
    return Both(FileSegment(folder, base_offset, how, NOW_MS), memory)


BATCHES = st.lists(
    st.tuples(
        st.integers(1, 4),  # records
        st.integers(0, 300),  # bytes of each
        st.integers(-50, 50),  # their time
        st.integers(-3, 3),  # milliseconds from one to the next
        st.integers(0, 5),  # offsets that compaction has left out before it
    ),
    max_size=25,
)


@pytest.mark.slow
@example(batches=[(1, 0, 0, 0, 0), (4, 270, 0, 0, 0), (1, 0, 0, 0, 0)], base=0, complete=False)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(batches=BATCHES, base=st.sampled_from([0, 1 << 40]), complete=st.booleans())
def test_it_answers_as_one_in_memory(
    tmp_path: Path, batches: list[tuple[int, int, int, int, int]], base: int, complete: bool
) -> None:
    pair = both(tmp_path, base)
    for count, size, at_ms, step_ms, gap in batches:
        pair.append(*[b"v" * size] * count, at_ms=THEN_MS + at_ms, step_ms=step_ms, gap=gap)
    stored, memory = pair
    if complete:
        stored.complete()
    again = FileSegment(tmp_path, base, DENSE, NOW_MS) if complete else stored
    for one in (stored, again):
        assert (one.size, one.max_timestamp_ms) == (memory.size, memory.max_timestamp_ms)
        assert one.copy(0, one.size) == bytes(memory.data)
        assert one.age_ms(NOW_MS, THEN_MS) == memory.age_ms(NOW_MS, THEN_MS)
        assert one.latest_record() == memory.latest_record()
        for offset in range(base - 1, base + 100, 3):
            assert one.find(offset) == memory.find(offset)
            assert one.first_record_since(THEN_MS, offset) == memory.first_record_since(THEN_MS, offset)
        for byte in range(0, memory.size + 100, 50):
            assert one.upper_bound(byte) == memory.upper_bound(byte)
        for at_ms in range(THEN_MS - 52, THEN_MS + 70, 7):
            assert one.first_record_since(at_ms, base + 3) == memory.first_record_since(at_ms, base + 3)
    stored.close()


def test_a_batch_whose_late_records_come_before_the_start_is_passed_over(tmp_path: Path) -> None:
    pair = both(tmp_path, 0)
    pair.append(b"late", b"early", at_ms=THEN_MS + 100, step_ms=-95, gap=0)
    pair.append(b"late", at_ms=THEN_MS + 60, step_ms=0, gap=0)
    for segment in pair:
        found = segment.first_record_since(THEN_MS + 50, 1)
        assert found is not None
        assert found.offset == 2
    pair[0].close()


@pytest.mark.parametrize("base_offset", [0, 27])
@pytest.mark.parametrize("how", ["appended", "rebuilt"])
def test_the_files_are_kafkas(tmp_path: Path, base_offset: int, how: str) -> None:
    theirs = KAFKA_FILES / "recorded-0"
    name = f"{base_offset:020d}"
    create_segment(tmp_path, base_offset)
    ours = FileSegment(tmp_path, base_offset, LogConfig(index_interval_bytes=300), NOW_MS)
    if how == "appended":
        for _, header, data in checked_batches(theirs / f"{name}.log"):
            ours.append(bytes(data), header, NOW_MS)
        ours.complete()
    else:
        ours.path.write_bytes((theirs / f"{name}.log").read_bytes())
        assert ours.rebuild() is None
    for kind in (".log", ".index", ".timeindex"):
        assert (tmp_path / (name + kind)).read_bytes() == (theirs / (name + kind)).read_bytes()
    assert ours.wrong_indexes() is None
    assert repr(ours) == f"<FileSegment {name}.log bytes={ours.size}>"


def test_an_append_that_was_not_to_be(tmp_path: Path) -> None:
    stored, memory = pair = both(tmp_path)
    pair.append(b"a")
    mark = stored.mark()
    data = batch(b"b", at_ms=THEN_MS + 5)
    stored.append(data, read_header(data), NOW_MS)
    stored.return_to(mark)
    assert stored.path.read_bytes() == bytes(memory.data)
    assert (stored.size, stored.max_timestamp_ms) == (memory.size, memory.max_timestamp_ms)
    delete_segment(tmp_path, 0)
    stored.return_to(mark)  # nothing can be done any more, and that is no news


def test_when_it_is_full(tmp_path: Path) -> None:
    stored, memory = pair = both(tmp_path, 10, LogConfig(index_interval_bytes=0, segment_index_bytes=24))
    pair.append(b"a")
    for segment in pair:
        assert not segment.is_full_for(10 + INT32_MAX)
        assert segment.is_full_for(11 + INT32_MAX)
    pair.append(b"b", at_ms=THEN_MS + 1)  # the index of times has its one entry, and keeps a place for the last
    assert stored.is_full_for(12)
    assert not memory.is_full_for(12)
    assert not both(tmp_path / "roomier", 10, LogConfig(segment_index_bytes=36)).stored.is_full_for(12)


def test_the_index_of_offsets_is_full_too(tmp_path: Path) -> None:
    stored, _ = pair = both(tmp_path, 0, LogConfig(index_interval_bytes=0, segment_index_bytes=40))
    for _ in range(6):
        pair.append(b"a", at_ms=THEN_MS - 5)
    assert (stored.offset_index.count, stored.time_index.count) == (5, 1)
    assert stored.is_full_for(12)


def test_times_that_count(tmp_path: Path) -> None:
    stored, _ = pair = both(tmp_path)
    assert stored.age_ms(NOW_MS + 7, THEN_MS) == 7
    pair.append(b"a", at_ms=-1)
    assert stored.largest_timestamp_ms == NOW_MS  # of the append, for want of another
    assert stored.age_ms(NOW_MS + 8, THEN_MS) == 8
    pair.append(b"a", at_ms=THEN_MS)
    assert stored.largest_timestamp_ms == THEN_MS


def test_what_lies_behind_it_and_since(tmp_path: Path) -> None:
    stored, _ = pair = both(tmp_path)
    assert stored.next_offset() == 0
    for number in range(10):
        pair.append(b"a" * 60, b"b", at_ms=THEN_MS + number)
    assert stored.next_offset() == 20
    assert [header.base_offset for header in stored.headers_from(15)] == [14, 16, 18]


@pytest.mark.parametrize("harm", ["missing", "missing times", "beyond the end", "not at a batch", "before the batch"])
def test_indexes_that_do_not_fit_are_seen(tmp_path: Path, harm: str) -> None:
    stored, _ = pair = both(tmp_path)
    assert stored.wrong_indexes() is None
    for number in range(10):
        pair.append(b"a" * 60, at_ms=THEN_MS + number)
    stored.complete()
    assert stored.wrong_indexes() is None
    index = stored.offset_index
    match harm:
        case "missing":
            index.path.unlink()
        case "missing times":
            stored.time_index.path.unlink()
        case "beyond the end":
            index.append(99, stored.size)
        case "not at a batch":
            index.append(9, stored.size - 100)
        case _:
            assert index.last is not None
            with index.path.open("r+b") as file:
                file.seek(index.size - 8)
                file.write((index.last[0] - 1).to_bytes(4))
    if harm == "not at a batch":  # whether it is the index that is wrong, is for the whole file to say
        with pytest.raises(CorruptBatchError):
            stored.wrong_indexes()
    else:
        assert stored.wrong_indexes() is not None
    if "missing" not in harm:
        assert [stored.find(offset) for offset in range(10)] == [pair.memory.find(offset) for offset in range(10)]


@pytest.mark.parametrize("harm", ["times cut short", "another time", "log cut short"])
def test_indexes_that_are_of_another_log_are_seen(tmp_path: Path, harm: str) -> None:
    stored, _ = pair = both(tmp_path)
    for number in range(10):
        pair.append(b"a" * 60, at_ms=THEN_MS + number)
    stored.complete()
    times = stored.time_index.path
    match harm:
        case "times cut short":
            times.write_bytes(times.read_bytes()[:-12])
        case "another time":
            times.write_bytes(times.read_bytes()[:-12] + (THEN_MS + 99).to_bytes(8) + times.read_bytes()[-4:])
        case _:
            stored.path.write_bytes(stored.path.read_bytes()[: stored.size // 10 * 9])
    said = FileSegment(tmp_path, 0, DENSE, NOW_MS).wrong_indexes()
    assert said is not None
    assert said.startswith(
        "its indexes know of offset 9, and it ends before offset 9"
        if harm == "log cut short"
        else "its indexes are missing"
    )


def test_flushing_and_deleting(tmp_path: Path) -> None:
    stored, _ = pair = both(tmp_path)
    pair.append(b"a")
    (tmp_path / f"{0:020d}.txnindex").touch()
    (tmp_path / "partition.metadata").touch()
    stored.sync()
    delete_segment(tmp_path, 0)
    assert [path.name for path in tmp_path.iterdir()] == ["partition.metadata"]
    stored.sync()  # what is gone needs no flush
