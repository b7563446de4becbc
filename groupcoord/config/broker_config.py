"""BrokerConfig, the configuration of one broker (``KafkaConfig``): loaded from ``key=value`` items and a ``server.properties``.

Every property has Kafka's name, type, bounds and default (``property_definitions``), unless a DefaultOverride has a reason for
another default. A dynamic change creates a new BrokerConfig.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple, cast

from groupcoord.config import java_properties, listeners
from groupcoord.config.config_def import ConfigError, InvalidValueError, Value
from groupcoord.config.listeners import Endpoint
from groupcoord.config.property_definitions import BROKER, GROUP, TOPIC, Property, out_of_bounds, same_meaning
from groupcoord.did_you_mean import did_you_mean


class DefaultOverride(NamedTuple):
    """The default of ``name`` is ``value`` here, for this ``reason``; ``serve --help`` and the docs list it.

    It acts as a line of a ``server.properties`` that every start reads first: DescribeConfigs returns it as static, with
    Kafka's default as synonym.
    """

    name: str
    value: str
    reason: str


_EVER = (
    DefaultOverride(
        "process.roles", "broker,controller", "Kafka has no default; a single broker is its own controller"
    ),
    DefaultOverride("node.id", "1", "Kafka has no default"),
    DefaultOverride(
        "controller.listener.names", "CONTROLLER", "Kafka has no default; clients cannot connect to the controller here"
    ),
    DefaultOverride("listeners", "PLAINTEXT://127.0.0.1:9092", "only this machine should reach a broker for tests"),
    DefaultOverride(
        "socket.listen.backlog.size",
        "1024",
        "one thread accepts connections and serves requests; a client that finds the queue full retries only a second later",
    ),
)
"""For any number of brokers."""

_REPLICAS = {
    "offsets.topic.replication.factor": 3,
    "transaction.state.log.replication.factor": 3,
    "transaction.state.log.min.isr": 2,
    "share.coordinator.state.topic.replication.factor": 3,
    "share.coordinator.state.topic.min.isr": 2,
}
"""Kafka's defaults for replicas and min.insync.replicas of its internal topics."""

DEFAULTS = (*_EVER, *(DefaultOverride(name, "1", "there is one broker") for name in _REPLICAS))
"""For one broker."""

DEV_DEFAULTS = (
    DefaultOverride(
        "group.initial.rebalance.delay.ms",
        "0",
        "the first rebalance of a group should not wait three seconds for more members",
    ),
    DefaultOverride(
        "group.consumer.assignment.interval.ms",
        "0",
        "a consumer group should not wait a second for its next target assignment",
    ),
    DefaultOverride("group.min.session.timeout.ms", "100", "a test of a session timeout should not take six seconds"),
)


def defaults_for(brokers: int) -> tuple[DefaultOverride, ...]:
    """The overridden defaults for that many brokers: internal topics have Kafka's number of replicas if there are enough
    brokers."""
    if brokers == 1:
        return DEFAULTS
    too_many = [name for name, kafkas in _REPLICAS.items() if kafkas > brokers]
    return (*_EVER, *(DefaultOverride(name, str(brokers), f"there are {brokers} brokers") for name in too_many))


CLUSTER_ID = "5L6g3nShT-eMCtK--X86sw"  # the default of Kafka's own container image
BROKER_RESOURCE = 4  # ``ConfigResource.Type.BROKER``

_OVERRIDES = "max.connections.per.ip.overrides"

# The fields of BrokerConfig that are not properties.
_ABOUT = frozenset({"static", "dynamic", "values", "without_effect", "cluster_id", "served", "advertised"})


class ConfiguredProperty(NamedTuple):
    """One ``key=value`` and its origin."""

    origin: str
    key: str
    value: str


