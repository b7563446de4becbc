import pytest

from groupcoord.coordinator.events import GroupCreated, OffsetsCommitted, RequestRefused
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.apis.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import OffsetCommitRequest
from tests.coordinator.world import Asked, World

NO, MISSING, TOO_LARGE = ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OFFSET_METADATA_TOO_LARGE


def commit(world: World, *topics: tuple[str, list[tuple[int, str]]], version: int = 9, group: str = "g") -> Asked:
    """Topics with (partition, metadata); offset 5 each."""
    request = OffsetCommitRequest(
        group_id=group,
        member_id="",
        topics=tuple(
            OffsetCommitRequestTopic(
                name=name,
                topic_id=world.topics.topic_id(name),
                partitions=tuple(
                    OffsetCommitRequestPartition(partition_index=index, committed_offset=5, committed_metadata=metadata)
                    for index, metadata in partitions
                ),
            )
            for name, partitions in topics
        ),
    )
    return world.ask(ApiKey.OFFSET_COMMIT, request, version=version)


# --- what exists


def test_partitions_that_do_not_exist_are_answered_before_the_others() -> None:
    """Gotcha 36."""
    asked = commit(World(), ("t", [(0, ""), (3, ""), (1, ""), (-1, "")]), ("nope", [(0, "")]))
    (t, nope) = asked.answer.topics
    assert [(p.partition_index, p.error_code) for p in t.partitions] == [(3, MISSING), (-1, MISSING), (0, NO), (1, NO)]
    assert [(p.partition_index, p.error_code) for p in nope.partitions] == [(0, MISSING)]


def test_if_nothing_of_a_commit_exists_the_group_is_not_even_looked_at() -> None:
    """Gotcha 35."""
    world = World()
    world.stable("a")
    errors = world.commit({("nope", 0): 1}, generation=99, member_id="x").partition_errors
    assert errors == {("nope", 0): MISSING}


def test_an_unknown_topic_without_partitions_is_still_named() -> None:
    """As on a real 4.3.1; a known one is not."""
    asked = commit(World(), ("nope", []), ("t", []))
    assert [(topic.name, topic.partitions) for topic in asked.answer.topics] == [("nope", ())]


def test_a_topic_without_a_name_does_not_exist() -> None:
    assert commit(World(), ("", [(0, "")])).partition_errors == {("", 0): MISSING}


def test_a_topic_that_is_named_twice_is_answered_twice() -> None:
    topics = commit(World(), ("t", [(0, "")]), ("t", [(1, "")])).answer.topics
    assert [(topic.name, [p.partition_index for p in topic.partitions]) for topic in topics] == [("t", [0]), ("t", [1])]


def test_unless_something_is_refused() -> None:
    """Then Kafka merges what it says of a topic; seen on a real 4.3.1."""
    topics = commit(World(), ("t", [(0, "")]), ("t", [(1, "")]), ("u", [(7, "")])).answer.topics
    assert [(topic.name, [p.partition_index for p in topic.partitions]) for topic in topics] == [
        ("u", [7]),
        ("t", [0, 1]),
    ]


def test_however_many_partitions_are_stored_each_is_answered() -> None:
    world = World()
    for repeats in (1, 2, 40):
        (answered,) = commit(world, ("t", [(0, ""), (1, "")] * repeats)).answer.topics
        assert [(p.partition_index, p.error_code) for p in answered.partitions] == [(0, NO), (1, NO)] * repeats


def test_a_commit_of_nothing_is_answered_with_nothing() -> None:
    world = World()
    assert commit(world).answer.topics == ()
    assert not world.exists


def test_from_version_10_topics_go_by_their_ids() -> None:
    world = World()
    asked = commit(world, ("t", [(0, ""), (7, "")]), ("nope", [(0, "")]), version=10)
    t, nope = asked.answer.topics
    assert (t.topic_id, t.name, [p.error_code for p in t.partitions]) == (world.topics.ids["t"], "", [MISSING, NO])
    assert (nope.topic_id, [p.error_code for p in nope.partitions]) == (None, [ErrorCode.UNKNOWN_TOPIC_ID])
    assert world.fetch() == {("t", 0): 5}


# --- who may commit (the rest is in the table of classic/test_states.py)


