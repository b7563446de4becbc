"""Loads a data directory at the start of a server: checks whose it is, finds its topics, and loads the log of each partition.

Topics come from two places: the catalogue (``groupcoord-metadata``), and folders of partitions that somebody copied here,
such as from a Kafka cluster. Producer ids that such folders mention are not handed out again, and the folders of
``__consumer_offsets`` must fit the number of its partitions, or groups would not be found. Source: ``LogManager.loadLogs``,
``MetaPropertiesEnsemble``.
"""

import dataclasses
import shutil
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from groupcoord.broker import topic_names
from groupcoord.broker.storage_backend import RecoveredTopic
from groupcoord.broker.topic_config import log_config
from groupcoord.config.broker_config import BrokerConfig
from groupcoord.config.config_def import InvalidValueError
from groupcoord.storage import log_file_names, text_files
from groupcoord.storage.adopted_folder_checks import (
    COORDINATOR_TOPICS,
    CoordinatorTopic,
    largest_producer_id,
    misplaced,
    names_in,
    next_block,
)
from groupcoord.storage.file_io import StorageError, replace, sync, tidy
from groupcoord.storage.file_log_backend import BackendHost, FileLogBackend
from groupcoord.storage.log_file_names import Partition
from groupcoord.storage.log_loader import LogLoader
from groupcoord.storage.metadata_log import MetadataLog, TopicEntry
from groupcoord.storage.metadata_log import create as create_metadata_file
from groupcoord.storage.text_files import CheckpointError, MetaProperties

METADATA_LOG = "__cluster_metadata-0"


