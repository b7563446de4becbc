import pytest

from groupcoord.coordinator.events import LeaderElected, MemberRemoved, RequestRefused
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.apis.leave_group import MemberIdentity
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import LeaveGroupRequest
from tests.coordinator.world import GROUP, INITIAL_DELAY_MS, Asked, World, subscription

NO, UNKNOWN, FENCED = ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID


def leave(world: World, *members: tuple[str, str | None], version: int = 5, group: str = GROUP) -> Asked:
    """A batch of (member id, instance id)."""
    identities = tuple(
        MemberIdentity(member_id=member_id, group_instance_id=instance) for member_id, instance in members
    )
    return world.ask(ApiKey.LEAVE_GROUP, LeaveGroupRequest(group_id=group, members=identities), version=version)


def errors(asked: Asked) -> list[int]:
    return [member.error_code for member in asked.answer.members]


# --- what is checked


def test_an_empty_group_id_is_invalid_at_the_top() -> None:
    """Gotcha 39."""
    asked = leave(World(), ("a-1", None), group="")
    assert (asked.error, asked.answer.members) == (ErrorCode.INVALID_GROUP_ID, ())


def test_without_a_group_every_member_is_unknown_and_the_top_is_fine() -> None:
    """Gotcha 40."""
    asked = leave(World(), ("a-1", None), ("b-2", "i"))
    assert (asked.error, errors(asked)) == (NO, [UNKNOWN, UNKNOWN])


@pytest.mark.parametrize("version", [0, 1, 2])
def test_before_version_3_the_one_error_is_at_the_top(version: int) -> None:
    """Gotcha 40."""
    assert World().member("a", member_id="a-1").leave(version=version).error is UNKNOWN


def test_members_are_answered_in_the_order_of_the_request() -> None:
    world = World()
    a, b = world.stable("a", "b")
    asked = leave(world, ("x", None), (b.member_id, None), (a.member_id, None))
    assert [(m.member_id, m.error_code) for m in asked.answer.members] == [("x", UNKNOWN), ("b-2", NO), ("a-1", NO)]
    assert world.group.state == "Empty"


def test_the_second_of_two_equal_entries_is_unknown() -> None:
    world = World()
    world.stable("a", "b")
    assert errors(leave(world, ("a-1", None), ("a-1", None))) == [NO, UNKNOWN]


@pytest.mark.parametrize(
    ("member_id", "instance", "error"),
    [
        ("i-1", "i", NO),
        ("i-1", None, NO),
        ("", "i", NO),
        ("", "other", UNKNOWN),
        ("", None, UNKNOWN),
        ("i-1", "other", UNKNOWN),
        ("i-0", "i", FENCED),
        ("i-0", None, UNKNOWN),
    ],
)
def test_a_static_member_goes_by_either_of_its_ids(member_id: str, instance: str | None, error: ErrorCode) -> None:
    world = World()
    world.stable(world.member("a", instance="i"))
    assert errors(leave(world, (member_id, instance))) == [error]
    assert bool(world.group.members) is bool(error)


def test_by_instance_id_alone_the_answer_does_not_tell_the_member_id() -> None:
    """Gotcha 41."""
    world = World()
    world.stable(world.member("a", instance="i"))
    (member,) = leave(world, ("", "i")).answer.members
    assert (member.member_id, member.group_instance_id) == ("", "i")


def test_a_refused_leave_changes_nothing() -> None:
    world = World()
    world.stable("a")
    leave(world, ("x", None))
    assert world.group.state == "Stable"
    assert world.seen(RequestRefused)[-1].why == "member_id 'x' is not in the group"


# --- what follows


def test_who_stays_rebalances() -> None:
    world = World()
    _, b = world.stable("a", "b")
    b.leave()
    assert world.group.state == "PreparingRebalance"


def test_before_the_assignment_who_waits_for_it_joins_again() -> None:
    world = World()
    a, b, c = world.member("a"), world.member("b"), world.member("c")
    world.joined(a, b, c)
    waiting = b.sync()
    c.leave()
    assert waiting.error is ErrorCode.REBALANCE_IN_PROGRESS


