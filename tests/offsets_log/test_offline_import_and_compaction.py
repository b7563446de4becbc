"""A data directory made of what a real cluster has left, and served; and compacted where it lies."""

import shutil
import uuid
from pathlib import Path

import pytest

from groupcoord.broker.events import LogCleaned, LogNotCleaned
from groupcoord.cluster.cluster_core import ClusterCore
from groupcoord.config.broker_config import BrokerConfig
from groupcoord.core.effects import Call, Reply
from groupcoord.offsets_log.log_source import SourceError
from groupcoord.offsets_log.offline_import_and_compaction import ImportResult, compact, import_segments
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.apis.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from groupcoord.protocol.batches.record_batch import build_batch, read_header
from groupcoord.protocol.batches.records import Record
from groupcoord.server.clock_and_random_ids import SystemRandomSource
from groupcoord.storage.file_io import StorageError
from groupcoord.storage.file_storage_backend import DataDirectory
from tests.broker.data_plane import patched
from tests.offsets_log.recorded import COMMITTED, KAFKA_FILES, VERSIONS, Committed, log_of, positions

NOW_MS = 1_795_287_200_000  # soon after the recording
THREE = BrokerConfig.of({"offsets.topic.num.partitions": 3})
NAME = "00000000000000000000.log"


def imported(folders: Path, directory: Path, config: BrokerConfig = THREE) -> ImportResult:
    return import_segments(folders, directory, config, new_uuid=uuid.uuid4, now_ms=NOW_MS)


