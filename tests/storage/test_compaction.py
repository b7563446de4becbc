"""Reading while compacting gives no wrong answer: in memory, in files, and after a kill in between."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from groupcoord.broker.cleaner import clean, cleanable
from groupcoord.broker.log_config import LogConfig
from groupcoord.broker.partition_log import PartitionLog
from groupcoord.protocol.batches.record_batch import build_batch, iter_batch_extents, read_header, records_in
from groupcoord.protocol.batches.records import Record
from tests.broker.data_plane import NOW_MS
from tests.broker.kafkas_cleaner import RUNS, cleaned_at_ms, cleaned_before, recorded
from tests.storage.directory import Life

DAY_MS = 86_400_000
KEYS = st.sampled_from([b"a", b"b", b"c"])
STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("append"), st.lists(st.tuples(KEYS, st.none() | st.binary(max_size=20)), min_size=1, max_size=4)
        ),
        st.tuples(st.just("roll")),
        st.tuples(st.just("compact"), st.integers(0, 2)),
        st.tuples(st.just("read"), st.integers(1, 300)),
        st.tuples(st.just("read from the middle"), st.integers(0, 30)),
        st.tuples(st.just("kill")),
    ),
    max_size=40,
)


class Log:
    """A log in files, which survives a kill."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._life = Life(directory)
        self._life.topic(cleanup_policy="compact", internal_segment_bytes=400, index_interval_bytes=100)

    @property
    def log(self) -> PartitionLog:
        return self._life.log()

    def kill(self) -> None:
        self._life.kill()
        self._life = Life(self._directory)

    def end(self) -> None:
        self._life.kill()


class MemoryLog:
    """A log in memory, which would not survive one."""

    def __init__(self) -> None:
        self.log = PartitionLog(LogConfig(cleanup_policy=frozenset({"compact"}), segment_bytes=400), "orders-0")

    def kill(self) -> None:
        pass


@contextmanager
def new_log(*, in_files: bool) -> Iterator[Log | MemoryLog]:
    if not in_files:
        yield MemoryLog()
        return
    with TemporaryDirectory() as name:
        log = Log(Path(name))
        yield log
        log.end()


def read(log: PartitionLog, offset: int, max_bytes: int) -> tuple[list[Record], int]:
    """The records of a fetch as a consumer sees them, and where it goes on."""
    data = log.read(offset, max_bytes, at_least_one=True).data()
    found = [record for record in records_in(data) if record.offset >= offset]
    # A batch of which nothing is left still says how far it reached, and what is behind it comes with the next fetch.
    reached = [read_header(data, extent.position).last_offset + 1 for extent in iter_batch_extents(data)]
    return found, max([offset, *reached])


EMPTIED = [
    ("append", [(b"a", None)]),
    ("roll",),
    ("compact", 0),
    ("append", [(b"a", None)]),
    ("kill",),
    ("append", [(b"a", b"")]),
    ("compact", 2),
]
"""The log begins with a batch of which nothing is left."""


@pytest.mark.slow
@pytest.mark.parametrize("in_files", [False, True], ids=["in memory", "in files"])
@settings(max_examples=60)
@given(steps=STEPS)
@example(steps=EMPTIED)
def test_who_reads_on_while_it_is_compacted_misses_nothing(in_files: bool, steps: list[tuple[str, object]]) -> None:
    appended: dict[int, tuple[bytes | None, bytes | None]] = {}
    seen: list[Record] = []
    position, now_ms = 0, NOW_MS
    with new_log(in_files=in_files) as kept:
        for what, *how in [*steps, *[("read", 10_000)] * 60]:
            log = kept.log
            match what, how:
                case "append", [list() as entries]:
                    records = [Record(index, NOW_MS, *entry) for index, entry in enumerate(entries)]
                    base = log.append(build_batch(records), now_ms).base_offset
                    appended |= {base + index: entry for index, entry in enumerate(entries)}
                case "roll", _:
                    log.roll(now_ms)
                case "compact", [int() as half_days]:
                    now_ms += half_days * DAY_MS // 2
                    clean(log, cleanable(log, now_ms), now_ms)
                case "read", [int() as max_bytes]:
                    found, position = read(log, position, max_bytes)
                    seen += found
                case "read from the middle", [int() as offset]:
                    found, _ = read(log, min(offset, log.log_end_offset), 1)
                    assert all(appended[record.offset] == (record.key, record.value) for record in found)
                case _:
                    kept.kill()
    assert all(appended[record.offset] == (record.key, record.value) for record in seen)
    offsets = [record.offset for record in seen]
    assert offsets == sorted(set(offsets))
    # Whatever the reader has seen, and has not, it ends up with the last value of each key. A key may be gone with its
    # tombstone from a log that is read for the first time; who had read it before is to see the tombstone within a day.
    last = dict(appended.values())
    known = {record.key: record.value for record in seen}
    assert {key: value for key, value in known.items() if value is not None and last[key] is not None} == {
        key: value for key, value in last.items() if value is not None
    }


@pytest.mark.parametrize(("topic", "run"), RUNS)
def test_the_files_of_a_cleaned_log_are_kafkas(topic: str, run: int, tmp_path: Path) -> None:
    """Names, positions and times in the indexes: where no compressor comes between, byte for byte."""
    folder = tmp_path / f"{topic}-0"
    folder.mkdir()
    for segment in recorded(topic, f"before-{run}"):
        (folder / f"{segment.base_offset:020d}.log").write_bytes(segment.log)
    cleaned_to = cleaned_before(topic, run)
    (tmp_path / "cleaner-offset-checkpoint").write_text(f"0\n1\n{topic} 0 {cleaned_to}\n")
    life = Life(tmp_path, offsets_topic_num_partitions=1)
    log = life.log(topic)
    log.settings = LogConfig(
        cleanup_policy=frozenset({"compact"}),
        delete_retention_ms=4_000,
        index_interval_bytes=300,
        segment_bytes=1 << 20 if topic == "__consumer_offsets" else 1_200,
    )
    now_ms = cleaned_at_ms(topic, run)
    clean(log, cleanable(log, now_ms), now_ms)
    expected = recorded(topic, f"after-{run}")
    names = sorted(path.name for path in folder.glob("*.log"))
    assert names == [f"{segment.base_offset:020d}.log" for segment in expected]
    for segment in expected[:-1]:
        path = folder / f"{segment.base_offset:020d}.log"
        if path.read_bytes() == segment.log:
            assert path.with_suffix(".index").read_bytes() == segment.offset_index
            assert path.with_suffix(".timeindex").read_bytes() == segment.time_index
        else:  # a compressor's
            assert len(path.with_suffix(".index").read_bytes()) == len(segment.offset_index)
            assert path.with_suffix(".timeindex").read_bytes() == segment.time_index
    life.kill()
