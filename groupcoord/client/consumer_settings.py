"""The settings of a consumer (``ConsumerConfig``): Kafka's names with underscores, defaults, bounds and documentation.

The table of settings in docs/client.md is generated from this file.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from typing import Any

from groupcoord.assignors import Assignor
from groupcoord.client import option_value_parsing
from groupcoord.client.exponential_backoff import ExponentialBackoff
from groupcoord.client.member.member_settings import MemberSettings
from groupcoord.client.option_value_parsing import GroupProtocol
from groupcoord.did_you_mean import did_you_mean

Deserializer = Callable[[bytes], Any]


def _number(default: int, *, least: int = 0) -> Any:
    """A field with an integer of ``least`` or more."""
    return field(default=default, metadata={"least": least})


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSettings:
    """Kafka's settings of a consumer; all times are milliseconds. Raises ValueError for what cannot work."""

    bootstrap_servers: str | Iterable[str]
    """``host:port`` of any brokers, in one string with commas between them or in several."""
    group_id: str | None = None
    """The consumer group. Without one, nothing is committed, and the consumer reads all partitions of its topics."""
    group_instance_id: str | None = None
    """Makes it a static member: it does not leave when it closes, and keeps its partitions if it rejoins in time (KIP-345)."""
    client_id: str = "groupcoord"
    """The client id in requests. Kafka's consumer generates one from its group and a number."""
    client_rack: str | None = None
    """The rack of the consumer: it fetches from replicas in it (KIP-392), and assignors prefer it (KIP-881)."""
    group_protocol: str = "classic"
    """``classic``: an elected member assigns; ``consumer``: the coordinator does (KIP-848)."""
    group_remote_assignor: str | None = None
    """The server-side assignor, only with ``group_protocol="consumer"``; None leaves the choice to the coordinator."""
    partition_assignment_strategy: str | Assignor | Sequence[str | Assignor] | None = None
    """Assignors in order of preference, as names or objects of ``groupcoord.assignors``; classic protocol only. None is
    ``range`` and ``cooperative-sticky``: eager until all members have removed ``range``."""
    session_timeout_ms: int | None = None
    """The coordinator removes the member after so long without a heartbeat; classic protocol only. None is 45000."""
    heartbeat_interval_ms: int | None = None
    """The time between two heartbeats; classic protocol only. None is 3000."""
    max_poll_interval_ms: int = _number(300_000, least=1)
    """If the user does not poll for so long, the member leaves the group until the next poll. Also the limit of an assignor."""
    max_poll_records: int = _number(500, least=1)
    """The most records that one ``getmany`` returns."""
    auto_offset_reset: str = "latest"
    """Where to start without a committed or valid offset: ``earliest``, ``latest``, or ``none`` for an error."""
    enable_auto_commit: bool | None = None
    """Are positions committed automatically? None is True in a group, and False without one."""
    auto_commit_interval_ms: int = _number(5_000)
    """The time between two automatic commits."""
    isolation_level: str = "read_uncommitted"
    """``read_committed`` skips records of transactions that are not committed."""
    key_deserializer: Deserializer | None = None
    """Called with the bytes of each key, returns the key of the record. None leaves bytes."""
    value_deserializer: Deserializer | None = None
    """The same for values."""
    fetch_min_bytes: int = _number(1)
    """A broker with fewer bytes waits for more, but no longer than ``fetch_max_wait_ms``."""
    fetch_max_wait_ms: int = _number(500)
    """The longest time that a broker waits for ``fetch_min_bytes``."""
    fetch_max_bytes: int = _number(52_428_800)
    """The most bytes in one Fetch response, except for a first batch that is larger."""
    max_partition_fetch_bytes: int = _number(1_048_576)
    """The most bytes of one partition in a Fetch response, except for a first batch that is larger."""
    check_crcs: bool = True
    """Are the CRCs of batches verified?"""
    allow_auto_create_topics: bool = True
    """May a broker create a subscribed topic that does not exist, if ``auto.create.topics.enable`` allows it?"""
    exclude_internal_topics: bool = True
    """Are ``__consumer_offsets`` and ``__transaction_state`` left out of ``topics()`` and of what a pattern matches?"""
    metadata_max_age_ms: int = _number(300_000, least=1)
    """The age at which metadata is refreshed, so that new topics, partitions and leaders are found."""
    request_timeout_ms: int = _number(30_000, least=1)
    """The time-out of a request and of opening a connection; then the connection is closed."""
    default_api_timeout_ms: int = _number(60_000, least=1)
    """``commit``, ``committed``, ``position``, ``end_offsets`` … raise TimeoutError after so long."""
    retry_backoff_ms: int = _number(100)
    """The pause before a request is retried; it doubles with each attempt."""
    retry_backoff_max_ms: int = _number(1_000)
    """The longest such pause."""

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if "least" in each.metadata:
                _check_number(each.name, value, each.metadata["least"])
            elif isinstance(each.default, bool) and not isinstance(value, bool):
                raise ValueError(f"{each.name} is True or False, not {value!r}")
        if self.group_id == "":
            raise ValueError("group_id is a name that is not empty; leave it out to consume without a group")
        if self.enable_auto_commit and self.group_id is None:
            raise ValueError("enable_auto_commit=True needs a group_id: offsets are committed for a group")
        if self.enable_auto_commit not in (None, True, False):
            raise ValueError(f"enable_auto_commit is True or False, not {self.enable_auto_commit!r}")
        for name in ("key_deserializer", "value_deserializer"):
            if getattr(self, name) is not None and not callable(getattr(self, name)):
                raise ValueError(f"{name} is a function that takes bytes, not {getattr(self, name)!r}")
        option_value_parsing.offset_reset(self.auto_offset_reset)
        option_value_parsing.isolation_level(self.isolation_level)

    @property
    def protocol(self) -> GroupProtocol:
        """The group protocol. Raises ValueError for settings that only the other one has."""
        return option_value_parsing.group_protocol(
            self.group_protocol,
            classic={
                "partition_assignment_strategy": self.partition_assignment_strategy,
                "session_timeout_ms": self.session_timeout_ms,
                "heartbeat_interval_ms": self.heartbeat_interval_ms,
            },
            consumer={"group_remote_assignor": self.group_remote_assignor},
        )

    @property
    def commits_by_itself(self) -> bool:
        """Does the consumer commit automatically?"""
        return self.group_id is not None and self.enable_auto_commit is not False

    def of_member(self) -> MemberSettings:
        """The settings of the group member. Raises ValueError."""
        given = {"session_timeout_ms": self.session_timeout_ms, "heartbeat_interval_ms": self.heartbeat_interval_ms}
        return MemberSettings(
            group_id=self.group_id or "",
            instance_id=self.group_instance_id,
            rack_id=self.client_rack or None,
            max_poll_interval_ms=self.max_poll_interval_ms,
            request_timeout_ms=self.request_timeout_ms,
            retry_backoff_ms=self.retry_backoff_ms,
            retry_backoff_max_ms=self.retry_backoff_max_ms,
            auto_commit=self.commits_by_itself,
            remote_assignor=self.group_remote_assignor,
            **{name: value for name, value in given.items() if value is not None},
        )

    def backoff(self, chance: Callable[[], float]) -> ExponentialBackoff:
        """The back-off between retries."""
        return ExponentialBackoff(self.retry_backoff_ms, self.retry_backoff_max_ms, chance)


