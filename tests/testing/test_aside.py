"""What takes long, with all that is around the node of a cluster: rules, trace, members in this process."""

import asyncio
import contextlib
import struct
import threading

import pytest

from groupcoord.broker.log_validator import CheckedBatch, LogValidator
from groupcoord.core.effects import Call
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.apis.produce import PartitionProduceData, ProduceResponse, TopicProduceData
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.framing import encode_request, parse_response
from groupcoord.protocol.messages import HeartbeatRequest, ProduceRequest
from groupcoord.testing import Cluster
from groupcoord.testing.trace import RequestReceived, ResponseSent
from tests.broker.data_plane import batch

pytestmark = pytest.mark.asyncio

PRODUCE, HEARTBEAT = APIS[ApiKey.PRODUCE], APIS[ApiKey.HEARTBEAT]
LONG = batch(*[b""] * 3_000, attributes=4)


def request() -> ProduceRequest:
    parts = (PartitionProduceData(index=0, records=LONG),)
    return ProduceRequest(acks=1, timeout_ms=1_000, topic_data=(TopicProduceData(name="orders", partition_data=parts),))


def producing() -> bytes:
    return encode_request(PRODUCE, 9, 1, "c", request())


class Line:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def to(cls, kafka: Cluster) -> "Line":
        host, port = kafka.address.split(":")
        return cls(*await asyncio.open_connection(host, int(port)))

    async def close(self) -> None:
        self.writer.close()
        with contextlib.suppress(ConnectionError):
            await self.writer.wait_closed()

    async def answer(self) -> bytes:
        (size,) = struct.unpack(">i", await self.reader.readexactly(4))
        return await self.reader.readexactly(size)


def errors(frame: bytes) -> set[int]:
    response: ProduceResponse = parse_response(PRODUCE, 9, frame)[1]
    return {part.error_code for topic in response.responses for part in topic.partition_responses}


async def test_it_is_told_and_answered_as_always_and_others_are_served_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with Cluster(topics={"orders": 1}, clock="manual") as kafka:
        check, begun, may_go_on = LogValidator.check, threading.Event(), threading.Event()

        def held(validator: LogValidator, records: bytes, now_ms: int) -> CheckedBatch:
            begun.set()
            may_go_on.wait()
            return check(validator, records, now_ms)

        monkeypatch.setattr(LogValidator, "check", held)
        line, other = await Line.to(kafka), await Line.to(kafka)
        line.writer.write(producing())
        await asyncio.to_thread(begun.wait)
        beat = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
        other.writer.write(encode_request(HEARTBEAT, 4, 7, "d", beat))
        assert parse_response(HEARTBEAT, 4, await other.answer())[1].error_code == ErrorCode.UNKNOWN_MEMBER_ID
        may_go_on.set()
        assert errors(await line.answer()) == {ErrorCode.NONE}
        assert [event.api for event in kafka.trace.of(RequestReceived)] == ["Produce", "Heartbeat"]
        assert [event.api for event in kafka.trace.of(ResponseSent)] == ["Heartbeat", "Produce"]
        await line.close()
        await other.close()


async def test_a_rule_acts_on_the_answer() -> None:
    async with Cluster(topics={"orders": 1}, clock="manual") as kafka:
        kafka.faults.when("Produce").disconnect_answer()
        line = await Line.to(kafka)
        line.writer.write(producing())
        assert await line.reader.read() == b""
        await line.close()
        log = kafka.core.broker.log("orders", 0)
        assert log is not None
        assert log.log_end_offset == 3_000


async def test_a_broker_that_is_stopped_does_it_at_once() -> None:
    async with Cluster(topics={"orders": 1}, clock="manual") as kafka:
        await kafka.stop()
        call = Call(1, 1, PRODUCE, 9, "c", "/127.0.0.1")
        assert len(kafka.core.handle(call, request(), kafka.clock.now_ms())) == 1
