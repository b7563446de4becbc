"""Reads the TLS and SASL configs of Kafka's clients from a properties file, as Kafka's tools take with ``--command-config``.

Certificates and keys are PEM files (KIP-651); Java key stores are refused. librdkafka's config names are accepted, too.
"""

import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from groupcoord.client.sasl import MECHANISMS, OAUTHBEARER, SaslLogin
from groupcoord.did_you_mean import did_you_mean

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
TOKEN_URL = "sasl.oauthbearer.token.endpoint.url"  # noqa: S105 - a name
PROPERTIES = (
    "security.protocol",
    "sasl.mechanism",
    "sasl.mechanisms",
    "sasl.jaas.config",
    "sasl.username",
    "sasl.password",
    TOKEN_URL,
    "sasl.login.callback.handler.class",
    "ssl.ca.location",
    "ssl.truststore.location",
    "ssl.truststore.certificates",
    "ssl.truststore.type",
    "ssl.certificate.location",
    "ssl.key.location",
    "ssl.key.password",
    "ssl.keystore.location",
    "ssl.keystore.type",
    "ssl.endpoint.identification.algorithm",
)
"""The supported properties. Others with the prefixes ``security.``, ``sasl.`` or ``ssl.`` are refused, not ignored."""
_PREFIXES = ("security.", "sasl.", "ssl.")


@dataclass(frozen=True)
class ConnectionSecurity:
    """How to secure a connection: with TLS if ``tls`` is set, and with SASL if ``sasl`` is set."""

    tls: ssl.SSLContext | None = None
    sasl: SaslLogin | None = None


PLAINTEXT = ConnectionSecurity()


def read_command_config(path: str | Path) -> ConnectionSecurity:
    """The security configs in the properties file at ``path``. Raises ValueError, which names the file and the property."""
    try:
        properties = parse_properties(Path(path).read_text(encoding="utf-8"))
        return security_of(properties)
    except OSError as problem:
        raise ValueError(f"cannot read {problem.filename}: {problem.strerror}") from None
    except ValueError as problem:
        raise ValueError(f"{path}: {problem}") from None


def security_of(properties: Mapping[str, str]) -> ConnectionSecurity:
    """The security configs among ``properties``; others are ignored. Raises ValueError, and OSError for a file."""
    for name in properties:
        if name.startswith(_PREFIXES) and name not in PROPERTIES:
            hint = did_you_mean(name, PROPERTIES, otherwise=f"there are {', '.join(sorted(PROPERTIES))}")
            raise ValueError(f"{name} is not known here; {hint}")
    protocol = properties.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in PROTOCOLS:
        raise ValueError(f"security.protocol is one of {', '.join(PROTOCOLS)}, not {protocol}")
    tls = _tls(properties) if protocol.endswith("SSL") else None
    return ConnectionSecurity(tls, _login(properties) if protocol.startswith("SASL") else None)


def _login(properties: Mapping[str, str]) -> SaslLogin:
    mechanism = properties.get("sasl.mechanism") or properties.get("sasl.mechanisms", "")
    if mechanism not in MECHANISMS:
        raise ValueError(f"sasl.mechanism is one of {', '.join(MECHANISMS)}, not {mechanism or 'missing'}")
    if mechanism == OAUTHBEARER:
        url = urlsplit(properties.get(TOKEN_URL, ""))
        if url.scheme != "file":
            raise ValueError(
                f"{TOKEN_URL} is the file:/// URL of a file with the token, not {url.geturl() or 'missing'}"
            )
        return SaslLogin(mechanism=mechanism, token_file=Path(unquote(url.path)))
    jaas = _jaas_options(properties.get("sasl.jaas.config", ""))
    username, password = (properties.get(f"sasl.{name}", jaas.get(name)) for name in ("username", "password"))
    if username is None or password is None:
        raise ValueError(
            f"{mechanism} needs username and password: in sasl.jaas.config, or sasl.username and sasl.password"
        )
    return SaslLogin(mechanism=mechanism, username=username, password=password)


_JAAS_OPTION = re.compile(r"""(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))""")


def _jaas_options(text: str) -> dict[str, str]:
    """The options in ``CLASS required name="value" …;``."""
    found = _JAAS_OPTION.findall(text)
    return {name: re.sub(r"\\(.)", r"\1", quoted) if quoted else bare for name, quoted, bare in found}


def _tls(properties: Mapping[str, str]) -> ssl.SSLContext:
    for store in ("ssl.truststore", "ssl.keystore"):
        kind = properties.get(f"{store}.type", "JKS").upper()
        if f"{store}.location" in properties and kind != "PEM":
            raise ValueError(f"{store}.location is read if {store}.type is PEM, not {kind}")
    trusted = properties.get("ssl.ca.location") or properties.get("ssl.truststore.location")
    given = properties.get("ssl.truststore.certificates")
    if trusted is not None:
        given = Path(trusted).read_text(encoding="utf-8")
    context = ssl.create_default_context()
    if given is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        try:
            context.load_verify_locations(
                cadata=given.encode("ascii", "ignore").decode()
            )  # the names after the first may differ
        except (ssl.SSLError, ValueError) as problem:
            raise ValueError(
                f"{trusted or 'ssl.truststore.certificates'} has no certificates as PEM: {problem}"
            ) from None
    context.check_hostname = properties.get("ssl.endpoint.identification.algorithm", "https").lower() == "https"
    chain = properties.get("ssl.certificate.location") or properties.get("ssl.keystore.location")
    if chain is not None:
        password = properties.get("ssl.key.password", "")  # None would make ssl ask for it on the terminal
        try:
            context.load_cert_chain(chain, properties.get("ssl.key.location"), password)
        except ssl.SSLError as problem:
            raise ValueError(
                f"{chain} is not a certificate with its key as PEM, or ssl.key.password is wrong: {problem}"
            ) from None
    return context


_LINE = re.compile(r"((?:[^\\=:\s]|\\.)+)\s*[=:\s]?\s*(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}


def parse_properties(text: str) -> dict[str, str]:
    """Parse a properties file as ``java.util.Properties.load`` does."""
    found: dict[str, str] = {}
    begun = ""
    for written in text.splitlines():
        line = begun + written.lstrip()
        if not begun and line[:1] in ("#", "!"):
            continue
        if (len(line) - len(line.rstrip("\\"))) % 2:
            begun = line[:-1]
            continue
        begun = ""
        if pair := _LINE.fullmatch(line):
            found[_unescaped(pair[1])] = _unescaped(pair[2])
    return found


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda one: chr(int(one[1], 16)) if one[1] else _ESCAPED.get(one[2], one[2]), text)
