"""Recordings told to groupcoord again."""

import asyncio
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from groupcoord import Cluster, Consumer, RemoteCluster
from groupcoord.cli.main import main
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.apis.create_topics import CreatableTopic
from groupcoord.protocol.apis.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from groupcoord.protocol.apis.find_coordinator import Coordinator
from groupcoord.protocol.apis.join_group import JoinGroupRequestProtocol, JoinGroupResponseMember
from groupcoord.protocol.apis.metadata import (
    MetadataRequestTopic,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from groupcoord.protocol.batches.record_batch import (
    LOG_APPEND_TIME,
    EndTransactionMarker,
    build_batch,
    build_marker,
)
from groupcoord.protocol.batches.records import Record
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.framing import encode_request, encode_response
from groupcoord.protocol.messages import (
    ApiVersionsRequest,
    CreateTopicsRequest,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    MetadataRequest,
    MetadataResponse,
    ProduceResponse,
)
from groupcoord.proxy.recording import RecordedFrame, frames_of, header, line_of
from groupcoord.proxy.replay import Replayed, _DrawnIds, replay
from tests.proxy.support import Client, proxy_to
from tests.proxy.test_proxy import produce

RECORDED = Path(__file__).parent / "recordings" / "kafka-4.3.1.jsonl"
PAGE = (Path(__file__).resolve().parents[2] / "docs" / "proxy.md").read_text(encoding="utf-8")
CONSOLES = re.findall(r"```console\n\$ groupcoord (.*?)\n(.*?)```", PAGE, re.DOTALL)
HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


def frames() -> list[RecordedFrame]:
    return frames_of(RECORDED.read_text().splitlines())


@pytest.mark.parametrize(("command", "shown"), CONSOLES)
def test_the_page_shows_what_is_printed(capsys: pytest.CaptureFixture[str], command: str, shown: str) -> None:
    assert main(shlex.split(command)) == 0
    assert capsys.readouterr().out == shown


def test_a_conversation_with_a_real_kafka_has_no_difference() -> None:
    found = replay(frames())
    assert found.different == ()
    assert len(found.steps) > 30


def changed(at: ApiKey, change: Any, *, nth: int = 0) -> Replayed:
    """The replay with one recorded answer changed: the ``nth`` of that API."""
    recorded = frames()
    asked: dict[tuple[int, int], tuple[int, int]] = {}
    seen = 0
    for number, frame in enumerate(recorded):
        correlation_id = int.from_bytes(frame.frame[4:8] if frame.sender == "client" else frame.frame[:4])
        key = frame.connection, correlation_id
        if frame.sender == "client":
            asked[key] = int.from_bytes(frame.frame[:2]), int.from_bytes(frame.frame[2:4])
        elif asked[key][0] == at:
            if seen == nth:
                recorded[number] = frame._replace(frame=change(frame.frame, asked[key][1]))
            seen += 1
    return replay(recorded)


@pytest.mark.slow
def test_another_error_is_told_with_its_step() -> None:
    def refused(frame: bytes, version: int) -> bytes:
        response = JoinGroupResponse(error_code=ErrorCode.GROUP_MAX_SIZE_REACHED, member_id="")
        return encode_response(APIS[ApiKey.JOIN_GROUP], version, int.from_bytes(frame[:4]), response)[4:]

    step, *_ = changed(ApiKey.JOIN_GROUP, refused).different
    assert step.text().splitlines()[0] == f"step {step.number}: ai on connection {step.connection}, JoinGroup v5"
    assert step.differences[0] == "error_code: 81 in the recording, 79 here"


@pytest.mark.slow
def test_an_id_that_is_another_one_than_before_is_a_difference() -> None:
    def other_member(frame: bytes, version: int) -> bytes:
        return re.sub(rb"ai-[0-9a-f-]{36}", b"ai-" + b"0" * 36, frame)

    step, *_ = changed(ApiKey.JOIN_GROUP, other_member, nth=1).different
    assert step.api == "JoinGroup"
    assert step.differences[0].startswith("leader: 'ai-00000000")


def test_an_answer_that_cannot_be_read_is_left_out() -> None:
    found = changed(ApiKey.HEARTBEAT, lambda frame, _: frame[:4]) if _has(ApiKey.HEARTBEAT) else None
    found = found or changed(ApiKey.SYNC_GROUP, lambda frame, _: frame[:4])
    assert any("an answer that cannot be read" in said for said in found.left_out)


def _has(key: ApiKey) -> bool:
    return any(frame.sender == "client" and int.from_bytes(frame.frame[:2]) == key for frame in frames())


# Small recordings.


class Story:
    """A recording of one connection, made up."""

    def __init__(self) -> None:
        self.frames: list[RecordedFrame] = []
        self._number = 0

    def ask(self, key: ApiKey, version: int, request: Any, connection: int = 1) -> "Story":
        self._number += 1
        return self._add("client", encode_request(APIS[key], version, self._number, "c", request)[4:], connection)

    def answer(self, key: ApiKey, version: int, response: Any, connection: int = 1) -> "Story":
        return self._add("broker", encode_response(APIS[key], version, self._number, response)[4:], connection)

    def _add(self, sender: Any, frame: bytes, connection: int) -> "Story":
        self.frames.append(RecordedFrame(1000 + len(self.frames), connection, "k:1", sender, frame))
        return self

    def raw(self, sender: Any, frame: bytes) -> "Story":
        return self._add(sender, frame, 1)


def with_orders() -> Story:
    """The broker has the topic ``orders``."""
    partition = MetadataResponsePartition(partition_index=0, leader_id=1, leader_epoch=0)
    told = MetadataResponse(topics=(MetadataResponseTopic(name="orders", partitions=(partition,)),))
    return Story().ask(ApiKey.METADATA, 9, MetadataRequest(topics=None)).answer(ApiKey.METADATA, 9, told)


def test_an_answer_where_there_is_none_is_a_difference() -> None:
    story = with_orders().ask(ApiKey.PRODUCE, 9, produce(0)).answer(ApiKey.PRODUCE, 9, ProduceResponse())
    (step,) = replay(story.frames).different
    assert step.differences == ("the recording has an answer, here there is none",)


def test_a_connection_that_is_closed_here_is_a_difference() -> None:
    story = Story().ask(ApiKey.PRODUCE, 9, produce(0)).answer(ApiKey.PRODUCE, 9, ProduceResponse())
    (step,) = replay(story.frames).different
    assert step.differences[0].startswith("the recording has an answer, here there is none: the connection is closed")


def test_a_produce_without_an_answer_is_passed_over() -> None:
    story = with_orders().ask(ApiKey.PRODUCE, 9, produce(0)).ask(ApiKey.HEARTBEAT, 4, HEARTBEAT)
    story.answer(ApiKey.HEARTBEAT, 4, HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
    assert replay(story.frames).different == ()


def test_an_answer_that_nobody_asked_for_is_left_out() -> None:
    story = Story().answer(ApiKey.HEARTBEAT, 0, HeartbeatResponse())
    assert replay(story.frames).left_out == ("1 × an answer whose request is not in the recording",)


def test_what_is_not_served_is_left_out() -> None:
    story = Story()
    story.raw("client", bytes.fromhex("0011 0001 00000009 ffff 0005") + b"PLAIN")
    story.raw("broker", bytes.fromhex("00000009 0000 00000000"))
    story.raw("client", bytes.fromhex("0012 0063 0000000a ffff 00"))
    said = replay(story.frames).left_out
    assert len(said) == 3
    assert said[0].startswith("1 × a request that groupcoord does not serve")
    assert said[1].startswith("1 × an answer to a request that groupcoord does not serve")
    assert said[2] == "1 × ApiVersions of a version that groupcoord does not have"


@pytest.mark.slow
@pytest.mark.asyncio
async def test_what_a_cluster_of_three_said_it_says_again() -> None:
    """With topics that are made, producers that get ids, and groups that rebalance."""
    recorded: list[RecordedFrame] = []
    async with (
        Cluster(topics={"orders": 3}, brokers=3, dev=False) as kafka,
        proxy_to(kafka.addresses[0], record=recorded.append) as proxy,
    ):
        async with Client.at(proxy.address) as client:
            async with asyncio.timeout(60), RemoteCluster(proxy.address) as through_the_proxy:
                for partition in range(3):
                    await through_the_proxy.produce("orders", b"value", partition=partition)
            await _ask_much(client)
        async with asyncio.timeout(60):
            await _consume(proxy.address, records=3)
    found = replay(recorded)
    assert [step.text() for step in found.different] == []
    assert {"JoinGroup", "SyncGroup", "InitProducerId"} <= {step.api for step in found.steps}


async def _ask_much(client: Client) -> None:
    await client.ask(ApiKey.API_VERSIONS, 4, ApiVersionsRequest(client_software_name="c", client_software_version="1"))
    await client.ask(ApiKey.METADATA, 12, MetadataRequest(topics=None))
    new = CreatableTopic(name="new", num_partitions=2, replication_factor=1)
    await client.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=(new,), timeout_ms=1000))
    asked = MetadataRequest(topics=(MetadataRequestTopic(name="no such"),), allow_auto_topic_creation=False)
    await client.ask(ApiKey.METADATA, 12, asked)
    for version in (3, 4):
        group = FindCoordinatorRequest(key="g", coordinator_keys=("g",))
        await client.ask(ApiKey.FIND_COORDINATOR, version, group)
    share = FindCoordinatorRequest(key_type=2, coordinator_keys=("g",))
    await client.ask(ApiKey.FIND_COORDINATOR, 6, share)
    ids = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000, producer_id=-1, producer_epoch=-1)
    await client.ask(ApiKey.INIT_PRODUCER_ID, 4, ids)
    await client.ask(ApiKey.PRODUCE, 9, produce(1))
    await client.ask(ApiKey.HEARTBEAT, 4, HEARTBEAT)


