"""Transactions in files: what was aborted stays aborted, and what was open stays open, whatever happens to the index."""

import errno
import os
import shutil
import struct
from pathlib import Path

import pytest

from groupcoord.broker.cleaner import clean, cleanable
from groupcoord.broker.partition_log import PartitionLog
from groupcoord.broker.producer_state_manager import AbortedTransaction
from groupcoord.broker.topic_config import LogConfig
from groupcoord.protocol.batches.record_batch import BatchError
from groupcoord.protocol.errors import ErrorCode
from groupcoord.storage import producer_snapshot
from groupcoord.storage.log_loader import LoadedLog, LogLoader
from tests.broker.data_plane import NOW_MS
from tests.storage.directory import KAFKA_FILES, Life, committed, end, transactional
from tests.storage.faults import failing

NAME = "transactions-0"
ABORTED = {
    11: [AbortedTransaction(4, 3, 12, 10), AbortedTransaction(4, 13, 16, 10), AbortedTransaction(6, 10, 17, 18)],
    31: [AbortedTransaction(5, 18, 37, 38)],
    52: [AbortedTransaction(4, 51, 52, 42)],
}
"""What Kafka has in its indexes, by the segment of the marker; producer 6 opened a transaction at offset 42."""
END = 59


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return shutil.copytree(KAFKA_FILES / NAME, tmp_path / NAME)


def recover(folder: Path, *, clean: bool = True, recovery_point: int = END) -> tuple[LoadedLog, list[str]]:
    said: list[str] = []
    recovery = LogLoader(
        folder,
        LogConfig(index_interval_bytes=300),
        clean=clean,
        recovery_point=recovery_point,
        log_start_offset=0,
        now_ms=NOW_MS,
        report=said.append,
    )
    return recovery.run(), said


def aborted(found: LoadedLog) -> dict[int, list[AbortedTransaction]]:
    return {segment.base_offset: list(segment.aborted) for segment in found.segments if segment.aborted}


def index(folder: Path, base_offset: int) -> Path:
    return folder / f"{base_offset:020d}.txnindex"


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("recovery_point", [0, 31, END])
def test_kafkas_transactions_are_known(folder: Path, clean: bool, recovery_point: int) -> None:
    found, said = recover(folder, clean=clean, recovery_point=recovery_point)
    assert aborted(found) == ABORTED
    assert found.producers.first_unstable_offset == 42
    assert {number: entry.coordinator_epoch for number, entry in found.producers.items()} == {4: 0, 5: 0, 6: 0}
    assert [text for text in said if "when the server ended" not in text] == []
    after = files(folder)
    assert {name: data for name, data in after.items() if data} == files(KAFKA_FILES / NAME)
    assert [name for name, data in after.items() if not data] == [
        index(folder, base_offset).name for base_offset in (0, 22, 42)
    ], "that nothing was aborted there need not be found out again"
    assert recover(folder, clean=clean)[1] == []
    assert files(folder) == after


def test_the_snapshots_are_kafkas(folder: Path) -> None:
    for path in sorted(folder.glob("*.snapshot")):
        assert producer_snapshot.encode(producer_snapshot.decode(path.read_bytes(), NAME)) == path.read_bytes()
    for path in folder.glob("*.snapshot"):
        path.unlink()
    found, _ = recover(folder, clean=False, recovery_point=0)
    assert producer_snapshot.encode(found.producers) == (KAFKA_FILES / NAME / f"{END:020d}.snapshot").read_bytes()


def patch(position: int, what: str, value: int) -> tuple[int, bytes]:
    return position, struct.pack(what, value)


DAMAGES = {
    "cut inside an entry": ("cut", 40, b""),
    "bytes behind": ("patch", 102, b"\0" * 5),
    "version": ("patch", *patch(34, ">h", 1)),
    "producer": ("patch", *patch(34 + 2, ">q", -1)),
    "negative first offset": ("patch", *patch(34 + 10, ">q", -1)),
    "first behind last": ("patch", *patch(34 + 10, ">q", 16)),
    "last before the segment": ("patch", *patch(18, ">q", 8)),
    "last behind the segment": ("patch", *patch(68 + 18, ">q", 31)),
    "not ascending": ("patch", *patch(34 + 18, ">q", 12)),
    "negative last stable offset": ("patch", *patch(34 + 26, ">q", -1)),
    "last stable offset behind the end": ("patch", *patch(34 + 26, ">q", 18)),
}


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("clean", [True, False])
def test_a_damaged_index_is_made_anew(folder: Path, damage: str, clean: bool) -> None:
    how, position, data = DAMAGES[damage]
    path = index(folder, 11)
    good = path.read_bytes()
    path.write_bytes(good[:position] + data + (b"" if how == "cut" else good[position + len(data) :]))
    found, said = recover(folder, clean=clean)
    assert aborted(found) == ABORTED
    assert path.read_bytes() == good
    if damage == "bytes behind" and not clean:
        assert said == [], "so a killed server leaves it, and no entry was touched"
    else:
        [text] = said
        assert text.startswith(f"{path} at byte {position // 34 * 34 if position < 102 else 102}: ")
        assert text.endswith("; it is made anew of what the log says")
    assert recover(folder, clean=clean)[1] == []