def served(directory: Path, groups: Committed, config: BrokerConfig = THREE) -> Committed:
    """What a server that is started on ``directory`` tells of the groups."""
    storage = DataDirectory(directory, config, new_uuid=uuid.uuid4, now_ms=NOW_MS)
    node = ClusterCore(storage.config, random=SystemRandomSource(), now_ms=NOW_MS, storage=storage)
    while node.next_deadline() == 0:
        node.expire(NOW_MS)
    topics = (OffsetFetchRequestTopics(name="orders", partition_indexes=(0, 1)),)
    request = OffsetFetchRequest(
        groups=tuple(OffsetFetchRequestGroup(group_id=group, topics=topics) for group in groups)
    )
    call = Call(1, 1, APIS[ApiKey.OFFSET_FETCH], 9, "test", "/127.0.0.1")
    (reply,) = [effect for effect in node.handle(call, request, NOW_MS) if isinstance(effect, Reply)]
    storage.close()
    return {
        group.group_id: {
            partition.partition_index: partition.committed_offset
            for partition in group.topics[0].partitions
            if partition.committed_offset >= 0
        }
        for group in reply.response.groups
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_exactly_the_offsets_of_the_cluster_are_served(version: str, tmp_path: Path) -> None:
    done = imported(KAFKA_FILES / version, tmp_path / "data")
    assert (done.partitions, done.faults) == ([0, 1, 2], [])
    for path in (KAFKA_FILES / version).rglob("*.txnindex"):
        assert (tmp_path / "data" / path.parent.name / path.name).read_bytes() == path.read_bytes()
    assert done.groups == len(COMMITTED[version]) + 1, "one was deleted"
    assert done.findings == [
        f"topic __consumer_offsets was found in {tmp_path / 'data'}, and has the broker's defaults now"
    ]
    assert served(tmp_path / "data", COMMITTED[version]) == COMMITTED[version]
    for number in range(3):
        copy = tmp_path / "data" / f"__consumer_offsets-{number}"
        assert (copy / NAME).read_bytes() == log_of(version, number).read_bytes()
        assert (copy / "partition.metadata").is_file()


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_compacted_it_serves_the_same(version: str, tmp_path: Path) -> None:
    imported(KAFKA_FILES / version, tmp_path)
    done = compacted(tmp_path)
    assert all(isinstance(event, LogCleaned) and event.records_kept < event.records_read for event in done)
    assert len(done) == sum(log_of(version, number).stat().st_size > 0 for number in range(3))
    assert served(tmp_path, COMMITTED[version]) == COMMITTED[version]
    assert compacted(tmp_path) == [], "there is nothing left to do"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_copy_of_the_folders_is_served_without_an_import(version: str, tmp_path: Path) -> None:
    for folder in (KAFKA_FILES / version).glob("__consumer_offsets-*"):
        shutil.copytree(folder, tmp_path / folder.name)
    assert served(tmp_path, COMMITTED[version]) == COMMITTED[version]


def test_a_server_that_is_told_another_number_keeps_to_that_of_the_topic(tmp_path: Path) -> None:
    imported(KAFKA_FILES / "4.3.1", tmp_path)
    assert served(tmp_path, COMMITTED["4.3.1"], BrokerConfig.of({})) == COMMITTED["4.3.1"]


def test_some_partitions_are_enough(tmp_path: Path) -> None:
    done = imported(KAFKA_FILES / "4.3.1" / "__consumer_offsets-1", tmp_path)
    assert done.partitions == [1]
    groups = {name: offsets for name, offsets in COMMITTED["4.3.1"].items() if name in {"billing", "shipping", "audit"}}
    assert served(tmp_path, COMMITTED["4.3.1"]) == {name: groups.get(name, {}) for name in COMMITTED["4.3.1"]}


def test_a_torn_end_is_told_and_cut_off(tmp_path: Path) -> None:
    folders = Path(shutil.copytree(KAFKA_FILES / "4.3.1", tmp_path / "copied"))
    path = folders / "__consumer_offsets-2" / NAME
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    done = imported(folders, tmp_path / "data")
    _, offset = positions(data)[-1]
    assert [(fault.partition, fault.offset) for fault in done.faults] == [(2, offset)]
    assert any("is cut off at byte" in finding for finding in done.findings)
    assert served(tmp_path / "data", COMMITTED["4.3.1"]) == COMMITTED["4.3.1"]


def test_a_record_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "__consumer_offsets-0"
    folder.mkdir()
    (folder / NAME).write_bytes(build_batch([Record(0, 1, b"\x00\x63", None)]))
    done = imported(folder, tmp_path / "data")
    assert [fault.offset for fault in done.faults] == [0]
    assert (done.records, done.groups) == (0, 0)


def compacted(directory: Path) -> list[LogCleaned | LogNotCleaned]:
    return compact(directory, THREE, new_uuid=uuid.uuid4, now_ms=NOW_MS, report=pytest.fail)


def refused(folders: Path, directory: Path, config: BrokerConfig = THREE) -> str:
    before = sorted(directory.rglob("*")) if directory.exists() else None
    with pytest.raises(SourceError) as problem:
        imported(folders, directory, config)
    assert (sorted(directory.rglob("*")) if directory.exists() else None) == before, "nothing is left behind"
    return str(problem.value)


def test_another_number_of_partitions_is_refused(tmp_path: Path) -> None:
    told = refused(KAFKA_FILES / "4.3.1", tmp_path / "data", BrokerConfig.of({}))
    assert told == (
        "the folders are not of a cluster with offsets.topic.num.partitions=50: group 'audit' is in partition 1, and "
        "belongs in 5; the cluster may have 3: then set offsets.topic.num.partitions=3"
    )
    two = BrokerConfig.of({"offsets.topic.num.partitions": 2})
    empty = tmp_path / "__consumer_offsets-2"
    empty.mkdir()
    (empty / NAME).write_bytes(b"")
    assert "there is a partition 2; the cluster may have 3" in refused(empty, tmp_path / "data", two)
    shutil.copytree(KAFKA_FILES / "4.3.1" / "__consumer_offsets-1", tmp_path / "__consumer_offsets-1999")
    told = refused(tmp_path / "__consumer_offsets-1999", tmp_path / "data")
    assert told.endswith("the folders fit no number of partitions: are they all of one cluster?")


def test_only_an_empty_directory_is_made_one(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("mine")
    assert refused(KAFKA_FILES / "4.3.1", tmp_path) == f"{tmp_path} is not empty: import into a directory of its own"
    assert "cannot use" in refused(KAFKA_FILES / "4.3.1", tmp_path / "notes")


def test_a_directory_in_use_is_left_alone(tmp_path: Path) -> None:
    storage = DataDirectory(tmp_path, THREE, new_uuid=uuid.uuid4, now_ms=NOW_MS)
    assert "is in use: another server" in refused(KAFKA_FILES / "4.3.1", tmp_path)
    with pytest.raises(StorageError, match="is in use: another server"):
        compacted(tmp_path)
    storage.close()


def test_what_fails_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", str(tmp_path / "data"))

    monkeypatch.setattr(shutil, "copyfile", full)
    told = f"cannot use {tmp_path / 'data'}: No space left on device"
    assert refused(KAFKA_FILES / "4.3.1", tmp_path / "data") == told
    (tmp_path / "data").mkdir()
    assert refused(KAFKA_FILES / "4.3.1", tmp_path / "data") == told


def test_a_disk_that_fails_in_the_end_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(storage: DataDirectory) -> None:
        storage.failure = "the disk has failed"

    real = DataDirectory.close

    def close(storage: DataDirectory) -> None:
        real(storage)
        fail(storage)

    monkeypatch.setattr(DataDirectory, "close", close)
    with pytest.raises(SourceError, match="the disk has failed"):
        imported(KAFKA_FILES / "4.3.1", tmp_path / "data")


def test_only_a_data_directory_is_compacted(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="is not a data directory of groupcoord: it has no groupcoord-metadata"):
        compacted(tmp_path)
    DataDirectory(tmp_path, THREE, new_uuid=uuid.uuid4, now_ms=NOW_MS).close()
    assert compacted(tmp_path) == [], "nothing is in it"


def test_a_log_that_cannot_be_compacted_is_told(tmp_path: Path) -> None:
    imported(KAFKA_FILES / "4.3.1", tmp_path)
    path = tmp_path / "__consumer_offsets-1" / NAME
    data = path.read_bytes()
    size = read_header(data).size
    path.write_bytes(patched(data[:size], attributes=7) + data[size:])  # a compression that there is not
    done = compacted(tmp_path)
    assert [type(event) for event in done] == [LogCleaned, LogNotCleaned, LogCleaned]


@pytest.mark.slow
def test_what_is_wrong_with_a_directory_is_told_before_it_is_compacted(tmp_path: Path) -> None:
    imported(KAFKA_FILES / "4.3.1", tmp_path)
    path = tmp_path / "__consumer_offsets-1" / NAME
    path.write_bytes(path.read_bytes()[:-1])
    said: list[str] = []
    compact(tmp_path, THREE, new_uuid=uuid.uuid4, now_ms=NOW_MS, report=said.append)
    assert said[0].startswith(f"{path} is cut off at byte ")
