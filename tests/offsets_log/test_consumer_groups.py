"""Consumer groups (KIP-848) go from a coordinator into a real broker and back by way of ``groupcoord offsets``."""

import base64
import dataclasses
import shutil
import uuid
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from groupcoord.cli.main import main
from groupcoord.offsets_log.compaction_preview import after_rows, preview_compaction
from groupcoord.offsets_log.log_source import Batch
from groupcoord.offsets_log.segment_dir_source import SegmentDirSource
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.batches.record_batch import build_batch
from groupcoord.protocol.batches.records import Record
from groupcoord.protocol.framing import encode_request, parse_response
from groupcoord.protocol.messages import ConsumerGroupDescribeRequest
from tests.conformance.wire import SocketWire
from tests.coordinator.consumer.consumers import Consumer, ConsumerWorld
from tests.offsets_log.lone_kafka import LoneKafka
from tests.real_kafka import RealKafkaUnavailable

PARTITIONS = 3
PROPERTIES = {
    "offsets.topic.num.partitions": str(PARTITIONS),
    "offsets.retention.minutes": "2147483647",
    "group.consumer.assignment.interval.ms": "0",
}


def in_the_middle(topic_id: uuid.UUID) -> tuple[ConsumerWorld, list[Consumer]]:
    """A coordinator with a group whose first member has partitions to give back, for which the second one waits."""
    w = ConsumerWorld(topics={"orders": 4}, offsets_topic_num_partitions=PARTITIONS)
    w.topics.ids["orders"] = topic_id
    a, b = w.consumer("a", "orders", instance="i", rack="r"), w.consumer("b", regex="ord.*", assignor="range")
    a.join()
    a.commit({("orders", 0): 3, ("orders", 1): 1})
    b.join()
    w.advance(0)
    b.heartbeat()
    a.heartbeat()
    return w, [a, b]


def write_segments(w: ConsumerWorld, directory: Path) -> Path:
    """The log of a world, as a broker would have it."""
    for partition in range(PARTITIONS):
        folder = directory / f"__consumer_offsets-{partition}"
        folder.mkdir(parents=True)
        batches = [build_batch([Record(offset, 0, key, value)]) for offset, key, value in w.logged(partition)]
        (folder / f"{0:020d}.log").write_bytes(b"".join(batches))
    return directory


def read_back(directory: Path) -> ConsumerWorld:
    """A coordinator that has read these folders."""
    w = ConsumerWorld(topics={"orders": 4}, offsets_topic_num_partitions=PARTITIONS)
    source = SegmentDirSource(directory)
    for partition in source.partitions:
        w.resign(partition)
        loading = w.begin_load(partition)
        found = list(source.read(partition))
        assert all(isinstance(each, Batch) for each in found)
        for each in found:
            assert isinstance(each, Batch)
            assert loading.apply_run(each.data, 0).records == each.header.record_count
        w.end_load(loading)
    return w


def told(group: Any) -> Any:
    """What ConsumerGroupDescribe tells, members by id."""
    return dataclasses.replace(
        group, members=tuple(sorted(group.members, key=lambda each: str(each.member_id))), authorized_operations=0
    )


def test_dump_shows_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    w, _ = in_the_middle(uuid.UUID(int=7))
    folders = write_segments(w, tmp_path / "log")
    assert main(["offsets", "dump", str(folders), "--group", "g"]) == 0
    said = capsys.readouterr().out
    kinds = ("", "Member", "TargetAssignment", "CurrentMemberAssignment", "RegularExpression")
    assert [kind for kind in kinds if f"ConsumerGroup{kind}" not in said] == []
    assert len(said.splitlines()) == len(w.records)


def test_what_is_exported_and_imported_is_the_same_group(tmp_path: Path) -> None:
    w, _ = in_the_middle(uuid.UUID(int=7))
    folders = write_segments(w, tmp_path / "log")
    assert main(["offsets", "export", str(folders), str(tmp_path / "out"), "--group", "g"]) == 0
    partitions = ("-c", f"offsets.topic.num.partitions={PARTITIONS}")
    assert main(["offsets", "import", str(tmp_path / "out"), str(tmp_path / "data"), *partitions]) == 0
    assert main(["offsets", "export", str(tmp_path / "data"), str(tmp_path / "again"), "--group", "g"]) == 0
    again = read_back(tmp_path / "again")
    again.topics.ids["orders"] = uuid.UUID(int=7)
    assert told(again.described()) == told(w.described())
    assert again.fetch() == w.fetch()


