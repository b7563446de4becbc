"""The commits of a stretch of the log, key by key, with numpy: each beside the one before it.

Nearly all commits are ordinary, and nothing is to be said of them. So they are followed here in stretches, each in one go, and
only those go on that somebody may ask for, or that join a stretch with the next.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from groupcoord.pipeline.schemas import Column, Table
from groupcoord.pipeline.types import arrow_schema

SHORTEST_GAP_MS = 60_000
FALLEN, TAKEN = 1, 0
"""Marks: from here on the partition is nobody's, or somebody's again."""

IN_STRETCH = Table(
    "in_stretch",
    "What is followed: commits, and marks among them.",
    ("key", "log_offset"),
    (
        Column("key", "bigint", "instead of group, topic, its partition, and the partition of the log"),
        Column("log_offset", "bigint", "where the commit is, or from where on the mark holds"),
        Column("commit_ms", "bigint", "time of the commit, in ms; of a mark: FALLEN or TAKEN"),
        Column("committed_offset", "bigint", "what was committed; null: a mark"),
    ),
)
FOLLOWED = Table(
    "followed",
    "Commits that go on: the first and the last of each key in the stretch, those after a pause, those that go back, and those "
    "for a partition that is nobody's.",
    ("key", "log_offset"),
    (
        *IN_STRETCH.columns,
        Column("previous_place", "bigint", "where the one before is; null: not in this stretch"),
        Column("previous_offset", "bigint", "what that committed"),
        Column("previous_ms", "bigint", "the last time before; null: none is known in this stretch", "ms"),
        Column("known_ms", "bigint", "the last time up to here", "ms"),
        Column("is_nobodys", "boolean", "was the partition nobody's then?"),
    ),
)
_MIX = np.uint64(0x9E3779B97F4A7C15)


def following(recent: int, stretch_bits: int) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """A function from record batches of IN_STRETCH, with whole stretches of 2 to the power of ``stretch_bits`` offsets, to such
    of FOLLOWED.

    ``recent`` is how many of the last commits of each key go on: at least one.
    """

    def follow(batches: Iterator[Any]) -> Iterator[Any]:
        if found := list(batches):
            yield _follow(pa.Table.from_batches(found), recent, stretch_bits)

    return follow


def _follow(rows: Any, recent: int, stretch_bits: int) -> Any:
    numbers = {name: rows.column(name).fill_null(0).to_numpy() for name in IN_STRETCH.names}
    marked = rows.column("committed_offset").is_null().to_numpy()
    timed = rows.column("commit_ms").is_valid().to_numpy()
    del rows
    key = _in_stretch(numbers["key"], numbers["log_offset"] >> stretch_bits)
    if marked.any():
        # At one place, what a stretch begins with counts before a change, and that before a commit.
        rank = np.where(marked, 1 - numbers["commit_ms"], 2).astype(np.int8)
        order = np.lexsort((rank, numbers["log_offset"], key))
        marked = marked[order]
        last = _last(marked, _begins(key[order]))
        nobodys = (marked[last] & (numbers["commit_ms"][order][last] == FALLEN))[~marked]
        order = order[~marked]
    else:
        order = np.lexsort((numbers["log_offset"], key))
        nobodys = np.zeros(len(order), bool)
    key = key[order]
    return _chosen({name: numbers[name][order] for name in IN_STRETCH.names}, timed[order], nobodys, key, recent)


def _chosen(commits: dict[str, Any], timed: Any, nobodys: Any, key: Any, recent: int) -> Any:
    """Those of ``commits``, in order, that go on."""
    if not len(key):
        return pa.RecordBatch.from_pylist([], schema=arrow_schema(FOLLOWED.columns))
    begins = _begins(key)
    place, offset, ms = commits["log_offset"], commits["committed_offset"], commits["commit_ms"]
    known = _last(timed, begins)
    is_known, known_ms = timed[known], ms[known]
    was_known = np.roll(is_known, 1) & ~begins
    before_ms, before, before_place = np.roll(known_ms, 1), np.roll(offset, 1), np.roll(place, 1)
    starts = np.nonzero(begins)[0]
    sizes = np.diff(starts, append=len(key))
    from_end = np.repeat(starts + sizes, sizes) - np.arange(len(key))
    goes_on = (
        (from_end <= recent)
        | begins
        | nobodys
        | (before > offset)
        | (timed & ~was_known)
        | (timed & was_known & (ms - before_ms >= SHORTEST_GAP_MS))
    )
    at = np.nonzero(goes_on)[0]
    first = begins[at]
    columns = {name: pa.array(commits[name][at]) for name in FOLLOWED.names[:2]}
    columns |= {
        "commit_ms": pa.array(ms[at], mask=~timed[at]),
        "committed_offset": pa.array(offset[at]),
        "previous_place": pa.array(before_place[at], mask=first),
        "previous_offset": pa.array(before[at], mask=first),
        "previous_ms": pa.array(before_ms[at], mask=~was_known[at]),
        "known_ms": pa.array(known_ms[at], mask=~is_known[at]),
        "is_nobodys": pa.array(nobodys[at]),
    }
    return pa.RecordBatch.from_arrays([columns[name] for name in FOLLOWED.names], schema=arrow_schema(FOLLOWED.columns))


def _in_stretch(key: Any, stretch: Any) -> Any:
    """One number for both; two pairs in 2⁶⁴ would be taken for one."""
    key = key.astype(np.uint64)
    return (key ^ (key >> np.uint64(29))) * _MIX + stretch.astype(np.uint64)


def _begins(key: Any) -> Any:
    """Where another key begins."""
    begins = np.ones(len(key), bool)
    begins[1:] = key[1:] != key[:-1]
    return begins


def _last(chosen: Any, begins: Any) -> Any:
    """For each row, which is the last of those ``chosen`` up to it; the first row of the key, where there is none."""
    return np.maximum.accumulate(np.where(chosen | begins, np.arange(len(chosen)), 0))
