"""Becoming a member: what is refused, what is written, who gets what."""

from typing import Any

import pytest

from groupcoord.assignors.server_side import SERVER_ASSIGNORS, GroupSpec, PartitionAssignorError, TargetAssignment
from groupcoord.coordinator.events import (
    ConsumerMemberJoined,
    GroupCreated,
    GroupEpochBumped,
    RequestRefused,
    TargetAssignmentComputed,
)
from groupcoord.coordinator.group import ConsumerGroupConfig
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import ConsumerGroupHeartbeatRequest
from tests.coordinator.consumer.consumers import ConsumerWorld, partitions, settle

INVALID = ErrorCode.INVALID_REQUEST


def test_the_first_member_gets_everything() -> None:
    w = ConsumerWorld()
    a = w.consumer("a", "t", "u")
    answer = a.join().answer
    assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == ("a", 2, 5_000)
    assert a.assigned == {"t": [0, 1, 2], "u": [0, 1, 2]}
    assert w.written() == ["member:a group target:a assigned current:a"]
    assert w.state == "Stable"
    assert repr(w.consumers) == "<ConsumerGroup g Stable epoch=2 members=1>"
    (created,), (joined,), (bumped,) = w.seen(GroupCreated), w.seen(ConsumerMemberJoined), w.seen(GroupEpochBumped)
    assert not created.simple
    assert (joined.member, joined.topics, joined.protocol) == ("a", ("t", "u"), "consumer")
    assert (bumped.epoch, bumped.reason) == (2, "a joined")
    (computed,) = w.seen(TargetAssignmentComputed)
    assert computed.assignor == "uniform"
    assert len(computed.owners["a"]) == 6


def test_the_second_member_waits_for_the_first() -> None:
    w = ConsumerWorld(topics={"t": 4})
    a, b = w.consumer("a"), w.consumer("b")
    a.join()
    b.join()
    assert w.last() == "member:b group target:a target:b assigned current:b"
    assert (b.epoch, b.assigned, w.state) == (3, {}, "Reconciling")
    b.heartbeat()
    assert w.last() == "current:b"  # its previous epoch is the same now
    before = len(w.batches)
    assert b.heartbeat().answer.assignment is None
    assert len(w.batches) == before
    a.heartbeat()
    assert (a.epoch, a.assigned) == (2, {"t": [0, 1]})
    assert a.heartbeat().answer.assignment is None
    a.owns()
    assert a.epoch == 3
    b.heartbeat()
    assert b.assigned == {"t": [2, 3]}
    assert w.state == "Stable"


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"member_id": "", "version": 1}, INVALID, "MemberId can't be empty."),
        ({"member_id": " \t", "version": 1}, INVALID, "MemberId can't be empty."),
        ({"member_id": "", "member_epoch": 1, "version": 0}, INVALID, "MemberId can't be empty."),
        ({"member_id": "", "member_epoch": -1, "version": 0}, INVALID, "MemberId can't be empty."),
        ({"group_id": ""}, INVALID, "GroupId can't be empty."),
        ({"instance_id": " "}, INVALID, "InstanceId can't be empty."),
        ({"rack_id": ""}, INVALID, "RackId can't be empty."),
        ({"rebalance_timeout_ms": -1}, INVALID, "RebalanceTimeoutMs must be provided in first request."),
        ({"topic_partitions": None}, INVALID, "TopicPartitions must be empty when (re-)joining."),
        (
            {"subscribed_topic_names": None},
            INVALID,
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        ),
        ({"member_epoch": -2}, INVALID, "InstanceId can't be null."),
        ({"member_epoch": -3}, INVALID, "MemberEpoch is invalid."),
        (
            {"server_assignor": "sticky"},
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            "ServerAssignor sticky is not supported. Supported assignors: uniform, range.",
        ),
        ({"member_epoch": 1}, ErrorCode.GROUP_ID_NOT_FOUND, "Consumer group g not found."),
        ({"member_epoch": -1}, ErrorCode.GROUP_ID_NOT_FOUND, "Group g not found."),
        (
            {"subscribed_topic_regex": "["},
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            "SubscribedTopicRegex `[` is not a valid regular expression: missing closing ].",
        ),
    ],
)
def test_what_is_refused(changes: dict[str, Any], error: ErrorCode, says: str) -> None:
    w = ConsumerWorld()
    asked = w.consumer().join(**changes)
    assert (asked.error, asked.answer.error_message) == (error, says)
    assert not w.exists


def test_owning_something_is_no_way_to_join() -> None:
    w = ConsumerWorld()
    assert w.consumer().join(topic_partitions=partitions(w, {"t": [0]})).error is INVALID


