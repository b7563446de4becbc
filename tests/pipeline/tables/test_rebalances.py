"""Ownership, rebalances, causes, storms and skew of small histories."""

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from groupcoord.pipeline.schemas import CAUSE_KINDS, MODERN_GENERATIONS, OWNERSHIP, REBALANCES, SKEW, STORMS
from groupcoord.pipeline.tables.ownership_changes import compare_assignments, ownership
from groupcoord.pipeline.tables.rebalances import rebalances, skew, storms
from tests.pipeline.frames import at, frame, generation, member, once, rows


def history(spark: SparkSession, *generations: dict[str, Any]) -> DataFrame:
    return frame(spark, MODERN_GENERATIONS, generations)


def compared(spark: SparkSession, *generations: dict[str, Any]) -> DataFrame:
    found = once(rebalances(compare_assignments(history(spark, *generations))))
    assert found.columns == REBALANCES.names
    return found


EAGER = (
    generation(10, 1, member("a", {"t": [0, 1, 2, 3]})),
    generation(20, 3, member("a", {"t": [0, 1]}), member("b", {"t": [2, 3]}), state_ts=at(19.5)),
    generation(30, 4, member("a", {"t": [2, 3]}), member("b", {"t": [0, 1]})),
    generation(40, 5),
)


def test_one_generation_is_compared_with_the_one_before(spark: SparkSession) -> None:
    found = compared(spark, *EAGER)
    assert rows(
        found, "generation", "previous_generation", "hidden_generations", "members_before", "members_after"
    ) == [(1, None, None, 0, 1), (3, 1, 1, 1, 2), (4, 3, 0, 2, 2), (5, 4, 0, 2, 0)]
    assert rows(found, "generation", "partitions_total", "moved", "kept", "moved_needlessly", "imbalance") == [
        (1, 4, 0, 0, 0, 0),
        (3, 4, 2, 2, 0, 0),
        (4, 4, 4, 0, 4, 0),
        (5, 0, 0, 0, 0, 0),
    ]
    assert rows(found, "generation", "joined", "left", "seconds_since_previous", "assign_and_sync_ms") == [
        (1, ["a"], [], None, None),
        (3, ["b"], [], 10.0, 500),
        (4, [], [], 10.0, None),
        (5, [], ["a", "b"], 10.0, None),
    ]
    assert [cause for _, cause in rows(found, "generation", "likely_cause")] == [
        "the group began: a joined",
        "b joined; before it, 1 generation that left no record",
        "nobody came or went: a member joined again, as after a poll that took too long or a lost connection",
        "everybody left or timed out; the last: a, b",
    ]


def test_a_cooperative_rebalance_does_not_hide_what_moved(spark: SparkSession) -> None:
    protocol = {"protocol": "cooperative-sticky"}
    found = compared(
        spark,
        generation(1, 1, member("a", {"t": [0, 1, 2, 3]}), **protocol),
        generation(2, 2, member("a", {"t": [0, 1]}), member("b", {}), **protocol),
        generation(3, 3, member("a", {"t": [0, 1]}), member("b", {"t": [2, 3]}), **protocol),
    )
    assert rows(found, "generation", "partitions_total", "moved", "kept", "moved_needlessly") == [
        (1, 4, 0, 0, 0),
        (2, 2, 0, 2, 0),
        (3, 4, 2, 2, 0),
    ]
    assert rows(found, "generation", "likely_cause")[2] == (
        3,
        "second step of a cooperative rebalance: what had been given up was handed out",
    )


def test_what_could_have_stayed_moved_needlessly(spark: SparkSession) -> None:
    """Two of four partitions must move to the newcomer; here three did."""
    found = compared(
        spark,
        generation(1, 1, member("a", {"t": [0, 1, 2]}), member("b", {"t": [3, 4, 5]})),
        generation(2, 2, member("a", {"t": [0, 1]}), member("b", {"t": [2, 3]}), member("c", {"t": [4, 5]})),
    )
    assert rows(found, "generation", "moved", "kept", "moved_needlessly")[1] == (2, 3, 3, 1)


def test_a_static_member_that_comes_back_neither_left_nor_joined(spark: SparkSession) -> None:
    found = compared(
        spark,
        generation(1, 1, member("a-1", {"t": [0]}, instance="A"), member("b", {"t": [1]})),
        generation(2, 1, member("a-2", {"t": [0]}, instance="A"), member("b", {"t": [1]})),
        generation(3, 2, member("a-2", {"t": [0, 1]}, instance="A")),
    )
    assert rows(found, "generation", "joined", "left", "moved", "kept") == [
        (1, ["a-1", "b"], [], 0, 0),
        (2, [], ["b"], 1, 1),
    ]


