import pytest

from groupcoord.coordinator.events import GroupRemoved, OffsetsRemoved, RequestRefused
from groupcoord.core.java_hash_order import partition_for
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.coordinator_records.group_records import GroupMetadataKey, OffsetCommitKey
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import DeleteGroupsRequest
from tests.coordinator.world import World, subscription

# --- DescribeGroups


@pytest.mark.parametrize("version", [0, 5])
def test_a_group_that_does_not_exist_is_dead_before_version_6(version: int) -> None:
    """Gotcha 44."""
    (group,) = World().describe("nobody", version=version).answer.groups
    assert (group.error_code, group.group_state, group.protocol_type, group.members) == (0, "Dead", "", ())
    assert group.error_message is None


def test_a_group_that_does_not_exist_is_not_found_from_version_6() -> None:
    """Gotcha 44, KIP-1043."""
    (group,) = World().describe("nobody", operations=True).answer.groups
    assert (group.error_code, group.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
    assert (group.error_message, group.authorized_operations) == ("Group nobody not found.", -2_147_483_648)


def test_an_empty_group_id_is_an_id_like_any_other() -> None:
    """Gotcha 39."""
    world = World()
    world.commit(group="")
    assert world.describe("").answer.groups[0].group_state == "Empty"


@pytest.mark.parametrize(
    ("version", "asked", "operations"), [(6, True, 3400), (6, False, -2_147_483_648), (2, True, -2_147_483_648)]
)
def test_operations_are_told_if_asked_for(version: int, asked: bool, operations: int) -> None:
    """Gotcha 58."""
    world = World()
    world.commit()
    request_operations = asked and version >= 3
    (group,) = world.describe(version=version, operations=request_operations).answer.groups
    assert group.authorized_operations == operations


def test_operations_of_a_dead_group_are_told_before_version_6() -> None:
    (group,) = World().describe("nobody", version=5, operations=True).answer.groups
    assert group.authorized_operations == 3400


def test_a_stable_group_shows_its_protocol_and_its_members_metadata() -> None:
    world = World()
    world.stable(world.member("a", instance="i", host="/10.0.0.1"))
    (group,) = world.describe().answer.groups
    assert (group.group_state, group.protocol_type, group.protocol_data) == ("Stable", "consumer", "range")
    (member,) = group.members
    assert (member.member_id, member.group_instance_id) == ("i-1", "i")
    assert (member.client_id, member.client_host) == ("a", "/10.0.0.1")
    assert (member.member_metadata, member.member_assignment) == (subscription("t"), b"for i-1")


def test_a_group_that_is_not_stable_hides_them_but_not_the_assignments() -> None:
    """Gotcha 45."""
    world = World()
    a, b = world.stable("a", "b")
    a.join()
    states = [world.describe().answer.groups[0]]
    b.join()
    states.append(world.describe().answer.groups[0])
    assert [(group.group_state, group.protocol_data) for group in states] == [
        ("PreparingRebalance", ""),
        ("CompletingRebalance", ""),
    ]
    for group in states:
        assert {(m.member_metadata, m.member_assignment) for m in group.members} == {
            (b"", b"for a-1"),
            (b"", b"for b-2"),
        }


def test_an_empty_group_keeps_its_type_and_shows_no_protocol() -> None:
    """Gotcha 14."""
    world = World()
    (a,) = world.stable("a")
    a.leave()
    (group,) = world.describe().answer.groups
    assert (group.group_state, group.protocol_type, group.protocol_data, group.members) == ("Empty", "consumer", "", ())


def test_who_was_handed_an_id_is_no_member() -> None:
    """Gotcha 6."""
    world = World()
    world.member("a").join()
    assert world.describe().answer.groups[0].members == ()


def test_groups_are_answered_partition_by_partition() -> None:
    """Gotcha 59: in the order in which a real 4.3.1 answered, which is not that of the request."""
    names = [f"group-{index}" for index in range(30)]
    real = "29 0 27 25 23 17 15 13 11 9 21 7 5 3 19 28 26 24 1 16 2 14 12 10 22 8 20 6 18 4"
    described = [group.group_id for group in World().describe(*names).answer.groups]
    assert described == [f"group-{index}" for index in real.split()]


def test_a_group_that_is_asked_for_twice_is_described_twice() -> None:
    assert len(World().describe("a", "a").answer.groups) == 2


# --- ListGroups


def full_house() -> World:
    """A stable consumer group, a connect group that prepares, and a simple one."""
    world = World()
    world.stable(world.member("a", group="stable"), world.member("g"))
    world.member("b", group="connecting", protocol_type="connect").enter()
    world.commit(group="simple")
    return world


@pytest.mark.parametrize(
    ("states", "types", "found"),
    [
        ((), (), {"stable", "connecting", "simple", "g"}),
        (("Stable",), (), {"stable", "g"}),
        ((" sTaBLe ",), (), {"stable", "g"}),
        (("Empty", "PreparingRebalance"), (), {"simple", "connecting"}),
        (("Nonsense",), (), set()),
        (("Dead",), (), set()),
        (("Nonsense", "Empty"), (), {"simple"}),
        ((), ("CLASSIC",), {"stable", "connecting", "simple", "g"}),
        ((), (" classic",), set()),
        ((), ("consumer",), set()),
        (("Empty",), ("classic",), {"simple"}),
        (("Empty",), ("share",), set()),
    ],
)
def test_groups_are_listed_by_state_and_type(states: tuple[str, ...], types: tuple[str, ...], found: set[str]) -> None:
    listed = full_house().list_groups(states, types).answer.groups
    assert {group.group_id for group in listed} == found


def test_a_listed_group_shows_type_and_state() -> None:
    listed = {group.group_id: group for group in full_house().list_groups().answer.groups}
    assert [(listed[name].protocol_type, listed[name].group_state) for name in ("stable", "connecting", "simple")] == [
        ("consumer", "Stable"),
        ("connect", "PreparingRebalance"),
        ("", "Empty"),
    ]
    assert {group.group_type for group in listed.values()} == {"classic"}


# --- DeleteGroups


def test_what_can_be_deleted_is_whatever_else_is_asked_for() -> None:
    """Gotcha 60."""
    world = full_house()
    results = {
        r.group_id: r.error_code for r in world.delete_groups("stable", "simple", "nobody", "connecting").answer.results
    }
    assert results == {
        "stable": ErrorCode.NON_EMPTY_GROUP,
        "simple": ErrorCode.NONE,
        "nobody": ErrorCode.GROUP_ID_NOT_FOUND,
        "connecting": ErrorCode.NON_EMPTY_GROUP,
    }
    assert {event.group: event.why for event in world.seen(RequestRefused)} == {
        "stable": "it has members: it is Stable",
        "nobody": "there is no such group",
        "connecting": "it has members: it is PreparingRebalance",
    }


def test_a_name_that_is_asked_for_twice_is_answered_once() -> None:
    world = World()
    world.commit()
    assert [(r.group_id, r.error_code) for r in world.delete_groups("g", "g").answer.results] == [("g", 0)]


def test_deletions_are_answered_partition_by_partition() -> None:
    """As by a real 4.3.1; within a partition the order is another one than DescribeGroups has."""
    names = [f"group-{index}" for index in range(30)]
    real = "29 0 27 25 23 17 15 13 11 21 9 7 5 3 19 28 26 24 1 16 2 14 12 10 22 20 8 6 18 4"
    deleted = [result.group_id for result in World().delete_groups(*names).answer.results]
    assert deleted == [f"group-{index}" for index in real.split()]


def test_deleting_nothing_is_answered_with_nothing() -> None:
    assert World().ask(ApiKey.DELETE_GROUPS, DeleteGroupsRequest()).answer.results == ()


def test_an_empty_group_id_can_be_deleted() -> None:
    """Gotcha 39."""
    world = World()
    world.commit(group="")
    assert world.delete_groups("").answer.results[0].error_code == 0


def test_with_a_group_go_its_offsets_in_one_batch_and_its_own_tombstone_comes_last() -> None:
    """Gotcha 53: a simple group has never had a record and gets a tombstone all the same."""
    world = World()
    world.commit({("t", 0): 1, ("t", 1): 2, ("u", 0): 3})
    world.delete_groups()
    batch = world.batches[-1]
    assert [record.value for record in batch] == [None] * 4
    assert {(r.key.topic, r.key.partition) for r in batch[:3] if isinstance(r.key, OffsetCommitKey)} == {
        ("t", 0),
        ("t", 1),
        ("u", 0),
    }
    assert batch[3].key == GroupMetadataKey(group="g")
    assert not world.exists
    assert world.fetch() == {}


def test_a_deleted_group_says_what_went() -> None:
    world = World()
    world.commit({("t", 0): 1})
    world.delete_groups()
    assert [event.text() for event in world.seen(OffsetsRemoved)] == ["offsets of t-0 are gone: a client asked for it"]
    assert [event.text() for event in world.seen(GroupRemoved)] == ["group g is gone: a client asked for it"]


def test_a_group_without_offsets_loses_no_offsets() -> None:
    world = World()
    world.member("a").join()
    world.delete_groups()
    assert world.seen(OffsetsRemoved) == []


def test_handed_out_ids_keep_no_group_from_deletion() -> None:
    world = World()
    a = world.member("a")
    a.join()
    world.delete_groups()
    assert world.deadline("session", "a-1") is None
    assert a.join().error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_of_the_same_name_starts_anew() -> None:
    world = World()
    (a,) = world.stable("a")
    a.leave()
    world.delete_groups()
    (b,) = world.stable("b")
    assert b.generation == 1


def test_the_answer_waits_until_all_partitions_have_stored_it() -> None:
    world = World()
    world.commit(group="x")
    world.commit(group="y")
    world.hold_appends()
    asked = world.delete_groups("x", "y")
    world.confirm()
    assert asked.parked
    world.confirm()
    assert [result.error_code for result in asked.answer.results] == [0, 0]


def test_a_partition_that_cannot_store_it_fails_alone() -> None:
    world = World()
    world.commit(group="x")
    world.commit(group="y")
    world.hold_appends()
    asked = world.delete_groups("x", "y")
    first, second = ("x", "y") if world.held[0].partition == partition_for("x", 50) else ("y", "x")
    world.fail(ErrorCode.REQUEST_TIMED_OUT)
    world.confirm()
    results = {result.group_id: result.error_code for result in asked.answer.results}
    assert results == {first: ErrorCode.COORDINATOR_NOT_AVAILABLE, second: ErrorCode.NONE}
    assert world.fetch(group=first) == {("t", 0): 5}
    assert world.fetch(group=second) == {}


def test_somebody_who_joins_while_the_tombstone_is_on_its_way_keeps_the_group() -> None:
    world = World()
    world.commit()
    world.hold_appends()
    world.delete_groups()
    waiting = world.member("a", instance="i").join()
    world.confirm()
    world.advance(3_000)
    assert waiting.error is ErrorCode.NONE
    assert world.fetch() == {}


def test_two_deletions_on_their_way_delete_once() -> None:
    world = World()
    world.commit()
    world.hold_appends()
    first, second = world.delete_groups(), world.delete_groups()
    assert len(world.held) == 1
    world.confirm()
    assert [asked.answer.results[0].error_code for asked in (first, second)] == [0, ErrorCode.GROUP_ID_NOT_FOUND]
    assert len(world.seen(GroupRemoved)) == 1
