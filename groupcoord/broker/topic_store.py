"""The topics of a node, by name and id: their metadata, the logs of their partitions, leaders and replicas
(``TopicsImage``)."""

import dataclasses
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from groupcoord.broker import topic_names
from groupcoord.broker.leader_election_and_isr import NO_LEADER, PartitionState, Replicas
from groupcoord.broker.partition_log import PartitionLog
from groupcoord.broker.storage_backend import (
    IN_MEMORY_STORAGE,
    RecoveredLog,
    RecoveredTopic,
    StorageBackend,
    storage_errors_as_api_errors,
)
from groupcoord.broker.topic_config import LogConfig, log_config
from groupcoord.config.broker_config import BrokerConfig
from groupcoord.core.java_hash_order import TimelineMap

_RESERVED_IDS = frozenset(map(uuid.UUID, ("0" * 32, "0" * 31 + "1")))


def all_in_sync(replicas: Replicas) -> PartitionState:
    """The state of a new partition whose brokers are all running."""
    return PartitionState(replicas, replicas, replicas[0])


class MetadataChanges:
    """Counts the changes of topic metadata, and has the controller's callbacks for new partitions."""

    def __init__(self, first: int = 0) -> None:
        self.initial_state: Callable[[Replicas], PartitionState] = all_in_sync
        """Returns the state of a new partition with these replicas."""
        self.on_logs_added: Callable[[Topic, int], None] = lambda _topic, _first: None
        """Called with a topic and the index of its first new partition."""
        self.several_brokers = False
        """Are there several brokers, so that each replica has a log of its own?"""
        self.value = first
        """The version of the metadata: it grows with each change, also from one run of a server to the next."""
        self.of_newest_topic = 0
        """The version when the newest topic was created."""

    def new_partitions(self, count: int, replicas: Sequence[Replicas] | None, home: int) -> list[PartitionState]:
        """The states of ``count`` new partitions with these ``replicas``; without them, each has ``home`` as its only
        replica."""
        placed = [(home,)] * count if replicas is None else replicas
        return [self.initial_state(each) for each in placed]


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """The metadata of a topic, without its logs; replaced with every change.

    ``configs`` are its overrides, as they were set; ``partitions`` are the states of its partitions, from which ``replicas``
    and ``leaders`` are taken. Source: ``TopicImage``.
    """

    name: str
    topic_id: uuid.UUID
    created_ms: int
    configs: Mapping[str, str]
    partitions: tuple[PartitionState, ...] = ()
    replicas: tuple[Replicas, ...] = field(init=False)
    leaders: tuple[int, ...] = field(init=False)
    """The id of each partition's leader; -1 if there is none."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "replicas", tuple(each.replicas for each in self.partitions))
        object.__setattr__(self, "leaders", tuple(each.leader for each in self.partitions))

    @property
    def is_internal(self) -> bool:
        """Is it an internal topic of Kafka? Only its name decides."""
        return self.name in topic_names.INTERNAL


class Topic:
    """A topic: its ``metadata``, and the logs of its ``partitions``, with the ``settings`` of all.

    ``partitions`` has the log of each partition's leader, or of the last leader. With several brokers ``copies`` has the logs
    of all replicas, by broker id; with a single one it is empty. A partition without explicit replicas is on the broker
    ``home`` only.
    """

    __slots__ = ("_changes", "_home", "_storage", "copies", "metadata", "name", "partitions", "settings", "topic_id")

    def __init__(
        self,
        metadata: TopicMetadata,
        settings: LogConfig,
        storage: StorageBackend = IN_MEMORY_STORAGE,
        home: int = 1,
        changes: MetadataChanges | None = None,
    ) -> None:
        self._changes = changes or MetadataChanges()
        self.metadata = metadata
        self.name = metadata.name
        self.topic_id = metadata.topic_id
        self.settings = settings
        self.partitions: list[PartitionLog] = []
        self.copies: list[dict[int, PartitionLog]] = []
        self._home = home
        self._storage = storage

    def __repr__(self) -> str:
        return f"<Topic {self.name} partitions={len(self.partitions)}>"

    def add_partitions(self, count: int, replicas: Sequence[Replicas] | None = None) -> None:
        """Add ``count`` empty partitions with these ``replicas``. Raises Refused if they cannot be stored."""
        states = self._changes.new_partitions(count, replicas, self._home)
        with storage_errors_as_api_errors():
            self._storage.partitions_added(self.topic_id, states)
        self.add_logs(states)

    def add_logs(self, states: Sequence[PartitionState]) -> None:
        """Add empty partitions that are already stored."""
        first = len(self.partitions)
        self._attach(
            [
                {one: self._new_log(index, one) for one in self._brokers_of(state)}
                for index, state in enumerate(states, first)
            ],
            states,
        )
        self._changes.on_logs_added(self, first)

    def recover_logs(self, recovered: Sequence[Mapping[int, RecoveredLog]], states: Sequence[PartitionState]) -> None:
        """Add recovered partitions; a log that was lost starts empty.

        A single broker becomes the leader of every partition again. Raises Refused if a log can no longer be stored.
        """
        copies = [
            {
                one: PartitionLog.recovered(self.settings, f"{self.name}-{index}", logs[one])
                if one in logs
                else self._new_log(index, one)
                for one in self._brokers_of(state)
            }
            for index, (logs, state) in enumerate(zip(recovered, states, strict=True))
        ]
        if not self._changes.several_brokers:
            led = [logs[self._home] for logs in copies]
            for log in led:
                log.become_leader(log.leader_epoch)
            states = [state._replace(leader_epoch=log.leader_epoch) for state, log in zip(states, led, strict=True)]
        self._attach(copies, states)

    def _brokers_of(self, state: PartitionState) -> Replicas:
        """The brokers that have a log of the partition."""
        return state.replicas if self._changes.several_brokers else (self._home,)

    def _new_log(self, index: int, broker_id: int) -> PartitionLog:
        return PartitionLog(self.settings, f"{self.name}-{index}", self._storage.log(self.name, index, broker_id))

    def _attach(self, copies: Sequence[dict[int, PartitionLog]], states: Sequence[PartitionState]) -> None:
        """Add partitions with the logs of their replicas."""
        for logs, state in zip(copies, states, strict=True):
            self.partitions.append(logs.get(state.leader) or next(iter(logs.values())))
        if self._changes.several_brokers:
            self.copies += copies
        self.metadata = dataclasses.replace(self.metadata, partitions=(*self.metadata.partitions, *states))
        self._changes.value += 1

    def set_state(self, partition: int, state: PartitionState, *, renewed: bool = False) -> None:
        """Set the state of ``partition``; its leader epoch is determined here.

        The leader epoch is incremented if the leader changes, a replica is removed, or ``renewed`` is set. A new replica starts
        with an empty log.
        """
        states = list(self.metadata.partitions)
        before = states[partition]
        begins = renewed or state.leader != before.leader or not set(before.replicas) <= set(state.replicas)
        after = states[partition] = state._replace(leader_epoch=before.leader_epoch + begins)
        if self.copies:
            logs = self.copies[partition]
            removed = [logs.pop(one) for one in set(logs) - set(state.replicas)]
            for log in removed:
                log.topic_deleted()
            self._storage.partition_changed(self.topic_id, partition, after)
            for added in set(state.replicas) - set(logs):
                logs[added] = self._new_log(partition, added)
            if state.leader != NO_LEADER:
                self.partitions[partition] = logs[state.leader]
        if begins and state.leader != NO_LEADER:
            self.partitions[partition].become_leader(after.leader_epoch)
        self.metadata = dataclasses.replace(self.metadata, partitions=tuple(states))
        self._changes.value += 1

    def min_isr(self, partition: int) -> int:
        """The number of in-sync replicas that acks=all needs."""
        return min(self.settings.min_insync_replicas, len(self.metadata.replicas[partition]))

    def move_leader(self, partition: int, broker_id: int, now_ms: int) -> None:
        """Make another broker the leader of ``partition``, in the next leader epoch.

        A broker that is not a replica replaces the current leader, as after a reassignment.
        """
        state = self.metadata.partitions[partition]
        if broker_id not in state.replicas:
            joined = state._replace(replicas=(*state.replicas, broker_id))
            self._storage.partition_changed(self.topic_id, partition, joined)
            copy = self.copies[partition][broker_id] = self._new_log(partition, broker_id)
            copy.fill_from(self.partitions[partition], now_ms)

        def with_it(brokers: Replicas) -> Replicas:
            return (
                brokers if broker_id in brokers else tuple(broker_id if one == state.leader else one for one in brokers)
            )

        moved = PartitionState(with_it(state.replicas), with_it(state.isr), broker_id)
        self.set_state(partition, moved._replace(adding=state.adding, removing=state.removing))

    def configure(self, configs: Mapping[str, str], config: BrokerConfig) -> None:
        """Set the overrides of the topic, which have been validated; they apply to every log at once.

        Raises Refused if they cannot be stored.
        """
        if configs != self.metadata.configs:
            with storage_errors_as_api_errors():
                self._storage.topic_configured(self.topic_id, configs)
        self.metadata = dataclasses.replace(self.metadata, configs=dict(configs))
        self.settings = _settings(configs, config, self._storage)
        for log in self.logs():
            log.settings = self.settings

    def replica_logs_of(self, partition: int) -> dict[int, PartitionLog]:
        """The logs of all replicas of a partition, by broker id."""
        return dict(self.copies[partition]) if self.copies else {self._home: self.partitions[partition]}

    def logs(self) -> Iterator[PartitionLog]:
        """The logs of all replicas of all partitions."""
        if self.copies:
            for copies in self.copies:
                yield from copies.values()
        else:
            yield from self.partitions


def _settings(configs: Mapping[str, str], config: BrokerConfig, storage: StorageBackend) -> LogConfig:
    settings = log_config(configs, config)
    return settings if storage.in_memory else dataclasses.replace(settings, memory_bytes=-1)


class TopicStore:
    """All topics. ``new_topic_id`` generates their ids, ``storage`` stores them."""

    def __init__(
        self,
        config: BrokerConfig,
        *,
        new_topic_id: Callable[[], uuid.UUID],
        storage: StorageBackend = IN_MEMORY_STORAGE,
    ) -> None:
        self._config = config
        self._storage = storage
        self._new_topic_id = new_topic_id
        self.changes = MetadataChanges(storage.first_metadata_version())
        self._by_name: TimelineMap[str, Topic] = TimelineMap()
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

    def in_controllers_order(self) -> list[Topic]:
        """The topics, in the order in which Kafka's controller iterates over them."""
        return [topic for _, topic in self._by_name.in_order()]

    def __getitem__(self, name: str) -> Topic:
        """The topic called ``name``. Raises KeyError."""
        return self._by_name[name]

    def get(self, name: str) -> Topic | None:
        """The topic called ``name``, or None."""
        return self._by_name.get(name)

    def by_id(self, topic_id: uuid.UUID) -> Topic | None:
        """The topic with that id, or None."""
        return self._by_id.get(topic_id)

    def partition_count(self, name: str) -> int | None:
        """The number of partitions of a topic, or None if there is no such topic."""
        topic = self._by_name.get(name)
        return None if topic is None else len(topic.partitions)

    def names(self) -> Iterator[str]:
        """The names of all topics."""
        return iter(self._by_name)

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

    def create(
        self,
        name: str,
        partitions: int,
        configs: Mapping[str, str],
        now_ms: int,
        replicas: Sequence[Replicas] | None = None,
    ) -> Topic:
        """Create a topic; the caller has checked its name, configs and ``replicas``.

        Raises ValueError if the name is taken, Refused if it cannot be stored.
        """
        if name in self._by_name:
            raise ValueError(f"topic {name} exists")
        topic_id = self.free_id()
        states = self.changes.new_partitions(partitions, replicas, self._config.node_id)
        with storage_errors_as_api_errors():
            self._storage.topic_created(name, topic_id, states, configs, now_ms)
        settings = _settings(configs, self._config, self._storage)
        metadata = TopicMetadata(name, topic_id, now_ms, dict(configs))
        topic = Topic(metadata, settings, self._storage, self._config.node_id, self.changes)
        topic.add_logs(states)
        self._add(topic)
        return topic

    def restore(self, kept: RecoveredTopic) -> Topic:
        """Add a topic that was recovered from storage."""
        settings = _settings(kept.configs, self._config, self._storage)
        metadata = TopicMetadata(kept.name, kept.topic_id, kept.created_ms, dict(kept.configs))
        topic = Topic(metadata, settings, self._storage, self._config.node_id, self.changes)
        states = kept.states or self.changes.new_partitions(len(kept.logs), None, self._config.node_id)
        topic.recover_logs(kept.logs, states)
        self._add(topic)
        return topic

    def _add(self, topic: Topic) -> None:
        self._by_name.put(topic.name, topic)
        self._by_id[topic.topic_id] = topic
        self.changes.value += 1
        self.changes.of_newest_topic = self.changes.value
        key = topic_names.collision_key(topic.name)
        if key is not None:
            self._by_collision.setdefault(key, TimelineMap()).put(topic.name, None)

    def delete(self, name: str) -> Topic:
        """Remove the topic called ``name`` and return it. Raises KeyError, and Refused if the deletion cannot be stored."""
        for log in self._by_name[name].logs():
            log.topic_deleted()
        with storage_errors_as_api_errors():
            self._storage.topic_deleted(self._by_name[name].topic_id)
        topic = self._by_name.pop(name)
        self.changes.value += 1
        del self._by_id[topic.topic_id]
        key = topic_names.collision_key(name)
        if key is not None:
            del self._by_collision[key][name]
            if not self._by_collision[key]:
                del self._by_collision[key]
        return topic

    def reconfigure(self, config: BrokerConfig) -> None:
        """Apply changed broker defaults to every topic that does not override them."""
        self._config = config
        for topic in self:
            topic.configure(topic.metadata.configs, config)

    def free_id(self) -> uuid.UUID:
        """A new topic id that is not used; zero and the id of KRaft's metadata log are reserved."""
        while (topic_id := self._new_topic_id()) in _RESERVED_IDS or topic_id in self._by_id:
            pass
        return topic_id
