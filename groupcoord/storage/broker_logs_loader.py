"""Loads the logs in the directory of one broker, and reports what it repaired.

Source: ``LogManager.loadLogs``, ``MetaPropertiesEnsemble``.
"""

import shutil
import uuid
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from groupcoord.broker import topic_names
from groupcoord.broker.storage_backend import RecoveredLog
from groupcoord.broker.topic_config import log_config
from groupcoord.config.broker_config import BrokerConfig
from groupcoord.storage import log_dir_files, log_file_names
from groupcoord.storage.broker_logs import BrokerLogs, rename_to_delete
from groupcoord.storage.cluster_metadata_file import MetadataContents, TopicEntry
from groupcoord.storage.file_io import StorageError, sync, tidy
from groupcoord.storage.file_log_backend import BackendHost, FileLogBackend
from groupcoord.storage.log_dir_files import CheckpointError, MetaProperties
from groupcoord.storage.log_file_names import Partition
from groupcoord.storage.log_loader import LogLoader

METADATA_LOG = "__cluster_metadata-0"


def belongs_to(directory: Path, cluster_id: str, node_id: int) -> bool:
    """Does ``meta.properties`` name that node? False if there is none, in a new directory. Raises StorageError for another
    node, and OSError."""
    if (directory / METADATA_LOG).exists():
        raise StorageError(
            f"{directory} is the log directory of a real Kafka broker: it has {METADATA_LOG}. "
            "Copy the folders of the topics you want to a directory of their own, and use that."
        )
    path = directory / log_dir_files.META_PROPERTIES
    meta = log_dir_files.read_meta_properties(path)
    if meta is None:
        return False
    if meta._replace(directory_id="") != MetaProperties(cluster_id, node_id, ""):
        raise StorageError(
            f"{directory} belongs to node {meta.node_id} of cluster {meta.cluster_id}, and this is node "
            f"{node_id} of cluster {cluster_id}. Use another directory, or remove {path} to take it over."
        )
    return True


def claim(directory: Path, cluster_id: str, node_id: int, directory_id: uuid.UUID) -> None:
    """Write ``meta.properties``. Raises OSError."""
    named = MetaProperties(cluster_id, node_id, log_dir_files.uuid_text(directory_id))
    log_dir_files.write_meta_properties(directory / log_dir_files.META_PROPERTIES, named)


class BrokerLogsLoader:
    """Loads the logs in ``directory``, which is locked, of the topics in ``metadata``. Raises OSError, StorageError.

    ``report`` is called with a text for everything that was damaged or missing.
    """

    def __init__(
        self, directory: Path, metadata: MetadataContents, *, now_ms: int, report: Callable[[str], None]
    ) -> None:
        self._directory, self._metadata, self._now_ms, self._report = directory, metadata, now_ms, report
        self._stores: dict[Partition, FileLogBackend] = {}
        self._checkpointed: set[Partition] = set()
        self._has_shortened_logs = False
        self.missing: list[Path] = []
        """The partition folders that are missing."""
        self.largest_producer_id = -1
        """The largest producer id in the logs."""
        marker = directory / log_dir_files.CLEAN_SHUTDOWN
        self.is_clean = marker.exists()
        """Did the previous server shut down cleanly?"""
        marker.unlink(missing_ok=True)  # whatever happens from now on is not a clean shutdown
        self.folders = self._find_folders()
        """Topic → partition → folder."""
        self._recovery_points = self._offsets(log_dir_files.RECOVERY_POINTS)
        self._starts = self._offsets(log_dir_files.LOG_START_OFFSETS)
        self._cleaned = self._offsets(log_dir_files.CLEANED)

    def load(
        self, topic: TopicEntry, index: int, config: BrokerConfig, host: BackendHost, *, has_gaps: bool = False
    ) -> RecoveredLog:
        """The log of a partition, which belongs to ``host`` from now on; a missing folder is created again."""
        partition = Partition(topic.name, index)
        if not self.has(topic, index):
            self.create(topic, index, host)
        store = self._stores[partition] = FileLogBackend(self._directory / str(partition), host)
        compacted_to = self._cleaned.get(partition, 0)
        loader = LogLoader(
            store.folder,
            log_config(topic.configs, config),
            clean=self.is_clean,
            recovery_point=self._recovery_points.get(partition, 0),
            log_start_offset=self._starts.get(partition, 0),
            now_ms=self._now_ms,
            has_gaps=compacted_to > 0 or has_gaps,
            report=self._report,
        )
        found = loader.run()
        self._has_shortened_logs |= found.recovery_point < self._recovery_points.get(partition, 0)
        producer_ids = (producer_id for producer_id, _ in found.producers.items())
        self.largest_producer_id = max(self.largest_producer_id, *producer_ids, -1)
        return store.take_over(found, compacted_to)

    def has(self, topic: TopicEntry, index: int) -> bool:
        """Does the folder of a partition exist?"""
        return index in self.folders.get(topic.name, {})

    def create(self, topic: TopicEntry, index: int, host: BackendHost) -> None:
        """Create the missing folder of a partition."""
        partition = Partition(topic.name, index)
        store = self._stores[partition] = FileLogBackend(self._directory / str(partition), host)
        self.missing.append(store.folder)
        store.create(topic.topic_id)

    def loaded(self) -> BrokerLogs:
        """The loaded logs."""
        logs = BrokerLogs(self._directory, self._stores, self._checkpointed)
        if self._has_shortened_logs:  # otherwise new batches behind the truncation would be taken for flushed
            logs.write_checkpoints()
        return logs

    def _find_folders(self) -> dict[str, dict[int, Path]]:
        """The folders of partitions; finishes the deletion of those that were being deleted."""
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
        """The topic id of a folder, if the topic was deleted before the last shutdown.

        Also by its name, because a power failure may have emptied the file, which is not flushed when a topic is created.
        """
        topic_id = topic_id_in(file)
        deleted = self._metadata.deleted
        if topic_id is not None:
            return topic_id if topic_id in deleted else None
        if any(topic.name == partition.topic for topic in self._metadata.topics.values()):
            return None
        gone = [topic for topic in deleted.values() if topic is not None and topic.name == partition.topic]
        return next((topic.topic_id for topic in gone if partition.number < topic.partitions), None)

    def _offsets(self, name: str) -> dict[Partition, int]:
        try:
            offsets = log_dir_files.read_offsets(self._directory / name)
        except CheckpointError as problem:
            self._report(f"{problem}; it is left out")
            return {}
        self._checkpointed |= offsets.keys()
        return offsets


def topic_id_in(file: Path) -> uuid.UUID | None:
    """The topic id in a ``partition.metadata``, or None if it is missing or unreadable."""
    try:
        return log_dir_files.read_topic_id(file)
    except CheckpointError:
        return None


def _is_a_log(folder: Path) -> bool:
    """Does the directory contain a partition's log, and is not only named like one?"""
    return (folder / log_file_names.PARTITION_METADATA).exists() or bool(log_file_names.log_files(folder))
