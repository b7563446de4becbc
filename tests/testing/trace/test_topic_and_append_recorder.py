"""A detailed trace: brokers, topics, what is appended to logs, and the bytes of requests and answers."""

import pytest

import groupcoord as gc
from groupcoord.broker.partition_log import PartitionLog
from groupcoord.cluster.assemble import assemble
from groupcoord.config.broker_config import load
from groupcoord.core.effects import Append, Call, NoReply, RawReply, Reply
from groupcoord.core.events import BrokerTask, Requested
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.apis.fetch import FetchableTopicResponse, PartitionData
from groupcoord.protocol.framing import parse_request, parse_response
from groupcoord.protocol.messages import FetchRequest, FetchResponse, HeartbeatRequest, HeartbeatResponse
from groupcoord.testing.engine import SeededRandomSource
from groupcoord.testing.trace import RequestReceived, ResponseSent, Trace, TracingLayer
from groupcoord.testing.trace.events import ClusterDescribed, RecordsAppended
from groupcoord.testing.trace.topic_and_append_recorder import RECORDS_TOLD, TopicAndAppendRecorder
from groupcoord.testing.trace.tracing_layer import FRAME_LIMIT

pytestmark = pytest.mark.asyncio


def detailed(**settings: object) -> gc.Cluster:
    return gc.Cluster(clock="manual", detailed_trace=True, **settings)  # type: ignore[arg-type]


async def test_brokers_and_topics_are_told_at_the_beginning_and_when_they_change() -> None:
    async with detailed(topics={"orders": 2}, brokers=2) as kafka:
        first = kafka.trace.of(ClusterDescribed).one()
        assert [f"{host}:{port}" for _, host, port, _ in first.brokers] == [
            broker.address for broker in kafka.brokers.values()
        ]
        assert {name: len(partitions) for name, partitions in first.topics.items()} == {
            "__consumer_offsets": 50,
            "orders": 2,
        }
        assert first.settings["group_consumer_session_timeout_ms"] == 45_000
        await kafka.create_topic("late", 3)
        assert len(kafka.trace.of(ClusterDescribed).last.topics["late"]) == 3
        to = next(
            number for number in kafka.brokers if number != kafka.trace.of(ClusterDescribed).last.topics["late"][0][0]
        )
        await kafka.move_leader("late", 0, to=to)
        assert kafka.trace.of(ClusterDescribed).last.topics["late"][0][0] == to
        assert "topics __consumer_offsets (50), orders (2), late (3)" in kafka.trace.of(ClusterDescribed).last.text()


async def test_what_is_appended_is_told_with_its_cause_between_the_events_and_the_answer() -> None:
    async with detailed(topics={"orders": 1}) as kafka:
        (member,) = await kafka.consumers(1, group="app", topics="orders")
        member.commit({("orders", 0): 5})
        await kafka.clock.advance(0.1)
        commit = kafka.trace.of(RequestReceived, api="OffsetCommit").entries[0]
        followed = [kafka.trace[seq].event for seq in commit.consequences]
        assert [type(event).__name__ for event in followed] == ["OffsetsCommitted", "RecordsAppended", "ResponseSent"]
        appended = followed[1]
        assert isinstance(appended, RecordsAppended)
        ((offset, key, value),) = appended.records
        assert (appended.topic, offset) == ("__consumer_offsets", appended.base_offset)
        assert key == 'OffsetCommit group="app" topic="orders" partition=0'
        assert value is not None
        assert "offset=5" in value
        assert appended.text().endswith(f"has 1 record more, up to offset {appended.end_offset}: {key}")


async def test_of_other_topics_the_end_is_told_and_tombstones_have_no_value() -> None:
    async with detailed(topics={"orders": 1}) as kafka:
        await kafka.produce("orders", b"a", b"b", partition=0)
        produced = kafka.trace.of(RecordsAppended, topic="orders").one()
        assert (produced.base_offset, produced.end_offset, produced.records) == (0, 2, ())
        assert isinstance(produced.cause, Requested)
        group = kafka.group("app")
        await group.commit({("orders", 0): 1})
        await group.delete_offsets(("orders", 0))
        appended = kafka.trace.of(RecordsAppended, topic="__consumer_offsets").last
        assert [value for _, _, value in appended.records] == [None]
        assert "(tombstone)" in appended.text()


async def test_of_many_records_the_first_are_told() -> None:
    async with detailed(topics={"orders": RECORDS_TOLD + 5}) as kafka:
        await kafka.group("app").commit({("orders", number): 1 for number in range(RECORDS_TOLD + 5)})
        appended = kafka.trace.of(RecordsAppended).last
        assert appended.end_offset - appended.base_offset == RECORDS_TOLD + 5
        assert len(appended.records) == RECORDS_TOLD


async def test_the_end_of_a_transaction_is_told() -> None:
    async with detailed(topics={"orders": 1}) as kafka:
        producer = kafka.manual_producer("tid")
        await producer.init()
        await producer.add_offsets("app")
        await producer.commit_offsets("app", {("orders", 0): 1})
        await producer.end()
        told = [
            key for event in kafka.trace.of(RecordsAppended, topic="__consumer_offsets") for _, key, _ in event.records
        ]
        assert "the end of a transaction: commit" in told


