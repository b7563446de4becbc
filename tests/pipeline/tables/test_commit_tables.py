"""The current view, gaps, rates, zombies and lag of small histories."""

import random
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from groupcoord.pipeline.columnar_decoder import PLACES
from groupcoord.pipeline.schemas import (
    COMMIT_GAPS,
    COMMIT_PAUSES,
    COMMIT_RATES,
    COMMITS,
    CURRENT_GROUPS,
    CURRENT_OFFSETS,
    END_OFFSETS,
    LAG,
    LOG_PARTITIONS,
    MODERN_GENERATIONS,
    OWNERSHIP,
    ZOMBIES,
)
from groupcoord.pipeline.spark_session import QUICK
from groupcoord.pipeline.tables.commit_tables import (
    commit_gaps,
    commit_pauses,
    commit_rates,
    lag,
    open_transactions,
    zombies,
)
from groupcoord.pipeline.tables.consecutive_commits import (
    consecutive_commits,
    merge_statistics,
    partial_statistics,
    partition_statistics,
    whole_statistics,
)
from groupcoord.pipeline.tables.current_state import current_groups, current_offsets, latest_places
from groupcoord.pipeline.tables.log_coverage import buckets_of, in_buckets, log_partitions, merge_buckets, places_in
from groupcoord.pipeline.tables.ownership_changes import ownership
from tests.pipeline.frames import at, commit, frame, generation, member, once, rows, since


def current(commits: DataFrame) -> DataFrame:
    return once(current_offsets(commits, latest_places(commits, ["group", "topic", "partition"])))


class Stepped(NamedTuple):
    """What the steps before those of this file make of commits."""

    taken: DataFrame
    statistics: DataFrame
    changes: DataFrame
    told: DataFrame


def stepped(spark: SparkSession, commits: DataFrame, *generations: dict[str, Any]) -> Stepped:
    told = frame(spark, MODERN_GENERATIONS, generations)
    changes = once(ownership(told))
    statistics = once(partition_statistics(commits))
    return Stepped(once(consecutive_commits(commits, statistics, changes)), statistics, changes, told)


def test_the_last_record_of_each_key_counts(spark: SparkSession) -> None:
    commits = frame(
        spark,
        COMMITS,
        [
            commit(1, 10),
            commit(2, 20, partition=1),
            commit(3, None, partition=1),
            commit(4, 5),
            commit(5, None, group="h"),
            commit(6, 1, group="h"),
        ],
    )
    found = current(commits)
    assert found.columns == CURRENT_OFFSETS.names
    assert rows(found, "group", "partition", "committed_offset", "log_offset") == [("g", 0, 5, 4), ("h", 0, 1, 6)]


def test_groups_are_those_with_a_record_and_those_that_only_commit(spark: SparkSession) -> None:
    commits = frame(
        spark,
        COMMITS,
        [
            commit(1, 1, group="simple"),
            commit(2, 1),
            commit(3, 1, group="gone"),
            commit(9, 1, group="again"),
            commit(10, 1, group="new"),
        ],
    )
    generations = frame(
        spark,
        MODERN_GENERATIONS,
        [
            generation(1, 1, member("a", {"t": [0]})),
            generation(4, 2, member("b", {"t": [0]})),
            generation(5, None, group="gone"),
            generation(6, None, group="again"),
            generation(7, 3, group="empty"),
        ],
    )
    new = {"group": "new", "kind": "share", "state": "Stable", "generation": 3, "log_offset": 8}
    modern = frame(spark, CURRENT_GROUPS, [new])
    found = current_groups(commits, generations, latest_places(generations, ["group"]), modern)
    assert found.columns == CURRENT_GROUPS.names
    assert rows(found, "group", "kind", "state", "generation", "log_offset") == [
        ("again", "simple", "Empty", 0, None),
        ("empty", "classic", "Empty", 3, 7),
        ("g", "classic", "Stable", 2, 4),
        ("new", "share", "Stable", 3, 8),
        ("simple", "simple", "Empty", 0, None),
    ]


