"""Loads the data directory of a single broker: checks to which node it belongs, finds its topics, and loads all logs.

Topics are found in the file ``groupcoord-metadata``, and in partition folders that were copied into the directory, such as from
a Kafka cluster. Producer ids in such folders are not given out again, and the folders of ``__consumer_offsets`` must fit the
number of its partitions, because otherwise groups would be looked up in the wrong one. Source: ``LogManager.loadLogs``,
``MetaPropertiesEnsemble``.
"""

import uuid
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from groupcoord.broker.storage_backend import RecoveredTopic
from groupcoord.config.broker_config import BrokerConfig
from groupcoord.storage import log_dir_files, log_file_names
from groupcoord.storage.adopted_folder_checks import (
    COORDINATOR_TOPICS,
    CoordinatorTopic,
    largest_producer_id,
    misplaced,
    names_in,
)
from groupcoord.storage.broker_logs import BrokerLogs
from groupcoord.storage.broker_logs_loader import BrokerLogsLoader, belongs_to, claim, topic_id_in
from groupcoord.storage.cluster_directory_loader import CONTROLLER
from groupcoord.storage.cluster_metadata_file import MetadataFile, TopicEntry
from groupcoord.storage.cluster_metadata_file import create as create_metadata_file
from groupcoord.storage.file_io import StorageError, replace, tidy
from groupcoord.storage.file_log_backend import BackendHost
from groupcoord.storage.log_dir_files import META_PROPERTIES, CheckpointError
from groupcoord.storage.log_file_names import Partition
from groupcoord.storage.recovered_config import with_changes, with_partitions

_EPOCHS_OF_A_START = 2
"""When the broker is fenced its partitions have no leader, and then it leads them again (``ReplicationControlManager``)."""


