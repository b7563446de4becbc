"""Exports a source to segment files that Kafka's tools and brokers can read."""

import uuid
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from groupcoord.broker.leader_epoch_cache import LeaderEpochCache
from groupcoord.broker.producer_state_manager import ProducerStateManager
from groupcoord.broker.topic_config import LogConfig
from groupcoord.broker.topic_names import CONSUMER_OFFSETS
from groupcoord.offsets_log.compaction_preview import OFFSETS_SEGMENT_BYTES
from groupcoord.offsets_log.log_source import Batch, LogSource, SourceError, UnreadableData
from groupcoord.offsets_log.segment_dir_source import unreadable
from groupcoord.protocol.batches.record_batch import (
    BatchError,
    BatchHeader,
    delete_horizon_ms,
    keep_records,
    read_header,
    records_of,
)
from groupcoord.protocol.batches.records import InvalidRecordsError, Record
from groupcoord.protocol.coordinator_records.record_formatting import RecordError, group_of, parse_key
from groupcoord.storage.file_io import replace
from groupcoord.storage.file_segment import FileSegment, create_segment
from groupcoord.storage.log_dir_files import partition_metadata, write_epochs
from groupcoord.storage.log_file_names import LEADER_EPOCHS, PARTITION_METADATA


class ExportedPartition(NamedTuple):
    """The result for one partition."""

    partition: int
    folder: Path
    batches: int
    records: int
    bytes: int


def export_segments(
    source: LogSource,
    directory: Path,
    *,
    groups: Collection[str] = (),
    partitions: Collection[int] = (),
    topic_id: uuid.UUID | None = None,
    report: Callable[[UnreadableData], None],
) -> list[ExportedPartition]:
    """Write each of ``partitions`` (default: all) of ``source`` to its own folder in ``directory``.

    Batches are copied byte for byte, and the indexes rebuilt. With ``groups`` only the records of these groups are written, at
    their offsets, and partitions without any are left out. ``topic_id`` goes into ``partition.metadata``; by default that of
    the source, if known. ``report`` is called with unreadable data, which is skipped. Raises SourceError.
    """
    identity = source.topic_id if topic_id is None else topic_id
    wanted = [number for number in source.partitions if not partitions or number in partitions]
    folders = {number: directory / f"{CONSUMER_OFFSETS}-{number}" for number in wanted}
    for folder in folders.values():
        if folder.exists():
            raise SourceError(f"{folder} is there already: export to a directory of its own")
    written = []
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for number, folder in folders.items():
            batches = _wanted(source.read(number), groups, report)
            done = _write(number, folder, batches, identity, report, even_if_empty=not groups)
            if done is not None:
                written.append(done)
    except OSError as error:
        raise unreadable(directory, error) from error
    return written


def _wanted(
    found: Iterator[Batch | UnreadableData], groups: Collection[str], report: Callable[[UnreadableData], None]
) -> Iterator[Batch]:
    """The batches of ``groups``, and the markers of their transactions."""
    open_transactions: set[int] = set()
    for each in found:
        if isinstance(each, UnreadableData):
            report(each)
        elif not groups:
            yield each
        elif each.header.control:
            if each.header.producer_id in open_transactions:
                open_transactions.discard(each.header.producer_id)
                yield each
        else:
            part = _part_of(each, groups, report)
            if part is not None:
                if part.header.transactional:
                    open_transactions.add(part.header.producer_id)
                yield part


def _part_of(batch: Batch, groups: Collection[str], report: Callable[[UnreadableData], None]) -> Batch | None:
    header = batch.header
    try:
        records = [record for record in records_of(batch.data, header) if _is_of(record, groups)]
    except (BatchError, InvalidRecordsError, RecordError) as problem:
        report(
            UnreadableData(batch.partition, header.base_offset, f"the records of the batch cannot be read: {problem}")
        )
        return None
    if not records:
        return None
    if len(records) == header.record_count:
        return batch
    data = keep_records(header, records, delete_horizon_ms(header))
    return batch._replace(header=read_header(data), data=data)


def _is_of(record: Record, groups: Collection[str]) -> bool:
    return group_of(parse_key(record.key)) in groups


def _write(
    partition: int,
    folder: Path,
    batches: Iterator[Batch],
    topic_id: uuid.UUID | None,
    report: Callable[[UnreadableData], None],
    *,
    even_if_empty: bool,
) -> ExportedPartition | None:
    segment: FileSegment | None = None
    of_source = -1
    count = records = size = 0
    epochs = LeaderEpochCache(())
    producers = ProducerStateManager(folder.name)
    for batch in batches:
        header = batch.header
        if segment is None or of_source != batch.segment or not _fits(segment, header):
            if segment is not None:
                segment.complete()
            base_offset = batch.segment if segment is None else header.base_offset
            segment, of_source = _new_segment(folder, base_offset), batch.segment
        segment.append(batch.data, header, 0)
        epochs.assign(header.leader_epoch, header.base_offset)
        try:
            aborted = producers.replay(header, batch.data)
        except (BatchError, InvalidRecordsError) as problem:
            reason = f"the end of a transaction cannot be read: {problem}"
            report(UnreadableData(partition, header.base_offset, reason))
        else:
            if aborted is not None:
                segment.append_aborted(aborted)
        count, records, size = count + 1, records + header.record_count, size + header.size
    if segment is None:
        if not even_if_empty:
            return None
        segment = _new_segment(folder, 0)
    segment.complete()
    write_epochs(folder / LEADER_EPOCHS, epochs.entries)
    if topic_id is not None:
        replace(folder / PARTITION_METADATA, partition_metadata(topic_id), synced=False)
    return ExportedPartition(partition, folder, count, records, size)


def _new_segment(folder: Path, base_offset: int) -> FileSegment:
    folder.mkdir(exist_ok=True)
    create_segment(folder, base_offset)
    return FileSegment(folder, base_offset, LogConfig(), 0)


def _fits(segment: FileSegment, header: BatchHeader) -> bool:
    return segment.size + header.size <= OFFSETS_SEGMENT_BYTES and not segment.is_full_for(header.last_offset)