def test_during_a_rebalance_the_last_that_is_missing_ends_it_by_leaving() -> None:
    world = World()
    a, b = world.stable("a", "b")
    waiting = a.join()
    b.leave()
    assert waiting.error is NO
    assert a.generation == 2


def test_leaving_never_ends_the_initial_delay() -> None:
    """Gotcha 17."""
    world = World()
    a, b = world.member("a"), world.member("b")
    waiting = a.enter()
    b.enter()
    b.leave()
    assert waiting.parked
    assert world.deadline("join") == INITIAL_DELAY_MS


def test_a_parked_join_of_who_leaves_is_told_unknown_member() -> None:
    world = World()
    a = world.member("a")
    waiting = a.enter()
    a.leave()
    assert (waiting.error, waiting.answer.member_id) == (UNKNOWN, "")


def test_a_parked_sync_of_who_is_removed_is_never_answered() -> None:
    """Gotcha 42."""
    world = World()
    a, b = world.member("a"), world.member("b", instance="i")
    world.joined(a, b)
    waiting = b.sync()
    leave(world, ("", "i"))
    a.join()
    a.sync()
    world.advance(120_000)
    assert waiting.parked


@pytest.mark.parametrize("assigned", [True, False])
def test_a_handed_out_id_can_leave_and_that_rebalances(assigned: bool) -> None:
    """Gotcha 6."""
    world = World()
    a = world.member("a")
    world.joined(a)
    if assigned:
        a.sync()
    b = world.member("b")
    b.join()
    assert errors(b.leave(instance="whatever")) == [NO]
    assert world.group.state == "PreparingRebalance"
    assert world.deadline("session", "b-2") is None


def test_a_handed_out_id_of_an_empty_group_just_goes() -> None:
    world = World()
    a = world.member("a")
    a.join()
    a.leave()
    assert (world.group.state, world.group.pending_join_members) == ("Empty", set())


def test_the_session_of_who_left_is_over() -> None:
    world = World()
    a, _ = world.stable("a", "b")
    a.leave()
    assert world.deadline("session", "a-1") is None


def test_the_answer_to_the_last_waits_until_the_empty_group_is_stored() -> None:
    world = World()
    (a,) = world.stable("a")
    world.hold_appends()
    asked = a.leave()
    assert asked.parked
    world.confirm()
    assert asked.error is NO


def test_if_the_empty_group_cannot_be_stored_the_last_hears_of_it() -> None:
    world = World()
    (a,) = world.stable("a")
    world.fail_appends(ErrorCode.KAFKA_STORAGE_ERROR)
    asked = a.leave()
    assert (asked.error, asked.answer.members) == (ErrorCode.NOT_COORDINATOR, ())
    assert world.group.state == "Empty"


def test_the_empty_group_keeps_its_type_and_has_a_generation_more() -> None:
    """Gotchas 13 and 14."""
    world = World()
    (a,) = world.stable("a")
    world.advance(500)
    a.leave()
    value = world.group_values[-1]
    assert (value.protocol_type, value.generation, value.protocol, value.leader) == ("consumer", 2, None, None)
    assert (value.current_state_timestamp_ms, value.members) == (world.now_ms, ())
    world.stable("b")
    assert world.group.generation_id == 3


# --- what is said of it


def test_a_leave_says_why() -> None:
    world = World()
    a, b = world.stable("a", "b")
    a.leave(reason="closing time")
    b.leave()
    assert [event.text() for event in world.seen(MemberRemoved)] == [
        "a-1 is out: it left (closing time)",
        "b-2 is out: it left",
    ]


def test_a_leader_that_leaves_is_succeeded() -> None:
    world = World()
    a, b = world.stable("a", "b")
    a.leave()
    b.leave()
    (elected,) = world.seen(LeaderElected)
    assert elected.text() == "leader is b-2: the leader before, a-1, is out"


def test_a_leave_after_which_the_join_phase_cannot_end_is_told() -> None:
    """As a real 4.3.1 does: who leaves is gone all the same."""
    world = World()
    a, b = world.stable("a", "b")
    waiting = b.join(protocols={"range": subscription("t")[:8]})
    asked = a.leave()
    assert (asked.error, asked.answer.members) == (ErrorCode.UNKNOWN_SERVER_ERROR, ())
    assert list(world.group.members) == [b.member_id]
    assert waiting.parked
