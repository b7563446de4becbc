import pytest

from groupcoord.core.java_hash_order import partition_for
from groupcoord.protocol.apis import ApiKey
from tests.coordinator.world import World


def test_it_answers_the_apis_of_groups_and_offsets() -> None:
    assert {ApiKey(key).name for key in World().coordinator.apis} == {
        "FIND_COORDINATOR",
        "JOIN_GROUP",
        "SYNC_GROUP",
        "HEARTBEAT",
        "LEAVE_GROUP",
        "OFFSET_COMMIT",
        "OFFSET_FETCH",
        "OFFSET_DELETE",
        "TXN_OFFSET_COMMIT",
        "DESCRIBE_GROUPS",
        "LIST_GROUPS",
        "DELETE_GROUPS",
        "CONSUMER_GROUP_HEARTBEAT",
        "CONSUMER_GROUP_DESCRIBE",
    }


@pytest.mark.parametrize(("group", "partition"), [("g", 3), ("test", 48), ("my-group", 12), ("group", 47), ("", 0)])
def test_a_group_lives_in_the_partition_of_its_hash(group: str, partition: int) -> None:
    world = World()
    world.commit(group=group)
    assert world.records[0].partition == partition == partition_for(group, 50)


def test_groups_know_nothing_of_each_other() -> None:
    world = World()
    a, b = world.member("a", group="one"), world.member("a", group="two")
    a.enter()
    world.advance(1_000)
    b.enter()
    world.advance(2_000)
    assert (a.generation, b.generation) == (1, -1)


def test_the_only_deadlines_of_an_idle_coordinator_are_those_of_cleaning() -> None:
    world = World(now_ms=5)
    assert world.coordinator.next_deadline() == 600_005
    assert world.coordinator.expire(600_004) == []


def test_the_same_script_gives_the_same_effects() -> None:
    def script() -> World:
        world = World()
        a, b = world.stable("a", world.member("b", instance="i"))
        a.commit()
        world.member("b", instance="i").join()
        world.member("c").join()
        b.leave(member_id="")
        world.advance(700_000)
        world.delete_groups()
        return world

    assert script().effects == script().effects
