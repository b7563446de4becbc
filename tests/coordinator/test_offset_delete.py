from groupcoord.coordinator.events import OffsetsRemoved, RequestRefused
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.apis.offset_delete import OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import OffsetDeleteRequest
from tests.coordinator.world import Asked, World, subscription

NO, MISSING, SUBSCRIBED = ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC


def delete(world: World, *topics: tuple[str, tuple[int, ...]], group: str = "g") -> Asked:
    request = OffsetDeleteRequest(
        group_id=group,
        topics=tuple(
            OffsetDeleteRequestTopic(
                name=name, partitions=tuple(OffsetDeleteRequestPartition(partition_index=index) for index in partitions)
            )
            for name, partitions in topics
        ),
    )
    return world.ask(ApiKey.OFFSET_DELETE, request)


# --- the group


def test_an_empty_group_id_is_invalid() -> None:
    """Gotcha 39."""
    asked = delete(World(), ("t", (0,)), group="")
    assert (asked.error, asked.answer.topics) == (ErrorCode.INVALID_GROUP_ID, ())


def test_a_group_that_does_not_exist_is_not_found_even_if_no_partition_exists_either() -> None:
    asked = delete(World(), ("nope", (0,)))
    assert (asked.error, asked.answer.topics) == (ErrorCode.GROUP_ID_NOT_FOUND, ())


def test_an_active_group_of_another_type_keeps_its_offsets() -> None:
    """Gotcha 51."""
    world = World()
    (a,) = world.stable(world.member("a", protocol_type="connect"))
    a.commit()
    assert delete(world, ("t", (0,))).error is ErrorCode.NON_EMPTY_GROUP
    assert "type 'connect'" in world.seen(RequestRefused)[-1].why
    a.leave()
    assert delete(world, ("t", (0,))).partition_errors == {("t", 0): NO}
    assert world.fetch() == {}


# --- topics and partitions


def test_an_offset_that_exists_and_one_that_does_not_are_both_a_success() -> None:
    """Gotcha 50: a tombstone only for the first."""
    world = World()
    world.commit({("t", 0): 1, ("t", 1): 2})
    assert delete(world, ("t", (0, 2))).partition_errors == {("t", 0): NO, ("t", 2): NO}
    assert world.fetch() == {("t", 1): 2}
    tombstone = world.records[-1]
    assert (tombstone.key.group, tombstone.key.topic, tombstone.key.partition) == ("g", "t", 0)
    assert tombstone.value is None
    assert len(world.offset_values) == 3


def test_what_does_not_exist_is_answered_first() -> None:
    """As on a real 4.3.1, where an unknown topic is named even without partitions."""
    world = World()
    world.commit()
    topics = delete(world, ("t", (0, 7)), ("nope", (1,)), ("nope2", ()), ("u", ())).answer.topics
    assert [(t.name, [(p.partition_index, p.error_code) for p in t.partitions]) for t in topics] == [
        ("t", [(7, MISSING), (0, NO)]),
        ("nope", [(1, MISSING)]),
        ("nope2", []),
    ]


def test_topics_that_members_read_are_kept() -> None:
    world = World()
    (a,) = world.stable(world.member("a", protocols={"range": subscription("t")}))
    a.commit({("t", 0): 1, ("u", 0): 2})
    errors = delete(world, ("t", (0, 1)), ("u", (0,))).partition_errors
    assert errors == {("t", 0): SUBSCRIBED, ("t", 1): SUBSCRIBED, ("u", 0): NO}
    assert world.fetch() == {("t", 0): 1}


def test_during_the_very_first_rebalance_every_topic_counts_as_read() -> None:
    """Gotcha 50."""
    world = World()
    world.member("a").enter()
    assert delete(world, ("u", (0,))).partition_errors == {("u", 0): SUBSCRIBED}


def test_when_all_have_left_everything_can_go() -> None:
    world = World()
    (a,) = world.stable("a")
    a.commit()
    a.leave()
    assert delete(world, ("t", (0,))).partition_errors == {("t", 0): NO}
    assert world.seen(OffsetsRemoved)[-1].text() == "offsets of t-0 are gone: a client asked for it"


def test_the_answer_waits_until_the_tombstones_are_stored() -> None:
    world = World()
    world.commit()
    world.hold_appends()
    asked = delete(world, ("t", (0,)))
    assert asked.parked
    assert world.fetch() == {("t", 0): 5}
    world.confirm()
    assert world.fetch() == {}


def test_if_they_cannot_be_stored_the_offsets_stay() -> None:
    world = World()
    world.commit()
    world.fail_appends(ErrorCode.KAFKA_STORAGE_ERROR)
    asked = delete(world, ("t", (0,)))
    assert (asked.error, asked.answer.topics) == (ErrorCode.NOT_COORDINATOR, ())
    assert world.fetch() == {("t", 0): 5}


def test_the_same_partition_twice_is_gone_once() -> None:
    world = World()
    world.commit()
    topics = delete(world, ("t", (0,)), ("t", (0,))).answer.topics
    assert [[p.error_code for p in topic.partitions] for topic in topics] == [[NO], [NO]]
    assert world.fetch() == {}


def test_a_topic_that_is_named_twice_beside_an_unknown_one_is_answered_once() -> None:
    world = World()
    world.commit()
    topics = delete(world, ("t", (0,)), ("nowhere", (0,)), ("t", (0,))).answer.topics
    assert [(topic.name, len(topic.partitions)) for topic in topics] == [("nowhere", 1), ("t", 2)]


# --- with a topic go its offsets


def test_with_a_topic_go_its_offsets_in_every_group() -> None:
    world = World()
    (a,) = world.stable("a")
    a.commit({("t", 0): 1, ("u", 0): 2})
    world.commit({("t", 1): 3}, group="other")
    world.commit({("u", 1): 4}, group="third")
    world.delete_topic("t")
    assert world.fetch() == {("u", 0): 2}
    assert world.fetch(group="other") == {}
    assert world.fetch(group="third") == {("u", 1): 4}
    assert world.offset_values[-2:] == [None, None]
    removed = world.seen(OffsetsRemoved)
    assert {event.group for event in removed} == {"g", "other"}
    assert removed[0].text().endswith("are gone: their topic was deleted")
    assert str(removed[0].cause) == "topic t is deleted"


def test_the_offsets_of_an_earlier_topic_of_that_name_stay() -> None:
    """As in Kafka: the coordinator had not heard that it was deleted and created again."""
    world = World()
    world.commit({("t", 0): 1})
    world.topics.delete("t")
    world.topics.create("t", 2)
    world.commit({("t", 1): 2})
    world.delete_topic("t")
    assert world.fetch() == {("t", 0): 1}


def test_a_topic_without_offsets_leaves_no_trace() -> None:
    world = World()
    world.commit({("t", 0): 1})
    world.delete_topic("u")
    assert len(world.records) == 1


def test_if_the_tombstones_of_a_topic_cannot_be_stored_nobody_is_told() -> None:
    world = World()
    world.commit()
    world.fail_appends(ErrorCode.REQUEST_TIMED_OUT)
    world.delete_topic("t")
    assert world.fetch() == {("t", 0): 5}
