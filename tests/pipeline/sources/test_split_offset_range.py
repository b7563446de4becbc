"""A long partition of the log is read in ranges, and what is read is the same wherever it is cut."""

import random
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import pytest
from confluent_kafka import Producer
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from groupcoord import Cluster
from groupcoord.client.log_reader import READ_COMMITTED, READ_UNCOMMITTED, FetchedBatches
from groupcoord.pipeline.columnar_decoder import is_of_places
from groupcoord.pipeline.sources import kafka_source
from groupcoord.pipeline.sources.kafka_source import FEWEST_OFFSETS, RANGE_BYTES, OffsetRange, cut_offsets
from groupcoord.protocol.batches.record_batch import ABORT_MARKER, COMMIT_MARKER, CONTROL, TRANSACTIONAL, build_batch
from groupcoord.protocol.batches.records import Record
from tests import real_kafka as real
from tests.pipeline.random_log import RandomLog
from tests.pipeline.whole_run import run

TOPIC = "ranges"
OPTIONS = {"bootstrap": "x:1"}
STEPS = st.lists(
    st.tuples(st.integers(-1, 3), st.sampled_from(["data", "data", "data", "commit", "abort"]), st.integers(1, 4)),
    min_size=1,
    max_size=30,
)
"""A producer, what it does, and with how many records; producer -1 has no transactions."""
CUTS = st.sets(st.integers(1, 60))
Range = tuple[int, int, bool]
Row = tuple[int, bytes | None, bool]


class Broker:
    """One partition as a broker has it: it sends a few batches at a time, and says of each stretch what was aborted there."""

    at_once = 3

    def __init__(self, steps: Sequence[tuple[int, str, int]]) -> None:
        self.batches: list[tuple[int, bytes]] = []
        self.aborted: list[tuple[int, int, int]] = []
        running: dict[int, int] = {}
        offset = 0
        for producer, what, size in steps:
            records = [Record(offset + number, 1000, b"k", b"%d" % (offset + number)) for number in range(size)]
            attributes = TRANSACTIONAL
            if producer < 0:
                attributes = 0
            elif what == "data":
                running.setdefault(producer, offset)
            else:
                kind = COMMIT_MARKER if what == "commit" else ABORT_MARKER
                records = [Record(offset, 1000, b"\0\0" + kind.to_bytes(2, "big"), bytes(6))]
                attributes |= CONTROL
                first = running.pop(producer, None)
                if what == "abort" and first is not None:
                    self.aborted.append((producer, first, offset))
            self.batches.append((offset, build_batch(records, producer_id=producer, attributes=attributes)))
            offset += len(records)
        self.end = offset
        self.stable = min(running.values(), default=offset)

    def reader(self, _: object, *, isolation_level: int = READ_COMMITTED) -> "Reader":
        return Reader(self, is_committed=isolation_level == READ_COMMITTED)

    def send(self, offset: int, *, is_committed: bool) -> FetchedBatches:
        limit = self.stable if is_committed else self.end
        ends = [start for start, _ in self.batches[1:]] + [self.end]
        sent = [
            (end, data) for (start, data), end in zip(self.batches, ends, strict=True) if end > offset and start < limit
        ][: self.at_once]
        upper = sent[-1][0] if sent else offset
        told = [(producer, first) for producer, first, last in self.aborted if last >= offset and first < upper]
        return FetchedBatches(b"".join(data for _, data in sent), told if is_committed else [])


class Reader:
    def __init__(self, broker: Broker, *, is_committed: bool) -> None:
        self._broker, self._is_committed = broker, is_committed

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def fetch(self, topic: str, partition: int, offset: int) -> FetchedBatches:
        return self._broker.send(offset, is_committed=self._is_committed)


def rows_and_counts(edges: Sequence[Range], options: dict[str, str] = OPTIONS) -> tuple[list[Row], tuple[int, int]]:
    """Each record and whether it is hidden; and how many were aborted, and have no end."""
    told: list[tuple[int, int]] = []
    rows: list[Row] = []
    for start, end, is_stable in edges:
        part = OffsetRange(0, start, end, is_stable=is_stable)
        for batch in kafka_source.fetch_with_places(options, part, lambda _, *counts: told.append(counts)):
            is_hidden = is_of_places(batch)
            values = [None] * len(batch) if is_hidden else batch["value"].to_pylist()
            rows += [
                (offset, value, is_hidden)
                for offset, value in zip(batch["log_offset"].to_pylist(), values, strict=True)
            ]
    aborted, without_end = map(sum, zip(*told, strict=True))
    return sorted(rows, key=str), (aborted, without_end)


@pytest.mark.slow
@settings(max_examples=100)
@given(STEPS, CUTS)
def test_any_cut_before_the_last_stable_offset_gives_what_one_task_reads(
    steps: list[tuple[int, str, int]], places: set[int]
) -> None:
    broker = Broker(steps)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(kafka_source, "ClusterReader", broker.reader)
        edges = [0, *sorted(place for place in places if place < broker.stable), broker.end]
        in_ranges = [(low, high, high != broker.end) for low, high in pairwise(edges)]
        assert rows_and_counts(in_ranges) == rows_and_counts([(0, broker.end, False)])


