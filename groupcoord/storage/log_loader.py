"""Loads the log of one partition at the start of a server (``LogLoader``), and repairs it.

It completes or reverts interrupted changes, truncates an incomplete batch at the end, rebuilds missing or wrong indexes, and
reads leader epochs and the state of producers.

Flushed segments are checked lightly, unflushed ones fully. After a clean shutdown all segments count as flushed; after a kill,
those before the recovery point. In a flushed segment only the batches after the last index entry are read, and their checksums
are verified only in the last segment; if one is invalid, every batch of the segment is checked. Unflushed batches are all
checked. Kafka checks nothing after a clean shutdown, and finds damage only when it reads the end of the log; after a kill it
checks the whole segment of the recovery point and truncates at the first invalid batch, so all valid batches behind it are
lost, too.

The state of producers comes from the latest readable snapshot and a replay of the batches and markers after it. The replay also
checks that each aborted transaction is in the transaction index of the segment with its marker; otherwise read_committed
consumers would see aborted records. Therefore the replay starts before anything that may be wrong: before what was unflushed at
a kill, and before a damaged index, or a missing one in a log with transactions. Kafka rebuilds the index for unflushed segments
and for unreadable indexes; it does not notice that one is missing.

Source: ``LogLoader``, ``LogSegment.recover``, ``UnifiedLog.rebuildProducerState``, ``TransactionIndex.sanityCheck``.
"""

import itertools
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from groupcoord.broker.leader_epoch_cache import EpochEntry, LeaderEpochCache
from groupcoord.broker.producer_state_manager import NO_EPOCH, AbortedTransaction, ProducerStateManager
from groupcoord.broker.topic_config import LogConfig
from groupcoord.core.transaction_verification_types import TransactionMarker
from groupcoord.protocol.batches.record_batch import (
    HEADER_BYTES,
    INT32_MAX,
    BatchError,
    BatchHeader,
    checksum_matches,
    read_header,
)
from groupcoord.protocol.batches.records import InvalidRecordsError
from groupcoord.storage import log_dir_files, log_file_names, producer_snapshot
from groupcoord.storage.file_io import StorageError, create, opened, read_at, replace, sync, write_at
from groupcoord.storage.file_segment import NO_OFFSET, FileSegment, create_segment, delete_segment, lost_or_wrong
from groupcoord.storage.log_file_reader import CorruptBatchError
from groupcoord.storage.producer_snapshot import SnapshotError
from groupcoord.storage.transaction_index import TransactionIndexError, has_transactions

_COPY_BYTES = 1 << 20


class LoadedLog(NamedTuple):
    """The loaded contents of a partition's folder."""

    segments: list[FileSegment]
    log_start_offset: int
    log_end_offset: int
    recovery_point: int
    producers: ProducerStateManager
    epochs: LeaderEpochCache
    leader_epoch: int  # the last known one, in which nothing may have been written


