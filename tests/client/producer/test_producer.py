"""The producer as its user sees it."""

import asyncio
import logging
from dataclasses import replace
from typing import Any

import pytest

from groupcoord.client.client_errors import BrokerError, DisconnectedError
from groupcoord.client.kafka_producer import Producer
from groupcoord.client.producer import producer_events as e
from groupcoord.client.producer.producer_errors import (
    BufferExhaustedError,
    DeliveryTimeoutError,
    MetadataTimeoutError,
    ProducerClosedError,
    RecordTooLargeError,
)
from groupcoord.client.producer.sent_records import RecordMetadata
from groupcoord.core.effects import Call, CloseConnection, Effect
from groupcoord.core.events import Event
from groupcoord.partitioners import RoundRobinPartitioner
from groupcoord.protocol.apis.metadata import MetadataResponse, MetadataResponseBroker
from groupcoord.protocol.errors import ErrorCode as E
from groupcoord.protocol.messages import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    MetadataRequest,
    ProduceRequest,
)
from tests.client.broker import HANG, HANG_UP, Broker, broker, patiently

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]


def producer(real: Broker, **how: Any) -> Producer:
    return Producer(real.address, **{"retry_backoff_ms": 1, "reconnect_backoff_ms": 1, **how})


async def values(real: Broker, topic: str = "t") -> list[bytes | None]:
    return [record.value for record in await real.cluster.records(topic)]


def told(events: list[Event], kind: type[Event]) -> list[str]:
    return [event.text() for event in events if isinstance(event, kind)]


# --- records


@patiently
async def test_a_record_is_stored_as_it_was_sent() -> None:
    async with broker() as real:
        async with producer(real, key_serializer=str.encode, value_serializer=str.encode) as one:
            at = await one.send_and_wait("t", "value", "key", timestamp_ms=5, headers={"trace": b"1", "none": None})
            assert at == RecordMetadata("t", 0, 0, 5)
            stored = await one.send("t", "later", "key", headers=[("a", b"1"), ("a", b"2")])
            assert (await stored).offset == 1
        first, second = await real.cluster.records("t")
        assert (first.key, first.value, first.timestamp_ms) == (b"key", b"value", 5)
        assert first.headers == (("trace", b"1"), ("none", None))
        assert second.headers == (("a", b"1"), ("a", b"2"))
        assert second.timestamp_ms > 5


@patiently
async def test_many_records_to_many_partitions_in_order() -> None:
    async with broker({"t": 3}) as real:
        async with producer(real, batch_size=500, partitioner_ignore_keys=False) as one:
            stored = [await one.send("t", b"%d" % number, b"%d" % (number % 7)) for number in range(500)]
            places = await asyncio.gather(*stored)
        found = {(record.partition, record.offset): record.value for record in await real.cluster.records("t")}
        assert [found[place.partition, place.offset] for place in places] == [b"%d" % number for number in range(500)]
        assert len(found) == 500


@patiently
async def test_keys_go_where_java_sends_them_and_other_records_where_the_batch_is() -> None:
    async with broker({"t": 3}) as real, producer(real, chance=lambda: 0.0) as one:
        assert [(await one.send_and_wait("t", b"", key)).partition for key in (b"foobar", b"kafka")] == [0, 1]
        assert (await one.send_and_wait("t", b"", partition=2)).partition == 2
        assert (await one.send_and_wait("t", b"")).partition == 0
        assert await one.partitions_for("t") == {0, 1, 2}
    async with broker({"t": 3}) as real, producer(real, partitioner_ignore_keys=True, chance=lambda: 0.0) as one:
        assert (await one.send_and_wait("t", b"", b"kafka")).partition == 0


@patiently
async def test_a_partitioner_of_ones_own() -> None:
    async with broker({"t": 3}) as real:
        async with producer(real, partitioner=lambda key, partitions, available: len(key or b"")) as one:
            assert (await one.send_and_wait("t", b"", b"22")).partition == 2
            with pytest.raises(ValueError, match="the partitioner chose 7 for topic t: it has 3, from 0 on"):
                await one.send("t", b"", b"7777777")
        async with producer(real, partitioner=RoundRobinPartitioner()) as one:
            assert [(await one.send_and_wait("t", b"")).partition for _ in range(4)] == [0, 1, 2, 0]


