"""Damage after a clean shutdown, too, is found before anything is acknowledged behind it; and what was lost is said."""

import shutil
import struct
from pathlib import Path

import pytest

from groupcoord.broker.leader_epoch_cache import EpochEntry
from groupcoord.protocol.batches.record_batch import BatchError, checksum_matches, read_header
from groupcoord.protocol.errors import ErrorCode
from groupcoord.storage.file_io import StorageError
from groupcoord.storage.log_dir_files import RECOVERY_POINTS, write_epochs
from tests.broker.data_plane import NOW_MS, batch, patched
from tests.storage.directory import Life, contents, filled
from tests.storage.test_log_loader import SIZE, files, logged, path_of, recover

pytestmark = pytest.mark.slow

LAST = "00000000000000000000.log"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Thirty batches of one record in three segments, after a clean shutdown."""
    life = Life(tmp_path)
    filled(life.topic(index_interval_bytes=300, internal_segment_bytes=10 * SIZE), 10, 10, size=50)
    filled(life.log(), 20, 10, size=50)
    life.end()
    return tmp_path / "orders-0"


def lengthened(data: bytes, length: int) -> bytes:
    return data[:8] + struct.pack(">i", length) + data[12:]


def lost(folder: Path, first: int, last: int) -> str:
    return (
        f"{folder}: the log ends before offset {first}, and had been flushed up to offset {last}: "
        f"the records from offset {first} to {last} are lost, and their offsets are given anew"
    )


TAILS = {
    "a cut inside the offset": batch(b"x")[:5],
    "a cut inside the header": batch(b"x")[:40],
    "a cut inside the body": batch(b"x")[:-3],
    "stray bytes": b"\xee" * 77,
    "zeros": bytes(200),
    "a length of -12": lengthened(batch(b"x"), -12),
    "a length of 0": lengthened(batch(b"x"), 0),
    "a length of 1": lengthened(batch(b"x"), 1),
    "the largest length": lengthened(batch(b"x"), (1 << 31) - 1),
    "a flipped bit": batch(b"x")[:-1] + b"\xff",
    "offsets that were": patched(batch(b"x"), base_offset=3, right_checksum=False),
    "offsets beyond what an index can say": patched(batch(b"x"), base_offset=1 << 40, right_checksum=False),
}


@pytest.mark.parametrize("tail", TAILS.values(), ids=TAILS)
def test_a_damaged_tail_after_a_clean_shutdown_is_cut_off(tmp_path: Path, tail: bytes) -> None:
    life = Life(tmp_path)
    filled(life.topic(), 5)
    life.end()
    path = tmp_path / "orders-0" / LAST
    whole = path.read_bytes()
    path.write_bytes(whole + tail)
    again = Life(tmp_path)
    [said] = again.storage.findings
    assert said.startswith(f"{path} is cut off at byte {len(whole)}, before offset 5: ")
    assert said.endswith(f". The {len(tail)} bytes from there on are kept in {LAST}.{len(whole)}.cut")
    assert path.with_name(f"{LAST}.{len(whole)}.cut").read_bytes() == tail
    filled(again.log(), 1, 5)
    again.kill()
    last = Life(tmp_path)
    assert last.storage.findings == []
    assert contents(last.log()) == [(number, b"%d" % number) for number in range(6)]


def test_a_cut_inside_a_flushed_batch_says_which_offsets_are_given_anew(tmp_path: Path) -> None:
    life = Life(tmp_path)
    filled(life.topic(), 5)
    life.end()
    path = tmp_path / "orders-0" / LAST
    path.write_bytes(path.read_bytes()[:-3])
    again = Life(tmp_path)
    assert "was not completely written. The" in again.storage.findings[0]
    assert again.storage.findings[1] == lost(tmp_path / "orders-0", 4, 4)
    again.kill()
    last = Life(tmp_path)  # what is appended now has not been flushed, and the checkpoint does not say so either
    assert last.storage.findings == []
    assert last.store().recovery_point == 4


def test_an_active_log_that_was_emptied_says_what_was_lost(tmp_path: Path) -> None:
    life = Life(tmp_path)
    filled(life.topic(), 5)
    life.end()
    (tmp_path / "orders-0" / LAST).write_bytes(b"")
    again = Life(tmp_path)
    assert again.log().log_end_offset == 0
    assert again.storage.findings == [
        (
            f"{tmp_path / 'orders-0' / LAST}: its indexes know of offset 4, and it ends before offset 0: either records are "
            "lost, or the indexes are wrong; they are made anew"
        ),
        lost(tmp_path / "orders-0", 0, 4),
    ]


def test_a_log_that_is_longer_than_it_was_is_told(folder: Path) -> None:
    found, said = recover(folder, clean=True, recovery_point=25)
    assert found.log_end_offset == 30
    assert said == [
        (
            f"{folder}: the log ends before offset 30, and when the server ended it did before offset 25: "
            "somebody has put records there, or has changed the checkpoint"
        )
    ]


def test_a_checkpoint_that_says_more_does_not_empty_a_whole_log(folder: Path) -> None:
    found, said = recover(folder, clean=True, recovery_point=30, log_start_offset=1000)
    assert (found.log_start_offset, found.log_end_offset) == (0, 30)
    [text] = said
    assert text.endswith(
        "up to which its records were deleted; it is as it was flushed, so that it keeps all its records"
    )


def test_what_a_log_that_goes_on_elsewhere_held_is_kept_beside_it(folder: Path) -> None:
    before = path_of(folder, 10).read_bytes()
    path_of(folder, 20).write_bytes(b"")
    found, _ = recover(folder, log_start_offset=1000)
    assert found.log_end_offset == 1000
    assert not path_of(folder, 20, ".log.0.cut").exists()
    assert path_of(folder, 10, ".log.0.cut").read_bytes() == before


def test_a_segment_that_is_gone_is_told_by_its_offsets(folder: Path) -> None:
    for kind in (".log", ".index", ".timeindex"):
        path_of(folder, 10, kind).unlink()
    _, said = recover(folder, clean=True)
    assert said == [
        (
            f"{path_of(folder, 0)} ends before offset 10, and {path_of(folder, 20).name} follows: "
            "the records from offset 10 to 19 are lost"
        )
    ]


def test_segments_that_are_in_one_anothers_place_are_set_aside(folder: Path) -> None:
    first, second = path_of(folder, 0).read_bytes(), path_of(folder, 10).read_bytes()
    path_of(folder, 0).write_bytes(second)
    path_of(folder, 10).write_bytes(first)
    found, said = recover(folder, clean=True, recovery_point=30)
    assert [offset for offset, _ in contents(logged(found, folder))] == list(range(20, 30))
    assert "a batch with offsets 10 to 10, where none 10 or above can be" in "".join(said)
    assert path_of(folder, 0, ".log.0.cut").read_bytes() == second
    assert path_of(folder, 10, ".log.0.cut").read_bytes() == first


# --- what is not looked at


def damaged_early(folder: Path, *, at: int = 8) -> Path:
    """A length of -12 where the active segment's index leads past, and a producer's state that does not need it."""
    path = path_of(folder, 20)
    data = bytearray(path.read_bytes())
    struct.pack_into(">i", data, at, -12)
    path.write_bytes(data)
    return path


def test_damage_to_old_records_does_not_cost_those_that_are_appended(folder: Path) -> None:
    """Deviation (after-a-kill)."""
    path = damaged_early(folder)
    life = Life(folder.parent)
    assert life.storage.findings == []
    with pytest.raises(BatchError, match=rf"{path} at byte 0, offset 20: a batch of length -12") as problem:
        life.log().read(20, 1000, at_least_one=True)
    assert problem.value.error is ErrorCode.CORRUPT_MESSAGE
    filled(life.log(), 1, 30)
    life.kill()
    again = Life(folder.parent)
    assert again.storage.findings == []
    data = again.log().read(30, 1000, at_least_one=True).data()
    assert read_header(data).base_offset == 30
    assert checksum_matches(data, read_header(data))


@pytest.mark.parametrize("entry", [(11, 5 * SIZE + 1), (4, 5 * SIZE), (9, 500 * SIZE)])
def test_an_index_that_leads_nowhere_is_not_followed_past_anything(folder: Path, entry: tuple[int, int]) -> None:
    recover(folder, clean=True)
    before = files(folder)
    path_of(folder, 20, ".index").write_bytes(struct.pack(">ii", *entry))
    found, _ = recover(folder, recovery_point=30)
    assert [offset for offset, _ in contents(logged(found, folder))] == list(range(30))
    assert files(folder) == before


def test_damage_that_the_states_of_producers_need_is_found_and_cut_off(folder: Path) -> None:
    path = damaged_early(folder)
    for snapshot in folder.glob("*.snapshot"):
        snapshot.unlink()
    found, said = recover(folder, clean=True, recovery_point=30)
    assert found.log_end_offset == 20
    assert said[0].startswith(f"{path} is cut off at byte 0, before offset 20: a batch of length -12")
    assert "the records from offset 20 to 29 are lost" in said[1]


def test_a_wrong_length_is_not_taken_for_a_torn_batch(folder: Path) -> None:
    path = path_of(folder, 20)
    data = path.read_bytes()
    path.write_bytes(data[: 4 * SIZE] + lengthened(data[4 * SIZE :], 1 << 20))
    _, said = recover(folder)
    assert f"are kept in {path.name}.{4 * SIZE}.cut" in said[0]
    assert (folder / f"{path.name}.{4 * SIZE}.cut").stat().st_size == 6 * SIZE


def test_what_was_flushed_is_kept_even_if_it_looks_torn(folder: Path) -> None:
    path = path_of(folder, 20)
    path.write_bytes(path.read_bytes()[:-5])
    _, said = recover(folder, recovery_point=30)
    assert f"are kept in {path.name}.{9 * SIZE}.cut" in said[0]
    assert "the records from offset 29 to 29 are lost" in said[1]


def test_what_an_index_knows_of_a_log_that_ends_before_is_told(folder: Path) -> None:
    path = path_of(folder, 20)
    path.write_bytes(path.read_bytes()[: 4 * SIZE])
    _, said = recover(folder)
    assert said == [
        (
            f"{path}: its indexes know of offset 29, and it ends before offset 24: either records are lost, or the indexes are "
            "wrong; they are made anew"
        )
    ]


# --- other files of a folder


@pytest.mark.parametrize(
    "name", [f"{10:020d}.log", f"{20:020d}.index", f"{30:020d}.snapshot", "leader-epoch-checkpoint"]
)
def test_a_folder_instead_of_a_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    (folder / name).mkdir()
    with pytest.raises(StorageError, match=f"{folder / name} is a folder, and should be a file. .* move it away"):
        recover(folder, clean=True)


def test_a_cleaned_segment_that_is_damaged_replaces_nothing(folder: Path) -> None:
    shutil.copy(path_of(folder, 0), path_of(folder, 0, ".log.swap"))
    path_of(folder, 0, ".log.swap").write_bytes(path_of(folder, 0).read_bytes()[:-3])
    with pytest.raises(StorageError, match=r"0000.log.swap at byte .* Move the files swap away"):
        recover(folder)
    path_of(folder, 0, ".log.swap").unlink()
    found, _ = recover(folder)
    assert len(contents(logged(found, folder))) == 30


@pytest.mark.parametrize(
    ("epochs", "reason"),
    [
        ([EpochEntry(0, 0), EpochEntry(1 << 40, 3)], "has an epoch or an offset that none can have"),
        ([EpochEntry(-3, 0)], "has an epoch or an offset that none can have"),
        ([EpochEntry(0, -5)], "has an epoch or an offset that none can have"),
        ([EpochEntry(0, 9), EpochEntry(1, 5)], "has epochs whose offsets do not ascend"),
    ],
)
def test_a_history_of_leaders_that_cannot_be(folder: Path, epochs: list[EpochEntry], reason: str) -> None:
    write_epochs(folder / "leader-epoch-checkpoint", epochs)
    found, said = recover(folder, clean=True)
    assert said == [f"{folder / 'leader-epoch-checkpoint'} {reason}; the log goes on without its history of leaders"]
    assert found.epochs.entries == [EpochEntry(0, 0)]


def test_without_the_checkpoint_of_recovery_points_nothing_is_made_up(tmp_path: Path) -> None:
    life = Life(tmp_path)
    filled(life.topic(), 2)
    life.end()
    (tmp_path / RECOVERY_POINTS).unlink()
    again = Life(tmp_path)
    assert again.storage.findings == []
    assert again.log().append(batch(b"x"), NOW_MS).base_offset == 2
