"""The data directories of several brokers: each has one in DIR, and what the controller knows is in DIR/controller.

A copy of the directory while the brokers run is what ``kill -9`` leaves.
"""

import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import groupcoord as gc
from groupcoord.broker.events import LogTruncated
from groupcoord.broker.leader_election_and_isr import PartitionState
from groupcoord.protocol.apis.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from groupcoord.protocol.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from groupcoord.protocol.batches.record_batch import BatchError, build_batch
from groupcoord.protocol.batches.records import Record
from groupcoord.storage.cluster_metadata_file import MetadataFile
from groupcoord.storage.file_io import StorageError
from groupcoord.storage.file_log_backend import FileLogBackend
from groupcoord.storage.file_storage_backend import DataDirectory
from tests.broker.data_plane import NOW_MS, batch
from tests.storage.faults import failing

pytestmark = pytest.mark.slow

ORDERS = {"orders": 1}
ALONE = {"default.replication.factor": 1}


@contextmanager
def brokers(directory: Path, count: int = 3, **settings: Any) -> Iterator[gc.SyncCluster]:
    """Three brokers whose directories are in ``directory``."""
    config = {"default.replication.factor": min(count, 3), "offsets.topic.num.partitions": 1}
    settings = {"topics": ORDERS, **settings, "config": config | settings.get("config", {})}
    with gc.Cluster(brokers=count, clock="manual", data_dir=directory, **settings).sync() as kafka:
        yield kafka


def values(kafka: gc.SyncCluster) -> list[bytes | None]:
    return [record.value for record in kafka.records("orders")]


def state(kafka: gc.SyncCluster, topic: str = "orders") -> PartitionState:
    found: PartitionState = _engine(kafka).core.broker.topics[topic].metadata.partitions[0]
    return found


def _engine(kafka: gc.SyncCluster) -> Any:
    return kafka._target._engine


def written_by_leader(kafka: gc.SyncCluster, *values: bytes) -> None:
    """Write one batch with acks=1: nobody waits for the followers."""
    records = bytes(build_batch([Record(number, 0, None, value) for number, value in enumerate(values)]))
    data = (TopicProduceData(name="orders", partition_data=(PartitionProduceData(index=0, records=records),)),)
    kafka.ask_broker(state(kafka).leader, ProduceRequest(acks=1, timeout_ms=1000, topic_data=data), version=9)


def killed(kafka: gc.SyncCluster, directory: Path) -> Path:
    """What a kill of all brokers would leave now."""
    left = directory.with_name(f"{directory.name} after a kill")
    shutil.copytree(directory, left)
    return left


def in_file(directory: Path, broker: int) -> bytes:
    """The broker's log. Look for whole words in it: a letter may as well be a byte of a checksum or of a time."""
    return b"".join(path.read_bytes() for path in sorted((directory / str(broker) / "orders-0").glob("*.log")))


def test_each_broker_has_a_directory_with_what_it_has(tmp_path: Path) -> None:
    with brokers(tmp_path) as kafka:
        kafka.produce("orders", b"first")
        files = {in_file(tmp_path, broker) for broker in (1, 2, 3)}
        assert len(files) == 1
        assert b"first" in files.pop()
        assert (tmp_path / "2" / "meta.properties").read_text().startswith("node.id=2\n")
    for broker in (1, 2, 3):
        assert (tmp_path / str(broker) / ".kafka_cleanshutdown").exists()
        assert "orders 0 1" in (tmp_path / str(broker) / "replication-offset-checkpoint").read_text()


@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_everything_is_there_again(tmp_path: Path, how: str) -> None:
    with brokers(tmp_path) as kafka:
        kafka.produce("orders", b"a", b"b")
        kafka.group("g").commit({("orders", 0): 1})
        kafka.broker(1).stop()
        kafka.produce("orders", b"c")
        before = state(kafka)
        again = killed(kafka, tmp_path) if how == "killed" else tmp_path
    with brokers(again) as kafka:
        assert values(kafka) == [b"a", b"b", b"c"]
        assert kafka.group("g").committed("orders", 0) == 1
        assert state(kafka) == before._replace(isr=(1, 2, 3), leader_epoch=before.leader_epoch + 1)
        kafka.produce("orders", b"d")
        assert len({in_file(again, broker) for broker in (1, 2, 3)}) == 1


