from collections.abc import Mapping, Sequence

import pytest

from groupcoord.coordinator.events import (
    GroupCreated,
    MemberIdAssigned,
    MemberJoined,
    MemberRejoined,
    RebalanceStuck,
    RequestRefused,
)
from groupcoord.protocol.errors import ErrorCode
from tests.coordinator.world import INITIAL_DELAY_MS, NEW_MEMBER_MS, World, subscription

# --- what is checked before there is a group


def test_an_empty_group_id_is_invalid() -> None:
    """Gotcha 39."""
    asked = World().member("a", group="").join(member_id="a-7")
    assert (asked.error, asked.answer.member_id) == (ErrorCode.INVALID_GROUP_ID, "a-7")


@pytest.mark.parametrize(
    ("session_ms", "accepted"), [(5_999, False), (6_000, True), (1_800_000, True), (1_800_001, False)]
)
def test_session_timeouts_have_inclusive_bounds(session_ms: int, accepted: bool) -> None:
    asked = World().member("a", session_ms=session_ms).join()
    assert asked.error is (ErrorCode.MEMBER_ID_REQUIRED if accepted else ErrorCode.INVALID_SESSION_TIMEOUT)


def test_the_group_id_is_checked_before_the_session_timeout() -> None:
    assert World().member("a", group="", session_ms=1).join().error is ErrorCode.INVALID_GROUP_ID


def test_a_refused_session_timeout_creates_no_group_and_echoes_the_id() -> None:
    world = World()
    asked = world.member("a", session_ms=1).join(member_id="a-7")
    assert asked.answer.member_id == "a-7"
    assert not world.exists
    assert world.records == []


def test_an_id_for_a_group_that_does_not_exist_is_unknown() -> None:
    """Gotcha 1: not GROUP_ID_NOT_FOUND, and nothing is created."""
    world = World()
    asked = world.member("a").join(member_id="a-7")
    assert (asked.error, asked.answer.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "a-7")
    assert not world.exists


@pytest.mark.parametrize(("protocol_type", "protocols"), [("", {"range": b""}), ("consumer", {})])
def test_the_first_to_come_must_offer_a_type_and_a_protocol(protocol_type: str, protocols: dict[str, bytes]) -> None:
    """Gotcha 2: refused, and yet the group exists from then on, without a type."""
    world = World()
    asked = world.member("a", protocol_type=protocol_type, protocols=protocols).join()
    assert (asked.error, asked.answer.member_id) == (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "")
    (listed,) = world.list_groups().answer.groups
    assert (listed.group_id, listed.protocol_type, listed.group_state) == ("g", "", "Empty")
    assert len(world.group_values) == 1


def test_an_error_says_nothing_else() -> None:
    answer = World().member("a", protocols={}).join().answer
    assert (answer.generation_id, answer.protocol_type, answer.protocol_name) == (-1, None, None)
    assert (answer.leader, answer.members, answer.skip_assignment) == ("", (), False)


def test_before_version_7_no_protocol_is_an_empty_name() -> None:
    assert World().member("a", protocols={}).join(version=6).answer.protocol_name == ""


# --- a newcomer


def test_a_dynamic_newcomer_is_given_an_id_and_sent_back() -> None:
    """KIP-394; gotcha 3: nothing else happens."""
    world = World()
    asked = world.member("app").join()
    assert (asked.error, asked.answer.member_id, asked.answer.generation_id) == (
        ErrorCode.MEMBER_ID_REQUIRED,
        "app-1",
        -1,
    )
    assert world.group.state == "Empty"
    assert world.seen(MemberIdAssigned)[0].member == "app-1"


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_before_version_4_a_newcomer_is_taken_at_once(version: int) -> None:
    world = World()
    assert world.member("a").join(version=version).parked
    assert list(world.group.members) == ["a-1"]


@pytest.mark.parametrize("version", [5, 9])
def test_a_static_newcomer_is_taken_at_once_under_its_instance_id(version: int) -> None:
    """Gotcha 4."""
    world = World()
    assert world.member("a", instance="rack-1").join(version=version).parked
    assert list(world.group.members) == ["rack-1-1"]


