"""Listeners and advertised listeners: parses their addresses, and checks that they fit together.

Every listener except those of controllers is served, in plain text, and a client gets the advertised addresses of the listener
to which it is connected. Contradictions are refused with Kafka's messages (``AbstractKafkaConfig.listenerListToEndPoints``,
``KafkaConfig.validateValues``).

Deviation (scope-of-a-stand-in): see cluster/api_versions.py.
"""

import ipaddress
import re
from collections.abc import Container, Iterable, Sequence
from itertools import combinations, groupby
from typing import NamedTuple

from groupcoord.config.config_def import trim

LAST_PORT = 65_535
_INT32 = 1 << 31

_LISTENER = re.compile(r"(.*)://(\[[0-9a-zA-Z%\-:]*\]|[0-9a-zA-Z._\-]*):(-?\d+)", re.ASCII)
_KAFKAS_LISTENER = re.compile(r"(.*)://\[?[0-9a-zA-Z\-%._:]*\]?:(-?\d+)", re.ASCII)
"""It takes brackets that do not close, too."""
_NO_NAME = "The provided listener name is null or empty string"
_PROTOCOLS = frozenset({"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"})
_NOWHERE = frozenset({"0.0.0.0", "::"})  # noqa: S104 - told apart, not bound


class Endpoint(NamedTuple):
    """An address of a named listener; an IPv6 host has no brackets."""

    listener: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.listener}://{host}:{self.port}"


def parse_endpoint(text: str) -> Endpoint:
    """Parses ``PLAINTEXT://host:9092``. Raises ValueError."""
    match = _LISTENER.fullmatch(text)
    if match is None:
        raise ValueError(f"{text} is not of the form NAME://HOST:PORT")
    name, host, port = match.groups()
    if not 0 <= int(port) <= LAST_PORT:
        raise ValueError(f"{text} has a port that is not between 0 and {LAST_PORT}")
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


def parse_endpoints(texts: Sequence[str]) -> tuple[Endpoint, ...]:
    """The endpoints of ``listeners`` or ``advertised.listeners``, with distinct names. Raises ValueError."""
    endpoints = tuple(map(parse_endpoint, texts))
    if len({endpoint.listener for endpoint in endpoints}) < len(endpoints):
        raise ValueError(f"Each listener must have a different name, listeners: {_java_list(texts)}")
    return endpoints


def kafka_text(texts: Sequence[str], protocols: Container[str]) -> str:
    """What Kafka says of ``listeners`` that it cannot parse, or whose names are not in ``protocols``; empty if nothing."""
    fault = next(filter(None, (_kafka_fault(text, protocols) for text in texts)), "")
    names = {text.partition("://")[0].upper() for text in texts}
    if not fault and len(names) < len(texts):
        fault = f"Each listener must have a different name, listeners: {_java_list(texts)}"
    return fault and f"Error creating broker listeners from '{_java_list(texts)}': {fault}"


def _kafka_fault(text: str, protocols: Container[str]) -> str:
    match = _KAFKAS_LISTENER.fullmatch(text)
    if match is None:
        return f"Unable to parse {text} to a broker endpoint"
    name, port = match.groups()
    if not -_INT32 <= int(port) < _INT32:
        return f'For input string: "{port}"'
    if not name:
        return _NO_NAME
    return "" if name.upper() in protocols else f"No security protocol defined for listener {name.upper()}"


def kafka_text_of_protocols(text: str) -> str:
    """What Kafka says of a ``listener.security.protocol.map`` that it cannot parse."""
    items = [trim(item) for item in text.rstrip(",").split(",")]
    where = next((f"begin 0, end -1, length {len(item)}" for item in items if ":" not in item), "")
    if where:
        return f"Error parsing configuration property 'listener.security.protocol.map': {where}"
    protocols = {trim(name): trim(protocol) for name, _, protocol in (item.rpartition(":") for item in items)}
    if "" in protocols:
        return _NO_NAME
    wrong = next((protocol for protocol in protocols.values() if protocol.upper() not in _PROTOCOLS), "")
    return f"Invalid security protocol `{wrong}` defined in listener.security.protocol.map"


