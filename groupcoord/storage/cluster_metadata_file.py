"""The metadata file of a data directory, ``groupcoord-metadata``: what Kafka has in its KRaft metadata log, in JSON lines.

It has topics with their configurations, dynamic configurations, feature levels and used producer ids; for a cluster of several
brokers also replicas, leaders and ISRs of partitions, and which brokers have lost their disks.

Each line is a JSON object with the new state of one thing; the last line wins. A change appends a line, and flushes it before
the response; only state changes of partitions are flushed with the next change, or by the operating system. At each start, and
when most lines are outdated, the file is rewritten. An incomplete last line, left by a kill, was never acknowledged and is
dropped; so is a last line in which a power failure left zeros. Any other invalid line stops the start: without it
configurations, and with them records, would be lost.
"""

import json
import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from groupcoord.broker.leader_election_and_isr import NO_LEADER, PartitionState
from groupcoord.broker.topic_config import INT64_MAX
from groupcoord.config.broker_config import ConfigResource
from groupcoord.config.features import UNCHANGED, FeatureLevels, check_levels
from groupcoord.storage.adopted_folder_checks import next_producer_id_block
from groupcoord.storage.file_io import StorageError, replace, write_at

FILE_NAME = "groupcoord-metadata"
REWRITTEN_BYTES = 1 << 20
"""The file is rewritten when it has grown by that much beyond twice its size after the last rewrite."""

TOPICS_ARE_FOUND = "topics are found again by their folders, and have the broker's defaults"
"""The consequence of losing the file, for a single broker."""

_MAX_PARTITIONS = 1_000_000
"""An entry with more partitions is invalid: no topic has so many."""
_HEAD = {"groupcoord": "metadata", "version": 1}


@dataclass(slots=True, kw_only=True)
class TopicEntry:
    """A topic; ``configs`` are its overrides, ``states`` those of its partitions in a cluster of several brokers.

    ``leader_epochs`` are those of a lone broker's partitions since its start; partitions that are newer are in epoch 0.
    """

    name: str
    topic_id: uuid.UUID
    partitions: int
    configs: dict[str, str]
    created_ms: int
    states: list[PartitionState] = field(default_factory=list)
    leader_epochs: list[int] = field(default_factory=list)


@dataclass(slots=True)
class MetadataContents:
    """The contents of the file; topics in the order of their creation."""

    topics: dict[uuid.UUID, TopicEntry] = field(default_factory=dict)
    deleted: dict[uuid.UUID, TopicEntry | None] = field(default_factory=dict)
    configs: dict[ConfigResource, dict[str, str]] = field(default_factory=dict)
    next_producer_id: int = 0
    rewrites: int = 0
    """How often the file has been rewritten, which happens at least once in each run of a server."""
    features: FeatureLevels = UNCHANGED
    lost_disks: frozenset[int] = frozenset()
    """The brokers that have lost their disks, and have not started since."""

    def keep_producer_ids(self, largest: int) -> None:
        """Do not give out the producer ids up to ``largest`` again, which are in use in logs."""
        if largest >= self.next_producer_id:
            self.next_producer_id = next_producer_id_block(largest)


