"""A proxy in front of a cluster: what clients get, what is told, and what happens when one side is gone."""

import asyncio
import contextlib
import io
import logging
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

import groupcoord as gc
from groupcoord import Cluster, Consumer
from groupcoord.coordinator.events import OffsetsCommitted
from groupcoord.core.events import Event
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.apis.api_versions import ApiVersion
from groupcoord.protocol.apis.fetch import FetchPartition, FetchTopic
from groupcoord.protocol.apis.metadata import MetadataRequestTopic
from groupcoord.protocol.apis.produce import PartitionProduceData, TopicProduceData
from groupcoord.protocol.batches.record_batch import build_batch
from groupcoord.protocol.batches.records import Record
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.framing import encode_response
from groupcoord.protocol.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    DescribeClusterRequest,
    FetchRequest,
    FindCoordinatorRequest,
    HeartbeatRequest,
    MetadataRequest,
    ProduceRequest,
)
from groupcoord.proxy import connection as connections
from groupcoord.proxy import proxy as proxies
from groupcoord.proxy.address_rewriting import share_codec
from groupcoord.proxy.recording import RecordedFrame
from groupcoord.proxy.written_trace import WrittenTrace
from groupcoord.testing.faults.api import Faults
from groupcoord.testing.faults.layer import FaultInjected
from groupcoord.testing.trace.events import ConnectionClosed, ConnectionOpened, RequestReceived, ResponseSent
from groupcoord.testing.trace.trace import Trace
from groupcoord.wall_clock import wall_clock
from tests.proxy.support import Client, address_of, broker, frame_from, framed, proxy_to

SOON_S = 30.0
pytestmark = [pytest.mark.asyncio, pytest.mark.slow]
HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


@pytest_asyncio.fixture
async def kafka() -> AsyncIterator[gc.Cluster]:
    async with gc.Cluster(brokers=3, topics={"orders": 3}) as cluster:
        yield cluster


async def test_brokers_are_where_the_proxy_is(kafka: gc.Cluster) -> None:
    async with proxy_to(kafka.addresses[0]) as proxy, Client.at(proxy.address) as client:
        metadata = await client.ask(ApiKey.METADATA, 12, MetadataRequest(topics=None))
        told = {f"{broker.host}:{broker.port}" for broker in metadata.brokers}
        assert told == set(proxy.brokers.values())
        assert set(proxy.brokers) == set(kafka.addresses)
        described = await client.ask(ApiKey.DESCRIBE_CLUSTER, 1, DescribeClusterRequest())
        assert {f"{broker.host}:{broker.port}" for broker in described.brokers} == told
        for version in (3, 4):
            request = FindCoordinatorRequest(key="g", coordinator_keys=("g",))
            found = await client.ask(ApiKey.FIND_COORDINATOR, version, request)
            node = found.coordinators[0] if version == 4 else found
            assert f"{node.host}:{node.port}" in told


async def test_a_client_of_the_proxy_stays_with_it(kafka: gc.Cluster) -> None:
    trace = WrittenTrace()
    await kafka.produce("orders", b"hello")
    async with (
        proxy_to(kafka.addresses[0], trace) as proxy,
        Consumer("orders", bootstrap_servers=proxy.address, group_id="g", auto_offset_reset="earliest") as consumer,
    ):
        async with asyncio.timeout(SOON_S):
            record = await anext(aiter(consumer))
        assert record.value == b"hello"
        await consumer.commit()
    assert trace.why("g").startswith("generation 1: ")
    assert trace.of(OffsetsCommitted).last.offsets
    there = {entry.event.connection_id for entry in kafka.trace if isinstance(entry.event, ConnectionOpened)}
    assert len(there) >= len(trace.of(ConnectionOpened)) - 1  # all of them went through the proxy


