"""What-if as Spark does it: from small frames, from recordings, and beside the same in plain Python."""

import random
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from groupcoord.cli import pipeline as cli
from groupcoord.cli.main import main
from groupcoord.pipeline.assignor_replay.assignor_choice import RECORDED_HISTORY, choices
from groupcoord.pipeline.assignor_replay.replay import rows as play
from groupcoord.pipeline.assignor_replay.what_if_tables import moments, partition_counts, what_if, what_if_summary
from groupcoord.pipeline.progress import RunProgress
from groupcoord.pipeline.run import RunOptions, run_pipeline
from groupcoord.pipeline.run_output import RunOutput
from groupcoord.pipeline.schemas import COMMITS, END_OFFSETS, MODERN_GENERATIONS, WHAT_IF, WHAT_IF_SUMMARY
from groupcoord.pipeline.sources.factory import plan_source
from groupcoord.pipeline.tables.consecutive_commits import partition_statistics
from tests.pipeline.frames import START, at, commit, frame, generation, member, once, rows

ROOT = Path(__file__).resolve().parents[2]
JAVA = Path(__file__).parent / "recordings" / "java-clients"
KAFKAS = ("range", "roundrobin", "sticky", "cooperative-sticky")
COSTS = ("partitions_total", "moved", "kept", "moved_needlessly", "imbalance")


def owning(said: tuple[Any, ...], owned: dict[str, list[int]]) -> tuple[Any, ...]:
    """The member ``said``, which says that it still owns that."""
    return (*said[:7], list(owned.items()), *said[8:])


def history(spark: SparkSession, *generations: dict[str, Any]) -> DataFrame:
    return frame(spark, MODERN_GENERATIONS, generations)


def played(spark: SparkSession, told: DataFrame, said: str) -> DataFrame:
    counts = once(partition_counts(partition_statistics(frame(spark, COMMITS, [])), told, None))
    found = once(what_if(told, counts, choices(said), 2))
    assert found.columns == WHAT_IF.names
    return found


EAGER = (
    generation(10, 1, member("a", {"t": [0, 1, 2, 3]}), state_ts=at(9)),
    generation(20, 2, member("a", {"t": [0, 1]}), member("b", {"t": [2, 3]}), state_ts=at(19.5)),
    generation(30, 3, member("b", {"t": [0, 1, 2, 3]})),
    generation(40, 4),
)


def test_a_history_is_played_with_each_assignor_and_as_it_was(spark: SparkSession) -> None:
    found = played(spark, history(spark, *EAGER), "range,cooperative-sticky")
    names = ("log_offset", "assignor", "at", "generation", "members", *COSTS)
    assert rows(found, *names) == [
        (10, "as it was", 10.0, 1, 1, 4, 0, 0, 0, 0),
        (10, "cooperative-sticky", 10.0, 1, 1, 4, 0, 0, 0, 0),
        (10, "range", 10.0, 1, 1, 4, 0, 0, 0, 0),
        (20, "as it was", 20.0, 2, 2, 4, 2, 2, 0, 0),
        (20, "cooperative-sticky", 20.0, 2, 2, 4, 2, 2, 0, 0),
        (20, "range", 20.0, 2, 2, 4, 2, 2, 0, 0),
        (30, "as it was", 30.0, 3, 1, 4, 2, 2, 0, 0),
        (30, "cooperative-sticky", 30.0, 3, 1, 4, 2, 2, 0, 0),
        (30, "range", 30.0, 3, 1, 4, 2, 2, 0, 0),
    ]
    pauses = ("log_offset", "assignor", "pauses", "rebalances", "paused_partition_seconds", "agrees", "problem")
    assert rows(found, *pauses) == [
        (10, "as it was", 0, 1, 0.0, None, None),
        (10, "cooperative-sticky", 0, 1, 0.0, None, None),
        (10, "range", 0, 1, 0.0, True, None),
        (20, "as it was", 4, 1, 2.0, None, None),
        (20, "cooperative-sticky", 2, 2, 1.0, None, None),
        (20, "range", 4, 1, 2.0, True, None),
        (30, "as it was", 4, 1, None, None, None),
        (30, "cooperative-sticky", 2, 1, None, None, None),
        (30, "range", 4, 1, None, True, None),
    ]


