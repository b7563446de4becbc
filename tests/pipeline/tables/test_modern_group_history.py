"""What became of groups of KIP-848: of a log that a real Kafka 4.3.1 wrote, and what a log like it can have besides."""

import base64
import json
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from groupcoord.pipeline.schemas import EPOCH_CAUSES, MEMBER_EVENTS
from groupcoord.pipeline.tables.modern_group_history import history_of_group
from groupcoord.protocol.coordinator_records import record_formatting
from groupcoord.protocol.coordinator_records.schemas import RECORD_TYPES

RECORDED = Path(__file__).parents[1] / "recordings" / "consumer-groups.jsonl"
START = datetime(2026, 1, 1, tzinfo=UTC)
Row = dict[str, Any]


def recorded(group: str) -> dict[str, list[Row]]:
    """The rows of each table that the records of ``group`` give."""
    records = []
    for line in RECORDED.read_text(encoding="utf-8").splitlines():
        said = json.loads(line)
        key = record_formatting.parse_key(base64.b64decode(said["key"]))
        kind, fields = key.record_type.number, record_formatting.key_json(key)["data"]
        if kind < 2 or record_formatting.group_of(key) != group:
            continue
        value = None
        if said["value"] is not None:
            parsed = record_formatting.parse_value(key.record_type, base64.b64decode(said["value"]))
            data = (record_formatting.value_json(parsed) or {})["data"]
            value = json.dumps([one["memberId"] for one in data["members"]] if kind == 2 else data)
        at = START + timedelta(milliseconds=said["timestamp"])
        records.append(record(said["offset"], kind, value, fields.get("memberId"), at))
    return by_table(records)


def record(offset: int, kind: int, value: str | None, member: str | None, at: datetime) -> Row:
    place = {"log_partition": 0, "log_offset": offset, "append_ts": at, "group": "g"}
    name = RECORD_TYPES[kind].name
    key = json.dumps(
        {"groupId": "g", "regularExpression": "t.*"} if name.endswith("RegularExpression") else {"groupId": "g"}
    )
    return {**place, "record": name, "member": member, "key": key, "value": value, "value_version": 0}


