"""Loads the data directory of a cluster of several brokers: DIR/1, DIR/2 and so on, each as a Kafka broker's log directory.

DIR/controller has the controller's metadata: topics, replicas, leaders and ISRs. If a broker's directory or a folder in it is
lost, the broker starts with empty logs, which it fetches from the leaders. The controller's metadata must not be lost, because
nothing else tells which replicas were in sync.
"""

import uuid
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from groupcoord.broker.leader_election_and_isr import without_lost
from groupcoord.broker.storage_backend import RecoveredLog, RecoveredTopic
from groupcoord.config.broker_config import BrokerConfig
from groupcoord.storage import log_dir_files
from groupcoord.storage.adopted_folder_checks import COORDINATOR_TOPICS
from groupcoord.storage.broker_logs import BrokerLogs, rename_to_stray
from groupcoord.storage.broker_logs_loader import BrokerLogsLoader, belongs_to, claim, topic_id_in
from groupcoord.storage.cluster_metadata_file import MetadataFile, TopicEntry
from groupcoord.storage.cluster_metadata_file import create as create_metadata_file
from groupcoord.storage.file_io import StorageError, tidy
from groupcoord.storage.file_log_backend import BackendHost
from groupcoord.storage.log_file_names import PARTITION_METADATA
from groupcoord.storage.recovered_config import with_changes, with_partitions

CONTROLLER = "controller"
"""The folder of the controller's metadata."""

_UNKNOWN_TOPIC = uuid.UUID(int=0)