def test_a_log_that_begins_in_the_middle_says_so(spark: SparkSession) -> None:
    found = compared(spark, generation(7, 12, member("a", {"t": [0]})))
    assert rows(found, "members_before", "joined", "left", "likely_cause") == [
        (None, None, None, "the log begins here: what was before is compacted away")
    ]


def test_the_making_of_a_group_is_no_rebalance_and_a_removed_group_begins_anew(spark: SparkSession) -> None:
    found = compared(
        spark,
        generation(1, 0),
        generation(2, 1, member("a", {"t": [0]})),
        generation(3, None),
        generation(4, 1, member("b", {"t": [0]})),
    )
    assert rows(found, "log_offset", "members_before", "likely_cause") == [
        (2, 0, "the group began: a joined"),
        (4, 0, "the group began: b joined"),
    ]


def test_each_cause_has_a_kind_and_a_sentence(spark: SparkSession) -> None:
    """The kind does not depend on the names of the members: clients are called ``joined-1`` and the like."""
    one = member("joined-1", {"t": [0]})
    restarted = [member(f"app-{number}", {"t": [0]}, client="joined-app") for number in (1, 2)]
    crowd = [member(name, {"t": [number]}) for number, name in enumerate("bcdef")]
    cooperative = {"protocol": "cooperative-sticky"}
    consumer, share = {"kind": "consumer"}, {"kind": "share"}
    histories: list[tuple[str, str, list[tuple[int, list[Any], dict[str, Any]]]]] = [
        ("log_begins", "the log begins here: what was before is compacted away", [(7, [one], {})]),
        ("became_consumer", "a classic group became a consumer group", [(4, [one], {}), (5, [one], consumer)]),
        ("became_classic", "a consumer group became a classic one", [(4, [one], consumer), (5, [one], {})]),
        ("empty_join", "a join phase ended without members; before it, 1 generation that left no record",
         [(1, [], {}), (3, [], {})]),
        ("group_emptied", "everybody left or timed out; the last: joined-1", [(1, [one], {}), (2, [], {})]),
        ("group_started", "the group began: joined-1 joined", [(1, [one], {})]),
        ("group_refilled", "joined-1 joined a group that was empty", [(1, [], {}), (2, [one], {})]),
        ("assignor_changed", "the assignor changed from range to sticky",
         [(1, [one], {}), (2, [one], {"protocol": "sticky"})]),
        ("members_restarted", "joined-app restarted: the same client ids and hosts under new member ids",
         [(1, restarted[:1], {}), (2, restarted[1:], {})]),
        ("members_joined_and_left", "b, c, d and 2 more joined; joined-1 left or timed out",
         [(1, [one], {}), (2, crowd, {})]),
        ("members_joined", "b joined", [(1, [one], {}), (2, [one, crowd[0]], {})]),
        ("members_left", "joined-1 left or timed out", [(1, [one, crowd[0]], {}), (2, [crowd[0]], {})]),
        ("subscription_changed", "the subscription changed: now also u",
         [(1, [one], {}), (2, [member("joined-1", {"t": [0], "u": [0]})], {})]),
        ("static_member_returned", "A came back under another member id",
         [(1, [member("a-1", {"t": [0]}, instance="A")], {}), (2, [member("a-2", {"t": [0]}, instance="A")], {})]),
        ("cooperative_second_step", "second step of a cooperative rebalance: what had been given up was handed out",
         [(1, [one], cooperative), (2, [member("joined-1", {"t": [0, 1]})], cooperative)]),
        ("partitions_added", "there are more partitions than before",
         [(1, [one], {}), (2, [member("joined-1", {"t": [0, 1]})], {})]),
        ("partitions_removed", "there are fewer partitions than before",
         [(1, [member("joined-1", {"t": [0, 1]})], {}), (2, [one], {})]),
        ("topics_changed", "topics came or went, or have other partitions",
         [(2, [one], {**share, "metadata_hash": 1}), (3, [one], {**share, "metadata_hash": 2})]),
        ("other", "nobody came or went, and nobody asked for anything else; before it, 1 epoch without a target assignment",
         [(2, [one], {**share, "metadata_hash": 1}), (4, [one], {**share, "metadata_hash": 1})]),
        ("member_rejoined",
         "nobody came or went: a member joined again, as after a poll that took too long or a lost connection",
         [(1, [one], {}), (2, [one], {})]),
    ]  # fmt: skip
    assert [kind for kind, _, _ in histories] == list(CAUSE_KINDS)
    records = [
        generation(100 * group + place, number, *members, **{"group": kind, **said})
        | {"metadata_hash": said.get("metadata_hash")}
        for group, (kind, _, history) in enumerate(histories)
        for place, (number, members, said) in enumerate(history)
    ]
    last = {
        row[0]: row[2:] for row in rows(compared(spark, *records), "group", "generation", "cause_kind", "likely_cause")
    }
    assert last == {kind: (kind, sentence) for kind, sentence, _ in histories}