@pytest.mark.parametrize("harm", ["removed", "emptied", "first entry lost", "of another segment"])
@pytest.mark.parametrize("snapshots", [True, False])
def test_the_index_of_an_adopted_folder_is_compared_with_its_log(folder: Path, harm: str, snapshots: bool) -> None:
    if not snapshots:
        for each in folder.glob("*.snapshot"):
            each.unlink()
    harm_index(folder, harm)


@pytest.mark.parametrize("harm", ["removed", "of another segment"])
def test_a_lost_index_is_missed_later_on_too(folder: Path, harm: str) -> None:
    recover(folder)
    harm_index(folder, harm)


def harm_index(folder: Path, harm: str) -> None:
    """Do that to an index; the next start says so, and makes it what it was."""
    path = index(folder, 11)
    good = path.read_bytes()
    match harm:
        case "removed":
            path.unlink()
        case "emptied":
            path.write_bytes(b"")
        case "first entry lost":
            path.write_bytes(good[34:])
        case _:
            path.write_bytes(index(folder, 31).read_bytes())
    found, said = recover(folder)
    assert aborted(found) == ABORTED
    assert path.read_bytes() == good
    [text] = said
    assert str(path) in text
    assert recover(folder)[1] == []


@pytest.mark.parametrize("harm", ["removed", "torn", "last entry lost", "marker lost"])
def test_what_was_not_flushed_is_made_anew_without_a_word(folder: Path, harm: str) -> None:
    """A power cut may take any of it."""
    recover(folder)
    path = index(folder, 11)
    good = path.read_bytes()
    match harm:
        case "removed":
            path.unlink()
        case "torn":
            path.write_bytes(good[:-1])
        case "last entry lost":
            path.write_bytes(good[:-34])
        case _:
            for later in folder.iterdir():
                if later.name > f"{12:020d}" and later.name[0] == "0":
                    later.unlink()
            log = folder / f"{11:020d}.log"
            data = log.read_bytes()
            log.write_bytes(data[: data.index((17).to_bytes(8))])  # the last of the three markers
            for kind in (".index", ".timeindex"):
                log.with_suffix(kind).unlink()
            good = good[:-34]
    found, said = recover(folder, clean=False, recovery_point=11)
    assert path.read_bytes() == good
    assert said == []
    if harm == "marker lost":
        assert (found.log_end_offset, found.producers.first_unstable_offset) == (17, 10)


@pytest.mark.parametrize("at", [17, 75], ids=["checksum", "record"])
@pytest.mark.parametrize("base_offset", [11, 31])
def test_of_a_damaged_marker_the_index_says_what_it_was(folder: Path, at: int, base_offset: int) -> None:
    """Readers are told of the damage; that transaction does not stay open for ever."""
    path = folder / f"{base_offset:020d}.log"
    data = bytearray(path.read_bytes())
    offset = {11: 16, 31: 39}[base_offset]  # an abort and a commit
    begin = data.index(offset.to_bytes(8))
    data[begin + at] ^= 0xFF
    path.write_bytes(data)
    found, said = recover(folder)
    assert aborted(found) == ABORTED
    assert found.producers.first_unstable_offset == 42
    what = {11: "an abort", 31: "a commit"}[base_offset]
    [text] = said
    assert text.startswith(f"{path} at offset {offset}: the end of a transaction cannot be read: its checksum is not ")
    assert text.endswith(f"; it is taken for {what}, as {index(folder, base_offset).name} has it")


def test_a_transaction_that_began_before_the_log_does(folder: Path) -> None:
    """Of the one that ends at offset 37 the first batches are gone, and the snapshot too: what is in the index is right."""
    for path in folder.iterdir():
        if path.name[0] == "0" and (path.name < f"{31:020d}" or path.suffix == ".snapshot"):
            path.unlink()
    found, said = recover(folder)
    assert aborted(found) == {base_offset: entries for base_offset, entries in ABORTED.items() if base_offset >= 31}
    assert said == []


def test_a_snapshot_may_know_a_part_of_a_batch(folder: Path) -> None:
    recover(folder)
    (folder / f"{END:020d}.snapshot").rename(folder / f"{55:020d}.snapshot")
    found, said = recover(folder)
    assert (aborted(found), said) == (ABORTED, [])
    assert found.producers.first_unstable_offset == 42


# --- while a server runs


@pytest.fixture
def life(tmp_path: Path) -> Life:
    return Life(tmp_path / "data")


def put(log: PartitionLog, producer: int, sequence: int = 0, value: bytes = b"x" * 50) -> int:
    return log.append(transactional(producer, sequence, value, at_ms=NOW_MS), NOW_MS).base_offset


