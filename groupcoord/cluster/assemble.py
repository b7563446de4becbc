"""Builds a cluster: ClusterCore, its initial topics, and the layers between it and a server.

``groupcoord serve``, ``testing`` and the simulation all call ``assemble``. Pure: randomness, clock and storage are arguments.

The order of layers, from the core to the server, each of them optional:

1. ``RealTimeFetches`` answers a waiting Fetch after its max wait in real time, even if the clock of the test stands still;
2. fault injection changes requests and responses;
3. tracing wraps fault injection, so that it shows what was really received and sent;
4. the in-process transport delivers the responses to members in the same process; all others go to the server's sockets.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from groupcoord.broker.broker_registry import BrokerRegistry
from groupcoord.broker.storage_backend import IN_MEMORY_STORAGE, StorageBackend
from groupcoord.cluster.cluster_core import NO_FEATURES, ClusterCore, RandomSource
from groupcoord.cluster.layer import Layer, ServedCluster
from groupcoord.config.broker_config import BrokerConfig
from groupcoord.core.effects import Effect

L = TypeVar("L", bound=Layer)


NO_TOPIC_CONFIGS: Mapping[str, Mapping[str, str]] = {}


class InvalidTopicError(ValueError):
    """Kafka would refuse ``topic``, one of the initial topics."""

    def __init__(self, topic: str, problem: str) -> None:
        super().__init__(problem)
        self.topic = topic


class Assembly:
    """A cluster with its layers. ``served`` is the outermost layer, or the core if there is none; a server calls it."""

    def __init__(self, core: ClusterCore) -> None:
        self.core = core
        self.served: ServedCluster = core
        self._layers: list[Layer] = []  # the innermost first

    @property
    def brokers(self) -> BrokerRegistry:
        """The brokers and their addresses."""
        return self.core.broker.cluster

    def add(self, make: Callable[[ServedCluster], L]) -> L:
        """Add the layer that ``make`` returns around the outermost one."""
        layer = make(self.served)
        self._layers.append(layer)
        self.served = layer
        return layer

    def outgoing(self, effects: list[Effect], now_ms: int, *, after: Layer | None = None) -> list[Effect]:
        """``effects`` of the core, or of the layer ``after``, passed through the outer layers; for effects outside of any
        request."""
        for layer in self._layers[0 if after is None else self._layers.index(after) + 1 :]:
            effects = layer.outgoing(effects, now_ms)
        return effects


def assemble(
    config: BrokerConfig,
    *,
    random: RandomSource,
    now_ms: int,
    topics: Iterable[tuple[str, int]] = (),
    topic_configs: Mapping[str, Mapping[str, str]] = NO_TOPIC_CONFIGS,
    storage: StorageBackend = IN_MEMORY_STORAGE,
    brokers: int = 1,
    racks: Sequence[str] = (),
    features: Mapping[str, int] = NO_FEATURES,
) -> Assembly:
    """A cluster of ``brokers`` with ``topics`` (names with partition counts) and ``features``, without layers.

    ``topic_configs`` are the configurations of topics that have some.

    A topic that ``storage`` already has with that number of partitions is left as it is. Raises InvalidTopicError, and
    ValueError for invalid brokers; see ClusterCore.
    """
    core = ClusterCore(
        config, random=random, now_ms=now_ms, storage=storage, brokers=brokers, racks=racks, features=features
    )
    for name, partitions in topics:
        kept = None if storage.in_memory else core.broker.topics.partition_count(name)
        if kept == partitions:
            continue
        if kept is not None:
            wanted = f"asked for with {partitions}; ask for {kept} to take it as it is, and let a client add more then"
            raise InvalidTopicError(name, f"it is kept with {kept} partition{'s' * (kept > 1)} and {wanted}")
        try:
            core.create_topic(name, partitions, now_ms, topic_configs.get(name, {}))
        except ValueError as problem:
            raise InvalidTopicError(name, str(problem)) from problem
    return Assembly(core)
