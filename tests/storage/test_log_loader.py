"""A partition's folder after an end that was none: nothing that was whole is lost, and what is not is told."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from groupcoord.broker.leader_epoch_cache import EpochEntry
from groupcoord.broker.partition_log import PartitionLog
from groupcoord.broker.topic_config import LogConfig
from groupcoord.protocol.batches.record_batch import read_header
from groupcoord.storage.file_io import StorageError
from groupcoord.storage.file_log_backend import FileLogBackend
from groupcoord.storage.log_dir_files import write_epochs
from groupcoord.storage.log_loader import LoadedLog, LogLoader
from tests.broker.data_plane import NOW_MS, batch, patched
from tests.storage.directory import KAFKA_FILES, Life, contents, filled

SIZE = len(batch(b"0" * 100))
SETTINGS = LogConfig(index_interval_bytes=300)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Thirty batches of one record in three segments, as a server leaves them that is killed."""
    life = Life(tmp_path)
    log = life.topic(index_interval_bytes=300, internal_segment_bytes=10 * SIZE)
    filled(log, 10, 10, size=50)
    filled(log, 20, 10, size=50)
    life.kill()
    return tmp_path / "orders-0"


def recover(
    folder: Path, *, clean: bool = False, recovery_point: int = 0, log_start_offset: int = 0
) -> tuple[LoadedLog, list[str]]:
    said: list[str] = []
    recovery = LogLoader(
        folder,
        SETTINGS,
        clean=clean,
        recovery_point=recovery_point,
        log_start_offset=log_start_offset,
        now_ms=NOW_MS,
        report=said.append,
    )
    return recovery.run(), said


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def logged(found: LoadedLog, folder: Path) -> PartitionLog:
    store = FileLogBackend(folder, host=None)  # type: ignore[arg-type]
    return PartitionLog.recovered(SETTINGS, folder.name, store.take_over(found))


def path_of(folder: Path, base_offset: int, kind: str = ".log") -> Path:
    return folder / f"{base_offset:020d}{kind}"


def test_what_is_in_order_stays_as_it_is(folder: Path) -> None:
    path_of(folder, 20, ".timeindex").write_bytes(b"")  # of the last segment, it gets its last entry now
    before = files(folder)
    found, said = recover(folder)
    assert [segment.base_offset for segment in found.segments] == [0, 10, 20]
    assert (found.log_start_offset, found.log_end_offset, found.recovery_point) == (0, 30, 0)
    assert said == []
    after = files(folder)
    assert after[path_of(folder, 20, ".timeindex").name]
    assert {**after, path_of(folder, 20, ".timeindex").name: b""} == before
    assert len(contents(logged(found, folder))) == 30


def test_kafkas_folder(tmp_path: Path) -> None:
    shutil.copytree(KAFKA_FILES / "recorded-0", tmp_path / "recorded-0")
    for clean in (True, False):
        found, said = recover(tmp_path / "recorded-0", clean=clean)
        assert said == []
        assert (found.log_end_offset, found.recovery_point) == (45, 45 if clean else 0)
        assert sorted(number for number, _ in found.producers.items()) == [0, 1]
        assert files(tmp_path / "recorded-0") == files(KAFKA_FILES / "recorded-0")


@pytest.mark.parametrize("missing", range(1, SIZE + 1, 7))
def test_a_torn_tail_is_cut_off(folder: Path, missing: int) -> None:
    last = path_of(folder, 20)
    last.write_bytes(last.read_bytes()[:-missing])
    found, said = recover(folder)
    assert found.log_end_offset == 29
    assert [offset for offset, _ in contents(logged(found, folder))] == list(range(29))
    if missing < SIZE:
        [text] = said
        assert text.startswith(
            f"{last} is cut off at byte {9 * SIZE}, before offset 29: {SIZE - missing} bytes of a batch"
        )
    assert last.stat().st_size == 9 * SIZE
    assert not list(folder.glob("*.cut"))
    again, said = recover(folder)
    assert (again.log_end_offset, said) == (29, [])


