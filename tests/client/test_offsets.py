"""Committed offsets, and the right answer to every error code."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from groupcoord.client.client_errors import BrokerError, CommitFailedError, RebalanceInProgressError
from groupcoord.client.committed_offsets import OffsetAndMetadata
from groupcoord.client.consumer import Consumer
from groupcoord.client.member.context import MemberState
from groupcoord.protocol.apis.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from groupcoord.protocol.apis.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from groupcoord.protocol.errors import ErrorCode as E
from groupcoord.protocol.messages import OffsetCommitRequest, OffsetFetchRequest
from tests.client.broker import HANG, HANG_UP, Broker, broker, patiently

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]
T = ("t", 0)


def answered(code: E) -> OffsetCommitResponse:
    partition = OffsetCommitResponsePartition(partition_index=0, error_code=code)
    return OffsetCommitResponse(topics=(OffsetCommitResponseTopic(name="t", partitions=(partition,)),))


def fetched(group: E = E.NONE, partition: E = E.NONE) -> OffsetFetchResponse:
    of = OffsetFetchResponsePartitions(partition_index=0, committed_offset=-1, error_code=partition)
    topics = (OffsetFetchResponseTopics(name="t", partitions=(of,)),)
    return OffsetFetchResponse(groups=(OffsetFetchResponseGroup(group_id="g", error_code=group, topics=topics),))


@asynccontextmanager
async def member(real: Broker, **how: object) -> AsyncIterator[Consumer]:
    """A consumer that owns the one partition."""
    settings = {"auto_offset_reset": "earliest", "enable_auto_commit": False, "retry_backoff_ms": 1, **how}
    async with Consumer("t", bootstrap_servers=real.address, group_id="g", **settings) as consumer:  # type: ignore[arg-type]
        while T not in consumer.assignment():
            await consumer.getmany(50)
        await consumer.position(T)  # from here on no offset is asked for but by the test
        yield consumer


@patiently
async def test_what_is_committed_is_found_again() -> None:
    async with broker() as real, member(real) as consumer:
        assert await consumer.committed() == {T: None}
        await consumer.commit({T: 3})
        await consumer.commit({T: OffsetAndMetadata(4, leader_epoch=0, metadata="mine")})
        assert await consumer.committed(T) == {T: OffsetAndMetadata(4, 0, "mine")}
        assert [call.version for call in real.calls if call.api.name == "OffsetCommit"] == [9, 9]


@patiently
async def test_old_brokers_have_offsets_too() -> None:
    async with broker() as real:
        real.speaks(OffsetFetch=5, OffsetCommit=2)
        async with member(real) as consumer:
            await consumer.commit({T: 3})
            assert await consumer.committed() == {T: OffsetAndMetadata(3)}


@patiently
async def test_nothing_is_nothing_to_commit() -> None:
    async with broker() as real, member(real) as consumer:
        await consumer.commit({})
        assert real.got(OffsetCommitRequest) == []


@patiently
async def test_an_offset_is_not_negative() -> None:
    async with broker() as real, member(real) as consumer:
        with pytest.raises(ValueError, match="not negative: t-0"):
            await consumer.commit({T: -1})


@pytest.mark.parametrize(
    "code",
    [
        E.COORDINATOR_LOAD_IN_PROGRESS,
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.NOT_COORDINATOR,
        E.COORDINATOR_NOT_AVAILABLE,
        E.REQUEST_TIMED_OUT,
    ],
)
@patiently
async def test_what_may_pass_is_tried_again(code: E) -> None:
    async with broker() as real, member(real) as consumer:
        real.answers(OffsetCommitRequest, answered(code), answered(code))
        await consumer.commit({T: 3})
        assert len(real.got(OffsetCommitRequest)) == 3
        assert await consumer.committed() == {T: OffsetAndMetadata(3)}


@patiently
async def test_a_broken_connection_is_tried_again() -> None:
    async with broker() as real, member(real) as consumer:
        real.answers(OffsetCommitRequest, HANG_UP)
        real.answers(OffsetFetchRequest, HANG_UP)
        await consumer.commit({T: 3})
        assert await consumer.committed() == {T: OffsetAndMetadata(3)}


@pytest.mark.parametrize(
    "code",
    [
        E.OFFSET_METADATA_TOO_LARGE,
        E.INVALID_COMMIT_OFFSET_SIZE,
        E.TOPIC_AUTHORIZATION_FAILED,
        E.GROUP_AUTHORIZATION_FAILED,
        E(999),
    ],
)
@patiently
async def test_what_does_not_pass_is_raised(code: E) -> None:
    async with broker() as real, member(real) as consumer:
        real.answers(OffsetCommitRequest, answered(code))
        with pytest.raises(BrokerError) as raised:
            await consumer.commit({T: 3})
        assert raised.value.code == code
        await consumer.commit({T: 3})


@pytest.mark.parametrize("code", [E.UNKNOWN_MEMBER_ID, E.ILLEGAL_GENERATION, E.GROUP_ID_NOT_FOUND])
@patiently
async def test_who_is_thrown_out_loses_its_partitions_and_comes_back(code: E) -> None:
    lost: list[object] = []
    async with broker() as real, member(real, on_lost=lost.append) as consumer:
        if code != E.ILLEGAL_GENERATION:
            await real.removes(consumer.membership.generation.member_id)
        real.answers(OffsetCommitRequest, answered(code))
        with pytest.raises(CommitFailedError, match=code.name):
            await consumer.commit({T: 3})
        with pytest.raises(CommitFailedError):
            await consumer.commit({T: 3})
        while lost != [(T,)] or T not in consumer.assignment():
            await consumer.getmany(20)
        await consumer.commit({T: 3})


@patiently
async def test_a_commit_during_a_rebalance() -> None:
    async with broker() as real, member(real) as consumer:
        real.answers(OffsetCommitRequest, answered(E.REBALANCE_IN_PROGRESS))
        with pytest.raises(RebalanceInProgressError):
            await consumer.commit({T: 3})
        assert consumer.membership.state is MemberState.STABLE, "it gives nothing up before the user is there"
        while len([request for request in real.requests if type(request).__name__ == "SyncGroupRequest"]) < 2:
            await consumer.getmany(20)


@patiently
async def test_a_fenced_member_ends() -> None:
    async with broker() as real, member(real, group_instance_id="i") as consumer:
        real.answers(OffsetCommitRequest, answered(E.FENCED_INSTANCE_ID))
        with pytest.raises(BrokerError):
            await consumer.commit({T: 3})
        for _ in range(2):
            with pytest.raises(BrokerError, match="FENCED_INSTANCE_ID"):
                await consumer.getmany(1_000)
        with pytest.raises(CommitFailedError):
            await consumer.commit({T: 3})


@patiently
async def test_a_commit_does_not_wait_for_ever() -> None:
    async with broker() as real, member(real, request_timeout_ms=200) as consumer:
        real.answers(OffsetCommitRequest, HANG)
        with pytest.raises(TimeoutError):
            await consumer.commit({T: 3}, timeout_ms=20)
        await consumer.commit({T: 4})


# What is committed.


@pytest.mark.parametrize(
    "answer",
    [
        fetched(E.COORDINATOR_LOAD_IN_PROGRESS),
        fetched(E.NOT_COORDINATOR),
        fetched(E.COORDINATOR_NOT_AVAILABLE),
        fetched(partition=E.UNSTABLE_OFFSET_COMMIT),
    ],
)
@patiently
async def test_offsets_that_cannot_be_told_yet_are_asked_for_again(answer: OffsetFetchResponse) -> None:
    async with broker() as real, member(real) as consumer:
        await consumer.commit({T: 3})
        real.answers(OffsetFetchRequest, answer, answer)
        assert await consumer.committed() == {T: OffsetAndMetadata(3)}


@pytest.mark.parametrize(
    "answer", [fetched(E.GROUP_AUTHORIZATION_FAILED), fetched(partition=E.TOPIC_AUTHORIZATION_FAILED)]
)
@patiently
async def test_offsets_that_are_not_ones_business(answer: OffsetFetchResponse) -> None:
    async with broker() as real, member(real) as consumer:
        real.answers(OffsetFetchRequest, answer)
        with pytest.raises(BrokerError, match="OffsetFetch"):
            await consumer.committed()


@patiently
async def test_of_no_partitions_nothing_is_committed() -> None:
    async with broker() as real, Consumer("t", bootstrap_servers=real.address, group_id="g") as consumer:
        assert await consumer.committed() == {}
