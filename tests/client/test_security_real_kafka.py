"""Logins by every mechanism to a real Kafka, with TLS and without, and what is said of those that fail."""

import base64
import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from groupcoord.client.client_errors import AuthenticationError, DisconnectedError
from groupcoord.client.connection_security import TOKEN_URL, read_command_config
from groupcoord.client.log_reader import LogReader
from tests.client.certificates import Authority
from tests.conftest import StartRealKafka
from tests.real_kafka.lone_node import free_port

MODULES = {
    "PLAIN": "plain.PlainLoginModule",
    "SCRAM-SHA-256": "scram.ScramLoginModule",
    "SCRAM-SHA-512": "scram.ScramLoginModule",
    "OAUTHBEARER": "oauthbearer.OAuthBearerLoginModule",
}
LISTENERS = {"TLS": "SSL", "TLSMUTUAL": "SSL", "LOGIN": "SASL_PLAINTEXT", "TLSLOGIN": "SASL_SSL"}
USER, PASSWORD = "al=ice,", 'päss"wörd'


class Secured(NamedTuple):
    """A broker with listeners of all security protocols."""

    ports: dict[str, int]
    folder: Path
    authority: Authority
    client: Path

    def topics(self, listener: str, properties: Mapping[str, str], host: str = "127.0.0.1") -> dict[str, list[int]]:
        path = self.folder / "client.properties"
        lines = {"ssl.ca.location": str(self.authority.trusted), **properties}
        path.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
        security = read_command_config(path)
        with LogReader([(host, self.ports[listener])], client_id="test", security=security) as reader:
            return reader.partitions(["__consumer_offsets"])


@pytest.fixture(scope="module")
def secured(start_kafka_process: StartRealKafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("secured")
    authority = Authority(folder)
    ports = {name: free_port() for name in LISTENERS}
    at = ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items())
    properties = {
        "listeners": at,
        "advertised.listeners": at,
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in LISTENERS.items()),
        "offsets.topic.num.partitions": "2",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.signed("127.0.0.1")),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.trusted),
        "listener.name.tlsmutual.ssl.client.auth": "required",
    }
    options = {
        "PLAIN": r'username="admin" password="admin" user_alice="alice-secret"',
        "OAUTHBEARER": 'unsecuredLoginStringClaim_sub="admin"',
    }
    for name in ("login", "tlslogin"):
        properties[f"listener.name.{name}.sasl.enabled.mechanisms"] = ",".join(MODULES)
        for mechanism, module in MODULES.items():
            jaas = f"org.apache.kafka.common.security.{module} required {options.get(mechanism, '')};"
            properties[f"listener.name.{name}.{mechanism.lower()}.sasl.jaas.config"] = jaas
    with start_kafka_process(properties) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        for kind in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            change = UserScramCredentialUpsertion(USER, ScramCredentialInfo(kind, 4096), PASSWORD.encode())
            for answer in admin.alter_user_scram_credentials([change]).values():
                answer.result(60)
        yield Secured(ports, folder, authority, authority.signed("client"))


def jaas(mechanism: str, username: str, password: str) -> str:
    escaped = password.replace('"', r"\\\"").replace("ä", r"\u00e4")
    module = MODULES[mechanism]
    return f'org.apache.kafka.common.security.{module} required username="{username}" \\\n  password="{escaped}";'


FOUND = {"__consumer_offsets": [0, 1]}


def test_the_log_is_read_with_tls(secured: Secured) -> None:
    tls = {"security.protocol": "SSL"}
    assert secured.topics("TLS", tls) == FOUND
    mutual = {**tls, "ssl.keystore.type": "PEM", "ssl.keystore.location": str(secured.client)}
    assert secured.topics("TLSMUTUAL", mutual) == FOUND
    with pytest.raises((AuthenticationError, DisconnectedError)):
        secured.topics("TLSMUTUAL", tls)


@pytest.mark.parametrize("listener", ["LOGIN", "TLSLOGIN"])
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_user_logs_in_by_password_and_a_wrong_one_is_told(secured: Secured, listener: str, mechanism: str) -> None:
    user, password = ("alice", "alice-secret") if mechanism == "PLAIN" else (USER, PASSWORD)
    common = {"security.protocol": LISTENERS[listener], "sasl.mechanism": mechanism}
    assert secured.topics(listener, {**common, "sasl.jaas.config": jaas(mechanism, user, password)}) == FOUND
    with pytest.raises(AuthenticationError, match=rf"refuses user {user}: Authentication failed.*[Ii]nvalid"):
        secured.topics(listener, {**common, "sasl.username": user, "sasl.password": "wrong"})


def unsecured_token(lifetime_s: int) -> str:
    now = int(time.time())
    parts = [{"alg": "none"}, {"sub": "alice", "iat": now, "exp": now + lifetime_s}]
    return ".".join(base64.urlsafe_b64encode(json.dumps(each).encode()).decode().rstrip("=") for each in parts) + "."


def test_a_client_logs_in_by_a_token_and_one_that_is_none_is_told(secured: Secured) -> None:
    token = secured.folder / "token"
    properties = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER", TOKEN_URL: token.as_uri()}
    token.write_text(unsecured_token(600) + "\n")
    assert secured.topics("TLSLOGIN", properties) == FOUND
    token.write_text("nothing")
    with pytest.raises(AuthenticationError, match=f"refuses the token in {token}: .*invalid_token"):
        secured.topics("TLSLOGIN", properties)


def test_what_does_not_fit_the_listener_is_told(secured: Secured, tmp_path: Path) -> None:
    other, tls = Authority(tmp_path), {"security.protocol": "SSL"}
    login = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "a",
        "sasl.password": "b",
    }
    with pytest.raises(AuthenticationError, match=r"127\.0\.0\.1:\d+: its certificate is not trusted: "):
        secured.topics("TLS", {**tls, "ssl.ca.location": str(other.trusted)})
    with pytest.raises(AuthenticationError, match=r"localhost:\d+: its certificate is for another host: .*localhost"):
        secured.topics("TLS", tls, "localhost")
    assert secured.topics("TLS", {**tls, "ssl.endpoint.identification.algorithm": ""}, "localhost") == FOUND
    with pytest.raises(
        DisconnectedError, match=r"127\.0\.0\.1:\d+ cannot be reached: it speaks no TLS, or none that this client does"
    ):
        secured.topics("LOGIN", tls)
    with pytest.raises(DisconnectedError, match="; it may want TLS"):
        secured.topics("TLS", {})
    with pytest.raises(AuthenticationError, match="wants no login by SASL there: ILLEGAL_SASL_STATE"):
        secured.topics("TLS", {**login, "security.protocol": "SASL_SSL"})
    with pytest.raises(DisconnectedError, match="closed the connection; it may want a login"):
        secured.topics("LOGIN", {})