async def test_what_names_no_broker_is_passed_on_byte_for_byte() -> None:
    """With a tagged field that nobody knows, which an encoder would drop."""
    answer = bytes.fromhex("00000001 00 00000000 001b 01 63 02 aabb")
    async with (
        broker(lambda _: framed(answer)) as there,
        proxy_to(there) as proxy,
        Client.at(proxy.address) as client,
    ):
        client.send(ApiKey.HEARTBEAT, 4, HEARTBEAT)
        assert await frame_from(client.reader) == answer


async def test_requests_that_are_sent_ahead_are_answered_in_order(kafka: gc.Cluster) -> None:
    async with proxy_to(kafka.addresses[0]) as proxy, Client.at(proxy.address) as client:
        for _ in range(200):
            client.send(ApiKey.METADATA, 12, MetadataRequest(topics=()))
        for number in range(1, 201):
            async with asyncio.timeout(SOON_S):
                assert int.from_bytes((await frame_from(client.reader))[:4]) == number


async def test_requests_of_one_correlation_id_are_all_answered(kafka: gc.Cluster) -> None:
    async with proxy_to(kafka.addresses[0]) as proxy, Client.at(proxy.address) as client:
        for _ in range(5):
            client.send(ApiKey.METADATA, 12, MetadataRequest(topics=()))
            client._correlation_id = 0
        for _ in range(5):
            assert (await client.answer(ApiKey.METADATA, 12)).error_code == 0


def produce(acks: int, value: bytes = b"v") -> ProduceRequest:
    data = PartitionProduceData(index=0, records=build_batch([Record(0, 0, None, value)]))
    return ProduceRequest(
        acks=acks, timeout_ms=1000, topic_data=(TopicProduceData(name="orders", partition_data=(data,)),)
    )


async def test_a_produce_that_wants_no_answer_gets_none() -> None:
    async with (
        Cluster(topics={"orders": 1}) as kafka,
        proxy_to(kafka.address) as proxy,
        Client.at(proxy.address) as client,
    ):
        for _ in range(3):
            client.send(ApiKey.PRODUCE, 9, produce(0))
        assert (await client.ask(ApiKey.METADATA, 12, MetadataRequest(topics=()))).error_code == 0
        assert len(await kafka.wait_records("orders", 3)) == 3


async def test_large_batches_pass_in_both_directions() -> None:
    value = bytes(900_000)
    async with (
        Cluster(topics={"orders": 1}) as kafka,
        proxy_to(kafka.address) as proxy,
        Client.at(proxy.address) as client,
    ):
        for _ in range(6):
            client.send(ApiKey.PRODUCE, 9, produce(1, value))
        for _ in range(6):
            response = await client.answer(ApiKey.PRODUCE, 9)
            assert response.responses[0].partition_responses[0].error_code == 0
        partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=20_000_000)
        request = FetchRequest(
            max_wait_ms=0, min_bytes=1, topics=(FetchTopic(topic="orders", partitions=(partition,)),)
        )
        for _ in range(3):
            client.send(ApiKey.FETCH, 11, request)
        for _ in range(3):
            fetched = await client.answer(ApiKey.FETCH, 11)
            assert len(fetched.responses[0].partitions[0].records) > 5_000_000


# ApiVersions.


async def test_versions_whose_answers_could_not_be_rewritten_are_not_offered() -> None:
    api = APIS[ApiKey.API_VERSIONS]

    def answers(frame: bytes) -> bytes:
        offered = (
            ApiVersion(api_key=ApiKey.METADATA, min_version=0, max_version=99),
            ApiVersion(api_key=9999, min_version=0, max_version=99),
        )
        return encode_response(api, 3, int.from_bytes(frame[4:8]), ApiVersionsResponse(api_keys=offered))

    request = ApiVersionsRequest(client_software_name="c", client_software_version="1")
    async with broker(answers) as there, proxy_to(there) as proxy, Client.at(proxy.address) as client:
        told = await client.ask(ApiKey.API_VERSIONS, 3, request)
        assert [(each.api_key, each.max_version) for each in told.api_keys] == [
            (ApiKey.METADATA, APIS[ApiKey.METADATA].max_version),
            (9999, 99),
        ]