async def _consume(bootstrap: str, *, records: int) -> None:
    async with Consumer("orders", bootstrap_servers=bootstrap, group_id="g", auto_offset_reset="earliest") as consumer:
        while records > 0:
            records -= sum(map(len, (await consumer.getmany(timeout_ms=100)).values()))
        await consumer.commit()


@pytest.mark.asyncio
async def test_transactions_of_a_cluster_that_gave_producer_ids_before_have_no_difference() -> None:
    recorded: list[RecordedFrame] = []
    async with (
        Cluster(topics={"orders": 1}, brokers=2, dev=False) as kafka,
        proxy_to(kafka.addresses[0], record=recorded.append) as proxy,
    ):
        # It has the first producer id, which the replay gives to billing.
        await kafka.manual_producer("an earlier one").init()
        async with asyncio.timeout(60), RemoteCluster(proxy.address) as through_the_proxy:
            producer = through_the_proxy.manual_producer("billing")
            await producer.init()
            for commit in (False, True):
                await producer.produce("orders", b"an invoice")
                await producer.end(commit=commit)
            await through_the_proxy.wait_records("orders", 1)
    found = replay(recorded)
    assert [step.text() for step in found.different] == []
    assert {"Produce", "EndTxn", "Fetch"} <= {step.api for step in found.steps}


