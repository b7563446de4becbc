import pytest

from groupcoord.assignors import Group, Subscription
from groupcoord.assignors.weighted import Weighted, capacity_of


def subscription(capacity: int | None, *topics: str) -> Subscription:
    data = None if capacity is None else Weighted(capacity).subscription_user_data(topics)
    return Subscription(topics=topics, user_data=data)


def sizes(**members: Subscription) -> dict[str, int]:
    group = Group(subscriptions=members, partitions={"orders": 12, "payments": 6})
    return {member_id: len(partitions) for member_id, partitions in Weighted().assign(group).items()}


def test_everybody_gets_what_its_capacity_is_worth() -> None:
    both = ("orders", "payments")
    assert sizes(a=subscription(1, *both), b=subscription(2, *both), c=subscription(3, *both)) == {
        "a": 3,
        "b": 6,
        "c": 9,
    }


def test_who_says_nothing_counts_as_one() -> None:
    assert sizes(a=subscription(None, "orders"), b=subscription(2, "orders")) == {"a": 4, "b": 8}
    assert capacity_of(b"sticky's") == 1
    assert capacity_of((-3).to_bytes(4, "big", signed=True)) == 1


def test_it_only_gives_what_is_wanted() -> None:
    assert sizes(a=subscription(9, "payments"), b=subscription(1, "orders")) == {"a": 6, "b": 12}


@pytest.mark.parametrize("capacity", [0, -1, 1 << 31])
def test_a_capacity_that_cannot_be(capacity: int) -> None:
    with pytest.raises(ValueError, match=f"a capacity of {capacity}"):
        Weighted(capacity)


def test_nobody_is_there() -> None:
    assert Weighted().assign(Group(subscriptions={}, partitions={"orders": 1})) == {}