async def test_a_newer_version_of_api_versions_is_refused_as_a_broker_does(kafka: gc.Cluster) -> None:
    async with proxy_to(kafka.addresses[0]) as proxy, Client.at(proxy.address) as client:
        client.writer.write(framed(bytes.fromhex("0012 0063 00000001 ffff 00")))
        told = await client.answer(ApiKey.API_VERSIONS, 0)
        assert (told.error_code, told.api_keys[0].max_version) == (ErrorCode.UNSUPPORTED_VERSION, 4)


async def test_an_older_broker_says_in_version_0_which_versions_it_has() -> None:
    answer = bytes.fromhex("00000001 0023 00000001 0012 0000 0002")
    async with broker(lambda _: framed(answer)) as there, proxy_to(there) as proxy, Client.at(proxy.address) as client:
        request = ApiVersionsRequest(client_software_name="c", client_software_version="1")
        client.send(ApiKey.API_VERSIONS, 3, request)
        assert await frame_from(client.reader) == answer


# What is not known here.


@pytest.mark.parametrize(
    ("frame", "api", "version"),
    [
        (bytes.fromhex("0011 0001 00000001 0001 63 0005") + b"PLAIN", "SaslHandshake", 1),
        (bytes.fromhex("000c 0063 00000001 0001 63"), "Heartbeat", 99),
        (b"\x00token", "unreadable bytes", -1),
        (bytes.fromhex("7fff 0000 00000001 0001 63"), "unreadable bytes", -1),
    ],
)
async def test_what_is_not_known_passes_untouched_and_is_told(frame: bytes, api: str, version: int) -> None:
    trace = WrittenTrace()
    answer = b"\x00\x00\x00\x01any answer"
    seen = []

    def answers(asked: bytes) -> bytes:
        seen.append(asked)
        return framed(answer)

    async with broker(answers) as there, proxy_to(there, trace) as proxy, Client.at(proxy.address) as client:
        client.writer.write(framed(frame))
        assert await frame_from(client.reader) == answer
    assert seen == [frame]
    asked, answered = trace.of(RequestReceived).one(), trace.of(ResponseSent).one()
    assert (asked.api, asked.version, asked.details["bytes"]) == (api, version, len(frame))
    assert (answered.api, answered.error, answered.details["bytes"]) == (api, "RAW", len(answer))


@pytest.mark.parametrize("version", [1, 2])
async def test_share_fetch_tells_where_leaders_are_through_the_proxy(version: int) -> None:
    codec = share_codec(ApiKey.SHARE_FETCH, version)
    kinds = {field.name: field.struct for field in codec.schema.fields}
    node = kinds["node_endpoints"]
    assert node is not None
    body = {field.name: 0 for field in codec.schema.fields}
    moved_to = (node.message(node_id=7, host="elsewhere", port=9999),)
    response = codec.schema.message(**body | {"error_message": None, "responses": (), "node_endpoints": moved_to})
    answer = bytes.fromhex("00000001 00") + codec.encode(response)
    request = bytes.fromhex("004e") + version.to_bytes(2) + bytes.fromhex("00000001 0001 63 00")
    async with broker(lambda _: framed(answer)) as there, proxy_to(there) as proxy, Client.at(proxy.address) as client:
        client.writer.write(framed(request))
        told = codec.decode(await frame_from(client.reader), 5).node_endpoints[0]
        assert f"{told.host}:{told.port}" == proxy.brokers["elsewhere:9999"]