def test_a_corrupt_batch_in_the_middle_is_told_and_nothing_is_thrown_away(folder: Path) -> None:
    middle = path_of(folder, 10)
    good = middle.read_bytes()
    bad = bytearray(good)
    bad[4 * SIZE + 70] ^= 1
    middle.write_bytes(bad)
    found, said = recover(folder)
    assert found.log_end_offset == 14
    assert [segment.base_offset for segment in found.segments] == [0, 10]
    assert (
        f"{middle} is cut off at byte {4 * SIZE}, before offset 14: the checksum of the batch with offset 14" in said[0]
    )
    assert f"The {6 * SIZE} bytes from there on are kept in {middle.name}.{4 * SIZE}.cut" in said[0]
    assert said[1:] == [
        f"{path_of(folder, 20)} lies behind what was cut off, and is {path_of(folder, 20).name}.0.cut now"
    ]
    assert (folder / f"{middle.name}.{4 * SIZE}.cut").read_bytes() == bytes(bad)[4 * SIZE :]
    assert middle.read_bytes() == good[: 4 * SIZE]
    assert not path_of(folder, 20, ".index").exists()
    assert recover(folder)[1] == []


def test_what_is_not_looked_at(folder: Path) -> None:
    """Before the recovery point everything was flushed, and after a clean shutdown everything was."""
    bad = bytearray(path_of(folder, 0).read_bytes())
    bad[-1] ^= 1
    path_of(folder, 0).write_bytes(bad)
    found, said = recover(folder, recovery_point=10)
    assert (found.log_end_offset, said) == (30, [])
    found, said = recover(folder, clean=True)
    assert (found.log_end_offset, said) == (30, [])
    found, _ = recover(folder, recovery_point=9)
    assert found.log_end_offset == 9


@pytest.mark.parametrize("kind", [".index", ".timeindex"])
@pytest.mark.parametrize("harm", ["missing", "nonsense"])
@pytest.mark.parametrize("clean", [True, False])
def test_indexes_are_made_anew(folder: Path, kind: str, harm: str, clean: bool) -> None:
    found, _ = recover(folder)  # the last segment has its last entry now
    before = files(folder)
    for base_offset in (0, 10, 20):
        if harm == "missing":
            path_of(folder, base_offset, kind).unlink()
        else:
            path_of(folder, base_offset, kind).write_bytes(b"\xff" * 24)
    found, said = recover(folder, clean=clean, recovery_point=30 if clean else 10)
    assert files(folder) == before
    assert len(contents(logged(found, folder))) == 30
    assert len(said) == (3 if clean else 1)
    assert said[0] == f"{path_of(folder, 0)}: its indexes are missing or wrong, and are made anew"


def test_a_flushed_segment_that_turns_out_to_be_corrupt_leaves_a_gap(folder: Path) -> None:
    path_of(folder, 0, ".index").unlink()
    bad = bytearray(path_of(folder, 0).read_bytes())
    bad[8 * SIZE + 100] ^= 1
    path_of(folder, 0).write_bytes(bad)
    found, said = recover(folder, recovery_point=20)
    assert [offset for offset, _ in contents(logged(found, folder))] == [*range(8), *range(10, 30)]
    assert "its indexes are missing" in said[0]
    assert "is cut off at byte" in said[1]


def test_a_torn_segment_with_others_behind_it_is_kept_beside(folder: Path) -> None:
    middle = path_of(folder, 10)
    middle.write_bytes(middle.read_bytes()[:-5])
    found, said = recover(folder)
    assert found.log_end_offset == 19
    assert "was not completely written. The" in said[0]
    assert (folder / f"{middle.name}.{9 * SIZE}.cut").stat().st_size == SIZE - 5


def test_old_formats_stop_the_start_and_nothing_is_changed(folder: Path) -> None:
    old = patched(batch(b"a"), magic=1, right_checksum=False)
    path_of(folder, 20).write_bytes(old)
    with pytest.raises(StorageError, match=r"message format 1, .* Nothing was changed; move the folder .* away"):
        recover(folder)
    assert path_of(folder, 20).read_bytes() == old