@pytest.mark.slow
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.asyncio
async def test_a_producer_whose_epoch_was_bumped_before_the_recording_has_no_difference(version: int) -> None:
    recorded: list[RecordedFrame] = []
    async with (
        Cluster(topics={"orders": 1}, brokers=2, dev=False) as kafka,
        proxy_to(kafka.addresses[0], record=recorded.append) as proxy,
    ):
        before = kafka.manual_producer("billing", version=version)
        for _ in range(3):
            await before.init()
        async with asyncio.timeout(60), RemoteCluster(proxy.address) as through_the_proxy:
            zombie, producer = (through_the_proxy.manual_producer("billing", version=version) for _ in range(2))
            await zombie.init()
            await producer.init()
            for commit in (False, True):
                if version == 1:
                    await producer.add_partitions(("orders", 0))
                await producer.produce("orders", b"an invoice")
                await producer.end(commit=commit)
            assert (await zombie.end(commit=True)).error_code
            await through_the_proxy.wait_records("orders", 1)
    found = replay(recorded)
    assert [step.text() for step in found.different] == []


def test_an_epoch_that_is_another_one_than_before_is_a_difference() -> None:
    def given(epoch: int) -> InitProducerIdResponse:
        return InitProducerIdResponse(producer_id=7, producer_epoch=epoch)

    ids = _DrawnIds()
    assert list(ids.differences("InitProducerId", given(5), given(0))) == []
    assert list(ids.differences("InitProducerId", given(6), given(0))) == ["producer_epoch: 6 in the recording, 0 here"]
    assert list(ids.differences("InitProducerId", given(-1), given(0))) == [
        "producer_epoch: -1 in the recording, 0 here"
    ]


