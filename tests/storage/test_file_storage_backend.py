"""A data directory over several lives: what was there is there again, and one that fails says so."""

import errno
import json
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

import groupcoord as gc
from groupcoord.broker.leader_epoch_cache import EpochEntry
from groupcoord.broker.storage_backend import LogDirectory
from groupcoord.config.broker_config import BrokerConfig, ConfigResource
from groupcoord.core.api_error import ApiError
from groupcoord.protocol.batches.record_batch import BatchError
from groupcoord.protocol.errors import ErrorCode
from groupcoord.storage import broker_logs
from groupcoord.storage.file_io import StorageError
from groupcoord.storage.file_storage_backend import DataDirectory
from tests.broker.data_plane import NOW_MS, batch
from tests.storage.directory import Life, contents, filled
from tests.storage.faults import failing


@pytest.mark.parametrize("end", [Life.end, Life.kill])
def test_everything_is_there_again(tmp_path: Path, end: object) -> None:
    """Deviation (after-a-kill)."""
    life = Life(tmp_path)
    filled(life.topic("orders", 2, retention_ms=-1, internal_segment_bytes=400), 9, size=50)
    filled(life.log("orders", 1), 2)
    filled(life.topic("z"), 1)
    life.topic("a")
    life.log("orders").append(batch(b"x", producer_id=5, producer_epoch=0, base_sequence=0), NOW_MS)
    life.log("orders").delete_records(2)
    assert [life.broker.new_producer_id() for _ in range(2)] == [0, 1]
    topics = life.broker.topics
    topics_before = [(one.name, one.topic_id, one.metadata.configs, one.metadata.created_ms) for one in topics]
    logs_before = [
        (contents(log), log.log_start_offset, log.log_end_offset) for one in topics for log in one.partitions
    ]
    (Life.end if end is Life.end else Life.kill)(life)

    again = Life(tmp_path)
    topics = again.broker.topics
    assert [(one.name, one.topic_id, one.metadata.configs, one.metadata.created_ms) for one in topics] == topics_before
    assert [
        (contents(log), log.log_start_offset, log.log_end_offset) for one in topics for log in one.partitions
    ] == logs_before
    assert again.storage.findings == []
    assert again.broker.new_producer_id() == 1000
    repeated = again.log("orders").append(batch(b"x", producer_id=5, producer_epoch=0, base_sequence=0), NOW_MS)
    assert repeated.duplicate
    filled(again.log("orders"), 3)
    assert again.log("orders").segments[-1].size > 0


@pytest.mark.parametrize("end", [Life.end, Life.kill])
def test_each_start_is_two_leader_epochs_later(tmp_path: Path, end: Callable[[Life], None]) -> None:
    life = Life(tmp_path)
    life.topic(partitions=2)
    for epoch in (0, 2, 4, 6):
        log, idle = life.log(), life.log(partition=1)
        assert (log.leader_epoch, idle.leader_epoch) == (epoch, epoch)
        assert [state.leader_epoch for state in life.broker.topics["orders"].metadata.partitions] == [epoch, epoch]
        if epoch != 4:
            filled(log, 1)
        end(life)
        life = Life(tmp_path)
    assert life.log().epochs.entries == [
        EpochEntry(epoch, offset) for epoch, offset in ((0, 0), (2, 1), (6, 2), (8, 3))
    ]
    assert life.log(partition=1).epochs.entries == [EpochEntry(8, 0)]
    assert [life.log().epochs.of_offset(offset) for offset in range(3)] == [0, 2, 6]


def test_leader_epochs_go_on_though_a_power_failure_took_what_logs_knew_of_them(tmp_path: Path) -> None:
    life = Life(tmp_path)
    life.topic(partitions=2)
    for _ in range(3):
        life.kill()
        life = Life(tmp_path)
    life.kill()
    for file in tmp_path.glob("orders-*/leader-epoch-checkpoint"):
        file.unlink()
    assert [log.leader_epoch for log in Life(tmp_path).broker.topics["orders"].partitions] == [8, 8]


def test_a_broker_that_begins_with_logs_looks_after_them(tmp_path: Path) -> None:
    life = Life(tmp_path)
    life.topic().append(batch(b"x", producer_id=5, producer_epoch=0, base_sequence=0), NOW_MS)
    life.end()
    kinds = {deadline.key.kind for deadline in Life(tmp_path).broker.timers.pending()}
    assert kinds == {"retention", "expiration", "checkpoint"}