async def test_an_action_without_effects_is_told_with_what_comes_next() -> None:
    core = assemble(load([]), random=SeededRandomSource(0), now_ms=0).core
    recorder = TopicAndAppendRecorder(core)
    assert [event.cause for event in recorder.news([], 5)] == [BrokerTask("the cluster is as follows")]
    core.create_topic("orders", 1, 5)
    assert [type(event) for event in recorder.news([], 5)] == [ClusterDescribed]
    assert list(recorder.news([], 6)) == []


async def test_requests_and_answers_have_their_bytes() -> None:
    async with detailed(topics={"orders": 1}) as kafka:
        await kafka.consumers(1, group="app", topics="orders")
        request = kafka.trace.of(RequestReceived, api="JoinGroup").last
        answer = kafka.trace.of(ResponseSent, api="JoinGroup").last
    assert request.frame is not None
    parsed = parse_request(bytes.fromhex(request.frame)[4:])
    assert (parsed.api.name, parsed.message.group_id, parsed.message.member_id) == ("JoinGroup", "app", request.member)
    assert answer.frame is not None
    correlation_id, joined = parse_response(APIS[ApiKey.JOIN_GROUP], answer.version, bytes.fromhex(answer.frame)[4:])
    assert (correlation_id, joined.member_id) == (answer.correlation_id, answer.member)


async def test_the_bytes_of_long_messages_are_not_kept() -> None:
    async with detailed(topics={"orders": 1}) as kafka:
        await kafka.produce("orders", bytes(FRAME_LIMIT), partition=0)
        assert kafka.trace.of(RequestReceived, api="Produce").one().frame is None
        assert kafka.trace.of(ResponseSent, api="Produce").one().frame is not None
        assert len(await kafka.records("orders")) == 1


class Answers:
    """A cluster that answers as it is told."""

    def __init__(self, *effects: object) -> None:
        self.effects = list(effects)

    def handle(self, *_: object) -> list[object]:
        return self.effects


async def test_faulty_answers_have_the_bytes_they_have() -> None:
    core = assemble(load([]), random=SeededRandomSource(0), now_ms=0).core
    call = Call(1, 1, APIS[ApiKey.HEARTBEAT], 4, "c", "/127.0.0.1")
    wrong = HeartbeatResponse(throttle_time_ms=1 << 40)  # it has four bytes
    for effect, frame in [
        (RawReply(call, b"\1\2"), "0102"),
        (Reply(call, wrong), None),
        (NoReply(call), ""),
    ]:
        trace = Trace()
        layer = TracingLayer(Answers(effect), trace, recorder=TopicAndAppendRecorder(core))  # type: ignore[arg-type]
        layer.handle(call, HeartbeatRequest(group_id="app", generation_id=1, member_id="m"), 0)
        assert [event.frame for event in trace.of(ResponseSent)] == ([] if frame == "" else [frame])


async def test_what_no_bytes_are_known_of_or_too_many_has_none() -> None:
    core = assemble(load([]), random=SeededRandomSource(0), now_ms=0).core
    unknown = Call(1, 1, APIS[ApiKey.API_VERSIONS], 99, "c", "/127.0.0.1")
    fetch = Call(1, 2, APIS[ApiKey.FETCH], 12, "c", "/127.0.0.1")
    partition = PartitionData(partition_index=0, high_watermark=0, records=bytes(FRAME_LIMIT + 1))
    records = FetchResponse(responses=(FetchableTopicResponse(topic="orders", partitions=(partition,)),))
    trace = Trace()
    for call, request, answer in [
        (unknown, None, NoReply(unknown)),
        (fetch, FetchRequest(max_wait_ms=0, min_bytes=1), Reply(fetch, records)),
    ]:
        TracingLayer(Answers(answer), trace, recorder=TopicAndAppendRecorder(core)).handle(call, request, 0)  # type: ignore[arg-type]
    assert trace.of(RequestReceived, api="ApiVersions").one().frame is None
    assert trace.of(ResponseSent, api="Fetch").one().frame is None


async def test_a_log_that_has_grown_before_its_topic_was_deleted_is_not_told() -> None:
    core = assemble(load([]), random=SeededRandomSource(0), now_ms=0).core
    recorder = TopicAndAppendRecorder(core)
    list(recorder.news([], 0))
    core.broker.on_append(PartitionLog(core.broker.topics.get("__consumer_offsets").settings))  # type: ignore[union-attr]
    assert list(recorder.news([Append(1, "__consumer_offsets", 0, ())], 0)) == []


async def test_a_trace_that_is_not_detailed_has_nothing_of_this() -> None:
    async with gc.Cluster(topics={"orders": 1}, clock="manual") as kafka:
        await kafka.consumers(1, group="app", topics="orders")
        kafka.trace.of(ClusterDescribed).none()
        kafka.trace.of(RecordsAppended).none()
        assert {event.frame for event in kafka.trace.of(RequestReceived)} == {None}