def test_the_preview_of_compaction_keeps_the_group(tmp_path: Path) -> None:
    """Of each key the last record is left, and a coordinator that reads these has the same group."""
    w, (a, b) = in_the_middle(uuid.UUID(int=7))
    for member in (b, a, b, a, b):
        member.owns()
    source = SegmentDirSource(write_segments(w, tmp_path / "log"))
    partition = w.coordinator.shard_of("g").partition
    batches = [each for each in source.read(partition) if isinstance(each, Batch)]
    preview = preview_compaction(partition, batches, now_ms=0)
    assert preview.size_after.records == preview.size_before.keys < preview.size_before.records
    again = ConsumerWorld(topics={"orders": 4}, offsets_topic_num_partitions=PARTITIONS)
    again.topics.ids["orders"] = uuid.UUID(int=7)
    loading = again.begin_load(partition)
    loading.apply([(each.offset, each.key, each.value) for each in preview.after])
    again.end_load(loading)
    assert told(again.described()) == told(w.described())
    shown = {key: text for _, key, text in after_rows(preview.after)}
    assert "g ConsumerGroupMemberMetadata a" in shown
    assert "tombstone" not in shown.values()


@pytest.fixture
def kafka(tmp_path: Path) -> LoneKafka:
    try:
        return LoneKafka(tmp_path / "kafka", PROPERTIES)
    except RealKafkaUnavailable as reason:
        pytest.skip(f"no real Kafka: {reason}")


@pytest.mark.real_kafka
def test_a_real_broker_goes_on_with_a_group_and_gives_it_back(kafka: LoneKafka, tmp_path: Path) -> None:
    """In the middle of a reconciliation: it answers what the first coordinator answers. The offsets go along."""
    with kafka:
        client = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
        for made in client.create_topics([NewTopic("orders", 4, 1)]).values():
            made.result()
    topic_id = uuid.UUID(bytes=base64.urlsafe_b64decode(id_of(kafka, "orders-0") + "=="))
    w, (a, b) = in_the_middle(topic_id)
    folders = write_segments(w, tmp_path / "log")
    id_there = id_of(kafka, "__consumer_offsets-0")
    assert main(["offsets", "export", str(folders), str(tmp_path / "out"), "--topic-id", id_there]) == 0
    for folder in (tmp_path / "out").iterdir():
        shutil.rmtree(kafka.data / folder.name)
        shutil.copytree(folder, kafka.data / folder.name)
    with kafka:
        wire = SocketWire("127.0.0.1", kafka.port)
        assert told(described(wire)) == told(w.described())
        for member in (b, a, b, a, b):
            here = member.owns()
            assert ask(wire, ApiKey.CONSUMER_GROUP_HEARTBEAT, here.request, member.name) == here.answer
        after = told(described(wire))
        wire.close()
    assert after == told(w.described())
    assert after.group_state == "Stable"
    again = read_back(kafka.data)
    again.topics.ids["orders"] = topic_id
    assert told(again.described()) == after
    assert again.fetch() == {("orders", 0): 3, ("orders", 1): 1}


def id_of(kafka: LoneKafka, folder: str) -> str:
    """The id of the topic whose partition is in ``folder``, in Kafka's text."""
    return (kafka.data / folder / "partition.metadata").read_text().split("topic_id: ")[1].strip()


def described(wire: SocketWire) -> Any:
    (group,) = ask(wire, ApiKey.CONSUMER_GROUP_DESCRIBE, ConsumerGroupDescribeRequest(group_ids=("g",))).groups
    return group


def ask(wire: SocketWire, key: ApiKey, request: Any, client_id: str = "test") -> Any:
    """What the broker answers."""
    api = APIS[key]
    wire.send(encode_request(api, api.max_version, 1, client_id, request))
    frame = wire.receive(10_000)
    assert frame is not None
    return parse_response(api, api.max_version, frame)[1]
