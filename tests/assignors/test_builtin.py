"""What Kafka's assignors tell the leader, and what they remember."""

import pytest

from groupcoord.assignors import GroupSubscription, JavaFailure, Subscription, in_two_steps
from groupcoord.assignors.cooperative_adjustment import changing_hands, withhold
from groupcoord.assignors.interface import RebalanceProtocol
from groupcoord.assignors.range_assignor import RangeAssignor
from groupcoord.assignors.round_robin_assignor import RoundRobinAssignor
from groupcoord.assignors.sticky.previous_assignment import read_cooperative, read_sticky, write_sticky
from groupcoord.assignors.sticky.sticky_assignors import CooperativeStickyAssignor, StickyAssignor

NOBODY = GroupSubscription(subscriptions={}, partitions={"orders": 3})


def test_protocols() -> None:
    assert max(CooperativeStickyAssignor.protocols) is RebalanceProtocol.COOPERATIVE
    for eager in (RangeAssignor, RoundRobinAssignor, StickyAssignor):
        assert list(eager.protocols) == [RebalanceProtocol.EAGER]


def test_sticky_sends_what_it_had_in_the_order_in_which_it_got_it() -> None:
    sticky = StickyAssignor()
    assert sticky.subscription_user_data(["orders"]) is None
    sticky.on_assignment([("orders", 2), ("orders", 0)], 7)
    data = sticky.subscription_user_data(["orders"])
    assert data is not None
    assert read_sticky(data) == ([("orders", 2), ("orders", 0)], 7)


def test_cooperative_sticky_sends_its_generation() -> None:
    cooperative = CooperativeStickyAssignor()
    assert read_cooperative(cooperative.subscription_user_data(()) or b"") == -1
    cooperative.on_assignment([("orders", 0)], 5)
    assert read_cooperative(cooperative.subscription_user_data(()) or b"") == 5


@pytest.mark.parametrize("assignor", [RoundRobinAssignor(), StickyAssignor(), CooperativeStickyAssignor()])
def test_without_members_kafka_fails(assignor: RoundRobinAssignor | StickyAssignor | CooperativeStickyAssignor) -> None:
    with pytest.raises(JavaFailure, match="Kafka's assignor fails here with"):
        assignor.assign(NOBODY)


def test_range_has_an_answer_even_then() -> None:
    assert RangeAssignor().assign(NOBODY) == {}


def test_the_highest_generation_is_remembered_from_one_rebalance_to_the_next() -> None:
    """A claim without a generation counts as one of the past as soon as any generation was seen."""
    sticky = StickyAssignor()
    for assignor in (sticky, CooperativeStickyAssignor()):
        data = write_sticky([("orders", 0)], 3) if assignor is sticky else None
        subscription = Subscription(topics=["orders"], user_data=data, generation_id=3)
        assignor.assign(GroupSubscription(subscriptions={"a": subscription}, partitions={"orders": 1}))
        assert assignor._max_generation == 3


@pytest.mark.slow
def test_a_hundred_thousand_partitions_for_one_member() -> None:
    group = GroupSubscription(
        subscriptions={"a": Subscription(topics=["orders", "gone"])}, partitions={"orders": 100_000}
    )
    for assignor in (RangeAssignor(), RoundRobinAssignor(), StickyAssignor(), CooperativeStickyAssignor()):
        assert assignor.assign(group) == {"a": [("orders", partition) for partition in range(100_000)]}


MEMBERS = {
    "a": Subscription(owned_partitions=[("t", 0), ("t", 1)]),
    "b": Subscription(owned_partitions=[("t", 2)]),
    "c": Subscription(),
}
WANTED = {"a": [("t", 0)], "b": [("t", 2), ("t", 3)], "c": [("t", 1)]}


def test_what_changes_hands() -> None:
    assert changing_hands(MEMBERS, WANTED) == {("t", 1): "c"}


def test_it_belongs_to_nobody_for_one_rebalance() -> None:
    assert in_two_steps(MEMBERS, WANTED) == {**WANTED, "c": []}


def test_nothing_is_withheld_from_those_who_gave_all_up() -> None:
    assert in_two_steps({"a": Subscription(), "b": Subscription(), "c": Subscription()}, WANTED) == WANTED


def test_what_is_given_twice_is_withheld_once() -> None:
    assert withhold({"a": [("t", 1), ("t", 0), ("t", 1)]}, {("t", 1): "a"}) == {"a": [("t", 0), ("t", 1)]}