def test_a_group_in_two_partitions_of_the_log_is_what_was_appended_last(spark: SparkSession) -> None:
    """As after another number of partitions of the log: the higher offset and the later record are in different ones."""
    before, after = {"log_partition": 1}, {"log_partition": 0}
    commits = frame(
        spark,
        COMMITS,
        [
            commit(90, 5, when=at(1)) | before,
            commit(3, 7, when=at(2)) | after,
            commit(91, 5, group="simple", when=at(1)) | before,
            commit(4, 7, group="simple", when=at(2)) | after,
        ],
    )
    assert rows(current(commits), "group", "log_partition", "log_offset", "committed_offset") == [
        ("g", 0, 3, 7),
        ("simple", 0, 4, 7),
    ]
    generations = frame(
        spark,
        MODERN_GENERATIONS,
        [
            generation(80, 8, member("a", {"t": [0]}), appended=at(1)) | before,
            generation(2, 9, member("b", {"t": [0]}), appended=at(2)) | after,
            generation(99, None, group="simple", appended=at(1)) | before,
        ],
    )
    modern = frame(spark, CURRENT_GROUPS, [])
    found = current_groups(commits, generations, latest_places(generations, ["group"]), modern)
    assert rows(found, "group", "log_partition", "generation") == [("g", 0, 9), ("simple", 0, 0)]


def test_gaps_are_long_and_unusual(spark: SparkSession) -> None:
    steady = [commit(number, number, when=at(5 * number)) for number in range(40)]
    after = [commit(40 + number, 100 + number, when=at(400 + 5 * number)) for number in range(40)]
    slow = [commit(200 + number, number, partition=1, when=at(70 * number)) for number in range(9)]
    commits = frame(spark, COMMITS, [*steady, *after, *slow])
    taken, statistics, changes, _ = stepped(spark, commits)
    of_many = once(consecutive_commits(commits, statistics, changes, rows=QUICK, recent=0))
    assert (taken.where("is_after_gap").count(), of_many.where("is_after_gap").count()) == (9, 2)
    assert rows(once(commit_gaps(of_many, statistics, current(commits), at(700))), *COMMIT_GAPS.names) == rows(
        once(commit_gaps(taken, statistics, current(commits), at(700))), *COMMIT_GAPS.names
    )
    found = once(commit_gaps(taken, statistics, current(commits), at(700)))
    assert found.columns == COMMIT_GAPS.names
    assert rows(
        found, "partition", "log_offset", "from_ts", "to_ts", "gap_seconds", "offset_before", "offset_after"
    ) == [(0, 39, 195.0, 400.0, 205.0, 39, 100), (0, 79, 595.0, None, 105.0, 79 + 60, None)]
    assert rows(found, "usual_seconds")[0] == (pytest.approx(595 / 79),)


def test_gaps_that_overlap_in_time_are_one_pause_of_their_group(spark: SparkSession) -> None:
    def gap(group: str, partition: int, start: float, end: float | None) -> dict[str, Any]:
        said = {"group": group, "topic": "t", "partition": partition, "gap_seconds": float((end or 400) - start)}
        return said | {"from_ts": at(start), "to_ts": None if end is None else at(end)}

    asleep = [gap("app", partition, 10 + partition, 90 - partition) for partition in range(18)]
    chain = [gap("only", 0, 0, 70), gap("only", 0, 130, 190), gap("only", 1, 60, 130)]
    to_the_end = [gap("only", 0, 200, None), gap("only", 1, 300, None), gap("only", 2, 300, 360)]
    found = commit_pauses(frame(spark, COMMIT_GAPS, asleep + chain + to_the_end))
    assert found.columns == COMMIT_PAUSES.names
    assert sorted(rows(found, *COMMIT_PAUSES.names)) == [
        ("app", 10.0, 90.0, 80.0, 18),
        ("only", 0.0, 190.0, 190.0, 2),
        ("only", 200.0, None, 200.0, 3),
    ]


