"""The topics of a broker, by name and by id, with the logs of their partitions.

There is one broker, so it leads every partition and is the only replica of each.
"""

import uuid
from collections.abc import Callable, Iterator, Mapping

from groupcoord.broker import topic_names
from groupcoord.broker.log_settings import LogSettings
from groupcoord.broker.partition_log import PartitionLog
from groupcoord.broker.topic_config import log_settings
from groupcoord.config.settings import BrokerConfig
from groupcoord.core.timeline import TimelineMap

_RESERVED_IDS = frozenset(map(uuid.UUID, ("0" * 32, "0" * 31 + "1")))


class Topic:
    """A topic, created at ``created_ms``.

    ``configs`` are its own overrides, as they were written; ``settings`` is what its logs go by.
    """

    __slots__ = ("configs", "created_ms", "name", "partitions", "settings", "topic_id")

    def __init__(
        self, name: str, topic_id: uuid.UUID, configs: Mapping[str, str], settings: LogSettings, created_ms: int
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.configs = dict(configs)
        self.settings = settings
        self.partitions: list[PartitionLog] = []
        self.created_ms = created_ms

    def __repr__(self) -> str:
        return f"<Topic {self.name} partitions={len(self.partitions)}>"

    @property
    def is_internal(self) -> bool:
        """Is it one of Kafka's own? Only its name decides that."""
        return self.name in topic_names.INTERNAL

    def add_partitions(self, count: int) -> None:
        """Add ``count`` empty partitions."""
        first = len(self.partitions)
        self.partitions += [
            PartitionLog(self.settings, f"{self.name}-{index}") for index in range(first, first + count)
        ]

    def configure(self, configs: Mapping[str, str], config: BrokerConfig) -> None:
        """Have these overrides, which have been checked, from now on; every log goes by them at once."""
        self.configs = dict(configs)
        self.settings = log_settings(configs, config)
        for log in self.partitions:
            log.settings = self.settings


class TopicStore:
    """All topics. ``new_topic_id`` is where their ids come from."""

    def __init__(self, config: BrokerConfig, *, new_topic_id: Callable[[], uuid.UUID]) -> None:
        self._config = config
        self._new_topic_id = new_topic_id
        self._by_name: dict[str, Topic] = {}
        self._by_id: dict[uuid.UUID, Topic] = {}
        self._by_collision: dict[str, TimelineMap[str, None]] = {}

    def __len__(self) -> int:
        return len(self._by_name)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __iter__(self) -> Iterator[Topic]:
        """The topics, in the order of their creation."""
        return iter(self._by_name.values())

    def all(self) -> list[Topic]:
        """The topics, in the order of their creation."""
        return list(self._by_name.values())

    def get(self, name: str) -> Topic | None:
        """The topic called ``name``, or None."""
        return self._by_name.get(name)

    def by_id(self, topic_id: uuid.UUID) -> Topic | None:
        """The topic with that id, or None."""
        return self._by_id.get(topic_id)

    def partition_count(self, name: str) -> int | None:
        """How many partitions the topic has, or None if there is none of that name."""
        topic = self._by_name.get(name)
        return None if topic is None else len(topic.partitions)

    def topic_id(self, name: str) -> uuid.UUID | None:
        """The id of the topic called ``name``, or None."""
        topic = self._by_name.get(name)
        return None if topic is None else topic.topic_id

    def topic_name(self, topic_id: uuid.UUID) -> str | None:
        """The name of the topic with that id, or None."""
        topic = self._by_id.get(topic_id)
        return None if topic is None else topic.name

    def colliding(self, name: str) -> str | None:
        """An existing topic whose name differs from ``name`` only in ``.`` and ``_``, or None."""
        key = topic_names.collision_key(name)
        names = None if key is None else self._by_collision.get(key)
        return names.in_order()[0][0] if names else None

    def create(self, name: str, partitions: int, configs: Mapping[str, str], now_ms: int) -> Topic:
        """Create a topic; that it may be is for the caller to know. Raises ValueError if the name is taken."""
        if name in self._by_name:
            raise ValueError(f"topic {name} exists")
        topic = Topic(name, self.free_id(), configs, log_settings(configs, self._config), now_ms)
        topic.add_partitions(partitions)
        self._by_name[name] = self._by_id[topic.topic_id] = topic
        key = topic_names.collision_key(name)
        if key is not None:
            self._by_collision.setdefault(key, TimelineMap()).put(name, None)
        return topic

    def delete(self, name: str) -> Topic:
        """Remove the topic called ``name`` and return it. Raises KeyError."""
        topic = self._by_name.pop(name)
        del self._by_id[topic.topic_id]
        key = topic_names.collision_key(name)
        if key is not None:
            del self._by_collision[key][name]
            if not self._by_collision[key]:
                del self._by_collision[key]
        return topic

    def reconfigure(self, config: BrokerConfig) -> None:
        """The broker's defaults have changed: every topic that does not override them follows."""
        self._config = config
        for topic in self:
            topic.configure(topic.configs, config)

    def free_id(self) -> uuid.UUID:
        """An id that no topic has and none may not have: zero means none, one is that of KRaft's own log."""
        while (topic_id := self._new_topic_id()) in _RESERVED_IDS or topic_id in self._by_id:
            pass
        return topic_id
