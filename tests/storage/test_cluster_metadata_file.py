"""Topics and configurations are remembered line by line."""

import uuid
from pathlib import Path

import pytest

from groupcoord.config.broker_config import ConfigResource
from groupcoord.config.features import FeatureLevels
from groupcoord.storage.cluster_metadata_file import FILE_NAME, MetadataContents, MetadataFile, TopicEntry, create
from groupcoord.storage.file_io import StorageError
from tests.storage.faults import failing

ORDERS = TopicEntry(name="orders", topic_id=uuid.UUID(int=7), partitions=3, configs={"retention.ms": "5"}, created_ms=9)
GROUP = ConfigResource(32, "app")
HEAD = '{"groupcoord": "metadata", "version": 1}\n'

TOPIC = (
    '{"topic": "%s", "id": "00000000-0000-0000-0000-000000000001", "partitions": %s, "configs": {}, "created_ms": 1}\n'
)


def filled(directory: Path) -> MetadataFile:
    metadata_file = MetadataFile(directory)
    metadata_file.start_anew()
    metadata_file.put_topic(ORDERS)
    metadata_file.put_configs(GROUP, {"consumer.session.timeout.ms": "50000"})
    metadata_file.put_features(FeatureLevels({"transaction.version": 1}, 3))
    metadata_file.put_next_producer_id(1000)
    metadata_file.put_next_producer_id(2000)
    return metadata_file


def test_everything_comes_again_and_the_last_word_counts(tmp_path: Path) -> None:
    metadata_file = filled(tmp_path)
    metadata_file.put_topic(TopicEntry(name="ä", topic_id=uuid.UUID(int=8), partitions=1, configs={}, created_ms=10))
    metadata_file.delete_topic(uuid.UUID(int=8))
    metadata_file.close()
    metadata_file.close()
    again = MetadataFile(tmp_path)
    assert metadata_file.contents.deleted == {}  # only a start has to know
    assert again.contents.topics == metadata_file.contents.topics == {ORDERS.topic_id: ORDERS}
    assert [topic.name for topic in again.contents.deleted.values() if topic] == ["ä"]
    assert again.contents.configs == {GROUP: {"consumer.session.timeout.ms": "50000"}}
    assert again.contents.next_producer_id == 2000
    assert again.contents.features == FeatureLevels({"transaction.version": 1}, 3)


def test_a_start_writes_what_is_left(tmp_path: Path) -> None:
    filled(tmp_path).close()
    again = MetadataFile(tmp_path)
    again.contents.deleted[uuid.UUID(int=9)] = None
    again.start_anew()
    again.close()
    lines = (tmp_path / FILE_NAME).read_text().splitlines()
    assert [line.split(":")[0] for line in lines] == [
        '{"groupcoord"',
        '{"topic"',
        '{"resource"',
        '{"next_producer_id"',
        '{"rewrites"',
        '{"features"',
    ]
    assert MetadataFile(tmp_path).contents == again.contents
    assert not again.contents.deleted


def test_a_line_cut_off_at_any_byte_was_never_answered(tmp_path: Path) -> None:
    filled(tmp_path).close()
    path = tmp_path / FILE_NAME
    data = path.read_bytes()
    last = len(data.splitlines(keepends=True)[-1])
    for missing in range(1, last + 1):
        path.write_bytes(data[:-missing])
        assert MetadataFile(tmp_path).contents.next_producer_id == 1000


def test_a_last_line_that_a_power_cut_left_with_zeros_was_never_answered(tmp_path: Path) -> None:
    filled(tmp_path).close()
    path = tmp_path / FILE_NAME
    *lines, last = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines) + bytes(len(last) - 5) + last[-5:])
    assert MetadataFile(tmp_path).contents.next_producer_id == 1000


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("\0\n", 1),
        (HEAD + "{\0\n" + '{"next_producer_id": 7}\n', 2),
        ("x\n", 1),
        ('{"groupcoord": "metadata", "version": 2}\n', 1),
        (HEAD + "{\n", 2),
        (HEAD + "[]\n", 2),
        (HEAD + '{"topic": "a"}\n', 2),
        (HEAD + '{"next_producer_id": 7}\n{"deleted": "x"}\n', 3),
        (HEAD + '{"resource": [1], "configs": {}}\n', 2),
        (HEAD + TOPIC % ("", "1"), 2),
        (HEAD + TOPIC % ("../a", "1"), 2),
        (HEAD + TOPIC % ("a", "0"), 2),
        (HEAD + '{"features": {"transaction.version": 9}}\n', 2),
        (HEAD + '{"features": {"transaction.version": "x"}, "epoch": 1}\n', 2),
        (HEAD + TOPIC % ("a", "99999999"), 2),
        (HEAD + TOPIC % ("a", "1e999"), 2),
        (HEAD + '{"next_producer_id": -1}\n', 2),
        (HEAD + '{"next_producer_id": 9223372036854775808}\n', 2),
        (HEAD + '{"resource": [1, "a"], "configs": 5}\n', 2),
    ],
)
def test_a_line_that_cannot_be_understood_is_named(tmp_path: Path, text: str, line: int) -> None:
    (tmp_path / FILE_NAME).write_text(text)
    with pytest.raises(
        StorageError, match=rf"{FILE_NAME}, line {line}, cannot be understood: .* Mend the line, or take the"
    ):
        MetadataFile(tmp_path)


def test_a_new_one_says_nothing_yet_and_no_old_one_is_touched(tmp_path: Path) -> None:
    create(tmp_path)
    assert (MetadataFile(tmp_path).found, MetadataFile(tmp_path).contents) == (True, MetadataContents())
    filled(tmp_path).close()
    create(tmp_path)
    assert MetadataFile(tmp_path).contents.topics


def test_a_change_that_cannot_be_written_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    metadata_file = filled(tmp_path)
    before = (tmp_path / FILE_NAME).read_bytes()
    with failing(monkeypatch, "fsync"), pytest.raises(OSError, match="No space"):
        metadata_file.delete_topic(ORDERS.topic_id)
    assert (tmp_path / FILE_NAME).read_bytes() == before
    assert metadata_file.contents.topics
    metadata_file.delete_topic(ORDERS.topic_id)
    metadata_file.close()
    assert not MetadataFile(tmp_path).contents.topics


@pytest.mark.slow
def test_a_file_that_is_mostly_outdated_is_written_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("groupcoord.storage.cluster_metadata_file.REWRITTEN_BYTES", 1_000)
    metadata_file = filled(tmp_path)
    largest = 0
    for number in range(1_000):
        topic_id = uuid.UUID(int=100 + number)
        metadata_file.put_topic(TopicEntry(name="t", topic_id=topic_id, partitions=1, configs={}, created_ms=10))
        metadata_file.delete_topic(topic_id)
        largest = max(largest, metadata_file.path.stat().st_size)
    assert largest < 3_000
    assert not metadata_file.contents.deleted
    metadata_file.close()
    assert MetadataFile(tmp_path).contents.topics == {ORDERS.topic_id: ORDERS}


def test_nothing_is_remembered_of_a_resource_that_is_configured_no_more(tmp_path: Path) -> None:
    metadata_file = filled(tmp_path)
    metadata_file.put_configs(GROUP, {})
    metadata_file.close()
    assert metadata_file.contents.configs == MetadataFile(tmp_path).contents.configs == {}
