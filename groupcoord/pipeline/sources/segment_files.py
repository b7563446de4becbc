"""The source ``segments:DIR``: segment files of a broker, folders ``__consumer_offsets-N`` with ``00000000000000000000.log``
etc.

A survey first reads the headers of all batches (about a second a gigabyte), a task for each partition of the log. It finds the
slices of some 32 MB that tasks then read, the records that transactions hide, the number of records, and torn tails. Index
files are not needed. The files are opened here, because Spark silently ignores paths that begin with an underscore. In a
cluster every executor must see the directory. Records of aborted and open transactions are hidden, as from a read_committed
consumer.
"""

import mmap
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from groupcoord.pipeline.columnar_decoder import PLACES
from groupcoord.pipeline.errors import PipelineError, SourceWarning
from groupcoord.pipeline.sources.columnar_batch_reader import (
    BatchHeaders,
    headers,
    is_control,
    is_transactional,
    read,
    walk,
)
from groupcoord.pipeline.sources.damaged_segments import next_batch, walk_over_damage
from groupcoord.pipeline.sources.transaction_outcomes import (
    TransactionEnds,
    first_ends,
    is_open,
    transaction_ends,
)
from groupcoord.protocol.batches.record_batch import ABORT_MARKER, COMMIT_MARKER

TOPIC = "__consumer_offsets"
PIECE_BYTES = 32 * 1024 * 1024
AT_ONCE_BYTES = 4 * 1024 * 1024
"""The bytes that become one Arrow batch: some 25,000 commits."""
_FOLDER = re.compile(rf"{TOPIC}-(\d+)")
_SEGMENT = re.compile(r"\d{20}\.log")


class SegmentSlice(NamedTuple):
    """A part of a file that one task reads: whole batches, from byte ``start`` to byte ``end``.

    ``later`` has the producers whose transaction ends after the slice, and whether it commits; not those without an end.
    """

    path: str
    log_partition: int
    start: int
    end: int
    later: dict[int, bool]


class SegmentSurvey(NamedTuple):
    """The result of a survey: the slices, the number of visible records in them, and warnings."""

    pieces: list[SegmentSlice]
    records: int
    warnings: list[SourceWarning]


Folder = tuple[int, list[Path]]
"""A partition of the log and its segments."""
Survey = Callable[[Folder], SegmentSurvey]


def find_segments(directory: Path) -> list[Folder]:
    """Find the segments in ``directory``. Raises PipelineError if there are none, they cannot be read, or are not Kafka's."""
    folders = [(partition, _segments(folder)) for partition, folder in _folders(directory)]
    filled = [path for _, paths in folders for path in paths if path.stat().st_size]
    if not filled:
        raise PipelineError(f"the segments in {directory} are all empty: nothing was ever committed there")
    if not any(_has_batches(path) for path in filled):
        raise PipelineError(f"the .log files in {directory} do not begin with record batches: are they Kafka's?")
    return folders


def _has_batches(path: Path) -> bool:
    with _mapped(path) as data:
        return bool(walk(data, limit=1)[0]) or next_batch(data, 0) is not None