def test_a_client_without_id_gets_one_that_starts_with_a_hyphen() -> None:
    world = World()
    a = world.member("a")
    a.name = None  # type: ignore[assignment]
    assert a.join().answer.member_id == "-1"
    a.join()
    assert world.group.members["-1"].client_id == ""


def test_version_0_waits_for_others_as_long_as_its_session() -> None:
    world = World()
    world.member("a", session_ms=7_000).join(version=0)
    assert world.group.rebalance_timeout_ms == 7_000


def test_the_handed_out_id_lasts_as_long_as_the_session_that_was_asked_for() -> None:
    """Gotcha 7."""
    world = World()
    world.member("a", session_ms=8_000).join()
    assert world.deadline("session", "a-1") == 8_000


def test_coming_back_with_the_id_starts_the_five_minutes_of_a_new_member() -> None:
    """Gotchas 7 and 8."""
    world = World()
    a = world.member("a", session_ms=8_000)
    a.join()
    world.advance(1_000)
    assert a.join().parked
    assert world.deadline("session", "a-1") == NEW_MEMBER_MS
    assert world.group.pending_join_members == set()


def test_a_handed_out_id_cannot_become_static() -> None:
    """Kafka runs into an error of its own; seen on a real 4.3.1."""
    world = World()
    a = world.member("a")
    a.join()
    asked = a.join(instance="rack-1")
    assert (asked.error, asked.answer.member_id) == (ErrorCode.UNKNOWN_SERVER_ERROR, "")
    assert a.join().parked


def test_a_handed_out_id_is_no_member_yet() -> None:
    """Gotcha 6."""
    world = World()
    world.stable("a")
    b = world.member("b")
    b.join()
    b.generation = 1
    assert b.sync().error is ErrorCode.UNKNOWN_MEMBER_ID
    assert b.heartbeat().error is ErrorCode.UNKNOWN_MEMBER_ID
    assert set(b.commit().partition_errors.values()) == {ErrorCode.UNKNOWN_MEMBER_ID}
    assert "was handed out" in world.seen(RequestRefused)[-1].why


def test_an_id_that_was_handed_out_blocks_an_early_end_of_the_join_phase() -> None:
    """Gotcha 5: but not the rebalance timeout, and the id survives that."""
    world = World()
    a, b = world.stable("a", "b")
    world.member("c", session_ms=100_000).join()
    a.join()
    waiting = b.join(protocols={"range": b"new"})
    assert waiting.parked
    for _ in range(59):
        world.advance(1_000)
    assert waiting.parked
    world.advance(1_000)
    assert waiting.error is ErrorCode.NONE
    assert world.group.pending_join_members == {"c-3"}


def test_the_client_is_remembered_with_its_host() -> None:
    world = World()
    world.member("app", host="/10.1.2.3").enter()
    (member,) = world.describe().answer.groups[0].members
    assert (member.client_id, member.client_host) == ("app", "/10.1.2.3")


# --- protocols


def test_a_newcomer_must_be_of_the_groups_type() -> None:
    world = World()
    world.stable("a")
    asked = world.member("b", protocol_type="connect").join()
    assert (asked.error, asked.answer.member_id) == (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "")
    assert "the group's is 'consumer'" in world.seen(RequestRefused)[-1].why


def test_a_newcomer_must_offer_something_that_all_others_support() -> None:
    world = World()
    world.stable(
        world.member("a", protocols={"range": b"", "sticky": b""}), world.member("b", protocols={"range": b""})
    )
    assert world.member("c", protocols={"sticky": b""}).join().error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert "those that every member supports are range" in world.seen(RequestRefused)[-1].why


def test_a_lone_member_cannot_switch_to_a_protocol_it_did_not_offer() -> None:
    """Gotcha 55: it has to leave first."""
    world = World()
    (a,) = world.stable("a")
    asked = a.join(protocols={"sticky": b""})
    assert (asked.error, asked.answer.member_id) == (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "a-1")