def test_following_in_stretches_finds_what_one_sort_of_all_commits_does(spark: SparkSession) -> None:
    """Stretches are of two offsets here, so that nearly everything has to be joined again."""
    chance = random.Random(5)
    said: list[dict[str, Any]] = []
    told: list[dict[str, Any]] = []
    seconds = 0.0
    for offset in range(300):
        seconds += chance.choice([1, 1, 1, 70])
        group = chance.choice(["g", "h"])
        if chance.random() < 0.15:
            given = [number for number in range(3) if chance.random() < 0.6]
            people = [member("a", {"t": given})] if chance.random() < 0.7 else []
            told.append(generation(offset, 1 + len(told), *people, group=group))
            continue
        committed = None if chance.random() < 0.1 else chance.randrange(20)
        row = commit(offset, committed, partition=chance.randrange(3), group=group, when=at(seconds))
        said.append(row | {"commit_ts": None} if chance.random() < 0.1 else row)
    commits = frame(spark, COMMITS, said)
    changes = once(ownership(frame(spark, MODERN_GENERATIONS, told)))
    found = once(consecutive_commits(commits, once(partition_statistics(commits)), changes, stretch_bits=1))
    names = ["log_offset", "previous_ms", "previous_offset", "previous_place", "is_recent", "is_after_gap"]
    expected = once(_by_one_sort(commits, changes))
    assert rows(found.where("is_recent or is_after_gap"), *names) == rows(
        expected.where("is_recent or is_after_gap"), *names
    )
    suspects = rows(found.where("is_suspect"), "log_offset", "previous_offset")
    assert suspects == rows(
        expected.where("mark % 2 = 1 or committed_offset < previous_offset"), "log_offset", "previous_offset"
    )
    assert any(mark[0] for mark in rows(expected.selectExpr("mark % 2 = 1 as odd").where("odd"), "odd"))


def _by_one_sort(commits: DataFrame, changes: DataFrame) -> DataFrame:
    """The plain way: all commits and all changes of owner in one order."""
    over = "over (partition by `group`, topic, partition order by log_offset)"
    key = ["group", "topic", "partition", "log_offset"]
    taken = commits.where("not is_tombstone").select(
        *key, F.unix_millis("commit_ts").alias("commit_ms"), "committed_offset"
    )
    changed = changes.select(*key, F.expr("log_offset * 2 + if(member is null, 1, 0)").alias("change"))
    return (
        taken.unionByName(changed, allowMissingColumns=True)
        .selectExpr(
            "*",
            f"lag(commit_ms) ignore nulls {over} as previous_ms",
            f"lag(committed_offset) ignore nulls {over} as previous_offset",
            f"lag(if(change is null, log_offset, null)) ignore nulls {over} as previous_place",
            f"lead(committed_offset, 10) ignore nulls {over} is null as is_recent",
            f"last(change, true) {over} as mark",
        )
        .where("change is null")
        .withColumn("is_after_gap", F.expr("coalesce(commit_ms - previous_ms >= 60000, false)"))
    )


def test_rates_are_by_window(spark: SparkSession) -> None:
    commits = frame(
        spark, COMMITS, [commit(1, 5), commit(2, 9), commit(3, 2, partition=1), commit(70, 1), commit(71, None)]
    )
    found = commit_rates(commits, commits)
    assert found.columns == COMMIT_RATES.names
    assert rows(found, "window_start", "window_end", "commits", "partitions", "advanced") == [
        (0.0, 60.0, 3, 2, 4),
        (60.0, 120.0, 1, 1, 0),
    ]


def test_zombies_are_commits_of_those_who_should_not(spark: SparkSession) -> None:
    commits = frame(
        spark,
        COMMITS,
        [
            commit(2, 10),  # of its owner
            commit(4, 11),  # given up in generation 2 and committed after it: as it should be
            commit(6, 30),  # of the new owner
            commit(7, 12),  # back behind it
            commit(8, 31),
            commit(10, 32),  # nobody has it, by generation 5
            commit(12, 33),  # nobody is there
        ],
    )
    taken, statistics, changes, told = stepped(
        spark,
        commits,
        generation(1, 1, member("a", {"t": [0, 1]})),
        generation(3, 2, member("a", {"t": [1]}), member("b", {})),
        generation(5, 3, member("a", {"t": [1]}), member("b", {"t": [0]})),
        generation(9, 4, member("a", {"t": [1]})),
        generation(9 + 0, 4, member("a", {"t": [1]}), group="other"),
        generation(11, 5),
    )
    found = zombies(taken, statistics, changes, told, commits)
    assert found.columns == ZOMBIES.names
    assert rows(
        found, "log_offset", "committed_offset", "previous_offset", "generation", "owner", "previous_owner", "reason"
    ) == [(7, 12, 30, 3, "b", "a", "back behind its owner"), (12, 33, 32, 5, None, "b", "nobody in the group")]


