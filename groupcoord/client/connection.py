"""One connection to one broker: requests out, responses in, in the same order.

A broker answers the requests of a connection in order, so a response belongs to the oldest request without one; the correlation
id only confirms it. A request that is not answered in time closes the connection, as in Kafka (``NetworkClient``): the next
response could not be told from a late one. Responses in old versions are upgraded to the shape of the newest version.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, cast

from groupcoord.client.client_errors import (
    ConnectionClosedError,
    DisconnectedError,
    RequestTimedOutError,
    UnsupportedVersionError,
)
from groupcoord.protocol.apis import API_BY_REQUEST, APIS, Api, ApiKey
from groupcoord.protocol.apis.api_versions import ApiVersionsRequest, ApiVersionsResponse
from groupcoord.protocol.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from groupcoord.protocol.apis.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from groupcoord.protocol.apis.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from groupcoord.protocol.errors import ErrorCode, WireError
from groupcoord.protocol.framing import FrameBuffer, encode_request, parse_response
from groupcoord.version import VERSION

REGEX_VERSION = 1
"""The first version of ConsumerGroupHeartbeat that has regular expressions."""
SOFTWARE_NAME = "groupcoord"
MAX_RESPONSE_BYTES = (1 << 31) - 1


class _InFlightRequest(NamedTuple):
    """A request under way, and the future of its response."""

    api: Api
    version: int
    correlation_id: int
    request: Any
    answer: "asyncio.Future[Any]"


class BrokerConnection(asyncio.Protocol):
    """A connection with negotiated API versions; made by ``connect``."""

    def __init__(self, host: str, port: int, client_id: str) -> None:
        self.host, self.port = host, port
        self._client_id = client_id
        self._frames = FrameBuffer(MAX_RESPONSE_BYTES)
        self._asked: deque[_InFlightRequest] = deque()
        self._versions: dict[int, tuple[int, int]] = {}
        self._correlation_id = 0
        self._transport: asyncio.Transport | None = None
        self._lost: DisconnectedError | None = None

    def __repr__(self) -> str:
        return f"<Connection {self.host}:{self.port} {'lost' if self._lost else f'{len(self._asked)} in flight'}>"

    @classmethod
    async def connect(cls, host: str, port: int, *, client_id: str, timeout_ms: int) -> "BrokerConnection":
        """Connect and negotiate API versions. Raises DisconnectedError, UnsupportedVersionError."""
        connection = cls(host, port, client_id)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await asyncio.get_running_loop().create_connection(lambda: connection, host, port)
                await connection._negotiate(timeout_ms)
        except OSError as problem:  # TimeoutError is one
            connection.close()
            raise DisconnectedError(f"{host}:{port} cannot be reached: {problem or 'no answer in time'}") from problem
        except BaseException:
            connection.close()
            raise
        return connection

    @property
    def open(self) -> bool:
        """Is the connection open?"""
        return self._lost is None

    def highest_version(self, request: type, limit: int | None = None) -> int:
        """The highest version, up to ``limit``, at which both sides speak ``request``. Raises UnsupportedVersionError."""
        api = API_BY_REQUEST[request]
        low, high = self._versions.get(api.key, (0, -1))
        version = min(api.max_version, high if limit is None else min(high, limit))
        if version < max(api.min_version, low):
            raise UnsupportedVersionError(
                f"{api.name}: the broker at {self.host}:{self.port} speaks versions {low} to {high}, "
                f"this client {api.min_version} to {api.max_version}"
                + ("" if limit is None else f", and what is asked is said in versions up to {limit}")
            )
        return version

    async def request(self, request: Any, timeout_ms: int, *, limit: int | None = None) -> Any:
        """The answer to ``request``, sent at the highest common version up to ``limit``, in its newest shape.

        Raises DisconnectedError, among them RequestTimedOutError, and UnsupportedVersionError.
        """
        version = self.highest_version(type(request), limit)
        if (
            isinstance(request, ConsumerGroupHeartbeatRequest)
            and request.subscribed_topic_regex
            and version < REGEX_VERSION
        ):
            raise UnsupportedVersionError(
                f"ConsumerGroupHeartbeat: the broker at {self.host}:{self.port} does not know subscriptions by regular "
                f"expression, which came with version {REGEX_VERSION}"
            )
        return await self._exchange(request, version, timeout_ms)

    def close(self) -> None:
        """Close; requests under way raise DisconnectedError."""
        self._lose(ConnectionClosedError(f"the connection to {self.host}:{self.port} was closed"))

    # asyncio.Protocol.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is open."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Data has been received."""
        self._frames.feed(data)
        try:
            for frame in self._frames.frames():
                self._received(frame)
        except WireError as problem:
            self._lose(DisconnectedError(f"{self.host}:{self.port} sent something that is no answer: {problem}"))

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection has been closed, by either side."""
        self._lose(DisconnectedError(f"{self.host}:{self.port} closed the connection{f': {exc}' if exc else ''}"))

    # Requests and responses.

    async def _negotiate(self, timeout_ms: int) -> None:
        """Send ApiVersions; if the broker does not know its version, send the one that the broker names (KIP-511)."""
        ask = ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=VERSION)
        highest = APIS[ApiKey.API_VERSIONS].max_version
        answer: ApiVersionsResponse = await self._exchange(ask, highest, timeout_ms)
        if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
            offered = (each.max_version for each in answer.api_keys if each.api_key == ApiKey.API_VERSIONS)
            answer = await self._exchange(ask, min(next(offered, 0), highest), timeout_ms)
        if answer.error_code:
            raise UnsupportedVersionError(
                f"{self.host}:{self.port} answered ApiVersions with {ErrorCode(answer.error_code).name}"
            )
        self._versions = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}

    async def _exchange(self, request: Any, version: int, timeout_ms: int) -> Any:
        if self._lost is not None:
            raise self._lost
        assert self._transport is not None  # noqa: S101 - who has a connection has it from `connect`
        api = API_BY_REQUEST[type(request)]
        self._correlation_id = self._correlation_id + 1 & 0x7FFFFFFF
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._asked.append(_InFlightRequest(api, version, self._correlation_id, request, answer))
        self._transport.write(encode_request(api, version, self._correlation_id, self._client_id, request))
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                return await answer
        except TimeoutError:
            if answer.done() and not answer.cancelled():
                return answer.result()  # it came while this process was held up, for longer than the request may take
            problem = RequestTimedOutError(f"{self.host}:{self.port} did not answer {api.name} in {timeout_ms} ms")
            self._lose(problem)
            raise problem from None

    def _received(self, frame: bytes) -> None:
        if not self._asked:
            raise WireError("nothing was asked")
        asked = self._asked[0]
        version = asked.version
        if asked.api.key == ApiKey.API_VERSIONS and _is_version_0_refusal(frame):
            version = 0
        correlation_id, response = parse_response(asked.api, version, frame)
        if correlation_id != asked.correlation_id:
            raise WireError(f"correlation id {correlation_id} where {asked.correlation_id} was expected")
        self._asked.popleft()
        if not asked.answer.done():
            asked.answer.set_result(upgrade_response(asked.request, response, version))

    def _lose(self, problem: DisconnectedError) -> None:
        if self._lost is None:
            self._lost = problem
            if self._transport is not None:
                self._transport.abort()
        while self._asked:
            answer = self._asked.popleft().answer
            if not answer.done():
                answer.set_exception(self._lost)


def _is_version_0_refusal(frame: bytes) -> bool:
    """Is this an ApiVersions response with UNSUPPORTED_VERSION, which always has version 0?"""
    return int.from_bytes(frame[4:6]) == ErrorCode.UNSUPPORTED_VERSION


def upgrade_response(request: Any, response: Any, version: int) -> Any:
    """The answer to ``request`` that came in ``version``, in the shape of the newest version."""
    upgrade = _UPGRADES.get(type(response))
    return response if upgrade is None else upgrade(request, response, version)


def _find_coordinator(
    request: FindCoordinatorRequest, response: FindCoordinatorResponse, version: int
) -> FindCoordinatorResponse:
    """v0–3 answer one key and do not name it."""
    if version >= 4:
        return response
    found = Coordinator(
        key=request.key,
        node_id=response.node_id,
        host=response.host,
        port=response.port,
        error_code=response.error_code,
        error_message=response.error_message,
    )
    return replace(response, coordinators=(found,))


def _offset_fetch(request: OffsetFetchRequest, response: OffsetFetchResponse, version: int) -> OffsetFetchResponse:
    """v1–7 answer one group and do not name it."""
    if version >= 8:
        return response
    topics = tuple(
        OffsetFetchResponseTopics(
            name=topic.name,
            partitions=tuple(
                OffsetFetchResponsePartitions(
                    partition_index=partition.partition_index,
                    committed_offset=partition.committed_offset,
                    committed_leader_epoch=partition.committed_leader_epoch,
                    metadata=partition.metadata,
                    error_code=partition.error_code,
                )
                for partition in topic.partitions
            ),
        )
        for topic in response.topics
    )
    group = OffsetFetchResponseGroup(group_id=request.group_id, topics=topics, error_code=response.error_code)
    return replace(response, groups=(group,))


_UPGRADES: Mapping[type, Callable[[Any, Any, int], Any]] = {
    FindCoordinatorResponse: _find_coordinator,
    OffsetFetchResponse: _offset_fetch,
}
