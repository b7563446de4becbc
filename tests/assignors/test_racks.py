from groupcoord.assignors.interface import GroupSubscription, Subscription
from groupcoord.assignors.racks import rack_of, racks_count, racks_of_topic

A, B, AB = frozenset("a"), frozenset("b"), frozenset("ab")


def test_an_empty_name_is_no_rack() -> None:
    assert rack_of(Subscription(rack_id="")) is None
    assert rack_of(Subscription(rack_id="a")) == "a"


def test_racks_count_if_there_is_anything_to_gain() -> None:
    assert racks_count(["a"], [A, B], prefer=False)
    assert not racks_count([], [A, B], prefer=False)
    assert not racks_count(["c"], [A, B], prefer=True)  # nobody is where a replica is
    assert not racks_count(["a"], [AB, AB], prefer=False)  # everything is everywhere
    assert racks_count(["a"], [AB, AB], prefer=True)


def test_partitions_of_which_nothing_is_said_are_nowhere() -> None:
    group = GroupSubscription(subscriptions={}, partitions={"orders": 3}, racks={"orders": [["a", None], ["b", "a"]]})
    assert racks_of_topic(group, "orders") == [A, AB, frozenset()]
