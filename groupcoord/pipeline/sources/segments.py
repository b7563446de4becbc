"""``segments:DIR``: the files of a broker's disk, folders ``__consumer_offsets-N`` with ``00000000000000000000.log`` and so on.

First the headers of all batches are looked at (a gigabyte takes about a second): that gives the pieces of some 32 MB that
tasks read, tells what transactions hide, counts records, and finds torn tails. Index files are not needed. Spark itself
passes over paths that begin with an underscore, without a word: therefore the files are opened here. In a cluster every
executor must see the directory.
"""

import mmap
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from groupcoord.pipeline.errors import PipelineError
from groupcoord.pipeline.sources.batches import Headers, headers, is_control, is_transactional, read, walk
from groupcoord.pipeline.sources.remark import Remark
from groupcoord.pipeline.sources.transactions import COMMIT, Hidden, Transactions, is_hidden
from groupcoord.protocol.batches.record_batch import BatchError, records_of
from groupcoord.protocol.batches.records import InvalidRecordsError

TOPIC = "__consumer_offsets"
PIECE_BYTES = 32 * 1024 * 1024
AT_ONCE_BYTES = 4 * 1024 * 1024
"""So much is made into one Arrow batch: some 25,000 commits."""
_FOLDER = re.compile(rf"{TOPIC}-(\d+)")
_SEGMENT = re.compile(r"\d{20}\.log")


class Piece(NamedTuple):
    """What one task reads: whole batches of a file, from ``start`` to ``end`` in bytes, without the ``hidden`` ones."""

    path: str
    log_partition: int
    start: int
    end: int
    hidden: list[Hidden]


class Survey(NamedTuple):
    """What the headers say: the pieces, how many records they hold that are to be seen, and what is to be remarked."""

    pieces: list[Piece]
    records: int
    remarks: list[Remark]


def survey(directory: Path, *, piece_bytes: int = PIECE_BYTES) -> Survey:
    """Look at all segments in ``directory``. Raises PipelineError if there are none, or they cannot be read."""
    folders = _folders(directory)
    pieces: list[Piece] = []
    remarks: list[Remark] = []
    records = 0
    for partition, folder in folders:
        found = _survey_partition(partition, _segments(folder), piece_bytes)
        pieces += found.pieces
        remarks += found.remarks
        records += found.records
    if not any(path.stat().st_size for _, folder in folders for path in _segments(folder)):
        raise PipelineError(f"the segments in {directory} are all empty: nothing was ever committed there")
    if not pieces:
        raise PipelineError(f"the .log files in {directory} do not begin with record batches: are they Kafka's?")
    return Survey(pieces, records, remarks)


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
    found: Headers
    size: int
    end: int


def _survey_partition(partition: int, paths: list[Path], piece_bytes: int) -> Survey:
    transactions = Transactions()
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
    pieces: list[Piece] = []
    remarks: list[Remark] = []
    records = 0
    for path, found, size, end in seen:
        if end < size:
            remarks.append(_tail(path, partition, size - end))
        shown = ~is_control(found)
        if hidden:
            shown &= ~(is_transactional(found) & is_hidden(found.producer_id, found.base_offset, hidden))
        records += int(np.maximum(found.count, 0)[shown].sum())
        pieces += _pieces(str(path), partition, found, hidden, piece_bytes)
    return Survey(pieces, records, remarks + _hidden_remarks(partition, [one.found for one in seen], hidden))


def _look(data: mmap.mmap, starts: list[int], transactions: Transactions) -> Headers:
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
        keys = [record.key or b"" for record in records_of(batch)]
    except (BatchError, InvalidRecordsError):
        return None
    kinds = [int.from_bytes(key[2:4], "big") for key in keys if len(key) >= 4]
    return kinds[0] == COMMIT if kinds and kinds[0] in {0, COMMIT} else None


def _tail(path: Path, partition: int, size: int) -> Remark:
    with path.open("rb") as file:
        file.seek(-size, 2)
        zeros = all(not any(block) for block in iter(lambda: file.read(1 << 20), b""))
    what = "zeros behind the last batch, as in a file that was being written" if zeros else "torn tail: no whole batch"
    return Remark(str(path), what, partition, None, size)


def _hidden_remarks(partition: int, found: list[Headers], hidden: list[Hidden]) -> list[Remark]:
    remarks = []
    where = f"{TOPIC}-{partition}"
    for is_open, what in ((False, "records of aborted transactions"), (True, "records of transactions without an end")):
        chosen = [one for one in hidden if one.is_open == is_open]
        if chosen:
            records = sum(
                int(one.count[is_transactional(one) & is_hidden(one.producer_id, one.base_offset, chosen)].sum())
                for one in found
            )
            remarks.append(Remark(where, what, partition, records, None))
    return remarks


def _pieces(path: str, partition: int, found: Headers, hidden: list[Hidden], piece_bytes: int) -> Iterator[Piece]:
    """Cut between batches, where the next multiple of ``piece_bytes`` is reached."""
    if not len(found.start):
        return
    firsts = np.nonzero(np.diff(found.start // piece_bytes, prepend=-1))[0].tolist()
    for first, after in zip(firsts, [*firsts[1:], len(found.start)], strict=True):
        low, high = int(found.base_offset[first]), int(found.last_offset[after - 1])
        inside = [one for one in hidden if one.last >= low and one.first <= high]
        yield Piece(path, partition, int(found.start[first]), int(found.end[after - 1]), inside)


def read_piece(piece: Piece) -> Iterator[Any]:
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
            shown = ~is_control(found)
            if piece.hidden:
                hidden = is_hidden(found.producer_id, found.base_offset, piece.hidden)
                shown &= ~(is_transactional(found) & hidden)
            yield from read(data, piece.log_partition, found.where(shown))
            position += end
