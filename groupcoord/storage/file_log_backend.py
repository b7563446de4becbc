"""The files of one log while the server runs: the storage that a PartitionLog writes to.

A batch is written to the file before it is acknowledged, so that a server that is killed loses none. It is flushed to the
disk, and so survives a power cut, when flush.messages or flush.ms says so, or when the operating system does it. Source:
``LocalLog``, ``UnifiedLog``.
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
from groupcoord.storage.log_loader import LoadedLog, LogLoader
from groupcoord.storage.text_files import partition_metadata, write_epochs
from groupcoord.storage.transaction_index import TransactionIndex, has_transactions


class BackendHost(Protocol):
    """What a partition needs of the storage it is part of."""

    def check(self) -> None:
        """Raises BatchError if the storage has failed: it takes nothing more."""

    def failed(self, error: OSError, *, undone: bool = False) -> BatchError:
        """The storage fails for good; what to raise. If it is ``undone``, a shortage of descriptors is not the end."""

    def need_room(self) -> None:
        """Raises BatchError if a change could run out of descriptors half-way: it is not begun."""

    def used(self, store: "FileLogBackend") -> None:
        """``store`` is appended to, and has files open."""

    def submit(self, work: Callable[[], None]) -> "Future[None]":
        """Do ``work`` beside everything else."""

    def starts_changed(self, store: "FileLogBackend") -> None:
        """The log start offset of a log has moved because of DeleteRecords. Raises BatchError."""

    def end_moved_back(self, store: "FileLogBackend") -> None:
        """A log was truncated: no checkpoint may say that there was more. Raises BatchError."""


class _Flush(NamedTuple):
    """A flush that goes on in the background: when it is done, everything before ``offset`` is on the disk."""

    offset: int
    done: "Future[None]"


class FileLogBackend(LogBackend):
    """The files in ``folder``. The offsets are what checkpoints are made of."""

    def __init__(self, folder: Path, host: BackendHost) -> None:
        self.folder = folder
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.first_base_offset = 0
        self._recovery_point = 0
        self._host = host
        self._active: FileSegment | None = None
        self._flushes: deque[_Flush] = deque()
        self._waiting: list[FileSegment] = []  # complete ones that are not known to be on the disk
        self._unflushed_since_ms: int | None = None
        self._snapshot_at = 0
        self._names_flushed = False  # are the files that there are in the folder on the disk?
        self._log: LogState | None = None  # from the first append on
        self._cleaned_to = 0

    def create(self, topic_id: uuid.UUID) -> None:
        """Make the folder of a new partition. Raises OSError.

        None of it is flushed: a start makes of the catalogue what a kill or a power cut has left out.
        """
        self.folder.mkdir(exist_ok=True)
        replace(self.folder / log_file_names.PARTITION_METADATA, partition_metadata(topic_id), synced=False)
        create_segment(self.folder, 0)
        replace(self.folder / log_file_names.LEADER_EPOCHS, b"0\n1\n0 0\n", synced=False)

    def take_over(self, found: LoadedLog, cleaned_to: int = 0) -> RecoveredLog:
        """Go on with what recovery has found, in a log that had been compacted up to ``cleaned_to``."""
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
            cleaned_to,
        )

    # --- what the log does

    def new_segment(self, log: LogState, base_offset: int, now_ms: int) -> Segment:
        """Create the files of a segment; the one before it is complete, and flushed in the background."""
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
        """Write a batch and what it aborts, and flush everything if it is time."""
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
        """Swap segments as Kafka does, so that after a kill at any moment there are all of the old ones or all of the new."""
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
        """Remove the files of the oldest segments."""
        self.log_start_offset = log.log_start_offset
        self.first_base_offset = log.segments[0].base_offset
        gone = {segment.base_offset for segment in segments}
        self._waiting = [segment for segment in self._waiting if segment.base_offset not in gone]
        try:
            DELETED_SEGMENTS.add(segments)
            if not self._names_flushed:
                # Else a power cut might have the log begin at zero again: its new segment gone, the old ones too.
                sync(self.folder)
                self._names_flushed = True
            for segment in segments:
                delete_segment(self.folder, segment.base_offset)
        except OSError as error:
            self._host.failed(error, undone=True)  # a shortage comes before anything is removed

    def start_moved(self, log: LogState) -> None:
        """Records were deleted: that is remembered at once, for their segment may live on. Raises BatchError."""
        self.log_start_offset = log.log_start_offset
        self._host.starts_changed(self)

    # --- following a leader

    def truncated(self, log: LogState, offset: int, now_ms: int) -> TruncatedLog:
        """Remove what begins at ``offset`` or later, and load what is left. Source: ``LocalLog.truncateTo``."""
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

    def started_over(self, log: LogState, offset: int, now_ms: int) -> list[Segment]:
        """Remove all segments and begin with an empty one. Source: ``LocalLog.truncateFullyAndStartAt``."""
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
        self._flushes.clear()  # what is flushed of files that are gone says nothing
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
        """Write the leader epochs; they survive a kill, and after a power cut batches tell them again."""
        try:
            write_epochs(self.folder / log_file_names.LEADER_EPOCHS, log.epochs.entries, synced=False)
        except OSError as error:
            self._host.failed(error, undone=True)

    # --- flushing

    @property
    def recovery_point(self) -> int:
        """Everything before that offset is on the disk. Raises OSError if a flush in the background failed."""
        self._see_what_is_flushed()
        return self._recovery_point

    def _see_what_is_flushed(self) -> None:
        while self._flushes and self._flushes[0].done.done():
            flush = self._flushes.popleft()
            flush.done.result()
            self._recovery_point = max(self._recovery_point, flush.offset)
            self._waiting = [segment for segment in self._waiting if segment.base_offset >= flush.offset]

    def flush_if_due(self, log: LogState, now_ms: int) -> bool:
        """Flush if the oldest batch that is not flushed has waited for flush.ms; is there anything left that waits?"""
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
        """What compaction leaves out may be on the disk, and a later record that stands for it not yet: so it has to be."""
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
        """What consumers may read, for the checkpoint: all, as far as nothing is known of followers."""
        return self.log_end_offset if self._log is None else self._log.high_watermark

    @property
    def cleaned_to(self) -> int:
        """Up to which offset the log has been compacted."""
        return self._cleaned_to if self._log is None else self._log.cleaned_to

    def _snapshot(self) -> None:
        """Write what the log knows of its producers, if anything was appended since the last time."""
        if self._log is not None and self.log_end_offset > self._snapshot_at:
            path = self.folder / log_file_names.file_name(self.log_end_offset, log_file_names.PRODUCER_SNAPSHOT)
            replace(path, producer_snapshot.encode(self._log.producers))
            self._snapshot_at = self.log_end_offset

    def complete(self) -> None:
        """The server ends: have everything as it is after a clean shutdown, on the disk. Raises OSError."""
        if self._active is not None:
            self._complete(self._active)
        self._snapshot()
        self._flush(self.log_end_offset)

    def _complete(self, segment: FileSegment) -> None:
        """Nothing more comes for now; that none of its transactions was aborted is told by an empty index."""
        segment.complete()
        if self._log is not None and has_transactions(self._log.producers):
            segment.transaction_index.make()

    def close(self) -> None:
        """Close the files as they are."""
        if self._active is not None:
            self._active.close()

    # --- cleaning

    def writing(self, log: LogState, cleaned: LogSegment) -> BackgroundWork[None]:
        """Write the files that ``replaced`` is to rename, a piece at a time; a start removes those it finds."""
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
        """Remove those files."""
        for kind in log_file_names.OF_SEGMENT:
            with contextlib.suppress(OSError):
                (self.folder / log_file_names.file_name(base_offset, kind + log_file_names.CLEANED)).unlink()

    def failed(self, error: OSError) -> BatchError:
        """The disk fails, or there are no descriptors."""
        return self._host.failed(error, undone=True)

    def _rename(self, base_offsets: Sequence[int], before: str, after: str) -> None:
        for base_offset in base_offsets:
            for kind in log_file_names.OF_SEGMENT:
                path = self.folder / log_file_names.file_name(base_offset, kind + before)
                if kind != log_file_names.TRANSACTION_INDEX or path.exists():
                    path.rename(self.folder / log_file_names.file_name(base_offset, kind + after))


def _say_nothing(_finding: str) -> None:
    """The files were in order before what was cut off."""


def _sync(segments: Sequence[FileSegment], folder: Path) -> None:
    for segment in segments:
        segment.sync()
    sync(folder)