def test_an_empty_folder_and_one_whose_records_are_all_deleted(folder: Path) -> None:
    found, said = recover(folder, log_start_offset=40)
    assert said == [
        f"{folder}: the log ends at offset 30, before the offset 40 up to which its records were deleted; it goes on there"
    ]
    assert (found.log_start_offset, found.log_end_offset) == (40, 40)
    assert [path.name for path in folder.glob("*.log")] == [path_of(folder, 40).name]
    path_of(folder, 40).unlink()
    found, said = recover(folder, log_start_offset=40)
    assert (found.log_end_offset, [segment.base_offset for segment in found.segments]) == (40, [40])
    assert said == [
        f"{path_of(folder, 40, kind)}: there is no log file to this index, so that it goes"
        for kind in (".index", ".timeindex")
    ]


def test_deleted_records_stay_deleted(folder: Path) -> None:
    found, _ = recover(folder, log_start_offset=13)
    assert [offset for offset, _ in contents(logged(found, folder))] == list(range(13, 30))


# --- changes that were under way


def test_deleting_goes_on(folder: Path) -> None:
    for kind in (".log", ".index", ".timeindex"):
        path_of(folder, 0, kind).rename(path_of(folder, 0, kind + ".deleted"))
    found, said = recover(folder)
    assert [segment.base_offset for segment in found.segments] == [10, 20]
    assert (found.log_start_offset, said) == (10, [])
    assert not list(folder.glob("*.deleted"))


def test_cleaning_that_had_not_come_far_is_undone(folder: Path) -> None:
    before = recover(folder)[0] and files(folder)
    for kind in (".log", ".index", ".timeindex"):
        shutil.copy(path_of(folder, 10, kind), path_of(folder, 10, kind + ".swap"))
        shutil.copy(path_of(folder, 0, kind), path_of(folder, 0, kind + ".cleaned"))
    assert recover(folder)[1] == []
    assert files(folder) == before


@pytest.mark.parametrize("progress", ["nothing deleted", "old log deleted", "log renamed"])
def test_cleaning_that_had_come_far_is_finished(folder: Path, progress: str) -> None:
    """The two old segments were cleaned into one, which has every other record."""
    data = path_of(folder, 0).read_bytes() + path_of(folder, 10).read_bytes()
    kept = b"".join(data[index * SIZE : (index + 1) * SIZE] for index in range(1, 20, 2))
    for kind in (".log", ".index", ".timeindex"):
        path_of(folder, 0, kind + ".swap").write_bytes(kept if kind == ".log" else b"")
    if progress != "nothing deleted":
        path_of(folder, 0).unlink()
    if progress == "log renamed":
        for kind in (".index", ".timeindex"):
            path_of(folder, 0, kind).unlink()
        for kind in (".log", ".index", ".timeindex"):
            path_of(folder, 10, kind).unlink()
        path_of(folder, 0, ".log.swap").rename(path_of(folder, 0))
    found, _ = recover(folder)
    assert [segment.base_offset for segment in found.segments] == [0, 20]
    assert [offset for offset, _ in contents(logged(found, folder))] == [*range(1, 20, 2), *range(20, 30)]
    assert not list(folder.glob("*.swap"))


# --- what the log knows


def with_producer(tmp_path: Path, *, end: Callable[[Life], None]) -> Path:
    life = Life(tmp_path)
    log = life.topic(internal_segment_bytes=4 * SIZE)
    for number in range(10):
        log.append(batch(b"0" * 100, producer_id=7, producer_epoch=1, base_sequence=number), NOW_MS)
    end(life)
    return tmp_path / "orders-0"


