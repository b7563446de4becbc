"""Where a consumer begins, and where it goes when its place is gone."""

import pytest

from groupcoord.client.client_errors import BrokerError, OffsetError
from groupcoord.client.consumer import Consumer
from groupcoord.protocol.apis.list_offsets import ListOffsetsPartitionResponse, ListOffsetsTopicResponse
from groupcoord.protocol.errors import ErrorCode as E
from groupcoord.protocol.messages import ListOffsetsRequest, ListOffsetsResponse
from tests.client.broker import HANG_UP, broker, forever, patiently
from tests.client.test_fetcher import T, member

pytestmark = pytest.mark.asyncio


def positions(code: E) -> ListOffsetsResponse:
    partition = ListOffsetsPartitionResponse(partition_index=0, error_code=code)
    return ListOffsetsResponse(topics=(ListOffsetsTopicResponse(name="t", partitions=(partition,)),))


@pytest.mark.parametrize(("reset", "position"), [("earliest", 0), ("latest", 3)])
@patiently
async def test_a_position_that_is_gone_is_reset(reset: str, position: int) -> None:
    async with broker() as real, member(real, auto_offset_reset=reset) as consumer:
        await real.produce("t", [b"a", b"b", b"c"])
        consumer.seek(T, 99)
        while await consumer.position(T) == 99:
            await consumer.getmany(10, 1)
        consumer.pause(T)
        if reset == "latest":
            assert await consumer.position(T) == position
        else:
            assert await consumer.position(T) <= 3


@pytest.mark.slow
@patiently
async def test_a_position_that_is_gone_and_nobody_says_where_to_go() -> None:
    async with broker() as real, member(real, auto_offset_reset="earliest") as consumer:
        await consumer.commit({T: 99})
    async with (
        broker() as real,
        Consumer("t", bootstrap_servers=real.address, group_id="g", auto_offset_reset="none") as consumer,
    ):
        with pytest.raises(OffsetError, match="t-0: nothing is committed, and auto_offset_reset is none") as raised:
            await forever(consumer)
        assert raised.value.partitions == (T,)
        consumer.seek(T, 99)
        with pytest.raises(OffsetError, match="there is no offset 99"):
            await forever(consumer)


@pytest.mark.parametrize("answer", [positions(E.NOT_LEADER_OR_FOLLOWER), positions(E.OFFSET_NOT_AVAILABLE), HANG_UP])
@patiently
async def test_a_position_that_cannot_be_told_yet_is_asked_for_again(answer: object) -> None:
    async with broker() as real, member(real) as consumer:
        await real.produce("t", [b"a"])
        real.answers(ListOffsetsRequest, answer, answer)
        consumer.seek_to_end()
        assert await consumer.position(T) == 1


@patiently
async def test_a_position_that_is_not_ones_business() -> None:
    async with broker() as real, member(real) as consumer:
        real.answers(ListOffsetsRequest, positions(E.TOPIC_AUTHORIZATION_FAILED))
        consumer.seek_to_end()
        with pytest.raises(BrokerError, match=r"the offsets of t-0: TOPIC_AUTHORIZATION_FAILED"):
            await consumer.position(T)
        assert await consumer.position(T) == 0


@patiently
async def test_a_position_that_is_sought_meanwhile_is_not_overridden() -> None:
    async with broker() as real, member(real) as consumer:
        await consumer.position(T)

        def seeks_first(_: object) -> ListOffsetsResponse:
            consumer.seek(T, 0)
            return positions(E.NONE)

        real.answers(ListOffsetsRequest, seeks_first)
        consumer.seek_to_end()
        await real.has_answered()
        assert await consumer.position(T) == 0