class ConfigResource(NamedTuple):
    """A resource of dynamic configuration: its type, as in DescribeConfigs, and its name."""

    type: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    """The effective configuration of a broker. Sizes in bytes, times in the unit that ends the name.

    The attributes in the second half are the properties that this program uses, with underscores for dots;
    ``config["any.property"]`` returns the value of any other. Create one with ``load`` or ``BrokerConfig.of``.
    """

    static: Mapping[str, str]  # the configuration at the start, as text
    dynamic: Mapping[ConfigResource, Mapping[str, str]]  # the dynamic changes by resource: brokers, groups, ...
    values: Mapping[str, Value] = field(repr=False)
    without_effect: tuple[str, ...]  # configured properties that are only carried
    cluster_id: str
    served: tuple[Endpoint, ...]  # the listeners, in the order of ``listeners``, without those of controllers
    advertised: tuple[
        Endpoint | None, ...
    ]  # the addresses for clients of each listener; None: no broker is visible there

    auto_create_topics_enable: bool
    broker_rack: str | None
    connections_max_idle_ms: int
    default_replication_factor: int
    delete_topic_enable: bool
    fetch_max_bytes: int
    group_consumer_assignment_interval_ms: int
    group_consumer_assignors: tuple[str, ...]  # the names by which members request them
    group_consumer_heartbeat_interval_ms: int
    group_consumer_max_size: int
    group_consumer_migration_policy: str
    group_consumer_regex_refresh_interval_ms: int
    group_consumer_session_timeout_ms: int
    group_coordinator_append_linger_ms: int
    group_coordinator_rebalance_protocols: tuple[str, ...]
    group_initial_rebalance_delay_ms: int
    group_max_session_timeout_ms: int
    group_max_size: int
    group_min_session_timeout_ms: int
    log_initial_task_delay_ms: int
    log_retention_check_interval_ms: int
    max_connections: int
    max_connections_per_ip: int
    max_connections_per_ip_overrides: str
    max_incremental_fetch_session_cache_slots: int
    node_id: int
    num_partitions: int
    offset_metadata_max_bytes: int
    offsets_commit_timeout_ms: int
    offsets_retention_check_interval_ms: int
    offsets_retention_minutes: int
    offsets_topic_num_partitions: int
    producer_id_expiration_ms: int
    socket_listen_backlog_size: int
    socket_receive_buffer_bytes: int
    socket_request_max_bytes: int
    socket_send_buffer_bytes: int
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int
    transaction_max_timeout_ms: int
    transaction_partition_verification_enable: bool
    transaction_remove_expired_transaction_cleanup_interval_ms: int
    transaction_state_log_num_partitions: int
    transactional_id_expiration_ms: int

    def __getitem__(self, name: str) -> Value:
        """The value of any property of Kafka. Raises KeyError for an unknown name."""
        return self.values[name]

    @classmethod
    def of(
        cls,
        properties: Mapping[str, object] | None = None,
        *,
        cluster_id: str = CLUSTER_ID,
        defaults: Iterable[DefaultOverride] = DEFAULTS,
    ) -> "BrokerConfig":
        """The configuration with these properties and, for the rest, ``defaults``, then Kafka's. Raises ConfigError."""
        given = [ConfiguredProperty("", name, as_text(value)) for name, value in (properties or {}).items()]
        return _configure(given, defaults, cluster_id)

    @property
    def own_changes(self) -> Mapping[str, str]:
        """The dynamic changes for this broker."""
        return self.dynamic.get(ConfigResource(BROKER_RESOURCE, str(self.node_id)), {})

    @property
    def default_changes(self) -> Mapping[str, str]:
        """The dynamic changes for all brokers."""
        return self.dynamic.get(ConfigResource(BROKER_RESOURCE, ""), {})

    def changed(self, resource: ConfigResource, configs: Mapping[str, str]) -> "BrokerConfig":
        """A configuration in which ``configs`` are all dynamic changes of ``resource``. Raises InvalidValueError."""
        dynamic = {**self.dynamic, resource: configs}
        if not configs:
            del dynamic[resource]
        return _build(self.static, dynamic, self.without_effect, self.cluster_id)

    def listening_at(self, host: str, port: int, listener: int = 0) -> "BrokerConfig":
        """A configuration with the address at which the server listens for listener ``listener`` of ``served``. Raises
        ConfigError."""
        endpoint = Endpoint(self.served[listener].listener, host, port)
        texts = listeners.rewritten(self._texts("listeners"), [endpoint])
        try:
            return _build({**self.static, "listeners": texts}, self.dynamic, self.without_effect, self.cluster_id)
        except ContradictionError as problem:
            raise ConfigError("", problem.key, texts, problem.reason) from problem

    def for_broker(
        self, node_id: int, rack: str | None, served: Sequence[Endpoint], advertised: Sequence[Endpoint]
    ) -> "BrokerConfig":
        """The configuration of another broker of the cluster, which differs only in its id, rack and addresses."""
        own = {
            "node.id": str(node_id),
            "broker.id": str(node_id),
            "listeners": listeners.rewritten(self._texts("listeners"), served),
        }
        if rack is not None:
            own["broker.rack"] = rack
        if "advertised.listeners" in self.static:
            own["advertised.listeners"] = listeners.rewritten(self._texts("advertised.listeners"), advertised)
        return _build({**self.static, **own}, self.dynamic, self.without_effect, self.cluster_id)

    def _texts(self, name: str) -> Sequence[str]:
        texts: Any = self.values[name]
        return cast("Sequence[str]", texts)