def test_a_consumer_group_has_zombies_by_what_its_members_really_had(spark: SparkSession) -> None:
    commits = frame(spark, COMMITS, [commit(2, 10), commit(6, 30), commit(7, 12), commit(10, 31)])
    told = frame(
        spark,
        MODERN_GENERATIONS,
        [
            generation(1, 2, member("a", {"T": [0]}), kind="consumer"),
            generation(3, 3, member("a", {}), member("b", {"T": [0]}), kind="consumer"),
            generation(9, 4, kind="consumer"),
        ],
    )
    place = {"log_partition": 0, "group": "g", "kind": "consumer", "topic": "t", "partition": 0, "is_revoking": False}
    owners = [(1, "a", None), (4, None, "a"), (5, "b", "a"), (8, None, "b")]
    had = [
        {**place, "log_offset": offset, "append_ts": at(offset), "member": owner, "previous_member": before}
        for offset, owner, before in owners
    ]
    changes = once(ownership(told).unionByName(frame(spark, OWNERSHIP, had)))
    statistics = once(partition_statistics(commits))
    taken = once(consecutive_commits(commits, statistics, changes))
    found = zombies(taken, statistics, changes, told, commits)
    assert rows(found, "log_offset", "kind", "generation", "owner", "reason") == [
        (7, "consumer", 3, "b", "back behind its owner"),
        (10, "consumer", 4, None, "nobody in the group"),
    ]


def test_a_commit_for_a_partition_that_nobody_has_any_more_is_odd(spark: SparkSession) -> None:
    commits = frame(spark, COMMITS, [commit(2, 10), commit(5, 11)])
    taken, statistics, changes, told = stepped(
        spark,
        commits,
        generation(1, 1, member("a", {"t": [0, 1]})),
        generation(3, 2, member("a", {"t": [1]})),
        generation(4, 3, member("a", {"t": [1]}), member("b", {})),
    )
    found = zombies(taken, statistics, changes, told, commits)
    assert rows(found, "log_offset", "generation", "reason") == [(5, 3, "nobody has the partition")]


def test_lag_and_burrows_status(spark: SparkSession) -> None:
    """Each case is a group with a topic of its own: its commits, a second apart; ends of the topic; now; lag and status."""
    cases: list[tuple[list[int], list[tuple[int, float | None]], float, tuple[int | None, str | None]]] = [
        ([1, 2, 3], [(3, None)], 4, (0, "OK")),
        ([1, 2, 3], [(9, None)], 4, (6, "OK")),
        ([1, 2, 3], [(9, None)], 100, (6, "STOP")),
        ([1, 2, 3], [(3, 90), (9, 95)], 100, (6, "OK")),
        ([1, 3, 2], [(9, None)], 4, (7, "REWIND")),
        ([1, 3, 2, 3], [(9, None)], 5, (6, "OK")),
        ([3, 3, 2], [(3, 0), (9, 2.5)], 4, (7, "REWIND")),
        ([2, 2, 2], [(9, None)], 4, (7, "STALL")),
        ([2, 2, 2], [(9, 0), (10, 2.5)], 4, (8, "STALL")),
        ([2, 3, 4], [(9, 0), (19, 1.5), (29, 2.5)], 4, (25, "WARN")),
        ([2, 3, 4], [(9, 0), (10, 2.5)], 4, (6, "OK")),
        ([2, 3, 4], [(2, 0), (19, 1.5), (29, 2.5)], 4, (25, "OK")),
        ([1, 2, 3], [], 4, (None, None)),
    ]
    names = [f"case-{number}" for number in range(len(cases))]
    committed = [
        commit(100 * case + number, offset, group=names[case], topic=names[case], when=at(1 + number))
        for case, (offsets, _, _, _) in enumerate(cases)
        for number, offset in enumerate(offsets)
    ]
    observed = [
        {"topic": name, "partition": 0, "end_offset": end, "at": None if when is None else at(when)}
        for name, (_, ends, _, _) in zip(names, cases, strict=True)
        for end, when in ends
    ]
    commits, known = frame(spark, COMMITS, committed), frame(spark, END_OFFSETS, observed)
    taken, statistics, _, _ = stepped(spark, commits)
    offsets = current(commits)
    for now in {now for _, _, now, _ in cases}:
        found = lag(offsets, taken, statistics, known, at(now))
        assert found.columns == LAG.names
        status = {row[0]: row[1:] for row in rows(found, "group", "lag", "status")}
        for name, (_, _, when, expected) in zip(names, cases, strict=True):
            assert when != now or status[name] == expected, name