def test_ownership_has_a_row_for_each_change(spark: SparkSession) -> None:
    told = history(
        spark,
        generation(1, 1, member("a", {"t": [0, 1]})),
        generation(2, 2, member("a", {"t": [0]}), member("b", {})),
        generation(3, 3, member("a", {"t": [0]}), member("b", {"t": [1]})),
        generation(4, None),
    )
    found = ownership(told)
    assert found.columns == OWNERSHIP.names
    assert rows(found, "partition", "log_offset", "generation", "member", "previous_member", "until_ts") == [
        (0, 1, 1, "a", None, 4.0),
        (0, 4, None, None, "a", None),
        (1, 1, 1, "a", None, 2.0),
        (1, 2, 2, None, "a", 3.0),
        (1, 3, 3, "b", "a", 4.0),
        (1, 4, None, None, "b", None),
    ]


def test_a_storm_is_five_rebalances_none_more_than_a_minute_after_the_last(spark: SparkSession) -> None:
    calm = [
        generation(1 + number, 1 + number, member("a", {"t": [0]}), appended=at(1000 * number)) for number in range(3)
    ]
    busy = [
        generation(10 + number, 10 + number, member("a", {"t": [0]}), appended=at(9000 + 60 * number))
        for number in range(5)
    ]
    found = storms(compared(spark, *calm, *busy))
    assert found.columns == STORMS.names
    assert rows(
        found, "group", "from", "to", "rebalances", "hidden_generations", "members_lowest", "members_highest"
    ) == [("g", 9000.0, 9240.0, 5, 6, 1, 1)]
    [causes] = [row[0] for row in rows(found, "likely_causes")]
    assert causes[0].startswith("nobody came or went")
    assert rows(found, "cause_kind", "of_cause_kind") == [("member_rejoined", 5)]
    assert storms(compared(spark, *calm, *busy[:4])).count() == 0


def test_a_storm_names_who_came_and_went_in_the_rebalances_of_its_most_frequent_kind(spark: SparkSession) -> None:
    restarts = [
        generation(
            10 + number,
            10 + number,
            member("id-of-fred", {"t": [0]}, client="bob"),
            *(member(f"{number // every}-{name}", {"t": [0]}, client=name) for name, every in LIVES.items()),
            appended=at(10 * number),
        )
        for number in range(9)
    ]
    found = storms(compared(spark, *restarts))
    assert rows(found, "cause_kind", "of_cause_kind", "came_and_went") == [
        ("members_restarted", 8, [("bob", 2), ("carl", 1), ("dora", 1), ("emil", 1)])
    ]


LIVES = {"emil": 5, "dora": 4, "carl": 2, "fred": 9, "bob": 1}
"""Client ids, and for how many generations each lives under one member id."""


def test_members_of_any_kind_have_client_ids_and_instance_ids_in_what_is_said_of_a_storm(spark: SparkSession) -> None:
    pods = [member(f"pod-{number}", {"t": [number]}, client="app") for number in range(6)]
    keeper = member("unseen", {"t": [9]}, client="app", instance="keeper")
    found = compared(
        spark,
        *(
            generation(10 + number, 10 + number, *pods[:number], keeper, kind="share", appended=at(number))
            for number in range(7)
        ),
        generation(20, 20, *pods, kind="share", appended=at(7)),
    )
    assert [names for _, names in rows(found, "generation", "came_and_went")] == [
        None,
        *([("app", number)] for number in range(1, 7)),
        [("keeper", 1)],
    ]
    assert rows(storms(found), "kind", "cause_kind", "of_cause_kind", "came_and_went") == [
        ("share", "members_joined", 6, [("app", 6)])
    ]


def test_members_that_come_one_by_one_into_a_new_group_are_no_storm(spark: SparkSession) -> None:
    def come(first: int) -> list[dict[str, Any]]:
        return [
            generation(
                first + number,
                first + number,
                *(member(f"m{one}", {"t": [one]}) for one in range(number + 1)),
                appended=at(10 * (first + number)),
            )
            for number in range(6)
        ]

    assert storms(compared(spark, *come(1))).count() == 0
    leaving = generation(7, 7, member("m0", {"t": [0]}), appended=at(70))
    assert rows(storms(compared(spark, *come(1), leaving)), "rebalances", "cause_kind", "of_cause_kind") == [
        (7, "members_joined", 5)
    ]


def test_skew_counts_what_each_member_was_given(spark: SparkSession) -> None:
    told = history(spark, generation(1, 1, member("a", {"t": [0, 1], "u": [3]}), member("b", {})), generation(2, None))
    found = skew(compare_assignments(told))
    assert found.columns == SKEW.names
    assert rows(found, "member", "partitions", "fair_share") == [("a", 3, 1.5), ("b", 0, 1.5)]
