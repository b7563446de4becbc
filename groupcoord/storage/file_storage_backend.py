"""A data directory: the storage of a node that outlives the process. Every file in it is Kafka's but ``groupcoord-metadata``.

If the disk fails, nothing more is taken: the last answers say KAFKA_STORAGE_ERROR, and the server is told to end, as Kafka does
when its only log directory fails. What had been acknowledged is found again at the next start. Source: ``LogManager``.
"""

import contextlib
import dataclasses
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path

from groupcoord.broker.storage_backend import LogBackend, LogDirectory, RecoveredTopic, StorageBackend
from groupcoord.config.broker_config import BrokerConfig, ConfigResource
from groupcoord.config.features import FeatureLevels
from groupcoord.protocol.batches.record_batch import BatchError
from groupcoord.protocol.errors import ErrorCode
from groupcoord.storage import text_files
from groupcoord.storage.directory_loader import DirectoryLoader, rename_to_delete
from groupcoord.storage.file_io import (
    BackgroundSync,
    DirectoryLock,
    OpenFiles,
    StorageError,
    is_shortage,
    make_directory,
    need_room,
    replace,
    sync,
)
from groupcoord.storage.file_log_backend import FileLogBackend
from groupcoord.storage.log_file_names import Partition, log_files
from groupcoord.storage.metadata_log import TopicEntry
from groupcoord.storage.text_files import CheckpointError

_ROOM = 8
"""A change has no more files open at once than this: those of a segment that is written, a folder, and what is flushed beside
it."""


