"""A log in files, with ends and kills in between, is at any moment the log that would be in memory."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groupcoord.broker.log_segment import LogSegment
from groupcoord.broker.partition_log import EARLIEST, LATEST, MAX_TIMESTAMP, PartitionLog
from groupcoord.broker.producer_state_manager import ProducerStateManager
from groupcoord.broker.topic_config import LogConfig
from groupcoord.protocol.batches.record_batch import BatchError
from tests.broker.data_plane import NOW_MS, batch
from tests.storage.directory import Life, committed, contents, end, transactional

CONFIGS = {
    "internal.segment.bytes": "600",
    "index.interval.bytes": "100",
    "retention.bytes": "2000",
    "segment.ms": "5000",
}

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 3), st.integers(0, 150), st.integers(-9000, 0)),
        st.tuples(st.just("transactional"), st.integers(7, 9), st.integers(0, 150)),
        st.tuples(st.just("transactional"), st.integers(7, 9), st.integers(0, 150)),
        st.tuples(st.just("marker"), st.integers(7, 9), st.booleans()),
        st.tuples(st.just("delete records"), st.integers(-1, 40)),
        st.tuples(st.just("retain"), st.integers(0, 3)),
        st.tuples(st.just("checkpoint")),
        st.tuples(st.just("truncate"), st.integers(0, 40)),
        st.tuples(st.just("start over")),
        st.tuples(st.sampled_from(["end", "kill"])),
    ),
    max_size=40,
)


def answers(log: PartitionLog) -> list[object]:
    """What readers are told."""
    found: list[object] = [log.log_start_offset, log.log_end_offset, contents(log), log.end_of_epoch(0)]
    found += [log.last_stable_offset, committed(log), [each for segment in log.segments for each in segment.aborted]]
    times = (EARLIEST, LATEST, MAX_TIMESTAMP, *range(NOW_MS - 9000, NOW_MS, 700))
    found += [log.offset_for_timestamp(at_ms) for at_ms in times]
    for offset in range(log.log_start_offset, log.log_end_offset + 1, 2):
        read = log.read(offset, 150, at_least_one=True)
        found += [read.start, read.data()]
    return found


@pytest.mark.slow
@settings(max_examples=80)
@given(steps=STEPS)
def test_it_answers_the_same(steps: list[tuple[str, int, int, int]]) -> None:
    with TemporaryDirectory() as name:
        life = Life(Path(name))
        life.broker.topics.create("orders", 1, CONFIGS, NOW_MS)
        memory = PartitionLog(
            LogConfig(segment_bytes=600, index_interval_bytes=100, retention_bytes=2000, segment_ms=5000), "orders-0"
        )
        for what, *how in steps:
            if what in ("end", "kill"):
                life.end() if what == "end" else life.kill()
                life = Life(Path(name))
                memory.become_leader(life.log().leader_epoch)
                if memory.log_start_offset == memory.log_end_offset:
                    memory.producers = ProducerStateManager("orders-0")
                assert life.storage.findings == []
            elif what == "checkpoint":
                life.storage.checkpoint()
            else:
                begin = _begin_of_batch(memory, how[0]) if what == "truncate" else 0
                assert len({str(_step(log, what, how, begin)) for log in (memory, life.log())}) == 1
            assert answers(life.log()) == answers(memory)
        life.kill()


def _step(log: PartitionLog, what: str, how: list[int], begin: int) -> object:
    """Do to a log what a step says; what is answered."""
    match what:
        case "append":
            count, size, ago_ms = how
            return log.append(batch(*[b"v" * size] * count, at_ms=NOW_MS + ago_ms), NOW_MS)
        case "transactional":
            known = dict(log.producers.items()).get(how[0])
            sequence = 0 if known is None else known.last_sequence + 1
            return log.append(transactional(how[0], sequence, b"v" * how[1]), NOW_MS)
        case "marker":
            return end(log, how[0], committed=bool(how[1]))
        case "delete records":
            return _deleted(log, how[0])
        case "retain":
            log.apply_retention(NOW_MS + how[0] * 1000)
            return log.log_start_offset
        case "truncate":
            # In memory, what deleted segments said of producers is not known afterwards; in files a snapshot says it.
            if log.segments and log.segments[0].base_offset == 0:
                log.truncate_to(begin, NOW_MS)
        case _:
            log.truncate_fully_and_start_at(0, NOW_MS)
            log.held_back_to = None
    log.become_leader(log.leader_epoch + 1)  # only followers truncate
    return log.log_end_offset


def _begin_of_batch(memory: PartitionLog, number: int) -> int:
    """Where one of the batches begins, or the log ends if there is none."""
    segments = cast("list[LogSegment]", memory.segments)
    begins = [header.base_offset for segment in segments for _, header in segment.batches()]
    return begins[number % len(begins)] if begins else memory.log_end_offset


def _deleted(log: PartitionLog, offset: int) -> int | str:
    try:
        return log.delete_records(offset)
    except BatchError as problem:
        return problem.reason
