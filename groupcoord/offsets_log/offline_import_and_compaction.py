"""Works on a data directory of groupcoord without a running server: imports segment files of a cluster, and compacts."""

import contextlib
import shutil
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from groupcoord.broker.broker import Broker
from groupcoord.broker.events import LogCleaned, LogNotCleaned
from groupcoord.broker.topic_names import CONSUMER_OFFSETS
from groupcoord.config.broker_config import BrokerConfig
from groupcoord.core.effects import EmitEvent
from groupcoord.offsets_log.entries import LogEntry, entries
from groupcoord.offsets_log.log_source import SourceError, UnreadableData
from groupcoord.offsets_log.segment_dir_source import SegmentDirSource, unreadable
from groupcoord.storage.adopted_folder_checks import misplaced
from groupcoord.storage.cluster_metadata_file import FILE_NAME
from groupcoord.storage.file_io import DirectoryLock, StorageError
from groupcoord.storage.file_storage_backend import DataDirectory
from groupcoord.storage.log_file_names import (
    LEADER_EPOCHS,
    LOG,
    PARTITION_METADATA,
    PRODUCER_SNAPSHOT,
    TRANSACTION_INDEX,
    segment_file,
)


class ImportResult(NamedTuple):
    """What was imported. ``findings`` are descriptions of irregularities."""

    partitions: list[int]
    groups: int
    records: int
    faults: list[UnreadableData]
    findings: list[str]


def import_segments(
    folders: Path, directory: Path, config: BrokerConfig, *, new_uuid: Callable[[], uuid.UUID], now_ms: int
) -> ImportResult:
    """Create the data directory ``directory`` from copies of the folders ``__consumer_offsets-N`` in ``folders``.

    The directory must be empty or not exist. Indexes are rebuilt; the log of a partition is truncated at the first corrupt
    batch, as at the start of any broker. Raises SourceError, and restores the directory then.
    """
    source = SegmentDirSource(folders)
    counted = _count(source, config.offsets_topic_num_partitions)
    with _new_directory(directory):
        for number, folder in source.folders.items():
            _copy(folder, directory / f"{CONSUMER_OFFSETS}-{number}")
        with _in_use(directory, config, new_uuid, now_ms) as (storage, _):
            findings = storage.findings
    return counted._replace(findings=findings)


def compact(
    directory: Path,
    config: BrokerConfig,
    *,
    new_uuid: Callable[[], uuid.UUID],
    now_ms: int,
    report: Callable[[str], None],
) -> list[LogCleaned | LogNotCleaned]:
    """Compact every partition of ``__consumer_offsets`` in a data directory; returns what was cleaned, or why not.

    ``report`` is called with descriptions of irregularities found on opening. Raises SourceError, and StorageError if a server
    uses the directory.
    """
    if not (directory / FILE_NAME).is_file():
        raise SourceError(f"{directory} is not a data directory of groupcoord: it has no {FILE_NAME}")
    done: list[LogCleaned | LogNotCleaned] = []
    with _in_use(directory, config, new_uuid, now_ms) as (storage, broker):
        for finding in storage.findings:
            report(finding)
        topic = broker.topics.get(CONSUMER_OFFSETS)
        for number in range(0 if topic is None else len(topic.partitions)):
            effects = broker.compact(CONSUMER_OFFSETS, number, now_ms)
            notes = [each.event for each in effects if isinstance(each, EmitEvent)]
            done += [each for each in notes if isinstance(each, LogCleaned | LogNotCleaned)]
    return done


@contextlib.contextmanager
def _in_use(
    directory: Path, config: BrokerConfig, new_uuid: Callable[[], uuid.UUID], now_ms: int
) -> Iterator[tuple[DataDirectory, Broker]]:
    """Open the directory, and close it, as a server does."""
    storage = DataDirectory(directory, config, new_uuid=new_uuid, now_ms=now_ms)
    try:
        yield (
            storage,
            Broker(storage.config, new_topic_id=new_uuid, new_session_id=lambda: 1, now_ms=now_ms, storage=storage),
        )
    finally:
        storage.close()
    if storage.failure is not None:
        raise SourceError(storage.failure)


def _count(source: SegmentDirSource, partitions: int) -> ImportResult:
    """Count the contents of ``source``, and check that each group is in its partition. Raises SourceError."""
    groups: set[tuple[str, int]] = set()
    faults: list[UnreadableData] = []
    records = 0
    for number in source.partitions:
        for found in source.read(number):
            if isinstance(found, UnreadableData):
                faults.append(found)
                continue
            for entry in entries(found):
                if isinstance(entry, LogEntry):
                    records += 1
                    if entry.group is not None:
                        groups.add((entry.group, number))
                else:
                    faults.append(entry)
    problem = misplaced(groups, max(source.partitions), partitions)
    if problem is not None:
        raise SourceError(problem)
    return ImportResult(list(source.partitions), len(groups), records, faults, [])


@contextlib.contextmanager
def _new_directory(directory: Path) -> Iterator[None]:
    """A context manager with an empty directory, which is restored if the block fails."""
    try:
        is_new = not directory.exists()
        directory.mkdir(parents=True, exist_ok=True)
        if (directory / ".lock").exists():
            DirectoryLock(directory).release()  # raises if the directory is in use
        if any(directory.iterdir()):
            raise SourceError(f"{directory} is not empty: import into a directory of its own")
    except (OSError, StorageError) as error:
        raise unreadable(directory, error) if isinstance(error, OSError) else SourceError(str(error)) from error
    try:
        yield
    except BaseException as error:
        for path in directory.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        if is_new:
            directory.rmdir()
        if isinstance(error, OSError):
            raise unreadable(directory, error) from error
        raise


def _copy(folder: Path, target: Path) -> None:
    """Copy the log files, and the files that cannot be rebuilt from them. Raises OSError."""
    target.mkdir()
    for path in sorted(folder.iterdir()):
        found = segment_file(path.name)
        is_wanted = found is not None and found.kind in {LOG, TRANSACTION_INDEX, PRODUCER_SNAPSHOT} and not found.state
        if is_wanted or path.name in {LEADER_EPOCHS, PARTITION_METADATA}:
            shutil.copyfile(path, target / path.name)