def as_items(properties: Mapping[str, object]) -> list[str]:
    """Python values as ``key=value`` items for ``load``."""
    return [f"{name}={as_text(value)}" for name, value in properties.items()]


def load(
    items: Iterable[str] = (),
    *,
    file_text: str | None = None,
    file_name: str = "server.properties",
    variables: Iterable[ConfiguredProperty] = (),
    dev: bool = False,
    cluster_id: str = CLUSTER_ID,
    brokers: int = 1,
) -> BrokerConfig:
    """Load the configuration at a start.

    ``items`` are ``key=value`` and override ``variables``, which override ``file_text``, the text of a ``server.properties``;
    ``dev`` selects the defaults for quick tests; the result is for the first of ``brokers`` brokers. Raises ConfigError, with
    file and line, variable or item, key, value and what is expected.
    """
    given: list[ConfiguredProperty] = []
    if file_text is not None:
        entries = java_properties.parse(file_text, file_name)
        given += [ConfiguredProperty(f"{file_name}:{entry.line}", entry.key, entry.value) for entry in entries]
    given += variables
    given += map(_item, items)
    defaults = defaults_for(brokers)
    return _configure(given, (*defaults, *DEV_DEFAULTS) if dev else defaults, cluster_id, brokers)


def _item(item: str) -> ConfiguredProperty:
    key, equals, value = item.partition("=")
    if not equals:
        raise ConfigError("", item, None, "expected key=value")
    return ConfiguredProperty("", key.strip(), value)


