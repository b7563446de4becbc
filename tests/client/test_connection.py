"""One connection: negotiation, order, time-outs, and brokers that do not behave."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from groupcoord.client.client_errors import (
    DisconnectedError,
    RequestTimedOutError,
    UnsecuredConnectionError,
    UnsupportedVersionError,
)
from groupcoord.client.connection import BrokerConnection
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.apis.api_versions import ApiVersion
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.framing import encode_response
from groupcoord.protocol.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FindCoordinatorRequest,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    MetadataRequest,
)
from tests.client.broker import HANG, HANG_UP, broker, eventually, patiently

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
FIND = FindCoordinatorRequest(key="g", coordinator_keys=("g",))
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def connect(address: str, timeout_ms: int = 5_000) -> BrokerConnection:
    host, _, port = address.rpartition(":")
    return await BrokerConnection.connect(host, int(port), client_id="c", timeout_ms=timeout_ms)


@asynccontextmanager
async def somebody(talk: Talk) -> AsyncIterator[str]:
    """Somebody who listens at an address and is not a real broker."""

    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await talk(reader, writer)
            await reader.read()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(served, "127.0.0.1", 0)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def request_from(reader: asyncio.StreamReader) -> tuple[int, int]:
    """(version, correlation id) of the next request."""
    frame = await reader.readexactly(int.from_bytes(await reader.readexactly(4)))
    return int.from_bytes(frame[2:4]), int.from_bytes(frame[4:8])


def versions(**highest: int) -> ApiVersionsResponse:
    return ApiVersionsResponse(
        api_keys=tuple(
            ApiVersion(api_key=ApiKey[name], min_version=0, max_version=high) for name, high in highest.items()
        )
    )


@pytest.mark.asyncio
@patiently
async def test_requests_go_out_at_the_highest_common_version() -> None:
    async with broker() as real:
        connection = await connect(real.address)
        answer = await connection.request(FIND, 5_000)
        assert answer.coordinators[0].key == "g"
        assert (real.calls[-1].version, real.calls[-1].client_id) == (6, "c")
        await connection.request(FIND, 5_000, limit=3)
        assert real.calls[-1].version == 3
        assert repr(connection) == f"<Connection {real.address} 0 in flight>"
        connection.close()
        assert repr(connection).endswith("lost>")


@pytest.mark.asyncio
@patiently
async def test_old_brokers_are_spoken_to_in_old_versions_and_answer_in_the_new_shape() -> None:
    async with broker() as real:
        real.speaks(FindCoordinator=2)
        connection = await connect(real.address)
        answer = await connection.request(FIND, 5_000)
        assert real.calls[-1].version == 2
        assert answer.coordinators[0].key == "g"
        connection.close()


@pytest.mark.asyncio
@patiently
async def test_what_nobody_speaks_is_said_to_nobody() -> None:
    async with broker() as real:
        real.speaks(JoinGroup=-1, Metadata=3)
        connection = await connect(real.address)
        join = JoinGroupRequest(group_id="g", session_timeout_ms=1, member_id="", protocol_type="consumer")
        with pytest.raises(UnsupportedVersionError, match=r"JoinGroup: the broker at .* speaks versions 0 to -1"):
            await connection.request(join, 5_000)
        with pytest.raises(UnsupportedVersionError, match="what is asked is said in versions up to -1"):
            await connection.request(MetadataRequest(), 5_000, limit=-1)
        assert connection.open
        connection.close()


@pytest.mark.asyncio
@patiently
async def test_answers_come_in_the_order_of_the_requests() -> None:
    async with broker() as real:
        connection = await connect(real.address)
        keys = [f"g{number}" for number in range(20)]
        requests = [FindCoordinatorRequest(key=key, coordinator_keys=(key,)) for key in keys]
        answers = await asyncio.gather(*(connection.request(request, 5_000) for request in requests))
        assert [answer.coordinators[0].key for answer in answers] == keys
        connection.close()


@pytest.mark.asyncio
@patiently
async def test_a_request_without_an_answer_ends_the_connection() -> None:
    async with broker() as real:
        connection = await connect(real.address)
        real.answers(HeartbeatRequest, HANG)
        await connection.request(FIND, 5_000)
        first = asyncio.create_task(connection.request(HEARTBEAT, 10))
        hopeless = asyncio.create_task(connection.request(FIND, 5_000))
        with pytest.raises(RequestTimedOutError, match="did not answer Heartbeat in 10 ms"):
            await first
        with pytest.raises(RequestTimedOutError):
            await hopeless
        with pytest.raises(RequestTimedOutError):
            await connection.request(FIND, 5_000)
        assert not connection.open


@pytest.mark.asyncio
@patiently
async def test_an_answer_that_is_there_when_the_time_is_over_counts() -> None:
    """A process that was held up finds both at once: the answer, and that it waited for too long."""
    async with broker() as real:
        connection = await connect(real.address)
        await connection.request(FIND, 5_000)
        real.answers(HeartbeatRequest, HANG)
        asking = asyncio.create_task(connection.request(HEARTBEAT, 0))  # its time is over in the next round of the loop
        answer = encode_response(APIS[ApiKey.HEARTBEAT], 4, 3, HeartbeatResponse(throttle_time_ms=7))
        asyncio.get_running_loop().call_soon(connection.data_received, answer)
        assert (await asking).throttle_time_ms == 7
        assert connection.open
        connection.close()


@pytest.mark.asyncio
@patiently
async def test_a_broker_that_hangs_up() -> None:
    async with broker() as real:
        connection = await connect(real.address)
        real.answers(HeartbeatRequest, HANG_UP)
        with pytest.raises(UnsecuredConnectionError, match="closed the connection; it may want a login"):
            await connection.request(HEARTBEAT, 5_000)
        connection = await connect(real.address)
        real.answers(HeartbeatRequest, HeartbeatResponse())
        await connection.request(HEARTBEAT, 5_000)
        real.answers(HeartbeatRequest, HANG_UP)
        with pytest.raises(DisconnectedError, match=r"closed the connection$"):
            await connection.request(HEARTBEAT, 5_000)


@pytest.mark.asyncio
@patiently
async def test_closing_answers_those_who_wait() -> None:
    async with broker() as real:
        connection = await connect(real.address)
        real.answers(HeartbeatRequest, HANG)
        waiting = asyncio.create_task(connection.request(HEARTBEAT, 5_000))
        await real.gets(HeartbeatRequest)
        connection.close()
        connection.close()
        with pytest.raises(DisconnectedError, match="was closed"):
            await waiting


@pytest.mark.asyncio
@patiently
async def test_who_stops_waiting_does_not_confuse_the_others() -> None:
    async with broker() as real:
        connection = await connect(real.address)
        first = asyncio.create_task(connection.request(FIND, 5_000))
        second = asyncio.create_task(connection.request(HEARTBEAT, 5_000))
        await asyncio.wait([first], timeout=0)
        first.cancel()
        assert (await second).error_code == ErrorCode.UNKNOWN_MEMBER_ID
        waiting = asyncio.create_task(connection.request(FIND, 5_000))
        await asyncio.wait([waiting], timeout=0)
        waiting.cancel()
        await asyncio.wait([waiting])
        connection.close()


@pytest.mark.asyncio
@patiently
async def test_nobody_there() -> None:
    async with somebody(lambda reader, writer: reader.read()) as address:  # type: ignore[arg-type, return-value]
        pass
    with pytest.raises(DisconnectedError, match="cannot be reached"):
        await connect(address)


@pytest.mark.asyncio
@patiently
async def test_somebody_who_says_nothing() -> None:
    async def says_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with somebody(says_nothing) as address:
        with pytest.raises(DisconnectedError):
            await connect(address, timeout_ms=20)


@pytest.mark.asyncio
@patiently
async def test_who_connects_may_give_up() -> None:
    async def says_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with somebody(says_nothing) as address:
        connecting = asyncio.create_task(connect(address))
        await asyncio.wait([connecting], timeout=0.01)
        connecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connecting


@pytest.mark.asyncio
@patiently
async def test_a_broker_that_knows_only_old_ways_of_asking() -> None:
    """KIP-511: it refuses in version 0, with what it speaks."""
    asked: list[int] = []

    async def old(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        api = APIS[ApiKey.API_VERSIONS]
        refusal = replace(versions(API_VERSIONS=2), error_code=ErrorCode.UNSUPPORTED_VERSION)
        for answer, version in ((refusal, 0), (versions(API_VERSIONS=2, HEARTBEAT=1), 2)):
            at, correlation_id = await request_from(reader)
            asked.append(at)
            writer.write(encode_response(api, version, correlation_id, answer))

    async with somebody(old) as address:
        connection = await connect(address)
        assert (asked, connection.highest_version(HeartbeatRequest)) == ([4, 2], 1)
        connection.close()


@pytest.mark.asyncio
@patiently
async def test_a_broker_that_refuses_to_say_what_it_speaks() -> None:
    async with broker() as real:
        real.answers(ApiVersionsRequest, ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST))
        with pytest.raises(UnsupportedVersionError, match="answered ApiVersions with INVALID_REQUEST"):
            await connect(real.address)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"\0\0\0\x04\0\0\0\x63", "not an answer"),
        (b"\0\0\0\x02\0\0", "not an answer"),
        (b"\xff\xff\xff\xff", "not an answer"),
        (b"\0\0\0\x06\0\0\0\x63\0\x00", "not an answer"),
    ],
)
@pytest.mark.asyncio
@patiently
async def test_somebody_who_is_no_broker(data: bytes, problem: str) -> None:
    async def rude(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_from(reader)
        writer.write(data)

    async with somebody(rude) as address:
        with pytest.raises(DisconnectedError, match=problem):
            await connect(address)


@pytest.mark.asyncio
@patiently
async def test_an_answer_to_something_else() -> None:
    async def confused(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, correlation_id = await request_from(reader)
        writer.write(encode_response(APIS[ApiKey.API_VERSIONS], 4, correlation_id + 1, versions(HEARTBEAT=1)))

    async with somebody(confused) as address:
        with pytest.raises(DisconnectedError, match="correlation id 2 where 1 was expected"):
            await connect(address)


@pytest.mark.asyncio
@patiently
async def test_an_answer_to_nothing() -> None:
    async def eager(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, correlation_id = await request_from(reader)
        answer = encode_response(APIS[ApiKey.API_VERSIONS], 4, correlation_id, versions(HEARTBEAT=1))
        writer.write(answer)
        await writer.drain()
        writer.write(answer)

    async with somebody(eager) as address:
        connection = await connect(address)
        await eventually(lambda: not connection.open)
        with pytest.raises(DisconnectedError, match="nothing was asked"):
            await connection.request(HEARTBEAT, 5_000)