def test_a_row_for_each_group_and_assignor_adds_them_up(spark: SparkSession) -> None:
    silent = generation(25, 1, (*member("x", {"t": [0]})[:6], None, None, None, None, None), group="h")
    found = what_if_summary(played(spark, history(spark, *EAGER, silent), "range"))
    assert found.columns == WHAT_IF_SUMMARY.names
    assert rows(found, *WHAT_IF_SUMMARY.names) == [
        ("g", "as it was", 3, 0, 4, 0, 8, 3, 2.0, 0.0, 0, None),
        ("g", "range", 3, 0, 4, 0, 8, 3, 2.0, 0.0, 0, 3),
        ("h", "as it was", 0, 1, 0, 0, 0, 0, None, None, None, None),
        ("h", "range", 0, 1, 0, 0, 0, 0, None, None, None, None),
    ]


def test_a_record_is_seen_beside_the_one_before_and_the_one_after(spark: SparkSession) -> None:
    """a and b; then c, who comes in two steps; then d, whose second step e joins."""
    full = {"t": [0, 1, 2, 3, 4, 5]}
    alone, half = member("a", full), owning(member("a", {"t": [0, 1, 2]}), full)
    kept = owning(member("a", {"t": [0, 1, 2]}), {"t": [0, 1, 2]})
    less = owning(member("a", {"t": [0, 1]}), {"t": [0, 1, 2]})
    told = history(
        spark,
        generation(0, 0),
        generation(1, 1, alone),
        generation(2, 2, half, member("c", {}, topics=["t"])),
        generation(3, 3, kept, member("c", {"t": [3, 4, 5]})),
        generation(4, 3, kept, member("c", {"t": [3, 4, 5]})),
        generation(5, 4, less, member("c", {"t": [3, 4, 5]}), member("d", {}, topics=["t"])),
        generation(
            6, 5, kept, member("c", {"t": [3, 4, 5]}), member("d", {}, topics=["t"]), member("e", {}, topics=["t"])
        ),
        generation(7, 8, less, member("c", {"t": [3, 4, 5]})),
        generation(8, 10, kept, member("c", {"t": [3, 4, 5]})),
        generation(9, None),
        generation(10, 1, alone),
    )
    counts = spark.createDataFrame([("t", 5, 6)], "topic string, since bigint, count int")
    found = once(moments(told, counts, choices("range")))
    real = found.where("assignor = 'as it was'")
    assert rows(real, "log_offset", "begins", "follows", "goes_on") == [
        (-1, None, None, None),
        (0, True, False, False),
        (1, True, False, False),
        (2, True, False, False),
        (3, True, True, False),
        (4, False, False, False),
        (5, True, False, True),
        (6, True, False, False),
        (7, True, False, False),
        (8, True, False, False),
        (9, False, False, False),
        (10, True, False, False),
    ]
    assert rows(real.where("topic is not null"), "topic", "partitions", "at") == [("t", 6, 5)]
    sent = found.selectExpr("assignor", "log_offset", "members[0].assigned as assigned", "members[0].owned as owned")
    assert [(one["assignor"], len(one["assigned"])) for one in sent.where("log_offset = 1").collect()] == [
        ("as it was", 1),
        ("range", 1),
    ]
    as_sticky = moments(told, counts, choices("sticky")).where("log_offset = 1 and assignor = 'sticky'")
    assert as_sticky.selectExpr("members[0].assigned is null and members[0].owned is null").first()[0]


def test_groups_of_other_clients_are_not_played(spark: SparkSession) -> None:
    connect = {**generation(1, 1, member("a", {"t": [0]})), "protocol_type": "connect"}
    assert played(spark, history(spark, connect), "range").count() == 0


