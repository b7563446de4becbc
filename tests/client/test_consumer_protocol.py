"""The consumer by the consumer protocol (KIP-848): settings, offsets, errors, on groupcoord in this process."""

import asyncio
import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from groupcoord.client import option_value_parsing
from groupcoord.client.client_errors import BrokerError, CommitFailedError, UnsupportedVersionError
from groupcoord.client.committed_offsets import OffsetAndMetadata
from groupcoord.client.consumer import Consumer
from groupcoord.client.member.consumer_heartbeat import ConsumerMemberState
from groupcoord.client.member.member_events import AssignmentReceived, EpochReached, Fenced
from groupcoord.core.events import Event
from groupcoord.protocol.apis.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from groupcoord.protocol.apis.metadata import MetadataRequest
from groupcoord.protocol.apis.offset_commit import OffsetCommitRequest
from groupcoord.protocol.apis.offset_fetch import OffsetFetchRequest
from groupcoord.protocol.errors import ErrorCode as E
from tests.client.broker import Broker, broker, eventually, forever, patiently
from tests.client.test_offsets import answered, fetched

story = [pytest.mark.asyncio, pytest.mark.slow]
T = ("t", 0)
QUICK: dict[str, Any] = {"group.consumer.min.heartbeat.interval.ms": 20, "group.consumer.heartbeat.interval.ms": 20}
QUICK |= {"group.consumer.assignment.interval.ms": 0, "group.consumer.min.assignment.interval.ms": 0}


def consumer(real: Broker, *, topics: Sequence[str] = ("t",), **how: Any) -> Consumer:
    settings = {
        "group_id": "g",
        "group_protocol": "consumer",
        "auto_offset_reset": "earliest",
        "retry_backoff_ms": 1,
        "fetch_max_wait_ms": 50,
        **how,
    }
    return Consumer(*(() if "pattern" in how else topics), bootstrap_servers=real.address, **settings)


async def owns(one: Consumer, *partitions: tuple[str, int]) -> None:
    """Poll until it owns exactly these."""
    while one.assignment() != frozenset(partitions):
        await one.getmany(20)


# Settings.


