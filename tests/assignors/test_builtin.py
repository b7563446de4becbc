"""What Kafka's assignors tell the leader, and what they remember."""

import pytest

from groupcoord.assignors import Group, JavaFailure, Subscription
from groupcoord.assignors.builtin import CooperativeSticky, Range, RoundRobin, Sticky
from groupcoord.assignors.model import RebalanceProtocol
from groupcoord.assignors.sticky.user_data import read_cooperative, read_sticky, write_sticky

NOBODY = Group(subscriptions={}, partitions={"orders": 3})


def test_protocols() -> None:
    assert max(CooperativeSticky.protocols) is RebalanceProtocol.COOPERATIVE
    for eager in (Range, RoundRobin, Sticky):
        assert list(eager.protocols) == [RebalanceProtocol.EAGER]


def test_sticky_sends_what_it_had_in_the_order_in_which_it_got_it() -> None:
    sticky = Sticky()
    assert sticky.subscription_user_data(["orders"]) is None
    sticky.on_assignment([("orders", 2), ("orders", 0)], 7)
    data = sticky.subscription_user_data(["orders"])
    assert data is not None
    assert read_sticky(data) == ([("orders", 2), ("orders", 0)], 7)


def test_cooperative_sticky_sends_its_generation() -> None:
    cooperative = CooperativeSticky()
    assert read_cooperative(cooperative.subscription_user_data(()) or b"") == -1
    cooperative.on_assignment([("orders", 0)], 5)
    assert read_cooperative(cooperative.subscription_user_data(()) or b"") == 5


@pytest.mark.parametrize("assignor", [RoundRobin(), Sticky(), CooperativeSticky()])
def test_without_members_kafka_fails(assignor: RoundRobin | Sticky | CooperativeSticky) -> None:
    with pytest.raises(JavaFailure, match="Kafka's assignor fails here with"):
        assignor.assign(NOBODY)


def test_range_has_an_answer_even_then() -> None:
    assert Range().assign(NOBODY) == {}


def test_the_highest_generation_is_remembered_from_one_rebalance_to_the_next() -> None:
    """A claim without a generation counts as one of the past as soon as any generation was seen."""
    sticky = Sticky()
    for assignor in (sticky, CooperativeSticky()):
        data = write_sticky([("orders", 0)], 3) if assignor is sticky else None
        subscription = Subscription(topics=["orders"], user_data=data, generation_id=3)
        assignor.assign(Group(subscriptions={"a": subscription}, partitions={"orders": 1}))
        assert assignor._max_generation == 3


@pytest.mark.slow
def test_a_hundred_thousand_partitions_for_one_member() -> None:
    group = Group(subscriptions={"a": Subscription(topics=["orders", "gone"])}, partitions={"orders": 100_000})
    for assignor in (Range(), RoundRobin(), Sticky(), CooperativeSticky()):
        assert assignor.assign(group) == {"a": [("orders", partition) for partition in range(100_000)]}
