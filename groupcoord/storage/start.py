"""The start of a data directory: whose it is, which topics are in it, and every log put in order.

Topics are those of the catalogue, and those of which somebody put the folders here, such as from a Kafka cluster.
Source: ``LogManager.loadLogs``, ``MetaPropertiesEnsemble``.
"""

import dataclasses
import shutil
import uuid
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path

from groupcoord.broker import topic_names
from groupcoord.broker.journal import RecoveredTopic
from groupcoord.broker.topic_config import log_settings
from groupcoord.broker.topic_names import CONSUMER_OFFSETS
from groupcoord.config.settings import BrokerConfig
from groupcoord.config.values import InvalidValueError
from groupcoord.storage import checkpoints, names
from groupcoord.storage.catalogue import Catalogue, TopicEntry
from groupcoord.storage.checkpoints import CheckpointError, MetaProperties
from groupcoord.storage.errors import StorageError
from groupcoord.storage.files import create
from groupcoord.storage.names import Partition
from groupcoord.storage.partition_store import Keeper, PartitionStore
from groupcoord.storage.recovery import Recovery

METADATA_LOG = "__cluster_metadata-0"


class Start:
    """One start of ``directory``, which is locked. ``findings`` says, in words, what was not as it should be.

    ``config`` becomes that with what was changed while the server ran, in an earlier life. Every method raises OSError,
    StorageError and CheckpointError.
    """

    def __init__(
        self, directory: Path, config: BrokerConfig, *, new_uuid: Callable[[], uuid.UUID], now_ms: int
    ) -> None:
        self.config = config
        self.findings: list[str] = []
        self.stores: dict[Partition, PartitionStore] = {}
        self._directory = directory
        self._new_uuid = new_uuid
        self._now_ms = now_ms
        self._see_whose_it_is()
        self.catalogue = Catalogue(directory)
        self._apply_changes()

    def _see_whose_it_is(self) -> None:
        directory = self._directory
        if (directory / METADATA_LOG).exists():
            raise StorageError(
                f"{directory} is the log directory of a real Kafka broker: it has {METADATA_LOG}. "
                "Copy the folders of the topics you want to a directory of their own, and use that."
            )
        path = directory / checkpoints.META_PROPERTIES
        meta = checkpoints.read_meta_properties(path)
        ours = MetaProperties(self.config.cluster_id, self.config.node_id, "")
        if meta is None:
            named = ours._replace(directory_id=checkpoints.uuid_text(self._new_uuid()))
            checkpoints.write_meta_properties(path, named)
        elif meta._replace(directory_id="") != ours:
            raise StorageError(
                f"{directory} belongs to node {meta.node_id} of cluster {meta.cluster_id}, and this is node "
                f"{ours.node_id} of cluster {ours.cluster_id}. Use another directory, or remove {path} to take it over."
            )

    def _apply_changes(self) -> None:
        for resource, configs in self.catalogue.contents.configs.items():
            try:
                self.config = self.config.changed(resource, configs)
            except InvalidValueError as problem:
                self.findings.append(
                    f"what was changed while the server ran does not go with how it is started, and is left out: {problem}"
                )

    def recover(self, keeper: Keeper) -> list[RecoveredTopic]:
        """Put every log in order; ``keeper`` is who looks after them from now on."""
        marker = self._directory / checkpoints.CLEAN_SHUTDOWN
        clean = marker.exists()
        marker.unlink(missing_ok=True)  # whatever happens from now on is not a clean shutdown
        folders = self._folders()
        adopted = self._adopt(folders)
        self._keep_to_the_offsets_topic(adopted)
        recovery_points = self._offsets(checkpoints.RECOVERY_POINTS)
        starts = self._offsets(checkpoints.LOG_START_OFFSETS)
        cleaned = self._offsets(checkpoints.CLEANED)
        recovered = []
        for topic in self.catalogue.contents.topics.values():
            logs = []
            for index in range(topic.partitions):
                partition = Partition(topic.name, index)
                folder = folders[topic.name].get(index)
                store = self.stores[partition] = PartitionStore(self._directory / str(partition), keeper)
                if folder is None:
                    self.findings.append(f"{store.folder} is missing: the partition begins anew")
                    store.create(topic.topic_id)
                recovery = Recovery(
                    store.folder,
                    log_settings(topic.configs, self.config),
                    clean=clean,
                    recovery_point=recovery_points.get(partition, 0),
                    log_start_offset=starts.get(partition, 0),
                    now_ms=self._now_ms,
                    report=self.findings.append,
                )
                logs.append(store.take_over(recovery.run(), cleaned.get(partition, 0)))
            recovered.append(
                RecoveredTopic(
                    topic.name, topic.topic_id, topic.configs, topic.created_ms, logs, adopted=topic.name in adopted
                )
            )
        return recovered

    def _folders(self) -> dict[str, dict[int, Path]]:
        """Topic → partition → folder. What was being deleted goes."""
        folders: dict[str, dict[int, Path]] = defaultdict(dict)
        for path in sorted(self._directory.iterdir()):
            partition = names.partition_folder(path.name)
            if names.is_deleted_folder(path.name):
                shutil.rmtree(path)
            elif partition is not None and topic_names.fault_text(partition.topic) is None and _is_a_log(path):
                topic_id = checkpoints.read_topic_id(path / names.PARTITION_METADATA)
                if topic_id in self.catalogue.contents.deleted:
                    shutil.rmtree(path)
                else:
                    folders[partition.topic][partition.number] = path
        return folders

    def _adopt(self, folders: Mapping[str, Mapping[int, Path]]) -> set[str]:
        """Make topics of the folders of which nothing is known; their names."""
        topics = self.catalogue.contents.topics
        known = {topic.name: topic for topic in topics.values()}
        for name, partitions in folders.items():
            files = [path / names.PARTITION_METADATA for path in partitions.values()]
            ids = {checkpoints.read_topic_id(file) for file in files} - {None}
            topic = known.get(name)
            if topic is not None:
                if ids - {topic.topic_id}:
                    raise StorageError(
                        f"a folder of topic {name} in {self._directory} is of another topic of that name"
                    )
                topic.partitions = max(topic.partitions, max(partitions) + 1)
                continue
            topic_id = ids.pop() if ids else self._new_uuid()
            if topic_id is None or ids or topic_id in topics:
                raise StorageError(f"the folders of topic {name} in {self._directory} do not agree on whose they are")
            for file in files:
                create(file, checkpoints.partition_metadata(topic_id))
            self.findings.append(f"topic {name} was found in {self._directory}, and has the broker's defaults now")
            topics[topic_id] = TopicEntry(
                name=name, topic_id=topic_id, partitions=max(partitions) + 1, configs={}, created_ms=self._now_ms
            )
        return set(folders) - set(known)

    def _keep_to_the_offsets_topic(self, adopted: set[str]) -> None:
        """Groups are where they were stored: the topic that is there says over how many partitions, as in Kafka."""
        configured = self.config.offsets_topic_num_partitions
        topics = self.catalogue.contents.topics.values()
        there = next((topic.partitions for topic in topics if topic.name == CONSUMER_OFFSETS), configured)
        if CONSUMER_OFFSETS in adopted:
            there = max(there, configured)  # of an adopted topic the last partitions may be missing
        if there != configured:
            self.config = _with_offsets_partitions(self.config, there)
            self.findings.append(
                f"{CONSUMER_OFFSETS} has {there} partitions in {self._directory}: that counts, and not "
                f"offsets.topic.num.partitions={configured}"
            )

    def _offsets(self, name: str) -> dict[Partition, int]:
        try:
            return checkpoints.read_offsets(self._directory / name)
        except CheckpointError as problem:
            self.findings.append(f"{problem}; it is left out")
            return {}


def _with_offsets_partitions(config: BrokerConfig, count: int) -> BrokerConfig:
    name = "offsets.topic.num.partitions"
    return dataclasses.replace(
        config,
        static={**config.static, name: str(count)},
        values={**config.values, name: count},
        offsets_topic_num_partitions=count,
    )


def _is_a_log(folder: Path) -> bool:
    """Is it the folder of a partition, and not just called like one?"""
    return folder.is_dir() and ((folder / names.PARTITION_METADATA).exists() or bool(names.log_files(folder)))
