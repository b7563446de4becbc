"""The start of a data directory: whose it is, and what is in it."""

import dataclasses
import shutil
import uuid
from pathlib import Path

import pytest

from groupcoord.broker.topic_store import Topic
from groupcoord.config.broker_config import ConfigResource
from groupcoord.storage.broker_logs_loader import METADATA_LOG
from groupcoord.storage.cluster_metadata_file import MetadataFile, TopicEntry
from groupcoord.storage.file_io import StorageError
from groupcoord.storage.log_dir_files import partition_metadata
from tests.storage.directory import KAFKA_FILES, Life, contents, filled

RECORDED = KAFKA_FILES / "recorded-0"


def test_a_new_directory_says_whose_it_is(tmp_path: Path) -> None:
    Life(tmp_path / "a" / "b").end()
    lines = (tmp_path / "a" / "b" / "meta.properties").read_text().splitlines()
    assert [line.split("=")[0] for line in lines] == ["node.id", "directory.id", "version", "cluster.id"]
    before = (tmp_path / "a" / "b" / "meta.properties").read_bytes()
    Life(tmp_path / "a" / "b").end()
    assert (tmp_path / "a" / "b" / "meta.properties").read_bytes() == before


def test_another_node_may_not_have_it(tmp_path: Path) -> None:
    Life(tmp_path).end()
    with pytest.raises(
        StorageError, match=r"belongs to node 1 of cluster .*, and this is node 2 .* remove .*meta.properties"
    ):
        Life(tmp_path, node_id=2)
    Life(tmp_path).end()  # and the lock was let go


