"""SegmentDirSource: reads the batches of ``__consumer_offsets`` from segment files in a log directory of a broker.

It can also read ``__transaction_state``. The files may be read while their broker runs; the last batch may then be incomplete.
"""

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

from groupcoord.broker.topic_names import CONSUMER_OFFSETS
from groupcoord.offsets_log.log_source import Batch, SourceError, UnreadableData
from groupcoord.storage.log_dir_files import CheckpointError, read_topic_id
from groupcoord.storage.log_file_names import PARTITION_METADATA, log_files, partition_folder
from groupcoord.storage.log_file_reader import CorruptBatchError, checked_batches


class SegmentDirSource:
    """Reads the folders ``__consumer_offsets-N`` in ``path``, or ``path`` itself if it is such a folder. Raises SourceError."""

    def __init__(self, path: Path, topic: str = CONSUMER_OFFSETS) -> None:
        self.topic = topic
        try:
            self.folders = _folders(path, topic)
            self.topic_id = self._topic_id()
        except CheckpointError as problem:
            raise SourceError(str(problem)) from problem
        except OSError as error:
            raise unreadable(path, error) from error
        self.partitions = sorted(self.folders)

    def _topic_id(self) -> uuid.UUID | None:
        ids = {read_topic_id(folder / PARTITION_METADATA) for folder in self.folders.values()} - {None}
        if len(ids) > 1:
            raise SourceError(f"the folders {_names(self.folders)} are not of one topic: their ids differ")
        return ids.pop() if ids else None

    def read(self, partition: int) -> Iterator[Batch | UnreadableData]:
        """The batches in the segment files of ``partition``."""
        try:
            for path in log_files(self.folders[partition]):
                yield from _read(self.topic, partition, path)
        except OSError as error:
            raise unreadable(self.folders[partition], error) from error


def _folders(path: Path, topic: str) -> dict[int, Path]:
    if not path.exists():
        raise SourceError(f"there is no directory {path}")
    if not path.is_dir():
        raise SourceError(f"{path} is not a directory; the folder that it is in can be given")
    own = partition_folder(path.resolve().name)
    if own is not None and own.topic == topic:
        found = {own.number: path}
    else:
        parts = {child: partition_folder(child.name) for child in path.iterdir() if child.is_dir()}
        found = {part.number: child for child, part in parts.items() if part and part.topic == topic}
    if not found:
        what = "log files, but its name does not say of which partition" if log_files(path) else "no such folder in it"
        raise SourceError(f"{path} is not a folder {topic}-N, and there is {what}")
    empty = {number: folder for number, folder in found.items() if not log_files(folder)}
    if empty:
        raise SourceError(f"no segment is in {_names(empty)}: there is no file like 00000000000000000000.log")
    return found


def _names(folders: dict[int, Path]) -> str:
    return ", ".join(str(folders[number]) for number in sorted(folders))


def _read(topic: str, partition: int, path: Path) -> Iterator[Batch | UnreadableData]:
    """The batches of a file. Reading continues after a corrupt batch if its size is known."""
    segment = int(path.name.split(".", 1)[0])
    position, expected = 0, segment
    while True:
        try:
            for stored in checked_batches(path, position, expected):
                yield Batch(partition, segment, stored.header, bytes(stored.data), topic)
            return
        except CorruptBatchError as fault:
            yield UnreadableData(partition, fault.offset, fault.reason, f"{path} at byte {fault.position}", topic)
            if fault.torn or fault.size is None:
                return
            position, expected = fault.position + fault.size, fault.offset


def unreadable(path: Path, error: OSError) -> SourceError:
    """The SourceError for an error of the operating system."""
    return SourceError(f"cannot use {error.filename or path}: {error.strerror or os.strerror(error.errno or 0)}")
