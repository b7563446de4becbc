"""What a test says of its cluster is tried out when it is said, not first when the cluster starts."""

from collections.abc import Mapping
from typing import Any

from groupcoord.cluster.assemble import InvalidTopicError, assemble
from groupcoord.config.broker_config import as_items, load
from groupcoord.config.listeners import LAST_PORT
from groupcoord.testing.clocks import ClockMode
from groupcoord.testing.engine import SeededRandomSource


def try_out(settings: Mapping[str, Any]) -> None:
    """Put a cluster of these settings of an Engine together, and forget it. Raises what cannot be: TypeError, ValueError."""
    brokers, config = settings["brokers"], settings["config"]
    if not isinstance(brokers, int) or isinstance(brokers, bool) or brokers < 1:
        raise ValueError(f"brokers={brokers!r}: a cluster has a number of brokers, 1 or more")
    if not isinstance(config, Mapping):
        raise TypeError(f'config={config!r}: properties by their names, such as {{"group.max.size": 2}}')
    if isinstance(settings["racks"], str):
        raise TypeError(f"racks={settings['racks']!r}: the rack of each broker in turn, such as ['a', 'b', 'c']")
    if not isinstance(settings["port"], int) or not 0 <= settings["port"] <= LAST_PORT:
        raise ValueError(f"port={settings['port']!r}: a number up to {LAST_PORT}, or 0 for one that is free")
    if brokers > 1 and settings["data_dir"] is not None:
        raise ValueError(f"brokers={brokers} and data_dir: the data of one broker can be kept, not of several")
    if settings["mode"] is ClockMode.FAST and not settings["speed"] > 0:
        raise ValueError(f"speed={settings['speed']!r}: a clock runs at a speed above 0")
    try:
        assemble(
            load(as_items(config), dev=settings["dev"], brokers=brokers),
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