@patiently
async def test_the_time_of_the_topic_is_that_of_its_records() -> None:
    async with broker({}) as real, producer(real) as one:
        await real.cluster.create_topic("s", 1, configs={"message.timestamp.type": "LogAppendTime"})
        assert (await one.send_and_wait("s", b"", timestamp_ms=5)).timestamp_ms > 5


@patiently
async def test_acks_0_says_nothing_of_offsets() -> None:
    async with broker() as real, producer(real, acks=0) as one:
        assert (await one.send_and_wait("t", b"a")).offset == -1
        await real.cluster.wait_records("t", 1)


@patiently
async def test_a_broker_that_does_not_know_ids_of_topics() -> None:
    async with broker() as real:
        real.speaks(Produce=12, Metadata=9)
        async with producer(real, compression_type="lz4") as one:
            assert (await one.send_and_wait("t", b"a")).offset == 0
        assert [call.version for call in real.calls if call.api.name == "Produce"] == [12]
        assert await values(real) == [b"a"]


@patiently
async def test_flush_waits_for_all_and_for_nothing_if_there_is_nothing() -> None:
    async with broker() as real, producer(real, linger_ms=60_000, delivery_timeout_ms=100_000) as one:
        await one.flush()
        stored = [await one.send("t", b"a") for _ in range(3)]
        await one.flush()
        assert all(each.done() for each in stored)
        assert repr(one) == "<Producer open, 0 batches not acknowledged>"
    assert repr(one) == "<Producer closed, 0 batches not acknowledged>"


@patiently
async def test_nobody_sees_a_complete_batch_whose_futures_are_not_done() -> None:
    async with broker() as real, producer(real) as one:
        stored = await one.send("t", b"a")
        sender, seen = one._sender, []
        produced = sender.produced

        def produced_and_look(*arguments: Any) -> None:
            produced(*arguments)
            asyncio.get_running_loop().call_soon(lambda: seen.append((stored.done(), len(one._accumulator.incomplete))))

        sender.produced = produced_and_look  # type: ignore[method-assign,assignment]
        await one.flush()
        stored.result()
        while not seen:
            await one.partitions_for("t")
        assert seen == [(True, 0)]


# --- what is refused


@patiently
async def test_what_is_no_record() -> None:
    async with broker() as real, producer(real, max_request_size=1_000) as one:
        for wrong, why in (
            ({"value": "text"}, "the value of a record is bytes: b'text', not 'text'"),
            ({"key": 5}, "the key of a record is bytes, not 5"),
            ({"headers": {"a": "text"}}, "the header 'a' of a record is bytes"),
            ({"headers": [("a",)]}, "values by their keys"),
            ({"headers": [(b"a", b"1")]}, "values by their keys"),
        ):
            with pytest.raises(TypeError, match=why):
                await one.send("t", **wrong)
        with pytest.raises(RecordTooLargeError, match="takes up to 1,084 bytes, and max_request_size is 1,000"):
            await one.send("t", bytes(998))
        with pytest.raises(ValueError, match="topic t has no partition 9: it has 1, from 0 on"):
            await one.send("t", b"", partition=9)
        assert (await one.send_and_wait("t", bytes(800), headers={"a": b"1"})).offset == 0


@patiently
async def test_new_partitions_are_found_when_they_are_named() -> None:
    async with broker() as real, producer(real) as one:
        await one.send_and_wait("t", b"")
        await real.enlarges("t", 2)
        assert (await one.send_and_wait("t", b"", partition=1)).partition == 1


@patiently
async def test_a_producer_that_is_not_open() -> None:
    async with broker() as real:
        one = producer(real)
        for ask in (one.send("t", b""), one.partitions_for("t")):
            with pytest.raises(ProducerClosedError, match="not open"):
                await ask
        await one.stop()
    with pytest.raises(DisconnectedError):
        await Producer("127.0.0.1:1").start()
    with pytest.raises(ValueError, match="did you mean linger_ms"):
        Producer("127.0.0.1:1", linger=5)


@patiently
async def test_a_topic_that_cannot_be() -> None:
    async with broker() as real, producer(real) as one:
        with pytest.raises(BrokerError, match="topic a/b: INVALID_TOPIC_EXCEPTION"):
            await one.send("a/b", b"")