def test_a_commit_from_outside_creates_a_simple_group() -> None:
    """Gotcha 53: without a record of its own."""
    world = World()
    assert set(world.commit().partition_errors.values()) == {NO}
    assert world.group_values == []
    assert world.seen(GroupCreated)[0].text() == "new group g (holds offsets only)"
    (listed,) = world.list_groups().answer.groups
    assert (listed.group_state, listed.protocol_type, listed.group_type) == ("Empty", "", "classic")


def test_an_empty_group_id_is_fine() -> None:
    """Gotcha 39."""
    assert set(World().commit(group="").partition_errors.values()) == {NO}


@pytest.mark.parametrize(("version", "error"), [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)])
def test_a_generation_of_a_group_that_does_not_exist(version: int, error: ErrorCode) -> None:
    """Gotcha 31."""
    world = World()
    assert set(world.commit(generation=0, version=version).partition_errors.values()) == {error}
    assert not world.exists


def test_an_instance_id_alone_makes_a_commit_that_of_a_member() -> None:
    world = World()
    world.stable(world.member("a", instance="i"))
    assert set(world.commit(instance="i").partition_errors.values()) == {ErrorCode.FENCED_INSTANCE_ID}
    assert set(world.commit(instance="x").partition_errors.values()) == {ErrorCode.UNKNOWN_MEMBER_ID}


def test_a_valid_member_without_generation_is_of_an_old_generation() -> None:
    """Gotcha 32."""
    world = World()
    (a,) = world.stable("a")
    assert set(a.commit(generation=-1).partition_errors.values()) == {ErrorCode.ILLEGAL_GENERATION}


def test_a_group_error_is_on_every_partition_that_exists() -> None:
    world = World()
    world.stable("a")
    errors = world.commit({("t", 0): 1, ("t", 9): 1, ("u", 1): 1}).partition_errors
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert errors == {("t", 9): MISSING, ("t", 0): unknown, ("u", 1): unknown}
    assert (
        world.seen(RequestRefused)[-1].why == "the group is Stable: only its members may commit, and member_id is empty"
    )


# --- sessions


@pytest.mark.parametrize("rebalancing", [False, True])
def test_a_commit_keeps_the_session(rebalancing: bool) -> None:
    """Gotchas 29 and 30: in a stable group, and in one that prepares."""
    world = World()
    a, b = world.stable("a", "b")
    world.advance(4_000)
    if rebalancing:
        a.join()
    assert set(b.commit().partition_errors.values()) == {NO}
    assert world.deadline("session", "b-2") == 10_000


def test_a_refused_commit_does_not() -> None:
    """Gotcha 30: neither does one before the assignment."""
    world = World()
    a = world.member("a")
    world.joined(a)
    world.advance(4_000)
    assert set(a.commit().partition_errors.values()) == {ErrorCode.REBALANCE_IN_PROGRESS}
    assert world.deadline("session", "a-1") == 6_000


# --- what is stored


@pytest.mark.parametrize("offset", [0, -1, -7, 2**63 - 1, -(2**63)])
def test_any_offset_is_stored_as_it_is(offset: int) -> None:
    """Gotcha 33."""
    world = World()
    world.commit({("t", 0): offset})
    assert world.fetch({"t": [0]}) == {("t", 0): offset}


@pytest.mark.parametrize(
    ("metadata", "accepted"),
    [
        ("x" * 4_096, True),
        ("x" * 4_097, False),
        ("é" * 4_096, True),
        ("\U0001f600" * 2_048, True),
        ("\U0001f600" * 2_049, False),
    ],
)
def test_metadata_is_measured_in_utf16_units(metadata: str, accepted: bool) -> None:
    """Gotcha 34."""
    errors = World().commit(metadata=metadata).partition_errors
    assert set(errors.values()) == {NO if accepted else TOO_LARGE}


def test_too_much_metadata_keeps_no_other_partition() -> None:
    """Gotcha 34."""
    world = World(offset_metadata_max_bytes=3)
    asked = commit(world, ("t", [(0, "long"), (1, "ok")]))
    assert asked.partition_errors == {("t", 0): TOO_LARGE, ("t", 1): NO}
    assert world.fetch() == {("t", 1): 5}


