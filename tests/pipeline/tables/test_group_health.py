"""Each group in one row, the score of which anybody can reckon up."""

import math
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from groupcoord.pipeline.health_symptoms import SYMPTOMS, score_parts
from groupcoord.pipeline.schemas import TABLES
from groupcoord.pipeline.tables.group_health import group_health
from tests.pipeline.frames import at, frame, member, since

ROWS: dict[str, list[dict[str, Any]]] = {
    "rebalances": [
        {"group": "app", "kind": "classic", "at": at(10), "moved": 3, "moved_needlessly": 2, "hidden_generations": 1},
        {"group": "app", "kind": "classic", "at": at(20), "moved": 4, "moved_needlessly": 1, "hidden_generations": 0},
        {"group": "gone", "kind": "classic", "at": at(5), "moved": 0, "moved_needlessly": 0, "hidden_generations": 0},
        {"group": "new", "kind": "consumer", "at": at(30), "moved": 1, "moved_needlessly": 0, "hidden_generations": 0},
        {"group": "was streams", "kind": "streams", "at": at(30), "moved": 1, "moved_needlessly": 0},
    ],
    "storms": [{"group": "app"}, {"group": "app"}],
    "commit_pauses": [{"group": "app"}, {"group": "only"}, {"group": "only"}],
    "zombies": [{"group": "app"}, {"group": "app"}, {"group": "app"}],
    "commit_rates": [
        {"group": "app", "window_start": at(0), "window_end": at(60), "commits": 5},
        {"group": "app", "window_start": at(60), "window_end": at(120), "commits": 6},
        {"group": "only", "window_start": at(60), "window_end": at(120), "commits": 1},
    ],
    "lag": [
        {
            "group": "app",
            "topic": "t",
            "partition": 0,
            "lag": 7,
            "status": "STOP",
            "last_commit_ts": at(99),
            "expire_ts": at(500),
            "lag_seconds": 61.5,
        },
        {
            "group": "app",
            "topic": "t",
            "partition": 1,
            "lag": 1,
            "status": "OK",
            "last_commit_ts": at(98),
            "expire_ts": at(400),
            "lag_seconds": 2.0,
            "records_lost": 4,
        },
        {"group": "app", "topic": "t", "partition": 2, "expire_ts": at(300)},
        *(
            {
                "group": "held up",
                "topic": "t",
                "partition": number,
                "lag": 9,
                "status": "OK" if number == 3 else "STALL",
            }
            for number in range(5)
        ),
        {"group": "held up, and late", "topic": "t", "partition": 0, "lag": 9, "status": "STALL"},
        {"group": "held up, and late", "topic": "t", "partition": 1, "lag": 9, "status": "STOP"},
        {"group": "huge", "topic": "t", "partition": 0, "lag": 2**63 - 1},
        {"group": "huge", "topic": "t", "partition": 1, "lag": 2**63 - 1},
    ],
    "open_transactions": [
        {"topic": "t", "partition": 0, "producer_id": 7, "since": at(900), "waiting": ["held up", "held up, and late"]},
        {"topic": "t", "partition": 1, "producer_id": 7, "since": at(939), "waiting": ["held up"]},
        {"topic": "t", "partition": 2, "producer_id": 8, "since": at(939), "waiting": ["held up"]},
        {"topic": "t", "partition": 3, "producer_id": 9, "since": at(941), "waiting": ["held up"]},
        {"topic": "t", "partition": 4, "waiting": ["held up"]},
    ],
    "current_groups": [
        {
            "group": "app",
            "kind": "classic",
            "state": "Stable",
            "protocol": "range",
            "generation": 9,
            "members": [member("m", {"t": [0]})],
        },
        {"group": "only", "kind": "simple", "state": "Empty", "generation": 0, "members": []},
        {"group": "was streams", "kind": "simple", "state": "Empty", "generation": 0, "members": []},
        {
            "group": "new",
            "kind": "consumer",
            "state": "Stable",
            "generation": 4,
            "members": [member("a", {}), member("b", {})],
        },
        {"group": "jobs", "kind": "share", "state": "Empty", "generation": 8, "members": []},
    ],
    "log_partitions": [
        {"log_partition": 0, "missing": 5, "whole_from_ts": at(30)},
        {"log_partition": 1, "missing": 0, "whole_from_ts": at(20)},
        {"log_partition": 2, "missing": 7, "whole_from_ts": at(40)},
    ],
}


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> dict[str, dict[str, Any]]:
    tables: dict[str, DataFrame] = {name: frame(spark, TABLES[name], said) for name, said in ROWS.items()}
    of_log = spark.createDataFrame(
        [("app", 0), ("only", 1), ("app", 2), ("only tombstones", 2)], "`group` string, log_partition int"
    )
    found = group_health(tables, of_log, at(1000))
    assert [(field.name, field.dataType.simpleString()) for field in found.schema] == [
        (column.name, column.type) for column in TABLES["group_health"].columns
    ]
    return {row["group"]: row.asDict() for row in found.collect()}