def test_a_broker_without_the_protocol() -> None:
    w = ConsumerWorld(group_coordinator_rebalance_protocols=("classic",))
    asked = w.consumer().join(group_id="")
    assert (asked.error, asked.answer.error_message) == (ErrorCode.UNSUPPORTED_VERSION, None)
    found = w.ask_description("g", "").answer.groups
    assert [(each.group_id, each.error_code) for each in found] == [("g", 35), ("", 35)]


def test_ids_that_the_coordinator_makes() -> None:
    """In version 0 a member may come without one; Kafka passes over ids that begin with a dash."""
    w = ConsumerWorld()
    w.coordinator.shard_of("g").machine.new_uuid = iter(
        ["f8000000-0000-0000-0000-000000000000", "08000000-0000-0000-0000-000000000000"]
    ).__next__
    a = w.consumer(member_id="", version=0)
    assert a.join().answer.member_id == "CAAAAAAAAAAAAAAAAAAAAA"


def test_a_blank_id_is_one_in_version_0() -> None:
    w = ConsumerWorld()
    assert w.consumer(member_id=" ", version=0).join().answer.member_id == " "


def test_a_full_group_lets_its_own_members_in() -> None:
    w = ConsumerWorld(group_consumer_max_size=2)
    a, _ = w.joined_consumers("ab")
    asked = w.consumer("c").join()
    assert asked.error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert asked.answer.error_message == "The consumer group has reached its maximum capacity of 2 members."
    assert a.join().error is ErrorCode.NONE


def test_a_member_without_topics_stays_at_the_first_epoch() -> None:
    w = ConsumerWorld()
    a = w.consumer()
    a.topics = ()
    a.join()
    assert (a.epoch, a.assigned, w.last()) == (1, {}, "member:a current:a")


def test_a_member_of_topics_that_do_not_exist() -> None:
    w = ConsumerWorld()
    a = w.consumer("a", "nowhere")
    a.join()
    assert (a.epoch, a.assigned) == (2, {})
    assert w.consumers.epochs.metadata_hash == 0


def test_a_member_that_joins_again_changes_nothing_and_is_told_what_it_has() -> None:
    w = ConsumerWorld()
    (a,) = w.joined_consumers("a")
    before = len(w.batches)
    assert a.join().answer.assignment.topic_partitions[0].partitions == (0, 1, 2)
    assert len(w.batches) == before


def test_what_a_member_says_later_counts() -> None:
    """Without a change of its topics it is written down, and nothing follows."""
    w = ConsumerWorld()
    (a,) = w.joined_consumers("a")
    a.heartbeat(rack_id="r", server_assignor="range", rebalance_timeout_ms=9)
    assert w.last() == "member:a"
    assert (a.stored.rack_id, a.stored.server_assignor, a.stored.rebalance_timeout_ms) == ("r", "range", 9)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, False),
        ({"topic_partitions": ()}, False),
        ({"topic_partitions": (), "rebalance_timeout_ms": 60_000}, False),
        ({"topic_partitions": (), "rebalance_timeout_ms": 60_000, "subscribed_topic_names": ("t",)}, True),
        ({"topic_partitions": (), "rebalance_timeout_ms": 60_000, "subscribed_topic_regex": ""}, True),
        ({"rebalance_timeout_ms": 60_000, "subscribed_topic_names": ("t",)}, False),
    ],
)
def test_who_says_everything_is_told_everything(changes: dict[str, Any], told: bool) -> None:
    w = ConsumerWorld()
    (a,) = w.joined_consumers("a")
    assert (a.heartbeat(**changes).answer.assignment is not None) is told


def test_an_assignment_that_is_due_later() -> None:
    """The next target comes when the interval since the last one is over, with the heartbeat of anybody."""
    w = ConsumerWorld(group_consumer_assignment_interval_ms=1_000)
    a, b = w.consumer("a"), w.consumer("b")
    w.advance(5_000)
    a.join()
    w.advance(999)
    b.join()
    assert (b.epoch, b.assigned, w.state) == (2, {}, "Assigning")
    assert repr(w.consumers) == "<ConsumerGroup g Assigning epoch=3 members=2>"
    assert w.last() == "member:b group current:b"
    w.advance(1)
    a.heartbeat()
    assert w.consumers.epochs.assignment == 3
    settle([a, b])
    assert {**a.assigned, "b": b.assigned["t"]} == {"t": [0, 1], "b": [2]}


def test_a_group_with_properties_of_its_own() -> None:
    w = ConsumerWorld(of_group={"g": ConsumerGroupConfig(50_000, 7_000, 15_000)})
    w.advance(1)
    a, b = w.consumer("a"), w.consumer("b")
    assert a.join().answer.heartbeat_interval_ms == 7_000
    b.join()
    assert w.state == "Assigning"
    assert w.deadline("session", "a") == 50_000
    w.configs.clear()
    b.heartbeat()
    assert w.consumers.epochs.assignment == 3
    assert w.deadline("session", "b") == 45_000


