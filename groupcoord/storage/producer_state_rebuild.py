"""What a log knew of its producers and their transactions, known again at a start; and its index of aborted transactions.

Producers are known by the last snapshot that can be read, and the batches and markers behind it. On the way every aborted
transaction is met, and has to be in the index of the segment that has its marker: or what was aborted would be read as if it
had been committed. So the way begins before everything that may be wrong: before what was not flushed when a server was
killed, and before an index that is damaged, or that is missing in a log with transactions. Kafka makes the index anew of what
was not flushed, and of segments with an index that cannot be read; it does not miss one that is lost.
Source: ``UnifiedLog.rebuildProducerState``, ``LogSegment.recover``, ``TransactionIndex.sanityCheck``.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from groupcoord.broker.leader_epoch_cache import LeaderEpochCache
from groupcoord.broker.producer_state_manager import NO_EPOCH, AbortedTransaction, ProducerStateManager
from groupcoord.core.transactional_write import TransactionMarker
from groupcoord.protocol.batches.record_batch import BatchError, BatchHeader, checksum_matches
from groupcoord.protocol.batches.records import InvalidRecordsError
from groupcoord.storage import log_file_names, producer_snapshot
from groupcoord.storage.file_io import replace
from groupcoord.storage.file_segment import FileSegment
from groupcoord.storage.producer_snapshot import SnapshotError
from groupcoord.storage.transaction_index import TransactionIndexError, has_transactions


class _Snapshot(NamedTuple):
    """The state of producers before ``offset``."""

    offset: int
    producers: ProducerStateManager


class _Ends(NamedTuple):
    """What a segment says of ends of transactions, from an offset on: (producer, offset) of each, and what was aborted."""

    markers: set[tuple[int, int]]
    aborted: list[AbortedTransaction]


class ProducerStateRebuild:
    """Knows again what the log in ``folder`` knew. ``clean``, ``recovery_point`` and ``report`` are as for LogLoader."""

    def __init__(self, folder: Path, *, clean: bool, recovery_point: int, report: Callable[[str], None]) -> None:
        self._folder = folder
        self._clean = clean
        self._recovery_point = recovery_point
        self._report = report
        self._faults: dict[int, TransactionIndexError] = {}  # by the base offset of a segment

    def run(self, segments: Sequence[FileSegment], end: int, epochs: LeaderEpochCache) -> ProducerStateManager:
        """The producers at ``end``, where the log ends; what batches behind snapshots say of ``epochs`` is added to these.

        Raises OSError, and CorruptBatchError for what is no batch.
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
        ):  # a Kafka that finds no snapshot after an end in order knows no producers
            path = self._folder / log_file_names.file_name(end, log_file_names.PRODUCER_SNAPSHOT)
            replace(path, producer_snapshot.encode(producers))
        return producers

    # --- where to begin

    def _snapshot_paths(self, segments: Sequence[FileSegment], end: int) -> dict[int, Path]:
        """The snapshots by their offsets, latest first, without those that belong to nothing: these are removed."""
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
        """The latest snapshot at ``before`` or further ahead that can be read, or the ``start`` of the log without any."""
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
        """From which offset on an index of aborted transactions may be wrong."""
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

    # --- on the way

    def _replayed(
        self, segment: FileSegment, since: int, producers: ProducerStateManager, epochs: LeaderEpochCache
    ) -> _Ends:
        ends = _Ends(set(), [])
        for header, batch in segment.markers_from(since):
            epochs.assign(header.leader_epoch, header.base_offset)
            if header.base_offset < since:  # a snapshot may know the first batches already
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
        """What is aborted by the marker ``batch``. Of one that cannot be read the index says whether it aborts anything."""
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
        """Make the index anew where it is not what the log says; what is said of earlier offsets than ``since`` stays."""
        index = segment.transaction_index
        fault = self._faults.get(segment.base_offset)
        found = index.read()[: None if fault is None else fault.sound]
        behind = [each for each in found if each.last_offset >= since]
        known = {(each.producer_id, each.last_offset): each for each in behind}
        wrong = [each.last_offset for each in behind if (each.producer_id, each.last_offset) not in ends.markers]
        for each in ends.aborted:
            has = known.get((each.producer_id, each.last_offset))
            # Compaction may have taken the first batches of this transaction, or of those that were open beside it.
            if has is None or has.first_offset > each.first_offset or has.last_stable_offset > each.last_stable_offset:
                wrong.append(each.last_offset)
        if wrong or fault is not None:
            index.write([*(each for each in found if each.last_offset < since), *ends.aborted])
            if self._clean or min(wrong, default=self._recovery_point) < self._recovery_point:
                what = str(fault or f"{index.path} is wrong, or not whole, from offset {min(wrong)} on")
                self._report(f"{what}; it is made anew of what the log says")
        elif has_any:
            index.make()