def test_a_real_kafkas_own_directory_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / METADATA_LOG).mkdir()
    with pytest.raises(StorageError, match="is the log directory of a real Kafka broker"):
        Life(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", METADATA_LOG]


def test_folders_from_kafka_become_topics(tmp_path: Path) -> None:
    shutil.copytree(RECORDED, tmp_path / "recorded-1")
    (tmp_path / "no-topic-1").mkdir()
    (tmp_path / "notes").mkdir()
    life = Life(tmp_path)
    assert life.storage.findings == [
        f"topic recorded was found in {tmp_path}, and has the broker's defaults now",
        f"{tmp_path / 'recorded-0'} is missing: the partition begins anew",
    ]
    assert life.log("recorded", 1).log_end_offset == 45
    assert life.log("recorded", 0).log_end_offset == 0
    topic = life.broker.topics.get("recorded")
    assert topic is not None
    assert partition_metadata(topic.topic_id) == (RECORDED / "partition.metadata").read_bytes()
    assert len(life.broker.topics) == 1
    filled(life.log("recorded", 1), 1)
    life.end()
    again = Life(tmp_path)
    assert again.storage.findings == []
    assert contents(again.log("recorded", 1))[-1] == (45, b"0")


def test_a_folder_that_does_not_say_whose_it_is_gets_an_id(tmp_path: Path) -> None:
    shutil.copytree(RECORDED, tmp_path / "recorded-0")
    (tmp_path / "recorded-0" / "partition.metadata").unlink()
    life = Life(tmp_path)
    topic = life.broker.topics.get("recorded")
    assert topic is not None
    assert (tmp_path / "recorded-0" / "partition.metadata").read_bytes() == partition_metadata(topic.topic_id)
    assert life.log("recorded").log_end_offset == 45


def test_offsets_from_kafka_get_their_other_partitions_and_configurations(tmp_path: Path) -> None:
    shutil.copytree(RECORDED, tmp_path / "__consumer_offsets-3")
    life = Life(tmp_path, offsets_topic_num_partitions=5)
    topic = life.broker.topics.get("__consumer_offsets")
    assert topic is not None
    assert len(topic.partitions) == 5
    assert topic.metadata.configs["cleanup.policy"] == "compact"
    assert life.log("__consumer_offsets", 3).log_end_offset == 45
    life.kill()
    again = Life(tmp_path, offsets_topic_num_partitions=9).broker.topics.get("__consumer_offsets")
    assert again is not None
    assert (len(again.partitions), again.metadata.configs, again.topic_id) == (
        5,
        topic.metadata.configs,
        topic.topic_id,
    )


def test_folders_that_do_not_agree(tmp_path: Path) -> None:
    for index in (0, 1):
        shutil.copytree(RECORDED, tmp_path / f"recorded-{index}")
    (tmp_path / "recorded-1" / "partition.metadata").write_bytes(partition_metadata(uuid.uuid4()))
    with pytest.raises(StorageError, match=r"the folders of topic recorded in .* do not agree on whose they are"):
        Life(tmp_path)


def test_two_topics_with_one_id(tmp_path: Path) -> None:
    shutil.copytree(RECORDED, tmp_path / "recorded-0")
    shutil.copytree(RECORDED, tmp_path / "renamed-0")
    with pytest.raises(StorageError, match=r"the folders of topic renamed in .* do not agree on whose they are"):
        Life(tmp_path)


def test_a_folder_of_another_topic_of_that_name(tmp_path: Path) -> None:
    life = Life(tmp_path)
    life.topic("recorded")
    life.end()
    shutil.copytree(RECORDED, tmp_path / "recorded-1")
    with pytest.raises(StorageError, match=r"a folder of topic recorded in .* is of another topic of that name"):
        Life(tmp_path)


def test_a_further_folder_is_a_further_partition(tmp_path: Path) -> None:
    life = Life(tmp_path)
    filled(life.topic(), 2)
    life.end()
    shutil.copytree(tmp_path / "orders-0", tmp_path / "orders-1")
    again = Life(tmp_path)
    assert contents(again.log("orders", 1)) == [(0, b"0"), (1, b"1")]


def test_what_was_being_deleted_goes(tmp_path: Path) -> None:
    life = Life(tmp_path)
    filled(life.topic("kept"), 1)
    filled(life.topic("gone", 2), 1)
    topic = life.broker.topics.get("gone")
    assert topic is not None
    life.storage._metadata_file.delete_topic(
        topic.topic_id
    )  # and then it was killed: one folder is renamed, one is not
    life.kill()
    (tmp_path / "gone-1").rename(tmp_path / f"gone-1.{topic.topic_id.hex}-delete")
    again = Life(tmp_path)
    assert [topic.name for topic in again.broker.topics] == ["kept"]
    assert [path.name for path in tmp_path.glob("gone*")] == []
    again.end()
    assert [topic.name for topic in Life(tmp_path).broker.topics] == ["kept"]


def test_a_topic_of_which_many_folders_were_not_made_yet_is_said_once(tmp_path: Path) -> None:
    life = Life(tmp_path)
    life.topic("orders", 5)
    life.kill()
    for index in (1, 2, 4):
        shutil.rmtree(tmp_path / f"orders-{index}")
    again = Life(tmp_path)
    missing = f"{tmp_path / 'orders-1'} and 2 more of topic orders is missing: the partition begins anew"
    assert again.storage.findings == [missing]


@pytest.mark.parametrize("removed", ["partition.metadata", "everything else"])
def test_what_was_being_deleted_goes_even_if_a_start_dies_while_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, removed: str
) -> None:
    life = Life(tmp_path)
    filled(life.topic("gone"), 1)
    topic = life.broker.topics.get("gone")
    assert topic is not None
    life.storage._metadata_file.delete_topic(topic.topic_id)
    life.kill()

    def die(folder: Path) -> None:
        for path in folder.iterdir():
            if (path.name == "partition.metadata") == (removed == "partition.metadata"):
                path.unlink()
        raise KeyboardInterrupt

    with monkeypatch.context() as dying:
        dying.setattr(shutil, "rmtree", die)
        with pytest.raises(KeyboardInterrupt):
            Life(tmp_path)
    again = Life(tmp_path)
    assert (len(again.broker.topics), again.storage.findings) == (0, [])
    assert list(tmp_path.glob("gone*")) == []