def test_burrow_looks_back_on_ten_commits(spark: SparkSession) -> None:
    commits = frame(spark, COMMITS, [commit(0, 99), *(commit(1 + number, number) for number in range(10))])
    taken, statistics, _, _ = stepped(spark, commits)
    known = frame(spark, END_OFFSETS, [{"topic": "t", "partition": 0, "end_offset": 50}])
    assert rows(lag(current(commits), taken, statistics, known, at(11)), "status") == [("OK",)]


def test_lag_in_time_is_the_age_of_the_first_record_that_is_not_read(spark: SparkSession) -> None:
    """Each case is a topic of its own, in which 5 is committed: what is known of the topic, and its lag in seconds at 100."""
    cases: dict[str, tuple[list[dict[str, Any]], float | None]] = {
        "nothing is known": ([], None),
        "all is read": ([{"end_offset": 5}], 0.0),
        "the record was fetched": ([{"end_offset": 9, "unread": [(4, at(1)), (5, at(30)), (6, at(99))]}], 70.0),
        "it is younger than now": ([{"end_offset": 9, "unread": [(5, at(101))]}], 0.0),
        "there are only markers": ([{"end_offset": 9, "unread": [(5, None)]}], 0.0),
        "it was not fetched": ([{"end_offset": 9, "unread": [(4, at(1))]}], None),
        "the newest look counts": (
            [{"end_offset": 9, "at": at(90), "unread": [(5, at(40))]}, {"end_offset": 7, "at": at(50), "unread": []}],
            60.0,
        ),
        "it came between two looks": (
            [{"end_offset": end, "at": at(when)} for end, when in ((1, 0), (3, 20), (7, 40), (9, 80))],
            70.0,
        ),
        "the end was right there": ([{"end_offset": end, "at": at(when)} for end, when in ((5, 20), (7, 40))], 80.0),
        "it is older than all looks": ([{"end_offset": end, "at": at(when)} for end, when in ((6, 20), (7, 40))], None),
        "it is younger than all looks": ([{"end_offset": 3, "at": at(20)}, {"end_offset": 9}], None),
        "the topic was made anew": (
            [{"end_offset": end, "at": at(when)} for end, when in ((50, 0), (4, 20), (6, 60))],
            60.0,
        ),
        "numbers that are too large": (
            [{"end_offset": end, "at": at(when)} for end, when in ((-(1 << 63), 0), ((1 << 63) - 1, 80))],
            60.0,
        ),
    }
    commits = frame(spark, COMMITS, [commit(place, 5, topic=topic) for place, topic in enumerate(cases)])
    known = frame(
        spark,
        END_OFFSETS,
        [{"topic": topic, "partition": 0, **one} for topic, (looks, _) in cases.items() for one in looks],
    )
    taken, statistics, _, _ = stepped(spark, commits)
    found = lag(current(commits), taken, statistics, known, at(100))
    assert {row["topic"]: row["lag_seconds"] for row in found.collect()} == {
        topic: expected for topic, (_, expected) in cases.items()
    }


def test_a_group_waits_for_an_open_transaction_when_it_has_read_up_to_it(spark: SparkSession) -> None:
    """Which is at offset 10, behind the marker at 9, and began at 50 s."""
    began = {"stable_offset": 10, "producer_id": 7, "transactional_id": "payments", "since": at(50)}
    unread = [
        {"committed_offset": 9, "at": at(50)},  # only the marker is between
        {"committed_offset": 8, "at": at(40)},
        {"committed_offset": 11, "at": at(60)},
    ]
    end = {"topic": "t", "partition": 0, "end_offset": 20, "unread": unread, "open_transaction": began}
    committed = {"at it": 10, "before the marker": 9, "reads": 8, "unknown": 7, "reads uncommitted": 11}
    places = [
        {"group": group, "topic": "t", "partition": 0, "committed_offset": offset}
        for group, offset in committed.items()
    ]
    found = open_transactions(frame(spark, END_OFFSETS, [end]), frame(spark, CURRENT_OFFSETS, places))
    assert rows(
        found, "stable_offset", "end_offset", "producer_id", "transactional_id", "since", "groups", "waiting"
    ) == [(10, 20, 7, "payments", 50.0, sorted(committed), ["at it", "before the marker"])]


