"""IncrementalAlterConfigs (versions 0–1) and AlterConfigs (0–2).

Kafka checks a change twice, first in the broker that receives the request, then in the controller; the order decides which
error a client gets. Source: ``KafkaApis.handleIncrementalAlterConfigsRequest`` and ``.handleAlterConfigsRequest``;
``ConfigAdminManager`` and ``DynamicBrokerConfig``, then ``ConfigurationControlManager`` and
``ControllerConfigurationValidator``.
"""

import enum
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from groupcoord.broker import topic_config, topic_names
from groupcoord.broker.broker import Broker
from groupcoord.broker.storage_backend import storage_errors_as_api_errors
from groupcoord.broker.topic_store import Topic
from groupcoord.config.broker_config import BrokerConfig, ConfigResource
from groupcoord.config.config_def import ConfigType, InvalidValueError
from groupcoord.config.property_definitions import (
    BROKER,
    GROUP,
    TOPIC,
    InvalidRequestError,
    Property,
    UpdateMode,
    broker_property,
    check_client_metrics,
    check_group,
)
from groupcoord.core.api_error import ApiError
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call
from groupcoord.core.java_hash_order import hash_order
from groupcoord.protocol.apis.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from groupcoord.protocol.apis.alter_configs import AlterConfigsResource as Replacement
from groupcoord.protocol.apis.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from groupcoord.protocol.errors import ErrorCode


class ResourceType(enum.IntEnum):
    """The types of resources that have configurations (``ConfigResource.Type``)."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class AlterConfigOpType(enum.IntEnum):
    """The operations on a configuration (KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigChange(NamedTuple):
    """The configurations of a resource after a change, and what holds them: a topic, or the changed broker configuration."""

    configs: dict[str, str]
    holder: Topic | BrokerConfig


_UNLIMITED, _AS_TOTAL = -1, -2
_ISR = "min.insync.replicas"
_LOG_LEVELS = ("DEBUG", "ERROR", "FATAL", "INFO", "TRACE", "WARN")
_NODE_ID = re.compile(r"[+-]?\d+", re.ASCII)
_PER_LISTENER = frozenset(name for name in BROKER if re.match(r"ssl\.(key\.|keystore\.|truststore\.)", name))
_THREAD_POOLS = (
    "num.io.threads",
    "num.network.threads",
    "num.replica.fetchers",
    "num.recovery.threads.per.data.dir",
    "background.threads",
    "remote.log.reader.threads",
    "remote.log.manager.copier.thread.pool.size",
    "remote.log.manager.expiration.thread.pool.size",
    "remote.log.manager.follower.thread.pool.size",
)


def alter(
    broker: Broker,
    resource: ConfigResource,
    changes: Sequence[AlterableConfig],
    *,
    validate_only: bool,
    own: BrokerConfig | None = None,
) -> None:
    """Change the configuration of ``resource``; it takes effect at once. Raises Refused, and then nothing has changed.

    ``own`` is the configuration of the broker that received the request, unless that is the first one. The change is then
    stored and described for that broker, but all brokers behave as the first one's configuration says.
    """
    check_form(changes)
    config = own or broker.config
    match resource.type:
        case ResourceType.BROKER_LOGGER:
            _check_loggers(config, resource.name, changes)
            return
        case ResourceType.BROKER:
            changed = _broker_change(config, resource, changes)
        case ResourceType.TOPIC:
            changed = _topic_change(broker, resource.name, changes)
        case ResourceType.GROUP:
            changed = _group_change(broker.config, resource, changes)
        case ResourceType.CLIENT_METRICS:
            changed = _client_metrics_change(broker.config, resource, changes)
        case unknown:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {unknown}")
    if validate_only:
        return
    if isinstance(changed.holder, Topic):
        changed.holder.configure(changed.configs, broker.config)
    else:
        with storage_errors_as_api_errors():
            broker.storage.resource_configured(resource, changed.configs)
        broker.config = changed.holder if own is None else broker.config.changed(resource, changed.configs)
        broker.topics.reconfigure(broker.config)


def check_form(changes: Sequence[AlterableConfig]) -> None:
    """Raises ApiError if a configuration is named twice, or has a null value in an operation other than DELETE."""
    if any(times > 1 for times in Counter(change.name for change in changes).values()):
        raise ApiError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    nulls = [one.name for one in changes if one.value is None and one.config_operation != AlterConfigOpType.DELETE]
    if nulls:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(nulls)}")