class MetadataFile:
    """The metadata file in ``directory``. Every method raises OSError, and then nothing has changed."""

    def __init__(self, directory: Path, if_lost: str = TOPICS_ARE_FOUND) -> None:
        """Raises StorageError for an invalid file; its text has the consequence ``if_lost``."""
        self.path = directory / FILE_NAME
        self.contents = MetadataContents()
        self.found = False
        """Was there a file with a complete first line? A kill never cuts that off."""
        self._descriptor: int | None = None
        self._size = 0
        self._largest = 0
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return
        lines = data.split(b"\n")[:-1]  # the part after the last newline is empty, or incomplete
        self.found = bool(lines)
        if len(lines) > 1 and b"\0" in lines[-1]:
            del lines[-1]
        for number, line in enumerate(lines, 1):
            try:
                entry = json.loads(line)
                if number == 1:
                    if entry != _HEAD:
                        raise ValueError(f"expected {json.dumps(_HEAD)}")
                else:
                    self._take(entry)
            except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as problem:
                raise StorageError(
                    f"{self.path}, line {number}, cannot be understood: {problem!r}. Mend the line, or take the file from a "
                    f"copy of yours; without the file, {if_lost}."
                ) from None

    def start_anew(self) -> None:
        """Rewrite the file without outdated lines and deleted topics, and open it for changes."""
        self.contents.deleted.clear()
        self.contents.rewrites += 1
        entries: list[dict[str, Any]] = [_HEAD]
        entries += [_topic(topic) for topic in self.contents.topics.values()]
        entries += [_configs(resource, configs) for resource, configs in self.contents.configs.items()]
        entries.append({"next_producer_id": self.contents.next_producer_id})
        entries.append({"rewrites": self.contents.rewrites})
        if self.contents.features != UNCHANGED:
            entries.append(_features(self.contents.features))
        if self.contents.lost_disks:
            entries.append(_lost_disks(self.contents.lost_disks))
        data = b"".join(map(_line, entries))
        replace(self.path, data)
        self.close()
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        self._size = len(data)
        self._largest = 2 * len(data) + REWRITTEN_BYTES

    def put_topic(self, topic: TopicEntry) -> None:
        """Write a new or changed topic."""
        self._add(_topic(topic))

    def put_partition(self, topic_id: uuid.UUID, partition: int, state: PartitionState) -> None:
        """Write the state of a partition without a flush: a power failure may lose it unless another change follows."""
        self._add({"partition": partition, "of": str(topic_id), **_state(state)}, synced=False)

    def delete_topic(self, topic_id: uuid.UUID) -> None:
        """Write that a topic is deleted."""
        self._add({"deleted": str(topic_id)})
        self.contents.deleted.clear()  # needed at a start only

    def put_configs(self, resource: ConfigResource, configs: Mapping[str, str]) -> None:
        """Write all configurations of ``resource``."""
        self._add(_configs(resource, configs))

    def put_next_producer_id(self, next_producer_id: int) -> None:
        """Write the first unused producer id."""
        self._add({"next_producer_id": next_producer_id})

    def put_features(self, features: FeatureLevels) -> None:
        """Write the feature levels."""
        self._add(_features(features))

    def put_lost_disks(self, brokers: frozenset[int]) -> None:
        """Write the set of brokers that have lost their disks."""
        self._add(_lost_disks(brokers))

    def close(self) -> None:
        """Close the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _add(self, entry: dict[str, Any], *, synced: bool = True) -> None:
        if self._size > self._largest:
            self.start_anew()
        if self._descriptor is None:
            raise AssertionError("the metadata file is not open for changes")
        line = _line(entry)
        try:
            write_at(self._descriptor, line, self._size)
            if synced:
                os.fsync(self._descriptor)
        except OSError:
            os.ftruncate(self._descriptor, self._size)
            raise
        self._size += len(line)
        self._take(entry)

    def _take(self, entry: dict[str, Any]) -> None:
        contents = self.contents
        if "topic" in entry:
            topic_id = uuid.UUID(entry["id"])
            name, partitions = str(entry["topic"]), int(entry["partitions"])
            if not name or "/" in name or "\0" in name or not 0 < partitions <= _MAX_PARTITIONS:
                raise ValueError(f"no topic is called {name!r} and has {partitions} partitions")
            contents.topics[topic_id] = TopicEntry(
                name=name,
                topic_id=topic_id,
                partitions=partitions,
                configs=_texts(entry["configs"]),
                created_ms=int(entry["created_ms"]),
                states=[_parsed_state(each) for each in entry.get("states", ())],
                leader_epochs=[int(epoch) for epoch in entry.get("leader_epochs", ())],
            )
        elif "partition" in entry:
            contents.topics[uuid.UUID(entry["of"])].states[int(entry["partition"])] = _parsed_state(entry)
        elif "deleted" in entry:
            topic_id = uuid.UUID(entry["deleted"])
            contents.deleted[topic_id] = contents.topics.pop(topic_id, None)
        elif "resource" in entry:
            kind, name = entry["resource"]
            resource, configs = ConfigResource(int(kind), str(name)), _texts(entry["configs"])
            contents.configs.pop(resource, None)
            if configs:
                contents.configs[resource] = configs
        elif "features" in entry:
            levels = {str(name): int(level) for name, level in entry["features"].items()}
            check_levels(levels)
            contents.features = FeatureLevels(levels, int(entry["epoch"]))
        elif "rewrites" in entry:
            contents.rewrites = int(entry["rewrites"])
        elif "lost_disks" in entry:
            contents.lost_disks = frozenset(map(int, entry["lost_disks"]))
        else:
            next_producer_id = int(entry["next_producer_id"])
            if not 0 <= next_producer_id <= INT64_MAX:
                raise ValueError(f"{next_producer_id} is not a producer id")
            contents.next_producer_id = next_producer_id


def create(directory: Path) -> None:
    """Create an empty metadata file in ``directory``, unless there is one. Raises OSError."""
    if not (directory / FILE_NAME).exists():
        replace(directory / FILE_NAME, _line(_HEAD))


def _features(features: FeatureLevels) -> dict[str, Any]:
    return {"features": dict(features.levels), "epoch": features.epoch}


def _lost_disks(brokers: frozenset[int]) -> dict[str, Any]:
    return {"lost_disks": sorted(brokers)}


def _texts(configs: dict[Any, Any]) -> dict[str, str]:
    return {str(name): str(value) for name, value in configs.items()}


def _line(entry: Mapping[str, Any]) -> bytes:
    return json.dumps(entry, ensure_ascii=False).encode() + b"\n"


def _topic(topic: TopicEntry) -> dict[str, Any]:
    return {
        "topic": topic.name,
        "id": str(topic.topic_id),
        "partitions": topic.partitions,
        "configs": topic.configs,
        "created_ms": topic.created_ms,
        **({"states": [_state(each) for each in topic.states]} if topic.states else {}),
        **({"leader_epochs": topic.leader_epochs} if topic.leader_epochs else {}),
    }


_LISTS = ("replicas", "isr", "elr", "adding", "removing")
_NUMBERS = ("leader", "last_leader", "leader_epoch")
_EMPTY = PartitionState((), (), NO_LEADER)


def _state(state: PartitionState) -> dict[str, Any]:
    """The fields that differ from ``_EMPTY``."""
    fields = state._asdict()
    return {name: fields[name] for name in (*_LISTS, *_NUMBERS) if fields[name] != getattr(_EMPTY, name)}


def _parsed_state(entry: Mapping[str, Any]) -> PartitionState:
    fields: dict[str, Any] = {name: tuple(map(int, entry[name])) for name in _LISTS if name in entry}
    fields |= {name: int(entry[name]) for name in _NUMBERS if name in entry}
    state = _EMPTY._replace(**fields)
    if not state.replicas or not {state.leader, *state.isr} <= {NO_LEADER, *state.replicas}:
        raise ValueError(
            f"of the replicas {state.replicas} there cannot be {state.isr} in sync and {state.leader} lead"
        )
    return state


def _configs(resource: ConfigResource, configs: Mapping[str, str]) -> dict[str, Any]:
    return {"resource": list(resource), "configs": dict(configs)}
