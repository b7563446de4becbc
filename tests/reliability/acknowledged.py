"""What was acknowledged of a data directory, and whether it is there: all of it after a kill.

After a power cut it is what Kafka promises: topics, configurations and producer ids, and records as far as they were flushed.
A step that is under way is neither done nor not done.
"""

import contextlib
import random
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from groupcoord.broker.partition_log import PartitionLog
from groupcoord.config.broker_config import ConfigResource
from groupcoord.core.api_error import ApiError
from groupcoord.storage.file_io import StorageError
from tests.conformance.batches import Rec, batch
from tests.reliability.lives import NOW_MS, Broken, Life, contents

RESOURCE = ConfigResource(32, "g0")
"""A group of which the configurations are changed."""


@dataclass
class LogModel:
    """What was acknowledged of a log: offset → (key, value); the offsets where it starts and ends, as they were answered.

    ``markers`` are the offsets of those, ``aborted`` of those that aborted anything, ``hidden`` of the records that were, and
    ``unstable`` is where a transaction is open.
    """

    records: dict[int, tuple[bytes | None, bytes | None]] = field(default_factory=dict)
    markers: set[int] = field(default_factory=set)
    aborted: set[int] = field(default_factory=set)
    hidden: set[int] = field(default_factory=set)
    unstable: int | None = None
    start: int = 0
    deleted_to: int = 0
    end: int = 0
    flushed: int = 0
    compacted: bool = False


@dataclass
class TopicModel:
    """A topic as it was answered."""

    topic_id: uuid.UUID
    configs: dict[str, str]
    logs: list[LogModel]


class Sent(NamedTuple):
    """The last batch of an idempotent producer that was acknowledged."""

    topic: str
    partition: int
    data: bytes
    offset: int


@dataclass
class Pending:
    """What is under way, and was not answered; ``end`` and ``records`` are what a log may have."""

    step: str = ""
    topic: str = ""
    partition: int = 0
    partitions: int = 0
    configs: dict[str, str] | None = None
    records: dict[int, tuple[bytes | None, bytes | None]] = field(default_factory=dict)
    start: int | None = None
    value: int = -1
    marker: int = -1


@dataclass
class Acknowledged:
    """All that was answered, and what is ``pending``."""

    topics: dict[str, TopicModel] = field(default_factory=dict)
    commits: dict[str, list[int]] = field(default_factory=dict)
    producer_id: int = -1
    group_configs: dict[str, str] = field(default_factory=dict)
    sent: dict[tuple[str, int], Sent] = field(default_factory=dict)
    pending: Pending = field(default_factory=Pending)

    def check(self, directory: Path, rng: random.Random, *, power_cut: bool = False) -> None:
        """Start once more, look at everything, go on with every log, end in order, and look again. Raises Broken."""
        with _living(directory, rng) as life:
            self._check_topics(life, power_cut=power_cut)
            self._check_rest(life, power_cut=power_cut)
            found = {
                (topic.name, index): contents(log)
                for topic in life.node.broker.topics
                for index, log in enumerate(topic.partitions)
            }
            for (name, partition), records in found.items():
                at = life.log(name, partition).append(batch([Rec(b"new", b"new", NOW_MS)]), NOW_MS)
                records[at.base_offset] = (b"new", b"new")
            known = life.storage.findings  # such as a hole that a power cut has left: it stays one
        with _living(directory, rng) as life:
            for (name, partition), records in found.items():
                if contents(life.log(name, partition)) != records:
                    raise Broken(f"{name}-{partition} is another one after a restart in order")
            if new := [finding for finding in life.storage.findings if finding not in known]:
                raise Broken(f"after an end in order there is something to say: {new}")
            leftovers = [str(path) for path in directory.rglob("*.tmp")]
            if leftovers:
                raise Broken(f"{leftovers} were left")

    def _check_topics(self, life: Life, *, power_cut: bool) -> None:
        pending = self.pending
        there = {topic.name: topic for topic in life.node.broker.topics if not topic.metadata.is_internal}
        for name in there.keys() - self.topics.keys():
            if (pending.step, pending.topic) != ("create", name):
                raise Broken(f"there is a topic {name}, which was deleted or never created")
        for name, topic in self.topics.items():
            found = there.get(name)
            mine = pending if pending.topic == name else Pending()
            if found is None:
                if mine.step == "delete":
                    continue
                raise Broken(f"topic {name} is not there")
            if found.topic_id != topic.topic_id:
                raise Broken(f"topic {name} has another id")
            if len(found.partitions) not in {len(topic.logs), mine.partitions}:
                raise Broken(f"topic {name} has {len(found.partitions)} partitions, and not {len(topic.logs)}")
            if found.metadata.configs != topic.configs and found.metadata.configs != mine.configs:
                raise Broken(f"topic {name} has {found.metadata.configs}, and not {topic.configs}")
            for index, log in enumerate(topic.logs):
                ours = mine if mine.partition == index else Pending()
                if mine.step != "delete":
                    _check_log(life.log(name, index), log, ours, power_cut=power_cut)

    def _check_rest(self, life: Life, *, power_cut: bool) -> None:
        pending = self.pending
        if life.node.broker.new_producer_id() <= self.producer_id:
            raise Broken(f"a producer id up to {self.producer_id} is handed out again")
        configs = life.storage._metadata_file.contents.configs.get(RESOURCE, {})
        if configs != self.group_configs and (pending.step != "group" or configs != pending.configs):
            raise Broken(f"the group has {configs}, and not {self.group_configs}")
        for group, values in self.commits.items():
            allowed = {values[-1], *(values[:-1] if power_cut else ()), *((-1,) if power_cut else ())}
            if pending.topic == group:
                allowed.add(pending.value)
            if life.committed(group) not in allowed:
                raise Broken(f"group {group} has committed {life.committed(group)}, and not {values[-1]}")
        for sent in self.sent.values():
            if power_cut or pending.topic == sent.topic:
                continue
            again = life.log(sent.topic, sent.partition).append(sent.data, NOW_MS)
            if not again.duplicate or again.base_offset != sent.offset:
                raise Broken(f"{sent.topic}-{sent.partition}: the batch at {sent.offset} is taken a second time")


