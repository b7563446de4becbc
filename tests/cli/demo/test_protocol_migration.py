import json
from dataclasses import replace

import pytest
from confluent_kafka import TopicPartition

from groupcoord.cli.demo.clients.migration_consumer import ASSIGNED, REVOKED, properties, report
from groupcoord.cli.demo.protocol_migration import CLASSIC, CONSUMER, Ownership, changes_table, in_words, tell_migration
from groupcoord.coordinator.events import GroupMigrated
from tests.cli.demo.clients.test_consumer_common import SETTINGS
from tests.cli.demo.support import GROUP, Screen, asked, shown


@pytest.fixture
def ownership() -> Ownership:
    """One member has all four partitions."""
    made = Ownership(4)
    made.told("old-1", ASSIGNED, [0, 1, 2, 3])
    assert made.changed("old-1 joins") is None
    return made


def eager(ownership: Ownership) -> None:
    """A second member of the classic protocol comes: everything is taken, and shared out anew."""
    ownership.told("old-1", REVOKED, [0, 1, 2, 3])
    ownership.told("old-1", ASSIGNED, [0, 1])
    ownership.told("old-2", ASSIGNED, [2, 3])


def incremental(ownership: Ownership) -> None:
    """A third member comes by the consumer protocol: one partition is taken."""
    ownership.told("old-2", REVOKED, [3])
    ownership.told("new-1", ASSIGNED, [3])


def test_what_is_taken_and_given_back_has_stopped(ownership: Ownership) -> None:
    eager(ownership)
    change = ownership.changed("old-2 joins")
    assert change is not None
    assert (sorted(change.stopped), sorted(change.moved), change.read_on) == ([0, 1], [2, 3], 0)
    assert in_words(change) == "has seen everybody stop: no partition was read all the time"


def test_what_is_not_taken_is_read_on(ownership: Ownership) -> None:
    eager(ownership)
    ownership.changed("old-2 joins")
    incremental(ownership)
    change = ownership.changed("new-1 joins")
    assert change is not None
    assert (sorted(change.stopped), sorted(change.moved), change.read_on) == ([], [3], 3)
    assert in_words(change) == "has seen these read on as if nothing were: old-1 0, 1; old-2 2"


def test_a_group_is_shared_when_everyone_has_a_fair_share_of_all(ownership: Ownership) -> None:
    assert ownership.is_shared_by(["old-1"])
    assert not ownership.is_shared_by(["old-1", "old-2"])
    ownership.told("old-1", REVOKED, [0, 1, 2, 3])
    ownership.told("old-1", ASSIGNED, [0, 1])
    assert not ownership.is_shared_by(["old-1", "old-2"])
    ownership.told("old-2", ASSIGNED, [2, 3])
    assert ownership.is_shared_by(["old-1", "old-2"])
    assert not ownership.is_shared_by(["old-2"])


def test_what_is_revoked_from_another_than_the_owner_changes_nothing(ownership: Ownership) -> None:
    ownership.told("old-2", ASSIGNED, [3])
    ownership.told("old-1", REVOKED, [3])
    assert ownership.owners[3] == "old-2"


def test_changes_go_down_and_partitions_across(ownership: Ownership) -> None:
    eager(ownership)
    ownership.changed("old-2 joins")
    incremental(ownership)
    ownership.changed("new-1 joins")
    assert shown(changes_table(ownership.changes, "orders")) == [
        "partitions of orders     0         1         2         3       read on",
        "──────────────────────────────────────────────────────────────────────",
        "old-2 joins            × old-1   × old-1   → old-2   → old-2    0 of 4",
        "new-1 joins              old-1     old-1     old-2   → new-1    3 of 4",
    ]


def test_only_the_migration_of_its_own_group_is_told() -> None:
    screen = Screen()
    cause = asked("ConsumerGroupHeartbeat", "new-1")
    for group in (GROUP, "shipping"):
        event = GroupMigrated(at_ms=1_000, cause=cause, group=group, to="consumer", reason="somebody joined")
        assert tell_migration(screen.output, event) == (group == "shipping")
    assert screen.text.startswith(" 1.00  coordinator   makes shipping a consumer group.")


def test_only_the_classic_protocol_has_a_session_and_assignors_of_the_client() -> None:
    classic = properties(replace(SETTINGS, protocols=CLASSIC))
    consumer = properties(replace(SETTINGS, protocols=CONSUMER))
    of_classic = {"session.timeout.ms": 10_000, "heartbeat.interval.ms": 250, "partition.assignment.strategy": "range"}
    assert classic == consumer | of_classic | {"group.protocol": "classic"}
    assert consumer["group.protocol"] == "consumer"


def test_partitions_are_reported_in_a_line_and_none_are_not(capsys: pytest.CaptureFixture[str]) -> None:
    report(ASSIGNED, [TopicPartition("orders", 3), TopicPartition("orders", 1)])
    report(REVOKED, [])
    assert json.loads(capsys.readouterr().out) == [ASSIGNED, [1, 3]]