def test_groups_of_kip_848_are_played_with_the_others(spark: SparkSession) -> None:
    modern = history(
        spark,
        generation(1, 2, member("a", {"t": [0, 1]}), protocol="uniform", kind="consumer", state_ts=at(1)),
        generation(
            2, 3, member("a", {"t": [0]}), member("b", {"t": [1]}), protocol="uniform", kind="consumer", state_ts=at(2)
        ),
    )
    found = played(spark, modern, "sticky")
    assert rows(found, "generation", "assignor", "moved", "pauses", "rebalances", "paused_partition_seconds") == [
        (2, "as it was", 0, 0, 1, None),
        (2, "sticky", 0, 0, 1, None),
        (3, "as it was", 1, 1, 1, None),
        (3, "sticky", 1, 2, 1, None),
    ]


def micros(seconds: float) -> int:
    return int((START.timestamp() + seconds) * 1_000_000)


def test_topics_have_as_many_partitions_as_were_ever_seen(spark: SparkSession) -> None:
    committed = frame(
        spark,
        COMMITS,
        [
            commit(1, 5, partition=2, when=at(50)),
            commit(2, 5, partition=1, when=at(5)),
            commit(3, None, partition=9, when=at(5)),
            commit(4, 5, topic="u", partition=0, when=at(7)),
            {**commit(5, 5, topic="v", partition=3), "append_ts": None, "commit_ts": None},
            commit(6, 5, topic="w", partition=(1 << 31) - 1),
        ],
    )
    commits = once(partition_statistics(committed))
    given = generation(20, 1, member("a", {"t": [0, 3]}), member("b", {"t": [1]}))
    told = history(spark, given, generation(30, None), generation(60, 2, member("a", {"t": [4]}), kind="consumer"))
    expected = [("t", micros(5), 2), ("t", micros(20), 4), ("t", micros(60), 5), ("u", micros(7), 1), ("v", 0, 4)]
    assert rows(partition_counts(commits, told, None), "topic", "since", "count") == expected
    ends = frame(
        spark,
        END_OFFSETS,
        [{"topic": topic, "partition": partition} for topic, partition in (("t", 2), ("u", 6), ("u", 2), ("x", 1))],
    )
    known = partition_counts(commits, told, ends)
    assert rows(known, "topic", "since", "count") == [*expected[:3], ("u", micros(7), 7), ("v", 0, 4), ("x", 0, 2)]


def random_history(seed: int) -> list[dict[str, Any]]:
    """Groups whose members come, go and restart, whose generations are hidden at times, and who claim what they like."""
    chance = random.Random(seed)
    found = []
    for number in range(12):
        group, offset, now = f"g{number}", 0, 0
        present: dict[str, str | None] = {}
        for _ in range(chance.randrange(1, 14)):
            offset += 1
            kind = chance.random()
            if kind < 0.1:
                present = {}
                found.append(generation(offset, None if kind < 0.05 else now + 1, group=group))
                now += 1
                continue
            if kind < 0.6 or not present:
                name = f"m{number}-{offset}"
                present[name] = chance.choice([None, None, name])
            elif kind < 0.75:
                del present[chance.choice(list(present))]
            now += chance.choice([1, 1, 1, 0, 3])
            shares: dict[str, list[int]] = {name: [] for name in present}
            for partition in range(chance.choice([4, 7])):
                if present and chance.random() < 0.9:
                    shares[chance.choice(list(present))].append(partition)
            members = [
                owning(
                    member(name, {"t": share}, instance=present[name], topics=["t"]),
                    {"t": [one for one in range(4) if chance.random() < 0.2]},
                )
                for name, share in shares.items()
            ]
            protocol = chance.choice(KAFKAS)
            found.append(generation(offset, now, *members, group=group, protocol=protocol, state_ts=at(offset - 0.25)))
    return found


def plainly(found: list[dict[str, Any]], assignors: list[str]) -> Iterator[dict[str, Any]]:
    """The moments of these generations, made without Spark."""
    partitions: dict[int, int] = {}
    for one in found:
        for said in one["members"] or ():
            for _, numbers in said[8]:
                when = int(one["append_ts"].timestamp() * 1_000_000)
                partitions[when] = max(partitions.get(when, 0), max(numbers, default=-1) + 1)
    for group, of_group in groupby(
        sorted(found, key=lambda one: (one["group"], one["log_offset"])), lambda one: one["group"]
    ):
        records = list(of_group)
        for assignor in assignors:
            most = 0
            for when in sorted(partitions):
                most = max(most, partitions[when])
                yield {"group": group, "assignor": assignor, "topic": "t", "partitions": most, "at": when}
            for number, one in enumerate(records):
                before = records[number - 1] if number else None
                after = records[number + 1] if number + 1 < len(records) else None
                yield _moment(one, before, after) | {"group": group, "assignor": assignor, "topic": None}