@patiently
async def test_a_topic_that_is_not_there_is_waited_for_and_told_of(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "groupcoord.client")
    async with broker({}, auto_create_topics_enable=False) as real:
        warned = asyncio.Event()
        async with producer(real, listeners=[lambda event: warned.set()]) as one:
            sending = asyncio.gather(*(one.send("new", b"") for _ in range(2)))
            await warned.wait()
            await real.cluster.create_topic("new", 1)
            for stored in await sending:
                await stored
    messages = [record.getMessage() for record in caplog.records if record.name == "groupcoord.client"]
    assert messages[0].startswith("producer groupcoord: trouble with topic new: brokers said UNKNOWN_TOPIC_OR_PART")
    assert messages[1].startswith("producer groupcoord: no more trouble with topic new, after")
    assert [record.levelname for record in caplog.records if record.name == "groupcoord.client"] == ["WARNING", "INFO"]


@patiently
async def test_a_topic_is_not_waited_for_for_ever() -> None:
    async with broker({}, auto_create_topics_enable=False) as real, producer(real, max_block_ms=20) as one:
        with pytest.raises(MetadataTimeoutError, match="topic new: for 20 ms brokers said UNKNOWN_TOPIC"):
            await one.send("new", b"")
        real.answers(MetadataRequest, HANG)
        with pytest.raises(MetadataTimeoutError, match="topic other: for 20 ms no broker said"):
            await one.send("other", b"")


@patiently
async def test_no_broker_says_which_partitions_there_are(caplog: pytest.LogCaptureFixture) -> None:
    async with broker() as real, producer(real) as one:
        real.answers(MetadataRequest, *[HANG_UP] * 3)
        assert (await one.send_and_wait("t", b"")).offset == 0
    assert "metadata: " in caplog.text


# --- memory


@patiently
async def test_send_waits_for_memory() -> None:
    events: list[Event] = []
    async with broker() as real:
        real.answers(InitProducerIdRequest, InitProducerIdResponse(error_code=14, producer_id=-1, producer_epoch=-1))
        async with producer(real, buffer_memory=40_000, listeners=[events.append]) as one:
            stored = [await one.send("t", bytes(9_000)) for _ in range(10)]
            assert sorted(place.offset for place in await asyncio.gather(*stored)) == list(range(10))
    assert told(events, e.SendBlocked)[0] == "send waits for memory: 7,232 bytes of buffer_memory are free"


@pytest.mark.slow
@patiently
async def test_send_waits_for_memory_for_max_block_ms_at_most() -> None:
    # Within that time the partitions of the topic have to be found, too, however busy the machine is.
    async with broker() as real, producer(real, buffer_memory=20_000, max_block_ms=500) as one:
        real.answers(ProduceRequest, HANG)
        await one.send("t", bytes(16_000))
        with pytest.raises(BufferExhaustedError, match=r"no memory for 500 ms: the 20,000 bytes of buffer_memory"):
            await one.send("t", bytes(16_000))
        await one.stop(timeout_ms=0)


# --- trouble


@patiently
async def test_a_broker_that_hangs_up_is_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "groupcoord.client")
    async with broker() as real:
        real.answers(ProduceRequest, HANG_UP, HANG_UP)
        async with producer(real) as one:
            assert (await one.send_and_wait("t", b"a")).offset == 0
        assert await values(real) == [b"a"]
    ours = [(record.levelname, record.getMessage()) for record in caplog.records if record.name == "groupcoord.client"]
    assert [level for level, _ in ours] == ["WARNING", "WARNING", "INFO", "INFO"]
    assert ours[1][1].startswith("producer groupcoord: trouble with t-0: NETWORK_EXCEPTION")
    assert ours[-1][1].startswith("producer groupcoord: no more trouble with t-0, after")


@patiently
async def test_a_batch_that_was_stored_and_not_acknowledged_is_not_stored_twice() -> None:
    async with broker() as real:
        handle = real._handle

        def store_and_hang_up(call: Call, request: Any, now_ms: int) -> list[Effect]:
            effects = handle(call, request, now_ms)
            if not isinstance(request, ProduceRequest):
                return effects
            real._handle = handle
            return [CloseConnection(call, "for the test")]

        real._handle = store_and_hang_up
        async with producer(real) as one:
            assert (await one.send_and_wait("t", b"a")).offset == 0
        assert await values(real) == [b"a"]


