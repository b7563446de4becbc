"""DataDirectory, the StorageBackend that writes files: Kafka's, and ``groupcoord-metadata``, for one broker or a cluster.

If the disk fails, it accepts no more changes: requests fail with KAFKA_STORAGE_ERROR and the server stops, as Kafka does when
its only log directory fails. Everything acknowledged is found at the next start. Source: ``LogManager``.
"""

import contextlib
import dataclasses
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path

from groupcoord.broker.leader_election_and_isr import PartitionState
from groupcoord.broker.storage_backend import LogBackend, LogDirectory, RecoveredTopic, StorageBackend
from groupcoord.config.broker_config import BrokerConfig, ConfigResource
from groupcoord.config.features import FeatureLevels
from groupcoord.protocol.batches.record_batch import BatchError
from groupcoord.protocol.errors import ErrorCode
from groupcoord.storage import log_dir_files
from groupcoord.storage.broker_logs import BrokerLogs
from groupcoord.storage.cluster_directory_loader import ClusterDirectoryLoader
from groupcoord.storage.cluster_metadata_file import TopicEntry
from groupcoord.storage.directory_loader import DirectoryLoader
from groupcoord.storage.file_io import (
    BackgroundSync,
    DirectoryLock,
    OpenFiles,
    StorageError,
    is_shortage,
    make_directory,
    need_room,
    replace,
)
from groupcoord.storage.file_log_backend import FileLogBackend
from groupcoord.storage.log_dir_files import CheckpointError
from groupcoord.storage.log_file_names import Partition

_ROOM = 8
"""The most files that a change opens at once: those of a new segment, a folder, and those of a flush in the background."""