@contextlib.contextmanager
def _living(directory: Path, rng: random.Random) -> Iterator[Life]:
    try:
        life = Life(directory, rng)
    except (StorageError, ApiError) as problem:
        raise Broken(f"it does not start: {problem}") from problem
    try:
        yield life
    finally:
        life.end()
    if life.storage.failure is not None:
        raise Broken(f"it fails: {life.storage.failure}")


def _check_log(log: PartitionLog, model: LogModel, pending: Pending, *, power_cut: bool) -> None:
    name = log.name
    possible = {**model.records, **pending.records}
    start, end = log.log_start_offset, log.log_end_offset
    ends = {model.end, max(pending.marker, *pending.records, -1) + 1 or model.end}
    if power_cut:
        if not model.flushed <= end <= max(ends):
            raise Broken(f"{name} ends at {end}, and not from {model.flushed} to {max(ends)}")
    elif end not in ends:
        raise Broken(f"{name} ends at {end}, and not at {model.end}")
    latest_start = max(model.start, pending.start or 0)
    # What retention removed may be there again after a power cut, or a kill in that moment; what somebody deleted may not.
    if not model.deleted_to <= start <= latest_start:
        raise Broken(f"{name} starts at {start}, and not from {model.deleted_to} to {latest_start}")
    found = contents(log)
    for offset, record in found.items():
        if possible.get(offset) != record:
            raise Broken(f"{name} has {record} at {offset}, and not {possible.get(offset)}")
    # Of unflushed segments one may be empty and the next one not: then, as in Kafka, the log has a hole.
    _check_transactions(log, model, pending, power_cut=power_cut)
    needed = [offset for offset in range(start, end) if not power_cut or offset < model.flushed or offset in found]
    needed = [offset for offset in needed if offset not in model.markers | {pending.marker}]
    if model.compacted:
        last = {possible[offset][0]: offset for offset in needed if offset in possible and offset not in model.hidden}
        missing = [offset for offset in last.values() if offset not in found]
    else:
        missing = [offset for offset in needed if offset not in found]
    if missing:
        raise Broken(f"{name} from {start} to {end} has no record at {missing}")


def _check_transactions(log: PartitionLog, model: LogModel, pending: Pending, *, power_cut: bool) -> None:
    """What was aborted is, as far as its marker is there, and nothing else is; and what was open still is."""
    known = {each.last_offset for segment in log.segments for each in segment.aborted}
    if known - model.aborted - {pending.marker}:
        raise Broken(f"{log.name} has transactions aborted at {known}, and not at {model.aborted}")
    there = {offset for offset in model.aborted if log.segments[0].base_offset <= offset < log.log_end_offset}
    # Where there is a hole the marker is gone; of what was cleaned nothing may be left that would have to be hidden.
    if there - known and not power_cut and not model.compacted:
        raise Broken(f"{log.name} has transactions aborted at {known}, and not at {there}")
    unstable = log.producers.first_unstable_offset
    if unstable != model.unstable and not power_cut and pending.marker < 0 and not pending.records:
        raise Broken(f"in {log.name} a transaction is open from {unstable} on, and not from {model.unstable}")