def as_text(value: object) -> str:
    """A Python value as Kafka's text."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _configure(
    given: Iterable[ConfiguredProperty], defaults: Iterable[DefaultOverride], cluster_id: str, brokers: int = 1
) -> BrokerConfig:
    static = {stand_in.name: stand_in.value for stand_in in defaults}
    configured: dict[str, ConfiguredProperty] = {}
    for setting in given:
        row = _known(setting)
        try:
            row.parse(setting.value)
        except InvalidValueError as problem:
            raise _refused(setting, f"expected {row.expects}") from problem
        configured[setting.key] = setting
    static |= {key: setting.value for key, setting in configured.items()}
    _agree_on_node_id(static, configured)
    # With eligible leader replicas (KIP-966) Kafka starts with this property as a dynamic change.
    replicas = static.get("min.insync.replicas", BROKER["min.insync.replicas"].default or "")
    dynamic = {ConfigResource(BROKER_RESOURCE, ""): {"min.insync.replicas": replicas}}
    without_effect = tuple(name for name in configured if not BROKER[name].acts)
    try:
        config = _build(static, dynamic, without_effect, cluster_id)
        _check_ports(config, brokers)
    except ContradictionError as problem:
        default = ConfiguredProperty("", problem.key, static.get(problem.key, ""))
        raise _refused(configured.get(problem.key, default), problem.reason) from problem
    return config


def _known(setting: ConfiguredProperty) -> Property:
    row = BROKER.get(setting.key)
    if row is not None:
        return row
    topic_row = TOPIC.get(setting.key)
    if topic_row is not None and topic_row.synonyms:
        hint = f"it is a topic's configuration; the broker's default for it is {topic_row.synonyms[0].name}"
    else:
        hint = did_you_mean(
            setting.key, BROKER, otherwise="Kafka's are at https://kafka.apache.org/documentation/#brokerconfigs"
        )
    raise ConfigError(setting.origin, setting.key, None, f"unknown property; {hint}")


def _refused(setting: ConfiguredProperty, reason: str) -> ConfigError:
    shown = "[hidden]" if BROKER[setting.key].sensitive else setting.value
    return ConfigError(setting.origin, setting.key, shown, reason)


def _agree_on_node_id(static: dict[str, str], configured: Mapping[str, ConfiguredProperty]) -> None:
    """``broker.id`` is the old name of ``node.id``: either sets both, and different values are refused."""
    if "broker.id" in configured and "node.id" not in configured:
        static["node.id"] = static["broker.id"]
    elif "broker.id" not in configured:
        static["broker.id"] = static["node.id"]
    elif int(static["broker.id"]) != int(static["node.id"]):
        raise _refused(configured["broker.id"], f"node.id is {static['node.id']}; set them to the same value")


SERVER_ASSIGNOR_NAMES = {
    **{name: name for name in ("uniform", "range")},
    "org.apache.kafka.coordinator.group.assignor.UniformAssignor": "uniform",
    "org.apache.kafka.coordinator.group.assignor.RangeAssignor": "range",
}
"""The allowed classes and names in ``group.consumer.assignors``, with the name by which members request them."""


class ContradictionError(InvalidValueError):
    """Values that are valid on their own but contradict each other; ``key`` is the property to change."""

    def __init__(self, key: str, reason: str, kafka_text: str = "") -> None:
        ValueError.__init__(self, kafka_text or f"{key}: {reason}")
        self.key = key
        self.reason = reason


def _build(
    static: Mapping[str, str],
    dynamic: Mapping[ConfigResource, Mapping[str, str]],
    without_effect: tuple[str, ...],
    cluster_id: str,
) -> BrokerConfig:
    """The configuration of these texts. Dynamic changes for this broker override those for all brokers, which override
    ``static``; changes of unknown properties are kept without a value. Raises InvalidValueError.
    """
    for_all = dynamic.get(ConfigResource(BROKER_RESOURCE, ""), {})
    own = dynamic.get(ConfigResource(BROKER_RESOURCE, str(int(static["node.id"]))), {})
    explicit = dict(static)
    for layer in (for_all, own):
        for name, text in layer.items():
            for weaker in same_meaning(name):
                explicit.pop(weaker, None)
            explicit[name] = text
    parsed = {name: BROKER[name].parse(text) for name, text in explicit.items() if name in BROKER}
    values = {**_default_values(), **parsed}
    for contradiction in _contradictions(values):
        raise contradiction
    served, advertised = _endpoints(values)
    typed: dict[str, Any] = {name: values[key] for name, key in _attributes().items()}
    typed["group_consumer_assignors"] = tuple(SERVER_ASSIGNOR_NAMES[name] for name in typed["group_consumer_assignors"])
    return BrokerConfig(
        static=static,
        dynamic=dynamic,
        values=values,
        without_effect=without_effect,
        cluster_id=cluster_id,
        served=served,
        advertised=advertised,
        **typed,
    )


@lru_cache(maxsize=1)
def _default_values() -> dict[str, Value]:
    return {name: row.default_value() for name, row in BROKER.items()}


@lru_cache(maxsize=1)
def _attributes() -> dict[str, str]:
    """Attribute of BrokerConfig → property."""
    names = [declared.name for declared in dataclasses.fields(BrokerConfig) if declared.name not in _ABOUT]
    return {name: name.replace("_", ".") for name in names}


def _endpoints(values: Mapping[str, Any]) -> tuple[tuple[Endpoint, ...], tuple[Endpoint | None, ...]]:
    """The endpoints to serve, and the advertised one of each."""
    controllers, told = values["controller.listener.names"], values["advertised.listeners"]
    key = "listener.security.protocol.map"
    try:
        protocols = listeners.parse_protocols(values[key])
    except ValueError as problem:
        raise ContradictionError(key, str(problem), listeners.kafka_text_of_protocols(values[key])) from problem
    known = protocols.keys() | {name.upper() for name in controllers}
    try:
        key = "listeners"
        served = listeners.served_endpoints(
            listeners.parse_endpoints(values[key]), controllers=controllers, protocols=protocols
        )
        key = "advertised.listeners"
        endpoints = None if told is None else listeners.parse_endpoints(told)
        advertised = listeners.advertised_endpoints(served, endpoints, controllers=controllers)
        key = "inter.broker.listener.name"
        listeners.check_inter_broker_listener(values[key] or values["security.inter.broker.protocol"], advertised)
    except ValueError as problem:
        raise ContradictionError(key, str(problem), listeners.kafka_text(values["listeners"], known)) from problem
    return served, advertised


def _check_ports(config: BrokerConfig, brokers: int) -> None:
    """Checked at a start only: port 0 means any port, and the system may assign the same port to two addresses."""
    texts: Any = config["listeners"]
    try:
        listeners.check_ports(listeners.parse_endpoints(texts))
        listeners.check_ports(config.served, brokers)
    except ValueError as problem:
        raise ContradictionError("listeners", str(problem)) from problem


def _contradictions(values: Mapping[str, Any]) -> Iterator[ContradictionError]:
    """Kafka's checks across properties, with its messages for dynamic changes (``KafkaConfig.validateValues``)."""
    key, retention = _first_set(values, "log.retention.ms", "log.retention.minutes", "log.retention.hours")
    if retention == 0:
        yield _requirement(key, "must be unlimited (-1) or, greater than or equal to 1", "log.retention.ms")
    key, roll = _first_set(values, "log.roll.ms", "log.roll.hours")
    if roll < 1:
        yield _requirement(key, "must be greater than or equal to 1", "log.roll.ms")
    key, jitter = _first_set(values, "log.roll.jitter.ms", "log.roll.jitter.hours")
    if jitter < 0:
        yield _requirement(key, "must be greater than or equal to 0", "log.roll.jitter.ms")
    yield from _impossible_cleaners(values)
    yield from _impossible_directories(values)
    if 0 < values["queued.max.request.bytes"] < values["socket.request.max.bytes"]:
        yield _requirement("queued.max.request.bytes", "must be larger or equal to socket.request.max.bytes")
    if values["max.connections.per.ip"] == 0 and not values["max.connections.per.ip.overrides"]:
        overrides = "max.connections.per.ip.overrides property is set."
        yield _requirement("max.connections.per.ip", f"can be set to zero only if {overrides}")
    if 0 <= values["connections.max.idle.ms"] <= values["connection.failed.authentication.delay.ms"]:
        yield _requirement("connections.max.idle.ms", "must exceed connection.failed.authentication.delay.ms")
    for row in GROUP.values():
        for synonym in row.synonyms:
            problem = out_of_bounds(row.name, values[synonym.name], values)
            if problem:
                yield ContradictionError(synonym.name, problem, f"{synonym.name} {problem}")
    try:
        connection_overrides(values[_OVERRIDES])
    except ContradictionError as fault:
        yield fault
    yield from _impossible_assignors(values)
    yield from _impossible_topics(values)


