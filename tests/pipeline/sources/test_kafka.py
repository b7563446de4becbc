"""Reading a range of a partition, whatever has become of it meanwhile."""

from typing import Self

import pytest

from groupcoord.client.log_reader import FetchedBatches
from groupcoord.pipeline.sources import kafka_source
from groupcoord.pipeline.sources.kafka_source import OffsetOutOfRangeError
from groupcoord.protocol.batches.record_batch import build_batch
from groupcoord.protocol.batches.records import Record


class Log:
    """A cluster with one partition, whose records from 5 to 8 are left, two in a batch."""

    first, end = 5, 9

    def __init__(self, options: dict[str, str]) -> None:
        self.options = options

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def offsets(self, wanted: set[tuple[str, int]], when: int) -> dict[tuple[str, int], int]:
        return dict.fromkeys(wanted, self.first)

    def fetch(self, topic: str, partition: int, offset: int) -> FetchedBatches:
        if not self.first <= offset <= self.end:
            raise OffsetOutOfRangeError(f"{topic}-{partition} has no offset {offset}")
        batches = [build_batch([Record(one, 9, b"k", b"v"), Record(one + 1, 9, b"k", b"v")]) for one in (5, 7)]
        return FetchedBatches(b"".join(batches[(offset - self.first) // 2 :]), [])


def read(monkeypatch: pytest.MonkeyPatch, start: int, end: int) -> list[int]:
    monkeypatch.setattr(kafka_source, "ClusterReader", Log)
    found = kafka_source.fetch({"bootstrap": "x:1"}, kafka_source.OffsetRange(0, start, end))
    return [offset for batch in found for offset in batch.column("log_offset").to_pylist()]


def test_it_reads_just_what_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(monkeypatch, 6, 8) == [6, 7]


def test_what_was_deleted_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(monkeypatch, 0, 9) == [5, 6, 7, 8]
    assert read(monkeypatch, 0, 4) == []


def test_what_is_behind_the_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OffsetOutOfRangeError, match="__consumer_offsets-0 has no offset 12"):
        read(monkeypatch, 12, 20)