class LogLoader:
    """Loads the log in ``folder``. Times are milliseconds.

    ``clean``: the previous server shut down cleanly. ``recovery_point`` and ``log_start_offset`` are those of the checkpoints.
    ``has_gaps``: compaction may have left gaps between the offsets. ``report`` is called with a text about everything that was
    damaged or missing.
    """

    def __init__(
        self,
        folder: Path,
        settings: LogConfig,
        *,
        clean: bool,
        recovery_point: int,
        log_start_offset: int,
        now_ms: int,
        has_gaps: bool = False,
        report: Callable[[str], None],
    ) -> None:
        self._folder = folder
        self._settings = settings
        self._clean = clean
        self._recovery_point = recovery_point
        self._log_start_offset = log_start_offset
        self._now_ms = now_ms
        self._has_gaps = has_gaps or settings.compact
        self._report = report
        self._suspects: set[Path] = set()

    def run(self) -> LoadedLog:
        """Repair and load the log. Raises OSError, and StorageError for damage that only an operator can repair."""
        self._check_kinds()
        self._finish_changes()
        self._remove_orphans()
        saved = self._epochs()
        while True:
            segments = self._load()
            end = self._end_of(segments)
            if end < self._log_start_offset:
                segments, end = self._moved_on(segments, end)
            if not segments:
                create_segment(self._folder, end)
                segments = [FileSegment(self._folder, end, self._settings, self._now_ms)]
            epochs = LeaderEpochCache(saved)
            rebuild = ProducerStateRebuild(
                self._folder, clean=self._clean, recovery_point=self._recovery_point, report=self._report
            )
            try:
                producers = rebuild.run(segments, end, epochs)
                break
            except CorruptBatchError as fault:  # in a segment that was taken to be valid
                self._suspects.add(fault.path)
        self._say_what_is_missing(segments, end)
        segments[-1].behind = end
        start = max(self._log_start_offset, segments[0].base_offset)
        if start == end:
            producers = rebuild.without_records()
        leader_epoch = epochs.latest
        epochs.truncate_from(end)
        if epochs.entries != saved:
            # Not flushed, as each write of them: they can be rebuilt.
            log_dir_files.write_epochs(self._folder / log_file_names.LEADER_EPOCHS, epochs.entries, synced=False)
        recovery_point = end if self._clean else min(self._recovery_point, end)
        return LoadedLog(segments, start, end, recovery_point, producers, epochs, leader_epoch)

    def _end_of(self, segments: list[FileSegment]) -> int:
        return segments[-1].next_offset() if segments else max(self._log_start_offset, 0)

    def _moved_on(self, segments: list[FileSegment], end: int) -> tuple[list[FileSegment], int]:
        """The checkpointed log start offset is greater than the log end offset: find out which of the two is wrong."""
        start = self._log_start_offset
        what = f"{self._folder}: the log ends at offset {end}, before the offset {start} up to which its records were deleted"
        if self._clean and end == self._recovery_point:
            self._report(f"{what}; it is as it was flushed, so that it keeps all its records")
            self._log_start_offset = 0
            return segments, end
        self._report(f"{what}; it goes on there")
        for segment in segments:
            if segment.size:
                self._set_aside(segment)
            delete_segment(self._folder, segment.base_offset)
        return [], start

    def _say_what_is_missing(self, segments: list[FileSegment], end: int) -> None:
        """Report records that are missing: the checkpoint or the base offsets of segments show that they were in the log."""
        for segment, following in itertools.pairwise(segments):
            behind = segment.next_offset()
            if behind < following.base_offset and not self._has_gaps:
                self._report(
                    f"{segment.path} ends before offset {behind}, and {following.path.name} follows: "
                    f"the records from offset {behind} to {following.base_offset - 1} are lost"
                )
        point = self._recovery_point
        if end < point:
            self._report(
                f"{self._folder}: the log ends before offset {end}, and had been flushed up to offset {point - 1}: the "
                f"records from offset {end} to {point - 1} are lost, and their offsets are given anew"
            )
        elif self._clean and 0 < point < end:
            self._report(
                f"{self._folder}: the log ends before offset {end}, and when the server ended it did before offset {point}: "
                "somebody has put records there, or has changed the checkpoint"
            )

    def _check_kinds(self) -> None:
        """Raises StorageError if there is a directory in place of a file."""
        for path in [*self._files(), self._folder / log_file_names.LEADER_EPOCHS]:
            if path.is_dir():
                raise StorageError(f"{path} is a folder, and should be a file. Nothing was changed; move it away.")

    # --- interrupted changes

    def _files(self) -> dict[Path, log_file_names.SegmentFile]:
        return {
            path: found
            for path in sorted(self._folder.iterdir())
            if (found := log_file_names.segment_file(path.name)) is not None
        }

    def _finish_changes(self) -> None:
        """Complete deletions, delete ``.cleaned`` segments, and let ``.swap`` segments replace those from which they were
        made."""
        files = self._files()
        unfinished = [found.base_offset for found in files.values() if found.state == log_file_names.CLEANED]
        first_unfinished = min(unfinished, default=None)
        swapped: list[Path] = []
        for path, found in files.items():
            if found.state in {log_file_names.DELETED, log_file_names.CLEANED}:
                path.unlink()
            elif found.state == log_file_names.SWAP:
                if first_unfinished is not None and found.base_offset >= first_unfinished:
                    path.unlink()
                else:
                    swapped.append(path)
        logs = [path for path in swapped if files[path].kind == log_file_names.LOG]
        if logs:
            first = files[logs[0]].base_offset
            last = FileSegment(
                self._folder, files[logs[-1]].base_offset, self._settings, self._now_ms, log_file_names.SWAP
            )
            try:
                behind = last.next_offset()
            except CorruptBatchError as fault:
                raise StorageError(
                    f"{fault}. It was to replace older segments; nothing was changed. "
                    f"Move the files {log_file_names.SWAP[1:]} away."
                ) from None
            for path, found in files.items():
                if (
                    not found.state
                    and first <= found.base_offset < behind
                    and found.kind != log_file_names.PRODUCER_SNAPSHOT
                ):
                    path.unlink()
            self._report(
                f"{self._folder}: segments that were being cleaned when the server ended are the cleaned ones now"
            )
        for path in swapped:
            path.rename(path.with_name(path.name.removesuffix(log_file_names.SWAP)))

    def _remove_orphans(self) -> None:
        files = self._files()
        logs = {found.base_offset for found in files.values() if found.kind == log_file_names.LOG}
        for path, found in files.items():
            if found.base_offset not in logs and found.kind not in {
                log_file_names.LOG,
                log_file_names.PRODUCER_SNAPSHOT,
            }:
                self._report(f"{path}: there is no log file to this index, so that it goes")
                path.unlink()

    # --- segments

    def _load(self) -> list[FileSegment]:
        segments = [
            FileSegment(self._folder, int(path.name[:20]), self._settings, self._now_ms)
            for path in log_file_names.log_files(self._folder)
        ]
        for segment, following in itertools.pairwise(segments):
            segment.behind = following.base_offset
        for index, segment in enumerate(segments):
            behind = segment.behind
            flushed = self._clean or (behind is not None and behind <= self._recovery_point)
            if flushed and self._is_in_order(segment, last=behind is None):
                continue
            # Deviation (after-a-kill): after a kill Kafka checks the whole segment of the recovery point. If old records are
            # damaged, it truncates everything after them, including acknowledged records. Here the check begins at the
            # recovery point, so records after damaged flushed ones are kept. After a clean shutdown Kafka trusts the files;
            # here an unreadable tail is truncated, so that no record is appended and acknowledged after it. A DeleteRecords
            # that was acknowledged outlasts a kill; Kafka forgets those of the last minute.
            known = NO_OFFSET if flushed else segment.known_offset()
            fault = segment.rebuild(0 if flushed or segment.path in self._suspects else self._recovery_point)
            if fault is None:
                if known >= (end := segment.next_offset()):
                    self._report(f"{segment.path}: {lost_or_wrong(known, end)}")
                continue
            self._cut(segment, fault, last=behind is None)
            if flushed:
                continue
            for later in segments[index + 1 :]:
                kept = self._set_aside(later)
                delete_segment(self._folder, later.base_offset)
                self._report(f"{later.path} lies behind what was cut off, and is {kept.name} now")
            return segments[: index + 1]
        return segments

    def _is_in_order(self, segment: FileSegment, *, last: bool) -> bool:
        """Can a flushed segment be used without checking every batch?"""
        if segment.path in self._suspects:
            return False
        try:
            wrong = segment.wrong_indexes(checksums=last)
        except CorruptBatchError:
            return False
        if wrong is not None:
            self._report(f"{segment.path}: {wrong}")
        return wrong is None

    def _set_aside(self, segment: FileSegment) -> Path:
        kept = segment.path.with_name(f"{segment.path.name}.0{log_file_names.CUT}")
        segment.path.rename(kept)
        return kept

    def _cut(self, segment: FileSegment, fault: CorruptBatchError, *, last: bool) -> None:
        """Truncate the file before the fault. The part cut off is kept in a file, unless it is only an incomplete batch."""
        if fault.old_format:
            raise StorageError(
                f"{fault}. Nothing was changed; move the folder {self._folder} away to start without it."
            )
        size = segment.path.stat().st_size
        lost = size - fault.position
        what = f"{segment.path} is cut off at byte {fault.position}, before offset {fault.offset}: {fault.reason}"
        if fault.torn and last and not self._had_been_flushed(fault.offset) and not _goes_on(fault):
            self._report(what)
        else:
            kept = segment.path.with_name(f"{segment.path.name}.{fault.position}{log_file_names.CUT}")
            _copy(segment.path, fault.position, kept)
            self._report(f"{what}. The {lost} bytes from there on are kept in {kept.name}")
        os.truncate(segment.path, fault.position)
        sync(segment.path)

    def _had_been_flushed(self, offset: int) -> bool:
        return self._clean or offset < self._recovery_point

    # --- epochs

    def _epochs(self) -> list[EpochEntry]:
        path = self._folder / log_file_names.LEADER_EPOCHS
        try:
            entries = log_dir_files.read_epochs(path)
            starts = [entry.start_offset for entry in entries]
            if entries and not (0 <= entries[0].epoch <= entries[-1].epoch <= INT32_MAX and starts[0] >= 0):
                raise log_dir_files.CheckpointError(f"{path} has an epoch or an offset that none can have")
            if starts != sorted(starts):
                raise log_dir_files.CheckpointError(f"{path} has epochs whose offsets do not ascend")
            return entries
        except log_dir_files.CheckpointError as problem:
            self._report(f"{problem}; the log goes on without its history of leaders")
            return []


