"""The settings of a consumer: Kafka's names with underscores, Kafka's defaults, and what is refused.

Source: ``ConsumerConfig``. A setting stands here once, with its default, its bounds and its meaning; a table in
docs/client.md is generated from it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from typing import Any

from groupcoord.assignors import Assignor
from groupcoord.client import option_parsing
from groupcoord.client.fetcher import FetchSettings
from groupcoord.client.member.context import ExponentialBackoff, MemberSettings
from groupcoord.client.option_parsing import GroupProtocol

Deserializer = Callable[[bytes], Any]


def _number(default: int, *, least: int = 0) -> Any:
    """A whole number, ``least`` or more."""
    return field(default=default, metadata={"least": least})


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSettings:
    """Kafka's settings of a consumer; all times are milliseconds. Raises ValueError for what cannot work."""

    bootstrap_servers: str | Iterable[str]
    """``host:port`` of any brokers, in one string with commas between them or in several."""
    group_id: str | None = None
    """The group to be a member of. Without one, nothing is committed, and the consumer reads all partitions of its topics."""
    group_instance_id: str | None = None
    """Makes it a static member: no goodbye when it closes, and the same partitions when it comes back in time (KIP-345)."""
    client_id: str = "groupcoord"
    """What brokers call it. Kafka's consumer makes up a name of its group and a number."""
    client_rack: str | None = None
    """Where it runs: replicas that are near are read (KIP-392), and assignors heed it (KIP-881)."""
    group_protocol: str = "classic"
    """``classic``: an elected member assigns; ``consumer``: the coordinator does (KIP-848)."""
    group_remote_assignor: str | None = None
    """The coordinator's assignor, with ``group_protocol="consumer"`` alone; None leaves it to the coordinator."""
    partition_assignment_strategy: str | Assignor | Sequence[str | Assignor] | None = None
    """Assignors, the most wanted first, as names or objects of ``groupcoord.assignors``; classic protocol alone. None is
    ``range`` and ``cooperative-sticky``: eager until ``range`` is taken away."""
    session_timeout_ms: int | None = None
    """So long the coordinator waits for a heartbeat; classic protocol alone. None is 45000."""
    heartbeat_interval_ms: int | None = None
    """Between two heartbeats; classic protocol alone. None is 3000."""
    max_poll_interval_ms: int = _number(300_000, least=1)
    """A user that does not poll for so long is out of the group until it does. An assignor may take so long, too."""
    max_poll_records: int = _number(500, least=1)
    """The most records that one ``getmany`` returns."""
    auto_offset_reset: str = "latest"
    """Where to begin if nothing is committed or the offset is gone: ``earliest``, ``latest``, or ``none`` for an error."""
    enable_auto_commit: bool | None = None
    """Are positions committed by themselves? None is True in a group, and False without one."""
    auto_commit_interval_ms: int = _number(5_000)
    """Between two such commits."""
    isolation_level: str = "read_uncommitted"
    """``read_committed`` hides records of transactions that are not committed."""
    key_deserializer: Deserializer | None = None
    """Called with the bytes of each key; what it returns is the key of the record. None leaves bytes."""
    value_deserializer: Deserializer | None = None
    """The same for values."""
    fetch_min_bytes: int = _number(1)
    """A broker with less to answer waits for more, but no longer than ``fetch_max_wait_ms``."""
    fetch_max_wait_ms: int = _number(500)
    """A broker with nothing, or too little, to answer waits so long for more."""
    fetch_max_bytes: int = _number(52_428_800)
    """The most that one answer brings, but for a first batch that is larger."""
    max_partition_fetch_bytes: int = _number(1_048_576)
    """The most that one answer brings of one partition, but for a first batch that is larger."""
    check_crcs: bool = True
    """Are the checksums of batches compared?"""
    allow_auto_create_topics: bool = True
    """May a broker create a topic that is subscribed to, if it is so configured?"""
    exclude_internal_topics: bool = True
    """Are ``__consumer_offsets`` and ``__transaction_state`` left out of ``topics()`` and of what a pattern matches?"""
    metadata_max_age_ms: int = _number(300_000, least=1)
    """After so long it asks which topics, partitions and leaders there are, so that new ones are found."""
    request_timeout_ms: int = _number(30_000, least=1)
    """A broker that has not answered in so long is taken for gone, and so is one that cannot be connected to."""
    default_api_timeout_ms: int = _number(60_000, least=1)
    """So long ``commit``, ``committed``, ``position``, ``end_offsets`` … try before they raise TimeoutError."""
    retry_backoff_ms: int = _number(100)
    """Before a request is sent again; it doubles with each attempt."""
    retry_backoff_max_ms: int = _number(1_000)
    """It doubles up to this."""

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
        option_parsing.offset_reset(self.auto_offset_reset)
        option_parsing.isolation_level(self.isolation_level)

    @property
    def protocol(self) -> GroupProtocol:
        """The group protocol. Raises ValueError for settings that only the other one has."""
        return option_parsing.group_protocol(
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
        """Does the consumer commit without being told?"""
        return self.group_id is not None and self.enable_auto_commit is not False

    def of_member(self) -> MemberSettings:
        """Those of the member of the group. Raises ValueError."""
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

    def of_fetcher(self) -> FetchSettings:
        """Those of fetches."""
        return FetchSettings(
            fetch_min_bytes=self.fetch_min_bytes,
            fetch_max_bytes=self.fetch_max_bytes,
            fetch_max_wait_ms=self.fetch_max_wait_ms,
            max_partition_fetch_bytes=self.max_partition_fetch_bytes,
            enough_records=self.max_poll_records,
            check_crcs=self.check_crcs,
            isolation_level=option_parsing.isolation_level(self.isolation_level),
            rack_id=self.client_rack or "",
        )

    def backoff(self, chance: Callable[[], float]) -> ExponentialBackoff:
        """The pauses before requests are sent again."""
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
"""What other clients call them, or one might."""

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
"""What Kafka's consumer, aiokafka or confluent-kafka have as a setting and this client does not, and why; ``*`` is any end."""


def read_settings(given: Mapping[str, Any]) -> ConsumerSettings:
    """The settings that are ``given`` by name. Raises ValueError, which says what is near to a name that there is not."""
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
    nearest = OTHER_NAMES.get(plain) or option_parsing.nearest(plain, SETTINGS)
    return f"there is no setting {name}: did you mean {nearest}?"
