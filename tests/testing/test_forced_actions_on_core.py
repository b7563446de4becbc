import pytest

from groupcoord.broker.topic_names import CONSUMER_OFFSETS
from groupcoord.coordinator.events import GroupRemoved, MemberRemoved, RebalanceStarted, StaticMemberReplaced
from groupcoord.core.events import AdminAction
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.apis.delete_topics import DeleteTopicState
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import DeleteTopicsRequest
from groupcoord.testing import forced_actions_on_core
from tests.testing.faults.support import JoinGroup, World, join


@pytest.fixture
def world() -> World:
    return World()


def test_a_rebalance_is_forced(world: World) -> None:
    member = world.stable()
    world.execute_effects(forced_actions_on_core.force_rebalance(world.node, "app", "I say so", world.now))
    assert world.heartbeat(member).error == ErrorCode.REBALANCE_IN_PROGRESS
    told = world.told(RebalanceStarted)[-1]
    assert (told.reason, told.cause) == (
        "I say so",
        AdminAction("the administrator wants a rebalance of app: I say so"),
    )


def test_a_member_expires(world: World) -> None:
    member = world.stable()
    world.execute_effects(forced_actions_on_core.expire(world.node, "app", member, world.now))
    assert world.heartbeat(member).error == ErrorCode.UNKNOWN_MEMBER_ID
    told = world.told(MemberRemoved)[-1]
    assert told.cause == AdminAction(f"the administrator lets the session of {member} run out")


def test_what_has_to_be_stored_is_stored(world: World) -> None:
    """The last member goes: the group is empty in the log, too."""
    member = world.stable()
    world.execute_effects(forced_actions_on_core.expire(world.node, "app", member, world.now))
    world.execute_effects(forced_actions_on_core.unload(world.node, CONSUMER_OFFSETS, "app", world.now))
    forced_actions_on_core.load(world.node, CONSUMER_OFFSETS, "app", world.now)
    world.advance(1)
    group = world.node.coordinator.shard_of("app").machine.classic_group("app")
    assert group is not None
    assert (group.state, len(group.members), group.generation_id) == ("Empty", 0, 2)


def test_a_static_member_is_fenced(world: World) -> None:
    joined = world.ask(JoinGroup, join(instance="one"))
    world.advance(1)
    member = joined.answer.member_id
    world.execute_effects(forced_actions_on_core.fence(world.node, "app", "one", world.now))
    told = world.told(StaticMemberReplaced)[-1]
    assert (told.old_member, told.instance_id) == (member, "one")
    assert told.cause == AdminAction("the administrator lets another member take the instance id one")


def test_a_coordinator_goes_and_comes_back(world: World) -> None:
    member = world.stable()
    world.commit(7)
    world.execute_effects(forced_actions_on_core.unload(world.node, CONSUMER_OFFSETS, "app", world.now))
    assert world.heartbeat(member).error == ErrorCode.NOT_COORDINATOR
    assert [told.group for told in world.told(GroupRemoved)] == ["app"]
    forced_actions_on_core.load(world.node, CONSUMER_OFFSETS, "app", world.now)
    (topic,) = world.commit(8).answer.topics
    assert topic.partitions[0].error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    world.advance(0)
    assert world.heartbeat(member).error == ErrorCode.NONE


def test_one_that_is_here_cannot_come_back(world: World) -> None:
    with pytest.raises(ValueError, match="group 'app' has its coordinator here already"):
        forced_actions_on_core.load(world.node, CONSUMER_OFFSETS, "app", world.now)


def test_nor_can_one_whose_log_is_gone(world: World) -> None:
    request = DeleteTopicsRequest(topics=(DeleteTopicState(name="__consumer_offsets"),), timeout_ms=1)
    world.ask(APIS[ApiKey.DELETE_TOPICS], request)
    with pytest.raises(
        ValueError, match=r"there is no partition \d+ of __consumer_offsets, where group 'app' would be"
    ):
        forced_actions_on_core.load(world.node, CONSUMER_OFFSETS, "app", world.now)


def test_groups_share_partitions(world: World) -> None:
    assert 0 <= forced_actions_on_core.partition_of(world.node, CONSUMER_OFFSETS, "app") < 50