def test_an_empty_group_takes_any_type() -> None:
    """Gotcha 14."""
    world = World()
    (a,) = world.stable("a")
    a.leave()
    world.stable(world.member("b", protocol_type="connect"))
    assert world.group.protocol_type == "connect"


def test_while_a_group_that_all_have_left_prepares_any_name_passes_but_not_any_type() -> None:
    world = World()
    a = world.member("a")
    a.enter()
    a.leave()
    assert (world.group.state, len(world.group.members)) == ("PreparingRebalance", 0)
    assert world.member("b", protocol_type="connect").join().error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert world.member("b", protocols={}).join().error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert world.member("b", protocols={"any": b""}).join().error is ErrorCode.MEMBER_ID_REQUIRED


def test_a_protocol_without_a_name_is_said_to_be_none() -> None:
    world = World()
    (a,) = [world.member("a", protocol_type="other", protocols={"": b""})]
    world.joined(a)
    assert (a.told.protocol_name, world.group.protocol_name) == (None, "")


# --- join phases that cannot end: what a real 4.3.1 does is in tests/conformance/stories/stuck.py

CUT = {"range": subscription("t")[:8]}
TWICE = [("range", subscription("t")), ("range", subscription("t"))]


@pytest.mark.parametrize("offers", [CUT, TWICE])
def test_a_newcomer_that_cannot_be_read_is_never_answered_until_it_is_out(
    offers: Mapping[str, bytes] | Sequence[tuple[str, bytes]],
) -> None:
    world = World()
    a = world.member("a", protocols=offers)
    asked = a.enter()
    world.advance(INITIAL_DELAY_MS)
    assert asked.parked
    assert (world.group.state, world.group.generation_id) == ("PreparingRebalance", 1)
    assert world.deadline("join") is None
    world.advance(NEW_MEMBER_MS)
    assert asked.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert (world.group.state, world.group.generation_id) == ("Empty", 2)


def test_a_leader_that_cannot_be_read_any_more_is_told_and_can_mend_it() -> None:
    world = World()
    (a,) = world.stable("a")
    asked = a.join(protocols=CUT)
    assert (asked.error, asked.answer.member_id) == (ErrorCode.UNKNOWN_SERVER_ERROR, "")
    assert (world.group.state, world.group.generation_id) == ("PreparingRebalance", 2)
    assert "gets stuck" in world.seen(RebalanceStuck)[0].text()
    assert a.heartbeat(generation=2).error is ErrorCode.REBALANCE_IN_PROGRESS
    assert a.join().answer.generation_id == 3


def test_nobody_is_told_twice() -> None:
    """The request that broke the join phase counts as parked, but the answer to it is for nobody."""
    world = World()
    a, b = world.stable("a", "b")
    waiting = b.join(protocols=CUT)
    assert a.join().error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert world.group.awaiting_join == 2
    assert b.join().answer.generation_id == 3
    assert waiting.parked
    assert world.group.awaiting_join == 0


def test_a_protocol_that_counts_twice_can_be_chosen_though_not_all_offer_it() -> None:
    world = World()
    (a,) = world.stable(world.member("a", protocol_type="other", protocols=[("x", b""), ("x", b""), ("y", b"")]))
    assert a.told.protocol_name == "y"
    b = world.member("b", protocol_type="other", protocols={"y": b""})
    b.enter()
    assert a.join().error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert (world.group.state, world.group.protocol_name) == ("CompletingRebalance", "x")
    asked = a.sync(generation=2, protocol_name="x")
    assert asked.error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert b.join().error is ErrorCode.NONE


# --- joining again


def test_a_follower_that_says_the_same_again_is_told_the_same_again() -> None:
    """Gotcha 9."""
    world = World()
    a, b = world.stable("a", "b")
    answer = b.join().answer
    assert (answer.error_code, answer.generation_id, answer.leader, answer.members) == (0, 1, a.member_id, ())
    assert (answer.protocol_type, answer.protocol_name, answer.skip_assignment) == ("consumer", "range", False)
    assert world.group.state == "Stable"