def _check_number(name: str, value: object, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{name} is a whole number, not {value!r}")
    if value < least:
        raise ValueError(f"{name} is {least} or more, not {value}")


SETTINGS = tuple(each.name for each in fields(ConsumerSettings))
"""The names of all settings."""

OTHER_NAMES: Mapping[str, str] = {
    "api_timeout_ms": "default_api_timeout_ms",
    "assignors": "partition_assignment_strategy",
    "bootstrap": "bootstrap_servers",
    "brokers": "bootstrap_servers",
    "fetch_wait_max_ms": "fetch_max_wait_ms",
    "fetch_message_max_bytes": "max_partition_fetch_bytes",
    "group": "group_id",
    "instance_id": "group_instance_id",
    "rack": "client_rack",
    "rack_id": "client_rack",
    "rebalance_timeout_ms": "max_poll_interval_ms",
}
"""Names of settings in other clients, and likely mistakes, with the right name."""

LEFT_OUT: Mapping[str, str] = {
    "security_*": "connections are plain: the client speaks neither TLS nor SASL",
    "ssl_*": "connections are plain: the client speaks no TLS",
    "sasl_*": "connections are plain: the client speaks no SASL",
    "metric*": "there are no metrics: listeners are told every step",
    "enable_metrics_push": "there are no metrics: listeners are told every step",
    "reconnect_backoff_*": "requests wait retry_backoff_ms to retry_backoff_max_ms, and open the connection that they need",
    "socket_connection_setup_*": "opening a connection may take as long as a request: request_timeout_ms",
    "connections_max_idle_ms": "the broker closes idle connections, and the next request opens another",
    "client_dns_lookup": "names are looked up as asyncio does it",
    "send_buffer_bytes": "sockets are as asyncio opens them",
    "receive_buffer_bytes": "sockets are as asyncio opens them",
    "interceptor_classes": "change records where you read them, or in a deserializer",
    "config_providers": "read secrets where you make the consumer",
    "metadata_recovery_*": "it always asks the bootstrap_servers when no broker it knows of answers",
    "api_version": "the highest version that both sides speak is negotiated with every connection",
    "consumer_timeout_ms": "getmany has timeout_ms; around getone, asyncio.timeout does it",
    "loop": "the loop that runs is used",
    "topics": 'topics are the first arguments, as in Consumer("orders", "payments")',
    "listener": "on_assigned, on_revoked and on_lost are functions of their own",
}
"""Settings of Kafka's consumer, aiokafka and confluent-kafka that this client lacks, and why; ``*`` matches any suffix."""


def read_settings(given: Mapping[str, Any]) -> ConsumerSettings:
    """The settings in ``given``, by name. Raises ValueError, which suggests the nearest name for an unknown one."""
    for name in given:
        if name not in SETTINGS:
            raise ValueError(_unknown(name))
    if "bootstrap_servers" not in given:
        raise ValueError(
            'bootstrap_servers is needed: host:port of any brokers, as in bootstrap_servers="127.0.0.1:9092"'
        )
    return ConsumerSettings(**given)


def _unknown(name: str) -> str:
    plain = name.replace(".", "_")
    if plain in SETTINGS:
        return f"there is no setting {name}: it is written {plain}"
    for pattern, why in LEFT_OUT.items():
        if fnmatchcase(plain, pattern):
            return f"there is no setting {name}: {why}"
    if plain in OTHER_NAMES:
        return f"there is no setting {name}: did you mean {OTHER_NAMES[plain]}?"
    hint = did_you_mean(plain, SETTINGS, otherwise=f"there are {', '.join(sorted(SETTINGS))}")
    return f"there is no setting {name}: {hint}"