@pytest.mark.parametrize(
    ("request_frame", "answer"),
    [
        (bytes.fromhex("004e 0001 00000001 0001 63 00"), bytes.fromhex("00000001 00 ff")),
        (bytes.fromhex("000c 0004 00000001 0001 63 00 0267 00000001 026d 00 00"), bytes.fromhex("00000001 00 ff")),
    ],
)
async def test_an_answer_that_cannot_be_read_is_passed_on(
    request_frame: bytes, answer: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with broker(lambda _: framed(answer)) as there, proxy_to(there) as proxy, Client.at(proxy.address) as client:
        client.writer.write(framed(request_frame))
        assert await frame_from(client.reader) == answer
    assert "is forwarded unread" in caplog.text


# One side is gone, or speaks something else.


async def test_a_broker_that_hangs_up_disconnects_the_client(kafka: gc.Cluster) -> None:
    trace = WrittenTrace()
    async with (
        broker(lambda _: None) as there,
        proxy_to(there, trace) as proxy,
        Client.at(proxy.address) as client,
    ):
        client.send(ApiKey.HEARTBEAT, 4, HEARTBEAT)
        assert await client.is_closed()
    assert trace.of(ConnectionClosed).one().reason == "the broker closed the connection"


async def test_a_broker_that_is_away_is_told_once_and_that_it_is_back(caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = taken.getsockname()
        async with proxy_to(address) as proxy:
            for _ in range(2):
                async with Client.at(proxy.address) as client:
                    assert await client.is_closed()
            where = f"the broker at 127.0.0.1:{address[1]}"
            assert caplog.text.count(f"{where} cannot be reached (Connection refused)") == 1
            taken.close()
            server = await asyncio.start_server(lambda _, writer: writer.close(), *address)
            for _ in range(2):
                async with Client.at(proxy.address) as client:
                    assert await client.is_closed()
            server.close()
            assert caplog.text.count(f"{where} is back") == 1


async def test_a_broker_that_does_not_answer_is_given_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(connections, "_CONNECT_SECONDS", 0.0)
    async with proxy_to(("127.0.0.1", 1)) as proxy, Client.at(proxy.address) as client:
        assert await client.is_closed()
    assert "cannot be reached (no answer within 0 s)" in caplog.text


async def test_a_client_that_leaves_is_no_reason_to_say_anything(kafka: gc.Cluster) -> None:
    closed = asyncio.Event()
    trace = WrittenTrace()

    def tell(event: Event) -> None:
        trace(event)
        if isinstance(event, ConnectionClosed):
            closed.set()

    async with proxy_to(kafka.addresses[0], tell) as proxy:
        async with Client.at(proxy.address) as client:
            await client.ask(ApiKey.METADATA, 12, MetadataRequest(topics=()))
        async with asyncio.timeout(SOON_S):
            await closed.wait()
    assert trace.of(ConnectionClosed).one().reason == ""


async def test_a_client_that_leaves_while_its_broker_is_sought_leaves_nothing_behind() -> None:
    """A socket that is bound but does not listen yet."""
    async with broker(lambda _: None) as there, proxy_to(there) as proxy:
        for _ in range(20):
            async with Client.at(proxy.address) as client:
                client.writer.transport.abort()
    assert proxy._connections == {}


async def test_tls_is_refused_with_a_sentence(kafka: gc.Cluster, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with proxy_to(kafka.addresses[0]) as proxy, Client.at(proxy.address) as client:
        client.writer.write(bytes.fromhex("1603010200010001"))
        assert await client.is_closed()
    assert "it speaks TLS; the proxy speaks plain text" in caplog.text


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (bytes.fromhex("15030300020246"), "the broker speaks TLS, which the proxy does not"),
        (b"\xff\xff\xff\xff", "the broker broke the protocol: field length, offset 0: a frame of -1 bytes"),
        (framed(b"\x00\x00\x00\x09"), "the broker sent a response to no request"),
    ],
)
async def test_a_broker_that_speaks_something_else_is_left(
    answer: bytes, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with broker(lambda _: answer) as there, proxy_to(there) as proxy, Client.at(proxy.address) as client:
        client.send(ApiKey.HEARTBEAT, 4, HEARTBEAT)
        assert await client.is_closed()
    assert reason in caplog.text


async def test_a_client_that_breaks_the_protocol_is_disconnected(
    kafka: gc.Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with proxy_to(kafka.addresses[0]) as proxy, Client.at(proxy.address) as client:
        client.writer.write(b"\xff\xff\xff\xff")
        assert await client.is_closed()
    assert "a frame of -1 bytes" in caplog.text


async def test_who_does_not_leave_is_disconnected_when_the_proxy_stops(
    kafka: gc.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proxies, "GRACE_SECONDS", 0.0)
    monkeypatch.setattr(connections.ClientConnection, "close", lambda self, reason: None)
    async with proxy_to(kafka.addresses[0]) as proxy, Client.at(proxy.address) as client:
        await client.ask(ApiKey.METADATA, 12, MetadataRequest(topics=()))
        await proxy.stop()
        assert await client.is_closed()
    assert proxy._connections == {}


async def test_a_port_that_is_taken_is_an_error_for_the_first_and_skipped_for_others(kafka: gc.Cluster) -> None:
    async with proxy_to(kafka.addresses[0]) as first:
        taken = proxy_to(kafka.addresses[0], port=first.port)
        with pytest.raises(OSError, match="already in use"):
            await taken.start()
        async with Client.at(first.address) as client:
            with socket.socket() as next_port:
                with contextlib.suppress(OSError):  # if somebody else has it, that is as good
                    next_port.bind(("127.0.0.1", first.port + 1))
                metadata = await client.ask(ApiKey.METADATA, 12, MetadataRequest(topics=()))
                assert first.port + 1 not in {broker.port for broker in metadata.brokers}


# Rules of faults.


def rules(*add: Any) -> Faults:
    faults = Faults(now_ms=wall_clock())
    for one in add:
        one(faults)
    return faults


async def test_rules_refuse_and_delay_and_disconnect(kafka: gc.Cluster) -> None:
    faults = rules(
        lambda faults: faults.when("Heartbeat", group="g").refuse(ErrorCode.REBALANCE_IN_PROGRESS),
        lambda faults: faults.when("Metadata").delay(ms=5),
        lambda faults: faults.when("FindCoordinator").disconnect(),
    )
    trace = WrittenTrace()
    async with proxy_to(kafka.addresses[0], trace, faults=faults) as proxy, Client.at(proxy.address) as client:
        for _ in range(3):
            client.send(ApiKey.METADATA, 12, MetadataRequest(topics=()))
        for _ in range(3):
            assert (await client.answer(ApiKey.METADATA, 12)).error_code == 0
        assert (await client.ask(ApiKey.HEARTBEAT, 4, HEARTBEAT)).error_code == ErrorCode.REBALANCE_IN_PROGRESS
        client.send(ApiKey.FIND_COORDINATOR, 4, FindCoordinatorRequest(coordinator_keys=("g",)))
        assert await client.is_closed()
    faults.check()
    assert len(trace.of(FaultInjected)) == 3


async def test_rules_change_answers(kafka: gc.Cluster) -> None:
    faults = rules(lambda faults: faults.when("Metadata", topic="orders").hide_topic())
    async with proxy_to(kafka.addresses[0], faults=faults) as proxy, Client.at(proxy.address) as client:
        asked = MetadataRequest(topics=(MetadataRequestTopic(name="orders"),))
        told = await client.ask(ApiKey.METADATA, 12, asked)
        assert told.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert {f"{each.host}:{each.port}" for each in told.brokers} == set(proxy.brokers.values())


async def test_a_held_request_goes_on_when_it_is_released(kafka: gc.Cluster) -> None:
    faults = Faults(now_ms=wall_clock())
    hold = faults.when("Metadata").hold()
    async with proxy_to(kafka.addresses[0], faults=faults) as proxy, Client.at(proxy.address) as client:
        client.send(ApiKey.METADATA, 12, MetadataRequest(topics=()))
        await hold.wait()
        hold.release()
        assert (await client.answer(ApiKey.METADATA, 12)).error_code == 0


async def test_damaged_answers_hang_up(kafka: gc.Cluster) -> None:
    faults = rules(lambda faults: faults.when("Heartbeat").corrupt("cut"))
    async with proxy_to(kafka.addresses[0], faults=faults) as proxy, Client.at(proxy.address) as client:
        client.send(ApiKey.HEARTBEAT, 4, HEARTBEAT)
        async with asyncio.timeout(SOON_S):
            assert 0 < len(await client.reader.read()) < 15


async def test_answers_for_a_client_that_is_gone_are_dropped(kafka: gc.Cluster) -> None:
    faults = Faults(now_ms=wall_clock())
    hold = faults.when("Metadata").hold()
    gone = asyncio.Event()

    def tell(event: Event) -> None:
        if isinstance(event, ConnectionClosed):
            gone.set()

    async with proxy_to(kafka.addresses[0], tell, faults=faults) as proxy:
        async with Client.at(proxy.address) as client:
            client.send(ApiKey.METADATA, 12, MetadataRequest(topics=()))
            await hold.wait()
        async with asyncio.timeout(SOON_S):
            await gone.wait()
        hold.release()


async def test_delays_of_several_clients_end_each_in_its_time(kafka: gc.Cluster) -> None:
    faults = Faults(now_ms=wall_clock())
    late = faults.when("Metadata").delay(ms=60)
    soon = faults.when("DescribeCluster").delay(ms=1)
    async with (
        proxy_to(kafka.addresses[0], faults=faults) as proxy,
        Client.at(proxy.address) as first,
        Client.at(proxy.address) as second,
    ):
        first.send(ApiKey.METADATA, 12, MetadataRequest(topics=()))
        await late.acted()
        assert (await second.ask(ApiKey.DESCRIBE_CLUSTER, 1, DescribeClusterRequest())).error_code == 0
        assert (await first.answer(ApiKey.METADATA, 12)).error_code == 0
    assert soon.uses == 1


async def test_a_delay_that_is_under_way_ends_with_the_proxy(kafka: gc.Cluster) -> None:
    faults = Faults(now_ms=wall_clock())
    delay = faults.when("Metadata").delay(ms=3_600_000)
    async with proxy_to(kafka.addresses[0], faults=faults) as proxy, Client.at(proxy.address) as client:
        client.send(ApiKey.METADATA, 12, MetadataRequest(topics=()))
        await delay.acted()
    assert proxy._timer is None or proxy._timer.cancelled()


# What is written.


async def test_the_trace_is_written_while_it_happens(kafka: gc.Cluster, tmp_path: Path) -> None:
    json_file, text_file = (tmp_path / "t.jsonl").open("w"), io.StringIO()
    trace = WrittenTrace(json_file=json_file, text_file=text_file, limit=2)
    async with proxy_to(kafka.addresses[0], trace) as proxy, Client.at(proxy.address) as client:
        await client.ask(ApiKey.METADATA, 12, MetadataRequest(topics=()))
    json_file.close()
    assert len(trace) == 2
    read = Trace.load(tmp_path / "t.jsonl")
    assert [type(entry.event) for entry in read] == [ConnectionOpened, RequestReceived, ResponseSent, ConnectionClosed]
    assert len(text_file.getvalue().splitlines()) == 4


async def test_frames_are_recorded_as_they_were_sent(kafka: gc.Cluster) -> None:
    frames: list[RecordedFrame] = []
    async with (
        proxy_to(kafka.addresses[0], record=frames.append) as proxy,
        Client.at(proxy.address) as client,
    ):
        await client.ask(ApiKey.METADATA, 12, MetadataRequest(topics=()))
    assert [(frame.connection, frame.broker, frame.sender) for frame in frames] == [
        (1, kafka.addresses[0], "client"),
        (1, kafka.addresses[0], "broker"),
    ]
    _, port = address_of(kafka.addresses[0])
    assert port.to_bytes(4) in frames[1].frame
