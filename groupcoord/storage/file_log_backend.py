"""The files of one partition's log: the LogBackend to which a PartitionLog writes.

A batch is written to the file before it is acknowledged, so that it survives a kill. It survives a power failure once it is
flushed, according to flush.messages and flush.ms or by the operating system. Source: ``LocalLog``, ``UnifiedLog``.
"""

import contextlib
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import NamedTuple, Protocol

from groupcoord.broker.cleaner import PieceCounter
from groupcoord.broker.leader_epoch_cache import EpochEntry
from groupcoord.broker.log_segment import DELETED_SEGMENTS, LogSegment
from groupcoord.broker.producer_state_manager import AbortedTransaction
from groupcoord.broker.storage_backend import LogBackend, LogState, RecoveredLog, Segment, TruncatedLog
from groupcoord.core.background_work import BackgroundWork, run_to_end
from groupcoord.protocol.batches.record_batch import BatchError, BatchHeader
from groupcoord.storage import log_file_names, producer_snapshot
from groupcoord.storage.file_io import is_shortage, replace, sync
from groupcoord.storage.file_segment import FileSegment, create_segment, delete_segment, keep_head
from groupcoord.storage.log_dir_files import partition_metadata, write_epochs
from groupcoord.storage.log_loader import LoadedLog, LogLoader
from groupcoord.storage.transaction_index import TransactionIndex, has_transactions


class BackendHost(Protocol):
    """The parts of the storage that the backend of a log uses."""

    def check(self) -> None:
        """Raises BatchError if the storage has failed, and accepts no changes."""

    def failed(self, error: OSError, *, undone: bool = False) -> BatchError:
        """The storage has failed for good; returns the error to raise. A lack of descriptors is no failure if the change is
        ``undone``."""

    def need_room(self) -> None:
        """Raises BatchError if a change could fail half-way for lack of descriptors."""

    def used(self, store: "FileLogBackend") -> None:
        """``store`` is appended to, and has open files."""

    def submit(self, work: Callable[[], None]) -> "Future[None]":
        """Run ``work`` in the background thread."""

    def starts_changed(self, store: "FileLogBackend") -> None:
        """DeleteRecords has advanced the log start offset of a log. Raises BatchError."""

    def end_moved_back(self, store: "FileLogBackend") -> None:
        """A log was truncated: lower its offsets in the checkpoints. Raises BatchError."""


class _Flush(NamedTuple):
    """A flush in the background; when it is done, everything before ``offset`` is on disk."""

    offset: int
    done: "Future[None]"


