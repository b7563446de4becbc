from groupcoord.assignors import Subscription, in_two_steps
from groupcoord.assignors.cooperative import changing_hands, withhold

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