@patiently
async def test_no_answer_in_time() -> None:
    async with broker() as real:
        real.answers(ProduceRequest, HANG)
        async with producer(real, request_timeout_ms=50, delivery_timeout_ms=10_000) as one:
            assert (await one.send_and_wait("t", b"a")).offset == 0


@patiently
async def test_what_is_never_acknowledged_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    async with broker() as real:
        real.answers(ProduceRequest, HANG)
        async with producer(real, request_timeout_ms=10_000, linger_ms=0, delivery_timeout_ms=10_000) as one:
            stored = await one.send("t", b"a")
            (batch,) = one._accumulator.incomplete
            batch.created_ms -= 10_000
            with pytest.raises(DeliveryTimeoutError, match=r"1 record\(s\) for t-0 were not acknowledged in"):
                await stored
            await one.stop(timeout_ms=0)
    assert caplog.text.count("were not acknowledged") == 1


@patiently
async def test_a_refused_record_says_why() -> None:
    async with broker({"t": 1}) as real:
        await real.cluster.create_topic("small", 1, configs={"max.message.bytes": 100})
        async with producer(real) as one:
            stored = await one.send("small", bytes(500))
            with pytest.raises(BrokerError, match="Produce to small-0: MESSAGE_TOO_LARGE: "):
                await stored
            many = [await one.send("small", b"x") for _ in range(30)]
            assert [place.offset for place in await asyncio.gather(*many)] == list(range(30))


@patiently
async def test_a_cancelled_future_is_left_alone() -> None:
    async with broker() as real, producer(real) as one:
        cancelled, stored = await one.send("t", b"a"), await one.send("t", b"b")
        cancelled.cancel()
        assert (await stored).offset == 1
        real.answers(ProduceRequest, HANG)
        cancelled = await one.send("t", b"c")
        cancelled.cancel()
        await one.stop(timeout_ms=0)


@patiently
async def test_no_id_no_records() -> None:
    async with broker() as real:
        refused = InitProducerIdResponse(error_code=E.CLUSTER_AUTHORIZATION_FAILED, producer_id=-1, producer_epoch=-1)
        real.answers(InitProducerIdRequest, HANG_UP, refused)
        async with producer(real) as one:
            stored = await one.send("t", b"a")
            with pytest.raises(BrokerError, match="InitProducerId: CLUSTER_AUTHORIZATION_FAILED"):
                await stored
            with pytest.raises(BrokerError, match="InitProducerId: CLUSTER_AUTHORIZATION_FAILED"):
                await one.send("t", b"a")


@patiently
async def test_a_leader_that_cannot_be_reached_is_looked_for_again(caplog: pytest.LogCaptureFixture) -> None:
    async with broker() as real:
        elsewhere_first = iter([1])

        def elsewhere(request: MetadataRequest, answer: MetadataResponse) -> MetadataResponse:
            port = next(elsewhere_first, None) if request.topics else None
            if port is None:
                return answer
            return replace(answer, brokers=(MetadataResponseBroker(node_id=1, host="127.0.0.1", port=port),))

        real.alter(MetadataRequest, elsewhere)
        async with producer(real) as one:
            assert (await one.send_and_wait("t", b"a")).offset == 0
    assert "broker 1: 127.0.0.1:1 cannot be reached" in caplog.text


@patiently
async def test_stopping_without_a_broker_ends_and_says_what_is_lost() -> None:
    async with broker() as real:
        one = producer(real)
        await one.start()
        real.answers(ProduceRequest, HANG)
        stored = await one.send("t", b"a")
        finding = asyncio.create_task(one.send("other", b""))
        real.answers(MetadataRequest, HANG)
        await real.gets(ProduceRequest)
        await one.stop(timeout_ms=20)
        with pytest.raises(ProducerClosedError, match="stopped before the record was acknowledged"):
            await stored
        finding.cancel()


@patiently
async def test_a_listener_that_raises_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def raises(event: Event) -> None:
        raise RuntimeError(event)

    async with broker() as real, producer(real, listeners=[raises]) as one:
        assert (await one.send_and_wait("t", b"a")).offset == 0
    assert "a listener raised at BatchOpened" in caplog.text
