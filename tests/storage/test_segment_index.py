"""Index files are Kafka's, byte for byte, and searched by bisection."""

from pathlib import Path

import pytest

from groupcoord.storage.segment_index import OffsetIndex, TimeIndex, TimestampOffset
from tests.storage.directory import KAFKA_FILES


def test_kafkas_offset_index_written_again(tmp_path: Path) -> None:
    kafkas = KAFKA_FILES / "recorded-0" / "00000000000000000000.index"
    theirs, ours = OffsetIndex(kafkas, 0), OffsetIndex(tmp_path / "a", 0)
    last = 0
    for offset in range(27):
        position = theirs.position_of(offset)
        if position != last:
            ours.append(offset, position)
            last = position
    ours.close()
    assert ours.path.read_bytes() == kafkas.read_bytes()
    assert ours.last == theirs.last
    assert (ours.count, ours.size) == (4, 32)


def test_a_search_begins_at_a_batch_that_ends_before() -> None:
    index = OffsetIndex(KAFKA_FILES / "recorded-0" / "00000000000000000027.index", 27)
    assert index.last is not None
    offset, position = index.last
    assert index.position_of(offset) == index.position_of(offset + (1 << 40)) == position
    assert index.position_of(offset - 1) < position
    assert index.position_of(27) == 0


def test_an_index_without_entries(tmp_path: Path) -> None:
    offsets, times = OffsetIndex(tmp_path / "a", 5), TimeIndex(tmp_path / "b", 5)
    assert offsets.last is None
    assert offsets.position_of(7) == 0
    assert times.floor(99) == times.last == TimestampOffset(-1, 5)
    assert not offsets.is_sound()  # there is no file


def test_times_only_grow(tmp_path: Path) -> None:
    index = TimeIndex(tmp_path / "a", 10)
    for entry in ((100, 12), (100, 13), (90, 14), (110, 20)):
        index.append(TimestampOffset(*entry))
    assert index.count == 2
    assert [index.floor(at_ms).offset for at_ms in (99, 100, 109, 110, 999)] == [10, 12, 12, 20, 20]
    index.sync()
    index.close()
    again = TimeIndex(tmp_path / "a", 10)
    again.sync()
    assert again.last == TimestampOffset(110, 20)
    again.append(TimestampOffset(111, 21))
    assert again.floor(200) == TimestampOffset(111, 21)
    again.reset()
    assert again.last == TimestampOffset(-1, 10)
    assert again.path.read_bytes() == b""


def test_what_lies_behind_an_offset_is_cut_off(tmp_path: Path) -> None:
    offsets, times = OffsetIndex(tmp_path / "a", 10), TimeIndex(tmp_path / "b", 10)
    for number in range(1, 4):
        offsets.append(10 + 2 * number, 100 * number)
        times.append(TimestampOffset(1000 + number, 10 + 2 * number))
    for index in (offsets, times):
        index.cut_behind(15)
        assert index.count == 2
    assert offsets.last == (14, 200)
    assert times.last == TimestampOffset(1002, 14)
    offsets.append(19, 300)
    assert OffsetIndex(tmp_path / "a", 10).last == (19, 300)
    offsets.close()
    times.cut_behind(3)
    assert times.last == TimestampOffset(-1, 10)


@pytest.mark.parametrize("harm", ["times", "offsets"])
def test_entries_that_do_not_ascend_are_seen_in_times_too(tmp_path: Path, harm: str) -> None:
    entries = [(1000, 2), (999, 3)] if harm == "times" else [(1000, 3), (1001, 2)]
    (tmp_path / "a").write_bytes(b"".join(at_ms.to_bytes(8) + offset.to_bytes(4) for at_ms, offset in entries))
    assert not TimeIndex(tmp_path / "a", 0).is_sound()


@pytest.mark.parametrize(
    ("data", "sound"),
    [
        (b"", True),
        (bytes.fromhex("0000000100000010 0000000200000020"), True),
        (bytes.fromhex("0000000200000010 0000000100000020"), False),
        (bytes.fromhex("0000000100000020 0000000200000010"), False),
        (bytes.fromhex("ffffffff00000010"), False),
        (bytes.fromhex("00000001000000"), False),
    ],
)
def test_what_is_wrong_with_a_file_is_seen(tmp_path: Path, data: bytes, sound: bool) -> None:
    (tmp_path / "a").write_bytes(data)
    assert OffsetIndex(tmp_path / "a", 0).is_sound() is sound