class FileLogBackend(LogBackend):
    """The log files in ``folder``. Its offsets go into the checkpoints."""

    def __init__(self, folder: Path, host: BackendHost) -> None:
        self.folder = folder
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.first_base_offset = 0
        self._recovery_point = 0
        self._host = host
        self._active: FileSegment | None = None
        self._flushes: deque[_Flush] = deque()
        self._waiting: list[FileSegment] = []  # closed segments that may not be flushed
        self._unflushed_since_ms: int | None = None
        self._snapshot_at = 0
        self._names_flushed = False  # are the entries of the folder on disk?
        self._log: LogState | None = None  # from the first append on
        self._cleaned_to = 0

    def create(self, topic_id: uuid.UUID) -> None:
        """Create the folder of a new partition. Raises OSError.

        It is not flushed: the next start creates again, from the metadata file, what a kill or power failure has lost.
        """
        self.folder.mkdir(exist_ok=True)
        replace(self.folder / log_file_names.PARTITION_METADATA, partition_metadata(topic_id), synced=False)
        create_segment(self.folder, 0)
        replace(self.folder / log_file_names.LEADER_EPOCHS, b"0\n1\n0 0\n", synced=False)

    def take_over(self, found: LoadedLog, cleaned_to: int = 0) -> RecoveredLog:
        """Continue with a log that was loaded, and compacted up to ``cleaned_to``."""
        self._cleaned_to = cleaned_to
        segments = found.segments
        self._active = segments[-1]
        self.first_base_offset = segments[0].base_offset
        self.log_start_offset, self.log_end_offset = found.log_start_offset, found.log_end_offset
        self._recovery_point = found.recovery_point
        self._waiting = [segment for segment in segments[:-1] if segment.base_offset >= found.recovery_point]
        self._snapshot_at = found.log_end_offset
        return RecoveredLog(
            self,
            list(segments),
            found.log_start_offset,
            found.log_end_offset,
            found.producers,
            found.epochs,
            found.leader_epoch,
            cleaned_to,
        )

    # --- changes of the log

    def new_segment(self, log: LogState, base_offset: int, now_ms: int) -> Segment:
        """Create the files of a segment; the previous one is closed, and flushed in the background."""
        self._host.check()
        self._host.need_room()
        try:
            before = self._active
            if before is not None:
                self._complete(before)
                self._snapshot()
                self._waiting.append(before)
                waiting = list(self._waiting)
                flushed = self._host.submit(lambda: _sync(waiting, self.folder))
                self._flushes.append(_Flush(base_offset, flushed))
            create_segment(self.folder, base_offset)
            self._names_flushed = False
            self._active = FileSegment(self.folder, base_offset, log.settings, now_ms)
        except OSError as error:
            raise self._host.failed(error) from error
        return self._active

    def append(
        self,
        log: LogState,
        segment: Segment,
        batch: bytes | bytearray,
        header: BatchHeader,
        now_ms: int,
        aborted: AbortedTransaction | None = None,
    ) -> None:
        """Write a batch and its entry in the transaction index, and flush if flush.messages says so."""
        self._host.check()
        active = self._active
        if active is None or active is not segment:
            raise AssertionError(f"{segment} is not the last segment of {log}")
        self._host.used(self)
        mark = active.mark()
        end = header.last_offset + 1
        try:
            active.append(batch, header, now_ms)
            if aborted is not None:
                active.append_aborted(aborted)
            if end - self._recovery_point >= log.settings.flush_messages:
                self._flush(end)
            elif self._unflushed_since_ms is None:
                self._unflushed_since_ms = now_ms
        except OSError as error:
            active.return_to(mark)
            raise self._host.failed(error, undone=True) from error
        self.log_end_offset = end
        self._log = log

    def replaced(
        self, log: LogState, old: Sequence[Segment], cleaned: Sequence[LogSegment], *, written: bool = False
    ) -> list[Segment]:
        """Replace segments as Kafka does, so that a kill at any moment leaves all of the old ones or all of the new."""
        self._host.check()
        self._host.need_room()
        self._log = log
        try:
            self._sync_waiting()
            for segment in () if written else cleaned:
                run_to_end(self.writing(log, segment))
            if has_transactions(log.producers):
                for segment in cleaned:
                    name = log_file_names.file_name(segment.base_offset, log_file_names.TRANSACTION_INDEX)
                    TransactionIndex(self.folder / f"{name}{log_file_names.CLEANED}").make()
            self._rename(
                [segment.base_offset for segment in reversed(cleaned)], log_file_names.CLEANED, log_file_names.SWAP
            )
            DELETED_SEGMENTS.add(old)
            staying = {segment.base_offset for segment in cleaned}
            for gone in old:
                delete_segment(self.folder, gone.base_offset, with_snapshot=gone.base_offset not in staying)
            self._rename([segment.base_offset for segment in cleaned], log_file_names.SWAP, "")
            sync(self.folder)
            now = [FileSegment(self.folder, one.base_offset, log.settings, one.created_ms) for one in cleaned]
        except OSError as error:
            raise self._host.failed(error) from error
        gone_offsets = {segment.base_offset for segment in old}
        self._waiting = [segment for segment in self._waiting if segment.base_offset not in gone_offsets]
        return list(now)

    def deleted(self, log: LogState, segments: Sequence[Segment]) -> None:
        """Delete the files of the oldest segments."""
        self.log_start_offset = log.log_start_offset
        self.first_base_offset = log.segments[0].base_offset
        gone = {segment.base_offset for segment in segments}
        self._waiting = [segment for segment in self._waiting if segment.base_offset not in gone]
        try:
            DELETED_SEGMENTS.add(segments)
            if not self._names_flushed:
                # Else, after a power failure, the log could begin at zero again, with the old and the new segments lost.
                sync(self.folder)
                self._names_flushed = True
            for segment in segments:
                delete_segment(self.folder, segment.base_offset)
        except OSError as error:
            self._host.failed(error, undone=True)  # a lack of descriptors is found before anything is deleted

    def start_moved(self, log: LogState) -> None:
        """Write the advanced log start offset at once, because its segment may stay. Raises BatchError.

        Deviation (after-a-kill): see storage/log_loader.py
        """
        self.log_start_offset = log.log_start_offset
        self._host.starts_changed(self)

    # --- following a leader

    def truncated(self, log: LogState, offset: int, now_ms: int) -> TruncatedLog:
        """Remove the batches from ``offset`` on, and load the rest. Source: ``LocalLog.truncateTo``."""
        self._host.check()
        self._host.need_room()
        self._log = log
        try:
            self.close()
            DELETED_SEGMENTS.add(log.segments)
            to_check = offset
            for segment in log.segments:
                if segment.base_offset >= offset:
                    delete_segment(self.folder, segment.base_offset)
                elif (found := segment.find(offset)) is not None:
                    keep_head(self.folder, segment.base_offset, found.position)
                    to_check = segment.base_offset
            loaded = self._load(log, min(self.recovery_point, to_check), min(log.log_start_offset, offset), now_ms)
        except OSError as error:
            raise self._host.failed(error) from error
        self.take_over(loaded, min(self.cleaned_to, offset))
        self.log_end_offset = offset
        self._host.end_moved_back(self)
        return TruncatedLog(list(loaded.segments), loaded.producers)

    def truncated_fully(self, log: LogState, offset: int, now_ms: int) -> list[Segment]:
        """Remove all segments and create an empty one. Source: ``LocalLog.truncateFullyAndStartAt``."""
        self._host.check()
        self._host.need_room()
        try:
            self.close()
            DELETED_SEGMENTS.add(log.segments)
            for path in log_file_names.log_files(self.folder):
                delete_segment(self.folder, int(path.stem))
            write_epochs(self.folder / log_file_names.LEADER_EPOCHS, [EpochEntry(0, offset)])
            create_segment(self.folder, offset)
            loaded = self._load(log, offset, offset, now_ms)
        except OSError as error:
            raise self._host.failed(error) from error
        self._log = None
        self.take_over(loaded)
        self._host.end_moved_back(self)
        return list(loaded.segments)

    def _load(self, log: LogState, recovery_point: int, log_start_offset: int, now_ms: int) -> LoadedLog:
        self._flushes.clear()  # flushes of deleted files prove nothing
        return LogLoader(
            self.folder,
            log.settings,
            clean=False,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            now_ms=now_ms,
            has_gaps=True,
            report=_say_nothing,
        ).run()

    def epochs_changed(self, log: LogState) -> None:
        """Write the leader epochs without a flush: after a power failure they are rebuilt from the batches."""
        try:
            write_epochs(self.folder / log_file_names.LEADER_EPOCHS, log.epochs.entries, synced=False)
        except OSError as error:
            self._host.failed(error, undone=True)

    # --- flushing

    @property
    def recovery_point(self) -> int:
        """The recovery point: everything before that offset is on disk. Raises OSError if a background flush has failed."""
        self._see_what_is_flushed()
        return self._recovery_point

    def _see_what_is_flushed(self) -> None:
        while self._flushes and self._flushes[0].done.done():
            flush = self._flushes.popleft()
            flush.done.result()
            self._recovery_point = max(self._recovery_point, flush.offset)
            self._waiting = [segment for segment in self._waiting if segment.base_offset >= flush.offset]

    def flush_if_due(self, log: LogState, now_ms: int) -> bool:
        """Flush if the oldest unflushed batch has waited for flush.ms; returns whether anything is still unflushed."""
        if self._unflushed_since_ms is not None and now_ms - self._unflushed_since_ms >= log.settings.flush_ms:
            try:
                self._host.check()
                self._flush(self.log_end_offset)
            except BatchError:
                return False
            except OSError as error:
                self._host.failed(error, undone=True)
                return is_shortage(error)
        return self._unflushed_since_ms is not None

    def _sync_waiting(self) -> None:
        """Flush before compaction: a record must not be removed before the later record of its key is on disk."""
        self._see_what_is_flushed()
        for segment in self._waiting:
            segment.sync()

    def _flush(self, end: int) -> None:
        segments = list(self._waiting)
        if self._active is not None:
            segments.append(self._active)
        for segment in segments:
            segment.sync()
        if not self._names_flushed:
            sync(self.folder)
            self._names_flushed = True
        self._waiting.clear()
        self._recovery_point = end
        self._unflushed_since_ms = None

    @property
    def high_watermark(self) -> int:
        """The high watermark for the checkpoint; the log end offset if there are no followers."""
        return self.log_end_offset if self._log is None else self._log.high_watermark

    @property
    def cleaned_to(self) -> int:
        """The offset up to which the log has been compacted."""
        return self._cleaned_to if self._log is None else self._log.cleaned_to

    def _snapshot(self) -> None:
        """Write a producer snapshot, if anything was appended since the last one."""
        if self._log is not None and self.log_end_offset > self._snapshot_at:
            path = self.folder / log_file_names.file_name(self.log_end_offset, log_file_names.PRODUCER_SNAPSHOT)
            replace(path, producer_snapshot.encode(self._log.producers))
            self._snapshot_at = self.log_end_offset

    def complete(self) -> None:
        """Flush the log for a clean shutdown, with its indexes and a producer snapshot. Raises OSError."""
        if self._active is not None:
            self._complete(self._active)
        self._snapshot()
        self._flush(self.log_end_offset)

    def _complete(self, segment: FileSegment) -> None:
        """Close a segment; an empty transaction index shows that none of its transactions was aborted."""
        segment.complete()
        if self._log is not None and has_transactions(self._log.producers):
            segment.transaction_index.make()

    def close(self) -> None:
        """Close the files without flushing."""
        if self._active is not None:
            self._active.close()

    # --- cleaning

    def writing(self, log: LogState, cleaned: LogSegment) -> BackgroundWork[None]:
        """Write the files that ``replaced`` will rename, piece by piece; a start deletes those that it finds."""
        self._host.check()
        pieces = PieceCounter()
        create_segment(self.folder, cleaned.base_offset, log_file_names.CLEANED)
        target = FileSegment(self.folder, cleaned.base_offset, log.settings, cleaned.created_ms, log_file_names.CLEANED)
        with contextlib.closing(target):
            for batch, header in cleaned.batches():
                target.append(batch, header, cleaned.modified_ms)
                if pieces.is_done(header):
                    yield
            target.complete()
            if cleaned.aborted:
                target.transaction_index.write(cleaned.aborted)
        yield
        target.sync()

    def discard(self, base_offset: int) -> None:
        """Delete those files."""
        for kind in log_file_names.OF_SEGMENT:
            with contextlib.suppress(OSError):
                (self.folder / log_file_names.file_name(base_offset, kind + log_file_names.CLEANED)).unlink()

    def failed(self, error: OSError) -> BatchError:
        """The disk has failed, or there are no descriptors."""
        return self._host.failed(error, undone=True)

    def _rename(self, base_offsets: Sequence[int], before: str, after: str) -> None:
        for base_offset in base_offsets:
            for kind in log_file_names.OF_SEGMENT:
                path = self.folder / log_file_names.file_name(base_offset, kind + before)
                if kind != log_file_names.TRANSACTION_INDEX or path.exists():
                    path.rename(self.folder / log_file_names.file_name(base_offset, kind + after))


def _say_nothing(_finding: str) -> None:
    """The reports of the loader after a truncation are dropped: the files were valid before."""


def _sync(segments: Sequence[FileSegment], folder: Path) -> None:
    for segment in segments:
        segment.sync()
    sync(folder)
