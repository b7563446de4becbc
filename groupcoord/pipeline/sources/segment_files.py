"""``segments:DIR``: the files of a broker's disk, folders ``__consumer_offsets-N`` with ``00000000000000000000.log`` and so on.

First the headers of all batches are read (a gigabyte takes about a second): they give the slices of some 32 MB that tasks read,
the records that transactions hide, the number of records, and torn tails. Index files are not needed. Spark itself silently
ignores paths that begin with an underscore; therefore the files are opened here. In a cluster every executor must see the
directory. A consumer that reads committed does not see the records of transactions that were aborted or are still open: the
batches of a producer are decided by its next marker (KIP-98, ``ProducerStateManager``).
"""

import mmap
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from groupcoord.pipeline.errors import PipelineError, SourceWarning
from groupcoord.pipeline.sources.columnar_batch_reader import (
    BatchHeaders,
    headers,
    is_control,
    is_transactional,
    read,
    walk,
)
from groupcoord.protocol.batches.record_batch import ABORT_MARKER, COMMIT_MARKER, BatchError, marker_type, records_of
from groupcoord.protocol.batches.records import InvalidRecordsError


class HiddenBatches(NamedTuple):
    """The batches of ``producer_id`` with base offsets from ``first`` to ``last`` are invisible; if ``is_open``, for now."""

    producer_id: int
    first: int
    last: int
    is_open: bool


class TransactionTracker:
    """The transactions of one partition, batch by batch in the order of the log."""

    def __init__(self) -> None:
        self._running: dict[int, tuple[int, int]] = {}
        self._aborted: list[HiddenBatches] = []

    def data(self, producer_id: int, base_offset: int) -> None:
        """A batch of a transaction."""
        first, _ = self._running.get(producer_id, (base_offset, 0))
        self._running[producer_id] = first, base_offset

    def end(self, producer_id: int, *, committed: bool) -> None:
        """A marker."""
        running = self._running.pop(producer_id, None)
        if running is not None and not committed:
            self._aborted.append(HiddenBatches(producer_id, *running, is_open=False))

    def hidden(self) -> list[HiddenBatches]:
        """The invisible batches if the log ends here."""
        still = [HiddenBatches(producer_id, *running, is_open=True) for producer_id, running in self._running.items()]
        return self._aborted + still


def _hidden(found: BatchHeaders, hidden: list[HiddenBatches]) -> Any:
    """Which batches of ``found`` are ``hidden``."""
    chosen = np.zeros(len(found.start), bool)
    for one in hidden:
        of_producer = found.producer_id == one.producer_id
        chosen |= of_producer & (found.base_offset >= one.first) & (found.base_offset <= one.last)
    return chosen & is_transactional(found)


def _shown(found: BatchHeaders, hidden: list[HiddenBatches]) -> Any:
    """Which batches of ``found`` hold records that a consumer sees: no markers, and none that is ``hidden``."""
    return ~is_control(found) & ~_hidden(found, hidden)


TOPIC = "__consumer_offsets"
PIECE_BYTES = 32 * 1024 * 1024
AT_ONCE_BYTES = 4 * 1024 * 1024
"""How many bytes become one Arrow batch: some 25,000 commits."""
_FOLDER = re.compile(rf"{TOPIC}-(\d+)")
_SEGMENT = re.compile(r"\d{20}\.log")


class SegmentSlice(NamedTuple):
    """What one task reads: whole batches of a file, from ``start`` to ``end`` in bytes, without the ``hidden`` ones."""

    path: str
    log_partition: int
    start: int
    end: int
    hidden: list[HiddenBatches]


class SegmentSurvey(NamedTuple):
    """What the headers say: the slices, how many visible records they hold, and warnings."""

    pieces: list[SegmentSlice]
    records: int
    warnings: list[SourceWarning]


def survey(directory: Path, *, piece_bytes: int = PIECE_BYTES) -> SegmentSurvey:
    """Look at all segments in ``directory``. Raises PipelineError if there are none, or they cannot be read."""
    folders = _folders(directory)
    pieces: list[SegmentSlice] = []
    warnings: list[SourceWarning] = []
    records = 0
    for partition, folder in folders:
        found = _survey_partition(partition, _segments(folder), piece_bytes)
        pieces += found.pieces
        warnings += found.warnings
        records += found.records
    if not any(path.stat().st_size for _, folder in folders for path in _segments(folder)):
        raise PipelineError(f"the segments in {directory} are all empty: nothing was ever committed there")
    if not pieces:
        raise PipelineError(f"the .log files in {directory} do not begin with record batches: are they Kafka's?")
    return SegmentSurvey(pieces, records, warnings)


def _folders(directory: Path) -> list[tuple[int, Path]]:
    if not directory.exists():
        raise PipelineError(f"there is no directory {directory}")
    if not directory.is_dir():
        raise PipelineError(f"{directory} is a file; segments:DIR wants the directory with the folders {TOPIC}-N")
    try:
        if match := _FOLDER.fullmatch(directory.resolve().name):
            return [(int(match[1]), directory)]
        found = [(int(match[1]), path) for path in directory.iterdir() if (match := _FOLDER.fullmatch(path.name))]
    except OSError as problem:
        raise PipelineError(f"cannot read {directory}: {problem.strerror}") from None
    if not found:
        raise PipelineError(f"{directory} has no folders {TOPIC}-N")
    return sorted(found)