def test_a_leader_that_joins_again_always_rebalances() -> None:
    """Gotcha 9."""
    world = World()
    a, _ = world.stable("a", "b")
    assert a.join().parked
    assert world.group.state == "PreparingRebalance"


def test_before_the_assignment_even_the_leader_is_told_the_same_again() -> None:
    """Gotcha 10: with the members."""
    world = World()
    a, b = world.member("a"), world.member("b")
    world.joined(a, b)
    answer = a.join().answer
    assert answer.generation_id == 1
    assert {member.member_id for member in answer.members} == {"a-1", "b-2"}
    assert b.join().answer.members == ()


@pytest.mark.parametrize(
    ("protocols", "same"),
    [
        ({"range": b"1", "sticky": b"2"}, True),
        ({"sticky": b"2", "range": b"1"}, False),
        ({"range": b"1", "sticky": b"3"}, False),
        ({"range": b"1"}, False),
        ({"range": b"1", "sticky": b"2", "more": b""}, False),
    ],
)
def test_protocols_are_the_same_if_names_metadata_and_order_are(protocols: dict[str, bytes], same: bool) -> None:
    """Gotcha 11."""
    world = World()
    offered = {"range": b"1", "sticky": b"2"}
    _, b = world.stable(world.member("a", protocols=offered), world.member("b", protocols=offered))
    assert b.join(protocols=protocols).parked is not same


def test_saying_the_same_again_changes_no_timeout_and_no_timer() -> None:
    """Gotchas 11 and 27."""
    world = World()
    _, b = world.stable("a", "b")
    world.advance(2_000)
    b.join(session_ms=20_000, rebalance_ms=1)
    member = world.group.members[b.member_id]
    assert (member.session_timeout_ms, member.rebalance_timeout_ms) == (10_000, 60_000)
    assert world.deadline("session", b.member_id) == 8_000


def test_joining_again_with_news_stores_them_but_not_the_client() -> None:
    world = World()
    _a, b = world.stable("a", "b")
    b.name, b.host = "other", "/9.9.9.9"
    b.join(session_ms=20_000, rebalance_ms=5, protocols={"range": b"new"})
    member = world.group.members[b.member_id]
    assert (member.session_timeout_ms, member.rebalance_timeout_ms) == (20_000, 5)
    assert member.protocols == (("range", b"new"),)
    assert (member.client_id, member.client_host) == ("b", "/127.0.0.1")
    assert world.deadline("session", b.member_id) == 10_000


def test_a_parked_join_that_is_sent_again_is_never_answered() -> None:
    """Gotcha 42: as in Kafka up to 4.3."""
    world = World()
    a = world.member("a")
    first = a.enter()
    second = a.join()
    world.advance(INITIAL_DELAY_MS)
    assert first.parked
    assert second.error is ErrorCode.NONE


def test_the_leader_hears_of_all_members_and_their_metadata_for_the_chosen_protocol() -> None:
    world = World()
    a = world.member("a", protocols={"sticky": b"s1", "range": b"r1"})
    b = world.member("b", protocols={"range": b"r2"}, instance="rack-2")
    world.joined(a, b)
    assert {(m.member_id, m.group_instance_id, m.metadata) for m in a.told.members} == {
        ("a-1", None, b"r1"),
        ("rack-2-2", "rack-2", b"r2"),
    }
    assert (b.told.members, b.told.leader) == ((), "a-1")


# --- group.max.size


