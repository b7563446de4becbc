"""What a consumer reads: topics, what a pattern matches, partitions by hand; with a group and without."""

import asyncio
import re
from typing import Any

import pytest

from groupcoord.client.client_errors import ConsumerClosedError, NoGroupError, NotSubscribedError
from groupcoord.client.committed_offsets import OffsetAndMetadata
from groupcoord.client.consumer import Consumer
from groupcoord.client.member.member_events import PartitionsTold
from groupcoord.core.events import Event
from groupcoord.protocol.messages import FindCoordinatorRequest, JoinGroupRequest, LeaveGroupRequest
from tests.client.broker import Broker, broker, eventually, patiently

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]
T, T1, U = ("t", 0), ("t", 1), ("u", 0)
EVERYTHING = {"auto_offset_reset": "earliest", "retry_backoff_ms": 1, "fetch_max_wait_ms": 20}


def consumer(real: Broker, *topics: str, **how: Any) -> Consumer:
    return Consumer(*topics, bootstrap_servers=real.address, **{**EVERYTHING, **how})


def member(real: Broker, *topics: str, **how: Any) -> Consumer:
    return consumer(real, *topics, **{"group_id": "g", "heartbeat_interval_ms": 20, **how})


async def owns(one: Consumer, *partitions: tuple[str, int]) -> None:
    while one.assignment() != frozenset(partitions):
        await one.getmany(20)


async def reads(one: Consumer, count: int) -> list[bytes]:
    values: list[bytes] = []
    while len(values) < count:
        values += [record.value for records in (await one.getmany(50)).values() for record in records]
    return sorted(values)


# From start to stop.


@patiently
async def test_start_and_stop_do_what_the_block_does() -> None:
    async with broker() as real:
        await real.produce("t", [b"a"])
        one = member(real, "t")
        await one.stop()
        await one.start()
        assert (await one.getone()).value == b"a"
        await one.stop()
        assert len(real.got(LeaveGroupRequest)) == 1
        await eventually(lambda: real.server.connection_count == 0)
        await one.stop()
        with pytest.raises(ConsumerClosedError, match="started once"):
            await one.start()
        async with member(real, "t") as later:
            assert await later.committed(T) == {T: OffsetAndMetadata(1, 0)}


@patiently
async def test_what_is_subscribed_before_the_start_is_consumed_after_it() -> None:
    async with broker() as real:
        await real.produce("t", [b"a"])
        one = member(real)
        one.assign([T])
        one.unsubscribe()
        one.subscribe(["t"])
        async with one:
            assert await reads(one, 1) == [b"a"]


@patiently
async def test_who_reads_nothing_cannot_poll() -> None:
    async with broker() as real, member(real) as one:
        with pytest.raises(NotSubscribedError, match=r"call subscribe\(\) or assign\(\) before you poll"):
            await one.getmany()


# Partitions by hand.


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@patiently
async def test_partitions_by_hand_with_a_group_that_only_keeps_offsets(protocol: str) -> None:
    told: list[Any] = []
    async with broker({"t": 2}) as real:
        await real.produce("t", [b"a", b"b"], 0)
        await real.produce("t", [b"c"], 1)
        async with consumer(real, group_id="g", group_protocol=protocol, on_assigned=told.append) as one:
            one.assign([T])
            assert one.assignment() == {T}
            assert await reads(one, 2) == [b"a", b"b"]
            one.assign([T, T1])
            assert await reads(one, 1) == [b"c"]
            assert one.subscription() == frozenset()
            await one.commit()
            assert await one.committed(T, T1) == {T: OffsetAndMetadata(2, 0), T1: OffsetAndMetadata(1, 0)}
        assert told == real.got(JoinGroupRequest) == real.got(LeaveGroupRequest) == []
        async with consumer(real, group_id="g") as later:
            later.assign([T])
            assert await later.position(T) == 2


@patiently
async def test_partitions_by_hand_without_a_group() -> None:
    async with broker({"t": 2}) as real:
        await real.produce("t", [b"a"], 1)
        one = consumer(real)
        one.assign([T1])
        async with one:
            assert await reads(one, 1) == [b"a"]
            with pytest.raises(NoGroupError, match="give the consumer a group_id"):
                await one.commit()
            with pytest.raises(NoGroupError, match="give the consumer a group_id"):
                await one.committed()
        assert real.got(FindCoordinatorRequest) == []


@patiently
async def test_from_a_subscription_to_partitions_by_hand_and_back() -> None:
    events: list[Event] = []
    async with broker({"t": 2}) as real:
        await real.produce("t", [b"a"], 0)
        async with member(real, "t", listeners=[events.append], enable_auto_commit=False) as one:
            await owns(one, T, T1)
            with pytest.raises(ValueError, match=r"has a subscription: unsubscribe\(\) before you assign"):
                one.assign([T])
            one.unsubscribe()
            one.assign([T])
            assert one.assignment() == {T}
            assert await reads(one, 1) == [b"a"]
            await eventually(lambda: real.got(LeaveGroupRequest))
            assert one.assignment() == {T}
            with pytest.raises(ValueError, match=r"by hand: unsubscribe\(\) before you subscribe"):
                one.subscribe("t")
            one.unsubscribe()
            assert one.assignment() == frozenset()
            one.subscribe("t")
            await owns(one, T, T1)
    news = [event.news for event in events if isinstance(event, PartitionsTold)]
    assert news == ["assigned", "revoked", "assigned", "revoked"]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@patiently
