"""What is in a log file is checked batch by batch, and what is wrong is told by its place."""

from pathlib import Path

import pytest

from groupcoord.protocol.batches.record_batch import stamp_offsets
from groupcoord.protocol.errors import ErrorCode
from groupcoord.storage.file_io import opened
from groupcoord.storage.log_file_reader import CorruptBatchError, checked_batches, headers
from tests.broker.data_plane import batch, patched
from tests.storage.directory import KAFKA_FILES

FIRST = bytearray(batch(b"a", b"b"))
SECOND = bytearray(batch(b"c"))
stamp_offsets(SECOND, 2, 0)
BOTH = bytes(FIRST + SECOND)


def log_file(folder: Path, data: bytes, base_offset: int = 0) -> Path:
    path = folder / f"{base_offset:020d}.log"
    path.write_bytes(data)
    return path


def checked(path: Path) -> tuple[list[int], CorruptBatchError | None]:
    """(base offsets of what is in order, what is wrong with the rest)."""
    found = []
    try:
        for _, header, data in checked_batches(path):
            assert len(data) == header.size
            found.append(header.base_offset)
    except CorruptBatchError as fault:
        return found, fault
    return found, None


def test_the_batches_of_a_file(tmp_path: Path) -> None:
    assert checked(log_file(tmp_path, BOTH)) == ([0, 2], None)
    assert checked(log_file(tmp_path, b"")) == ([], None)


def test_what_kafka_wrote_is_in_order() -> None:
    for path in sorted((KAFKA_FILES / "recorded-0").glob("*.log")):
        found, fault = checked(path)
        with opened(path) as descriptor:
            assert [
                header.base_offset for _, header in headers(path, descriptor, 0, path.stat().st_size, chunk=100)
            ] == found
        assert fault is None
        assert found


@pytest.mark.untraced
@pytest.mark.parametrize("missing", range(1, len(SECOND)))
def test_a_batch_cut_off_at_any_byte_is_torn(tmp_path: Path, missing: int) -> None:
    found, fault = checked(log_file(tmp_path, BOTH[:-missing]))
    assert found == [0]
    assert fault is not None
    assert (fault.torn, fault.position, fault.offset) == (True, len(FIRST), 2)
    assert "was not completely written" in fault.reason


@pytest.mark.untraced
@pytest.mark.parametrize("byte", range(16, len(SECOND)))
def test_a_change_of_any_byte_behind_offset_length_and_epoch_is_seen(tmp_path: Path, byte: int) -> None:
    data = bytearray(BOTH)
    data[len(FIRST) + byte] ^= 0x40
    found, fault = checked(log_file(tmp_path, bytes(data)))
    assert found == [0]
    assert fault is not None
    assert (fault.torn, fault.position, fault.offset) == (False, len(FIRST), 2)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (bytes(100), r"message format 0|a batch of length 0, and none is shorter than 49"),
        (patched(bytes(FIRST), length=48, right_checksum=False), "a batch of length 48"),
        (patched(bytes(FIRST), magic=3, right_checksum=False), "a batch of magic 3, and there is none above 2"),
        (patched(bytes(FIRST), crc=1), "the checksum of the batch with offset 0 is not 1"),
        (patched(bytes(FIRST), last_offset_delta=-1), "a batch with offsets 0 to -1, where none below 0 can be"),
        (bytes(FIRST + FIRST), "a batch with offsets 0 to 1, where none below 2 can be"),
    ],
)
def test_why_something_is_no_batch(tmp_path: Path, data: bytes, reason: str) -> None:
    path = log_file(tmp_path, data)
    _, fault = checked(path)
    assert fault is not None
    assert not fault.torn
    assert not fault.old_format
    with pytest.raises(CorruptBatchError, match=rf"{path} at byte \d+, offset \d+: ({reason})"):
        raise fault


@pytest.mark.parametrize("length", [-12, 0, 1, 48, 1 << 20, (1 << 31) - 1])
def test_no_length_is_trusted_by_who_reads_headers_alone(tmp_path: Path, length: int) -> None:
    path = log_file(tmp_path, bytes(FIRST) + patched(bytes(SECOND), length=length, right_checksum=False) + b"more")
    with opened(path) as descriptor:
        walk = headers(path, descriptor, 0, path.stat().st_size)
        assert next(walk)[1].base_offset == 0
        with pytest.raises(CorruptBatchError, match=rf"{path} at byte {len(FIRST)}, offset 2: ") as problem:
            next(walk)
    assert problem.value.error is ErrorCode.CORRUPT_MESSAGE


def test_offsets_stay_within_what_an_index_can_say_and_before_the_next_segment(tmp_path: Path) -> None:
    data = patched(bytes(FIRST), base_offset=7 + (1 << 31) - 1, right_checksum=False)
    _, fault = checked(log_file(tmp_path, data, base_offset=7))
    assert fault is not None
    assert f"where none {7 + (1 << 31)} or above can be" in fault.reason
    path = log_file(tmp_path, BOTH)
    assert len(list(checked_batches(path, behind=3))) == 2
    with (
        pytest.raises(CorruptBatchError, match="offsets 2 to 2, where none 2 or above can be"),
        opened(path) as descriptor,
    ):
        list(headers(path, descriptor, 0, len(BOTH), behind=2))


def test_old_formats_are_told_from_garbage(tmp_path: Path) -> None:
    _, fault = checked(log_file(tmp_path, patched(bytes(FIRST), magic=1, right_checksum=False)))
    assert fault is not None
    assert fault.old_format
    assert "message format 1" in fault.reason


def test_offsets_do_not_begin_before_the_file(tmp_path: Path) -> None:
    found, fault = checked(log_file(tmp_path, bytes(FIRST), base_offset=7))
    assert found == []
    assert fault is not None
    assert "where none below 7 can be" in fault.reason


def test_what_is_behind_a_fault_can_be_read_on_from_there(tmp_path: Path) -> None:
    broken = bytearray(FIRST)
    broken[-1] ^= 1
    path = log_file(tmp_path, bytes(broken) + bytes(SECOND))
    found, fault = checked(path)
    assert fault is not None
    assert (found, fault.size) == ([], len(FIRST))
    (batch_behind,) = checked_batches(path, fault.position + len(FIRST), fault.offset)
    assert batch_behind.header.base_offset == 2
    _, torn = checked(log_file(tmp_path, BOTH[:-1]))
    assert torn is not None
    assert torn.size is None
