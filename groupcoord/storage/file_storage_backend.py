"""A data directory: the storage of a node, or of a cluster, that outlives the process.

Every file in it is Kafka's but ``groupcoord-metadata``.

If the disk fails, nothing more is taken: the last answers say KAFKA_STORAGE_ERROR, and the server is told to end, as Kafka does
when its only log directory fails. What had been acknowledged is found again at the next start. Source: ``LogManager``.
"""

import contextlib
import dataclasses
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path

from groupcoord.broker.leader_election import PartitionState
from groupcoord.broker.storage_backend import LogBackend, LogDirectory, RecoveredTopic, StorageBackend
from groupcoord.config.broker_config import BrokerConfig, ConfigResource
from groupcoord.config.features import FeatureLevels
from groupcoord.protocol.batches.record_batch import BatchError
from groupcoord.protocol.errors import ErrorCode
from groupcoord.storage import text_files
from groupcoord.storage.broker_logs import BrokerLogs
from groupcoord.storage.cluster_directory_loader import ClusterDirectoryLoader
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
from groupcoord.storage.log_file_names import Partition
from groupcoord.storage.metadata_log import TopicEntry
from groupcoord.storage.text_files import CheckpointError

_ROOM = 8
"""A change has no more files open at once than this: those of a segment that is written, a folder, and what is flushed beside
it."""