class DataDirectory(StorageBackend):
    """The data directory ``directory``, which is created if it is missing, in use until ``close``. Raises StorageError.

    Each of several ``brokers`` has a subdirectory named by its id. ``config`` is the configuration of the start;
    ``self.config`` has the dynamic changes of earlier runs, too. ``new_uuid`` generates ids, ``now_ms`` is the time.
    ``findings`` are texts about what was damaged or missing. ``on_failure`` is called once if the disk fails; ``failure`` then
    has the reason. ``on_shortage`` is called with a text when file descriptors are lacking, which is no failure: the change is
    refused, and can be retried.
    """

    in_memory = False

    def __init__(
        self,
        directory: Path,
        config: BrokerConfig,
        *,
        new_uuid: Callable[[], uuid.UUID],
        now_ms: int,
        brokers: int = 1,
    ) -> None:
        self.directory = directory
        self.failure: str | None = None
        self.on_failure: Callable[[], None] = lambda: None
        self.on_shortage: Callable[[str], None] = lambda _: None
        self._short_of_descriptors = False
        self._killed: set[int] = set()
        self._open = OpenFiles()
        self._background = BackgroundSync()
        with contextlib.ExitStack() as undo, _told(directory):

            def hold(path: Path) -> None:
                make_directory(path)
                undo.callback(DirectoryLock(path).release)

            hold(directory)
            start: DirectoryLoader | ClusterDirectoryLoader
            if brokers == 1:
                start = DirectoryLoader(directory, config, new_uuid=new_uuid, now_ms=now_ms)
            else:
                ids = range(config.node_id, config.node_id + brokers)
                start = ClusterDirectoryLoader(directory, config, ids, hold=hold, new_uuid=new_uuid, now_ms=now_ms)
            self._logs_of, self._recovered = start.recover(self)
            self._metadata_file = start.metadata_file
            self._metadata_file.start_anew()
            self.config = start.config
            self.findings = start.findings
            self._unclean = frozenset(start.unclean)
            self._release = undo.pop_all()

    # --- topics and configurations: the methods of StorageBackend

    def log(self, topic: str, partition: int, broker: int) -> LogBackend:
        """The files of a broker's log. Raises KeyError if it has not been created."""
        return self._logs_of[broker].stores[Partition(topic, partition)]

    def topic_created(
        self,
        name: str,
        topic_id: uuid.UUID,
        partitions: Sequence[PartitionState],
        configs: Mapping[str, str],
        created_ms: int,
    ) -> None:
        """Store the topic, and create the folders of its partitions."""
        self._add_partitions(
            TopicEntry(name=name, topic_id=topic_id, partitions=0, configs=dict(configs), created_ms=created_ms),
            partitions,
        )

    def partitions_added(self, topic_id: uuid.UUID, partitions: Sequence[PartitionState]) -> None:
        """Store the added partitions, and create their folders."""
        self._add_partitions(self._topic(topic_id), partitions)

    def _add_partitions(self, before: TopicEntry, added: Sequence[PartitionState]) -> None:
        is_cluster = len(self._logs_of) > 1
        new: dict[int, list[Partition]] = {}
        for index, state in enumerate(added, before.partitions):
            for broker in state.replicas if is_cluster else self._logs_of:
                new.setdefault(broker, []).append(Partition(before.name, index))
        with self._changing():
            for broker, partitions in new.items():
                self._logs_of[broker].make_room(partitions, before.topic_id)
            states = [*before.states, *added] if is_cluster else []
            self._metadata_file.put_topic(
                dataclasses.replace(before, partitions=before.partitions + len(added), states=states)
            )
            for broker, partitions in new.items():
                self._logs_of[broker].create(partitions, before.topic_id, self)

    def partition_changed(self, topic_id: uuid.UUID, partition: int, state: PartitionState) -> None:
        """Store the state; create the folders of new replicas, and delete those of removed ones."""
        topic = self._topic(topic_id)
        before, name = set(topic.states[partition].replicas), Partition(topic.name, partition)
        try:
            self._metadata_file.put_partition(topic_id, partition, state)
            for broker in set(state.replicas) - before:
                self._logs_of[broker].make_room([name], topic_id)
                self._logs_of[broker].create([name], topic_id, self)
            for broker in before - set(state.replicas):
                self._delete(self._logs_of[broker], [name], topic_id)
        except OSError as error:
            self.failed(error)

    def topic_configured(self, topic_id: uuid.UUID, configs: Mapping[str, str]) -> None:
        """Store the overrides."""
        with self._changing():
            self._metadata_file.put_topic(dataclasses.replace(self._topic(topic_id), configs=dict(configs)))

    def topic_deleted(self, topic_id: uuid.UUID) -> None:
        """Store that the topic is deleted, and delete its folders."""
        with self._changing():
            name = self._topic(topic_id).name
            self._metadata_file.delete_topic(topic_id)
            for logs in self._logs_of.values():
                self._delete(logs, [one for one in logs.stores if one.topic == name], topic_id)

    def _delete(self, logs: BrokerLogs, partitions: Sequence[Partition], topic_id: uuid.UUID) -> None:
        for partition in partitions:
            self._open.forget(logs.stores[partition])
        logs.delete(partitions, topic_id)

    def resource_configured(self, resource: ConfigResource, configs: Mapping[str, str]) -> None:
        """Store the configurations."""
        with self._changing():
            self._metadata_file.put_configs(resource, configs)

    def producer_ids_reserved(self, end: int) -> None:
        """Store that the producer ids before ``end`` are used."""
        with self._changing():
            self._metadata_file.put_next_producer_id(end)

    def features_updated(self, features: FeatureLevels) -> None:
        """Store the feature levels."""
        with self._changing():
            self._metadata_file.put_features(features)

    def features(self) -> FeatureLevels:
        """The stored feature levels."""
        return self._metadata_file.contents.features

    def recovered_topics(self) -> Sequence[RecoveredTopic]:
        """The topics found at the start; can be called once."""
        recovered, self._recovered = self._recovered, []
        return recovered

    def log_directory(self, broker: int) -> LogDirectory:
        """See StorageBackend; the sizes are -1 if the system does not provide them."""
        return self._logs_of[broker].log_directory()

    def broker_ended(self, broker: int, *, in_order: bool, lost_disk: bool) -> None:
        """Record whether the broker has shut down cleanly, and whether its logs are empty because its disk was lost."""
        (self._killed.discard if in_order else self._killed.add)(broker)
        before = self._metadata_file.contents.lost_disks
        after = before | {broker} if lost_disk else before - {broker}
        if after != before:
            try:
                self._metadata_file.put_lost_disks(after)
            except OSError as error:
                self.failed(error)

    def unclean_brokers(self) -> frozenset[int]:
        """The brokers that did not shut down cleanly."""
        return self._unclean

    def first_metadata_version(self) -> int:
        """See StorageBackend: resolved regular expressions are stored with versions, also of earlier runs, each of which has
        made fewer than 2³² changes."""
        return (self._metadata_file.contents.rewrites - 1) << 32

    def next_producer_id(self) -> int:
        """The first producer id that was never given out."""
        return self._metadata_file.contents.next_producer_id

    def _topic(self, topic_id: uuid.UUID) -> TopicEntry:
        return self._metadata_file.contents.topics[topic_id]

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        self.check()
        self.need_room()
        try:
            yield
        except OSError as error:
            raise self.failed(error) from error

    # --- the methods of BackendHost, which logs call

    def check(self) -> None:
        """Raises BatchError if the disk has failed."""
        if self.failure is not None:
            raise BatchError(ErrorCode.KAFKA_STORAGE_ERROR, self.failure)

    def failed(self, error: OSError, *, undone: bool = False) -> BatchError:
        """Stop accepting changes, because the disk has failed; returns the error to raise.

        If the change is ``undone`` and only descriptors were lacking, only this request is refused, and the files of all logs
        are closed, so that the next one can succeed.
        """
        if undone and is_shortage(error):
            self._open.close()
            problem = f"no file could be opened for the data directory {self.directory}: {_said(error)}"
            if not self._short_of_descriptors:
                self._short_of_descriptors = True
                self.on_shortage(problem)
            return BatchError(ErrorCode.KAFKA_STORAGE_ERROR, problem)
        if self.failure is None:
            self.failure = f"the data directory {self.directory} has failed: {_said(error)}"
            self.on_failure()
        return BatchError(ErrorCode.KAFKA_STORAGE_ERROR, self.failure)

    def need_room(self) -> None:
        """Raises BatchError unless there are descriptors for a change in several steps, which could not be undone half-way."""
        try:
            need_room(_ROOM)
        except OSError as error:
            raise self.failed(error, undone=True) from error

    def used(self, store: FileLogBackend) -> None:
        """``store`` has open files; may close those of another log."""
        self._open.used(store)

    def files_to_come(self) -> int:
        """How many more file descriptors the logs may use; a server leaves that many free."""
        return self._open.files_to_spare + _ROOM

    def submit(self, work: Callable[[], None]) -> "Future[None]":
        """Run ``work`` in the background thread."""
        return self._background.submit(work)

    def starts_changed(self, store: FileLogBackend) -> None:
        """Write the checkpoint of log start offsets of the broker. Raises BatchError."""
        with self._changing():
            self._logs_with(store).write_starts()

    def end_moved_back(self, store: FileLogBackend) -> None:
        """Write the checkpoints of the broker. Raises BatchError."""
        with self._changing():
            self._logs_with(store).write_checkpoints()

    def _logs_with(self, store: FileLogBackend) -> BrokerLogs:
        return next(logs for logs in self._logs_of.values() if logs.directory == store.folder.parent)

    # --- checkpoints and shutdown

    def checkpoint(self) -> None:
        """Write the checkpoints of all logs, so that the next start need not check what is flushed."""
        if self.failure is None:
            try:
                for logs in self._logs_of.values():
                    logs.write_checkpoints()
                self._short_of_descriptors = False
            except OSError as error:
                self.failed(error, undone=True)

    def close(self) -> None:
        """Flush everything, write the clean shutdown file, and release the lock of the directory.

        After a failure, also during this, the files are left as they are, and ``failure`` has the reason.
        """
        try:
            if self.failure is None:
                for logs in self._logs_of.values():
                    logs.complete()
                self._background.close()
                for broker, logs in self._logs_of.items():
                    logs.write_checkpoints()
                    if broker not in self._killed:
                        replace(logs.directory / log_dir_files.CLEAN_SHUTDOWN, log_dir_files.clean_shutdown_marker())
        except OSError as error:
            self.failed(error)
        finally:
            self._background.close()
            for logs in self._logs_of.values():
                logs.close()
            self._metadata_file.close()
            self._release.close()


@contextlib.contextmanager
def _told(directory: Path) -> Iterator[None]:
    """Adds the directory to errors of a start."""
    try:
        yield
    except OSError as error:
        raise StorageError(f"cannot use the data directory {directory}: {_said(error)}") from error
    except (CheckpointError, BatchError) as problem:
        raise StorageError(f"cannot use the data directory {directory}: {problem}") from problem


def _said(error: OSError) -> str:
    """The text of the system error, with its file."""
    said = error.strerror or str(error)
    return f"{said}: {error.filename}" if error.filename else said