def test_a_broker_that_lost_its_directory_copies_what_the_others_have(tmp_path: Path) -> None:
    with brokers(tmp_path) as kafka:
        kafka.produce("orders", b"a")
        leader = state(kafka).leader
    shutil.rmtree(tmp_path / str(leader))
    with brokers(tmp_path) as kafka:
        assert values(kafka) == [b"a"]
        now = state(kafka)
        assert now.leader != leader
        assert now.isr == (1, 2, 3)
        findings = _engine(kafka).data_directory.findings
        assert findings == [
            f"{tmp_path / str(leader)} is lost: broker {leader} begins with empty logs, and copies what others have"
        ]
        assert in_file(tmp_path, leader) == in_file(tmp_path, now.leader)


def test_a_folder_that_is_missing_is_copied_again(tmp_path: Path) -> None:
    with brokers(tmp_path) as kafka:
        kafka.produce("orders", b"a")
    shutil.rmtree(tmp_path / "2" / "orders-0")
    shutil.rmtree(tmp_path / "2" / "__consumer_offsets-0")
    with brokers(tmp_path) as kafka:
        assert values(kafka) == [b"a"]
        (finding,) = _engine(kafka).data_directory.findings
        assert finding.endswith(
            " and 1 more is missing: broker 2 begins with an empty log, and copies what others have"
        )
        assert in_file(tmp_path, 2) == in_file(tmp_path, 1)


def test_the_only_replica_is_lost_with_its_directory(tmp_path: Path) -> None:
    with brokers(tmp_path, config=ALONE) as kafka:
        kafka.produce("orders", b"a")
        (alone,) = state(kafka).replicas
    shutil.rmtree(tmp_path / str(alone))
    with brokers(tmp_path) as kafka:
        assert values(kafka) == []
        assert state(kafka).leader == alone
        written_by_leader(kafka, b"b")
        assert values(kafka) == [b"b"]


def test_a_leader_that_died_with_a_tail_of_its_own_gives_it_up_when_all_start_again(tmp_path: Path) -> None:
    with brokers(tmp_path) as kafka:
        first = state(kafka).leader
        others = [broker for broker in (1, 2, 3) if broker != first]
        kafka.produce("orders", b"shared")
        for broker in others:
            kafka.broker(broker).pause_replication()
        written_by_leader(kafka, b"tail", b"of", b"its", b"own")
        kafka.broker(first).kill()
        for broker in others:
            kafka.broker(broker).resume_replication()
        kafka.clock.advance(10)
        kafka.produce("orders", b"after")
        assert b"tail" in in_file(tmp_path, first)
        again = killed(kafka, tmp_path)
    with brokers(again) as kafka:
        (truncated,) = [entry.event for entry in kafka.trace if isinstance(entry.event, LogTruncated)]
        assert (truncated.broker, truncated.offset, truncated.lost) == (first, 1, 4)
        assert values(kafka) == [b"shared", b"after"]
        assert len({in_file(again, broker) for broker in (1, 2, 3)}) == 1
    with brokers(again) as kafka:
        assert values(kafka) == [b"shared", b"after"]
        assert not [entry for entry in kafka.trace if isinstance(entry.event, LogTruncated)]


def test_a_disk_that_is_lost_while_others_run_is_empty(tmp_path: Path) -> None:
    with brokers(tmp_path) as kafka:
        kafka.produce("orders", b"a")
        kafka.broker(2).kill()
        kafka.broker(2).lose_disk()
        assert in_file(tmp_path, 2) == b""
        kafka.clock.advance(10)
        kafka.broker(2).start()
        assert in_file(tmp_path, 2) == in_file(tmp_path, 1)
    with brokers(tmp_path) as kafka:
        assert values(kafka) == [b"a"]


def killed_in_its_start(kafka: gc.SyncCluster, directory: Path) -> Path:
    """What a kill leaves of a start of these brokers that has read the directories, and decided nothing yet."""
    started = DataDirectory(directory, _engine(kafka).core.config, new_uuid=uuid.uuid4, now_ms=0, brokers=3)
    left = killed(kafka, directory)
    started.close()
    return left


