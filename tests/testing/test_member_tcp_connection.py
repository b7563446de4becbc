"""Lines to a broker that have sockets."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from groupcoord.client.client_errors import DisconnectedError, UnsupportedVersionError
from groupcoord.client.exponential_backoff import ExponentialBackoff
from groupcoord.client.network_client import NetworkClient
from groupcoord.client.option_value_parsing import parse_addresses
from groupcoord.protocol.apis.join_group import JoinGroupRequestProtocol
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import HeartbeatRequest, JoinGroupRequest
from groupcoord.testing import Cluster
from groupcoord.testing.member_tcp_connection import BrokerLocator, TcpConnection
from groupcoord.testing.trace import RequestReceived

pytestmark = pytest.mark.asyncio

BEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


def joining(group: str) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id="",
        group_instance_id="i",
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="p", metadata=b""),),
    )


class Lines:
    """Lines to one broker, and what they could tell nobody."""

    def __init__(self, kafka: Cluster) -> None:
        bootstrap = parse_addresses(kafka.address)
        self.cluster = NetworkClient(
            bootstrap,
            client_id="finder",
            request_timeout_ms=5_000,
            metadata_max_age_ms=5_000,
            backoff=ExponentialBackoff(100, 1_000, lambda: 0.5),
            allow_auto_create_topics=False,
        )
        self.places = BrokerLocator(self.cluster, bootstrap[0])
        self.failed: list[Exception] = []
        self.heard = 0
        self.made: list[TcpConnection] = []

    def line(self, client_id: str = "c") -> TcpConnection:
        line = TcpConnection(self.places, client_id, heard=self._hear, failed=self.failed.append)
        self.made.append(line)
        return line

    def _hear(self) -> None:
        self.heard += 1


@asynccontextmanager
async def lines_to(kafka: Cluster) -> AsyncIterator[Lines]:
    lines = Lines(kafka)
    try:
        yield lines
    finally:
        for line in lines.made:
            line.close()
            await line.closed()
        await lines.cluster.close()


async def answer_of(ask: Callable[[Callable[[Any], None]], None]) -> Any:
    answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    ask(answered.set_result)
    async with asyncio.timeout(10):
        return await answered


async def test_requests_arrive_in_order_over_one_connection() -> None:
    async with Cluster(clock="manual") as kafka, lines_to(kafka) as lines:
        line = lines.line()
        answers: list[Any] = []
        line.ask(BEAT, answers.append, version=0)
        line.ask_coordinator("g", BEAT, answers.append, version=1)
        assert (await answer_of(lambda to: line.ask(BEAT, to, broker_id=1))).error_code == ErrorCode.UNKNOWN_MEMBER_ID
        assert len(answers) == 2
        await line.sent()
        asked = kafka.trace.of(RequestReceived, api="Heartbeat")
        assert [event.version for event in asked] == [0, 1, 4]
        assert len({event.connection_id for event in asked}) == 1
        assert (lines.heard, lines.failed) == (3, [])


async def test_what_waits_for_others_has_a_connection_of_its_own() -> None:
    async with Cluster(clock="manual") as kafka, lines_to(kafka) as lines:
        line = lines.line()
        hold = kafka.faults.when("JoinGroup").hold().times(2)
        waiting = asyncio.gather(*[answer_of(partial(line.ask, joining(group))) for group in "ab"])
        await hold.wait(2)
        await answer_of(lambda to: line.ask(BEAT, to))
        assert not waiting.done()
        hold.release()
        assert [answer.error_code for answer in await waiting] == [ErrorCode.NONE, ErrorCode.NONE]
        await answer_of(lambda to: line.ask(joining("c"), to))
        asked = kafka.trace.of(RequestReceived, api="JoinGroup")
        assert len({event.connection_id for event in asked}) == 2  # the third had one of those that were free again


async def test_a_closed_connection_is_told_and_a_new_one_opened() -> None:
    async with Cluster(clock="manual") as kafka, lines_to(kafka) as lines:
        line = lines.line()
        kafka.faults.when("Heartbeat").disconnect()
        assert await answer_of(lambda to: line.ask(BEAT, to)) is None
        assert (await answer_of(lambda to: line.ask(BEAT, to))).error_code == ErrorCode.UNKNOWN_MEMBER_ID
        assert (await answer_of(lambda to: line.ask(joining("a"), to))).error_code == ErrorCode.NONE
        await kafka.restart()
        assert (await answer_of(lambda to: line.ask(joining("b"), to))).error_code == ErrorCode.NONE
        assert (await answer_of(lambda to: line.ask(BEAT, to))).error_code == ErrorCode.UNKNOWN_MEMBER_ID
        assert await answer_of(lambda to: line.ask(BEAT, to, broker_id=7)) is None
        assert lines.failed == []


async def test_who_is_closed_hears_and_says_nothing() -> None:
    async with Cluster(clock="manual") as kafka, lines_to(kafka) as lines:
        line = lines.line()
        hold = kafka.faults.when("Heartbeat").hold()
        heard: list[Any] = []
        line.ask(BEAT, heard.append)
        await hold.wait()
        line.close()
        with pytest.raises(RuntimeError, match="c has vanished"):
            line.ask(BEAT, heard.append)
        await line.closed()
        hold.release()
        await kafka.settle()
        assert heard == []


async def test_what_nobody_was_told_is_kept() -> None:
    def fails(_: Any) -> None:
        raise ZeroDivisionError

    async with Cluster(clock="manual") as kafka, lines_to(kafka) as lines:
        line = lines.line()
        assert await answer_of(lambda to: line.ask(BEAT, to, version=99)) is None
        line.ask(BEAT, fails)
        await answer_of(lambda to: line.ask(BEAT, to))
        assert [type(error) for error in lines.failed] == [UnsupportedVersionError, ZeroDivisionError]


async def test_places() -> None:
    async with Cluster(clock="manual") as kafka, lines_to(kafka) as lines:
        first = parse_addresses(kafka.address)[0]
        assert await lines.places.broker(None) == first
        assert await lines.places.broker(1) == await lines.places.broker(1) == first
        kafka.faults.when("FindCoordinator").refuse("COORDINATOR_NOT_AVAILABLE")
        assert await lines.places.coordinator("g") == first  # asked again
        kafka.faults.when("FindCoordinator").refuse("GROUP_AUTHORIZATION_FAILED")
        with pytest.raises(ValueError, match="group 'g': GROUP_AUTHORIZATION_FAILED"):
            await lines.places.coordinator("g")
        with pytest.raises(DisconnectedError, match="broker 9 is not known"):
            await lines.places.broker(9)
        assert len(kafka.trace.of(RequestReceived, api="Metadata")) == 2
