"""DescribeConfigs (versions 1–4): the value of each configuration, its source, and its synonyms.

Source: ``ConfigHelper.describeConfigs``, ``.createBrokerConfigEntry`` and its counterparts for topics, groups and client
metrics.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from groupcoord.broker import topic_names
from groupcoord.broker.alter_configs import ResourceType
from groupcoord.broker.broker import Broker
from groupcoord.broker.topic_config import Source, effective_values
from groupcoord.broker.topic_store import Topic
from groupcoord.config.broker_config import BrokerConfig, ConfigResource
from groupcoord.config.config_def import show
from groupcoord.config.property_definitions import (
    BROKER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
    Property,
    UpdateMode,
    broker_property,
    same_meaning,
)
from groupcoord.core.api_error import ApiError
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call
from groupcoord.core.java_hash_order import hash_order, string_hash
from groupcoord.core.scala_hash_order import mutable_map_order
from groupcoord.protocol.apis.describe_configs import (
    API,
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from groupcoord.protocol.errors import ErrorCode

_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)


class Options(NamedTuple):
    """Which optional fields a client has asked for."""

    synonyms: bool
    documentation: bool


def handle_describe_configs(broker: Broker, ctx: HandlerContext, call: Call, request: DescribeConfigsRequest) -> None:
    """Respond with all configurations of each resource, or those that are named.

    If the type of one resource is unknown, the request is refused as a whole.
    """
    if not {asked.resource_type for asked in request.resources} <= set(ResourceType):
        ctx.reply(call, API.error_response(request, call.version, ErrorCode.INVALID_REQUEST))
        return
    options = Options(request.include_synonyms, request.include_documentation)
    results = []
    for asked in request.resources:
        resource = ConfigResource(asked.resource_type, asked.resource_name)
        error, text, entries = ErrorCode.NONE, "", list[DescribeConfigsResourceResult]()
        try:
            entries = _entries(broker, call, resource, options)
        except ApiError as refused:
            error, text = refused.code, refused.message or ""
        if asked.configuration_keys:
            entries = [entry for entry in entries if entry.name in asked.configuration_keys]
        results.append(
            DescribeConfigsResult(
                error_code=error,
                error_message=text,
                resource_type=resource.type,
                resource_name=resource.name,
                configs=tuple(entries),
            )
        )
    ctx.reply(call, DescribeConfigsResponse(results=tuple(results)))


def _entries(
    broker: Broker, call: Call, resource: ConfigResource, options: Options
) -> list[DescribeConfigsResourceResult]:
    config = broker.cluster.config_of(broker.config, call)
    match resource.type:
        case ResourceType.TOPIC:
            return _topic_entries(broker, resource.name, options)
        case ResourceType.BROKER if not resource.name:
            return of_all_brokers(config, options)
        case ResourceType.BROKER:
            expected = f"Unexpected broker id, expected {config.node_id} or empty string, but received"
            _check_broker_id(config, resource.name, expected)
            return of_broker(config, options)
        case ResourceType.BROKER_LOGGER:
            _check_named(resource.name, "Broker id")
            _check_broker_id(config, resource.name, f"Unexpected broker id, expected {config.node_id} but received")
            return []  # Deviation (scope-of-a-stand-in): see cluster/api_versions.py
        case ResourceType.GROUP:
            _check_named(resource.name, "Group name")
            return of_group(resource, config, options)
        case _:
            _check_named(resource.name, "Client metrics subscription name")
            return of_client_metrics(resource, config, options)


def _topic_entries(broker: Broker, name: str, options: Options) -> list[DescribeConfigsResourceResult]:
    fault = topic_names.fault_text(name)
    if fault is not None:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
    topic = broker.topics.get(name)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return of_topic(topic, broker.config, options)


def _check_named(name: str, what: str) -> None:
    if not name:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{what} must not be empty")


def _check_broker_id(config: BrokerConfig, name: str, unexpected: str) -> None:
    if not _INTEGER.fullmatch(name):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")
    if int(name) != config.node_id:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{unexpected} {name}")


def of_topic(topic: Topic, config: BrokerConfig, options: Options) -> list[DescribeConfigsResourceResult]:
    """The configurations of a topic; one that is only for tests is listed, as the first, if it is set."""
    values = effective_values(topic.metadata.configs, config)

    def entry(name: str) -> DescribeConfigsResourceResult:
        row = TOPIC[name]
        value = topic.metadata.configs[name] if row.change is UpdateMode.INTERNAL else show(values[name])
        own = [_synonym(name, value, Source.TOPIC)] if name in topic.metadata.configs else []
        # Kafka looks at the first broker property only: a topic property that derives its default from hours has no synonym.
        others = broker_synonyms(row.synonyms[0].name, config) if row.synonyms else []
        return _entry(name, value, row, own + others, options)

    unusual = [name for name in topic.metadata.configs if TOPIC[name].change is UpdateMode.INTERNAL]
    usual = hash_order(name for name, row in TOPIC.items() if row.change is not UpdateMode.INTERNAL)
    return [entry(name) for name in unusual + usual]


def of_broker(config: BrokerConfig, options: Options) -> list[DescribeConfigsResourceResult]:
    """The configurations of this broker: first properties that were set and are not listed otherwise, then every property."""

    def entry(name: str) -> DescribeConfigsResourceResult:
        value = show(config[name]) if name in BROKER else explicit[name]
        return _broker_entry(name, value, broker_synonyms(name, config), options)

    explicit = {**config.static, **config.default_changes, **config.own_changes}
    usual = [name for name, row in BROKER.items() if row.change is not UpdateMode.INTERNAL]
    shown = set(usual)
    unusual = [name for name in mutable_map_order(explicit, string_hash) if name not in shown]
    return [entry(name) for name in unusual + hash_order(usual)]


def of_all_brokers(config: BrokerConfig, options: Options) -> list[DescribeConfigsResourceResult]:
    """The dynamic default configurations, which were set for all brokers while they run."""
    entries = []
    for name in mutable_map_order(config.default_changes, string_hash):
        synonyms = [one for one in broker_synonyms(name, config) if one.source == Source.DYNAMIC_DEFAULT_BROKER]
        entries.append(_broker_entry(name, config.default_changes[name], synonyms, options))
    return entries


def of_group(resource: ConfigResource, config: BrokerConfig, options: Options) -> list[DescribeConfigsResourceResult]:
    """The configurations of a group."""

    def default(row: Property) -> tuple[str | None, list[DescribeConfigsSynonym]]:
        if not row.synonyms:
            return row.default, [_synonym(row.name, row.default, Source.DEFAULT)]
        name = row.synonyms[0].name
        return show(config[name]), broker_synonyms(name, config)

    return list(_of_subscription(GROUP, config.dynamic.get(resource, {}), Source.GROUP, default, options))


def of_client_metrics(
    resource: ConfigResource, config: BrokerConfig, options: Options
) -> list[DescribeConfigsResourceResult]:
    """The configurations of a client metrics subscription."""

    def default(row: Property) -> tuple[str | None, list[DescribeConfigsSynonym]]:
        return row.default, []

    own = config.dynamic.get(resource, {})
    return list(_of_subscription(CLIENT_METRICS, own, Source.CLIENT_METRICS, default, options))


def _of_subscription(
    rows: Mapping[str, Property],
    own: Mapping[str, str],
    source: int,
    default: Callable[[Property], tuple[str | None, list[DescribeConfigsSynonym]]],
    options: Options,
) -> Iterator[DescribeConfigsResourceResult]:
    for name in hash_order(rows):
        row = rows[name]
        value, synonyms = default(row)
        if name in own:
            value = show(row.parse(own[name]))
            synonyms = [_synonym(name, value, source), *synonyms]
        yield _entry(name, value, row, synonyms, options)


def broker_synonyms(name: str, config: BrokerConfig) -> list[DescribeConfigsSynonym]:
    """All values of a broker property, the strongest source first, from the first one that is set under its own name."""
    names = (name, name.split(".", 3)[-1]) if name.startswith("listener.name.") else same_meaning(name)
    row = broker_property(name)
    hidden = row is None or row.sensitive
    layers: tuple[tuple[Mapping[str, str], int], ...] = (
        (config.own_changes, Source.DYNAMIC_BROKER),
        (config.default_changes, Source.DYNAMIC_DEFAULT_BROKER),
        (config.static, Source.STATIC_BROKER),
    )
    found = [
        _synonym(one, None if hidden else texts[one], source)
        for texts, source in layers
        for one in names
        if one in texts
    ]
    for one in names:
        default = BROKER[one].default if one in BROKER else None
        if default is not None:
            found.append(_synonym(one, None if hidden else default, Source.DEFAULT))
    start = next((index for index, synonym in enumerate(found) if synonym.name == name), len(found))
    return found[start:]


def _broker_entry(
    name: str, value: str | None, synonyms: list[DescribeConfigsSynonym], options: Options
) -> DescribeConfigsResourceResult:
    row = broker_property(name)
    fixed = row is None or name.startswith("listener.name.") or row.change in {UpdateMode.NEVER, UpdateMode.INTERNAL}
    return _entry(name, value, row, synonyms, options, read_only=fixed)


def _entry(
    name: str,
    value: str | None,
    row: Property | None,
    synonyms: list[DescribeConfigsSynonym],
    options: Options,
    *,
    read_only: bool = False,
) -> DescribeConfigsResourceResult:
    """One configuration. One that is unknown to Kafka may be a secret, so it is returned as sensitive.

    Deviation (scope-of-a-stand-in): see cluster/api_versions.py.
    """
    sensitive = row is None or row.sensitive
    documentation = row.documentation if row is not None and options.documentation else ""
    return DescribeConfigsResourceResult(
        name=name,
        value=None if sensitive else value,
        read_only=read_only,
        config_source=synonyms[0].source if synonyms else Source.DEFAULT,
        is_sensitive=sensitive,
        synonyms=tuple(synonyms) if options.synonyms else (),
        config_type=0 if row is None else row.type,
        documentation=documentation or None,
    )


def _synonym(name: str, value: str | None, source: int) -> DescribeConfigsSynonym:
    return DescribeConfigsSynonym(name=name, value=value, source=source)
