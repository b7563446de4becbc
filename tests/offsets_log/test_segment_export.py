import shutil
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from groupcoord.offsets_log import segment_export as module
from groupcoord.offsets_log.entries import LogEntry, entries
from groupcoord.offsets_log.log_source import Batch, SourceError, UnreadableData
from groupcoord.offsets_log.segment_dir_source import SegmentDirSource
from groupcoord.offsets_log.segment_export import ExportedPartition, export_segments
from groupcoord.protocol.batches.record_batch import build_batch, read_header
from groupcoord.protocol.batches.records import Record
from tests.broker.data_plane import patched
from tests.broker.kafkas_cleaner import recorded
from tests.offsets_log.recorded import KAFKA_FILES, VERSIONS, log_of

NAMED = "__consumer_offsets-2"
"""Here ``payments`` has its transactions."""
CHECKPOINTS = ("partition.metadata", "leader-epoch-checkpoint")


def refuse(fault: UnreadableData) -> None:
    raise AssertionError(fault)


def said(folders: Path) -> list[LogEntry]:
    source = SegmentDirSource(folders)
    found = [each for number in source.partitions for each in source.read(number)]
    assert not [each for each in found if isinstance(each, UnreadableData)]
    return [e for each in found if isinstance(each, Batch) for e in entries(each) if isinstance(e, LogEntry)]


@pytest.mark.parametrize("version", VERSIONS)
def test_everything_is_copied_byte_for_byte(version: str, tmp_path: Path) -> None:
    written = export_segments(SegmentDirSource(KAFKA_FILES / version), tmp_path / "a" / "b", report=refuse)
    for number in range(3):
        copy, original = tmp_path / "a" / "b" / f"__consumer_offsets-{number}", KAFKA_FILES / version
        for name in ("00000000000000000000.log", "00000000000000000000.timeindex", *CHECKPOINTS):
            assert (copy / name).read_bytes() == (original / copy.name / name).read_bytes()
    assert [one.partition for one in written] == [0, 1, 2]
    assert sum(one.bytes for one in written) == sum(log_of(version, number).stat().st_size for number in range(3))


def test_segments_and_their_indexes_are_kafkas(tmp_path: Path) -> None:
    """Those of a log with several of them; the recorded ones had index.interval.bytes=300, here it is Kafka's 4,096."""
    folder = tmp_path / "__consumer_offsets-0"
    folder.mkdir()
    for segment in recorded("__consumer_offsets", "before-1"):
        (folder / f"{segment.base_offset:020d}.log").write_bytes(segment.log)
    (written,) = export_segments(SegmentDirSource(folder), tmp_path / "out", topic_id=uuid.UUID(int=5), report=refuse)
    assert written.folder == tmp_path / "out" / "__consumer_offsets-0"
    for path in folder.glob("*.log"):
        assert (written.folder / path.name).read_bytes() == path.read_bytes()
    for segment in recorded("__consumer_offsets", "before-1")[:-1]:
        assert len((written.folder / f"{segment.base_offset:020d}.timeindex").read_bytes()) == 12
    assert (written.folder / "partition.metadata").read_text() == "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAABQ"


@pytest.mark.parametrize("version", VERSIONS)
def test_of_what_was_aborted_there_is_an_index(version: str, tmp_path: Path) -> None:
    def note(fault: UnreadableData) -> None:
        faults.append(fault)

    faults: list[UnreadableData] = []
    folder = shutil.copytree(KAFKA_FILES / version / NAMED, tmp_path / "in" / NAMED)
    export_segments(SegmentDirSource(folder), tmp_path / "out", report=note)
    [index] = (tmp_path / "out").rglob("*.txnindex")
    assert index.read_bytes() == (folder / index.name).read_bytes() != b""
    [last] = [entry.offset for entry in said(folder) if getattr(entry.what, "how", None) == "abort"]
    [path] = folder.glob("*.log")
    data = path.read_bytes()
    begin = data.index(last.to_bytes(8))
    header = read_header(data, begin)
    broken = patched(data[begin : begin + header.size], attributes=header.attributes | 0x07)
    path.write_bytes(data[:begin] + broken + data[begin + header.size :])
    export_segments(SegmentDirSource(folder), tmp_path / "broken", report=note)
    [fault] = faults
    assert fault.offset == last
    assert fault.reason.startswith("the end of a transaction cannot be read: ")
    assert (tmp_path / "broken" / NAMED / path.name).read_bytes() == path.read_bytes()
    assert not list((tmp_path / "broken").rglob("*.txnindex"))