def test_a_full_group_takes_no_newcomer() -> None:
    world = World(group_max_size=2)
    world.stable("a", "b")
    asked = world.member("c").join()
    assert (asked.error, asked.answer.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    assert world.seen(RequestRefused)[-1].why == "group.max.size is 2"


def test_handed_out_ids_do_not_count_for_the_size() -> None:
    """More ids are handed out than there is room; who comes back last is refused, and its id is gone."""
    world = World(group_max_size=2)
    world.stable("a")
    b, c = world.member("b"), world.member("c")
    assert b.join().error is c.join().error is ErrorCode.MEMBER_ID_REQUIRED
    assert b.join().parked
    world.member("a", member_id="a-1").join()
    assert c.join().error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert c.member_id not in world.group.pending_join_members
    assert c.join().error is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_members_of_a_full_group_may_join_again() -> None:
    world = World(group_max_size=2)
    a, b = world.stable("a", "b")
    assert b.join().error is ErrorCode.NONE
    assert a.join().parked
    b.join()
    assert b.join(session_ms=20_000).error is ErrorCode.NONE


def test_while_a_group_prepares_who_comes_last_is_out() -> None:
    """Gotcha 54: an old member can be the one evicted, here the leader."""
    world = World(group_max_size=2)
    a, b = world.stable("a", "b")
    b.join(protocols={"range": b"new"})
    c = world.member("c")
    assert c.enter().parked
    late = a.join()
    assert (late.error, late.answer.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    assert set(world.group.members) == {b.member_id, c.member_id}
    assert world.group.leader_id != a.member_id
    assert world.group.state == "PreparingRebalance"


def test_a_parked_member_of_a_full_group_that_prepares_may_send_again() -> None:
    world = World(group_max_size=1)
    a = world.member("a")
    a.enter()
    assert a.join().parked


# --- the group that a join creates


def test_the_first_join_writes_an_empty_group() -> None:
    """Generation 0 and no type; also when an id is only handed out."""
    world = World(now_ms=77)
    world.member("a").join()
    (value,) = world.group_values
    assert (value.protocol_type, value.generation, value.protocol, value.leader) == ("", 0, None, None)
    assert (value.current_state_timestamp_ms, value.members) == (77, ())
    assert world.seen(GroupCreated)[0].simple is False


def test_the_second_join_writes_nothing() -> None:
    world = World()
    world.member("a").enter()
    world.member("b").enter()
    assert len(world.records) == 1


def test_the_answer_does_not_wait_for_the_record_of_the_group() -> None:
    world = World()
    world.hold_appends()
    assert world.member("a").join().error is ErrorCode.MEMBER_ID_REQUIRED


def test_if_the_group_cannot_be_stored_it_does_not_exist_and_who_waits_in_it_is_told() -> None:
    world = World()
    world.hold_appends()
    a, b = world.member("a", instance="i"), world.member("b")
    first, second = a.join(), b.enter()
    world.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    for asked in (first, second):
        assert (asked.error, asked.answer.member_id) == (ErrorCode.NOT_COORDINATOR, "")
    assert not world.exists
    assert world.coordinator.next_deadline() == 600_000


def test_if_the_group_cannot_be_stored_whoever_waits_for_its_assignment_is_told() -> None:
    world = World(group_initial_rebalance_delay_ms=0)
    world.hold_appends()
    a, b = world.member("a"), world.member("b")
    world.joined(a, b)
    waiting = [b.sync(), a.sync()]
    world.fail(ErrorCode.REQUEST_TIMED_OUT)
    assert [asked.error for asked in waiting] == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2
    assert not world.held
    assert not world.exists


def test_if_the_group_cannot_be_stored_after_the_answer_that_answer_stands() -> None:
    world = World()
    world.fail_appends(ErrorCode.MESSAGE_TOO_LARGE)
    assert world.member("a").join().error is ErrorCode.MEMBER_ID_REQUIRED
    assert not world.exists


# --- what is said of it


def test_a_join_says_who_came_with_what_and_why() -> None:
    world = World()
    world.member("a", protocols={"sticky": b"", "range": b""}).enter(reason="first start")
    (joined,) = world.seen(MemberJoined)
    assert joined.text() == "a-1 joins, offers sticky, range: first start"
    assert str(joined.cause) == "JoinGroup v9 from a"


def test_a_rejoin_says_whether_it_brings_news() -> None:
    world = World()
    a, b = world.stable("a", "b")
    a.join(reason="topics changed")
    b.join(protocols={"range": subscription("u")})
    assert [event.text() for event in world.seen(MemberRejoined)] == [
        "a-1 joins again: topics changed",
        "b-2 joins again, with new metadata",
    ]
