"""Reading while compacting gives no wrong answer: in memory, in files, and after a kill in between."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from groupcoord.broker.cleaner import clean, cleanable
from groupcoord.broker.partition_log import PartitionLog
from groupcoord.broker.topic_config import LogConfig
from groupcoord.client.completed_fetch import ConsumerRecord
from groupcoord.protocol.batches.record_batch import build_batch
from groupcoord.protocol.batches.records import Record
from tests.broker.data_plane import NOW_MS
from tests.broker.kafkas_cleaner import RUNS, cleaned_at_ms, cleaned_before, cleaned_to, recorded
from tests.storage.directory import Life, end, read_committed

DAY_MS = 86_400_000
KEYS = st.sampled_from([b"a", b"b", b"c"])
STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("append"), st.lists(st.tuples(KEYS, st.none() | st.binary(max_size=20)), min_size=1, max_size=4)
        ),
        st.tuples(
            st.just("transactional"),
            st.lists(st.tuples(KEYS, st.none() | st.binary(max_size=20)), min_size=1, max_size=2),
        ),
        st.tuples(st.just("end"), st.integers(7, 8), st.booleans()),
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
    hidden: set[int] = set()
    in_transaction: dict[int, list[int]] = {7: [], 8: []}
    sequences: Counter[int] = Counter()
    seen: list[ConsumerRecord] = []
    position, now_ms = 0, NOW_MS
    ended: list[tuple[object, ...]] = [("end", producer, True) for producer in in_transaction]
    with new_log(in_files=in_files) as kept:
        for what, *how in [*steps, *ended, *[("read", 10_000)] * 60]:
            log = kept.log
            match what, how:
                case "append", [list() as entries]:
                    made = [Record(index, NOW_MS, *entry) for index, entry in enumerate(entries)]
                    base = log.append(build_batch(made), now_ms).base_offset
                    appended |= {base + index: entry for index, entry in enumerate(entries)}
                case "transactional", [list() as entries]:
                    producer = 7 + len(appended) % 2
                    made = [Record(index, NOW_MS, *entry) for index, entry in enumerate(entries)]
                    producing = {"producer_id": producer, "producer_epoch": 0, "base_sequence": sequences[producer]}
                    base = log.append(build_batch(made, attributes=0x10, **producing), now_ms).base_offset
                    offsets = range(base, base + len(entries))
                    appended |= dict(zip(offsets, entries, strict=True))
                    in_transaction[producer] += offsets
                    sequences[producer] += len(entries)
                case "end", [int() as producer, bool() as commits]:
                    end(log, producer, committed=commits)
                    hidden.update(() if commits else in_transaction[producer])
                    in_transaction[producer].clear()
                case "roll", _:
                    log.roll(now_ms)
                case "compact", [int() as half_days]:
                    now_ms += half_days * DAY_MS // 2
                    clean(log, cleanable(log, now_ms), now_ms)
                case "read", [int() as max_bytes]:
                    records, position = read_committed(log, position, max_bytes)
                    seen += records
                case "read from the middle", [int() as offset]:
                    records, _ = read_committed(log, min(offset, log.last_stable_offset), 1)
                    assert all(appended[record.offset] == (record.key, record.value) for record in records)
                case _:
                    kept.kill()
    assert all(appended[record.offset] == (record.key, record.value) for record in seen)
    offsets_seen = [record.offset for record in seen]
    assert offsets_seen == sorted(set(offsets_seen))
    # Whatever the reader has seen, and has not, it ends up with the last value of each key. A key may be gone with its
    # tombstone from a log that is read for the first time; who had read it before is to see the tombstone within a day.
    assert not hidden & set(offsets_seen)
    last = dict(entry for offset, entry in sorted(appended.items()) if offset not in hidden)
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
        path = folder / f"{segment.base_offset:020d}.log"
        path.write_bytes(segment.log)
        if segment.transaction_index:
            path.with_suffix(".txnindex").write_bytes(segment.transaction_index)
    (tmp_path / "cleaner-offset-checkpoint").write_text(f"0\n1\n{topic} 0 {cleaned_before(topic, run)}\n")
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
    for segment in expected:
        path = folder / f"{segment.base_offset:020d}.log"
        if topic == "aborted":
            assert log.segments[expected.index(segment)].aborted == segment.aborted
        if segment.base_offset >= cleaned_to(topic, run):  # it was not looked at
            continue
        if path.read_bytes() == segment.log:
            assert path.with_suffix(".index").read_bytes() == segment.offset_index
            assert path.with_suffix(".timeindex").read_bytes() == segment.time_index
        else:  # a compressor's
            assert len(path.with_suffix(".index").read_bytes()) == len(segment.offset_index)
            assert path.with_suffix(".timeindex").read_bytes() == segment.time_index
    life.kill()