def test_if_all_metadata_is_too_much_nothing_is_written() -> None:
    world = World(offset_metadata_max_bytes=3)
    assert set(world.commit(metadata="long").partition_errors.values()) == {TOO_LARGE}
    assert world.records == []
    assert world.seen(OffsetsCommitted) == []


def test_no_metadata_is_empty_metadata() -> None:
    world = World()
    world.commit(metadata=None)
    (value,) = world.offset_values
    assert value.metadata == ""


def test_the_record_holds_all_of_the_commit() -> None:
    world = World(now_ms=50)
    world.commit({("t", 1): 7}, metadata="m", leader_epoch=3)
    (record,) = world.records
    key, value = record.key, record.value
    assert (key.group, key.topic, key.partition) == ("g", "t", 1)
    assert (value.offset, value.leader_epoch, value.metadata) == (7, 3, "m")
    assert (value.commit_timestamp_ms, value.expire_timestamp_ms, value.topic_id) == (50, -1, world.topics.ids["t"])


def test_one_commit_is_one_batch_in_the_order_of_the_request() -> None:
    world = World()
    world.commit({("u", 2): 1, ("t", 1): 2, ("t", 0): 3})
    (batch,) = world.batches
    assert [(record.key.topic, record.key.partition) for record in batch] == [("u", 2), ("t", 1), ("t", 0)]


def test_before_version_5_a_commit_can_say_how_long_it_lasts() -> None:
    """At the price of the leader epoch and topic id."""
    world = World(now_ms=50)
    world.commit(retention_ms=100, version=4)
    (value,) = world.offset_values
    assert (value.expire_timestamp_ms, value.leader_epoch, value.topic_id) == (150, -1, None)


@pytest.mark.parametrize("retention_ms", [2**63 - 1, -5])
def test_an_absurd_retention_is_taken_and_over_at_once(retention_ms: int) -> None:
    """It wraps in Java; seen on a real 4.3.1 that it is accepted."""
    world = World(now_ms=50)
    assert set(world.commit(retention_ms=retention_ms, version=4).partition_errors.values()) == {NO}
    world.advance(600_000)
    assert not world.exists


def test_the_answer_waits_until_the_offsets_are_stored() -> None:
    world = World()
    world.hold_appends()
    asked = world.commit()
    assert asked.parked
    assert world.fetch() == {}
    world.confirm()
    assert set(asked.partition_errors.values()) == {NO}
    assert world.fetch() == {("t", 0): 5}


def test_if_they_cannot_be_stored_every_partition_says_so_and_no_group_is_left_over() -> None:
    world = World()
    world.fail_appends(ErrorCode.NOT_ENOUGH_REPLICAS)
    errors = world.commit({("t", 0): 1, ("t", 9): 1}).partition_errors
    assert errors == {("t", 9): MISSING, ("t", 0): ErrorCode.COORDINATOR_NOT_AVAILABLE}
    assert not world.exists
    assert world.fetch() == {}


def test_if_they_cannot_be_stored_a_group_that_was_there_stays() -> None:
    world = World()
    world.commit({("t", 1): 1})
    world.fail_appends(ErrorCode.NOT_ENOUGH_REPLICAS)
    world.commit()
    assert world.fetch() == {("t", 1): 1}


def test_with_the_first_commit_of_a_group_that_cannot_be_stored_goes_whoever_has_joined_meanwhile() -> None:
    world = World()
    world.hold_appends()
    world.commit()
    joining = world.member("a").enter()
    world.fail(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert joining.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert not world.exists
    assert world.coordinator.timers.next_deadline() == 600_000  # only the next look for what has expired


# --- what is said of it


def test_a_commit_says_who_committed_what() -> None:
    world = World()
    (a,) = world.stable("a")
    a.commit({("t", 0): 5, ("u", 2): 7})
    (event,) = world.seen(OffsetsCommitted)
    assert (event.text(), event.generation) == ("a-1 commits t-0 at 5, u-2 at 7", 1)


def test_a_commit_from_outside_says_so() -> None:
    world = World()
    world.commit()
    assert world.seen(OffsetsCommitted)[0].text() == "a client outside of the group commits t-0 at 5"