def test_batches_have_the_producer_ids_of_this_cluster() -> None:
    def batch(producer_id: int) -> bytes:
        return bytes(build_batch([Record(0, 1, None, b"value")], producer_id=producer_id))

    def fetched(records: bytes) -> FetchableTopicResponse:
        return FetchableTopicResponse(
            topic="orders", partitions=(PartitionData(partition_index=0, high_watermark=1, records=records),)
        )

    ids = _DrawnIds()
    given = [InitProducerIdResponse(producer_id=number, producer_epoch=0) for number in (0, 7)]
    assert list(ids.differences("InitProducerId", given[1], given[0])) == []
    assert list(ids.differences("InitProducerId", given[1], given[1])) != []
    message_of_an_old_format = bytes(12) + bytes(60)
    for recorded, here in (
        (batch(7) + batch(3) + batch(7), batch(0) + batch(3) + batch(0)),
        (batch(7) + batch(7)[:-1], batch(0) + batch(7)[:-1]),
        (message_of_an_old_format, message_of_an_old_format),
    ):
        assert ids.in_request(fetched(recorded)) == fetched(here)
        assert list(ids.differences("Fetch", fetched(recorded), fetched(here))) == []


def test_records_are_compared_without_the_epochs_of_leaders() -> None:
    def fetched(records: bytes | None) -> FetchResponse:
        partition = PartitionData(partition_index=0, high_watermark=1, records=records)
        return FetchResponse(responses=(FetchableTopicResponse(topic="orders", partitions=(partition,)),))

    def is_same(one: bytes | None, other: bytes | None) -> bool:
        return not list(_DrawnIds().differences("Fetch", fetched(one), fetched(other)))

    first, later = (build_batch([Record(0, 1, None, b"value")], leader_epoch=epoch) for epoch in (0, 7))
    assert is_same(bytes(first + later), bytes(later + first))
    assert not is_same(bytes(first), bytes(first + later))
    assert is_same(None, None)
    assert not is_same(None, b"")
    marker, later_marker, other_marker = (
        build_marker(0, EndTransactionMarker(committed, epoch, at), leader_epoch=0, producer_id=1, producer_epoch=0)
        for committed, epoch, at in ((True, 0, 1), (True, 9, 2), (False, 0, 1))
    )
    assert is_same(marker, later_marker)
    assert not is_same(marker, other_marker)
    appended, later_appended = (
        build_batch([Record(0, at, None, b"value")], attributes=LOG_APPEND_TIME) for at in (1, 2)
    )
    assert is_same(appended, later_appended)
    old = bytearray(first)
    old[16] = 1  # a message of that format has its checksum there
    changed = bytearray(old)
    changed[12] ^= 1
    assert not is_same(bytes(old), bytes(changed))


