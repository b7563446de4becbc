import mmh3
import pytest

from groupcoord.assignors import GroupSubscription, Subscription
from groupcoord.assignors.example_assignors import RendezvousAssignor, WeightedAssignor, capacity_of
from groupcoord.assignors.group_simulator import GroupSimulator


def test_the_highest_number_wins() -> None:
    group = GroupSubscription(
        subscriptions={member_id: Subscription(topics=["orders"]) for member_id in "abc"}, partitions={"orders": 20}
    )
    assignment = RendezvousAssignor().assign(group)
    for winner, partitions in assignment.items():
        for topic, number in partitions:
            numbers = {
                member_id: mmh3.hash64(f"{topic}-{number}".encode(), mmh3.hash(member_id, signed=False), signed=False)[
                    0
                ]
                for member_id in "abc"
            }
            assert numbers[winner] == max(numbers.values())


def test_a_static_member_finds_its_partitions_again() -> None:
    def group(member_id: str) -> GroupSubscription:
        static = Subscription(topics=["orders"], instance_id="till-1")
        return GroupSubscription(
            subscriptions={member_id: static, "other": Subscription(topics=["orders"])}, partitions={"orders": 20}
        )

    assert (
        RendezvousAssignor().assign(group("before"))["before"] == RendezvousAssignor().assign(group("after"))["after"]
    )


def test_who_leaves_moves_only_what_it_had() -> None:
    rehearsal = GroupSimulator("rendezvous", {"orders": 50})
    for member_id in "abcd":
        rehearsal.join(member_id)
    had = rehearsal.rebalance().assignment["b"]
    rehearsal.leave("b")
    outcome = rehearsal.rebalance()
    assert outcome.moved == len(had)
    assert not any(outcome.changes[member_id].lost for member_id in "acd")


def test_it_says_how_even_it_came_out() -> None:
    assignor = RendezvousAssignor()
    some = {"a": [("t", number) for number in range(6)], "b": [("t", 6), ("t", 7)]}
    assert assignor.remark(some) == "members differ by up to 4; the fullest has 50% more than an even share"
    assert assignor.remark({"a": []}) == "members differ by up to 0; the fullest has 0% more than an even share"


def subscription(capacity: int | None, *topics: str) -> Subscription:
    data = None if capacity is None else WeightedAssignor(capacity).subscription_user_data(topics)
    return Subscription(topics=topics, user_data=data)


def sizes(**members: Subscription) -> dict[str, int]:
    group = GroupSubscription(subscriptions=members, partitions={"orders": 12, "payments": 6})
    return {member_id: len(partitions) for member_id, partitions in WeightedAssignor().assign(group).items()}


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
        WeightedAssignor(capacity)


def test_nobody_is_there() -> None:
    assert WeightedAssignor().assign(GroupSubscription(subscriptions={}, partitions={"orders": 1})) == {}
