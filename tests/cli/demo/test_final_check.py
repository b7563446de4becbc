from typing import Any

import pytest

from groupcoord.cli.demo.clients.consumer_common import ReadRecord
from groupcoord.cli.demo.final_check import CheckResult, check_results, counts_table, positions_text
from groupcoord.cli.demo.observed_group import ObservedRead, RecordPosition
from tests.cli.demo.support import shown

PRODUCED = {
    RecordPosition(0, 0): "ada",
    RecordPosition(0, 1): "bob",
    RecordPosition(0, 2): "ada",
    RecordPosition(1, 0): "cy",
}
SEEN = [ObservedRead("confluent", ReadRecord(place.partition, place.offset, key)) for place, key in PRODUCED.items()]
ENDS = {0: 3, 1: 1, 2: 0}


def judged(**changes: Any) -> CheckResult:
    told = {0: 3, 1: 1}
    said = {"produced": PRODUCED, "sightings": SEEN, "log_ends": ENDS, "told": told, "held": told} | changes
    return check_results("orders", 3, said.pop("produced"), said.pop("sightings"), **said)


def test_all_is_well() -> None:
    result = judged()
    assert (result.problems, result.written, result.twice) == ((), 4, frozenset())


def test_a_record_that_nobody_read_is_missing() -> None:
    assert judged(sightings=[SEEN[0], SEEN[3]]).problems == ("orders-0: 2 of 3 records were never read, offsets 1–2",)


def test_a_record_that_was_read_twice_is_counted_and_is_no_problem() -> None:
    result = judged(sightings=[*SEEN, ObservedRead("aiokafka", ReadRecord(0, 1, "bob"))])
    assert (result.problems, result.twice) == ((), frozenset({RecordPosition(0, 1)}))
    assert [count.twice for count in result.counts] == [1, 0, 0]


@pytest.mark.parametrize(
    ("read", "problem"),
    [
        (ReadRecord(0, 1, "eve"), "aiokafka read key eve at orders-0 offset 1, where key bob was written"),
        (ReadRecord(2, 9, "bob"), "aiokafka read key bob at orders-2 offset 9, where nothing was written"),
    ],
)
def test_what_was_read_must_have_been_written_there(read: ReadRecord, problem: str) -> None:
    assert judged(sightings=[*SEEN, ObservedRead("aiokafka", read)]).problems == (problem,)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"log_ends": {0: 4, 1: 1, 2: 0}}, "orders-0: the log ends at 4, and should say 3"),
        ({"told": {0: 3}}, "orders-1: a client is told the committed offset unknown, and should say 1"),
        ({"held": {0: 2, 1: 1}}, "orders-0: the coordinator holds the committed offset 2, and should say 3"),
    ],
)
def test_offsets_must_be_the_ends_of_the_logs(change: dict[str, dict[int, int]], problem: str) -> None:
    assert judged(**change).problems == (problem,)


def test_records_that_were_written_by_nobody_known_make_the_log_too_long() -> None:
    assert judged(log_ends=ENDS | {2: 5}).problems == ("orders-2: the log ends at 5, and should say 0",)


def test_nothing_needs_to_be_committed_where_nothing_was_written() -> None:
    assert judged(held={0: 3, 1: 1}, told={0: 3, 1: 1, 2: 0}).problems == ()


def test_the_table_has_a_row_for_each_partition() -> None:
    assert shown(counts_table("orders", judged())) == [
        "partition   written   read   twice   log end   OffsetFetch   coordinator",
        "────────────────────────────────────────────────────────────────────────",
        "orders-0          3      3       0         3             3             3",
        "orders-1          1      1       0         1             1             1",
        "orders-2          0      0       0         0       unknown       unknown",
    ]


def test_places_are_put_together() -> None:
    where = [RecordPosition(2, 9), RecordPosition(0, 4), RecordPosition(0, 3), RecordPosition(0, 7)]
    assert positions_text("orders", where) == "orders-0 offsets 3–4, 7; orders-2 offset 9"