@pytest.mark.parametrize(
    ("asked", "used"),
    [
        ([None, None, None], "uniform"),
        (["range", None, None], "range"),
        (["range", "uniform", "uniform"], "uniform"),
        (["uniform", "range", "range"], "range"),
    ],
)
def test_most_members_choose_the_assignor(asked: list[str | None], used: str) -> None:
    w = ConsumerWorld()
    for name, assignor in zip("abc", asked, strict=True):
        w.consumer(name, assignor=assignor).join()
    assert w.seen(TargetAssignmentComputed)[-1].assignor == used
    assert w.described().assignor_name == used


def test_a_member_that_asks_for_another_assignor() -> None:
    """The next target is made by it."""
    w = ConsumerWorld()
    a, b = w.joined_consumers("ab", assignor="range")
    a.heartbeat(server_assignor="uniform")
    b.heartbeat(server_assignor="uniform")
    assert w.described().assignor_name == "uniform"
    for each in (a, b):
        each.heartbeat(server_assignor="range", subscribed_topic_names=("t", "u"))
    assert w.seen(TargetAssignmentComputed)[-1].assignor == "range"
    for each in (a, b):
        each.heartbeat(server_assignor="uniform")
    w.consumer("c").join()
    assert w.seen(TargetAssignmentComputed)[-1].assignor == "uniform"


def test_an_assignor_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: GroupSpec) -> TargetAssignment:
        raise PartitionAssignorError("Partitions were left unassigned")

    monkeypatch.setitem(SERVER_ASSIGNORS, "uniform", fail)
    w = ConsumerWorld()
    asked = w.consumer().join()
    assert (asked.error, asked.answer.error_message) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
    (refused,) = w.seen(RequestRefused)
    assert "Failed to compute a new target assignment for epoch 2: Partitions were left unassigned" in refused.text()
    assert not w.batches


@pytest.mark.parametrize("change", ["grown", "deleted", "made anew"])
def test_topics_that_change(change: str) -> None:
    """The next heartbeat of any member notices it, and the group is at its next epoch."""
    w = ConsumerWorld()
    a, b = w.joined_consumers("ab")
    if change == "grown":
        w.topics.grow("t", 5)
    else:
        w.topics.delete("t")
        if change == "made anew":
            w.topics.create("t", 2)
    a.heartbeat()
    assert (
        w.last()
        == {
            "grown": "group target:b assigned current:a",
            "deleted": "group target:a target:b assigned current:a",
            "made anew": "group target:a target:b assigned current:a",
        }[change]
    )
    assert w.seen(GroupEpochBumped)[-1].reason == "topics that it subscribes to changed"
    settle([a, b])
    held = {(topic, one) for each in (a, b) for topic, of_topic in each.assigned.items() for one in of_topic}
    count = {"grown": 5, "deleted": 0, "made anew": 2}[change]
    assert held == {("t", one) for one in range(count)}
    assert w.state == "Stable"


def test_a_topic_that_does_not_concern_the_group() -> None:
    w = ConsumerWorld()
    (a,) = w.joined_consumers("a")
    w.topics.create("v", 1)
    before = len(w.batches)
    a.heartbeat()
    assert len(w.batches) == before


def test_another_subscription() -> None:
    w = ConsumerWorld()
    a, b = w.joined_consumers("ab")
    a.heartbeat(subscribed_topic_names=("u",))
    settle([a, b])
    assert (a.assigned, b.assigned) == ({"u": [0, 1, 2]}, {"t": [0, 1, 2]})


def test_a_heartbeat_whose_record_cannot_be_stored() -> None:
    w = ConsumerWorld()
    w.fail_appends(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert w.consumer().join().error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert not w.exists


def test_a_group_of_another_kind() -> None:
    """A heartbeat finds no consumer group where a classic one is."""
    w = ConsumerWorld()
    w.stable(w.classic("m"))
    asked = w.consumer().heartbeat(member_epoch=3)
    assert (asked.error, asked.answer.error_message) == (
        ErrorCode.GROUP_ID_NOT_FOUND,
        "Group g is not a consumer group.",
    )
    assert w.consumer().leave().answer.error_message == "Group g is not a consumer group."


def test_a_heartbeat_without_client_id() -> None:
    w = ConsumerWorld()
    request = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="a",
        member_epoch=0,
        rebalance_timeout_ms=1,
        subscribed_topic_names=("t",),
        topic_partitions=(),
    )
    w.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, request, client_id=None)
    assert w.described().members[0].client_id == ""
