"""What Kafka keeps in its metadata log, in a file of our own: topics and their configurations, what else is configured while
the server runs, the levels of features, and which producer ids are taken; of a cluster of several brokers also which of them
have each partition, who leads it, who is in sync, and who has lost its disk.

A line is one JSON object that says how one thing is now; the last word counts. A change is one line more, on the disk
before it is answered; only what brokers make of partitions by themselves is flushed with the next change, or by the system.
At each start, and when most of it is outdated, the file is written anew with what is left. The end of a line that a kill
cut off was never answered, and goes; so does a last line that a power cut left with zeros in it. Anything else that cannot
be understood stops the start: to go on without it would lose configurations, and with them records.
"""

import json
import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from groupcoord.broker.leader_election import NO_LEADER, PartitionState
from groupcoord.broker.topic_config import INT64_MAX
from groupcoord.config.broker_config import ConfigResource
from groupcoord.config.features import UNCHANGED, FeatureLevels, check_levels
from groupcoord.storage.adopted_folder_checks import next_block
from groupcoord.storage.file_io import StorageError, replace, write_at

FILE_NAME = "groupcoord-metadata"
REWRITTEN_BYTES = 1 << 20
"""The file is written anew when it is that much larger than twice what it was when it was written."""

TOPICS_ARE_FOUND = "topics are found again by their folders, and have the broker's defaults"
"""What becomes of a lone broker whose file is lost."""

_MAX_PARTITIONS = 1_000_000
"""An entry with more partitions is damaged: no topic has so many."""
_HEAD = {"groupcoord": "metadata", "version": 1}


@dataclass(slots=True, kw_only=True)
class TopicEntry:
    """A topic; ``configs`` are its overrides. ``states`` are those of its partitions, in a cluster of several brokers."""

    name: str
    topic_id: uuid.UUID
    partitions: int
    configs: dict[str, str]
    created_ms: int
    states: list[PartitionState] = field(default_factory=list)


@dataclass(slots=True)
class MetadataContents:
    """What the catalogue says, topics in the order of their creation."""

    topics: dict[uuid.UUID, TopicEntry] = field(default_factory=dict)
    deleted: dict[uuid.UUID, TopicEntry | None] = field(default_factory=dict)
    configs: dict[ConfigResource, dict[str, str]] = field(default_factory=dict)
    next_producer_id: int = 0
    features: FeatureLevels = UNCHANGED
    lost_disks: frozenset[int] = frozenset()
    """The brokers that have lost all that they had, and have not started since."""

    def keep_producer_ids(self, largest: int) -> None:
        """Logs know producers with ids up to ``largest``: none of these is handed out again."""
        if largest >= self.next_producer_id:
            self.next_producer_id = next_block(largest)


class MetadataLog:
    """The catalogue of ``directory``. Every method raises OSError, and then nothing has changed."""

    def __init__(self, directory: Path, if_lost: str = TOPICS_ARE_FOUND) -> None:
        """Raises StorageError for a file that cannot be understood, and says what would be ``if_lost``."""
        self.path = directory / FILE_NAME
        self.contents = MetadataContents()
        self.found = False
        """Was there a file, with anything in it? Not even its first line is ever cut off by a kill."""
        self._descriptor: int | None = None
        self._size = 0
        self._largest = 0
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return
        lines = data.split(b"\n")[:-1]  # behind the last newline is nothing, or what was cut off
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
        """Write the file with what is left, and be ready for changes; what is remembered of deleted topics goes."""
        self.contents.deleted.clear()
        entries: list[dict[str, Any]] = [_HEAD]
        entries += [_topic(topic) for topic in self.contents.topics.values()]
        entries += [_configs(resource, configs) for resource, configs in self.contents.configs.items()]
        entries.append({"next_producer_id": self.contents.next_producer_id})
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
        """Write that ``topic`` is new or has changed."""
        self._add(_topic(topic))

    def put_partition(self, topic_id: uuid.UUID, partition: int, state: PartitionState) -> None:
        """Write what a partition is now; it survives a kill, and a power cut only if something else was written since."""
        self._add({"partition": partition, "of": str(topic_id), **_state(state)}, synced=False)

    def delete_topic(self, topic_id: uuid.UUID) -> None:
        """The topic is gone."""
        self._add({"deleted": str(topic_id)})
        self.contents.deleted.clear()  # only a start has to know

    def put_configs(self, resource: ConfigResource, configs: Mapping[str, str]) -> None:
        """Write all the configurations that ``resource`` has now."""
        self._add(_configs(resource, configs))

    def put_next_producer_id(self, next_producer_id: int) -> None:
        """The producer ids before that one are taken."""
        self._add({"next_producer_id": next_producer_id})

    def put_features(self, features: FeatureLevels) -> None:
        """Write the levels that the features have now."""
        self._add(_features(features))

    def put_lost_disks(self, brokers: frozenset[int]) -> None:
        """The brokers that have lost all that they had are these."""
        self._add(_lost_disks(brokers))

    def close(self) -> None:
        """No more changes."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _add(self, entry: dict[str, Any], *, synced: bool = True) -> None:
        if self._size > self._largest:
            self.start_anew()
        if self._descriptor is None:
            raise AssertionError("the catalogue is not open for changes")
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
        elif "lost_disks" in entry:
            contents.lost_disks = frozenset(map(int, entry["lost_disks"]))
        else:
            next_producer_id = int(entry["next_producer_id"])
            if not 0 <= next_producer_id <= INT64_MAX:
                raise ValueError(f"{next_producer_id} is no producer id")
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
    }


_LISTS = ("replicas", "isr", "elr", "adding", "removing")
_NUMBERS = ("leader", "last_leader", "leader_epoch")
_EMPTY = PartitionState((), (), NO_LEADER)


def _state(state: PartitionState) -> dict[str, Any]:
    """What of it is not as in ``_EMPTY``."""
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
