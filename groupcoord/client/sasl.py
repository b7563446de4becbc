"""SASL authentication of the client: PLAIN, SCRAM and OAUTHBEARER, and the messages SaslHandshake and SaslAuthenticate.

A mechanism is a generator: it yields the client's tokens and is sent the broker's. Sources: KIP-43 and KIP-152
for the two messages, RFC 4616 for PLAIN, RFC 5802 and KIP-84 for SCRAM, RFC 7628 and KIP-255 for OAUTHBEARER. Names and
passwords are sent in UTF-8, without SASLprep, as with Kafka's clients (``ScramFormatter.normalize``).
"""

import hashlib
import hmac
import secrets
from base64 import b64decode, b64encode
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

from groupcoord.protocol.api_descriptor import Api, ApiKey
from groupcoord.protocol.message_dataclass import message

OAUTHBEARER = "OAUTHBEARER"
_HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
MECHANISMS = ("PLAIN", *_HASHES, OAUTHBEARER)
_MOST_ITERATIONS = 1_000_000
"""The most SCRAM iterations that the client computes; Kafka's default is 4,096."""

SaslMessages = Generator[bytes, bytes, None]


@message
class SaslHandshakeRequest:
    """Chooses the mechanism. With v1 its tokens follow in SaslAuthenticate requests (KIP-152)."""

    mechanism: str


@message
class SaslHandshakeResponse:
    """Whether the broker has enabled the mechanism, and the enabled mechanisms."""

    error_code: int = 0
    mechanisms: tuple[str, ...] = ()


@message
class SaslAuthenticateRequest:
    """One token of the mechanism."""

    auth_bytes: bytes


@message
class SaslAuthenticateResponse:
    """The broker's token. v1 adds the lifetime of the session in ms; 0: unlimited (KIP-368)."""

    error_code: int = 0
    error_message: str | None = None
    auth_bytes: bytes = b""
    session_lifetime_ms: int = 0


SASL_HANDSHAKE = Api(
    key=ApiKey.SASL_HANDSHAKE,
    request=SaslHandshakeRequest,
    response=SaslHandshakeResponse,
    min_version=1,
    max_version=1,
    summary="Choose a mechanism of SASL",
)
SASL_AUTHENTICATE = Api(
    key=ApiKey.SASL_AUTHENTICATE,
    request=SaslAuthenticateRequest,
    response=SaslAuthenticateResponse,
    min_version=0,
    max_version=2,
    summary="Say who the client is",
)


class SaslError(Exception):
    """The broker violated the mechanism, or could not prove (SCRAM) that it knows the password."""


@dataclass(frozen=True, kw_only=True)
class SaslLogin:
    """The credentials of the client, for one of MECHANISMS; for OAUTHBEARER a file with the token, read at each login."""

    mechanism: str
    username: str = ""
    password: str = ""
    token_file: Path | None = None

    def __repr__(self) -> str:
        return f"<SaslLogin {self.who} by {self.mechanism}>"

    @property
    def who(self) -> str:
        """The identity of the client, for messages."""
        return f"user {self.username}" if self.token_file is None else f"the token in {self.token_file}"

    def messages(self) -> SaslMessages:
        """The generator of the mechanism, which raises SaslError; this does, too, if the token cannot be read."""
        if self.token_file is not None:
            try:
                return _oauthbearer(self.token_file.read_text(encoding="utf-8").strip())
            except OSError as problem:
                raise SaslError(f"it cannot be read: {problem.strerror}") from None
        if self.mechanism == "PLAIN":
            return _plain(self.username, self.password)
        return scram(_HASHES[self.mechanism], self.username, self.password, secrets.token_urlsafe(24))


def _plain(username: str, password: str) -> SaslMessages:
    yield f"\0{username}\0{password}".encode()


def _oauthbearer(token: str) -> SaslMessages:
    problem = yield f"n,,\x01auth=Bearer {token}\x01\x01".encode()
    if problem:
        yield b"\x01"  # RFC 7628: acknowledges the error, which the broker then repeats as an error code
        raise SaslError(problem.decode(errors="replace"))


def scram(hash_name: str, username: str, password: str, nonce: str) -> SaslMessages:
    """SCRAM with a hash of hashlib. ``nonce`` must never have been used before. Raises SaslError."""
    name = username.replace("=", "=3D").replace(",", "=2C")
    client_first = f"n={name},r={nonce}"
    server_first = (yield f"n,,{client_first}".encode()).decode(errors="replace")
    try:
        said = _attributes(server_first)
        salt, iterations, both_nonces = b64decode(said["s"], validate=True), int(said["i"]), said["r"]
    except (KeyError, ValueError):
        raise SaslError(f"{server_first!r} is not a message of SCRAM") from None
    if not both_nonces.startswith(nonce) or not 0 < iterations <= _MOST_ITERATIONS:
        raise SaslError(f"{server_first!r} has another nonce, or not 1 to {_MOST_ITERATIONS:,} iterations")
    client_final = f"c=biws,r={both_nonces}"
    exchanged = f"{client_first},{server_first},{client_final}".encode()
    salted = hashlib.pbkdf2_hmac(hash_name, password.encode(), salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", hash_name)
    signature = hmac.digest(hashlib.new(hash_name, client_key).digest(), exchanged, hash_name)
    proof = bytes(key ^ sign for key, sign in zip(client_key, signature, strict=True))
    server_final = (yield f"{client_final},p={b64encode(proof).decode()}".encode()).decode(errors="replace")
    expected = b64encode(hmac.digest(hmac.digest(salted, b"Server Key", hash_name), exchanged, hash_name)).decode()
    if not hmac.compare_digest(_attributes(server_final).get("v", "").encode(), expected.encode()):
        raise SaslError("the broker does not know the password itself")


def _attributes(text: str) -> dict[str, str]:
    return {name: value for name, _, value in (part.partition("=") for part in text.split(","))}