def test_an_answer_that_comes_later_here_is_waited_for() -> None:
    """The recorded cluster had another group.initial.rebalance.delay.ms than the three seconds of Kafka's default."""
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id="",
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
    )
    member = JoinGroupResponseMember(member_id="c-1", metadata=b"")
    response = JoinGroupResponse(
        generation_id=1, protocol_name="range", leader="c-1", member_id="c-1", members=(member,)
    )
    story = Story().ask(ApiKey.JOIN_GROUP, 1, request).answer(ApiKey.JOIN_GROUP, 1, response)
    assert replay(story.frames).different == ()


def test_a_coordinator_that_was_not_found_is_nowhere() -> None:
    brokers = tuple(MetadataResponseBroker(node_id=node, host="k", port=node) for node in (1, 2))
    story = Story().ask(ApiKey.METADATA, 9, MetadataRequest(topics=()))
    story.answer(ApiKey.METADATA, 9, MetadataResponse(brokers=brokers))
    request = FindCoordinatorRequest(coordinator_keys=("g",))
    refused = Coordinator(key="g", node_id=-1, port=-1, error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    story.ask(ApiKey.FIND_COORDINATOR, 4, request)
    story.answer(ApiKey.FIND_COORDINATOR, 4, FindCoordinatorResponse(coordinators=(refused,)))
    assert replay(story.frames).steps[0].differences == ()


def test_a_lone_broker_has_the_coordinators_of_transactions_from_when_the_recorded_one_had_them() -> None:
    request = FindCoordinatorRequest(key_type=1, coordinator_keys=("billing",))
    found = Coordinator(key="billing", node_id=1, host="k", port=1)
    missing = Coordinator(key="billing", node_id=-1, port=-1, error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    for answers in ([found], [missing, found]):
        story = with_orders()
        for answer in answers:
            story.ask(ApiKey.FIND_COORDINATOR, 4, request)
            story.answer(ApiKey.FIND_COORDINATOR, 4, FindCoordinatorResponse(coordinators=(answer,)))
        assert [step.text() for step in replay(story.frames).different] == []


# The command.


def test_a_difference_is_exit_code_1(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    story = Story().ask(ApiKey.HEARTBEAT, 4, HEARTBEAT).answer(ApiKey.HEARTBEAT, 4, HeartbeatResponse())
    story.raw("client", bytes.fromhex("0011 0001 00000009 ffff 0005") + b"PLAIN")
    path = tmp_path / "r.jsonl"
    path.write_text(header() + "".join(map(line_of, story.frames)))
    assert main(["replay", str(path)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "step 1: c on connection 1, Heartbeat v4",
        "  error_code: 0 in the recording, 25 here",
        "left out: 1 × a request that groupcoord does not serve (field request_api_key, offset 0: API key 17 is not served)",
        "1 answers compared, 1 differs",
    ]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"hello\n", "this is not a recording: its first line does not say so"),
        (b"\xff\xfe", "this is not a recording: it is not text"),
        (
            b'{"schema": "groupcoord-recording", "version": 9}\n',
            "this is a recording of version 9; version 1 can be read",
        ),
        (RECORDED.read_bytes()[:2010], "line 3 is not a frame of a recording: "),
    ],
)
def test_what_is_no_recording_is_exit_code_2(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, content: bytes, problem: str
) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(content)
    assert main(["replay", str(path)]) == 2
    assert re.sub("line [0-9]+", "line 3", capsys.readouterr().err).startswith(f"groupcoord replay: {path}: {problem}")


def test_a_file_that_is_not_there_is_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "nowhere.jsonl"]) == 2
    assert capsys.readouterr().err == "groupcoord replay: cannot read nowhere.jsonl: No such file or directory\n"


def test_the_recording_is_what_the_page_says() -> None:
    first = json.loads(RECORDED.read_text().splitlines()[0])
    assert first == {"schema": "groupcoord-recording", "version": 1}