def test_topics_are_changed_and_deleted(tmp_path: Path) -> None:
    life = Life(tmp_path)
    life.topic("orders", 1)
    life.topic("gone", 2)
    topic = life.broker.topics.get("orders")
    assert topic is not None
    topic.add_partitions(2)
    topic.configure({"retention.ms": "7"}, life.storage.config)
    filled(life.log("orders", 2), 1)
    filled(life.log("gone", 1), 1)
    life.broker.topics.delete("gone")
    assert not list(tmp_path.glob("gone*"))
    life.kill()
    again = Life(tmp_path).broker.topics
    assert [(one.name, len(one.partitions), one.metadata.configs) for one in again] == [
        ("orders", 3, {"retention.ms": "7"})
    ]


def test_a_topic_may_come_again_under_its_name(tmp_path: Path) -> None:
    life = Life(tmp_path)
    filled(life.topic(), 3)
    life.broker.topics.delete("orders")
    filled(life.topic(), 1)
    life.kill()
    assert contents(Life(tmp_path).log()) == [(0, b"0")]


def test_a_topic_has_nothing_of_an_earlier_one_of_its_name(tmp_path: Path) -> None:
    """Where that one's records began does not say where the records of this one do."""
    life = Life(tmp_path)
    filled(life.topic(), 5)
    life.log().delete_records(4)
    life.storage.checkpoint()
    life.broker.topics.delete("orders")
    filled(life.topic(), 2)
    life.kill()
    again = Life(tmp_path)
    assert contents(again.log()) == [(0, b"0"), (1, b"1")]
    assert again.storage.findings == []


def test_a_partition_has_nothing_of_an_earlier_one_of_its_name_in_another_life(tmp_path: Path) -> None:
    life = Life(tmp_path)
    filled(life.topic("orders", 2), 5)
    filled(life.log("orders", 1), 5)
    life.log("orders", 1).delete_records(4)
    life.broker.topics.delete("orders")
    life.kill()
    again = Life(tmp_path)
    again.topic("orders", 1)
    again.kill()
    third = Life(tmp_path)
    topic = third.broker.topics.get("orders")
    assert topic is not None
    topic.add_partitions(1)
    filled(third.log("orders", 1), 1)
    third.kill()
    assert contents(Life(tmp_path).log("orders", 1)) == [(0, b"0")]


def test_a_topic_costs_two_flushes_however_many_partitions_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    life = Life(tmp_path)
    with failing(monkeypatch, "fsync", after=2):
        life.topic("orders", 50)
    assert life.storage.failure is None