# --- applying changes


def _applied(
    present: Mapping[str, str], changes: Iterable[AlterableConfig], lists: Mapping[str, Property]
) -> dict[str, str]:
    """``present`` after the ``changes``; append and subtract need a list property in ``lists``. Raises Refused."""
    configs = dict(present)
    by_name = {change.name: change for change in changes}
    for name in hash_order(by_name):
        change = by_name[name]
        value = change.value or ""
        match change.config_operation:
            case AlterConfigOpType.SET:
                configs[name] = value
            case AlterConfigOpType.DELETE:
                configs.pop(name, None)
            case AlterConfigOpType.APPEND | AlterConfigOpType.SUBTRACT as operation:
                row = lists.get(name)
                if row is None or row.type is not ConfigType.LIST:
                    word = AlterConfigOpType(operation).name
                    text = f"Can't {word} to key {name} because its type is not LIST."
                    raise ApiError(ErrorCode.INVALID_CONFIG, text)
                configs[name] = _spliced(configs.get(name, row.default or ""), value, operation)
            case _:
                raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)  # Kafka does not check this and fails with an exception
    return configs


def _spliced(present: str, value: str, operation: int) -> str:
    parts = [part for part in present.split(",") if part]
    for part in _java_split(value):
        if operation == AlterConfigOpType.SUBTRACT:
            if part in parts:
                parts.remove(part)
        elif part not in parts:
            parts.append(part)
    return ",".join(parts)


def _java_split(text: str) -> list[str]:
    """``String.split(",")``: without the empty strings at the end, unless there is no comma at all."""
    parts = text.split(",")
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return parts if parts != [""] or not text else []


# --- topics, groups, client metrics


def _topic_change(broker: Broker, name: str, changes: Sequence[AlterableConfig]) -> ConfigChange:
    topic = broker.topics.get(name)
    configs = _applied({} if topic is None else topic.metadata.configs, changes, TOPIC)
    if not name:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    fault = topic_names.fault_text(name)
    if fault is not None:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
    try:
        topic_config.check(configs, broker.config)
    except InvalidValueError as problem:
        raise ApiError(ErrorCode.INVALID_CONFIG, str(problem)) from problem
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    return ConfigChange(configs, topic)


def _group_change(config: BrokerConfig, resource: ConfigResource, changes: Sequence[AlterableConfig]) -> ConfigChange:
    configs = _applied(config.dynamic.get(resource, {}), changes, {})
    if not resource.name:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
    for name in hash_order((*GROUP, *configs)):
        if name not in GROUP:
            raise ApiError(ErrorCode.INVALID_CONFIG, f"Unknown group config name: {name}")
    try:
        check_group(configs, config.values)
    except InvalidValueError as problem:
        raise ApiError(ErrorCode.INVALID_CONFIG, str(problem)) from problem
    return ConfigChange(configs, config.changed(resource, configs))


def _client_metrics_change(
    config: BrokerConfig, resource: ConfigResource, changes: Sequence[AlterableConfig]
) -> ConfigChange:
    configs = _applied(config.dynamic.get(resource, {}), changes, {})
    if not resource.name:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
    try:
        check_client_metrics(configs)
    except InvalidRequestError as problem:
        raise ApiError(ErrorCode.INVALID_REQUEST, str(problem)) from problem
    except InvalidValueError as problem:
        raise ApiError(ErrorCode.INVALID_CONFIG, str(problem)) from problem
    return ConfigChange(configs, config.changed(resource, configs))


# --- brokers


