"""The lives of members of classic groups."""

from typing import Any

from pyspark.sql import SparkSession

from groupcoord.pipeline.schemas import MEMBERS, MODERN_GENERATIONS
from groupcoord.pipeline.tables.member_events import members
from groupcoord.pipeline.tables.ownership_changes import compare_assignments
from tests.pipeline.frames import frame, generation, member, rows


def lived(spark: SparkSession, *generations: dict[str, Any]) -> list[tuple[Any, ...]]:
    assignments = compare_assignments(frame(spark, MODERN_GENERATIONS, generations))
    found = members(assignments, frame(spark, MEMBERS, []))
    assert found.columns == MEMBERS.names
    return rows(found, "member", "log_offset", "event", "member_epoch", "partitions", "until_ts")


def test_a_member_has_a_row_for_each_generation_that_changes_what_it_has(spark: SparkSession) -> None:
    assert lived(
        spark,
        generation(10, 1, member("a", {"t": [0, 1]})),
        generation(20, 2, member("a", {"t": [0]}), member("b", {"t": [1]})),
        generation(30, 3, member("a", {"t": [0]}), member("b", {"t": [1]})),
        generation(40, 4, member("a", {"t": [1]})),
        generation(50, 5),
        generation(60, 6, member("a", {"t": [0, 1]})),
    ) == [
        ("a", 10, "joined", 1, 2, 20.0),
        ("a", 20, "settled", 2, 1, 40.0),
        ("a", 40, "settled", 4, 1, 50.0),
        ("a", 50, "left", None, 0, None),
        ("a", 60, "joined", 6, 2, None),
        ("b", 20, "joined", 2, 1, 40.0),
        ("b", 40, "left", None, 0, None),
    ]


def test_the_life_of_a_member_ends_in_one_of_three_ways(spark: SparkSession) -> None:
    static = [member(f"a-{number}", {"t": [0]}, instance="A") for number in (1, 2)]
    found = lived(
        spark,
        generation(10, 1, static[0], member("b", {"t": [1]})),
        generation(20, 1, static[1], member("b", {"t": [1]})),
        generation(30, 2, static[1]),
        generation(40, None),
        generation(41, 2, static[1], kind="consumer", appended=generation(40, None)["append_ts"]),
    )
    assert [row[:3] for row in found if row[3] is None] == [
        ("a-1", 20, "replaced"),
        ("a-2", 40, "converted"),
        ("b", 30, "left"),
    ]


def test_what_a_member_was_given_may_be_unknown(spark: SparkSession) -> None:
    unread = (*member("a", {})[:8], None, *member("a", {})[9:])
    assert lived(spark, generation(10, 1, unread), generation(20, None)) == [
        ("a", 10, "joined", 1, None, 20.0),
        ("a", 20, "left", None, 0, None),
    ]
