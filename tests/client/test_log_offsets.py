"""Offsets in logs: where they begin and end, and what was the first record from a time on."""

from typing import Any

import pytest

from groupcoord.client.client_errors import BrokerError
from groupcoord.client.consumer import Consumer
from groupcoord.client.log_offsets import OffsetAndTimestamp
from groupcoord.protocol.apis.list_offsets import ListOffsetsPartitionResponse, ListOffsetsTopicResponse
from groupcoord.protocol.errors import ErrorCode as E
from groupcoord.protocol.messages import ListOffsetsRequest, ListOffsetsResponse, MetadataRequest
from tests.client.broker import HANG_UP, Broker, broker, patiently

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]
T, T1 = ("t", 0), ("t", 1)


def consumer(real: Broker, **how: Any) -> Consumer:
    return Consumer(bootstrap_servers=real.address, retry_backoff_ms=1, **how)


def listed(code: E = E.NONE, offset: int = -1) -> ListOffsetsResponse:
    partition = ListOffsetsPartitionResponse(partition_index=0, error_code=code, offset=offset)
    return ListOffsetsResponse(topics=(ListOffsetsTopicResponse(name="t", partitions=(partition,)),))


@patiently
async def test_where_logs_begin_and_end() -> None:
    async with broker({"t": 2}) as real, consumer(real) as one:
        await real.produce("t", [b"a", b"b"], 1)
        assert await one.beginning_offsets([T, T1]) == {T: 0, T1: 0}
        assert await one.end_offsets([T1, T]) == {T: 0, T1: 2}
        assert await one.end_offsets([]) == {}
        assert one.assignment() == frozenset()


@patiently
async def test_the_first_record_from_a_time_on() -> None:
    async with broker({"t": 2}) as real, consumer(real) as one:
        await real.produce("t", [b"a"])
        one.assign([T])
        one.seek_to_beginning()
        written_ms = (await one.getone()).timestamp_ms
        found = await one.offsets_for_times({T: written_ms, T1: 0})
        assert found == {T: OffsetAndTimestamp(0, written_ms, 0), T1: None}
        assert await one.offsets_for_times({T: written_ms + 1}) == {T: None}
        with pytest.raises(ValueError, match="a time is not negative: -1 for t-0"):
            await one.offsets_for_times({T: -1})


@patiently
async def test_what_passes_is_tried_again() -> None:
    async with broker() as real, consumer(real) as one:
        real.answers(ListOffsetsRequest, listed(E.NOT_LEADER_OR_FOLLOWER), HANG_UP, listed(offset=7))
        assert await one.end_offsets([T]) == {T: 7}
        assert len(real.got(MetadataRequest)) >= 3


@patiently
async def test_what_does_not_pass_is_raised() -> None:
    async with broker() as real, consumer(real) as one:
        real.answers(ListOffsetsRequest, listed(E.TOPIC_AUTHORIZATION_FAILED))
        with pytest.raises(BrokerError, match="the offsets of t-0: TOPIC_AUTHORIZATION_FAILED"):
            await one.end_offsets([T])


@pytest.mark.slow
@patiently
async def test_partitions_that_nobody_leads_are_named_in_the_end() -> None:
    async with broker() as real, consumer(real, default_api_timeout_ms=500) as one:
        with pytest.raises(TimeoutError, match=r"no leader answered for t-1, t-2 within 500 ms; do they exist\?"):
            await one.end_offsets([T, ("t", 2), T1])
