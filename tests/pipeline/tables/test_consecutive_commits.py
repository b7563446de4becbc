"""Commits of a stretch followed key by key: the same as by a plain loop."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupcoord.pipeline.arrow_columns import arrow_schema
from groupcoord.pipeline.tables.consecutive_commits import (
    FALLEN,
    FOLLOWED,
    IN_STRETCH,
    SHORTEST_GAP_MS,
    TAKEN,
    compare_commits,
)

Row = dict[str, Any]
STRETCH_BITS = 5
ROWS = st.lists(
    st.tuples(
        st.integers(0, 1),  # key
        st.integers(0, 1),  # stretch
        st.sampled_from(["commit", "commit", "commit", "fallen", "taken"]),
        st.none() | st.integers(0, 4),  # minutes
        st.integers(0, 3),
    ),
    max_size=30,
)


def follow(rows: list[Row], recent: int, slow: dict[int, int] | None = None) -> list[Row]:
    table = pa.Table.from_pylist(rows, schema=arrow_schema(IN_STRETCH.columns))
    keys = sorted(slow or ())
    numbers = pa.schema([("key", pa.int64()), ("pause_ms", pa.int64())])
    pauses = pa.table([keys, [slow[key] for key in keys]], schema=numbers) if slow is not None else None
    batches = list(compare_commits(recent, STRETCH_BITS, pauses)(iter(table.to_batches(max_chunksize=7))))
    assert all(batch.schema == arrow_schema(FOLLOWED.columns) for batch in batches)
    return [row for batch in batches for row in batch.to_pylist()]


def stretch_of(row: Row) -> tuple[int, int]:
    return row["key"], row["log_offset"] >> STRETCH_BITS


def plainly(rows: list[Row], recent: int, slow: dict[int, int]) -> list[Row]:
    found = []
    for place in set(map(stretch_of, rows)):
        mine = sorted((row for row in rows if stretch_of(row) == place), key=lambda row: row["log_offset"])
        commits = [row for row in mine if row["committed_offset"] is not None]
        fallen = False
        known: int | None = None
        before: Row | None = None
        for row in mine:
            if row["committed_offset"] is None:
                fallen = row["commit_ms"] == FALLEN
                continue
            ms, previous_ms = row["commit_ms"], known
            known = ms if ms is not None else known
            goes_on = (
                fallen
                or before is None
                or row in commits[-recent:]
                or row["committed_offset"] < before["committed_offset"]
                or (
                    ms is not None
                    and (previous_ms is None or ms - previous_ms >= slow.get(row["key"], SHORTEST_GAP_MS))
                )
            )
            if goes_on:
                found.append(
                    row
                    | {
                        "previous_place": before and before["log_offset"],
                        "previous_offset": before and before["committed_offset"],
                        "previous_ms": previous_ms,
                        "known_ms": known,
                        "is_unowned": fallen,
                    }
                )
            before = row
    return found


@pytest.mark.slow
@given(ROWS, st.integers(1, 3), st.dictionaries(st.integers(0, 2), st.just(3 * SHORTEST_GAP_MS)), st.randoms())
def test_it_finds_what_a_plain_loop_finds(
    said: list[tuple[Any, ...]], recent: int, slow: dict[int, int], chance: Any
) -> None:
    marks = {"fallen": FALLEN, "taken": TAKEN}
    rows = [
        {
            "key": key,
            "log_offset": (stretch << STRETCH_BITS) + offset,
            "commit_ms": marks[kind] if kind in marks else None if minutes is None else minutes * 60_000,
            "committed_offset": committed if kind == "commit" else None,
        }
        for offset, (key, stretch, kind, minutes, committed) in enumerate(said)
    ]
    expected = plainly(rows, recent, slow)
    chance.shuffle(rows)
    assert sorted(map(str, follow(rows, recent, slow))) == sorted(map(str, expected))


def test_at_one_place_a_stretch_begins_then_comes_a_change_then_a_commit() -> None:
    row = {"key": 1, "log_offset": 4}
    commit = row | {"commit_ms": 0, "committed_offset": 7}
    fallen, taken = row | {"commit_ms": FALLEN}, row | {"commit_ms": TAKEN}
    assert [one["is_unowned"] for one in follow([commit, fallen], 1)] == [True]
    assert [one["is_unowned"] for one in follow([taken, commit, fallen], 1)] == [False]
    assert follow([fallen, taken], 1) == []
