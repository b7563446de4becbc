import uuid

import pytest

from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.apis.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import OffsetFetchRequest
from tests.coordinator.world import World


def test_an_offset_comes_back_with_epoch_and_metadata() -> None:
    world = World()
    world.commit({("t", 1): 7}, metadata="m", leader_epoch=3)
    (partition,) = world.ask_offsets({"t": [1]}).answer.groups[0].topics[0].partitions
    assert (partition.committed_offset, partition.committed_leader_epoch, partition.metadata) == (7, 3, "m")


@pytest.mark.parametrize(("group", "topic"), [("nobody", "t"), ("g", "u"), ("g", "no such topic"), ("", "t")])
def test_what_was_never_committed_is_minus_one_and_no_error(group: str, topic: str) -> None:
    """Gotchas 37 and 39."""
    world = World()
    world.commit()
    (partition,) = world.ask_offsets({topic: [0]}, group=group).answer.groups[0].topics[0].partitions
    assert (partition.error_code, partition.committed_offset) == (0, -1)
    assert (partition.committed_leader_epoch, partition.metadata) == (-1, "")


def test_partitions_are_answered_in_the_order_of_the_request() -> None:
    world = World()
    world.commit({("t", 0): 1, ("t", 2): 3})
    assert list(world.fetch({"t": [2, 9, 0]}).items()) == [(("t", 2), 3), (("t", 9), -1), (("t", 0), 1)]


def test_all_topics_are_those_with_an_offset() -> None:
    world = World()
    world.commit({("t", 0): 1, ("u", 2): 3})
    assert world.fetch() == {("t", 0): 1, ("u", 2): 3}


def test_all_topics_of_an_unknown_group_are_none() -> None:
    """Gotcha 38."""
    assert World().fetch(group="nobody") == {}


def test_several_groups_are_answered_in_the_order_of_the_request() -> None:
    world = World()
    for index, group in enumerate(("x", "y", "z")):
        world.commit({("t", 0): index}, group=group)
    request = OffsetFetchRequest(
        groups=tuple(OffsetFetchRequestGroup(group_id=group, topics=None) for group in ("z", "x", "nobody"))
    )
    groups = world.ask(ApiKey.OFFSET_FETCH, request, version=9).answer.groups
    assert [(g.group_id, [t.partitions[0].committed_offset for t in g.topics]) for g in groups] == [
        ("z", [2]),
        ("x", [0]),
        ("nobody", []),
    ]


@pytest.mark.parametrize("version", [1, 2, 5, 7])
def test_before_version_8_there_is_one_group(version: int) -> None:
    world = World()
    world.commit()
    (topic,) = world.ask_offsets({"t": [0]}, version=version).answer.topics
    assert (topic.name, topic.partitions[0].committed_offset) == ("t", 5)


def test_in_versions_2_to_7_null_means_all() -> None:
    world = World()
    world.commit({("t", 0): 1, ("u", 2): 3})
    assert {topic.name for topic in world.ask_offsets(version=2).answer.topics} == {"t", "u"}


def test_who_asks_as_which_member_does_not_matter() -> None:
    world = World()
    (a,) = world.stable("a")
    a.commit()
    group = OffsetFetchRequestGroup(group_id="g", member_id="stranger", member_epoch=99, topics=None)
    (answer,) = world.ask(ApiKey.OFFSET_FETCH, OffsetFetchRequest(groups=(group,)), version=9).answer.groups
    assert answer.topics[0].partitions[0].committed_offset == 5


def test_a_fetch_does_not_keep_the_session() -> None:
    """Gotcha 29."""
    world = World()
    world.stable("a")
    world.advance(1_000)
    world.fetch()
    assert world.deadline("session", "a-1") == 9_000


# --- version 10: topics by id


def by_id(
    world: World, *topics: tuple[uuid.UUID | None, tuple[int, ...]]
) -> list[tuple[uuid.UUID | None, list[int], list[int]]]:
    """(topic id, errors, offsets) of each answered topic."""
    asked = tuple(OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=parts) for topic_id, parts in topics)
    request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id="g", topics=asked),))
    (group,) = world.ask(ApiKey.OFFSET_FETCH, request, version=10).answer.groups
    return [
        (t.topic_id, [p.error_code for p in t.partitions], [p.committed_offset for p in t.partitions])
        for t in group.topics
    ]


def test_topics_go_by_their_ids_and_unknown_ones_come_last() -> None:
    world = World()
    world.commit()
    nobody, t = uuid.UUID(int=99), world.topics.ids["t"]
    assert by_id(world, (nobody, (0, 1)), (None, (0,)), (nobody, ()), (t, (0, 1))) == [
        (t, [0, 0], [5, -1]),
        (nobody, [ErrorCode.UNKNOWN_TOPIC_ID] * 2, [-1, -1]),
        (None, [ErrorCode.UNKNOWN_TOPIC_ID], [-1]),
        (nobody, [], []),
    ]


def test_the_offset_of_a_topic_that_was_created_again_is_not_the_new_ones() -> None:
    world = World()
    world.commit()
    world.topics.delete("t")
    world.topics.create("t", 3)
    assert by_id(world, (world.topics.ids["t"], (0,))) == [(world.topics.ids["t"], [0], [-1])]
    assert world.ask_offsets(version=10).answer.groups[0].topics == ()
    assert world.fetch({"t": [0]}) == {("t", 0): 5}


def test_all_topics_by_id_are_those_that_exist() -> None:
    world = World()
    world.commit({("t", 0): 1, ("u", 2): 3})
    world.topics.delete("u")
    (topic,) = world.ask_offsets(version=10).answer.groups[0].topics
    assert (topic.topic_id, topic.partitions[0].committed_offset) == (world.topics.ids["t"], 1)


@pytest.mark.parametrize("stable", [False, True])
def test_no_groups_are_no_answers(stable: bool) -> None:
    request = OffsetFetchRequest(groups=(), require_stable=stable)
    assert World().ask(ApiKey.OFFSET_FETCH, request, version=9).answer.groups == ()


def test_of_several_groups_those_that_wait_hold_the_answer() -> None:
    world = World()
    world.hold_appends()
    world.commit(group="g")
    world.commit({("t", 0): 6}, group="h")
    asked = tuple(
        OffsetFetchRequestGroup(group_id=name, topics=(OffsetFetchRequestTopics(name="t", partition_indexes=(0,)),))
        for name in ("g", "h")
    )
    answer = world.ask(ApiKey.OFFSET_FETCH, OffsetFetchRequest(groups=asked, require_stable=True), version=9)
    world.confirm()
    assert answer.parked
    world.confirm()
    assert [group.topics[0].partitions[0].committed_offset for group in answer.answer.groups] == [5, 6]


def test_of_several_groups_one_may_be_refused() -> None:
    world = World()
    world.commit(group="g")
    world.hold_appends()
    world.commit({("t", 0): 6}, group="h")
    asked = tuple(
        OffsetFetchRequestGroup(group_id=name, topics=(OffsetFetchRequestTopics(name="t", partition_indexes=(0,)),))
        for name in ("g", "h")
    )
    answer = world.ask(ApiKey.OFFSET_FETCH, OffsetFetchRequest(groups=asked, require_stable=True), version=9)
    world.fail(ErrorCode.MESSAGE_TOO_LARGE)
    assert [group.error_code for group in answer.answer.groups] == [0, ErrorCode.UNKNOWN_SERVER_ERROR]
