import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupcoord.assignors import GroupSubscription, Subscription, read_assignment
from groupcoord.assignors.serialization import write_subscription
from groupcoord.client import error_reactions
from groupcoord.client.error_reactions import ErrorReaction
from groupcoord.client.exponential_backoff import ExponentialBackoff
from groupcoord.client.member import classic_rebalance
from groupcoord.client.member.actions import CallbackKind, CoordinatorNode
from groupcoord.client.member.context import callback_failed, in_order, shortened
from groupcoord.client.member.member_settings import MemberSettings
from groupcoord.client.member.metadata_and_commit_requests import MetadataSnapshot
from groupcoord.protocol.apis.join_group import JoinGroupResponseMember
from groupcoord.protocol.errors import ErrorCode as E


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"instance_id": ""}, "an instance id is not empty"),
        ({"heartbeat_interval_ms": 45_000}, "must be above 0 and below session_timeout_ms=45000"),
        ({"heartbeat_interval_ms": 0}, "must be above 0"),
        ({"max_poll_interval_ms": 0}, "are above 0"),
        ({"request_timeout_ms": 0}, "are above 0"),
        ({"retry_backoff_ms": -1}, "retry_backoff_ms=-1 is between 0 and"),
        ({"retry_backoff_ms": 5, "retry_backoff_max_ms": 4}, "retry_backoff_ms=5 is between 0 and"),
    ],
)
def test_what_can_never_work_is_refused(settings: dict[str, object], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        MemberSettings(**{"group_id": "g", **settings})  # type: ignore[arg-type]


def test_it_doubles_up_to_the_limit() -> None:
    backoff = ExponentialBackoff(100, 1_000, lambda: 0.5)
    assert [backoff.delay_ms(attempts) for attempts in (0, 1, 2, 3, 4, 5, 1_000_000)] == [100, 200, 400, 800] + [
        1_000
    ] * 3


@pytest.mark.slow
@given(st.integers(0, 10_000), st.integers(0, 100_000), st.floats(0, 1, exclude_max=True), st.integers(0, 100))
def test_it_stays_within_a_fifth_of_what_it_should_be(first: int, more: int, chance: float, attempts: int) -> None:
    most = first + more
    delay_ms = ExponentialBackoff(first, most, lambda: chance).delay_ms(attempts)
    should_be = min(first * 2**attempts, most)
    assert 0.8 * should_be - 1 <= delay_ms <= 1.2 * should_be + 1


RACKS = {"a": (frozenset({"r"}),)}
VIEW = MetadataSnapshot(partitions={"b": 2, "a": 1}, racks=RACKS)


def test_only_what_exists_of_what_is_asked_for() -> None:
    assert VIEW.of(["a", "c"]) == MetadataSnapshot(partitions={"a": 1}, racks=RACKS)
    assert VIEW.of(["b"]) == MetadataSnapshot(partitions={"b": 2})


def test_without_racks_views_of_the_same_partitions_are_the_same() -> None:
    assert VIEW.without_racks() == MetadataSnapshot(partitions={"a": 1, "b": 2})


def test_callbacks_get_partitions_by_topic_and_number() -> None:
    assert in_order({("b", 0), ("a", 10), ("a", 9)}) == (("a", 9), ("a", 10), ("b", 0))


def test_a_reason_is_cut_where_kafka_cuts_it() -> None:
    assert [len(shortened("x" * length)) for length in (3, 255, 256)] == [3, 255, 255]


def test_what_a_callback_raised_stays_known() -> None:
    problem = ValueError("no")
    failure = callback_failed(CallbackKind.LOST, problem)
    assert failure.__cause__ is problem
    assert str(failure) == "the callback for lost partitions raised ValueError: no"


def test_what_members_said_comes_with_who_they_are() -> None:
    said = Subscription(topics=("t",), user_data=b"x", owned_partitions=[("t", 1)], generation_id=3, rack_id="r")
    member = JoinGroupResponseMember(member_id="m", group_instance_id="i", metadata=write_subscription(said))
    (subscription,) = classic_rebalance.subscriptions_of([member]).values()
    assert (subscription.instance_id, subscription.rack_id, subscription.generation_id) == ("i", "r", 3)
    assert list(subscription.owned_partitions) == [("t", 1)]


def test_withheld_is_what_is_owned_and_exists_and_goes_to_nobody() -> None:
    owner = Subscription(topics=("t",), owned_partitions=[("t", 0), ("t", 1), ("t", 2), ("gone", 0)])
    group = GroupSubscription(subscriptions={"a": owner, "b": Subscription(topics=("t",))}, partitions={"t": 2})
    assert classic_rebalance.withheld(group, {"a": [("t", 0)], "b": []}) == (("t", 1),)


def test_an_assignment_is_written_member_by_member() -> None:
    (entry,) = classic_rebalance.encode_assignments({"a": [("t", 1), ("t", 0)]})
    assert (entry.member_id, read_assignment(entry.assignment)) == ("a", [("t", 1), ("t", 0)])


def test_a_coordinator_in_words() -> None:
    assert str(CoordinatorNode(1, "h", 2)) == "broker 1 at h:2"


REACTIONS = [
    error_reactions.to_find_coordinator,
    error_reactions.to_join_group,
    error_reactions.to_sync_group,
    error_reactions.to_heartbeat,
    error_reactions.to_offset_commit,
    error_reactions.to_offset_fetch,
]


def test_an_error_that_no_table_has_ends_the_member_unless_it_is_of_a_heartbeat() -> None:
    for reaction in REACTIONS:
        assert reaction(E.NONE) is ErrorReaction.GO_ON
        expected = ErrorReaction.RETRY if reaction is error_reactions.to_heartbeat else ErrorReaction.FAIL
        assert reaction(E(999)) is expected