def test_records_are_lost_where_the_log_begins_behind_what_is_committed(spark: SparkSession) -> None:
    starts = {"begins behind it": 8, "begins there": 5, "begins before it": 2, "nobody knows": None}
    commits = frame(spark, COMMITS, [commit(place, 5, topic=topic) for place, topic in enumerate(starts)])
    known: list[dict[str, Any]] = [
        {"topic": one, "partition": 0, "end_offset": 9, "log_start_offset": start} for one, start in starts.items()
    ]
    known.append({"topic": "begins there", "partition": 0, "end_offset": 9, "log_start_offset": 1, "at": at(1)})
    taken, statistics, _, _ = stepped(spark, commits)
    found = lag(current(commits), taken, statistics, frame(spark, END_OFFSETS, known), at(10))
    assert {row["topic"]: (row["log_start_offset"], row["records_lost"], row["lag"]) for row in found.collect()} == {
        "begins behind it": (8, 3, 4),
        "begins there": (5, 0, 4),
        "begins before it": (2, 0, 4),
        "nobody knows": (None, None, 4),
    }


def test_coverage_tells_from_where_on_nothing_is_missing(spark: SparkSession) -> None:
    offsets = {0: [0, 1, 2], 1: [5, 6, 998, 1000, 1001], 2: [3, 999, 1000, 2500, 2501], 3: [7, 8, 10], 4: [0, 2]}
    hidden = {4: [3, 1]}
    columns = "log_partition int, log_offset bigint, append_ts timestamp"
    shown, unseen = (
        spark.createDataFrame([(number, one, at(one)) for number, some in places.items() for one in some], columns)
        for places in (offsets, hidden)
    )
    asked: list[Any] = []

    def places(buckets: Any) -> Any:
        asked.append(buckets.to_pylist())
        return places_in(shown.union(unseen), spark.createDataFrame(buckets)).toArrow()

    parts = [buckets_of(shown, is_hidden=False), buckets_of(unseen, is_hidden=True)]
    # As tasks count them, some after the other.
    parts += [
        in_buckets(pa.table([[9] * 2, [low, low + 1], [at(low)] * 2], names=PLACES), is_hidden=False) for low in (2, 0)
    ]
    found = log_partitions(merge_buckets(pa.concat_tables(parts)), places)
    assert asked == [[{"log_partition": 3, "bucket": 0}]]
    assert found.column_names == LOG_PARTITIONS.names
    named = ("log_partition", "first_offset", "last_offset", "records", "hidden", "missing", "whole_from_offset")
    assert [tuple(row[name] for name in named) for row in found.to_pylist()] == [
        (0, 0, 2, 3, 0, 0, 0),
        (1, 5, 1001, 5, 0, 992, 1000),
        (2, 3, 2501, 5, 0, 2494, 2500),
        (3, 7, 10, 3, 0, 1, 10),
        (4, 0, 3, 2, 2, 0, 0),  # a marker and an aborted record among them
        (9, 0, 3, 4, 0, 0, 0),
    ]
    times = [[since(row[name]) for name in ("first_ts", "last_ts", "whole_from_ts")] for row in found.to_pylist()]
    assert times == [[0, 2, 0], [5, 1001, 1000], [3, 2501, 2500], [7, 10, 10], [0, 3, 0], [0, 2, 0]]


def test_statistics_that_tasks_have_counted_are_those_of_all_commits(spark: SparkSession) -> None:
    commits = frame(
        spark,
        COMMITS,
        [
            *(commit(offset, offset * 10, partition=offset % 3) for offset in range(12)),
            commit(12, None, partition=1),
            commit(13, None, group="gone"),
            commit(14, 7, group="h"),
        ],
    )
    batches = commits.coalesce(1).toArrow().to_batches(max_chunksize=4)
    halves = [merge_statistics(pa.concat_tables(map(partial_statistics, some))) for some in (batches[:2], batches[2:])]
    found = whole_statistics(spark.createDataFrame(pa.concat_tables(halves)))
    expected = partition_statistics(commits)
    assert found.columns == expected.columns
    assert sorted(map(str, found.collect())) == sorted(map(str, expected.collect()))