@pytest.mark.parametrize("again", [False, True])
def test_a_deleted_topic_whose_folder_lost_its_name_in_a_power_cut(tmp_path: Path, again: bool) -> None:
    life = Life(tmp_path)
    filled(life.topic("gone"), 1)
    topic = life.broker.topics.get("gone")
    assert topic is not None
    life.storage._metadata_file.delete_topic(topic.topic_id)
    (tmp_path / "gone-0" / "partition.metadata").write_bytes(b"")
    life.kill()
    if again:  # under that name there is another topic: it is its folder
        entry = dataclasses.replace(_entry(topic), topic_id=uuid.uuid4())
        metadata_file = MetadataFile(tmp_path)
        metadata_file.start_anew()
        metadata_file.contents.deleted[topic.topic_id] = _entry(topic)
        metadata_file.put_topic(entry)
        metadata_file.delete_topic(topic.topic_id)
        metadata_file.close()
    topics = Life(tmp_path).broker.topics
    assert [one.name for one in topics] == ["gone"] * again
    assert (tmp_path / "gone-0").exists() == again


def _entry(topic: Topic) -> TopicEntry:
    return TopicEntry(
        name=topic.name, topic_id=topic.topic_id, partitions=1, configs={}, created_ms=topic.metadata.created_ms
    )


def test_a_topic_whose_folders_were_not_made_yet(tmp_path: Path) -> None:
    life = Life(tmp_path)
    life.topic()
    life.kill()
    shutil.rmtree(tmp_path / "orders-0")
    again = Life(tmp_path)
    assert again.storage.findings == [f"{tmp_path / 'orders-0'} is missing: the partition begins anew"]
    filled(again.log(), 1)


def test_what_was_changed_while_it_ran(tmp_path: Path) -> None:
    life = Life(tmp_path)
    life.storage.resource_configured(ConfigResource(4, ""), {"log.retention.ms": "77"})
    life.storage.resource_configured(ConfigResource(4, "1"), {"log.retention.ms": "0"})
    life.kill()
    again = Life(tmp_path)
    assert again.storage.config["log.retention.ms"] == 77
    [said] = again.storage.findings
    assert said.startswith(
        "what was changed while the server ran does not go with how it is started, and is left out: "
    )
    assert said.endswith("log.retention.ms must be unlimited (-1) or, greater than or equal to 1")


@pytest.mark.parametrize("name", ["recovery-point-offset-checkpoint", "log-start-offset-checkpoint"])
def test_a_checkpoint_that_cannot_be_read_is_left_out(tmp_path: Path, name: str) -> None:
    life = Life(tmp_path)
    filled(life.topic(), 2)
    life.end()
    (tmp_path / name).write_text("\0")
    again = Life(tmp_path)
    assert again.storage.findings == [
        f"{tmp_path / name} is not a checkpoint file of version 0 with 3 fields a line; it is left out"
    ]
    assert len(contents(again.log())) == 2


@pytest.mark.parametrize("content", ["", "nonsense"])
def test_a_file_without_which_nothing_goes(tmp_path: Path, content: str) -> None:
    Life(tmp_path).end()
    path = tmp_path / "meta.properties"
    path.write_text(content)
    with pytest.raises(StorageError, match=rf"cannot use the data directory {tmp_path}: {path} .* Restore it; or,"):
        Life(tmp_path)
    path.unlink()
    Life(tmp_path).end()


DAMAGED = [b"", b"version: 0\n", b"version: 0\ntopic_id: ", b"version: 0\ntopic_id: abc", b"\0" * 40]