@pytest.mark.parametrize("version", VERSIONS)
def test_of_some_groups_alone(version: str, tmp_path: Path) -> None:
    groups = ("payments", "shipping")
    written = export_segments(SegmentDirSource(KAFKA_FILES / version), tmp_path / "out", groups=groups, report=refuse)
    assert [one.partition for one in written] == [1, 2], "partitions without any are left out"
    whole = [entry for entry in said(KAFKA_FILES / version) if entry.group in {*groups, None}]
    assert said(tmp_path / "out") == whole, "the ends of their transactions with them"


def test_ends_of_the_transactions_of_others_are_left_out(tmp_path: Path) -> None:
    export_segments(SegmentDirSource(KAFKA_FILES / "4.3.1"), tmp_path / "out", groups=["simple"], report=refuse)
    (entry,) = said(tmp_path / "out")
    assert (entry.group, entry.offset) == ("simple", 9)


def test_of_a_batch_with_several_groups_a_part_stays(tmp_path: Path) -> None:
    keys = [b"\x00\x02\x00\x01" + name for name in (b"a", b"b", b"a")]
    data = build_batch([Record(4 + index, 9, key, None) for index, key in enumerate(keys)])
    export_segments(Given([Batch(0, 4, read_header(data), data)]), tmp_path / "out", groups=["a"], report=refuse)
    assert [(entry.offset, entry.group) for entry in said(tmp_path / "out")] == [(4, "a"), (6, "a")]


class Given:
    """A source of these things."""

    topic = "__consumer_offsets"
    partitions = (0,)
    topic_id = None

    def __init__(self, found: Sequence[Batch | UnreadableData]) -> None:
        self._found = found

    def read(self, partition: int) -> Iterator[Batch | UnreadableData]:
        assert partition == 0
        return iter(self._found)


def test_what_cannot_be_read_is_told_and_the_rest_is_written(tmp_path: Path) -> None:
    good = build_batch([Record(1, 9, b"\x00\x02\x00\x01a", None)])
    strange = build_batch([Record(2, 9, b"\x00\x63", None)])
    broken = bytearray(build_batch([Record(3, 9, b"k", None)]))
    broken[61] = 99
    fault = UnreadableData(0, 0, "torn")
    batches = [Batch(0, 0, read_header(data), bytes(data)) for data in (good, strange, broken)]
    found: list[Batch | UnreadableData] = [fault, *batches]
    faults: list[UnreadableData] = []
    (written,) = export_segments(Given(found), tmp_path / "out", groups=["a"], report=faults.append)
    assert written == ExportedPartition(0, tmp_path / "out" / "__consumer_offsets-0", 1, 1, len(good))
    assert [each.offset for each in faults] == [0, 2, 3]
    assert not (written.folder / "partition.metadata").exists(), "nobody knows the id"


def test_some_partitions_alone(tmp_path: Path) -> None:
    written = export_segments(SegmentDirSource(KAFKA_FILES / "4.3.1"), tmp_path / "out", partitions=[1], report=refuse)
    assert [one.partition for one in written] == [1]


def test_a_segment_that_is_full_is_followed_by_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "OFFSETS_SEGMENT_BYTES", 700)
    (written,) = export_segments(
        SegmentDirSource(KAFKA_FILES / "4.3.1"), tmp_path / "out", partitions=[2], report=refuse
    )
    paths = sorted(written.folder.glob("*.log"))
    assert len(paths) == 3
    assert b"".join(path.read_bytes() for path in paths) == log_of("4.3.1", 2).read_bytes()
    assert int(paths[1].stem) == read_header(paths[1].read_bytes()).base_offset


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    target = tmp_path / "out"
    shutil.copytree(KAFKA_FILES / "3.9.2", target)
    with pytest.raises(SourceError, match=r"out/__consumer_offsets-0 is there already"):
        export_segments(SegmentDirSource(KAFKA_FILES / "4.3.1"), target, report=refuse)


def test_what_the_system_refuses_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SourceError, match=f"^cannot use {tmp_path / 'file' / 'out'}: Not a directory$"):
        export_segments(SegmentDirSource(KAFKA_FILES / "4.3.1"), tmp_path / "file" / "out", report=refuse)
