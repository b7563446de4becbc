"""The consumer as its user sees it."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from groupcoord.client.client_errors import BrokerError, ConsumerClosedError, DisconnectedError
from groupcoord.client.committed_offsets import OffsetAndMetadata
from groupcoord.client.consumer import Consumer
from groupcoord.client.member.context import MemberState
from groupcoord.protocol.apis.metadata import MetadataResponse, MetadataResponseBroker, MetadataResponseTopic
from groupcoord.protocol.errors import ErrorCode as E
from groupcoord.protocol.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    MetadataRequest,
    OffsetFetchRequest,
)
from tests.client.broker import Broker, broker, eventually, patiently
from tests.client.test_offsets import fetched

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]
T = ("t", 0)


def consumer(real: Broker, *, topics: Sequence[str] = ("t",), **how: Any) -> Consumer:
    settings = {
        "group_id": "g",
        "auto_offset_reset": "earliest",
        "retry_backoff_ms": 1,
        "heartbeat_interval_ms": 20,
        **how,
    }
    return Consumer(*topics, bootstrap_servers=real.address, **settings)


async def committed_by_group(real: Broker) -> dict[Any, Any]:
    """What a consumer that comes later finds."""
    async with consumer(real, enable_auto_commit=False) as later:
        return await later.committed(T)


@patiently
async def test_records_one_by_one() -> None:
    async with broker() as real:
        await real.produce("t", [b"a", b"b", b"c"])
        values = []
        async with consumer(real) as one:
            async for record in one:
                values.append(record.value)
                if len(values) == 3:
                    break
        assert values == [b"a", b"b", b"c"]
        assert await committed_by_group(real) == {T: OffsetAndMetadata(3, 0)}


@patiently
async def test_one_by_one_what_the_user_asks_for_counts_from_the_next_record_on() -> None:
    u = ("u", 0)
    async with broker({"t": 1, "u": 1}) as real:
        for topic in ("t", "u"):
            await real.produce(topic, [b"%s%d" % (topic.encode(), number) for number in range(9)])
        async with consumer(real, topics=["t", "u"]) as one:

            async def of(topic: str) -> object:
                """The value of the next record of ``topic``."""
                while True:
                    record = await anext(one)
                    if record.topic == topic:
                        value: object = record.value
                        return value

            assert [await of("t") for _ in range(2)] == [b"t0", b"t1"]
            one.seek(T, 5)
            assert await of("t") == b"t5"
            one.pause(T)
            one.seek(u, 7)
            assert [(await anext(one)).value for _ in range(2)] == [b"u7", b"u8"]
            one.pause(u)
            one.resume(T)
            assert (await anext(one)).value == b"t6"
            assert await one.committed(T) == {T: None}
            await one.commit()
            assert await one.committed(T) == {T: OffsetAndMetadata(7, 0)}
        with pytest.raises(ConsumerClosedError):
            await anext(one)


@patiently
async def test_cancellation_leaves_cleanly() -> None:
    async with broker() as real:

        async def consume() -> None:
            async with consumer(real) as one:
                async for _ in one:
                    pass

        task = asyncio.create_task(consume())
        await real.gets(HeartbeatRequest)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(real.got(LeaveGroupRequest)) == 1
        await eventually(lambda: real.server.connection_count == 0)


@patiently
async def test_cancellation_during_the_end_waits_for_the_goodbye() -> None:
    async with broker() as real:
        closing = asyncio.Event()

        async def revoked(partitions: Any) -> None:
            closing.set()
            await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=0.02)

        async def consume() -> None:
            async with consumer(real, on_revoked=revoked) as one:
                while not one.assignment():
                    await one.getmany(50)

        task = asyncio.create_task(consume())
        await closing.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(real.got(LeaveGroupRequest)) == 1


@patiently
async def test_a_static_member_does_not_say_goodbye() -> None:
    async with broker() as real:
        async with consumer(real, group_instance_id="i") as one:
            while not one.assignment():
                await one.getmany(50)
        assert real.got(LeaveGroupRequest) == []
        async with consumer(real, group_instance_id="i") as one:
            while not one.assignment():
                await one.getmany(50)
            assert one.membership.generation.generation_id == 1


@patiently
async def test_heartbeats_go_on_while_the_user_is_busy() -> None:
    async with broker() as real, consumer(real) as one:
        while not one.assignment():
            await one.getmany(50)
        await real.gets(HeartbeatRequest, len(real.got(HeartbeatRequest)) + 3)


@patiently
async def test_who_is_busy_for_too_long_is_out() -> None:
    lost: list[Any] = []
    async with broker() as real, consumer(real, max_poll_interval_ms=150, on_lost=lost.append) as one:
        while not one.assignment():
            await one.getmany(50)
        await real.gets(LeaveGroupRequest)
        assert real.got(LeaveGroupRequest)[0].members[0].reason == "consumer poll timeout has expired."
        assert lost == []
        while lost != [(T,)] or not one.assignment():
            await one.getmany(20)


@patiently
async def test_what_it_tells_of_itself() -> None:
    async with broker({"t": 2}) as real, consumer(real, topics=["t"]) as one:
        while not one.assignment():
            await one.getmany(50)
        assert one.subscription() == {"t"}
        assert one.assignment() == {("t", 0), ("t", 1)}
        assert repr(one).startswith("<Consumer <Membership g Stable groupcoord-")
        assert one.membership.state is MemberState.STABLE


@patiently
async def test_another_subscription() -> None:
    async with broker({"t": 1, "u": 1}) as real, consumer(real) as one:
        while one.assignment() != {T}:
            await one.getmany(50)
        one.subscribe(["t", "u"])
        while one.assignment() != {T, ("u", 0)}:
            await one.getmany(50)


@patiently
async def test_new_partitions_are_noticed() -> None:
    async with broker() as real, consumer(real, metadata_max_age_ms=50) as one:
        while one.assignment() != {T}:
            await one.getmany(50)
        await real.enlarges("t", 3)
        while len(one.assignment()) != 3:
            await one.getmany(20)


@patiently
async def test_a_topic_that_does_not_exist_yet() -> None:
    async with (
        broker(auto_create_topics_enable=False) as real,
        consumer(real, topics=["later"], metadata_max_age_ms=20) as one,
    ):
        assert await one.getmany(50) == {}
        await real.cluster.create_topic("later", 2)
        while len(one.assignment()) != 2:
            await one.getmany(20)


@pytest.mark.parametrize("code", [E.INVALID_TOPIC_EXCEPTION, E.TOPIC_AUTHORIZATION_FAILED])
@patiently
async def test_a_topic_that_cannot_be(code: E) -> None:
    async with broker() as real:

        def hopeless(request: MetadataRequest, answer: MetadataResponse) -> MetadataResponse:
            topics = tuple(MetadataResponseTopic(name=topic.name, error_code=code) for topic in request.topics or ())
            brokers = tuple(
                MetadataResponseBroker(node_id=each.node_id, host=each.host, port=each.port) for each in answer.brokers
            )
            return MetadataResponse(brokers=brokers, topics=topics)

        real.alter(MetadataRequest, hopeless)
        async with consumer(real) as one:
            for _ in range(2):
                with pytest.raises(BrokerError, match=f"topic t: {code.name}"):
                    await one.getmany(1_000)


# Being closed, and being asked too much.


@patiently
async def test_it_is_open_inside_its_block() -> None:
    async with broker() as real:
        one = consumer(real)
        with pytest.raises(ConsumerClosedError):
            await one.getmany()
        async with one:
            pass
        with pytest.raises(ConsumerClosedError):
            await anext(one)


@patiently
async def test_a_poll_that_waits_ends_with_the_block() -> None:
    async with broker() as real:
        async with consumer(real) as one:
            polling = asyncio.create_task(one.getmany(60_000))
            await real.gets(JoinGroupRequest)
        with pytest.raises(ConsumerClosedError):
            await polling


@patiently
async def test_one_task_polls_at_a_time() -> None:
    async with broker() as real, consumer(real) as one:
        polling = asyncio.create_task(one.getmany(60_000))
        await asyncio.wait([polling], timeout=0)
        with pytest.raises(RuntimeError, match="polled already"):
            await one.getmany()
        polling.cancel()


@patiently
async def test_nobody_there() -> None:
    with pytest.raises(DisconnectedError, match=r"127\.0\.0\.1:1 cannot be reached"):
        async with Consumer("t", bootstrap_servers="127.0.0.1:1", group_id="g"):
            pass


@patiently
async def test_what_is_not_assigned() -> None:
    async with broker() as real, consumer(real) as one:
        for wrong in (one.pause, one.resume, one.seek_to_end, one.seek_to_beginning):
            with pytest.raises(KeyError, match="x-0 is not assigned"):
                wrong(("x", 0))
        with pytest.raises(KeyError):
            one.seek(("x", 0), 0)
        with pytest.raises(KeyError):
            await one.position(("x", 0))
        with pytest.raises(ValueError, match="not negative: -1"):
            one.seek(("x", 0), -1)
        for wrong_poll in ({"timeout_ms": -1}, {"max_records": 0}):
            with pytest.raises(ValueError, match="max_records is above 0"):
                await one.getmany(**wrong_poll)


@pytest.mark.parametrize(
    ("how", "problem"),
    [
        ({"max_poll_records": 0}, "max_poll_records"),
        ({"auto_commit_interval_ms": -1}, "auto_commit_interval_ms"),
        ({"auto_offset_reset": "somewhere"}, "somewhere"),
        ({"isolation_level": "none"}, "isolation_level"),
        ({"group_id": ""}, "group_id is a name that is not empty"),
    ],
)
async def test_arguments_that_cannot_work(how: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Consumer("t", **{"bootstrap_servers": "h:1", "group_id": "g", **how})


@patiently
async def test_a_position_that_cannot_be_found_out() -> None:
    async with broker() as real, consumer(real, default_api_timeout_ms=50) as one:
        real.answers(OffsetFetchRequest, *[fetched(E.COORDINATOR_LOAD_IN_PROGRESS)] * 500)
        while not one.assignment():
            await one.getmany(50)
        with pytest.raises(TimeoutError):
            await one.position(T)


@patiently
async def test_a_goodbye_nobody_takes_does_not_last_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("groupcoord.client.consumer.CLOSE_TIMEOUT_MS", 50)
    never = asyncio.Event()

    async def revoked(partitions: Any) -> None:
        await never.wait()

    async with broker() as real:
        async with consumer(real, on_revoked=revoked) as one:
            while not one.assignment():
                await one.getmany(50)
        assert real.got(LeaveGroupRequest) == []