def _moment(one: dict[str, Any], before: dict[str, Any] | None, after: dict[str, Any] | None) -> dict[str, Any]:
    def wishes(record: dict[str, Any]) -> set[tuple[str, ...]]:
        return {("i", said[1], *said[6]) if said[1] else ("m", said[0], *said[6]) for said in record["members"]}

    def gives_up(record: dict[str, Any]) -> bool:
        return any(set(dict(said[7])["t"]) - set(dict(said[8])["t"]) for said in record["members"] or ())

    is_end, number = one["is_tombstone"], one["generation"]
    follows = (
        not is_end
        and before is not None
        and not before["is_tombstone"]
        and gives_up(before)
        and number == before["generation"] + 1
        and wishes(one) == wishes(before)
    )
    goes_on = (
        not is_end
        and after is not None
        and not after["is_tombstone"]
        and gives_up(one)
        and after["generation"] == number + 1
        and bool(after["members"])
        and wishes(one) != wishes(after)
    )
    begins = not is_end and (before is None or before["is_tombstone"] or before["generation"] != number)
    names = ("member_id", "instance_id", "who", "topics", "rack", "owned", "assigned")
    return {
        **{name: one[name] for name in ("log_partition", "log_offset", "generation", "leader", "protocol")},
        "at": int(one["append_ts"].timestamp() * 1_000_000),
        "begins": begins,
        "follows": follows,
        "goes_on": goes_on,
        "modern": False,
        "assign_and_sync_ms": None if one["state_ts"] is None else 250,
        "problem": None,
        "members": [
            dict(zip(names, (*said[:2], _who(*said[:2]), said[6], None, *map(_struct, said[7:9])), strict=True))
            for said in one["members"] or ()
        ],
    }


def _who(member_id: str, instance_id: str | None) -> str:
    return f"m:{member_id}" if instance_id is None else f"i:{instance_id}"


def _struct(given: list[tuple[str, list[int]]]) -> list[dict[str, Any]]:
    return [{"topic": topic, "partitions": numbers} for topic, numbers in given]


def test_tasks_and_batches_make_no_difference_to_plain_python(spark: SparkSession) -> None:
    found = random_history(7)
    assignors = [RECORDED_HISTORY, *KAFKAS, "rendezvous", "weighted"]
    chosen = choices(",".join(assignors[1:]))
    expected = list(play(plainly(found, assignors), {choice.spec: choice for choice in chosen}))
    told = history(spark, *found)
    batch = "spark.sql.execution.arrow.maxRecordsPerBatch"
    usual = spark.conf.get(batch)
    spark.conf.set(batch, "5")
    try:
        counts = once(partition_counts(partition_statistics(frame(spark, COMMITS, [])), told, None))
        answer = what_if(told, counts, chosen, 3)
        got = answer.withColumn("at", F.unix_micros("at")).collect()
    finally:
        spark.conf.set(batch, usual)

    def keyed(some: list[Any]) -> dict[tuple[Any, ...], dict[str, Any]]:
        whole = [{name: row.get(name) for name in WHAT_IF.names} for row in some]
        return {(row["group"], row["log_offset"], row["assignor"]): row for row in whole}

    assert len(expected) > 300
    assert sum(row["rebalances"] != 1 for row in expected) > 20
    assert keyed([row.asDict() for row in got]) == keyed(expected)


