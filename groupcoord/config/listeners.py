"""Listeners: which address to listen on, and which one to tell clients.

Kafka serves any number of listeners, each with a security protocol of its own. One is served here, in plain text; of several,
it is the first that is neither a controller's nor, if there is another, the one between brokers.

Deviation (scope-of-a-stand-in): see cluster/api_versions.py.
"""

import re
from typing import NamedTuple

from groupcoord.config.config_def import trim

_LISTENER = re.compile(r"(.*)://(\[[0-9a-zA-Z%\-:]*\]|[0-9a-zA-Z._\-]*):(-?\d+)", re.ASCII)
_PROTOCOLS = frozenset({"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"})
_NOWHERE = frozenset({"0.0.0.0", "::"})  # noqa: S104 - told apart, not bound


class Endpoint(NamedTuple):
    """An address under the name of its listener; an IPv6 host has no brackets."""

    listener: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.listener}://{host}:{self.port}"


def parse_endpoint(text: str) -> Endpoint:
    """The endpoint written as ``PLAINTEXT://host:9092``. Raises ValueError."""
    match = _LISTENER.fullmatch(text)
    if match is None:
        raise ValueError(f"{text} is not of the form NAME://HOST:PORT")
    name, host, port = match.groups()
    if not 0 <= int(port) <= 65535:
        raise ValueError(f"{text} has a port that is not between 0 and 65535")
    return Endpoint(name.upper(), host.strip("[]"), int(port))


def parse_protocols(text: str) -> dict[str, str]:
    """Listener name → security protocol, from ``listener.security.protocol.map``. Raises ValueError."""
    protocols = {}
    for item in filter(None, map(trim, text.split(","))):
        name, colon, protocol = map(trim, item.rpartition(":"))
        if not colon:
            raise ValueError(f"{item} is not of the form LISTENER:PROTOCOL")
        if protocol.upper() not in _PROTOCOLS:
            raise ValueError(f"{protocol} is not a security protocol; {', '.join(sorted(_PROTOCOLS))} are")
        protocols[name.upper()] = protocol.upper()
    return protocols


def served_endpoint(
    listeners: tuple[str, ...], *, controllers: tuple[str, ...], between_brokers: str | None, protocols: dict[str, str]
) -> Endpoint:
    """The one endpoint of ``listeners`` to serve. Raises ValueError."""
    not_for_clients = {name.upper() for name in controllers}
    candidates = [endpoint for endpoint in map(parse_endpoint, listeners) if endpoint.listener not in not_for_clients]
    if not candidates:
        raise ValueError("there is no listener for clients; all of them are in controller.listener.names")
    for_clients = [end for end in candidates if end.listener != (between_brokers or "").upper()]
    chosen = (for_clients or candidates)[0]
    protocol = protocols.get(chosen.listener)
    if protocol is None:
        raise ValueError(f"listener.security.protocol.map does not name {chosen.listener}")
    if protocol != "PLAINTEXT":
        raise ValueError(f"{chosen.listener} speaks {protocol}; only PLAINTEXT can be served")
    return chosen


def advertised_endpoint(served: Endpoint, advertised: tuple[str, ...] | None) -> Endpoint:
    """What to tell clients: the advertised endpoint of the served listener, else the address it listens on.

    An address that means every interface cannot be advertised; ``localhost`` stands for it. Raises ValueError.
    """
    host = served.host if served.host and served.host not in _NOWHERE else "localhost"
    if advertised is None:
        return served._replace(host=host)
    endpoints = list(map(parse_endpoint, advertised))
    for endpoint in endpoints:
        if endpoint.host in _NOWHERE:
            raise ValueError(f"{endpoint} is no address that a client could connect to")
        if endpoint.listener == served.listener:
            return endpoint._replace(host=endpoint.host or host, port=endpoint.port or served.port)
    names = ", ".join(endpoint.listener for endpoint in endpoints)
    raise ValueError(f"{served.listener} is what is served, and only {names} is advertised")
