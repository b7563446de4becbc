"""TLS and logins of a connection, told by somebody who answers like a broker."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from groupcoord.client import connection as connections
from groupcoord.client.client_errors import AuthenticationError, DisconnectedError
from groupcoord.client.connection import BrokerConnection
from groupcoord.client.connection_security import ConnectionSecurity, security_of
from groupcoord.client.exponential_backoff import ExponentialBackoff
from groupcoord.client.network_client import ConnectionPurpose, NetworkClient
from groupcoord.client.sasl import (
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    SaslAuthenticateResponse,
    SaslHandshakeResponse,
    SaslLogin,
)
from groupcoord.protocol.apis import APIS, Api, ApiKey
from groupcoord.protocol.apis.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.framing import encode_response
from tests.client.broker import patiently
from tests.client.certificates import Authority

pytestmark = pytest.mark.slow

KNOWN: dict[int, Api] = {
    ApiKey.API_VERSIONS: APIS[ApiKey.API_VERSIONS],
    ApiKey.SASL_HANDSHAKE: SASL_HANDSHAKE,
    ApiKey.SASL_AUTHENTICATE: SASL_AUTHENTICATE,
}
PLAIN = SaslLogin(mechanism="PLAIN", username="alice", password="secret")
ACCEPTED = SaslHandshakeResponse(mechanisms=("PLAIN",))


@asynccontextmanager
async def broker(*logins: Any, known: dict[int, Api] = KNOWN, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """The port of somebody who knows the versions of ``known``, and answers what comes after them with ``logins``."""
    left, writers = list(logins), []

    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        try:
            while True:
                frame = await reader.readexactly(int.from_bytes(await reader.readexactly(4)))
                api = KNOWN[int.from_bytes(frame[:2])]
                keys = (
                    ApiVersion(api_key=each.key, min_version=0, max_version=each.max_version) for each in known.values()
                )
                answer = ApiVersionsResponse(api_keys=tuple(keys)) if api.request is ApiVersionsRequest else left.pop(0)
                version, correlation_id = int.from_bytes(frame[2:4]), int.from_bytes(frame[4:8])
                writer.write(encode_response(api, version, correlation_id, answer))
        except (OSError, asyncio.IncompleteReadError):
            writer.close()

    server = await asyncio.start_server(served, "127.0.0.1", 0, ssl=tls)
    async with server:
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            for writer in writers:
                writer.transport.abort()


async def connect(port: int, security: ConnectionSecurity, host: str = "127.0.0.1") -> None:
    connection = await BrokerConnection.connect(host, port, client_id="c", timeout_ms=10_000, security=security)
    assert connection.open
    connection.close()


async def refused(port: int, security: ConnectionSecurity, host: str = "127.0.0.1") -> str:
    with pytest.raises(AuthenticationError) as problem:
        await connect(port, security, host)
    return str(problem.value).replace(str(port), "PORT")


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def trusting(path: Path) -> ConnectionSecurity:
    return security_of({"security.protocol": "SSL", "ssl.ca.location": str(path)})


@pytest.mark.asyncio
@patiently
async def test_who_a_broker_is_is_checked(authority: Authority, tmp_path: Path) -> None:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(authority.signed("127.0.0.1"))
    (tmp_path / "other").mkdir()
    async with broker(tls=server) as port:
        await connect(port, trusting(authority.trusted))
        told = await refused(port, trusting(Authority(tmp_path / "other").trusted))
        assert told.startswith("127.0.0.1:PORT: its certificate is not trusted: ")
        told = await refused(port, trusting(authority.trusted), "localhost")
        assert told.startswith("localhost:PORT: its certificate is for another host: ")
        old = trusting(authority.trusted)
        assert old.tls is not None
        server.minimum_version = ssl.TLSVersion.TLSv1_3
        old.tls.maximum_version = ssl.TLSVersion.TLSv1_2
        with pytest.raises(DisconnectedError, match="it speaks no TLS, or none that this client does"):
            await connect(port, old)
        with pytest.raises(DisconnectedError, match="; it may want TLS"):
            await connect(port, ConnectionSecurity())


@pytest.mark.asyncio
@patiently
async def test_somebody_without_tls_is_told(authority: Authority) -> None:
    async def say_no(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n")
        writer.close()

    async with await asyncio.start_server(say_no, "127.0.0.1", 0) as server:
        told = await refused(server.sockets[0].getsockname()[1], trusting(authority.trusted))
        assert told.startswith("127.0.0.1:PORT: no connection with TLS: ")


@pytest.mark.asyncio
@patiently
async def test_a_login_that_is_accepted_is_a_connection() -> None:
    async with broker(ACCEPTED, SaslAuthenticateResponse()) as port:
        await connect(port, ConnectionSecurity(sasl=PLAIN))


@pytest.mark.asyncio
@patiently
async def test_why_a_login_is_refused_is_told() -> None:
    security = ConnectionSecurity(sasl=PLAIN)
    unsupported = SaslHandshakeResponse(
        error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=("SCRAM-SHA-256", "OAUTHBEARER")
    )
    async with broker(unsupported) as port:
        assert await refused(port, security) == "127.0.0.1:PORT takes SCRAM-SHA-256, OAUTHBEARER, not PLAIN"
    async with broker(SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)) as port:
        told = await refused(port, security)
        assert told == "127.0.0.1:PORT wants no login by SASL there: ILLEGAL_SASL_STATE"
    async with broker(known={ApiKey.API_VERSIONS: KNOWN[ApiKey.API_VERSIONS]}) as port:
        assert await refused(port, security) == "127.0.0.1:PORT knows no login by SASL, or is older than Kafka 1.0"
    wrong = SaslAuthenticateResponse(
        error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message="Invalid username or password"
    )
    async with broker(ACCEPTED, wrong) as port:
        assert await refused(port, security) == "127.0.0.1:PORT refuses user alice: Invalid username or password"
    scram = ConnectionSecurity(sasl=SaslLogin(mechanism="SCRAM-SHA-256", username="alice", password="secret"))
    async with broker(ACCEPTED, SaslAuthenticateResponse(auth_bytes=b"hello")) as port:
        told = await refused(port, scram)
        assert told == "127.0.0.1:PORT, SCRAM-SHA-256 for user alice: 'hello' is not a message of SCRAM"


@pytest.mark.asyncio
@patiently
async def test_before_a_login_ends_another_connection_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(connections, "time", type("Time", (), {"monotonic": staticmethod(lambda: now)}))
    session = (ACCEPTED, SaslAuthenticateResponse(session_lifetime_ms=10_000))
    async with broker(*session, *session) as port:
        client = NetworkClient(
            [("127.0.0.1", port)],
            client_id="c",
            request_timeout_ms=10_000,
            metadata_max_age_ms=10_000,
            backoff=ExponentialBackoff(1, 1, lambda: 0.5),
            allow_auto_create_topics=False,
            security=ConnectionSecurity(sasl=PLAIN),
        )
        ask = ApiVersionsRequest(client_software_name="c", client_software_version="1")

        async def asked() -> set[Any]:
            await client.request_at(("127.0.0.1", port), ask, ConnectionPurpose.GENERAL)
            return {task.result() for task in client._connections.values()}

        first = await asked()
        now += 8.4
        assert await asked() == first
        now += 0.2
        second = await asked()
        assert second != first
        assert not any(connection.open for connection in first)
        await client.close()