def _goes_on(fault: CorruptBatchError) -> bool:
    """Is an incomplete batch followed by another batch? Then its length is wrong, because a torn batch is the last one.

    It searches for the batch's next offset, of which only the one in its header is known.
    """
    with opened(fault.path) as descriptor:
        data = read_at(descriptor, _COPY_BYTES, fault.position)
    if len(data) <= HEADER_BYTES:
        return False
    following = read_header(data).last_offset + 1
    return data.find((following % (1 << 64)).to_bytes(8), HEADER_BYTES) > 0


def _copy(source: Path, position: int, target: Path) -> None:
    create(target)
    with opened(source) as reading, opened(target, os.O_WRONLY) as writing:
        written = 0
        while data := read_at(reading, _COPY_BYTES, position + written):
            write_at(writing, data, written)
            written += len(data)
        os.fsync(writing)


class _Snapshot(NamedTuple):
    """The state of producers before ``offset``."""

    offset: int
    producers: ProducerStateManager


class _Ends(NamedTuple):
    """The ends of transactions in a segment, from an offset on: (producer id, offset) of each marker, and the aborted ones."""

    markers: set[tuple[int, int]]
    aborted: list[AbortedTransaction]


class ProducerStateRebuild:
    """Rebuilds the state of producers of the log in ``folder``. The other arguments are as for LogLoader."""

    def __init__(self, folder: Path, *, clean: bool, recovery_point: int, report: Callable[[str], None]) -> None:
        self._folder = folder
        self._clean = clean
        self._recovery_point = recovery_point
        self._report = report
        self._faults: dict[int, TransactionIndexError] = {}  # by the base offset of a segment

    def run(self, segments: Sequence[FileSegment], end: int, epochs: LeaderEpochCache) -> ProducerStateManager:
        """The producers at ``end``, the log end offset; adds leader epochs of the batches after the snapshot to ``epochs``.

        Raises OSError, and CorruptBatchError for an invalid batch.
        """
        paths = self._snapshot_paths(segments, end)
        latest = self._latest(paths, end, segments[0].base_offset)
        has_any = has_transactions(latest.producers) or any(each.transaction_index.exists for each in segments)
        unsure_from = self._unsure_from(segments, end, has_any=has_any)
        if latest.offset > unsure_from:
            latest = self._latest(paths, unsure_from, segments[0].base_offset)
        since, producers = latest
        for segment, following in zip(segments, [*segments[1:], None], strict=True):
            if following is None or following.base_offset > since:
                ends = self._replayed(segment, since, producers, epochs)
                self._put_in_order(segment, since, ends, has_any=has_any or has_transactions(producers))
        if (
            len(producers) and end not in paths
        ):  # without a snapshot, after a clean shutdown Kafka would know no producers
            path = self._folder / log_file_names.file_name(end, log_file_names.PRODUCER_SNAPSHOT)
            replace(path, producer_snapshot.encode(producers))
        return producers

    def without_records(self) -> ProducerStateManager:
        """The producers of a log whose records are all deleted: none, as Kafka does not read snapshots at or before the log
        start offset. Source: ``ProducerStateManager.truncateAndReload``. Raises OSError.
        """
        for path in self._folder.glob(f"*{log_file_names.PRODUCER_SNAPSHOT}"):
            path.unlink()
        return ProducerStateManager(self._folder.name)

    # --- where the replay starts

    def _snapshot_paths(self, segments: Sequence[FileSegment], end: int) -> dict[int, Path]:
        """The snapshots by offset, the latest first; those that fit no segment are deleted."""
        bases = {segment.base_offset for segment in segments}
        found: dict[int, Path] = {}
        for path in sorted(self._folder.iterdir(), reverse=True):
            file = log_file_names.segment_file(path.name)
            if file is None or (file.kind, file.state) != (log_file_names.PRODUCER_SNAPSHOT, ""):
                continue
            if file.base_offset > end or (
                file.base_offset not in bases and file.base_offset < segments[-1].base_offset
            ):
                path.unlink()
            else:
                found[file.base_offset] = path
        return found

    def _latest(self, paths: dict[int, Path], before: int, start: int) -> _Snapshot:
        """The latest readable snapshot at or before ``before``, else an empty one at ``start``, the beginning of the log."""
        for offset, path in list(paths.items()):
            if offset <= before:
                try:
                    return _Snapshot(offset, producer_snapshot.decode(path.read_bytes(), self._folder.name))
                except SnapshotError as problem:
                    self._report(f"{path} is of no use: {problem}")
                    path.unlink()
                    del paths[offset]
        return _Snapshot(start, ProducerStateManager(self._folder.name))

    def _unsure_from(self, segments: Sequence[FileSegment], end: int, *, has_any: bool) -> int:
        """The offset from which on a transaction index may be wrong."""
        unsure = [end if self._clean else min(self._recovery_point, end)]
        for segment in segments:
            index = segment.transaction_index
            behind = end if segment.behind is None else segment.behind
            try:
                index.check(segment.base_offset, behind)
            except TransactionIndexError as problem:
                self._faults[segment.base_offset] = problem
                unsure.append(segment.base_offset)
            if has_any and not index.exists:
                unsure.append(segment.base_offset)
        return min(unsure)

    # --- the replay

    def _replayed(
        self, segment: FileSegment, since: int, producers: ProducerStateManager, epochs: LeaderEpochCache
    ) -> _Ends:
        ends = _Ends(set(), [])
        for header, batch in segment.markers_from(since):
            epochs.assign(header.leader_epoch, header.base_offset)
            if header.base_offset < since:  # before the snapshot
                continue
            if header.control and header.has_producer_id:
                ends.markers.add((header.producer_id, header.base_offset))
                aborted = self._ended(segment, header, batch, producers)
                if aborted is not None:
                    ends.aborted.append(aborted)
            else:
                producers.replay(header, batch)
        return ends

    def _ended(
        self, segment: FileSegment, header: BatchHeader, batch: bytes, producers: ProducerStateManager
    ) -> AbortedTransaction | None:
        """The transaction that the marker ``batch`` aborts, if any. For an unreadable marker the index decides."""
        try:
            if not checksum_matches(batch, header):
                raise InvalidRecordsError(f"its checksum is not {header.crc}, as it says")
            return producers.replay(header, batch)
        except (BatchError, InvalidRecordsError) as problem:
            known = {(each.producer_id, each.last_offset) for each in segment.aborted}
            aborts = (header.producer_id, header.base_offset) in known
            self._report(
                f"{segment.path} at offset {header.base_offset}: the end of a transaction cannot be read: {problem}; "
                f"it is taken for {'an abort' if aborts else 'a commit'}, as {segment.transaction_index.path.name} has it"
            )
            marker = TransactionMarker(header.producer_id, header.producer_epoch, NO_EPOCH, committed=not aborts)
            return producers.end_transaction(marker, header.base_offset, header.max_timestamp_ms)

    def _put_in_order(self, segment: FileSegment, since: int, ends: _Ends, *, has_any: bool) -> None:
        """Rewrite the transaction index from ``since`` on, if it differs from the log; earlier entries stay."""
        index = segment.transaction_index
        fault = self._faults.get(segment.base_offset)
        found = index.read()[: None if fault is None else fault.sound]
        behind = [each for each in found if each.last_offset >= since]
        known = {(each.producer_id, each.last_offset): each for each in behind}
        wrong = [each.last_offset for each in behind if (each.producer_id, each.last_offset) not in ends.markers]
        for each in ends.aborted:
            has = known.get((each.producer_id, each.last_offset))
            # Compaction may have removed the first batches of this transaction, or of those that were open at the same time.
            if has is None or has.first_offset > each.first_offset or has.last_stable_offset > each.last_stable_offset:
                wrong.append(each.last_offset)
        if wrong or fault is not None:
            index.write([*(each for each in found if each.last_offset < since), *ends.aborted])
            if self._clean or min(wrong, default=self._recovery_point) < self._recovery_point:
                what = str(fault or f"{index.path} is wrong, or not whole, from offset {min(wrong)} on")
                self._report(f"{what}; it is made anew of what the log says")
        elif has_any:
            index.make()
