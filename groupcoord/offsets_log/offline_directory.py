"""A data directory of groupcoord, while no server uses it: made from the files of a cluster, and compacted on request."""

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
from groupcoord.offsets_log.source import SegmentDirSource, SourceError, UnreadableData, unreadable
from groupcoord.storage.adopted_folder_checks import misplaced
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
from groupcoord.storage.metadata_log import FILE_NAME


class ImportResult(NamedTuple):
    """What came into the directory. ``findings`` says, in words, what was not as it should be."""

    partitions: list[int]
    groups: int
    records: int
    faults: list[UnreadableData]
    findings: list[str]


def import_segments(
    folders: Path, directory: Path, config: BrokerConfig, *, new_uuid: Callable[[], uuid.UUID], now_ms: int
) -> ImportResult:
    """Make the data directory ``directory`` of copies of the folders ``__consumer_offsets-N`` in ``folders``.

    It must be empty or not there yet. The indexes are made anew; the log of a partition ends where something is wrong with it,
    as at the start of any broker. Raises SourceError; nothing is left of the directory then that was not there before.
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
    """Compact every partition of ``__consumer_offsets`` in a data directory; what was done, where anything was.

    ``report`` is told, in words, of what was not as it should be when the directory was opened. Raises SourceError, and
    StorageError when a server uses the directory.
    """
    if not (directory / FILE_NAME).is_file():
        raise SourceError(f"{directory} is no data directory of groupcoord: it has no {FILE_NAME}")
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
    """The directory, opened and closed as a server does it."""
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
    """What is in ``source``, and whether each group is where it belongs. Raises SourceError."""
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
    """An empty directory; if what is done with it fails, it is as before."""
    try:
        is_new = not directory.exists()
        directory.mkdir(parents=True, exist_ok=True)
        if (directory / ".lock").exists():
            DirectoryLock(directory).release()  # says so if it is in use
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
    """Copy the log, and what cannot be made anew from it. Raises OSError."""
    target.mkdir()
    for path in sorted(folder.iterdir()):
        found = segment_file(path.name)
        is_wanted = found is not None and found.kind in {LOG, TRANSACTION_INDEX, PRODUCER_SNAPSHOT} and not found.state
        if is_wanted or path.name in {LEADER_EPOCHS, PARTITION_METADATA}:
            shutil.copyfile(path, target / path.name)