@pytest.mark.parametrize("content", [*DAMAGED, None])
def test_a_folder_that_does_not_name_its_topic_is_of_the_one_that_the_metadata_file_knows(
    tmp_path: Path, content: bytes | None
) -> None:
    life = Life(tmp_path)
    filled(life.topic("orders", 2), 3)
    filled(life.topic("other"), 1)
    life.kill()
    file = tmp_path / "orders-0" / "partition.metadata"
    before = file.read_bytes()
    file.unlink() if content is None else file.write_bytes(content)
    again = Life(tmp_path)
    [said] = again.storage.findings
    assert said.startswith(f"{file} was missing or did not name a topic; it names ")
    assert file.read_bytes() == before
    assert len(contents(again.log("orders"))) == 3
    assert len(contents(again.log("other"))) == 1


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_folder_that_nobody_knows_is_left_alone(tmp_path: Path, content: bytes) -> None:
    life = Life(tmp_path)
    filled(life.topic("kept"), 1)
    life.end()
    shutil.copytree(RECORDED, tmp_path / "recorded-0")
    file = tmp_path / "recorded-0" / "partition.metadata"
    file.write_bytes(content)
    before = sorted((path.name, path.read_bytes()) for path in file.parent.iterdir())
    again = Life(tmp_path)
    [said] = again.storage.findings
    assert said.startswith(str(file))
    assert said.endswith(
        ". Nothing else says whose the folder is, so that topic recorded is left alone. Restore the file; or remove it to have "
        f"the topic with a new id; or move {file.parent} away to be rid of it."
    )
    assert [topic.name for topic in again.broker.topics] == ["kept"]
    assert len(contents(again.log("kept"))) == 1
    assert sorted((path.name, path.read_bytes()) for path in file.parent.iterdir()) == before
    again.end()
    file.unlink()
    assert Life(tmp_path).log("recorded").log_end_offset == 45


def test_a_topic_that_is_made_over_a_folder_that_was_left_alone(tmp_path: Path) -> None:
    shutil.copytree(RECORDED, tmp_path / "recorded-1")
    (tmp_path / "recorded-1" / "partition.metadata").write_bytes(b"")
    life = Life(tmp_path)
    filled(life.topic("recorded", 1), 2)
    topic = life.broker.topics.get("recorded")
    assert topic is not None
    topic.add_partitions(1)
    assert contents(life.log("recorded", 1)) == []
    stray = tmp_path / f"recorded-1.{topic.topic_id.hex}-stray"
    for path in RECORDED.glob("*.log"):
        assert (stray / path.name).read_bytes() == path.read_bytes()
    life.kill()
    again = Life(tmp_path)
    assert (again.storage.findings, len(again.broker.topics)) == ([], 1)


def test_of_folders_that_nobody_knows_one_that_names_the_topic_is_enough(tmp_path: Path) -> None:
    for index in (0, 1):
        shutil.copytree(RECORDED, tmp_path / f"recorded-{index}")
    (tmp_path / "recorded-1" / "partition.metadata").write_bytes(b"")
    life = Life(tmp_path)
    assert life.log("recorded", 1).log_end_offset == 45
    for index in (0, 1):
        file = tmp_path / f"recorded-{index}" / "partition.metadata"
        assert file.read_bytes() == (RECORDED / "partition.metadata").read_bytes()


def test_what_an_interrupted_write_left_goes(tmp_path: Path) -> None:
    life = Life(tmp_path)
    filled(life.topic(), 1)
    life.end()
    left = [tmp_path / "groupcoord-metadata.tmp", tmp_path / "orders-0" / "partition.metadata.tmp"]
    left.append(tmp_path / "orders-1" / "partition.metadata.tmp")
    (tmp_path / "orders-1").mkdir()
    for path in left:
        path.write_bytes(b"half")
    again = Life(tmp_path)
    assert again.storage.findings == []
    assert not any(path.exists() for path in left)


def test_the_offsets_topic_says_over_how_many_partitions_groups_are_spread(tmp_path: Path) -> None:
    life = Life(tmp_path, offsets_topic_num_partitions=5)
    life.topic("__consumer_offsets", partitions=5)
    life.end()
    again = Life(tmp_path)
    assert again.storage.config.offsets_topic_num_partitions == 5
    assert again.storage.config["offsets.topic.num.partitions"] == 5
    assert again.storage.findings == [
        f"__consumer_offsets has 5 partitions in {again.directory}: that counts, and not offsets.topic.num.partitions=50"
    ]


def test_folders_beyond_what_is_configured_count_too(tmp_path: Path) -> None:
    shutil.copytree(RECORDED, tmp_path / "__consumer_offsets-7")
    life = Life(tmp_path, offsets_topic_num_partitions=5)
    assert life.storage.config.offsets_topic_num_partitions == 8
    changed = life.storage.config.changed(ConfigResource(4, "1"), {"log.cleaner.threads": "2"})
    assert changed.offsets_topic_num_partitions == 8
