"""What administrators see of consumer groups, and what they may do to them."""

from typing import Any

import pytest

from groupcoord.protocol.errors import ErrorCode
from tests.coordinator.consumer.consumers import ConsumerWorld, kinds


def test_a_group_in_full() -> None:
    w = ConsumerWorld(topics={"t": 2})
    a, b = w.consumer("a", instance="i", rack="r", assignor="range"), w.consumer("b")
    a.join()
    b.join()
    a.heartbeat()
    found = w.described()
    assert (found.group_state, found.group_epoch, found.assignment_epoch, found.assignor_name) == (
        "Reconciling",
        3,
        3,
        "range",
    )
    members = {each.member_id: each for each in found.members}
    first = members["a"]
    assert (first.instance_id, first.rack_id, first.member_epoch, first.client_id, first.client_host) == (
        "i",
        "r",
        2,
        "a",
        "/127.0.0.1",
    )
    assert (first.subscribed_topic_names, first.subscribed_topic_regex, first.member_type) == (("t",), "", 1)
    assert w.named(first.assignment.topic_partitions) == {"t": [0, 1]}  # with what it has yet to give back
    assert w.named(first.target_assignment.topic_partitions) == {"t": [0]}
    assert w.named(members["b"].assignment.topic_partitions) == {}
    assert w.named(members["b"].target_assignment.topic_partitions) == {"t": [1]}
    assert first.target_assignment.topic_partitions[0].topic_name == "t"


def test_topics_that_are_gone_are_left_out() -> None:
    w = ConsumerWorld()
    w.joined_consumers("a")
    w.topics.delete("t")
    (found,) = w.described().members
    assert not found.assignment.topic_partitions
    assert not found.target_assignment.topic_partitions


def test_an_empty_group_keeps_its_last_assignment_epoch() -> None:
    w = ConsumerWorld(group_consumer_assignors=("range", "uniform"))
    w.joined_consumers("a")[0].leave()
    found = w.described()
    assert (found.group_state, found.group_epoch, found.assignment_epoch, found.assignor_name, found.members) == (
        "Empty",
        3,
        2,
        "range",
        (),
    )


def test_groups_that_cannot_be_described() -> None:
    w = ConsumerWorld()
    w.stable(w.classic("m"))
    found = w.ask_description("g", "", "x", "x").answer.groups
    assert {(each.group_id, ErrorCode(each.error_code), each.error_message) for each in found} == {
        ("", ErrorCode.INVALID_GROUP_ID, None),
        ("g", ErrorCode.GROUP_ID_NOT_FOUND, "Group g is not a consumer group."),
        ("x", ErrorCode.GROUP_ID_NOT_FOUND, "Group x not found."),
    }
    assert len(found) == 4


def test_operations_are_told_if_they_are_asked_for() -> None:
    w = ConsumerWorld()
    w.joined_consumers("a")
    (without,) = w.ask_description("g").answer.groups
    (with_them,) = w.ask_description("g", operations=True).answer.groups
    assert (without.authorized_operations, with_them.authorized_operations) == (-(2**31), 3400)


def test_a_partition_that_is_being_loaded() -> None:
    w = ConsumerWorld()
    w.joined_consumers("a")
    w.begin_load(w.coordinator.shard_of("g").partition)
    assert w.described().error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert w.consumer().join().error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def test_describe_groups_knows_only_classic_ones() -> None:
    w = ConsumerWorld()
    w.joined_consumers("a")
    (found,) = w.describe().answer.groups
    assert (found.error_code, found.error_message) == (
        ErrorCode.GROUP_ID_NOT_FOUND,
        "Group g is not a classic group.",
    )


@pytest.mark.parametrize(
    ("filters", "listed"),
    [
        ({}, True),
        ({"types": ["CONSUMER"]}, True),
        ({"types": ["classic"]}, False),
        ({"types": ["odd"]}, False),
        ({"states": ["stable"]}, True),
        ({"states": ["Empty"]}, False),
    ],
)
def test_list_groups(filters: dict[str, Any], listed: bool) -> None:
    w = ConsumerWorld()
    w.joined_consumers("a")
    found = w.list_groups(**filters).answer.groups
    assert [(each.group_id, each.protocol_type, each.group_state, each.group_type) for each in found] == (
        [("g", "consumer", "Stable", "consumer")] if listed else []
    )


def test_deleting_a_group() -> None:
    """Only without members; its offsets go first, and a group of that name starts over."""
    w = ConsumerWorld()
    (a,) = w.joined_consumers("a")
    a.commit()
    (refused,) = w.delete_groups().answer.results
    assert refused.error_code == ErrorCode.NON_EMPTY_GROUP
    a.leave()
    (done,) = w.delete_groups().answer.results
    assert done.error_code == 0
    assert kinds(w.batches[-1]) == "-offset -assigned -topics -group"
    assert not w.exists
    a.epoch = 0
    a.join()
    assert a.epoch == 2


def test_an_empty_group_without_offsets_is_removed_after_a_while() -> None:
    w = ConsumerWorld()
    w.joined_consumers("a")[0].leave()
    w.advance(600_000)
    assert not w.exists


def test_pending_writes_do_not_show() -> None:
    w = ConsumerWorld()
    (a,) = w.joined_consumers("a")
    before = w.described(), w.list_groups().answer
    w.hold_appends()
    b = w.consumer("b")
    assert b.join().parked
    a.leave()
    asked = w.ask_description("g").answer.groups[0], w.list_groups().answer
    assert asked == before
    while w.held:
        w.confirm()
    assert {each.member_id for each in w.described().members} == {"b"}


def test_topics_that_share_a_bucket_are_listed_the_other_way_round() -> None:
    w = ConsumerWorld(topics={f"t{number}": 1 for number in range(17)})
    answer = w.consumer("a", "t0", "t16").join().answer
    given = [each.topic_id for each in answer.assignment.topic_partitions]
    assert len({topic_id.int % 16 for topic_id in given}) == 1
    described = w.described().members[0].assignment.topic_partitions
    assert [each.topic_id for each in described] == given[::-1]
