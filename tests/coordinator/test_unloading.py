"""``__consumer_offsets`` is deleted: what a real 4.3.1 then answers to whom."""

from collections.abc import Callable
from typing import Any

import pytest

from groupcoord.coordinator.events import GroupRemoved, RequestRefused
from groupcoord.coordinator.find_coordinator import this_broker
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.apis.offset_delete import OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import FindCoordinatorRequest, OffsetDeleteRequest
from tests.coordinator.world import INITIAL_DELAY_MS, Asked, Member, World

LOST = ErrorCode.NOT_COORDINATOR


def unloaded() -> tuple[World, Member]:
    """A world whose stable group of one member is lost."""
    world = World()
    (a,) = world.stable("a")
    a.commit({("t", 0): 5})
    world.unload()
    return world, a


def find(world: World, *keys: str) -> Asked:
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=keys)
    return world.ask(ApiKey.FIND_COORDINATOR, request)


def delete_offsets(world: World) -> Asked:
    partitions = (OffsetDeleteRequestPartition(partition_index=0),)
    topics = (OffsetDeleteRequestTopic(name="t", partitions=partitions),)
    return world.ask(ApiKey.OFFSET_DELETE, OffsetDeleteRequest(group_id="g", topics=topics))


def test_who_waits_in_join_is_told_and_keeps_its_id() -> None:
    world = World()
    a = world.member("a")
    asked = a.enter()
    world.unload()
    assert (asked.error, asked.answer.member_id) == (LOST, a.member_id)
    assert world.seen(GroupRemoved)[0].reason == "there is no partition 3 of __consumer_offsets"


def test_who_waits_in_sync_is_told() -> None:
    world = World()
    a, b = world.member("a"), world.member("b")
    world.joined(a, b)
    follower = b if a.leads else a
    asked = follower.sync()
    world.unload()
    assert asked.error is LOST


@pytest.mark.parametrize(
    "ask",
    [
        lambda _, a: a.heartbeat(),
        lambda _, a: a.join(),
        lambda _, a: a.sync(),
        lambda _, a: a.leave(),
        lambda world, _: delete_offsets(world),
    ],
)
def test_members_and_administrators_are_told_at_the_top(ask: Callable[[World, Member], Asked]) -> None:
    world, a = unloaded()
    assert ask(world, a).error is LOST
    refusal = world.seen(RequestRefused)[-1]
    assert refusal.why == "there is no partition 3 of __consumer_offsets"


def test_a_join_is_not_told_its_id() -> None:
    _, a = unloaded()
    assert a.join().answer.member_id == ""


def test_what_is_wrong_with_a_join_is_told_first() -> None:
    _, a = unloaded()
    assert a.join(session_ms=1).error is ErrorCode.INVALID_SESSION_TIMEOUT


def test_every_partition_of_a_commit_is_told() -> None:
    _, a = unloaded()
    assert a.commit({("t", 0): 1, ("u", 1): 1}).partition_errors == {("t", 0): LOST, ("u", 1): LOST}


def test_a_described_group_has_nothing_but_the_error() -> None:
    world, _ = unloaded()
    (group,) = world.describe(operations=True).answer.groups
    assert (group.error_code, group.error_message, group.group_state, group.members) == (LOST, None, "", ())
    assert group.authorized_operations == -(2**31)


def test_no_group_is_listed() -> None:
    world, _ = unloaded()
    assert world.list_groups().answer.groups == ()


def test_every_group_to_delete_is_told() -> None:
    world, _ = unloaded()
    results = world.delete_groups("g", "h").answer.results
    assert {result.group_id: result.error_code for result in results} == {"g": LOST, "h": LOST}


@pytest.mark.parametrize("version", [1, 2, 7, 9])
def test_whoever_fetches_offsets_is_told_as_the_version_can(version: int) -> None:
    world, _ = unloaded()
    answer: Any = world.ask_offsets({"t": [0]}, version=version).answer
    if version == 1:
        assert [part.error_code for topic in answer.topics for part in topic.partitions] == [LOST]
        return
    told = answer.groups[0] if version >= 8 else answer
    assert (told.error_code, told.topics) == (LOST, ())


def test_all_offsets_are_as_lost_as_some() -> None:
    world, _ = unloaded()
    assert world.ask_offsets(None).answer.groups[0].error_code == LOST


def test_groups_have_no_coordinator_meanwhile() -> None:
    world, _ = unloaded()
    world.coordinator.transaction_coordinator_of = lambda _, listener: this_broker(world.config, listener)
    found = find(world, "g", "h").answer.coordinators
    assert [(one.key, one.error_code, one.node_id) for one in found] == [
        ("g", ErrorCode.COORDINATOR_NOT_AVAILABLE, -1),
        ("h", ErrorCode.COORDINATOR_NOT_AVAILABLE, -1),
    ]


def test_no_deadline_of_a_lost_group_is_left() -> None:
    world = World()
    a, b = world.stable("a", "b")
    world.member("c").enter()
    world.unload()
    kinds = {timer.key.kind for timer in world.coordinator.timers.pending()}
    assert kinds == {"retention"}
    world.advance(700_000)
    assert not a.leads or not b.leads


def test_with_the_topic_everything_begins_anew() -> None:
    world, a = unloaded()
    world.topics.create("__consumer_offsets", 50)
    assert find(world, "g").answer.coordinators[0].error_code == 0
    assert a.heartbeat().error is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.fetch({"t": [0]}) == {("t", 0): -1}
    a.member_id = ""
    world.joined(a)
    assert a.generation == 1


def test_a_topic_with_fewer_partitions_has_fewer_groups() -> None:
    world, _ = unloaded()
    world.topics.create("__consumer_offsets", 3)  # and group g belongs to the fourth
    found = find(world, "g", "").answer.coordinators
    assert [one.error_code for one in found] == [ErrorCode.COORDINATOR_NOT_AVAILABLE, 0]


def test_a_group_that_waits_for_others_is_lost_with_them() -> None:
    world = World()
    asked = [world.member("a").enter(), world.member("b").enter()]
    world.unload()
    world.advance(INITIAL_DELAY_MS)
    assert [one.error for one in asked] == [LOST, LOST]
