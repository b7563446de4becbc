"""The logs of one broker in its directory (``LogManager``): a folder for each partition, and the checkpoint files."""

import shutil
import uuid
from collections.abc import Collection, Iterable
from itertools import chain, count
from pathlib import Path

from groupcoord.broker.storage_backend import LogDirectory
from groupcoord.storage import log_dir_files
from groupcoord.storage.file_io import sync
from groupcoord.storage.file_log_backend import BackendHost, FileLogBackend
from groupcoord.storage.log_file_names import Partition, log_files

_LONGEST_NAME = 255
"""The maximum length of a directory name in bytes, in Kafka and in file systems."""


class BrokerLogs:
    """The ``stores`` in ``directory``; every method raises OSError.

    ``checkpointed`` are the partitions that have a line in a checkpoint.
    """

    def __init__(
        self, directory: Path, stores: dict[Partition, FileLogBackend], checkpointed: Iterable[Partition]
    ) -> None:
        self.directory = directory
        self.stores = stores
        self._checkpointed = set(checkpointed)

    def make_room(self, partitions: Collection[Partition], topic_id: uuid.UUID) -> None:
        """Remove leftovers of other topics with the names of these partitions: lines in checkpoints, and folders of unknown
        topics, which are renamed to ``-stray`` as by Kafka.
        """
        if not self._checkpointed.isdisjoint(partitions):
            self.write_checkpoints()
        folders = [self.directory / str(partition) for partition in partitions]
        strays = [folder for folder in folders if folder.is_dir() and log_files(folder)]
        for folder in strays:
            rename_to_stray(folder, topic_id)
        if strays:
            sync(self.directory)

    def create(self, partitions: Collection[Partition], topic_id: uuid.UUID, host: BackendHost) -> None:
        """Create the folders of new partitions."""
        new = {partition: FileLogBackend(self.directory / str(partition), host) for partition in partitions}
        self.stores.update(new)
        for store in new.values():
            store.create(topic_id)
        sync(self.directory)

    def delete(self, partitions: Iterable[Partition], topic_id: uuid.UUID) -> None:
        """Delete the folders of partitions; each is renamed first, so that a half deleted folder is never loaded as a log."""
        doomed = []
        for partition in partitions:
            store = self.stores.pop(partition)
            store.close()
            doomed.append(rename_to_delete(store.folder, topic_id))
        if doomed:
            sync(self.directory)
        for folder in doomed:
            shutil.rmtree(folder)

    def log_directory(self) -> LogDirectory:
        """The directory, and the size of its volume; -1 if the system does not provide it."""
        path = str(self.directory.absolute())
        try:
            volume = shutil.disk_usage(path)
        except OSError:
            return LogDirectory(path, -1, -1)
        return LogDirectory(path, volume.total, volume.free)

    def complete(self) -> None:
        """Flush all logs for a clean shutdown."""
        for store in self.stores.values():
            store.complete()

    def close(self) -> None:
        """Close the files without flushing."""
        for store in self.stores.values():
            store.close()

    def write_checkpoints(self) -> None:
        """Write the checkpoints: recovery points, high watermarks, cleaner offsets and log start offsets."""
        stores = self.stores
        points = {partition: store.recovery_point for partition, store in stores.items()}
        log_dir_files.write_offsets(self.directory / log_dir_files.RECOVERY_POINTS, points)
        high_watermarks = {partition: store.high_watermark for partition, store in stores.items()}
        log_dir_files.write_offsets(self.directory / log_dir_files.HIGH_WATERMARKS, high_watermarks)
        cleaned = {partition: store.cleaned_to for partition, store in stores.items() if store.cleaned_to}
        log_dir_files.write_offsets(self.directory / log_dir_files.CLEANED, cleaned)
        self.write_starts()
        self._checkpointed = set(stores)

    def write_starts(self) -> None:
        """Write the log start offsets that differ from the base offset of the first segment."""
        starts = {
            partition: store.log_start_offset
            for partition, store in self.stores.items()
            if store.log_start_offset > store.first_base_offset
        }
        log_dir_files.write_offsets(self.directory / log_dir_files.LOG_START_OFFSETS, starts)
        self._checkpointed.update(starts)


def rename_to_delete(folder: Path, topic_id: uuid.UUID) -> Path:
    """Rename a partition's folder to ``-delete``: it will be deleted even after a crash, and is never loaded again."""
    return folder.rename(_renamed(folder, f"{topic_id.hex}-delete"))


def rename_to_stray(folder: Path, topic_id: uuid.UUID) -> Path:
    """Rename to ``-stray`` a partition's folder that belongs to no topic; it is neither loaded nor deleted.

    Further ones are numbered. In Kafka each gets a random id.
    """
    names = (_renamed(folder, f"{topic_id.hex}{number}-stray") for number in chain([""], map("-{}".format, count(2))))
    return folder.rename(next(name for name in names if not name.exists()))


def _renamed(folder: Path, suffix: str) -> Path:
    """The folder's path with ``suffix``; a long topic name is cut.

    Source: ``LocalLog.logDirNameWithSuffixCappedLength``.
    """
    topic, _, number = folder.name.rpartition("-")
    end = f"-{number}.{suffix}"
    return folder.with_name(f"{topic[: _LONGEST_NAME - len(end)]}{end}")