def test_a_start_that_is_killed_does_not_make_an_empty_log_of_a_lost_one_that_counts(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    with brokers(directory) as kafka:
        kafka.produce("orders", b"a")
        leader = state(kafka).leader
        left = killed(kafka, directory)
    shutil.rmtree(left / str(leader))
    with brokers(killed_in_its_start(kafka, left)) as kafka:
        assert values(kafka) == [b"a"]
        assert state(kafka).leader != leader


def test_a_directory_that_is_lost_again_after_a_start_that_was_killed_has_a_leader(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    with brokers(directory, config=ALONE) as kafka:
        (alone,) = state(kafka).replicas
        left = killed(kafka, directory)
    shutil.rmtree(left / str(alone))
    again = killed_in_its_start(kafka, left)
    shutil.rmtree(again / str(alone))
    with brokers(again, config=ALONE) as kafka:
        assert state(kafka).leader == alone


@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_a_broker_whose_disk_was_lost_is_in_sync_with_nothing_when_all_start_again(tmp_path: Path, how: str) -> None:
    directory = tmp_path / "data"
    with brokers(directory) as kafka:
        kafka.produce("orders", b"a")
        leader = state(kafka).leader
        kafka.broker(leader).kill()  # the controller does not know it yet: it leads, and is in sync
        kafka.broker(leader).lose_disk()
        _engine(kafka).data_directory._metadata_file.start_anew()
        left = killed(kafka, directory) if how == "killed" else directory
    with brokers(left) as kafka:
        assert values(kafka) == [b"a"]
        assert state(kafka).leader != leader
        assert _engine(kafka).data_directory.findings == [
            f"{left / str(leader)} is lost: broker {leader} begins with empty logs, and copies what others have"
        ]
    with brokers(left) as kafka:
        assert _engine(kafka).data_directory.findings == []


def test_a_broker_that_has_copied_again_what_its_disk_had_lost_counts_again(tmp_path: Path) -> None:
    with brokers(tmp_path) as kafka:
        kafka.produce("orders", b"a")
        kafka.broker(2).stop()
        kafka.broker(2).lose_disk()
        kafka.broker(2).start()
        kafka.broker(1).stop()
        kafka.broker(3).stop()
        kafka.produce("orders", b"b")
    with brokers(tmp_path) as kafka:
        assert values(kafka) == [b"a", b"b"]
        assert _engine(kafka).data_directory.findings == []


def test_a_broker_whose_disk_was_lost_has_not_ended_in_order(tmp_path: Path) -> None:
    with brokers(tmp_path) as kafka:
        kafka.broker(2).stop()
        kafka.broker(2).lose_disk()
    with brokers(tmp_path) as kafka:
        assert _engine(kafka).data_directory.unclean_brokers() == {2}


def test_a_loss_that_cannot_be_written_down_ends_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with brokers(tmp_path) as kafka:
        kafka.broker(2).stop()
        directory = _engine(kafka).data_directory
        with failing(monkeypatch, "pwrite"), pytest.raises(BatchError):
            kafka.broker(2).lose_disk()
        assert directory.failure is not None


def test_folders_in_a_directory_that_says_not_whose_it_is_count(tmp_path: Path) -> None:
    with brokers(tmp_path) as kafka:
        kafka.produce("orders", b"a")
    (tmp_path / "2" / "meta.properties").unlink()
    with brokers(tmp_path) as kafka:
        assert values(kafka) == [b"a"]
        findings = _engine(kafka).data_directory.findings
        assert findings == [f"{tmp_path / '2' / 'meta.properties'} was missing, and is made anew"]


def test_a_broker_that_was_killed_has_not_ended_in_order(tmp_path: Path) -> None:
    with brokers(tmp_path) as kafka:
        kafka.broker(2).kill()
        kafka.broker(3).kill()
        kafka.clock.advance(10)
        kafka.broker(3).start()
    there = [broker for broker in (1, 2, 3) if (tmp_path / str(broker) / ".kafka_cleanshutdown").exists()]
    assert there == [1, 3]
    with brokers(tmp_path) as kafka:
        assert _engine(kafka).data_directory.unclean_brokers() == {2}


def test_replicas_that_come_and_go_have_folders_that_come_and_go(tmp_path: Path) -> None:
    with brokers(tmp_path, config=ALONE) as kafka:
        kafka.produce("orders", b"first")
        (before,) = state(kafka).replicas
        after = before % 3 + 1
        kafka.move_leader("orders", 0, after)
        assert not (tmp_path / str(before) / "orders-0").exists()
        assert b"first" in in_file(tmp_path, after)
        kafka.delete_topic("orders")
        assert not list(tmp_path.glob("*/orders-0"))
        kafka.create_topic("orders", 1)
        kafka.add_partitions("orders", 1)
    with brokers(tmp_path, config=ALONE, topics={}) as kafka:
        assert len(_engine(kafka).core.broker.topics["orders"].partitions) == 2


def test_a_reassignment_goes_on_where_it_was(tmp_path: Path) -> None:
    with brokers(tmp_path, config=ALONE) as kafka:
        kafka.produce("orders", b"first")
        (before,) = state(kafka).replicas
        after = before % 3 + 1
        kafka.broker(after).pause_replication()
        partition = ReassignablePartition(partition_index=0, replicas=(after,))
        topics = (ReassignableTopic(name="orders", partitions=(partition,)),)
        kafka.ask_broker(1, AlterPartitionReassignmentsRequest(topics=topics), version=1)
        assert state(kafka).adding == (after,)
        again = killed(kafka, tmp_path)
    with brokers(again, config=ALONE) as kafka:
        assert (state(kafka).replicas, state(kafka).leader) == ((after,), after)
        assert b"first" in in_file(again, after)
        assert not (again / str(before) / "orders-0").exists()
        assert values(kafka) == [b"first"]


def test_folders_of_others_are_set_aside(tmp_path: Path) -> None:
    with brokers(tmp_path) as kafka:
        kafka.produce("orders", b"a")
    shutil.copytree(tmp_path / "2" / "orders-0", tmp_path / "2" / "unknown-0")
    shutil.copytree(tmp_path / "2" / "orders-0", tmp_path / "2" / "orders-7")
    (tmp_path / "3" / "orders-0" / "partition.metadata").unlink()
    with brokers(tmp_path) as kafka:
        assert values(kafka) == [b"a"]
        assert len(list((tmp_path / "2").glob("*-stray"))) == 2
        first, second = _engine(kafka).data_directory.findings
        assert first.startswith(
            f"{tmp_path}/2/orders-7 is of a partition that broker 2 does not have, and is orders-7."
        )
        assert second.startswith(f"{tmp_path}/2/unknown-0 is of")


def refused(directory: Path, count: int = 3) -> str:
    with pytest.raises(StorageError) as caught, brokers(directory, count):
        pass
    return str(caught.value).removeprefix(f"cannot use the data directory {directory}: ")


def test_a_directory_of_one_broker_is_none_of_several_and_the_other_way_round(tmp_path: Path) -> None:
    with brokers(tmp_path / "one", 1) as kafka:
        kafka.produce("orders", b"a")
    assert refused(tmp_path / "one") == (
        f"{tmp_path}/one is the data directory of one broker, node 1: several have one each in it. "
        "Start one broker with it, or use another directory."
    )
    with brokers(tmp_path / "three") as kafka:
        kafka.produce("orders", b"a")
    assert refused(tmp_path / "three", 1) == (
        f"{tmp_path}/three has the data directories of several brokers. Start as many with it; or take one of these "
        "directories for a lone broker with the same node.id."
    )
    assert refused(tmp_path / "three", 2) == (
        f"{tmp_path}/three has partitions of broker 3, and there are to be 1, 2: start at least 3 brokers with node.id=1, "
        "or use another directory"
    )
    with brokers(tmp_path / "three", 4) as kafka:
        assert values(kafka) == [b"a"]


def test_without_what_the_controller_knew_one_broker_goes_on_alone(tmp_path: Path) -> None:
    with brokers(tmp_path) as kafka:
        kafka.produce("orders", b"a")
    shutil.rmtree(tmp_path / "controller")
    assert refused(tmp_path) == (
        f"{tmp_path}/controller/groupcoord-metadata is lost, or empty, and with it who has which partitions and who is in "
        f"sync. Restore it; or take the directory of one broker, such as {tmp_path}/1, for a lone broker."
    )
    with brokers(tmp_path / "1", 1) as kafka:
        assert values(kafka) == [b"a"]


def test_of_a_topic_of_coordinators_the_partitions_that_are_there_count(tmp_path: Path) -> None:
    with brokers(tmp_path) as kafka:
        kafka.group("g").commit({("orders", 0): 1})
    with brokers(tmp_path, config={"offsets.topic.num.partitions": 7}) as kafka:
        assert kafka.group("g").committed("orders", 0) == 1
        (finding,) = _engine(kafka).data_directory.findings
        assert finding.startswith("__consumer_offsets has 1 partitions in ")


def test_two_servers_do_not_share_the_directory_of_a_broker(tmp_path: Path) -> None:
    with brokers(tmp_path):
        assert "is in use" in refused(tmp_path / "2", 1)


def test_a_disk_that_fails_when_leaders_change_ends_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with brokers(tmp_path) as kafka:
        directory = _engine(kafka).data_directory
        with failing(monkeypatch, "pwrite"):
            kafka.broker(1).stop()
        assert directory.failure is not None


@pytest.mark.parametrize("how", ["truncated", "started over"])
def test_a_disk_that_fails_in_a_truncation_ends_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    with brokers(tmp_path) as kafka:
        kafka.produce("orders", b"a", b"b")
        directory = _engine(kafka).data_directory
        log = _engine(kafka).core.broker.topics["orders"].copies[0][2]
        with failing(monkeypatch, "unlink"), pytest.raises(BatchError):
            log.truncate_to(0, 0) if how == "truncated" else log.truncate_fully_and_start_at(0, 0)
        assert directory.failure is not None


def test_leader_epochs_that_cannot_be_written_end_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with brokers(tmp_path) as kafka:
        kafka.produce("orders", b"a")
        directory = _engine(kafka).data_directory
        log = _engine(kafka).core.broker.topics["orders"].copies[0][2]
        log.become_leader(7)
        with failing(monkeypatch, "pwrite"), pytest.raises(BatchError):
            log.append(batch(b"b", at_ms=NOW_MS), NOW_MS)
        assert directory.failure is not None
        assert log.log_end_offset == 1


def test_a_follower_without_descriptors_copies_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with brokers(tmp_path) as kafka:
        kafka.produce("orders", b"first")
        leader = state(kafka).leader
        append, refuses = FileLogBackend.append, True

        def fails(store: FileLogBackend, *args: Any) -> None:
            if refuses and store.folder.parent.name != str(leader):
                raise store.failed(OSError(24, "Too many open files"))
            append(store, *args)

        monkeypatch.setattr(FileLogBackend, "append", fails)
        written_by_leader(kafka, b"second")
        assert b"second" not in in_file(tmp_path, leader % 3 + 1)
        refuses = False
        kafka.produce("orders", b"third")
        assert len({in_file(tmp_path, broker) for broker in (1, 2, 3)}) == 1


def test_a_state_that_no_partition_can_have_stops_the_start(tmp_path: Path) -> None:
    with brokers(tmp_path):
        pass
    path = tmp_path / "controller" / "groupcoord-metadata"
    contents = MetadataFile(path.parent).contents
    (topic_id,) = [topic_id for topic_id, topic in contents.topics.items() if topic.name == "orders"]
    for entry in (
        '{"partition": 0, "of": "%s"}',
        '{"partition": 9, "of": "%s", "replicas": [1], "isr": [1], "leader": 1}',
    ):
        text = path.read_text()
        path.write_text(f"{text}{entry % topic_id}\n")
        assert refused(tmp_path).endswith(
            "without the file, the brokers do not start together any more, only one of them alone, with its directory."
        )
        path.write_text(text)


def test_a_stray_folder_does_not_stop_the_start_because_there_is_one_of_its_name(tmp_path: Path) -> None:
    with brokers(tmp_path) as kafka:
        kafka.produce("orders", b"a")
    for _ in range(3):
        shutil.copytree(tmp_path / "2" / "orders-0", tmp_path / "2" / "orders-7")
        with brokers(tmp_path) as kafka:
            assert values(kafka) == [b"a"]
    assert len(list((tmp_path / "2").glob("orders-7.*-stray"))) == 3


def test_the_refusal_of_brokers_with_other_ids_says_which_fit(tmp_path: Path) -> None:
    with brokers(tmp_path):
        pass
    with pytest.raises(StorageError) as caught, brokers(tmp_path, config={"node.id": 4}):
        pass
    assert "of broker 1, and there are to be 4, 5, 6: start at least 3 brokers with node.id=1, or use" in str(
        caught.value
    )


def test_without_what_the_controller_knew_the_whole_is_no_directory_of_one_broker(tmp_path: Path) -> None:
    with brokers(tmp_path) as kafka:
        kafka.produce("orders", b"a")
    shutil.rmtree(tmp_path / "controller")
    assert refused(tmp_path, 1).startswith(f"{tmp_path} has the data directories of several brokers.")
    assert not (tmp_path / "meta.properties").exists()