async def test_who_unsubscribes_leaves_the_group_at_once(protocol: str) -> None:
    revoked: list[Any] = []
    async with (
        broker() as real,
        consumer(real, "t", group_id="g", group_protocol=protocol, on_revoked=revoked.append) as one,
    ):
        await owns(one, T)
        one.unsubscribe()
        await eventually(lambda: not one.assignment())
        assert revoked == [(T,)]
        async with member(real, "t") as other:
            await owns(other, T)


# Without a group.


@patiently
async def test_without_a_group_all_partitions_are_read_also_new_ones() -> None:
    async with broker({"t": 1, "u": 1}) as real, consumer(real, "t", metadata_max_age_ms=50) as one:
        await real.produce("t", [b"a"])
        assert await reads(one, 1) == [b"a"]
        assert one.assignment() == {T}
        await real.enlarges("t", 2)
        await owns(one, T, T1)
        one.subscribe("u")
        await real.produce("u", [b"b"])
        assert await reads(one, 1) == [b"b"]
        assert one.assignment() == {U}
        one.unsubscribe()
        assert one.assignment() == frozenset()
    assert real.got(FindCoordinatorRequest) == real.got(JoinGroupRequest) == []


# Patterns.


@pytest.mark.parametrize("group", [{"group_id": "g"}, {}])
@patiently
async def test_a_pattern_finds_new_topics(group: dict[str, str]) -> None:
    async with (
        broker({"a-1": 1, "b": 1}) as real,
        consumer(real, pattern="a-.*", metadata_max_age_ms=50, **group) as one,
    ):
        await owns(one, ("a-1", 0))
        await real.cluster.create_topic("a-2", 1)
        await real.cluster.create_topic("not-a-3", 1)
        await owns(one, ("a-1", 0), ("a-2", 0))
        assert one.subscription() == {"a-1", "a-2"}
        one.subscribe(pattern=re.compile("B", re.IGNORECASE))
        await owns(one, ("b", 0))
        one.subscribe(["a-1"])
        await owns(one, ("a-1", 0))


@patiently
async def test_a_compiled_pattern_is_of_python_also_by_the_consumer_protocol() -> None:
    async with (
        broker({"aa": 1, "b": 1}) as real,
        consumer(real, pattern=re.compile(r"(.)\1"), group_id="g", group_protocol="consumer") as one,
    ):
        await owns(one, ("aa", 0))


@patiently
async def test_a_pattern_that_matches_nothing_yet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "groupcoord.client")
    async with broker() as real, member(real, pattern="later.*", metadata_max_age_ms=20) as one:
        assert await one.getmany(50) == {}
        assert one.subscription() == frozenset()
        await real.cluster.create_topic("later-1", 1)
        await owns(one, ("later-1", 0))
        assert [record.getMessage()[:54] for record in caplog.records if "pattern" in record.getMessage()] == [
            "consumer in g: trouble with the pattern later.*: no to",
            "consumer in g: no more trouble with the pattern later.",
        ]


# What can be asked.


@patiently
async def test_topics_and_their_partitions() -> None:
    async with broker({"t": 2, "u": 1}, auto_create_topics_enable=False) as real, member(real, "t") as one:
        await owns(one, T, T1)
        assert await one.topics() == {"t", "u"}
        assert await one.partitions_for_topic("t") == {0, 1}
        assert await one.partitions_for_topic("missing") == frozenset()
        async with member(real, "t", exclude_internal_topics=False) as other:
            assert await other.topics() == {"t", "u", "__consumer_offsets"}
    with pytest.raises(ConsumerClosedError):
        await one.topics()


@patiently
async def test_the_lag_is_what_is_left_to_read() -> None:
    async with broker() as real, member(real, "t", max_poll_records=2) as one:
        await owns(one, T)
        await real.produce("t", [b"a", b"b", b"c"])
        assert await reads(one, 2) == [b"a", b"b"]
        assert (one.lag(T), one.highwater(T), one.last_stable_offset(T)) == (1, 3, 3)
        one.seek_to_beginning(T)
        assert one.lag(T) is None
        assert await reads(one, 2) == [b"a", b"b"]
        await one.commit()
        assert await reads(one, 1) == [b"c"]
        assert one.lag(T) == 0
        one.seek_to_committed(T)
        assert await reads(one, 1) == [b"c"]
        for ask in (one.lag, one.highwater, one.last_stable_offset):
            with pytest.raises(KeyError, match="u-0 is not assigned"):
                ask(U)


@patiently
async def test_readers_of_what_is_committed_lag_behind_its_end() -> None:
    async with broker() as real, member(real, "t", isolation_level="read_committed") as one:
        producer = real.cluster.manual_producer("app")
        await producer.init()
        await producer.produce("t", b"open")
        await owns(one, T)
        await real.produce("t", [b"behind"])
        while one.highwater(T) != 2:
            assert await one.getmany(20) == {}
        assert (one.last_stable_offset(T), one.lag(T)) == (0, 0)
        assert await one.end_offsets([T]) == {T: 0}


@patiently
async def test_one_may_wait_for_a_record_in_a_task() -> None:
    async with broker() as real, member(real, "t") as one:
        waiting = asyncio.create_task(one.getone())
        await real.gets(JoinGroupRequest)
        await real.produce("t", [b"a"])
        assert (await waiting).value == b"a"