class DataDirectory(StorageBackend):
    """The data directory ``directory``, which is made if there is none, in use until ``close``. Raises StorageError.

    Of several ``brokers`` each has a directory in it, by its id. ``config`` is how the server was started; ``self.config``
    is that with what was changed while it ran, in an earlier life. ``new_uuid`` is where ids come from, ``now_ms`` the
    time. ``findings`` says, in words, what was not as it should be. ``on_failure`` is called, once, if the disk fails,
    which ``failure`` then describes. ``on_shortage`` is told in words when there are no descriptors for files; that is no
    failure: what cannot be done is refused, and tried again by who wants it.
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
            self._metadata_log = start.metadata_log
            self._metadata_log.start_anew()
            self.config = start.config
            self.findings = start.findings
            self._unclean = frozenset(start.unclean)
            self._release = undo.pop_all()

    # --- topics and configurations: the face of a StorageBackend

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
        """Remember the topic, and make the folders of its partitions."""
        self._add_partitions(
            TopicEntry(name=name, topic_id=topic_id, partitions=0, configs=dict(configs), created_ms=created_ms),
            partitions,
        )

    def partitions_added(self, topic_id: uuid.UUID, partitions: Sequence[PartitionState]) -> None:
        """Remember them, and make their folders."""
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
            self._metadata_log.put_topic(
                dataclasses.replace(before, partitions=before.partitions + len(added), states=states)
            )
            for broker, partitions in new.items():
                self._logs_of[broker].create(partitions, before.topic_id, self)

    def partition_changed(self, topic_id: uuid.UUID, partition: int, state: PartitionState) -> None:
        """Remember the state; who is a replica has a folder, and nobody else."""
        topic = self._topic(topic_id)
        before, name = set(topic.states[partition].replicas), Partition(topic.name, partition)
        try:
            self._metadata_log.put_partition(topic_id, partition, state)
            for broker in set(state.replicas) - before:
                self._logs_of[broker].make_room([name], topic_id)
                self._logs_of[broker].create([name], topic_id, self)
            for broker in before - set(state.replicas):
                self._delete(self._logs_of[broker], [name], topic_id)
        except OSError as error:
            self.failed(error)

    def topic_configured(self, topic_id: uuid.UUID, configs: Mapping[str, str]) -> None:
        """Remember the overrides."""
        with self._changing():
            self._metadata_log.put_topic(dataclasses.replace(self._topic(topic_id), configs=dict(configs)))

    def topic_deleted(self, topic_id: uuid.UUID) -> None:
        """Forget the topic and remove its folders."""
        with self._changing():
            name = self._topic(topic_id).name
            self._metadata_log.delete_topic(topic_id)
            for logs in self._logs_of.values():
                self._delete(logs, [one for one in logs.stores if one.topic == name], topic_id)

    def _delete(self, logs: BrokerLogs, partitions: Sequence[Partition], topic_id: uuid.UUID) -> None:
        for partition in partitions:
            self._open.forget(logs.stores[partition])
        logs.delete(partitions, topic_id)

    def resource_configured(self, resource: ConfigResource, configs: Mapping[str, str]) -> None:
        """Remember the configurations."""
        with self._changing():
            self._metadata_log.put_configs(resource, configs)

    def producer_ids_reserved(self, end: int) -> None:
        """Remember that the producer ids before ``end`` are taken."""
        with self._changing():
            self._metadata_log.put_next_producer_id(end)

    def features_updated(self, features: FeatureLevels) -> None:
        """Remember the levels of the features."""
        with self._changing():
            self._metadata_log.put_features(features)

    def features(self) -> FeatureLevels:
        """The levels that were remembered."""
        return self._metadata_log.contents.features

    def recovered_topics(self) -> Sequence[RecoveredTopic]:
        """What was found at the start, once."""
        recovered, self._recovered = self._recovered, []
        return recovered

    def log_directory(self, broker: int) -> LogDirectory:
        """See StorageBackend; the sizes are -1 where the system does not tell."""
        return self._logs_of[broker].log_directory()

    def broker_ended(self, broker: int, *, in_order: bool, lost_disk: bool) -> None:
        """Remember whether it will have ended in order, and whether its empty logs are what is left of a lost disk."""
        (self._killed.discard if in_order else self._killed.add)(broker)
        before = self._metadata_log.contents.lost_disks
        after = before | {broker} if lost_disk else before - {broker}
        if after != before:
            try:
                self._metadata_log.put_lost_disks(after)
            except OSError as error:
                self.failed(error)

    def unclean_brokers(self) -> frozenset[int]:
        """Those whose directories were not closed in order."""
        return self._unclean

    def next_producer_id(self) -> int:
        """The first producer id that has never been handed out."""
        return self._metadata_log.contents.next_producer_id

    def _topic(self, topic_id: uuid.UUID) -> TopicEntry:
        return self._metadata_log.contents.topics[topic_id]

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        self.check()
        self.need_room()
        try:
            yield
        except OSError as error:
            raise self.failed(error) from error

    # --- what the partitions need: the face of a Keeper

    def check(self) -> None:
        """Raises BatchError if the disk has failed."""
        if self.failure is not None:
            raise BatchError(ErrorCode.KAFKA_STORAGE_ERROR, self.failure)

    def failed(self, error: OSError, *, undone: bool = False) -> BatchError:
        """The disk fails: take nothing more, and say so. Returns what to raise.

        If everything is ``undone`` and there were only no descriptors, the disk is as it was: that one request is refused,
        and the files of all logs are closed, so that the next one may have better luck.
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
        """Raises BatchError unless there are descriptors for a change of several steps, which could not be undone."""
        try:
            need_room(_ROOM)
        except OSError as error:
            raise self.failed(error, undone=True) from error

    def used(self, store: FileLogBackend) -> None:
        """``store`` has files open; those of another one may be closed for it."""
        self._open.used(store)

    def files_to_come(self) -> int:
        """How many more file descriptors the logs may need; a server leaves so many free."""
        return self._open.files_to_spare + _ROOM

    def submit(self, work: Callable[[], None]) -> "Future[None]":
        """Do ``work`` beside everything else."""
        return self._background.submit(work)

    def starts_changed(self, store: FileLogBackend) -> None:
        """Write down where a broker's logs start that do not start with a segment. Raises BatchError."""
        with self._changing():
            self._logs_with(store).write_starts()

    def end_moved_back(self, store: FileLogBackend) -> None:
        """Write down where a broker's logs start and end. Raises BatchError."""
        with self._changing():
            self._logs_with(store).write_checkpoints()

    def _logs_with(self, store: FileLogBackend) -> BrokerLogs:
        return next(logs for logs in self._logs_of.values() if logs.directory == store.folder.parent)

    # --- now and then, and at the end

    def checkpoint(self) -> None:
        """Write down up to where every log is on the disk, so that the next start need not look at it."""
        if self.failure is None:
            try:
                for logs in self._logs_of.values():
                    logs.write_checkpoints()
                self._short_of_descriptors = False
            except OSError as error:
                self.failed(error, undone=True)

    def close(self) -> None:
        """Flush everything, mark the shutdown as clean, and release the lock of the directory.

        After a failure, this one included, the files are left as they are, and ``failure`` says what it was.
        """
        try:
            if self.failure is None:
                for logs in self._logs_of.values():
                    logs.complete()
                self._background.close()
                for broker, logs in self._logs_of.items():
                    logs.write_checkpoints()
                    if broker not in self._killed:
                        replace(logs.directory / text_files.CLEAN_SHUTDOWN, text_files.clean_shutdown_marker())
        except OSError as error:
            self.failed(error)
        finally:
            self._background.close()
            for logs in self._logs_of.values():
                logs.close()
            self._metadata_log.close()
            self._release.close()


@contextlib.contextmanager
def _told(directory: Path) -> Iterator[None]:
    """Says of what goes wrong at a start in which directory it did."""
    try:
        yield
    except OSError as error:
        raise StorageError(f"cannot use the data directory {directory}: {_said(error)}") from error
    except (CheckpointError, BatchError) as problem:
        raise StorageError(f"cannot use the data directory {directory}: {problem}") from problem


def _said(error: OSError) -> str:
    """What the system says, and of which file."""
    said = error.strerror or str(error)
    return f"{said}: {error.filename}" if error.filename else said
