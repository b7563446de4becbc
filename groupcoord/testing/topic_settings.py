"""Topic, the settings of a topic in ``topics=`` and ``create_topic``, and the errors for unknown topics, partitions and
configs, and for offsets that are none."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from groupcoord.assignors import TopicPartition
from groupcoord.broker.topic_names import INTERNAL
from groupcoord.config.broker_config import as_text
from groupcoord.config.property_definitions import TOPIC
from groupcoord.core.events import counted
from groupcoord.did_you_mean import did_you_mean

_NAMED = 20
"""How many topics an error text names at most."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic to create: ``Topic(6, {"cleanup.policy": "compact"})``.

    ``configs`` are topic configs; those not given have the broker's default. Raises TypeError and ValueError.
    """

    partitions: int = 1
    configs: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.partitions, int) or isinstance(self.partitions, bool):
            raise TypeError(f"partitions={self.partitions!r}: a topic has a number of partitions, such as 6")
        if self.partitions < 1:
            raise ValueError(f"partitions={self.partitions}: a topic has at least one partition")
        if not isinstance(self.configs, Mapping):
            raise TypeError(
                f'configs={self.configs!r}: properties by their names, such as {{"cleanup.policy": "compact"}}'
            )

    def config_texts(self) -> dict[str, str]:
        """``configs`` with their values as text, as Kafka takes them."""
        return {name: as_text(value) for name, value in self.configs.items()}


def topics_of(topics: object) -> dict[str, Topic]:
    """The topics in the argument ``topics=`` of a cluster. Raises TypeError and ValueError, which name the topic."""
    if not isinstance(topics, Mapping):
        names = topics if isinstance(topics, Collection) and not isinstance(topics, str) else (topics,)
        pairs = [name.partition(":") for name in names if isinstance(name, str)]
        meant = ", ".join(f'"{name}": {count or 1}' for name, _, count in pairs) or '"orders": 6'
        raise TypeError(
            f"topics={topics!r}: it is topics by their names, with numbers of partitions: topics={{{meant}}}"
        )
    return {name: require_known_configs(name, topic_of(name, wanted)) for name, wanted in topics.items()}


def topic_of(name: object, wanted: object, configs: Mapping[str, object] | None = None) -> Topic:
    """The topic ``name``; ``wanted`` is a Topic, or a number of partitions. Raises TypeError and ValueError."""
    if not isinstance(name, str):
        raise TypeError(f"the name of a topic is a string, not {name!r}")
    try:
        return wanted if isinstance(wanted, Topic) else Topic(wanted, configs or {})  # type: ignore[arg-type]
    except (TypeError, ValueError) as problem:
        raise type(problem)(f"topic {name!r}: {problem}") from None


def require_known_configs(name: str, topic: Topic) -> Topic:
    """Returns ``topic``. Raises ValueError if it has a topic config that Kafka 4.3.1 does not have."""
    for config in topic.configs:
        if config not in TOPIC:
            hint = did_you_mean(
                str(config), TOPIC, otherwise="Kafka's are at https://kafka.apache.org/documentation/#topicconfigs"
            )
            raise ValueError(f"topic {name!r}: topics have no configuration {config!r}; {hint}")
    return topic


def unknown_topic(topic: object, known: Collection[str]) -> ValueError:
    """The error for a ``topic`` that does not exist; it names existing ones, and the most similar one."""
    names = sorted(set(known) - INTERNAL)
    near = did_you_mean(str(topic), names, otherwise="", shown=repr)
    hint = f"; {near}" if near else "."
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    there = f"The topics are {', '.join(names[:_NAMED])}{more}" if names else "There are none: topics=, create_topic"
    return ValueError(f"there is no topic {topic!r}{hint} {there}")


def unknown_partition(topic: str, partition: object, count: int) -> ValueError:
    """The error for a ``partition`` that ``topic``, which has ``count`` of them, does not have."""
    many = counted(count, "partition")
    return ValueError(f"there is no {topic}-{partition}: {topic} has {many}, counted from 0")


def require_partition(topic: str, partition: int, counts: Mapping[str, int]) -> None:
    """Raise ValueError if the partition does not exist according to ``counts``, the number of partitions of each topic."""
    if topic not in counts:
        raise unknown_topic(topic, counts)
    if not 0 <= partition < counts[topic]:
        raise unknown_partition(topic, partition, counts[topic])


def is_number(value: object) -> bool:
    """Is ``value`` an int, and not a bool?"""
    return isinstance(value, int) and not isinstance(value, bool)


def require_partitions(partitions: Iterable[object]) -> None:
    """Raise TypeError if one of ``partitions`` is not a topic and a number."""
    for each in partitions:
        match each:
            case (str(), int()):
                pass
            case _:
                raise TypeError(f'a partition is a topic and a number, such as ("orders", 0), not {each!r}')


def offsets_of(offsets: object) -> Mapping[TopicPartition, int]:
    """Returns ``offsets``. Raises TypeError if they are not numbers by partitions."""
    if not isinstance(offsets, Mapping):
        raise TypeError(f'offsets={offsets!r}: offsets by their partitions, such as {{("orders", 0): 5}}')
    require_partitions(offsets)
    for (topic, number), offset in offsets.items():
        if not is_number(offset):
            raise TypeError(f"the offset of {topic}-{number} is a number, such as 5, not {offset!r}")
    return offsets
