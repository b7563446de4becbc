"""The arguments of a cluster, checked when it is constructed."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from groupcoord.cluster.assemble import InvalidTopicError, assemble
from groupcoord.config.broker_config import as_items, load
from groupcoord.config.listeners import LAST_PORT
from groupcoord.testing.engine import SeededRandomSource
from groupcoord.testing.topic_settings import is_number


def _is_whole(value: object) -> bool:
    return value is None or is_number(value)


_RIGHT: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "racks": (
        lambda racks: isinstance(racks, Sequence) and not isinstance(racks, str),
        "the rack of each broker in turn, such as ['a', 'b', 'c']",
    ),
    "features": (
        lambda features: isinstance(features, Mapping) and all(map(_is_whole, features.values())),
        'levels by the names of features, such as {"transaction.version": 0}',
    ),
    "start_ms": (_is_whole, "a whole number of milliseconds since 1970"),
    "seed": (_is_whole, "a whole number"),
    "speed": (lambda speed: isinstance(speed, int | float), "a number, such as 100"),
    "host": (lambda host: isinstance(host, str), 'a host name or address, such as "127.0.0.1"'),
    "listeners": (
        lambda listeners: isinstance(listeners, Iterable) and all(map(callable, listeners)),
        "functions that take an event, such as [print]",
    ),
}
"""Which values the arguments of a cluster may have, where nothing else would tell what is wrong, and what is right."""


def try_out(settings: Mapping[str, Any]) -> None:
    """Check the ``settings`` of an Engine by assembling a cluster that is thrown away. Raises TypeError and ValueError.

    Its coordinator topics have one partition each: their usual 50 would take most of the time, and show no error more.
    """
    brokers, config = settings["brokers"], settings["config"]
    if not is_number(brokers) or brokers < 1:
        raise ValueError(f"brokers={brokers!r}: a cluster has a number of brokers, 1 or more")
    if not isinstance(config, Mapping):
        raise TypeError(f'config={config!r}: properties by their names, such as {{"group.max.size": 2}}')
    for name, (is_right, right) in _RIGHT.items():
        if not is_right(settings[name]):
            raise TypeError(f"{name}={settings[name]!r}: {right}")
    if not isinstance(settings["port"], int) or not 0 <= settings["port"] <= LAST_PORT:
        raise ValueError(f"port={settings['port']!r}: a number up to {LAST_PORT}, or 0 for one that is free")
    if not settings["speed"] > 0:
        raise ValueError(f"speed={settings['speed']!r}: a clock runs at a speed above 0")
    try:
        loaded = load(as_items(config), dev=settings["dev"], brokers=brokers)
        assemble(
            replace(
                loaded,
                values={**loaded.values, "offsets.topic.num.partitions": 1},
                offsets_topic_num_partitions=1,
                transaction_state_log_num_partitions=1,
            ),
            random=SeededRandomSource(0),
            now_ms=0,
            topics=settings["topics"].items(),
            topic_configs=settings["topic_configs"],
            brokers=brokers,
            racks=settings["racks"],
            features=settings["features"],
        )
    except InvalidTopicError as problem:
        raise ValueError(f"topic {problem.topic!r}: {problem}") from None
