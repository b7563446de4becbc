"""A partition's folder at a start: what an interrupted change left is finished or undone, what is torn is cut off, the indexes
are made anew where they have to be, and what the log knows of epochs and producers is put together.

After a clean shutdown the files are taken at their word. Otherwise every batch is checked from the segment of the recovery
point on; what lies before that was flushed. Source: ``LogLoader``, ``LogSegment.recover``, ``UnifiedLog.rebuildProducerState``.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from groupcoord.broker.leader_epochs import EpochStart, LeaderEpochs
from groupcoord.broker.log_settings import LogSettings
from groupcoord.broker.producer_state import ProducerStates
from groupcoord.protocol.batches import BatchHeader
from groupcoord.storage import checkpoints, names, producer_snapshot
from groupcoord.storage.batch_files import BatchFault
from groupcoord.storage.errors import StorageError
from groupcoord.storage.files import create, opened, read_at, sync, write_at
from groupcoord.storage.producer_snapshot import SnapshotError
from groupcoord.storage.stored_segment import StoredSegment, create_segment, delete_segment

_COPY_BYTES = 1 << 20


class Found(NamedTuple):
    """What the folder of a partition holds."""

    segments: list[StoredSegment]
    log_start_offset: int
    log_end_offset: int
    recovery_point: int
    producers: ProducerStates
    epochs: LeaderEpochs


class Recovery:
    """The start of the log in ``folder``. Times are milliseconds.

    ``clean``: the server before ended in order. ``recovery_point`` and ``log_start_offset`` are what the checkpoints say.
    ``report`` is told, in words, of everything that was not as it should be.
    """

    def __init__(
        self,
        folder: Path,
        settings: LogSettings,
        *,
        clean: bool,
        recovery_point: int,
        log_start_offset: int,
        now_ms: int,
        report: Callable[[str], None],
    ) -> None:
        self._folder = folder
        self._settings = settings
        self._clean = clean
        self._recovery_point = recovery_point
        self._log_start_offset = log_start_offset
        self._now_ms = now_ms
        self._report = report

    def run(self) -> Found:
        """Put everything in order. Raises OSError, and StorageError for what is not for us to put in order."""
        self._finish_changes()
        self._remove_orphans()
        segments = self._load()
        end = segments[-1].next_offset() if segments else self._log_start_offset
        if end < self._log_start_offset:
            self._report(
                f"{self._folder}: the log ends at offset {end}, before the offset {self._log_start_offset} up to which its "
                "records were deleted; it goes on there"
            )
            for segment in segments:
                delete_segment(self._folder, segment.base_offset)
            segments, end = [], self._log_start_offset
        if not segments:
            create_segment(self._folder, end)
            segments = [StoredSegment(self._folder, end, self._settings, self._now_ms)]
        start = max(self._log_start_offset, segments[0].base_offset)
        saved = self._epochs()
        epochs = LeaderEpochs(saved)
        producers = self._producers(segments, end, epochs)
        epochs.truncate_from(end)
        if epochs.entries != saved:
            checkpoints.write_epochs(self._folder / names.LEADER_EPOCHS, epochs.entries)
        recovery_point = end if self._clean else min(self._recovery_point, end)
        return Found(segments, start, end, recovery_point, producers, epochs)

    # --- changes that were under way

    def _files(self) -> dict[Path, names.SegmentFile]:
        return {
            path: found
            for path in sorted(self._folder.iterdir())
            if (found := names.segment_file(path.name)) is not None
        }

    def _finish_changes(self) -> None:
        """Deleting goes on; cleaned segments that were not complete go, those that were replace what they stand for."""
        files = self._files()
        unfinished = [found.base_offset for found in files.values() if found.state == names.CLEANED]
        first_unfinished = min(unfinished, default=None)
        swapped: list[Path] = []
        for path, found in files.items():
            if found.state in {names.DELETED, names.CLEANED}:
                path.unlink()
            elif found.state == names.SWAP:
                if first_unfinished is not None and found.base_offset >= first_unfinished:
                    path.unlink()
                else:
                    swapped.append(path)
        logs = [path for path in swapped if files[path].kind == names.LOG]
        if logs:
            first = files[logs[0]].base_offset
            last = StoredSegment(self._folder, files[logs[-1]].base_offset, self._settings, self._now_ms, names.SWAP)
            behind = last.next_offset()
            for path, found in files.items():
                if not found.state and first <= found.base_offset < behind and found.kind != names.PRODUCER_SNAPSHOT:
                    path.unlink()
            self._report(
                f"{self._folder}: segments that were being cleaned when the server ended are the cleaned ones now"
            )
        for path in swapped:
            path.rename(path.with_name(path.name.removesuffix(names.SWAP)))

    def _remove_orphans(self) -> None:
        files = self._files()
        logs = {found.base_offset for found in files.values() if found.kind == names.LOG}
        for path, found in files.items():
            if found.base_offset not in logs and found.kind not in {names.LOG, names.PRODUCER_SNAPSHOT}:
                self._report(f"{path}: there is no log file to this index, so that it goes")
                path.unlink()

    # --- segments

    def _load(self) -> list[StoredSegment]:
        segments = [
            StoredSegment(self._folder, int(path.name[:20]), self._settings, self._now_ms)
            for path in names.log_files(self._folder)
        ]
        bases = [segment.base_offset for segment in segments]
        for index, segment in enumerate(segments):
            behind = bases[index + 1] if index + 1 < len(bases) else None
            flushed = behind is not None and behind <= self._recovery_point
            if self._clean or flushed:
                if segment.has_sound_indexes():
                    continue
                self._report(f"{segment.path}: its indexes are missing or wrong, and are made anew")
            fault = segment.rebuild(lambda _header: None)
            if fault is None:
                continue
            self._cut(segment, fault, last=behind is None)
            if self._clean or flushed:
                continue
            for later in segments[index + 1 :]:
                kept = later.path.with_name(f"{later.path.name}.0{names.CUT}")
                later.path.rename(kept)
                delete_segment(self._folder, later.base_offset)
                self._report(f"{later.path} lies behind what was cut off, and is {kept.name} now")
            return segments[: index + 1]
        return segments

    def _cut(self, segment: StoredSegment, fault: BatchFault, *, last: bool) -> None:
        """End the file before the fault. What goes is kept beside it, unless it is only a batch that was never complete."""
        if fault.old_format:
            raise StorageError(
                f"{fault}. Nothing was changed; move the folder {self._folder} away to start without it."
            )
        size = segment.path.stat().st_size
        lost = size - fault.position
        what = f"{segment.path} is cut off at byte {fault.position}, before offset {fault.offset}: {fault.reason}"
        if fault.torn and last:
            self._report(what)
        else:
            kept = segment.path.with_name(f"{segment.path.name}.{fault.position}{names.CUT}")
            _copy(segment.path, fault.position, kept)
            self._report(f"{what}. The {lost} bytes from there on are kept in {kept.name}")
        os.truncate(segment.path, fault.position)
        sync(segment.path)

    # --- what the log knows

    def _epochs(self) -> list[EpochStart]:
        try:
            return checkpoints.read_epochs(self._folder / names.LEADER_EPOCHS)
        except checkpoints.CheckpointError as problem:
            self._report(f"{problem}; the log goes on without its history of leaders")
            return []

    def _producers(self, segments: list[StoredSegment], end: int, epochs: LeaderEpochs) -> ProducerStates:
        """From the last snapshot that can be read, and the batches behind it."""
        name = self._folder.name
        snapshots = {
            found.base_offset: path for path, found in self._files().items() if found.kind == names.PRODUCER_SNAPSHOT
        }
        bases = {segment.base_offset for segment in segments}
        producers, since, known = ProducerStates(name), segments[0].base_offset, False
        for offset, path in sorted(snapshots.items(), reverse=True):
            if offset > end or (offset not in bases and offset < segments[-1].base_offset):
                path.unlink()
            elif not known:
                try:
                    producers, since, known = producer_snapshot.decode(path.read_bytes(), name), offset, True
                except SnapshotError as problem:
                    self._report(f"{path} is of no use: {problem}")
                    path.unlink()
        for segment, following in zip(segments, [*segments[1:], None], strict=True):
            if following is None or following.base_offset > since:
                for header in segment.headers_from(since):
                    epochs.assign(header.leader_epoch, header.base_offset)
                    _replay(producers, header, since)
        return producers


def _replay(producers: ProducerStates, header: BatchHeader, since: int) -> None:
    """Markers of transactions have no sequence number, and a snapshot may know the first batches already."""
    if header.has_producer_id and not header.control and header.base_offset >= since:
        producers.appended(header)


def _copy(source: Path, position: int, target: Path) -> None:
    create(target)
    with opened(source) as reading, opened(target, os.O_WRONLY) as writing:
        written = 0
        while data := read_at(reading, _COPY_BYTES, position + written):
            write_at(writing, data, written)
            written += len(data)
        os.fsync(writing)