def _broker_change(config: BrokerConfig, resource: ConfigResource, changes: Sequence[AlterableConfig]) -> ConfigChange:
    """1. The broker's checks. 2. The controller's."""
    if resource.name:
        _check_node_id(resource.name, config.node_id, "Unexpected broker id, expected {}, but received {}")
    for change in changes:
        _check_broker_operation(change)
    configs = _applied(config.dynamic.get(resource, {}), changes, BROKER)
    _check_changeable(configs, for_all=not resource.name)
    try:
        new = config.changed(resource, configs)
    except InvalidValueError as problem:
        raise ApiError(ErrorCode.INVALID_REQUEST, str(problem)) from problem
    _check_reconfiguration(config, new)
    if any(change.name == _ISR for change in changes):
        if resource.name:
            text = f"Broker-level {_ISR} cannot be altered while ELR is enabled."
            raise ApiError(ErrorCode.INVALID_CONFIG, text)
        if _ISR not in configs:
            text = f"Cluster-level {_ISR} cannot be removed while ELR is enabled."
            raise ApiError(ErrorCode.INVALID_CONFIG, text)
    return ConfigChange(configs, new)


def _check_node_id(name: str, node_id: int, unexpected: str) -> None:
    if not _NODE_ID.fullmatch(name):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    if int(name) != node_id:
        raise ApiError(ErrorCode.INVALID_REQUEST, unexpected.format(node_id, name))


def _check_broker_operation(change: AlterableConfig) -> None:
    operation = change.config_operation
    if operation not in set(AlterConfigOpType):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown operations type {operation}")
    if operation in {AlterConfigOpType.APPEND, AlterConfigOpType.SUBTRACT}:
        row = BROKER.get(change.name)
        if row is None:
            raise ApiError(ErrorCode.INVALID_CONFIG, f"Unknown config name: {change.name}")
        if row.type is not ConfigType.LIST:
            word = AlterConfigOpType(operation).name.lower()
            text = f"Config value {word} is not allowed for config key: {change.name}"
            raise ApiError(ErrorCode.INVALID_CONFIG, text)
        if row.required:
            # Kafka fails with an exception: there is no default to change.
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)


def _check_changeable(configs: Mapping[str, str], *, for_all: bool) -> None:
    """Check that these can be changed dynamically, for one broker or ``for_all``, and parse. Raises ApiError.

    A property unknown to Kafka can be changed, because it may belong to a plug-in.
    """
    names = hash_order(configs)
    fixed = [
        name for name in names if name in BROKER and BROKER[name].change in {UpdateMode.NEVER, UpdateMode.INTERNAL}
    ]
    _refuse_any(fixed, "Cannot update these configs dynamically")
    security = [name for name in names if name in _PER_LISTENER]
    how = "These security configs can be dynamically updated only per-listener using the listener prefix"
    _refuse_any(security, how)
    for name in names:
        row = broker_property(name)
        if row is not None:
            _check_value(row, configs[name])
    if for_all:
        own = [name for name in names if name in BROKER and BROKER[name].change is UpdateMode.ONE_BROKER]
        _refuse_any(own, "Cannot update these configs at default cluster level, broker id must be specified")


def _check_value(row: Property, text: str) -> None:
    try:
        row.parse(text)
        if row.type is ConfigType.CLASS and text != row.default:
            raise InvalidValueError(row.name, text, f"Class {text} could not be found.")
    except InvalidValueError as problem:
        raise ApiError(ErrorCode.INVALID_REQUEST, str(problem)) from problem


def _refuse_any(names: Sequence[str], why: str) -> None:
    if names:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{why}: [{', '.join(names)}]")