def _segments(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if _SEGMENT.fullmatch(path.name))
    except OSError as problem:
        raise PipelineError(f"cannot read {folder}: {problem.strerror}") from None


class _Seen(NamedTuple):
    """What is kept of the headers of one file."""

    path: Path
    found: BatchHeaders
    size: int
    end: int


def _survey_partition(partition: int, paths: list[Path], piece_bytes: int) -> SegmentSurvey:
    transactions = TransactionTracker()
    seen: list[_Seen] = []
    for path in paths:
        size = path.stat().st_size
        if size == 0:
            continue
        try:
            with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                starts, end = walk(data)
                found = _look(data, starts, transactions)
        except OSError as problem:
            raise PipelineError(f"cannot read {path}: {problem.strerror}") from None
        seen.append(_Seen(path, found, size, end))
    hidden = transactions.hidden()
    pieces: list[SegmentSlice] = []
    warnings: list[SourceWarning] = []
    records = 0
    for path, found, size, end in seen:
        if end < size:
            warnings.append(_tail(path, partition, size - end))
        shown = _shown(found, hidden)
        records += int(np.maximum(found.count, 0)[shown].sum())
        pieces += _pieces(str(path), partition, found, hidden, piece_bytes)
    return SegmentSurvey(pieces, records, warnings + _hidden_remarks(partition, [one.found for one in seen], hidden))


def _look(data: mmap.mmap, starts: list[int], transactions: TransactionTracker) -> BatchHeaders:
    """The headers at ``starts``; the transactions hear of theirs."""
    if not starts:
        return headers(np.zeros(64, np.uint8), [])
    content = np.frombuffer(data, np.uint8)
    found = headers(content, starts)
    del content  # or the map could not be closed
    for index in np.nonzero(is_control(found) | is_transactional(found))[0].tolist():
        producer_id = int(found.producer_id[index])
        if is_control(found)[index]:
            start, end = int(found.start[index]), int(found.end[index])
            committed = _is_commit(data[start:end])
            if committed is not None:
                transactions.end(producer_id, committed=committed)
        else:
            transactions.data(producer_id, int(found.base_offset[index]))
    return found


def _is_commit(batch: bytes) -> bool | None:
    """Does this marker commit? None: it is neither that nor an abort."""
    try:
        kinds = [marker_type(record.key) for record in records_of(batch)]
    except (BatchError, InvalidRecordsError):
        return None
    kind = next((kind for kind in kinds if kind >= 0), None)
    return kind == COMMIT_MARKER if kind in {ABORT_MARKER, COMMIT_MARKER} else None


def _tail(path: Path, partition: int, size: int) -> SourceWarning:
    with path.open("rb") as file:
        file.seek(-size, 2)
        zeros = all(not any(block) for block in iter(lambda: file.read(1 << 20), b""))
    what = "zeros behind the last batch, as in a file that was being written" if zeros else "torn tail: no whole batch"
    return SourceWarning(str(path), what, partition, None, size)


def _hidden_remarks(partition: int, found: list[BatchHeaders], hidden: list[HiddenBatches]) -> list[SourceWarning]:
    warnings = []
    where = f"{TOPIC}-{partition}"
    for is_open, what in ((False, "records of aborted transactions"), (True, "records of transactions without an end")):
        chosen = [one for one in hidden if one.is_open == is_open]
        if chosen:
            records = sum(int(one.count[_hidden(one, chosen)].sum()) for one in found)
            warnings.append(SourceWarning(where, what, partition, records, None))
    return warnings


def _pieces(
    path: str, partition: int, found: BatchHeaders, hidden: list[HiddenBatches], piece_bytes: int
) -> Iterator[SegmentSlice]:
    """Cut between batches, where the next multiple of ``piece_bytes`` is reached."""
    if not len(found.start):
        return
    firsts = np.nonzero(np.diff(found.start // piece_bytes, prepend=-1))[0].tolist()
    for first, after in zip(firsts, [*firsts[1:], len(found.start)], strict=True):
        low, high = int(found.base_offset[first]), int(found.last_offset[after - 1])
        inside = [one for one in hidden if one.last >= low and one.first <= high]
        yield SegmentSlice(path, partition, int(found.start[first]), int(found.end[after - 1]), inside)


def read_piece(piece: SegmentSlice) -> Iterator[Any]:
    """The records of ``piece``, as record batches of LOG."""
    with Path(piece.path).open("rb") as file:
        position = piece.start
        size = AT_ONCE_BYTES
        while position < piece.end:
            file.seek(position)
            data = file.read(min(size, piece.end - position))
            starts, end = walk(data)
            if not starts:
                if len(data) < size:
                    raise PipelineError(f"{piece.path} became shorter while it was read")
                size *= 4  # one batch is larger than that
                continue
            found = headers(np.frombuffer(data, np.uint8), starts)
            yield from read(data, piece.log_partition, found.where(_shown(found, piece.hidden)))
            position += end