@pytest.mark.parametrize(
    ("protocol", "setting", "named"),
    [
        (
            "consumer",
            {"partition_assignment_strategy": "range"},
            "partition_assignment_strategy cannot be set with group_protocol=consumer",
        ),
        ("CONSUMER", {"session_timeout_ms": 6_000}, "session_timeout_ms cannot be set with group_protocol=consumer"),
        ("consumer", {"heartbeat_interval_ms": 1}, "heartbeat_interval_ms cannot be set"),
        (
            "classic",
            {"group_remote_assignor": "uniform"},
            "group_remote_assignor cannot be set with group_protocol=classic",
        ),
        ("share", {}, "group_protocol is one of classic, consumer, not share"),
        ("consumer", {"pattern": "t"}, "to one of both"),
    ],
)
def test_settings_that_do_not_go_together(protocol: str, setting: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        Consumer("t", bootstrap_servers="localhost:1", group_id="g", group_protocol=protocol, **setting)


def test_a_member_id_looks_like_those_of_kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(option_value_parsing.new_member_id()) == 22
    drawn = [uuid.UUID(int=0xF8 << 120), uuid.UUID(int=1)]
    monkeypatch.setattr(uuid, "uuid4", lambda: drawn.pop(0))
    assert option_value_parsing.new_member_id() == "AAAAAAAAAAAAAAAAAAAAAQ"


# Stories.


class TestStories:
    pytestmark = story

    @patiently
    async def test_it_joins_reads_commits_and_leaves(self) -> None:
        events: list[Event] = []
        told: list[Any] = []
        async with broker({"t": 2}, **QUICK) as real:
            await real.produce("t", [b"a", b"b"])
            async with consumer(
                real,
                client_rack="r",
                group_remote_assignor="range",
                listeners=[events.append],
                on_assigned=lambda partitions: told.append(("assigned", partitions)),
                on_revoked=lambda partitions: told.append(("revoked", partitions)),
            ) as one:
                records = await one.getmany(10_000)
                assert [record.value for record in records[T]] == [b"a", b"b"]
                await one.getmany(0)
                await one.commit()
                assert await one.committed() == {T: OffsetAndMetadata(2, 0), ("t", 1): OffsetAndMetadata(0)}
                await real.gets(ConsumerGroupHeartbeatRequest, 6)
                member_id, epoch = one.membership.generation[1], one.membership.generation[0]
            join, *beats, left = real.got(ConsumerGroupHeartbeatRequest)
            acknowledged, quiet = next(each for each in beats if each.topic_partitions), beats[-1]
            assert (join.rack_id, join.server_assignor, join.member_epoch, len(join.member_id)) == ("r", "range", 0, 22)
            assert acknowledged.topic_partitions[0].partitions == (0, 1)
            assert quiet == replace(quiet, topic_partitions=None, subscribed_topic_names=None)
            assert left.member_epoch == -1
            commit = real.got(OffsetCommitRequest)[0]
            assert (commit.member_id, commit.generation_id_or_member_epoch) == (member_id, epoch)
            fetch = real.got(OffsetFetchRequest)[0].groups[0]
            assert (fetch.member_id, fetch.member_epoch) == (member_id, epoch)
            assert told == [("assigned", (T, ("t", 1))), ("revoked", (T, ("t", 1)))]
            assert [type(event).__name__ for event in events] == [
                "CoordinatorFound",
                "HeartbeatJoinSent",
                "EpochReached",
                "AssignmentReceived",
                "PartitionsTold",
                "AssignmentAcknowledged",
                "PartitionsTold",
                "LeaveSent",
            ]

    @patiently
    async def test_a_second_member_gets_what_the_first_gives_up(self) -> None:
        events: list[Event] = []
        async with broker({"t": 4}, **QUICK) as real, consumer(real, listeners=[events.append]) as first:
            await owns(first, *(("t", number) for number in range(4)))
            events.clear()
            async with consumer(real) as second:
                while len(first.assignment()) != 2 or len(second.assignment()) != 2:
                    await asyncio.gather(first.getmany(20), second.getmany(20))
                (received,) = [event for event in events if isinstance(event, AssignmentReceived)]
                assert (len(received.keeps), len(received.gains), len(received.gives_up)) == (2, 0, 2)
                assert not first.assignment() & second.assignment()
            await owns(first, *(("t", number) for number in range(4)))

    @patiently
    async def test_a_pattern_follows_the_topics_that_there_are(self) -> None:
        async with broker({"a-1": 1, "b": 1}, **QUICK) as real:
            await real.produce("a-1", [b"x"])
            async with consumer(real, pattern="a-.*") as one:
                ((partition, records),) = (await one.getmany(10_000)).items()
                assert (partition, records[0].value) == (("a-1", 0), b"x")
                assert one.subscription() == {"a-1"}
                assert next(request.topics[0].topic_id for request in real.got(MetadataRequest) if request.topics)
                one.subscribe(pattern="b|a-1")
                await owns(one, ("a-1", 0), ("b", 0))
                one.subscribe("b")
                await owns(one, ("b", 0))
                assert one.subscription() == {"b"}
            assert real.got(ConsumerGroupHeartbeatRequest)[0].subscribed_topic_regex == "a-.*"

    @patiently
    async def test_a_pattern_that_is_none_ends_the_member(self) -> None:
        async with broker(**QUICK) as real, consumer(real, pattern="(") as one:
            with pytest.raises(
                BrokerError, match=r"INVALID_REGULAR_EXPRESSION|not a valid regular expression"
            ) as raised:
                await forever(one)
            assert raised.value.code == E.INVALID_REGULAR_EXPRESSION

    @patiently
    async def test_an_old_broker_does_not_know_patterns(self) -> None:
        async with broker(**QUICK) as real:
            real.speaks(ConsumerGroupHeartbeat=0)
            async with consumer(real, pattern="t") as one:
                with pytest.raises(UnsupportedVersionError, match="regular expression"):
                    await forever(one)
            async with consumer(real) as other:
                await owns(other, T)

    @patiently
    async def test_a_static_member_comes_back_to_its_partitions(self) -> None:
        async with broker({"t": 2}, **QUICK) as real:
            async with consumer(real, group_instance_id="i") as one:
                await owns(one, T, ("t", 1))
            assert real.got(ConsumerGroupHeartbeatRequest)[-1].member_epoch == -2
            events: list[Event] = []
            async with consumer(real, group_instance_id="i", listeners=[events.append]) as again:
                await owns(again, T, ("t", 1))
                assert [event.epoch for event in events if isinstance(event, EpochReached)] == [2]

    @patiently
    async def test_a_member_that_was_removed_loses_everything_and_comes_back(self) -> None:
        lost: list[Any] = []
        events: list[Event] = []
        async with (
            broker(**QUICK) as real,
            consumer(real, on_lost=lost.append, listeners=[events.append], enable_auto_commit=False) as one,
        ):
            await owns(one, T)
            await one.position(T)
            await real.removes(one.membership.generation.member_id)
            with pytest.raises(CommitFailedError, match=r"UNKNOWN_MEMBER_ID|not part of the group"):
                await one.commit({T: 1})
            while lost != [(T,)]:
                await one.getmany(20)
            await owns(one, T)
            assert len([event for event in events if isinstance(event, Fenced)]) == 1
            await one.commit({T: 1})

    @patiently
    async def test_a_commit_with_an_epoch_that_is_over_is_sent_again(self) -> None:
        async with broker(**QUICK) as real, consumer(real, enable_auto_commit=False) as one:
            await owns(one, T)
            await one.position(T)
            real.answers(OffsetCommitRequest, answered(E.STALE_MEMBER_EPOCH))
            await one.commit({T: 1})
            real.answers(OffsetFetchRequest, fetched(E.STALE_MEMBER_EPOCH), fetched(E.UNKNOWN_MEMBER_ID))
            assert await one.committed() == {T: OffsetAndMetadata(1)}

    @patiently
    async def test_a_coordinator_that_is_away_is_found_again(self) -> None:
        async with broker(**QUICK) as real, consumer(real) as one:
            await owns(one, T)
            for code in (E.NOT_COORDINATOR, E.COORDINATOR_LOAD_IN_PROGRESS, E.COORDINATOR_NOT_AVAILABLE):
                real.answers(ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse(error_code=code))
            await real.has_answered()
            beats = len(real.got(ConsumerGroupHeartbeatRequest))
            await real.gets(ConsumerGroupHeartbeatRequest, beats + 3)
            assert one.assignment() == {T}
            assert one.membership.state is ConsumerMemberState.STABLE

    @patiently
    async def test_the_user_cannot_make_the_group_rebalance(self, caplog: pytest.LogCaptureFixture) -> None:
        async with broker(**QUICK) as real, consumer(real) as one:
            await owns(one, T)
            epoch = one.membership.generation
            one.enforce_rebalance()
            assert "cannot enforce a rebalance" in caplog.text
            beats = len(real.got(ConsumerGroupHeartbeatRequest))
            await real.gets(ConsumerGroupHeartbeatRequest, beats + 2)
            assert one.membership.generation == epoch

    @patiently
    async def test_a_user_that_is_away_too_long_is_out_until_it_is_back(self) -> None:
        lost: list[Any] = []
        async with broker(**QUICK) as real, consumer(real, max_poll_interval_ms=100, on_lost=lost.append) as one:
            await owns(one, T)
            await eventually(lambda: one.membership.state is ConsumerMemberState.STALE)
            assert lost == []
            while not lost or one.assignment() != {T}:
                await one.getmany(20)
            assert lost == [(T,)]
