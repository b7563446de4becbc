"""The logs that one broker has in its directory: a folder for each partition, and the checkpoints beside them.

Source: ``LogManager``.
"""

import shutil
import uuid
from collections.abc import Collection, Iterable
from itertools import chain, count
from pathlib import Path

from groupcoord.broker.storage_backend import LogDirectory
from groupcoord.storage import text_files
from groupcoord.storage.file_io import sync
from groupcoord.storage.file_log_backend import BackendHost, FileLogBackend
from groupcoord.storage.log_file_names import Partition, log_files

_LONGEST_NAME = 255
"""A name in a directory has no more bytes, with Kafka and with file systems."""


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
        """What is left of others by the names of these partitions is not theirs: lines in checkpoints, and a folder of which
        a start did not know whose it is, which gets the name that Kafka gives to strays.
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
        """Make the folders of partitions that are new here."""
        new = {partition: FileLogBackend(self.directory / str(partition), host) for partition in partitions}
        self.stores.update(new)
        for store in new.values():
            store.create(topic_id)
        sync(self.directory)

    def delete(self, partitions: Iterable[Partition], topic_id: uuid.UUID) -> None:
        """Remove the folders of partitions, each renamed first, so that no half of one is ever taken for a log."""
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
        """The directory, and the size of its volume; -1 where the system does not tell."""
        path = str(self.directory.absolute())
        try:
            volume = shutil.disk_usage(path)
        except OSError:
            return LogDirectory(path, -1, -1)
        return LogDirectory(path, volume.total, volume.free)

    def complete(self) -> None:
        """The server ends: have everything on the disk."""
        for store in self.stores.values():
            store.complete()

    def close(self) -> None:
        """Close the files as they are."""
        for store in self.stores.values():
            store.close()

    def write_checkpoints(self) -> None:
        """Write down up to where each log is on the disk, may be read, has been compacted, and where it starts."""
        stores = self.stores
        points = {partition: store.recovery_point for partition, store in stores.items()}
        text_files.write_offsets(self.directory / text_files.RECOVERY_POINTS, points)
        high_watermarks = {partition: store.high_watermark for partition, store in stores.items()}
        text_files.write_offsets(self.directory / text_files.HIGH_WATERMARKS, high_watermarks)
        cleaned = {partition: store.cleaned_to for partition, store in stores.items() if store.cleaned_to}
        text_files.write_offsets(self.directory / text_files.CLEANED, cleaned)
        self.write_starts()
        self._checkpointed = set(stores)

    def write_starts(self) -> None:
        """Write down where logs start that do not start with a segment."""
        starts = {
            partition: store.log_start_offset
            for partition, store in self.stores.items()
            if store.log_start_offset > store.first_base_offset
        }
        text_files.write_offsets(self.directory / text_files.LOG_START_OFFSETS, starts)
        self._checkpointed.update(starts)


def rename_to_delete(folder: Path, topic_id: uuid.UUID) -> Path:
    """Rename the folder of a partition so that it will be deleted even after a crash, and is never loaded as a log again."""
    return folder.rename(_renamed(folder, f"{topic_id.hex}-delete"))


def rename_to_stray(folder: Path, topic_id: uuid.UUID) -> Path:
    """Rename the folder of a partition that is not the one of that name any more; nobody loads or deletes it.

    If there is one already, it is the second one, and so on. In Kafka each has an id by chance.
    """
    names = (_renamed(folder, f"{topic_id.hex}{number}-stray") for number in chain([""], map("-{}".format, count(2))))
    return folder.rename(next(name for name in names if not name.exists()))


def _renamed(folder: Path, suffix: str) -> Path:
    """The folder of a partition with ``suffix``; of a topic with a long name, as much of it as fits.

    Source: ``LocalLog.logDirNameWithSuffixCappedLength``.
    """
    topic, _, number = folder.name.rpartition("-")
    end = f"-{number}.{suffix}"
    return folder.with_name(f"{topic[: _LONGEST_NAME - len(end)]}{end}")