def test_an_aborted_transaction_is_in_the_index_of_the_segment_with_its_marker(life: Life) -> None:
    log = life.topic(internal_segment_bytes=300, index_interval_bytes=100)
    for producer in (7, 8):
        put(log, producer)
    end(log, 7, committed=False)
    for sequence in range(1, 5):
        put(log, 8, sequence)
    end(log, 8, committed=False)
    put(log, 7, 1)
    end(log, 7, committed=True)
    expected = [AbortedTransaction(7, 0, 2, 1), AbortedTransaction(8, 1, 7, 8)]
    assert log.segments.aborted_transactions(0, 10) == expected
    folder = life.directory / "orders-0"
    *complete, active = [index(folder, segment.base_offset).exists() for segment in log.segments]
    assert (all(complete), active) == (True, False), "an empty one says that there is none"
    assert committed(log) == {8: b"x" * 50}
    before = files(folder)
    for how in (Life.kill, Life.end):
        how(life)
        life = Life(life.directory)
        assert life.log().segments.aborted_transactions(0, 10) == expected
        assert life.storage.findings == []
    assert {name: data for name, data in files(folder).items() if name in before and ".log" in name} == {
        name: data for name, data in before.items() if ".log" in name
    }
    life.kill()


def test_the_index_goes_with_its_segment(life: Life) -> None:
    log = life.topic(internal_segment_bytes=300, retention_bytes=400)
    for sequence in range(8):
        put(log, 7, sequence)
        end(log, 7, committed=False)
    log.apply_retention(NOW_MS)
    folder = life.directory / "orders-0"
    assert log.segments[0].base_offset > 0
    assert sorted(int(path.name[:20]) for path in folder.glob("*.txnindex")) == [
        segment.base_offset for segment in log.segments if segment.aborted
    ]
    life.end()


@pytest.mark.parametrize("call", ["open", "pwrite"])
@pytest.mark.parametrize("indexed", [True, False])
def test_a_marker_that_could_not_be_written_whole_is_none(
    life: Life, monkeypatch: pytest.MonkeyPatch, call: str, indexed: bool
) -> None:
    log = life.topic()
    put(log, 7)
    if indexed:
        end(log, 7, committed=False)
        put(log, 7, 1)
    before = files(life.directory / "orders-0")
    with (
        failing(monkeypatch, call, code=errno.EMFILE, after=0 if call == "open" else 1),
        pytest.raises(BatchError) as refused,
    ):
        end(log, 7, committed=False)
    assert refused.value.error == ErrorCode.KAFKA_STORAGE_ERROR
    assert log.last_stable_offset == (2 if indexed else 0)
    after = files(life.directory / "orders-0")
    assert {name: data for name, data in after.items() if data or name in before} == before
    assert end(log, 7, committed=False) == log.log_end_offset - 1, "what was a shortage of descriptors passes"
    assert log.last_stable_offset == log.log_end_offset
    assert committed(log) == {}
    life.end()


def test_a_marker_that_could_not_be_flushed_is_none(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    log = life.topic(flush_messages=1)
    put(log, 7)
    before = files(life.directory / "orders-0")
    with failing(monkeypatch, "fsync", code=errno.EIO), pytest.raises(BatchError):
        end(log, 7, committed=False)
    assert (log.last_stable_offset, log.log_end_offset) == (0, 1)
    after = files(life.directory / "orders-0")
    assert {name: data for name, data in after.items() if data or name in before} == before
    life.kill()


def test_what_a_cleaning_leaves_has_its_index(life: Life) -> None:
    log = life.topic(cleanup_policy="compact", internal_segment_bytes=200)
    put(log, 7)
    end(log, 7, committed=False)
    put(log, 8)
    end(log, 8, committed=True)
    log.roll(NOW_MS)
    put(log, 8, 1)
    folder = life.directory / "orders-0"
    snapshots = sorted(folder.glob("*.snapshot"))
    clean(log, cleanable(log, NOW_MS), NOW_MS)
    assert [segment.base_offset for segment in log.segments] == [0, 2, 4]
    assert log.segments.aborted_transactions(0, 9) == [AbortedTransaction(7, 0, 1, 2)], (
        "the last batch of a producer stays"
    )
    assert not list(folder.glob("*.cleaned")) + list(folder.glob("*.swap"))
    assert set(folder.glob("*.snapshot")) <= set(snapshots)
    assert [index(folder, base_offset).stat().st_size for base_offset in (0, 2)] == [34, 0]
    life.end()
    life = Life(life.directory)
    assert life.storage.findings == []
    assert committed(life.log()) == {2: b"x" * 50}
    life.kill()


@pytest.mark.parametrize("code", [errno.EIO, errno.EMFILE])
def test_an_index_that_cannot_be_read_is_no_reason_to_compact_without_it(
    life: Life, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    log = life.topic(cleanup_policy="compact")
    put(log, 7)
    end(log, 7, committed=False)
    log.roll(NOW_MS)
    before = files(life.directory / "orders-0")
    with failing(monkeypatch, "open", code=code), pytest.raises(BatchError, match=os.strerror(code)):
        clean(log, cleanable(log, NOW_MS), NOW_MS)
    assert files(life.directory / "orders-0") == before
    assert (life.storage.failure is None) is (code == errno.EMFILE)
    life.kill()