class ClusterDirectoryLoader:
    """Loads ``directory`` for the brokers with these ids. ``findings`` are texts about what was damaged or missing.

    ``hold`` creates a directory and locks it. ``config`` becomes the given one with the dynamic changes of earlier runs. Every
    method raises OSError, StorageError and CheckpointError.
    """

    def __init__(
        self,
        directory: Path,
        config: BrokerConfig,
        brokers: range,
        *,
        hold: Callable[[Path], None],
        new_uuid: Callable[[], uuid.UUID],
        now_ms: int,
    ) -> None:
        self.findings: list[str] = []
        self.unclean: set[int] = set()
        """The brokers without a clean shutdown, or with a new directory."""
        self._directory, self._brokers, self._now_ms = directory, brokers, now_ms
        alone = log_dir_files.read_meta_properties(directory / log_dir_files.META_PROPERTIES)
        if alone is not None:
            raise StorageError(
                f"{directory} is the data directory of one broker, node {alone.node_id}: several have one each in it. "
                "Start one broker with it, or use another directory."
            )
        controller = directory / CONTROLLER
        hold(controller)
        tidy(controller)
        if_lost = "the brokers do not start together any more, only one of them alone, with its directory"
        self.metadata_file = MetadataFile(controller, if_lost)
        there = [broker for broker in brokers if belongs_to(self._of(broker), config.cluster_id, broker)]
        if not self.metadata_file.found:
            self._check_that_nothing_is_lost(there)
            create_metadata_file(controller)
        used = self._check_brokers()
        for broker in brokers:
            hold(self._of(broker))
            tidy(self._of(broker))
            if broker not in there:
                claim(self._of(broker), config.cluster_id, broker, new_uuid())
        self._unclaimed = used - set(there)
        self.config = with_changes(config, self.metadata_file.contents, self.findings.append)

    def _of(self, broker: int) -> Path:
        return self._directory / str(broker)

    def _check_that_nothing_is_lost(self, there: Collection[int]) -> None:
        for broker in there:
            raise StorageError(
                f"{self.metadata_file.path} is lost, or empty, and with it who has which partitions and who is in sync. "
                f"Restore it; or take the directory of one broker, such as {self._of(broker)}, for a lone broker."
            )

    def _check_brokers(self) -> set[int]:
        """The brokers that have partitions. Raises StorageError for one that is not part of the cluster."""
        topics = self.metadata_file.contents.topics.values()
        used = {replica for topic in topics for state in topic.states for replica in state.replicas}
        if strangers := sorted(used - set(self._brokers)):
            first, given = min(used), ", ".join(map(str, self._brokers))
            raise StorageError(
                f"{self._directory} has partitions of broker {strangers[0]}, and there are to be {given}: start at least "
                f"{max(used) - first + 1} brokers with node.id={first}, or use another directory"
            )
        return used

    def recover(self, host: BackendHost) -> tuple[dict[int, BrokerLogs], list[RecoveredTopic]]:
        """Load every log. ``host`` is the storage to which the logs belong from now on."""
        contents = self.metadata_file.contents
        loaders = {
            broker: BrokerLogsLoader(self._of(broker), contents, now_ms=self._now_ms, report=self.findings.append)
            for broker in self._brokers
        }
        self.unclean = {broker for broker, loader in loaders.items() if not loader.is_clean}
        for broker, loader in loaders.items():
            self._set_strays_aside(broker, loader)
        for kept in COORDINATOR_TOPICS:
            for topic in contents.topics.values():
                if topic.name == kept.topic:
                    self.config = with_partitions(
                        self.config, kept, topic.partitions, self._directory, self.findings.append
                    )
        lost_disks = contents.lost_disks
        self._write_losses(loaders)
        recovered = [
            RecoveredTopic(
                topic.name,
                topic.topic_id,
                topic.configs,
                topic.created_ms,
                [self._load(topic, index, loaders, host) for index in range(topic.partitions)],
                adopted=False,
                states=tuple(topic.states),
            )
            for topic in contents.topics.values()
        ]
        for broker, loader in loaders.items():
            is_empty = not any(loader.folders.values())
            if broker in lost_disks or (broker in self._unclaimed and is_empty):
                self.findings.append(
                    f"{self._of(broker)} is lost: broker {broker} begins with empty logs, and copies what others have"
                )
                continue
            if broker in self._unclaimed:
                self.findings.append(
                    f"{self._of(broker) / log_dir_files.META_PROPERTIES} was missing, and is made anew"
                )
            if loader.missing:
                others = f" and {len(loader.missing) - 1} more" * (len(loader.missing) > 1)
                what = f"broker {broker} begins with an empty log, and copies what others have"
                self.findings.append(f"{loader.missing[0]}{others} is missing: {what}")
        contents.keep_producer_ids(max(loader.largest_producer_id for loader in loaders.values()))
        return {broker: loader.loaded() for broker, loader in loaders.items()}, recovered

    def _write_losses(self, loaders: Mapping[int, BrokerLogsLoader]) -> None:
        """Remove replicas that have lost their logs from ISR and ELR. This is written before their folders are created again:
        otherwise, if this start is killed, the next one would take the new, empty logs for complete.
        """
        contents = self.metadata_file.contents
        is_changed = bool(contents.lost_disks)
        for topic in contents.topics.values():
            for index, state in enumerate(topic.states):
                having = [one for one in state.replicas if loaders[one].has(topic, index)]
                after = without_lost(state, set(having) - contents.lost_disks)
                is_changed |= after != state
                topic.states[index] = after
        contents.lost_disks = frozenset()
        if is_changed:
            self.metadata_file.start_anew()
            self.metadata_file.close()

    def _load(
        self, topic: TopicEntry, index: int, loaders: Mapping[int, BrokerLogsLoader], host: BackendHost
    ) -> dict[int, RecoveredLog]:
        """The recovered logs of a partition; missing folders are created."""
        found = {}
        for broker in topic.states[index].replicas:
            if loaders[broker].has(topic, index):
                found[broker] = loaders[broker].load(topic, index, self.config, host)
            else:
                loaders[broker].create(topic, index, host)
        return found

    def _set_strays_aside(self, broker: int, loader: BrokerLogsLoader) -> None:
        """Rename folders of partitions that are not assigned to the broker to ``-stray``, as by Kafka."""
        known = {topic.name: topic for topic in self.metadata_file.contents.topics.values()}
        for name, folders in loader.folders.items():
            for number, folder in list(folders.items()):
                topic_id, topic = topic_id_in(folder / PARTITION_METADATA), known.get(name)
                if (
                    topic is None
                    or topic_id not in {None, topic.topic_id}
                    or number >= topic.partitions
                    or broker not in topic.states[number].replicas
                ):
                    stray = rename_to_stray(folder, topic_id or _UNKNOWN_TOPIC)
                    del folders[number]
                    self.findings.append(
                        f"{folder} is of a partition that broker {broker} does not have, and is {stray.name} now"
                    )