def by_table(records: Iterable[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in history_of_group(records):
        found[row["table"]].append(row)
    return found


def told(*said: tuple[float, int, str | None, Any]) -> dict[str, list[Row]]:
    """Of records that are said as seconds, number of the record type, member, and value or None for a tombstone."""
    return by_table(
        record(offset, kind, None if value is None else json.dumps(value), member, START + timedelta(seconds=seconds))
        for offset, (seconds, kind, member, value) in enumerate(said)
    )


def described(client: str, topics: str = "t", **said: Any) -> Row:
    nothing = {"instanceId": None, "rackId": None, "subscribedTopicRegex": "", "serverAssignor": None}
    row = {
        "clientId": client,
        "clientHost": "/10.0.0.1",
        "subscribedTopicNames": [topics],
        "rebalanceTimeoutMs": 5000,
        "classicMemberMetadata": None,
    }
    return {**nothing, **row, **said}


def has(epoch: int, *partitions: int, revoking: tuple[int, ...] = (), state: int = 0) -> Row:
    of = [[{"topicId": "T", "partitions": list(some)}] if some else [] for some in (partitions, revoking)]
    return {"memberEpoch": epoch, "state": state, "assignedPartitions": of[0], "partitionsPendingRevocation": of[1]}


def to_have(*partitions: int) -> Row:
    return {"topicPartitions": [{"topicId": "T", "partitions": list(partitions)}]}


def causes(tables: dict[str, list[Row]]) -> list[tuple[int | None, str]]:
    return [(row["group_epoch"], row["cause_kind"]) for row in tables["epochs"]]


def test_of_a_real_kafka_it_tells_what_began_each_epoch() -> None:
    epochs = recorded("shop")["epochs"]
    assert [row["cause"] for row in epochs] == [
        "the group began: alice joined",
        "bob joined",
        "carol joined",
        "topics came or went, or have other partitions",
        "carol asked for other topics or another assignor",
        "bob left or was fenced",
        "mallory joined",
        "mallory left or was fenced",
        "alice left or was fenced",
        "carol left or was fenced",
    ]
    for row in epochs:
        if row["members"] and "reconciled_ts" in row:
            assert row["append_ts"] <= row["assigned_ts"] <= row["reconciled_ts"]
    assert sum("reconciled_ts" in row for row in epochs) == 8  # all but those in which the last two went


def test_of_a_real_kafka_every_partition_has_one_owner_at_a_time() -> None:
    for group in ("shop", "stall", "moving"):
        of: dict[tuple[str, int], list[Row]] = defaultdict(list)
        for row in recorded(group)["ownership"]:
            of[row["topic"], row["partition"]].append(row)
        assert len(of) == 12
        for rows in of.values():
            for before, after in pairwise(rows):
                assert before["until_ts"] == after["append_ts"]
                if after["is_revoking"]:
                    assert before["member"] == after["member"]
                elif before["member"] is not None and after["member"] is not None:
                    assert before["member"] == after["member"]  # nobody takes it before it was given back
            assert rows[-1]["member"] is None
            assert ("until_ts" in rows[-1]) is (group == "moving")  # which then is a classic group


def test_of_a_real_kafka_a_member_gives_back_before_another_one_has_it() -> None:
    tables = recorded("shop")
    lives = [(row["event"], row["partitions"], row["revoking"], row["target"])
             for row in tables["members"] if row["client_id"] == "alice"]  # fmt: skip
    assert lives[0] == ("joined", 9, 0, 9)
    assert lives[1][0] == "retargeted"
    assert ("revoking", lives[1][3], 9 - lives[1][3], lives[1][3]) in lives
    assert lives[-1] == ("left", 0, 0, 0)


def test_of_a_real_kafka_a_static_member_comes_back_or_is_away_too_long() -> None:
    tables = recorded("stall")
    events = [row["event"] for row in tables["members"] if row["instance_id"] == "till-2"]
    assert [event for event in events if event not in ("settled", "retargeted", "revoking", "waiting")] == [
        "joined",
        "away",
        "replaced",
        "joined",
        "away",
        "away_too_long",
    ]
    away = [row["is_settled"] for row in tables["members"] if row["event"] == "away"]
    assert away == [False, False, False]
    assert ("erin left or was fenced", 1) in [(row["cause"], row["members"]) for row in tables["epochs"]]
    assert not any("erin joined; " in row["cause"] for row in tables["epochs"])


def test_of_a_real_kafka_a_classic_group_becomes_a_consumer_group_and_a_classic_one_again() -> None:
    tables = recorded("moving")
    assert [(row["cause_kind"], row["members"], row["classic_members"]) for row in tables["epochs"]] == [
        ("became_consumer", 2, 2),
        ("members_joined", 3, 2),
        ("members_left", 2, 1),
        ("became_classic", 0, 0),
    ]
    ends = {row["client_id"]: row["event"] for row in tables["members"]}
    assert ends == {"frank": "left", "grace": "converted", "heidi": "left"}
    classic = {row["client_id"]: row["is_classic"] for row in tables["members"]}
    assert classic == {"frank": True, "grace": True, "heidi": False}


def test_the_state_of_a_group_is_that_which_kafka_says_after_each_record() -> None:
    records: list[tuple[float, int, str | None, Any]] = [
        (0, 5, "a", described("alice")),
        (0, 3, None, {"epoch": 2}),
        (0, 7, "a", to_have(0)),
        (0, 6, None, {"assignmentEpoch": 2}),
        (0, 8, "a", has(1, state=1)),
        (1, 8, "a", has(2, 0)),
        (2, 8, "a", has(-2, 0)),
        (3, 8, "a", None),
        (3, 7, "a", None),
        (3, 5, "a", None),
        (3, 3, None, {"epoch": 3}),
    ]
    states = [[row["state"] for row in told(*records[:read])["current_groups"]] for read in range(2, len(records) + 1)]
    assert [state for [state] in states] == [
        *("Assigning", "Assigning"),
        *("Reconciling", "Reconciling"),
        "Stable",
        "Reconciling",  # a static member is away
        *("Reconciling", "Reconciling"),
        *("Empty", "Empty"),
    ]


def test_an_epoch_is_reconciled_when_everybody_has_its_target() -> None:
    tables = told(
        (0, 5, "a", described("alice")),
        (0, 3, None, {"epoch": 2}),
        (0, 7, "a", to_have(0, 1)),
        (0, 6, None, {"assignmentEpoch": 2}),
        (0, 8, "a", has(2, 0, 1)),
        (1, 5, "b", described("bob")),
        (1, 3, None, {"epoch": 3}),
        (1, 8, "b", has(2)),
        (2, 7, "a", to_have(0)),
        (2, 7, "b", to_have(1)),
        (2, 6, None, {"assignmentEpoch": 3}),
        (3, 8, "a", has(2, 0, revoking=(1,), state=1)),
        (4, 8, "a", has(3, 0)),
        (5, 8, "b", has(3, state=2)),
        (6, 8, "b", has(3, 1)),
    )
    first, second = tables["epochs"]
    assert (first["to_revoke"], first["to_assign"]) == (0, 2)
    assert (second["to_revoke"], second["to_assign"]) == (1, 1)
    assert second["assigned_ts"] == START + timedelta(seconds=2)
    assert second["reconciled_ts"] == START + timedelta(seconds=6)
    owners = [(row["member"], row["is_revoking"], row["previous_member"])
              for row in tables["ownership"] if row["partition"] == 1]  # fmt: skip
    assert owners == [("a", False, None), ("a", True, None), (None, False, "a"), ("b", False, "a")]
    assert [(row["member"], row["event"]) for row in tables["members"]] == [
        ("a", "joined"),
        ("b", "joined"),
        ("a", "retargeted"),
        ("b", "retargeted"),
        ("a", "revoking"),
        ("a", "settled"),
        ("b", "waiting"),
        ("b", "settled"),
    ]


@pytest.mark.parametrize(("seconds", "event"), [(5, "revoked_too_late"), (4, "left")])
def test_a_member_that_does_not_give_back_in_time_is_fenced(seconds: float, event: str) -> None:
    tables = told(
        (0, 5, "a", described("alice")),
        (0, 3, None, {"epoch": 2}),
        (0, 7, "a", to_have(0, 1)),
        (0, 8, "a", has(2, 0, 1)),
        (1, 8, "a", has(2, 0, revoking=(1,), state=1)),
        (1 + seconds, 8, "a", None),
        (1 + seconds, 7, "a", None),
        (1 + seconds, 5, "a", None),
        (1 + seconds, 3, None, {"epoch": 3}),
    )
    assert tables["members"][-1]["event"] == event
    assert tables["epochs"][-1]["cause"] == "alice left or was fenced"
    assert [row["member"] for row in tables["ownership"]] == ["a", "a", "a", None, None]


def test_every_other_cause_of_an_epoch() -> None:
    tables = told(
        (0, 5, "a", described("alice")),
        (0, 3, None, {"epoch": 2, "metadataHash": 1}),
        (1, 5, "a", described("alice", serverAssignor="range")),
        (1, 3, None, {"epoch": 3, "metadataHash": 1}),
        (2, 3, None, {"epoch": 4, "metadataHash": 2}),
        (3, 4, None, {"topics": []}),  # as 4.0 writes it
        (3, 3, None, {"epoch": 5, "metadataHash": 2}),
        (4, 16, None, {"topics": []}),
        (4, 3, None, {"epoch": 6, "metadataHash": 2}),
        (5, 3, None, {"epoch": 7, "metadataHash": 2}),
        (6, 5, "a", None),
        (6, 5, "b", described("bob")),
        (6, 3, None, {"epoch": 8, "metadataHash": 2}),
        (7, 5, "b", None),
        (7, 3, None, None),
        (8, 3, None, {"epoch": 1}),
    )
    assert causes(tables) == [
        (2, "group_started"),
        (3, "subscription_changed"),
        (4, "topics_changed"),
        (5, "topics_changed"),
        (6, "expression_resolved"),
        (7, "other"),
        (8, "members_joined_and_left"),
        (None, "group_ended"),
        (1, "group_started"),
    ]
    assert {kind for _, kind in causes(tables)} <= EPOCH_CAUSES.keys()


def test_a_log_whose_begin_is_compacted_away() -> None:
    tables = told(
        (0, 8, "a", has(7, 0, state=127)), (0, 3, None, {"epoch": 9}), (1, 8, "b", has(9, 0)), (2, 8, "a", None)
    )
    assert causes(tables) == [(9, "log_begins")]
    assert [row["event"] for row in tables["members"]] == ["joined", "joined", "left"]
    assert [row["member"] for row in tables["ownership"]] == ["a", "b"]
    assert tables["members"][0]["client_id"] is None
    assert {row["event"] for row in tables["members"]} <= MEMBER_EVENTS.keys()


def test_tombstones_of_what_nobody_knew_change_nothing() -> None:
    assert told((0, 8, "a", None), (0, 7, "a", None), (0, 5, "a", None), (0, 6, None, None), (0, 2, None, None)) == {}