class DirectoryLoader:
    """Loads ``directory``, which is locked. ``findings`` says, in words, what was not as it should be.

    ``config`` becomes the given one plus the changes that were made while earlier servers ran. Every method raises OSError,
    StorageError and CheckpointError.
    """

    def __init__(
        self, directory: Path, config: BrokerConfig, *, new_uuid: Callable[[], uuid.UUID], now_ms: int
    ) -> None:
        self.config = config
        self.findings: list[str] = []
        self.stores: dict[Partition, FileLogBackend] = {}
        self._directory = directory
        self._new_uuid = new_uuid
        self._now_ms = now_ms
        self.checkpointed: set[Partition] = set()
        """The partitions that have a line in a checkpoint."""
        self.has_shortened_logs = False
        """Does a log end before what its checkpoint says? Then what is appended must not be taken for flushed."""
        self._brought: set[Partition] = set()  # of which there is a folder, and the catalogue did not know
        tidy(directory)
        is_new = self._see_whose_it_is()
        self.metadata_log = MetadataLog(directory)
        if not is_new and not self.metadata_log.found:
            self.findings.append(
                f"{self.metadata_log.path} is lost, or empty: topics are found again by their folders and have the broker's "
                "defaults now; topics without a folder, and what was configured while the server ran, are lost"
            )
        self._apply_changes()

    def _see_whose_it_is(self) -> bool:
        """Is the directory a new one?"""
        directory = self._directory
        if (directory / METADATA_LOG).exists():
            raise StorageError(
                f"{directory} is the log directory of a real Kafka broker: it has {METADATA_LOG}. "
                "Copy the folders of the topics you want to a directory of their own, and use that."
            )
        path = directory / text_files.META_PROPERTIES
        meta = text_files.read_meta_properties(path)
        ours = MetaProperties(self.config.cluster_id, self.config.node_id, "")
        if meta is None:
            create_metadata_file(directory)  # first, so that where the one is the other has been
            named = ours._replace(directory_id=text_files.uuid_text(self._new_uuid()))
            text_files.write_meta_properties(path, named)
        elif meta._replace(directory_id="") != ours:
            raise StorageError(
                f"{directory} belongs to node {meta.node_id} of cluster {meta.cluster_id}, and this is node "
                f"{ours.node_id} of cluster {ours.cluster_id}. Use another directory, or remove {path} to take it over."
            )
        return meta is None

    def _apply_changes(self) -> None:
        for resource, configs in self.metadata_log.contents.configs.items():
            try:
                self.config = self.config.changed(resource, configs)
            except InvalidValueError as problem:
                self.findings.append(
                    f"what was changed while the server ran does not go with how it is started, and is left out: {problem}"
                )

    def recover(self, host: BackendHost) -> list[RecoveredTopic]:
        """Load every log. ``host`` is the storage that they belong to from now on."""
        marker = self._directory / text_files.CLEAN_SHUTDOWN
        clean = marker.exists()
        marker.unlink(missing_ok=True)  # whatever happens from now on is not a clean shutdown
        folders = self._folders()
        adopted = self._adopt(folders)
        for kept in COORDINATOR_TOPICS:
            self._keep_to(kept, folders[kept.topic], adopted=kept.topic in adopted)
        producer_ids = [largest_producer_id(self._directory / str(partition)) for partition in self._brought]
        recovery_points = self._offsets(text_files.RECOVERY_POINTS)
        starts = self._offsets(text_files.LOG_START_OFFSETS)
        cleaned = self._offsets(text_files.CLEANED)
        recovered = []
        for topic in self.metadata_log.contents.topics.values():
            logs = []
            missing: list[Path] = []
            for index in range(topic.partitions):
                partition = Partition(topic.name, index)
                folder = folders[topic.name].get(index)
                store = self.stores[partition] = FileLogBackend(self._directory / str(partition), host)
                if folder is None:
                    missing.append(store.folder)
                    store.create(topic.topic_id)
                compacted_to = cleaned.get(partition, 0)
                recovery = LogLoader(
                    store.folder,
                    log_config(topic.configs, self.config),
                    clean=clean,
                    recovery_point=recovery_points.get(partition, 0),
                    log_start_offset=starts.get(partition, 0),
                    now_ms=self._now_ms,
                    has_gaps=compacted_to > 0 or partition in self._brought,
                    report=self.findings.append,
                )
                found = recovery.run()
                self.has_shortened_logs |= found.recovery_point < recovery_points.get(partition, 0)
                producer_ids += [producer_id for producer_id, _ in found.producers.items()]
                logs.append(store.take_over(found, compacted_to))
            if missing:
                others = f" and {len(missing) - 1} more of topic {topic.name}" * (len(missing) > 1)
                self.findings.append(f"{missing[0]}{others} is missing: the partition begins anew")
            recovered.append(
                RecoveredTopic(
                    topic.name, topic.topic_id, topic.configs, topic.created_ms, logs, adopted=topic.name in adopted
                )
            )
        contents = self.metadata_log.contents
        largest = max(producer_ids, default=-1)
        if largest >= contents.next_producer_id:
            contents.next_producer_id = next_block(largest)
        return recovered

    def _folders(self) -> dict[str, dict[int, Path]]:
        """Topic → partition → folder. What was being deleted goes."""
        folders: dict[str, dict[int, Path]] = defaultdict(dict)
        doomed = []
        for path in sorted(self._directory.iterdir()):
            partition = log_file_names.partition_folder(path.name)
            if log_file_names.is_deleted_folder(path.name):
                doomed.append(path)
            elif partition is not None and topic_names.fault_text(partition.topic) is None and path.is_dir():
                tidy(path)
                if not _is_a_log(path):
                    continue
                deleted = self._deleted(partition, path / log_file_names.PARTITION_METADATA)
                if deleted is None:
                    folders[partition.topic][partition.number] = path
                else:
                    doomed.append(rename_to_delete(path, deleted))
        if doomed:
            sync(self._directory)
        for path in doomed:
            shutil.rmtree(path)
        return folders

    def _deleted(self, partition: Partition, file: Path) -> uuid.UUID | None:
        """The id of the topic if it is one that was deleted in the life before.

        By its name, too: a power cut may have emptied the file, which is not flushed when a topic is made.
        """
        topic_id = self._topic_id(file)
        deleted = self.metadata_log.contents.deleted
        if topic_id is not None:
            return topic_id if topic_id in deleted else None
        if any(topic.name == partition.topic for topic in self.metadata_log.contents.topics.values()):
            return None
        gone = [topic for topic in deleted.values() if topic is not None and topic.name == partition.topic]
        return next((topic.topic_id for topic in gone if partition.number < topic.partitions), None)

    def _topic_id(self, file: Path) -> uuid.UUID | None:
        """What a ``partition.metadata`` says, or None if there is none, or none that can be read."""
        try:
            return text_files.read_topic_id(file)
        except CheckpointError:
            return None

    def _say_whose(self, file: Path, topic_id: uuid.UUID) -> None:
        """Write the id of the topic into ``partition.metadata``."""
        if self._topic_id(file) is None:
            replace(file, text_files.partition_metadata(topic_id))
            self.findings.append(
                f"{file} was missing or did not name a topic; it names {topic_id} now, as the topic does"
            )

    def _leave_alone(self, name: str, files: Iterable[Path]) -> bool:
        """Can the id of topic ``name`` not be read, because its files are damaged? Its folders are then left as they are."""
        for file in files:
            try:
                text_files.read_topic_id(file)
            except CheckpointError as problem:
                self.findings.append(
                    f"{problem}. Nothing else says whose the folder is, so that topic {name} is left alone. Restore the file; "
                    f"or remove it to have the topic with a new id; or move {file.parent} away to be rid of it."
                )
                return True
        return False

    def _adopt(self, folders: Mapping[str, Mapping[int, Path]]) -> set[str]:
        """Create topics for the folders of partitions that no known topic has; returns the names of these topics."""
        topics = self.metadata_log.contents.topics
        known = {topic.name: topic for topic in topics.values()}
        adopted = set()
        for name, partitions in folders.items():
            files = [path / log_file_names.PARTITION_METADATA for path in partitions.values()]
            ids = {self._topic_id(file) for file in files} - {None}
            topic = known.get(name)
            if topic is None and not ids and self._leave_alone(name, files):
                continue
            there = 0 if topic is None else topic.partitions
            self._brought |= {Partition(name, number) for number in partitions if number >= there}
            if topic is not None:
                if ids - {topic.topic_id}:
                    file = next(file for file in files if self._topic_id(file) not in {None, topic.topic_id})
                    raise StorageError(
                        f"a folder of topic {name} in {self._directory} is of another topic of that name: {file} says so, and "
                        f"{self.metadata_log.path} says that it is {topic.topic_id}. Move the folder away, or mend the file."
                    )
                topic.partitions = max(topic.partitions, max(partitions) + 1)
                for file in files:
                    self._say_whose(file, topic.topic_id)
                continue
            topic_id = ids.pop() if ids else self._new_uuid()
            if topic_id is None or ids or topic_id in topics:
                raise StorageError(f"the folders of topic {name} in {self._directory} do not agree on whose they are")
            for file in files:
                if self._topic_id(file) is None:
                    replace(file, text_files.partition_metadata(topic_id))
            adopted.add(name)
            self.findings.append(f"topic {name} was found in {self._directory}, and has the broker's defaults now")
            topics[topic_id] = TopicEntry(
                name=name, topic_id=topic_id, partitions=max(partitions) + 1, configs={}, created_ms=self._now_ms
            )
        return adopted

    def _keep_to(self, topic: CoordinatorTopic, folders: Mapping[int, Path], *, adopted: bool) -> None:
        """Names are where they were stored: the topic that is there says over how many partitions, as in Kafka.

        In an adopted topic the names show the number; if they do not fit the configured one, the start is refused.
        """
        configured: int = getattr(self.config, topic.field)
        self._check_names(topic, folders, configured, adopted=adopted)
        topics = self.metadata_log.contents.topics.values()
        there = next((entry.partitions for entry in topics if entry.name == topic.topic), configured)
        if adopted:
            there = max(there, configured)  # of an adopted topic the last partitions may be missing
        if there != configured:
            self.config = _with_partitions(self.config, topic, there)
            self.findings.append(
                f"{topic.topic} has {there} partitions in {self._directory}: that counts, and not "
                f"{topic.count_property}={configured}"
            )

    def _check_names(
        self, topic: CoordinatorTopic, folders: Mapping[int, Path], configured: int, *, adopted: bool
    ) -> None:
        brought = [partition for partition in self._brought if partition.topic == topic.topic]
        if not brought:
            return
        if not adopted:
            raise StorageError(
                f"{self._directory / str(brought[0])} is of a partition that {topic.topic} did not have, and with one "
                f"more no {topic.kind} would be found where it is. Move the folder away."
            )
        names = names_in(topic, folders)
        problem = misplaced(names, max(folders), configured, topic) if names else None
        if problem is not None:
            raise StorageError(f"the {topic.kind}s in {self._directory} would not be found: {problem}")

    def _offsets(self, name: str) -> dict[Partition, int]:
        try:
            offsets = text_files.read_offsets(self._directory / name)
        except CheckpointError as problem:
            self.findings.append(f"{problem}; it is left out")
            return {}
        self.checkpointed |= offsets.keys()
        return offsets


def _with_partitions(config: BrokerConfig, topic: CoordinatorTopic, count: int) -> BrokerConfig:
    name = topic.count_property
    changed: dict[str, Any] = {
        "static": {**config.static, name: str(count)},
        "values": {**config.values, name: count},
        topic.field: count,
    }
    return dataclasses.replace(config, **changed)


def _is_a_log(folder: Path) -> bool:
    """Is the directory the folder of a partition, and not just called like one?"""
    return (folder / log_file_names.PARTITION_METADATA).exists() or bool(log_file_names.log_files(folder))


def rename_to_delete(folder: Path, topic_id: uuid.UUID) -> Path:
    """Rename the folder of a partition so that it will be deleted even after a crash, and is never loaded as a log again."""
    return folder.rename(folder.with_name(f"{folder.name}.{topic_id.hex}-delete"))