@pytest.mark.parametrize("end", [Life.end, Life.kill])
@pytest.mark.parametrize("harm", ["none", "last snapshot", "all snapshots", "no snapshots"])
def test_producers_are_known_again(tmp_path: Path, end: Callable[[Life], None], harm: str) -> None:
    folder = with_producer(tmp_path, end=end)
    snapshots = sorted(folder.glob("*.snapshot"))
    assert [int(path.name[:20]) for path in snapshots] == ([4, 8, 10] if end is Life.end else [4, 8])
    harmed = {"none": [], "last snapshot": snapshots[-1:]}.get(harm, snapshots)
    for path in harmed:
        if harm == "no snapshots":
            path.unlink()
        else:
            path.write_bytes(path.read_bytes()[:-1])
    found, said = recover(folder, clean=end is Life.end)
    entry = found.producers[7]
    assert (entry.epoch, entry.batches[-1].last_sequence, entry.batches[-1].last_offset) == (1, 9, 9)
    assert said == [f"{path} is of no use: it is cut off" for path in reversed(harmed) if harm != "no snapshots"]


@pytest.mark.parametrize("clean", [True, False])
def test_producers_are_forgotten_with_the_last_record(tmp_path: Path, clean: bool) -> None:
    folder = with_producer(tmp_path, end=Life.end if clean else Life.kill)
    found, said = recover(folder, clean=clean, log_start_offset=10)
    assert (found.log_start_offset, found.log_end_offset, len(found.producers)) == (10, 10, 0)
    assert list(folder.glob("*.snapshot")) == []
    assert said == []


def test_snapshots_that_belong_to_nothing_go(tmp_path: Path) -> None:
    folder = with_producer(tmp_path, end=Life.end)
    for offset in (3, 11):
        shutil.copy(path_of(folder, 8, ".snapshot"), path_of(folder, offset, ".snapshot"))
    found, said = recover(folder, clean=True)
    assert sorted(int(path.name[:20]) for path in folder.glob("*.snapshot")) == [4, 8, 10]
    assert found.producers[7].batches[-1].last_offset == 9
    assert said == []


def test_markers_of_transactions_are_no_batches_of_a_producer(tmp_path: Path) -> None:
    life = Life(tmp_path)
    log = life.topic()
    log.append(batch(b"a"), NOW_MS)
    life.kill()
    path = path_of(tmp_path / "orders-0", 0)
    path.write_bytes(
        path.read_bytes() + patched(batch(b"a", producer_id=3, producer_epoch=0), attributes=0x30, base_offset=1)
    )
    found, _ = recover(tmp_path / "orders-0")
    assert (found.log_end_offset, len(found.producers)) == (2, 0)


def test_a_history_of_leaders_goes_on(folder: Path) -> None:
    path = path_of(folder, 20)
    data = path.read_bytes()
    later = b"".join(
        patched(data[at : at + SIZE], leader_epoch=4, right_checksum=False) for at in range(0, len(data), SIZE)
    )
    path.write_bytes(later)
    write_epochs(folder / "leader-epoch-checkpoint", [EpochEntry(0, 0), EpochEntry(3, 10), EpochEntry(9, 30)])
    found, _ = recover(folder)
    assert found.epochs.entries == [EpochEntry(0, 0), EpochEntry(3, 10)]
    write_epochs(folder / "leader-epoch-checkpoint", [EpochEntry(0, 0), EpochEntry(3, 10)])
    found, _ = recover(folder)
    assert found.epochs.entries == [EpochEntry(0, 0), EpochEntry(3, 10), EpochEntry(4, 20)]
    assert (folder / "leader-epoch-checkpoint").read_text() == "0\n3\n0 0\n3 10\n4 20\n"
    log = logged(found, folder)
    assert log.leader_epoch == 4
    log_header = read_header(log.read(20, 100, at_least_one=True).data())
    assert log_header.leader_epoch == 4
    (folder / "leader-epoch-checkpoint").write_text("x")
    found, said = recover(folder)
    assert found.epochs.entries == [EpochEntry(0, 0), EpochEntry(4, 20)]
    assert "the log goes on without its history of leaders" in said[0]
