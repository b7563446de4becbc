"""How DescribeConfigs describes one configuration: its value, where that comes from, and what else would apply.

Source: ``ConfigHelper.createBrokerConfigEntry`` and its siblings for topics, groups and client metrics.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from groupcoord.broker.topic_config import Source, effective_values
from groupcoord.broker.topics import Topic
from groupcoord.config.broker_config import BrokerConfig, ConfigResource
from groupcoord.config.config_def import show
from groupcoord.config.dynamic_configs import CLIENT_METRICS, GROUP
from groupcoord.config.properties import BROKER, TOPIC, Property, UpdateMode, broker_property, same_meaning
from groupcoord.core.java import hash_order, string_hash
from groupcoord.core.scala import mutable_map_order
from groupcoord.protocol.apis.describe_configs import DescribeConfigsResourceResult, DescribeConfigsSynonym


class Options(NamedTuple):
    """What a client wants to know of each configuration."""

    synonyms: bool
    documentation: bool


def of_topic(topic: Topic, config: BrokerConfig, options: Options) -> list[DescribeConfigsResourceResult]:
    """The configurations of a topic; one that is only for tests is there when it is set, and then first."""
    values = effective_values(topic.configs, config)

    def entry(name: str) -> DescribeConfigsResourceResult:
        row = TOPIC[name]
        value = topic.configs[name] if row.change is UpdateMode.INTERNAL else show(values[name])
        own = [_synonym(name, value, Source.TOPIC)] if name in topic.configs else []
        # Kafka looks at the first broker property only, so that a topic whose default comes from hours has none here.
        others = broker_synonyms(row.synonyms[0].name, config) if row.synonyms else []
        return _entry(name, value, row, own + others, options)

    unusual = [name for name in topic.configs if TOPIC[name].change is UpdateMode.INTERNAL]
    usual = hash_order(name for name, row in TOPIC.items() if row.change is not UpdateMode.INTERNAL)
    return [entry(name) for name in unusual + usual]


def of_broker(config: BrokerConfig, options: Options) -> list[DescribeConfigsResourceResult]:
    """The configurations of this broker: first what was set and is not usually shown, then every property."""

    def entry(name: str) -> DescribeConfigsResourceResult:
        value = show(config[name]) if name in BROKER else explicit[name]
        return _broker_entry(name, value, broker_synonyms(name, config), options)

    explicit = {**config.static, **config.default_changes, **config.own_changes}
    usual = [name for name, row in BROKER.items() if row.change is not UpdateMode.INTERNAL]
    shown = set(usual)
    unusual = [name for name in mutable_map_order(explicit, string_hash) if name not in shown]
    return [entry(name) for name in unusual + hash_order(usual)]


def of_all_brokers(config: BrokerConfig, options: Options) -> list[DescribeConfigsResourceResult]:
    """What was changed for all brokers while they run, and nothing else."""
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
    """Everything that could give a broker property its value, the strongest first, from where it speaks of itself."""
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
    """One configuration. What Kafka does not know could be anything, so that it is treated as a secret.

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