def _check_reconfiguration(old: BrokerConfig, new: BrokerConfig) -> None:
    """The checks of ``BrokerReconfigurable.validateReconfiguration``: listeners, thread pools, log cleaner, connections, metric
    reporters, local retention. Raises ApiError."""
    if new.served != old.served or new.advertised != old.advertised:
        # Deviation (scope-of-a-stand-in): see cluster/api_versions.py.
        raise ApiError(ErrorCode.INVALID_REQUEST, "The listener of a running broker cannot be changed here")
    reporters = new["metric.reporters"]
    if isinstance(reporters, tuple) and any(name != BROKER["metric.reporters"].default for name in reporters):
        failed = "failed with class class kafka.server.DynamicMetricsReporters"
        raise _not_reconfigurable(f"Validation of dynamic config update of Set(metric.reporters) {failed}")
    for name in _THREAD_POOLS:
        before, after = int(str(old[name])), int(str(new[name]))
        if after > before * 2:
            limit = f"value should not be greater than double the current value {before}"
        elif after < before // 2:
            limit = f"value should be at least half the current value {before}"
        else:
            continue
        raise _not_reconfigurable(f"Dynamic thread count update validation failed for {name}={after}, {limit}")
    before, after = int(str(old["log.cleaner.threads"])), int(str(new["log.cleaner.threads"]))
    if after < before // 2:
        raise _not_reconfigurable(f"Log cleaner threads cannot be reduced to less than half the current value {before}")
    if after > before * 2:
        reason = f"Log cleaner threads cannot be increased to more than double the current value {before}"
        raise _not_reconfigurable(reason)
    for name in ("max.connections", "max.connection.creation.rate"):
        if new[name] == 0:
            raise _not_reconfigurable(f"Invalid {name} 0")
    for unit in ("ms", "bytes"):
        _check_local_retention(f"log.local.retention.{unit}", f"log.retention.{unit}", new)


def _check_local_retention(local_name: str, name: str, config: BrokerConfig) -> None:
    """The local retention of a tiered log must not be larger than its total retention."""
    retention = topic_config.default_value(TOPIC[name.removeprefix("log.")], config)
    local = config[local_name]
    if not isinstance(retention, int) or not isinstance(local, int) or retention == _UNLIMITED or local == _AS_TOTAL:
        return
    if local == _UNLIMITED:
        reason = f"Value must not be -1 as {name} value is set as {retention}."
    elif local > retention:
        reason = f"Value must not be more than {name} property value: {retention}"
    else:
        return
    raise _not_reconfigurable(str(InvalidValueError(local_name, local, reason)))


def _not_reconfigurable(problem: str) -> ApiError:
    text = f"Invalid value org.apache.kafka.common.config.ConfigException: {problem}"
    return ApiError(ErrorCode.INVALID_REQUEST, f"{text} for configuration Invalid dynamic configuration")


def _check_loggers(config: BrokerConfig, name: str, changes: Sequence[AlterableConfig]) -> None:
    """Raises ApiError: there are no loggers to change. Deviation (scope-of-a-stand-in): see cluster/api_versions.py."""
    _check_node_id(name, config.node_id, "Unexpected node id. Expected {}, but received {}")
    for change in changes:
        operation = change.config_operation
        if operation not in set(AlterConfigOpType):
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        if operation in {AlterConfigOpType.APPEND, AlterConfigOpType.SUBTRACT}:
            word = AlterConfigOpType(operation).name
            text = f"{word} operation is not allowed for the BROKER_LOGGER resource"
            raise ApiError(ErrorCode.INVALID_REQUEST, text)
        if change.name == "root" and operation == AlterConfigOpType.SET and change.value not in _LOG_LEVELS:
            text = (
                f"Cannot set the log level of {change.name} to {change.value} as it is not a supported log level. "
                f"Valid log levels are {', '.join(_LOG_LEVELS)}"
            )
            raise ApiError(ErrorCode.INVALID_CONFIG, text)
        raise ApiError(ErrorCode.INVALID_CONFIG, f"Logger {change.name} does not exist!")


_UNKNOWN_TYPE = 0
_BY_CONTROLLER = frozenset({ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLIENT_METRICS})
"""The types of resources whose operations only the controller checks."""


# --- the two requests