class DirectoryLoader:
    """Loads ``directory``, which is locked. ``findings`` are texts about what was damaged or missing.

    ``config`` becomes the given one with the dynamic changes of earlier runs. Every method raises OSError, StorageError and
    CheckpointError.
    """

    def __init__(
        self, directory: Path, config: BrokerConfig, *, new_uuid: Callable[[], uuid.UUID], now_ms: int
    ) -> None:
        self.config = config
        self.findings: list[str] = []
        self.unclean: set[int] = set()
        self._directory = directory
        self._new_uuid = new_uuid
        self._now_ms = now_ms
        self._brought: set[Partition] = set()  # partitions with a folder that the metadata file did not know
        if (directory / CONTROLLER).is_dir() or any(directory.glob(f"[0-9]*/{META_PROPERTIES}")):
            raise StorageError(
                f"{directory} has the data directories of several brokers. Start as many with it; or take one of these "
                "directories for a lone broker with the same node.id."
            )
        tidy(directory)
        is_new = not belongs_to(directory, config.cluster_id, config.node_id)
        if is_new:
            create_metadata_file(directory)  # first: where there is a meta.properties, there has been a metadata file
            claim(directory, config.cluster_id, config.node_id, new_uuid())
        self.metadata_file = MetadataFile(directory)
        if not is_new and not self.metadata_file.found:
            self.findings.append(
                f"{self.metadata_file.path} is lost, or empty: topics are found again by their folders and have the broker's "
                "defaults now; topics without a folder, and what was configured while the server ran, are lost"
            )
        self.config = with_changes(config, self.metadata_file.contents, self.findings.append)

    def recover(self, host: BackendHost) -> tuple[dict[int, BrokerLogs], list[RecoveredTopic]]:
        """Load every log. ``host`` is the storage to which the logs belong from now on."""
        contents = self.metadata_file.contents
        loader = BrokerLogsLoader(self._directory, contents, now_ms=self._now_ms, report=self.findings.append)
        folders = loader.folders
        adopted = self._adopt(folders)
        for kept in COORDINATOR_TOPICS:
            self._keep_to(kept, folders.get(kept.topic, {}), adopted=kept.topic in adopted)
        producer_ids = [largest_producer_id(self._directory / str(partition)) for partition in self._brought]
        recovered = []
        for topic in contents.topics.values():
            # The epochs of logs alone would not do: a power failure may take them, and who has seen a later one would refuse
            # the coordinator's markers.
            stored = dict(enumerate(topic.leader_epochs))
            logs = []
            for index in range(topic.partitions):
                is_brought = Partition(topic.name, index) in self._brought
                log = loader.load(topic, index, self.config, host, has_gaps=is_brought)
                epoch = max(log.leader_epoch, stored.get(index, 0)) + _EPOCHS_OF_A_START
                logs.append({self.config.node_id: log._replace(leader_epoch=epoch)})
                stored[index] = epoch
            topic.leader_epochs = list(stored.values())
            missing, loader.missing = loader.missing, []
            if missing:
                others = f" and {len(missing) - 1} more of topic {topic.name}" * (len(missing) > 1)
                self.findings.append(f"{missing[0]}{others} is missing: the partition begins anew")
            recovered.append(
                RecoveredTopic(
                    topic.name, topic.topic_id, topic.configs, topic.created_ms, logs, adopted=topic.name in adopted
                )
            )
        contents.keep_producer_ids(max(loader.largest_producer_id, *producer_ids, -1))
        return {self.config.node_id: loader.loaded()}, recovered

    def _say_whose(self, file: Path, topic_id: uuid.UUID) -> None:
        """Write the topic id into ``partition.metadata``."""
        if topic_id_in(file) is None:
            replace(file, log_dir_files.partition_metadata(topic_id))
            self.findings.append(
                f"{file} was missing or did not name a topic; it names {topic_id} now, as the topic does"
            )

    def _leave_alone(self, name: str, files: Iterable[Path]) -> bool:
        """Is the id of topic ``name`` unreadable, because its files are damaged? Its folders are then not touched."""
        for file in files:
            try:
                log_dir_files.read_topic_id(file)
            except CheckpointError as problem:
                self.findings.append(
                    f"{problem}. Nothing else says whose the folder is, so that topic {name} is left alone. Restore the file; "
                    f"or remove it to have the topic with a new id; or move {file.parent} away to be rid of it."
                )
                return True
        return False

    def _adopt(self, folders: Mapping[str, Mapping[int, Path]]) -> set[str]:
        """Create topics for partition folders without a known topic; returns the names of these topics."""
        topics = self.metadata_file.contents.topics
        known = {topic.name: topic for topic in topics.values()}
        adopted = set()
        for name, partitions in folders.items():
            files = [path / log_file_names.PARTITION_METADATA for path in partitions.values()]
            ids = {topic_id_in(file) for file in files} - {None}
            topic = known.get(name)
            if topic is None and not ids and self._leave_alone(name, files):
                continue
            there = 0 if topic is None else topic.partitions
            self._brought |= {Partition(name, number) for number in partitions if number >= there}
            if topic is not None:
                if ids - {topic.topic_id}:
                    file = next(file for file in files if topic_id_in(file) not in {None, topic.topic_id})
                    raise StorageError(
                        f"a folder of topic {name} in {self._directory} is of another topic of that name: {file} says so, and "
                        f"{self.metadata_file.path} says that it is {topic.topic_id}. Move the folder away, or mend the file."
                    )
                topic.partitions = max(topic.partitions, max(partitions) + 1)
                for file in files:
                    self._say_whose(file, topic.topic_id)
                continue
            topic_id = ids.pop() if ids else self._new_uuid()
            if topic_id is None or ids or topic_id in topics:
                raise StorageError(f"the folders of topic {name} in {self._directory} do not agree on whose they are")
            for file in files:
                if topic_id_in(file) is None:
                    replace(file, log_dir_files.partition_metadata(topic_id))
            adopted.add(name)
            self.findings.append(f"topic {name} was found in {self._directory}, and has the broker's defaults now")
            topics[topic_id] = TopicEntry(
                name=name, topic_id=topic_id, partitions=max(partitions) + 1, configs={}, created_ms=self._now_ms
            )
        return adopted

    def _keep_to(self, topic: CoordinatorTopic, folders: Mapping[int, Path], *, adopted: bool) -> None:
        """Set the number of partitions of a coordinator topic to that of the folders, so that names are found where they are
        stored.

        In an adopted topic the names show the number; if it is not the configured one, the start is refused.
        """
        configured: int = getattr(self.config, topic.field)
        self._check_names(topic, folders, configured, adopted=adopted)
        topics = self.metadata_file.contents.topics.values()
        there = next((entry.partitions for entry in topics if entry.name == topic.topic), configured)
        if adopted:
            there = max(there, configured)  # the last partitions of an adopted topic may be missing
        self.config = with_partitions(self.config, topic, there, self._directory, self.findings.append)

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