def test_a_group_is_the_sum_of_what_the_tables_say_of_it(rows: dict[str, dict[str, Any]]) -> None:
    app = rows["app"]
    assert since(app.pop("first_ts")) == 0
    assert since(app.pop("last_ts")) == 99
    assert since(app.pop("expire_ts")) == 400  # the third partition has no lag that is known
    assert since(app.pop("whole_from_ts")) == 40  # the later of its two partitions of the log
    assert rows["only"]["whole_from_ts"] is None  # in one that misses nothing, whatever others miss
    counts = {"rebalances": 2, "moved_needlessly": 3, "storms": 2, "commit_gaps": 1, "zombies": 3, "late_partitions": 1}
    counts |= {"partitions": 3, "lost_partitions": 1, "awaited_transactions": 0}
    assert app == {
        **counts,
        "group": "app",
        "kind": "classic",
        "state": "Stable",
        "protocol": "range",
        "generation": 9,
        "members": 1,
        "hidden_generations": 1,
        "moved": 7,
        "commits": 11,
        "lag": 8,
        "max_lag_seconds": 61.5,
        "score": round(sum(score_parts(counts).values()), 2),
    }


def test_groups_of_each_kind(rows: dict[str, dict[str, Any]]) -> None:
    assert {group: (row["kind"], row["state"], row["members"]) for group, row in rows.items()} == {
        "app": ("classic", "Stable", 1),
        "gone": ("classic", None, None),
        "new": ("consumer", "Stable", 2),
        "only": ("simple", "Empty", 0),
        "jobs": ("share", "Empty", 0),
        "was streams": ("streams", "Empty", 0),
        "huge": ("simple", None, None),
        "held up": ("simple", None, None),
        "held up, and late": ("simple", None, None),
    }
    assert rows["new"]["generation"] == 4
    assert since(rows["only"]["last_ts"]) == 60


def test_a_lag_that_is_too_large_for_a_number_is_not_known(rows: dict[str, dict[str, Any]]) -> None:
    assert rows["huge"]["lag"] is None
    assert rows["huge"]["score"] == 0.0


def test_a_transaction_that_is_open_for_long_counts_once_for_each_group_that_waits_for_it(
    rows: dict[str, dict[str, Any]],
) -> None:
    counted = {group: (row["awaited_transactions"], row["late_partitions"]) for group, row in rows.items()}
    # The third transaction is younger than a minute, and of the fourth nobody knows the age: what waits for it is late.
    assert counted["held up"] == (2, 1)
    assert counted["held up, and late"] == (1, 1)
    assert counted["app"] == (0, 1)
    assert rows["held up, and late"]["score"] == round(4 + 4 * math.log2(1.5), 2)


def test_one_incident_is_one_however_many_partitions_it_has(rows: dict[str, dict[str, Any]]) -> None:
    assert rows["app"]["commit_gaps"] == 1
    assert rows["only"]["commit_gaps"] == 2
    sleeping = {one.column: 0 for one in SYMPTOMS} | {"commit_gaps": 1}
    few, many = (score_parts(sleeping | {"late_partitions": all_, "partitions": all_}) for all_ in (2, 18))
    assert few == many
    assert sum(many.values()) == 3 + 4