def handle_incremental_alter_configs(
    broker: Broker, ctx: HandlerContext, call: Call, request: IncrementalAlterConfigsRequest
) -> None:
    """Change the configuration of each resource; one that is named twice is refused.

    An unknown operation makes Kafka's controller fail: then nothing is changed, and every resource for which the broker has
    asked the controller gets the same error.
    """
    times = Counter((resource.resource_type, resource.resource_name) for resource in request.resources)

    def altered(*, validate_only: bool) -> list[AlterConfigsResourceResponse]:
        responses = []
        for asked in request.resources:
            resource = ConfigResource(asked.resource_type, asked.resource_name)
            changes = asked.configs if times[resource] == 1 else None
            responses.append(_altered(broker, call, resource, changes, validate_only=validate_only))
        return responses

    operations = {change.config_operation for asked in request.resources for change in asked.configs}
    known = operations <= set(AlterConfigOpType)
    responses = altered(validate_only=request.validate_only or not known)
    if not known:
        if any(map(_fails_at_controller, responses)):
            responses = [
                replace(response, error_code=ErrorCode.UNKNOWN_SERVER_ERROR, error_message=None)
                if times[asked.resource_type, asked.resource_name] == 1 and _is_forwarded(asked, response)
                else response
                for asked, response in zip(request.resources, responses, strict=True)
            ]
        elif not request.validate_only:
            responses = altered(validate_only=False)
    ctx.reply(call, IncrementalAlterConfigsResponse(responses=tuple(responses)))
    broker.on_configured(ctx)


def _fails_at_controller(response: AlterConfigsResourceResponse) -> bool:
    return response.resource_type in _BY_CONTROLLER and response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def _is_forwarded(asked: AlterConfigsResource, response: AlterConfigsResourceResponse) -> bool:
    """Does the broker ask the controller to change this resource, instead of refusing it?"""
    try:
        check_form(asked.configs)
    except ApiError:
        return False
    return asked.resource_type in _BY_CONTROLLER or (
        asked.resource_type == ResourceType.BROKER and not response.error_code
    )


def handle_alter_configs(broker: Broker, ctx: HandlerContext, call: Call, request: AlterConfigsRequest) -> None:
    """Replace the configuration of each resource.

    No response is sent if a resource is named twice: Kafka throws while it counts the errors of its response. There, all
    unknown resource types count as the same.
    """
    types = set(ResourceType)
    times = Counter(
        ConfigResource(asked.resource_type if asked.resource_type in types else _UNKNOWN_TYPE, asked.resource_name)
        for asked in request.resources
    )
    responses = []
    for asked in request.resources:
        resource = ConfigResource(asked.resource_type, asked.resource_name)
        changes = _replacing(broker, asked) if times[resource] <= 1 else None
        responses.append(_altered(broker, call, resource, changes, validate_only=request.validate_only, legacy=True))
    if all(count == 1 for count in times.values()):
        ctx.reply(call, AlterConfigsResponse(responses=tuple(responses)))
    broker.on_configured(ctx)


def _replacing(broker: Broker, asked: Replacement) -> list[AlterableConfig]:
    """The changes after which a resource has exactly the configurations of the request."""
    topic = broker.topics.get(asked.resource_name) if asked.resource_type == ResourceType.TOPIC else None
    resource = ConfigResource(asked.resource_type, asked.resource_name)
    present = broker.config.dynamic.get(resource, {}) if topic is None else topic.metadata.configs
    given = {config.name for config in asked.configs}
    kept = [
        AlterableConfig(name=one.name, config_operation=AlterConfigOpType.SET, value=one.value) for one in asked.configs
    ]
    gone = [AlterableConfig(name=name, config_operation=AlterConfigOpType.DELETE, value=None) for name in present]
    return kept + [change for change in gone if change.name not in given]


def _altered(
    broker: Broker,
    call: Call,
    resource: ConfigResource,
    changes: Sequence[AlterableConfig] | None,
    *,
    validate_only: bool,
    legacy: bool = False,
) -> AlterConfigsResourceResponse:
    """Alter one resource. ``changes`` is None for a resource that is named more than once.

    ``legacy``: the request is AlterConfigs, which does not support broker loggers.
    """
    error, text = ErrorCode.NONE, None
    try:
        if changes is None:
            raise ApiError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
        if resource.type == ResourceType.BROKER_LOGGER and legacy:
            check_form(changes)
            raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource.type}")
        own = broker.cluster.config_of(broker.config, call) if call.broker else None
        alter(broker, resource, changes, validate_only=validate_only, own=own)
    except ApiError as refused:
        error, text = refused.code, refused.message
    return AlterConfigsResourceResponse(
        error_code=error, error_message=text, resource_type=resource.type, resource_name=resource.name
    )