class DataDirectory(StorageBackend):
    """The data directory ``directory``, which is made if there is none, in use until ``close``. Raises StorageError.

    ``config`` is how the server was started; ``self.config`` is that with what was changed while it ran, in an earlier life.
    ``new_uuid`` is where ids come from, ``now_ms`` the time. ``findings`` says, in words, what was not as it should be.
    ``on_failure`` is called, once, if the disk fails, which ``failure`` then describes. ``on_shortage`` is told in words when
    there are no descriptors for files; that is no failure: what cannot be done is refused, and tried again by who wants it.
    """

    in_memory = False

    def __init__(
        self, directory: Path, config: BrokerConfig, *, new_uuid: Callable[[], uuid.UUID], now_ms: int
    ) -> None:
        self.directory = directory
        self.failure: str | None = None
        self.on_failure: Callable[[], None] = lambda: None
        self.on_shortage: Callable[[str], None] = lambda _: None
        self._short_of_descriptors = False
        self._open = OpenFiles()
        self._background = BackgroundSync()
        with contextlib.ExitStack() as undo, _told(directory):
            make_directory(directory)
            lock = DirectoryLock(directory)
            undo.callback(lock.release)
            start = DirectoryLoader(directory, config, new_uuid=new_uuid, now_ms=now_ms)
            self._stores = start.stores
            self._recovered = start.recover(self)
            self._checkpointed = start.checkpointed
            self._metadata_log = start.metadata_log
            self._metadata_log.start_anew()
            self.config = start.config
            self.findings = start.findings
            if start.has_shortened_logs:
                self._write_checkpoints()
            self._release = undo.pop_all()

    # --- topics and configurations: the face of a StorageBackend

    def log(self, topic: str, partition: int) -> LogBackend:
        """The files of a partition. Raises KeyError if it has not been created."""
        return self._stores[Partition(topic, partition)]

    def topic_created(
        self, name: str, topic_id: uuid.UUID, partitions: int, configs: Mapping[str, str], created_ms: int
    ) -> None:
        """Remember the topic, and make the folders of its partitions."""
        with self._changing():
            topic = TopicEntry(
                name=name, topic_id=topic_id, partitions=partitions, configs=dict(configs), created_ms=created_ms
            )
            self._make_room(topic, 0)
            self._metadata_log.put_topic(topic)
            self._create_stores(topic, 0)

    def partitions_added(self, topic_id: uuid.UUID, partitions: int) -> None:
        """Remember how many there are now, and make the folders."""
        with self._changing():
            before = self._topic(topic_id)
            topic = dataclasses.replace(before, partitions=partitions)
            self._make_room(topic, before.partitions)
            self._metadata_log.put_topic(topic)
            self._create_stores(topic, before.partitions)

    def topic_configured(self, topic_id: uuid.UUID, configs: Mapping[str, str]) -> None:
        """Remember the overrides."""
        with self._changing():
            self._metadata_log.put_topic(dataclasses.replace(self._topic(topic_id), configs=dict(configs)))

    def topic_deleted(self, topic_id: uuid.UUID) -> None:
        """Forget the topic and remove its folders, each renamed first, so that no half of one is ever taken for a log."""
        with self._changing():
            topic = self._topic(topic_id)
            self._metadata_log.delete_topic(topic_id)
            doomed = []
            for index in range(topic.partitions):
                store = self._stores.pop(Partition(topic.name, index))
                self._open.forget(store)
                store.close()
                doomed.append(rename_to_delete(store.folder, topic_id))
            sync(self.directory)
            for folder in doomed:
                shutil.rmtree(folder)

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

    def log_directory(self) -> LogDirectory:
        """See StorageBackend; the sizes are -1 where the system does not tell."""
        path = str(self.directory.absolute())
        try:
            volume = shutil.disk_usage(path)
        except OSError:
            return LogDirectory(path, -1, -1)
        return LogDirectory(path, volume.total, volume.free)

    def next_producer_id(self) -> int:
        """The first producer id that has never been handed out."""
        return self._metadata_log.contents.next_producer_id

    def _topic(self, topic_id: uuid.UUID) -> TopicEntry:
        return self._metadata_log.contents.topics[topic_id]

    def _make_room(self, topic: TopicEntry, first: int) -> None:
        """What is left of others by the names of these partitions is not theirs: lines in checkpoints, and a folder of which
        a start did not know whose it is, which gets the name that Kafka gives to strays.
        """
        partitions = [Partition(topic.name, index) for index in range(first, topic.partitions)]
        if not self._checkpointed.isdisjoint(partitions):
            self._write_checkpoints()
        strays = [folder for folder in map(self._folder, partitions) if folder.is_dir() and log_files(folder)]
        for folder in strays:
            folder.rename(folder.with_name(f"{folder.name}.{topic.topic_id.hex}-stray"))
        if strays:
            sync(self.directory)

    def _folder(self, partition: Partition) -> Path:
        return self.directory / str(partition)

    def _create_stores(self, topic: TopicEntry, first: int) -> None:
        for index in range(first, topic.partitions):
            partition = Partition(topic.name, index)
            store = self._stores[partition] = FileLogBackend(self._folder(partition), self)
            store.create(topic.topic_id)
        sync(self.directory)

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

    def starts_changed(self) -> None:
        """Write down where logs start that do not start with a segment. Raises BatchError."""
        with self._changing():
            self._write_starts()

    # --- now and then, and at the end

    def checkpoint(self) -> None:
        """Write down up to where every log is on the disk, so that the next start need not look at it."""
        if self.failure is None:
            try:
                self._write_checkpoints()
                self._short_of_descriptors = False
            except OSError as error:
                self.failed(error, undone=True)

    def close(self) -> None:
        """Flush everything, mark the shutdown as clean, and release the lock of the directory.

        After a failure, this one included, the files are left as they are, and ``failure`` says what it was.
        """
        try:
            if self.failure is None:
                for store in self._stores.values():
                    store.complete()
                self._background.close()
                self._write_checkpoints()
                replace(self.directory / text_files.CLEAN_SHUTDOWN, text_files.clean_shutdown_marker())
        except OSError as error:
            self.failed(error)
        finally:
            self._background.close()
            for store in self._stores.values():
                store.close()
            self._metadata_log.close()
            self._release.close()

    def _write_checkpoints(self) -> None:
        points = {partition: store.recovery_point for partition, store in self._stores.items()}
        text_files.write_offsets(self.directory / text_files.RECOVERY_POINTS, points)
        ends = {partition: store.log_end_offset for partition, store in self._stores.items()}
        text_files.write_offsets(self.directory / text_files.HIGH_WATERMARKS, ends)
        cleaned = {partition: store.cleaned_to for partition, store in self._stores.items() if store.cleaned_to}
        text_files.write_offsets(self.directory / text_files.CLEANED, cleaned)
        self._write_starts()
        self._checkpointed = set(self._stores)

    def _write_starts(self) -> None:
        starts = {
            partition: store.log_start_offset
            for partition, store in self._stores.items()
            if store.log_start_offset > store.first_base_offset
        }
        text_files.write_offsets(self.directory / text_files.LOG_START_OFFSETS, starts)
        self._checkpointed.update(starts)


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