def test_a_real_kafka_says_of_each_range_what_was_aborted(real_kafka: real.Broker) -> None:
    """Three producers whose transactions overlap, are committed and aborted in turns; and one that stays open."""
    chance = random.Random(5)
    settings_ = {"bootstrap.servers": real_kafka.bootstrap_servers, "linger.ms": 0}
    producers = [Producer({**settings_, "transactional.id": f"ranges-{number}"}) for number in range(3)]
    for producer in producers:
        producer.init_transactions(30)
    running: set[int] = set()
    for step in range(60):
        number = chance.randrange(3)
        if number not in running:
            producers[number].begin_transaction()
            running.add(number)
        producers[number].produce(TOPIC, b"%d" % step, partition=0)
        producers[number].flush(30)
        if chance.random() < 0.3:
            running.remove(number)
            (producers[number].commit_transaction if chance.random() < 0.5 else producers[number].abort_transaction)(30)
    options = {"bootstrap": real_kafka.bootstrap_servers, "topic": TOPIC}
    _, stable = kafka_source.bounds(options)[0]
    _, end = kafka_source.bounds(options, READ_UNCOMMITTED)[0]
    assert 10 < stable < end
    expected = rows_and_counts([(0, end, False)], options)
    aborted, without_end = expected[1]
    assert aborted
    assert without_end
    for cut in range(1, stable, 3):
        edges = [0, *sorted({chance.randrange(1, stable), cut, stable}), end]
        assert rows_and_counts([(low, high, high != end) for low, high in pairwise(edges)], options) == expected
    for number in running:
        producers[number].abort_transaction(30)


def test_a_log_that_is_dense_is_cut_into_ranges_of_the_size_that_a_task_reads() -> None:
    edges = [0, *cut_offsets(0, 10_000_000, lambda _: 85), 10_000_000]
    sizes = [(high - low) * 85 for low, high in pairwise(edges)]
    assert max(sizes) <= RANGE_BYTES < 2 * min(sizes) + 85


def test_what_compaction_has_emptied_is_not_cut() -> None:
    """A thousand million offsets of which hardly any is left, and behind them two million of which each is."""
    dense = 1_000_000_000
    asked: list[int] = []

    def density(offset: int) -> float:
        asked.append(offset)
        return 85 if offset >= dense else 0.0001

    cuts = cut_offsets(0, dense + 2_000_000, density)
    assert sum(cut > dense for cut in cuts) in range(5, 12)
    assert len(asked) < 40


def test_a_short_log_is_not_even_asked() -> None:
    def density(offset: int) -> float:
        raise AssertionError(offset)

    assert cut_offsets(7, 7 + 2 * FEWEST_OFFSETS - 1, density) == []


@pytest.fixture
def short_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task reads hardly anything."""
    monkeypatch.setattr(kafka_source, "RANGE_BYTES", 2000)
    monkeypatch.setattr(kafka_source, "FEWEST_OFFSETS", 5)


def test_a_run_in_ranges_makes_the_tables_that_a_run_on_the_files_makes(
    spark: SparkSession, tmp_path: Path, short_ranges: None
) -> None:
    """One partition of the log has an open transaction, the other has none."""
    log = RandomLog(7, partitions=2, steps=150)
    log.leave_open("group-1")
    log.write(tmp_path / "data")
    config: dict[str, Any] = {"offsets.topic.num.partitions": 2, "offsets.retention.minutes": 2_000_000}
    config |= {"log.cleaner.enable": False, "log.retention.ms": -1}
    with Cluster(config=config, data_dir=tmp_path / "data").sync() as kafka:
        options = {"bootstrap": kafka.address}
        parts = kafka_source.ranges_to_the_end(options)
        assert len(parts) > 10
        assert sum(not part.is_stable for part in parts) == 2
        ends = kafka_source.bounds(options, READ_UNCOMMITTED)
        assert sum(part.end - part.start for part in parts) == sum(end - start for start, end in ends.values())
        over_the_wire = run(spark, f"kafka:{kafka.address}", tmp_path / "wire")
    of_files = run(spark, f"segments:{tmp_path / 'data'}", tmp_path / "files")
    names = (
        "commits",
        "generations",
        "bad_records",
        "log_partitions",
        "record_counts",
        "current_offsets",
        "rebalances",
    )
    for name in names:
        assert in_order(over_the_wire[name]) == in_order(of_files[name]), name
    transactions = [
        in_order([row for row in tables["source_warnings"] if "transactions" in row["what"]])
        for tables in (over_the_wire, of_files)
    ]
    assert transactions[0] == transactions[1] != []


def in_order(rows: list[Any]) -> list[str]:
    return sorted(map(repr, rows))