def test_a_topic_that_is_deleted_does_not_come_again_after_a_power_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its folders have other names on the disk before anybody is answered."""
    life = Life(tmp_path)
    filled(life.topic("orders", 3), 1)
    synced: list[list[str]] = []
    monkeypatch.setattr(
        broker_logs, "sync", lambda path: synced.append([one.name[-7:] for one in path.glob("orders*")])
    )
    life.broker.topics.delete("orders")
    assert synced == [["-delete"] * 3]
    assert list(tmp_path.glob("orders*")) == []


def test_a_clean_end_leaves_what_kafka_leaves(tmp_path: Path) -> None:
    life = Life(tmp_path)
    filled(life.topic(), 3)
    life.log().delete_records(1)
    life.end()
    assert json.loads((tmp_path / ".kafka_cleanshutdown").read_text()) == {"version": 0, "brokerEpoch": -1}
    assert (tmp_path / "recovery-point-offset-checkpoint").read_text() == "0\n1\norders 0 3\n"
    assert (tmp_path / "replication-offset-checkpoint").read_text() == "0\n1\norders 0 3\n"
    assert (tmp_path / "log-start-offset-checkpoint").read_text() == "0\n1\norders 0 1\n"
    assert sorted(path.name for path in (tmp_path / "orders-0").iterdir()) == [
        *("00000000000000000000.index", "00000000000000000000.log", "00000000000000000000.timeindex"),
        "00000000000000000003.snapshot",
        *("leader-epoch-checkpoint", "partition.metadata"),
    ]
    again = Life(tmp_path)
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    again.kill()


def test_a_checkpoint_now_and_then(tmp_path: Path) -> None:
    life = Life(tmp_path)
    log = life.topic(flush_messages=1)
    filled(log, 3)
    life.broker._log_manager.appended(log, NOW_MS)
    assert life.broker.next_deadline() is not None
    life.broker.expire(NOW_MS + 60_000)
    assert (tmp_path / "recovery-point-offset-checkpoint").read_text() == "0\n1\norders 0 3\n"
    life.kill()


def test_the_directory_is_told_with_the_size_of_its_volume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    life = Life(tmp_path)
    told = life.storage.log_directory(1)
    assert told.path == str(tmp_path)
    assert 0 <= told.usable_bytes <= told.total_bytes

    def fails(_: str) -> None:
        raise OSError(errno.EIO, "the disk is gone")

    monkeypatch.setattr(shutil, "disk_usage", fails)
    assert life.storage.log_directory(1) == LogDirectory(str(tmp_path), -1, -1)
    life.kill()


def test_the_memory_is_not_bounded_by_what_is_in_files(tmp_path: Path) -> None:
    life = Life(tmp_path)
    assert life.topic().settings.memory_bytes == -1
    topic = life.broker.topics.get("orders")
    assert topic is not None
    topic.configure({"retention.ms": "7"}, life.storage.config)
    assert topic.settings.memory_bytes == -1
    life.kill()


# --- what cannot be


def test_two_servers(tmp_path: Path) -> None:
    life = Life(tmp_path)
    with pytest.raises(StorageError, match=f"{tmp_path} is in use: another server"):
        Life(tmp_path)
    life.end()
    Life(tmp_path).end()


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES])
def test_a_directory_that_may_not_be_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    with failing(monkeypatch, "open", code=code), pytest.raises(StorageError) as caught:
        Life(tmp_path)
    assert str(caught.value).startswith(f"cannot use the data directory {tmp_path}: ")
    assert str(caught.value).endswith({errno.EROFS: "Read-only file system", errno.EACCES: "Permission denied"}[code])
    Life(tmp_path).end()


def test_a_directory_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match=rf"cannot use the data directory .*/a: Not a directory: {tmp_path}/file/a"):
        Life(tmp_path / "file" / "a")


def test_a_full_disk_refuses_whatever_is_to_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    life = Life(tmp_path)
    log = life.topic()
    topic = life.broker.topics.get("orders")
    assert topic is not None
    with failing(monkeypatch, "pwrite"):
        with pytest.raises(ApiError, match="No space left on device") as caught:
            life.topic("more")
        assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    for change in (
        lambda: topic.add_partitions(1),
        lambda: topic.configure({"retention.ms": "7"}, life.storage.config),
        lambda: life.broker.topics.delete("orders"),
    ):
        with pytest.raises(ApiError, match="No space left on device"):
            change()
    with pytest.raises(BatchError, match="No space left on device"):
        life.broker.new_producer_id()
    with pytest.raises(BatchError, match="No space left on device"):
        life.storage.resource_configured(ConfigResource(32, "app"), {})
    with pytest.raises(BatchError, match="No space left on device"):
        log.backend.replaced(log, [], [])
    assert (len(topic.partitions), topic.metadata.configs) == (1, {})
    life.storage.close()
    assert [one.name for one in Life(tmp_path).broker.topics] == ["orders"]


def test_deleted_records_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    life = Life(tmp_path)
    filled(life.topic(), 3)
    with failing(monkeypatch, "fsync"), pytest.raises(BatchError, match="No space left on device"):
        life.log().delete_records(2)
    assert life.storage.failure is not None
    assert life.log().log_start_offset == 0
    life.kill()
    assert len(contents(Life(tmp_path).log())) == 3


def test_an_end_that_fails_is_not_a_clean_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    life = Life(tmp_path)
    filled(life.topic(), 3)
    with failing(monkeypatch, "fsync"):
        life.storage.close()
    assert life.storage.failure == f"the data directory {tmp_path} has failed: No space left on device"
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    assert len(contents(Life(tmp_path).log())) == 3


def test_an_error_that_the_system_has_no_words_for(tmp_path: Path) -> None:
    life = Life(tmp_path)
    life.storage.failed(OSError("something"))
    life.storage.failed(OSError("something else"))
    assert life.storage.failure == f"the data directory {tmp_path} has failed: something"
    life.storage.close()


def test_a_log_that_there_is_not(tmp_path: Path) -> None:
    kept = DataDirectory(tmp_path, BrokerConfig.of(), new_uuid=uuid.uuid4, now_ms=NOW_MS)
    with pytest.raises(KeyError):
        kept.log("orders", 0, 1)
    kept.close()


def test_a_topic_with_the_longest_name_can_be_deleted(tmp_path: Path) -> None:
    name = "x" * 249
    with gc.Cluster(data_dir=tmp_path, topics={name: 12}).sync() as kafka:
        kafka.delete_topic(name)
        kafka.create_topic(name, 1)
        kafka.produce(name, b"again")
        assert [record.value for record in kafka.records(name)] == [b"again"]