def check_ports(endpoints: Sequence[Endpoint], brokers: int = 1) -> None:
    """Refuse listeners with the same port, unless one is IPv4 and the other IPv6. Port 0 is any port.

    Of several ``brokers`` the second listens on the next port after the first one's, and so on. Raises ValueError.
    """
    listeners = _java_list(endpoints)
    by_port = sorted((endpoint for endpoint in endpoints if endpoint.port), key=lambda endpoint: endpoint.port)
    for port, same_port in groupby(by_port, key=lambda endpoint: endpoint.port):
        versions = [_ip_version(endpoint.host) for endpoint in same_port]
        where = f"listeners: {listeners}, port: {port}"
        if versions.count(None) > 1:
            raise ValueError(f"Each listener must have a different port, listeners: {listeners}")
        if len(versions) - versions.count(None) > 2:
            raise ValueError(
                "Each listener must have a different port unless exactly one listener has an IPv4 address and the other "
                f"IPv6 address, {where}"
            )
        if len(versions) > 1 and sorted(map(str, versions)) != ["4", "6"]:
            raise ValueError(
                f"If you have two listeners on the same port then one needs to be IPv4 and the other IPv6, {where}"
            )
    for one, other in combinations(by_port, 2):
        if 0 < other.port - one.port < brokers:
            raise ValueError(
                f"the {brokers} brokers listen on ports one behind the other, so that {one} and {other} would meet; "
                f"leave {brokers} ports between listeners"
            )


def _ip_version(host: str) -> int | None:
    try:
        return ipaddress.ip_address(host).version
    except ValueError:
        return None


def _java_list(items: Iterable[object]) -> str:
    return f"[{', '.join(map(str, items))}]"


def served_endpoints(
    listeners: Sequence[Endpoint], *, controllers: Iterable[str], protocols: dict[str, str]
) -> tuple[Endpoint, ...]:
    """The endpoints of ``listeners`` that are served: all but the controllers'. Raises ValueError."""
    not_for_clients = {name.upper() for name in controllers}
    served = tuple(endpoint for endpoint in listeners if endpoint.listener not in not_for_clients)
    if not served:
        raise ValueError(
            "There must be at least one broker advertised listener. "
            "Perhaps all listeners appear in controller.listener.names?"
        )
    for name in (endpoint.listener for endpoint in served):
        protocol = protocols.get(name)
        if protocol is None:
            raise ValueError(
                f"No security protocol defined for listener {name}; listener.security.protocol.map={name}:PLAINTEXT "
                "defines one"
            )
        if protocol != "PLAINTEXT":
            raise ValueError(f"{name} speaks {protocol}; only PLAINTEXT can be served")
    return served


def advertised_endpoints(
    served: Sequence[Endpoint], advertised: Sequence[Endpoint] | None, *, controllers: Iterable[str] = ()
) -> tuple[Endpoint | None, ...]:
    """The endpoint for clients of each listener in ``served``: its advertised one, else its listening address.

    A wildcard address cannot be advertised; ``localhost`` replaces it if none is configured. None for a listener that is not
    advertised while others are: its clients see no broker. Raises ValueError.
    """
    if advertised is None:
        return tuple(endpoint._replace(host=_reachable(endpoint.host)) for endpoint in served)
    not_for_clients = {name.upper() for name in controllers}
    by_name = {endpoint.listener: endpoint for endpoint in advertised if endpoint.listener not in not_for_clients}
    names = [endpoint.listener for endpoint in served]
    if not by_name.keys() <= set(names):
        raise ValueError(
            "advertised.listeners listener names must be equal to or a subset of the ones defined in listeners. "
            f"Found {','.join(by_name)}. The valid options based on the current configuration are {','.join(names)}"
        )
    for endpoint in by_name.values():
        if endpoint.host in _NOWHERE:
            raise ValueError(
                f"advertised.listeners cannot use the nonroutable meta-address {endpoint.host}. Use a routable IP address."
            )
    return tuple(
        None
        if (told := by_name.get(endpoint.listener)) is None
        else told._replace(host=told.host or _reachable(endpoint.host), port=told.port or endpoint.port)
        for endpoint in served
    )


def _reachable(host: str) -> str:
    return host if host and host not in _NOWHERE else "localhost"


def check_inter_broker_listener(name: str, advertised: Sequence[Endpoint | None]) -> None:
    """Refuse an inter-broker listener, called ``name``, that is not advertised. Raises ValueError."""
    names = [endpoint.listener for endpoint in advertised if endpoint is not None]
    if name.upper() not in names:
        raise ValueError(
            "inter.broker.listener.name must be a listener name defined in advertised.listeners. "
            f"The valid options based on currently configured listeners are {','.join(names)}"
        )


def rewritten(texts: Sequence[str], endpoints: Iterable[Endpoint]) -> str:
    """``texts`` of ``listeners`` or ``advertised.listeners``, in which ``endpoints`` replace those with their names."""
    new = {endpoint.listener: endpoint for endpoint in endpoints}
    return ",".join(str(new.get(endpoint.listener, endpoint)) for endpoint in map(parse_endpoint, texts))
