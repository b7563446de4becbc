"""Parses the values of options of the clients: topics, patterns, assignors, isolation levels, bootstrap addresses."""

import base64
import enum
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence

from groupcoord.assignors import ASSIGNORS, Assignor

DEFAULT_ASSIGNORS = ("range", "cooperative-sticky")
"""Kafka's default: eager rebalancing, and cooperative once all members have removed ``range`` from the list."""
ISOLATION_LEVELS = {"read_uncommitted": 0, "read_committed": 1}


_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def topic_names(topics: str | Iterable[str]) -> frozenset[str]:
    """The topics to subscribe to: one name or several. Raises ValueError if there is none, or for an invalid topic name.

    Source: ``Topic.validate``.
    """
    names = frozenset([topics] if isinstance(topics, str) else topics)
    if not names:
        raise ValueError("subscribe to one topic at least; unsubscribe() ends a subscription")
    for name in sorted(names, key=str):
        if not (isinstance(name, str) and _TOPIC_NAME.fullmatch(name)) or name in (".", ".."):
            hint = "; an address goes into bootstrap_servers" if ":" in str(name) else ""
            raise ValueError(
                f"{name!r} is not a name of a topic: 1 to 249 letters, digits, dots, underscores and dashes{hint}"
            )
    return names


def topic_pattern(pattern: str | re.Pattern[str]) -> re.Pattern[str]:
    """Compile a pattern that this client matches against whole topic names. Raises ValueError."""
    if not pattern:
        raise ValueError("a pattern is not empty")
    try:
        return re.compile(pattern)
    except re.error as problem:
        raise ValueError(f"{pattern!r} is not a regular expression: {problem}") from problem


def assignors_of(wanted: str | Assignor | Sequence[str | Assignor]) -> list[Assignor]:
    """Assignors by name or as they are, the most wanted first. Raises UnknownAssignorError."""
    listed: Sequence[str | Assignor] = (
        wanted if isinstance(wanted, Sequence) and not isinstance(wanted, str) else [wanted]
    )
    return [ASSIGNORS.create(each) if isinstance(each, str) else each for each in listed]


class GroupProtocol(enum.Enum):
    """``group.protocol``: who assigns partitions."""

    CLASSIC = "classic"
    """An elected member."""
    CONSUMER = "consumer"
    """The coordinator (KIP-848)."""


def group_protocol(name: str, classic: Mapping[str, object], consumer: Mapping[str, object]) -> GroupProtocol:
    """Parse ``group.protocol``, case-insensitively. Raises ValueError if a setting of the other protocol only is not None.

    Source: ``ConsumerConfig.checkUnsupportedConfigsPostProcess``.
    """
    names = [protocol.value for protocol in GroupProtocol]
    if name.lower() not in names:
        raise ValueError(f"group_protocol is one of {', '.join(names)}, not {name}")
    protocol = GroupProtocol(name.lower())
    foreign = consumer if protocol is GroupProtocol.CLASSIC else classic
    wrong = [setting for setting, value in foreign.items() if value is not None]
    if wrong:
        raise ValueError(f"{', '.join(wrong)} cannot be set with group_protocol={protocol.value}")
    return protocol


def new_member_id() -> str:
    """A random member id as Kafka's clients generate it (KIP-1082): 22 characters, the first not "-" (``Uuid.randomUuid``)."""
    while (text := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        continue
    return text


def isolation_level(name: str) -> int:
    """The wire value of an isolation level. Raises ValueError for an unknown one."""
    if name not in ISOLATION_LEVELS:
        raise ValueError(f"isolation_level is one of {', '.join(ISOLATION_LEVELS)}, not {name}")
    return ISOLATION_LEVELS[name]


OFFSET_RESETS = ("earliest", "latest", "none")
_OTHER_RESETS = {"smallest": "earliest", "beginning": "earliest", "largest": "latest", "end": "latest", "error": "none"}
"""Their names in librdkafka and old consumers."""


def offset_reset(name: str) -> str:
    """Check an ``auto_offset_reset``. Raises ValueError for an unknown one, with the likely right one."""
    if name in OFFSET_RESETS:
        return name
    if str(name).startswith("by_duration"):
        hint = "; for by_duration, seek to what offsets_for_times answers"
    else:
        hint = f"; {name} is {_OTHER_RESETS[name]}" if name in _OTHER_RESETS else ""
    raise ValueError(f"auto_offset_reset is one of {', '.join(OFFSET_RESETS)}, not {name!r}{hint}")


Address = tuple[str, int]
DEFAULT_PORT = 9092


def parse_addresses(bootstrap: str | Iterable[str], *, default_port: int | None = DEFAULT_PORT) -> tuple[Address, ...]:
    """``host:port`` of several brokers, separated by commas or in several strings. Raises ValueError, also for none."""
    texts = bootstrap.split(",") if isinstance(bootstrap, str) else list(bootstrap)
    found = tuple(parse_address(text, default_port=default_port) for text in texts if text.strip())
    if not found:
        raise ValueError("no address of a broker was given")
    return found


def parse_address(text: str, *, default_port: int | None = None) -> Address:
    """``host:port``; without ``default_port`` the port must be there. An IPv6 host is in brackets. Raises ValueError."""
    text = text.strip()
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        if default_port is None:
            raise ValueError(f"{text!r} is not HOST:PORT")
        return text.strip("[]"), default_port
    if not (port.isascii() and port.isdecimal() and 0 < int(port) < 65_536):
        raise ValueError(f"{text}: {port} is not a port")
    return host.strip("[]"), int(port)