@contextmanager
def _mapped(path: Path) -> Iterator[mmap.mmap]:
    """Memory-map a file that is not empty. Raises PipelineError if it cannot be read."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield data
    except OSError as problem:
        raise PipelineError(f"cannot read {path}: {problem.strerror}") from None


def survey(
    directory: Path,
    *,
    piece_bytes: int = PIECE_BYTES,
    each: Callable[[Survey, list[Folder]], Iterable[SegmentSurvey]] = map,
) -> SegmentSurvey:
    """Survey all segments in ``directory``; ``each`` maps a function over the partitions of the log (``map``, or Spark's
    tasks).

    Raises PipelineError if there are no segments, or all are empty, or they cannot be read.
    """
    found = list(each(partial(_survey_partition, piece_bytes=piece_bytes), find_segments(directory)))
    return SegmentSurvey(
        [piece for one in found for piece in one.pieces],
        sum(one.records for one in found),
        [warning for one in found for warning in one.warnings],
    )


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


class _PartitionSurvey:
    """The survey of one partition, file by file; a transaction may span several files."""

    def __init__(self, partition: int, piece_bytes: int) -> None:
        self.pieces: list[SegmentSlice] = []
        self.shown = 0
        self.aborted = 0
        self._partition = partition
        self._piece_bytes = piece_bytes
        self._undecided: dict[int, int] = defaultdict(int)
        self._waiting: dict[int, list[dict[int, bool]]] = defaultdict(list)

    @property
    def without_end(self) -> int:
        """The number of records of transactions that are open at the end of the log."""
        return sum(self._undecided.values())

    def add(self, path: Path, data: mmap.mmap, starts: list[int]) -> None:
        """Add a file whose batches are at ``starts``."""
        content = np.frombuffer(data, np.uint8)
        found = headers(content, starts)
        del content  # or the map could not be closed
        ends = transaction_ends(data, found)
        self._decide(found, ends)
        records = np.maximum(found.count, 0)
        aborted, undecided = ends.ended_by(ABORT_MARKER), is_open(found, ends)
        self.shown += int(records[~is_control(found) & ~aborted & ~undecided].sum())
        self.aborted += int(records[aborted].sum())
        for producer_id, count in zip(found.producer_id[undecided].tolist(), records[undecided].tolist(), strict=True):
            self._undecided[producer_id] += count
        self.pieces += self._cut(str(path), found, ends)

    def _decide(self, found: BatchHeaders, ends: TransactionEnds) -> None:
        """Decide the transactions that earlier files left open, each by the first marker of its producer."""
        for producer_id, is_committed in first_ends(found, ends, self._undecided).items():
            records = self._undecided.pop(producer_id)
            self.shown += records if is_committed else 0
            self.aborted += 0 if is_committed else records
            for later in self._waiting.pop(producer_id):
                later[producer_id] = is_committed

    def _cut(self, path: str, found: BatchHeaders, ends: TransactionEnds) -> Iterator[SegmentSlice]:
        """Cut a file into slices between batches, where the next multiple of ``piece_bytes`` is reached."""
        is_first = np.diff(found.start // self._piece_bytes, prepend=-1) != 0
        is_first[1:] |= found.start[1:] != found.end[:-1]  # after bytes that are not a batch
        firsts = np.nonzero(is_first)[0].tolist()
        transactional, committed = is_transactional(found), ends.ended_by(COMMIT_MARKER)
        for first, after in zip(firsts, [*firsts[1:], len(found.start)], strict=True):
            later: dict[int, bool] = {}
            behind = first + np.nonzero(transactional[first:after] & (ends.end[first:after] >= after))[0]
            producers, first_of = np.unique(found.producer_id[behind], return_index=True)
            for producer_id, batch in zip(producers.tolist(), behind[first_of].tolist(), strict=True):
                if ends.end[batch] < len(found.start):
                    later[producer_id] = bool(committed[batch])
                else:
                    self._waiting[producer_id].append(later)
            yield SegmentSlice(path, self._partition, int(found.start[first]), int(found.end[after - 1]), later)


def _survey_partition(folder: Folder, piece_bytes: int) -> SegmentSurvey:
    partition, paths = folder
    found = _PartitionSurvey(partition, piece_bytes)
    warnings: list[SourceWarning] = []
    sizes = {path: path.stat().st_size for path in paths}
    last = max((path for path, size in sizes.items() if size), default=None)
    for path, size in sizes.items():
        if size == 0:
            continue
        with _mapped(path) as data:
            starts, damages = walk_over_damage(data)
            if starts:
                found.add(path, data, starts)
        for begin, end in damages:
            what = (
                _tail(path, begin) if end == size and path == last else "bytes that are not a record batch, passed over"
            )
            warnings.append(SourceWarning(str(path), f"{what}, from byte {begin:,} on", partition, None, end - begin))
    return SegmentSurvey(
        found.pieces, found.shown, warnings + hidden_remarks(partition, found.aborted, found.without_end)
    )


def _tail(path: Path, begin: int) -> str:
    with path.open("rb") as file:
        file.seek(begin)
        zeros = all(not any(block) for block in iter(lambda: file.read(1 << 20), b""))
    return "zeros behind the last batch, as in a file that was being written" if zeros else "torn tail: no whole batch"


def hidden_remarks(partition: int, aborted: int, without_end: int) -> list[SourceWarning]:
    """The warnings about records that are hidden because of their transactions."""
    counts = {"records of aborted transactions": aborted, "records of transactions without an end": without_end}
    return [
        SourceWarning(f"{TOPIC}-{partition}", what, partition, count, None) for what, count in counts.items() if count
    ]


def read_piece(piece: SegmentSlice) -> Iterator[Any]:
    """Read the records of ``piece`` as record batches of LOG; hidden records and markers come as record batches of PLACES."""
    with Path(piece.path).open("rb") as file:
        file.seek(piece.start)
        data = file.read(piece.end - piece.start)
    starts, end = walk(data)
    if end < piece.end - piece.start:
        raise PipelineError(f"{piece.path} was changed while it was read")
    found = headers(np.frombuffer(data, np.uint8), starts)
    is_shown = _shown(data, found, piece.later)
    yield from (records.select(PLACES) for records in read(data, piece.log_partition, found.where(~is_shown)))
    shown = found.where(is_shown)
    first = 0
    for after in [*(np.nonzero(np.diff(shown.start // AT_ONCE_BYTES))[0] + 1).tolist(), len(shown.start)]:
        part = shown.where(slice(first, after))
        first = after
        if len(part.start):
            begin = int(part.start[0])
            moved = part._replace(start=part.start - begin, end=part.end - begin)
            yield from read(data[begin : int(part.end[-1])], piece.log_partition, moved)


def _shown(data: bytes, found: BatchHeaders, later: dict[int, bool]) -> Any:
    """A mask of the batches of ``found`` that a read_committed consumer would see: no markers, and no data of transactions that
    were aborted or have no end."""
    ends = transaction_ends(data, found)
    committed = [producer_id for producer_id, is_committed in later.items() if is_committed]
    hidden = is_open(found, ends) & ~np.isin(found.producer_id, committed)
    return ~is_control(found) & ~ends.ended_by(ABORT_MARKER) & ~hidden
