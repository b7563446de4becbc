"""Generations played one after the other, without Spark."""

from typing import Any

import pyarrow as pa
import pytest

from groupcoord.pipeline.arrow_columns import arrow_schema, arrow_type
from groupcoord.pipeline.schemas import TOPIC_PARTITIONS
from groupcoord.pipeline.tables.ownership_changes import ASSIGNMENTS, PERSON, compared, pieces

SCHEMA = pa.schema(
    [
        *list(arrow_schema(ASSIGNMENTS.columns))[:-3],
        ("assigned", pa.list_(arrow_type(TOPIC_PARTITIONS))),
    ]
)
Given = dict[str, list[int] | None]


def record(offset: int, given: Given | None, group: str = "g") -> dict[str, Any]:
    """A generation in which each member has these partitions of ``t``; None: the end of the group."""
    members = None if given is None else [(name, name.upper(), f"m:{name}") for name in given]
    return {
        "log_partition": 0,
        "log_offset": offset,
        "append_ts": offset,
        "group": group,
        "kind": "classic",
        "generation": offset,
        "members": members and [dict(zip(PERSON, one, strict=True)) for one in members],
        "assigned": None if given is None else [_of_topic(numbers) for numbers in given.values()],
    }


def _of_topic(numbers: list[int] | None) -> list[dict[str, Any]] | None:
    return None if numbers is None else [{"topic": "t", "partitions": numbers}]


def played(*records: dict[str, Any], at_once: int = 10) -> list[dict[str, Any]]:
    """The rows of both tables; those of ASSIGNMENTS have a column ``moved``."""
    table = pa.Table.from_pylist(list(records), schema=SCHEMA)
    found = list(compared(iter(table.to_batches(max_chunksize=at_once))))
    assert all(batch.schema == arrow_schema(table.columns) for table, batch in found)
    return [row for _, batch in found for row in batch.to_pylist()]


def changes(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    names = ("group", "partition", "log_offset", "member", "previous_member")
    found = [row for row in rows if "moved" not in row]
    return sorted((*(row[name] for name in names), row["until_ts"] and row["until_ts"].microsecond) for row in found)


def moves(rows: list[dict[str, Any]]) -> list[tuple[int, ...]]:
    names = ("log_offset", "moved", "kept", "could_stay")
    return [tuple(row[name] for name in names) for row in rows if "moved" in row]


STORY = (
    record(1, {"a": [0, 1]}),
    record(2, {"a": [0], "b": []}),
    record(3, {"a": [0], "b": [1], "c": None}),
    record(4, None),
    record(5, {"b": [0, 1]}),
)


def test_each_change_has_who_had_it_last_and_an_end() -> None:
    assert changes(played(*STORY)) == [
        ("g", 0, 1, "a", None, 4),
        ("g", 0, 4, None, "a", 5),
        ("g", 0, 5, "b", "a", None),
        ("g", 1, 1, "a", None, 2),
        ("g", 1, 2, None, "a", 3),
        ("g", 1, 3, "b", "a", 4),
        ("g", 1, 4, None, "b", 5),
        ("g", 1, 5, "b", "b", None),
    ]


def test_each_record_says_what_moved_and_what_could_have_stayed() -> None:
    assert moves(played(*STORY)) == [(1, 0, 0, 0), (2, 0, 1, 1), (3, 1, 1, 1), (4, 0, 0, 0), (5, 1, 1, 1)]


def test_batches_and_groups_begin_where_they_like() -> None:
    rows = [*STORY, record(1, {"x": [0]}, "h"), record(7, {"x": [0]}, "h")]
    assert sorted(map(str, played(*rows, at_once=1))) == sorted(map(str, played(*rows)))
    assert changes(played(*rows, at_once=2))[-1] == ("h", 0, 1, "x", None, None)


def test_a_partition_that_two_have_is_the_later_ones() -> None:
    rows = played(record(1, {"b": [0], "a": [0]}), record(2, {"b": [0]}), record(3, {}))
    assert changes(rows) == [("g", 0, 1, "a", None, 1), ("g", 0, 1, "b", "a", 3), ("g", 0, 3, None, "b", None)]


def test_partitions_could_have_stayed_where_somebody_had_them_who_is_still_there() -> None:
    # b has gone, and a and c could each have what they had, as far as the shares are that big now: 2 of 3, and 1 of 1.
    rows = played(record(1, {"a": [0, 1], "b": [2, 3], "c": [4]}), record(2, {"a": [4], "c": [0, 1, 2], "d": [3]}))
    assert moves(rows)[1] == (2, 5, 0, 3)


def test_a_static_member_that_comes_back_keeps_what_it_had_but_is_another_owner() -> None:
    before, after = record(1, {"a": [0]}), record(2, {"b": [0]})
    after["members"][0]["who"] = before["members"][0]["who"] = "i:1"
    rows = played(before, after)
    assert moves(rows)[1] == (2, 0, 1, 1)
    assert changes(rows)[1] == ("g", 0, 2, "b", "a", None)


@pytest.mark.parametrize("partitions", [1, 2, 3, 4])
def test_a_group_may_be_cut_anywhere(monkeypatch: pytest.MonkeyPatch, partitions: int) -> None:
    whole = played(*STORY)
    monkeypatch.setattr("groupcoord.pipeline.tables.ownership_changes.PARTITIONS_AT_ONCE", partitions)
    assert changes(played(*STORY)) == changes(whole)
    assert moves(played(*STORY)) == moves(whole)


def test_a_piece_has_no_more_partitions_than_it_may_or_is_one_record() -> None:
    batch = pa.RecordBatch.from_pylist([*STORY, record(6, {"b": [0, 1, 2]}), record(7, {})], schema=SCHEMA)
    found = {
        at_once: [piece.column("log_offset").to_pylist() for piece in pieces(batch, at_once)] for at_once in (2, 3, 9)
    }
    assert found == {
        2: [[1], [2], [3, 4], [5], [6], [7]],
        3: [[1, 2], [3, 4], [5], [6, 7]],
        9: [[1, 2, 3, 4, 5], [6, 7]],
    }
    assert list(pieces(batch.slice(0, 0), 3)) == []


def test_of_nothing_comes_nothing() -> None:
    assert played() == []