@pytest.fixture(scope="module")
def java(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """The tables of what Java's consumers did; see JavaStory.java."""
    out = tmp_path_factory.mktemp("java") / "out"
    options = RunOptions(replay_with=choices(",".join(KAFKAS)))
    with RunOutput(spark, str(out)) as output:
        summary = run_pipeline(
            spark, plan_source(f"segments:{JAVA}", {}), output, options, RunProgress(lambda line: None)
        )
    assert summary["replay_with"] == list(KAFKAS)
    names = ("what_if", "what_if_summary", "rebalances", "generations")
    return {name: pq.read_table(out / "tables" / name).to_pylist() for name in names}


def test_the_assignor_that_javas_consumers_had_gives_what_they_really_got(
    java: dict[str, list[dict[str, Any]]],
) -> None:
    """Three groups for each assignor; the leader of each was a Java client."""
    assert [row for row in java["what_if"] if row["problem"] is not None] == []
    own = [row for row in java["what_if"] if row["agrees"] is not None]
    assert {(row["group"], row["assignor"]) for row in own} == {
        (f"{assignor}{what}", assignor) for assignor in KAFKAS for what in ("", "-unequal", "-static")
    }
    assert len(own) == 60
    assert all(row["agrees"] for row in own)
    agreed = {row["group"]: row["agrees"] for row in java["what_if_summary"] if row["agrees"] is not None}
    assert agreed == {
        f"{assignor}{what}": count for assignor in KAFKAS for what, count in (("", 7), ("-unequal", 5), ("-static", 3))
    }


def test_and_its_costs_are_those_of_the_real_history(java: dict[str, list[dict[str, Any]]]) -> None:
    real = {(row["group"], row["log_offset"]): row for row in java["what_if"] if row["assignor"] == RECORDED_HISTORY}
    for row in java["what_if"]:
        if row["agrees"]:
            same = real[row["group"], row["log_offset"]]
            # How often cooperative members really joined again also depends on who was first to have given something up.
            assert row["rebalances"] == min(2, same["rebalances"])
            skipped = ("assignor", "agrees", "rebalances")
            assert {name: row[name] for name in row if name not in skipped} == {
                name: same[name] for name in same if name not in skipped
            }


def test_the_real_history_is_that_of_rebalances(java: dict[str, list[dict[str, Any]]]) -> None:
    told = {(row["group"], row["log_offset"]): row for row in java["rebalances"]}
    real = [row for row in java["what_if"] if row["assignor"] == RECORDED_HISTORY]
    assert len(real) == 60
    assert sum(row["rebalances"] for row in real) == sum(row["members_after"] > 0 for row in told.values())
    for row in real:
        same = told[row["group"], row["log_offset"]]
        assert (row["generation"], row["at"], row["members"]) == (same["generation"], same["at"], same["members_after"])
        assert row["paused_partition_seconds"] == row["pauses"] * same["assign_and_sync_ms"] / 1000
        if row["rebalances"] == 1:
            assert {name: row[name] for name in COSTS} == {name: same[name] for name in COSTS}


def test_sticky_moves_less_and_cooperative_members_pause_less(java: dict[str, list[dict[str, Any]]]) -> None:
    found = {(row["group"], row["assignor"]): row for row in java["what_if_summary"]}
    for group in KAFKAS:
        assert found[group, "sticky"]["moved"] <= found[group, "range"]["moved"]
        assert found[group, "sticky"]["moved_needlessly"] == 0
        assert found[group, "cooperative-sticky"]["pauses"] < found[group, "sticky"]["pauses"]


def test_the_example_of_the_docs_is_this(java: dict[str, list[dict[str, Any]]]) -> None:
    text = (ROOT / "docs" / "pipeline.md").read_text(encoding="utf-8")
    for row in java["what_if_summary"]:
        if row["group"] == "range":
            figures = [row[name] for name in ("moved", "moved_needlessly", "pauses", "rebalances")]
            seconds = f"{row['paused_partition_seconds']:.2f}"
            assert f"| `{row['assignor']}` | {' | '.join(map(str, figures))} | {seconds} |\n" in text


def test_an_assignor_that_there_is_not_is_refused_before_spark_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(arguments: object) -> None:
        raise AssertionError("Spark starts")

    monkeypatch.setattr(cli, "_session", start)
    asked = ["pipeline", "run", "--source", f"segments:{JAVA}", "--out", str(tmp_path / "out")]
    assert main([*asked, "--replay-with", "sticky,rang"]) == 1
    assert capsys.readouterr().err == (
        "groupcoord pipeline: there is no assignor 'rang'; there are range, roundrobin, sticky, cooperative-sticky, "
        "rendezvous, weighted\n"
    )