def _impossible_cleaners(values: Mapping[str, Any]) -> Iterator[ContradictionError]:
    """Threads of the log cleaner that are none, or have too small a buffer for their keys."""
    buffer, threads = "log.cleaner.dedupe.buffer.size", values["log.cleaner.threads"]
    if threads == 0:
        yield ContradictionError("log.cleaner.threads", "at least one thread is needed", "/ by zero")
    elif values[buffer] // threads <= 1024 * 1024:
        yield _requirement(buffer, "must be at least 1MB per cleaner thread.")


def _impossible_directories(values: Mapping[str, Any]) -> Iterator[ContradictionError]:
    """Cordoned directories that are not log directories."""
    cordoned, directories = values["cordoned.log.dirs"], values["log.dirs"] or values["log.dir"]
    missing = ", ".join(name for name in cordoned or () if name not in {*directories, "*"})
    if missing:
        text = f"must be present in log.dirs or log.dir. Missing entries : {missing}"
        yield _requirement("cordoned.log.dirs", text, "All entries in cordoned.log.dirs")


def _impossible_assignors(values: Mapping[str, Any]) -> Iterator[ContradictionError]:
    """Assignors that Kafka would load as custom classes."""
    for name in values["group.consumer.assignors"]:
        if name not in SERVER_ASSIGNOR_NAMES:
            yield ContradictionError(
                "group.consumer.assignors", f"{name} is none of {', '.join(SERVER_ASSIGNOR_NAMES)}"
            )


def _impossible_topics(values: Mapping[str, Any]) -> Iterator[ContradictionError]:
    """Settings with which Kafka starts, but can never create its internal topics."""
    for name in (
        "offsets.topic.segment.bytes",
        "transaction.state.log.segment.bytes",
        "share.coordinator.state.topic.segment.bytes",
    ):
        try:
            TOPIC["segment.bytes"].parse(str(values[name]))
        except InvalidValueError as problem:
            yield ContradictionError(name, f"the topic could not be created: {problem}")


def _first_set(values: Mapping[str, Any], *names: str) -> tuple[str, int]:
    return next((name, values[name]) for name in names if values[name] is not None)


def _requirement(key: str, reason: str, name: str | None = None) -> ContradictionError:
    return ContradictionError(key, reason, f"requirement failed: {name or key} {reason}")


def connection_overrides(text: str) -> dict[str, int]:
    """IP address → maximum connections, from ``max.connections.per.ip.overrides``. Raises ContradictionError."""
    limits = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        address, colon, count = item.rpartition(":")
        if not address or not count.strip().isdecimal():
            where = f"begin 0, end -1, length {len(item)}"
            kafka = f"Error parsing configuration property '{_OVERRIDES}': {where}"
            if colon:
                kafka = f'For input string: "{count}"'
            raise ContradictionError(_OVERRIDES, f"{item} is not of the form ADDRESS:COUNT", kafka)
        limits[address.strip()] = int(count)
    return limits
