"""One TCP connection to one broker: TLS, SASL, ApiVersions, then requests and their responses.

A broker responds to the requests of a connection in order, so a response belongs to the oldest request without one; the
correlation id only confirms it. A request without a response in time closes the connection, as in Kafka (``NetworkClient``),
because a late response would be taken for that of the next request. Callers use the newest version of each message;
``version_adaptation`` converts it to the version that the broker supports.
"""

import asyncio
import math
import ssl
import time
from collections import deque
from typing import Any, NamedTuple, cast

from groupcoord.client.client_errors import (
    AuthenticationError,
    ConnectionClosedError,
    DisconnectedError,
    RequestTimedOutError,
    UnsecuredConnectionError,
    UnsupportedVersionError,
)
from groupcoord.client.connection_security import PLAINTEXT, ConnectionSecurity
from groupcoord.client.sasl import (
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslError,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
    SaslLogin,
)
from groupcoord.client.version_adaptation import downgrade_request, unsupported_by_version, upgrade_response
from groupcoord.protocol.apis import API_BY_REQUEST, APIS, Api, ApiKey
from groupcoord.protocol.apis.api_versions import ApiVersionsRequest, ApiVersionsResponse
from groupcoord.protocol.errors import ErrorCode, WireError
from groupcoord.protocol.framing import FrameBuffer, encode_request, parse_response
from groupcoord.version import VERSION

SOFTWARE_NAME = "groupcoord"
MAX_RESPONSE_BYTES = (1 << 31) - 1
LIFETIME_USED = 0.85
"""A connection is used for this fraction of its SASL session lifetime. Source: ``SaslClientAuthenticator.ReauthInfo``."""
_OTHER_HOST = (62, 64)  # X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH


class _InFlightRequest(NamedTuple):
    """A request in flight, and the future of its response."""

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
        self._is_served = False
        self._usable_until = math.inf

    def __repr__(self) -> str:
        return f"<Connection {self.host}:{self.port} {'lost' if self._lost else f'{len(self._asked)} in flight'}>"

    @classmethod
    async def connect(
        cls, host: str, port: int, *, client_id: str, timeout_ms: int, security: ConnectionSecurity = PLAINTEXT
    ) -> "BrokerConnection":
        """Connect, agree on API versions, log in. Raises DisconnectedError, UnsupportedVersionError, AuthenticationError."""
        connection = cls(host, port, client_id)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await asyncio.get_running_loop().create_connection(lambda: connection, host, port, ssl=security.tls)
                await connection._negotiate(timeout_ms)
                if security.sasl is not None:
                    await connection._log_in(security.sasl, timeout_ms)
        except ssl.SSLError as problem:
            connection.close()
            raise AuthenticationError(f"{host}:{port}: {_tls_problem(problem)}") from problem
        except OSError as problem:  # TimeoutError is an OSError
            connection.close()
            said = str(problem) or (
                "it speaks no TLS, or none that this client does" if security.tls else "no answer in time"
            )
            raise DisconnectedError(f"{host}:{port} cannot be reached: {said}") from problem
        except DisconnectedError as problem:
            connection.close()
            raise problem if security.tls else UnsecuredConnectionError(f"{problem}; it may want TLS") from None
        except BaseException:
            connection.close()
            raise
        return connection

    @property
    def open(self) -> bool:
        """Is the connection open, and its login valid for some time?"""
        return self._lost is None and time.monotonic() < self._usable_until

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
        """The response to ``request``, which is sent at the highest common version up to ``limit``; in the newest version.

        Raises DisconnectedError, among them RequestTimedOutError, and UnsupportedVersionError.
        """
        version = self.highest_version(type(request), limit)
        problem = unsupported_by_version(request, version)
        if problem:
            raise UnsupportedVersionError(f"the broker at {self.host}:{self.port} speaks no newer version: {problem}")
        return await self._exchange(downgrade_request(request, version), version, timeout_ms)

    def send(self, request: Any, *, limit: int | None = None) -> None:
        """Send a ``request`` without a response: Produce with ``acks=0``. Raises DisconnectedError, UnsupportedVersionError."""
        self._send(API_BY_REQUEST[type(request)], self.highest_version(type(request), limit), request)

    def close(self) -> None:
        """Close; requests in flight raise DisconnectedError."""
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
            self._lose(DisconnectedError(f"{self.host}:{self.port} sent something that is not an answer: {problem}"))

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection has been closed, by either side."""
        said = f"{self.host}:{self.port} closed the connection{f': {exc}' if exc else ''}"
        # A listener that requires SASL answers ApiVersions, and closes the connection at any other request before the login.
        is_refused = self._asked and self._versions and not self._is_served
        self._lose(UnsecuredConnectionError(f"{said}; it may want a login") if is_refused else DisconnectedError(said))

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

    async def _log_in(self, login: SaslLogin, timeout_ms: int) -> None:
        where = f"{self.host}:{self.port}"
        _, highest = self._versions.get(ApiKey.SASL_AUTHENTICATE, (0, -1))
        if highest < 0:
            raise AuthenticationError(f"{where} knows no login by SASL, or is older than Kafka 1.0")
        chosen: SaslHandshakeResponse = await self._exchange(
            SaslHandshakeRequest(mechanism=login.mechanism), 1, timeout_ms, SASL_HANDSHAKE
        )
        if chosen.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            raise AuthenticationError(f"{where} takes {', '.join(chosen.mechanisms)}, not {login.mechanism}")
        if chosen.error_code:
            raise AuthenticationError(f"{where} wants no login by SASL there: {ErrorCode(chosen.error_code).name}")
        version = min(SASL_AUTHENTICATE.max_version, highest)
        answer = SaslAuthenticateResponse()
        try:
            messages = login.messages()
            sent = next(messages)
            while True:
                asked = SaslAuthenticateRequest(auth_bytes=sent)
                answer = await self._exchange(asked, version, timeout_ms, SASL_AUTHENTICATE)
                if answer.error_code:
                    said = answer.error_message or ErrorCode(answer.error_code).text
                    raise AuthenticationError(f"{where} refuses {login.who}: {said}")
                sent = messages.send(answer.auth_bytes)
        except StopIteration:
            pass
        except SaslError as problem:
            raise AuthenticationError(f"{where}, {login.mechanism} for {login.who}: {problem}") from None
        if answer.session_lifetime_ms:
            self._usable_until = time.monotonic() + LIFETIME_USED * answer.session_lifetime_ms / 1000

    async def _exchange(self, request: Any, version: int, timeout_ms: int, api: Api | None = None) -> Any:
        api = api or API_BY_REQUEST[type(request)]
        correlation_id = self._send(api, version, request)
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._asked.append(_InFlightRequest(api, version, correlation_id, request, answer))
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                return await answer
        except TimeoutError:
            if answer.done() and not answer.cancelled():
                return answer.result()  # the response came while this process was blocked for longer than the time-out
            problem = RequestTimedOutError(f"{self.host}:{self.port} did not answer {api.name} in {timeout_ms} ms")
            self._lose(problem)
            raise problem from None

    def _send(self, api: Api, version: int, request: Any) -> int:
        """The correlation id with which ``request`` was sent."""
        if self._lost is not None:
            raise self._lost
        assert self._transport is not None  # noqa: S101 - only `connect` returns connections
        self._correlation_id = self._correlation_id + 1 & 0x7FFFFFFF
        self._transport.write(encode_request(api, version, self._correlation_id, self._client_id, request))
        return self._correlation_id

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
        self._is_served |= asked.api.key != ApiKey.API_VERSIONS
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


def _tls_problem(problem: ssl.SSLError) -> str:
    if not isinstance(problem, ssl.SSLCertVerificationError):
        return f"no connection with TLS: {problem.reason or problem}"
    if problem.verify_code in _OTHER_HOST:
        return f"its certificate is for another host: {problem.verify_message}"
    return f"its certificate is not trusted: {problem.verify_message}"
