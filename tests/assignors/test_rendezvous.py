import mmh3

from groupcoord.assignors import Group, Subscription
from groupcoord.assignors.rehearsal import Rehearsal
from groupcoord.assignors.rendezvous import Rendezvous


def test_the_highest_number_wins() -> None:
    group = Group(
        subscriptions={member_id: Subscription(topics=["orders"]) for member_id in "abc"}, partitions={"orders": 20}
    )
    assignment = Rendezvous().assign(group)
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
    def group(member_id: str) -> Group:
        static = Subscription(topics=["orders"], instance_id="till-1")
        return Group(
            subscriptions={member_id: static, "other": Subscription(topics=["orders"])}, partitions={"orders": 20}
        )

    assert Rendezvous().assign(group("before"))["before"] == Rendezvous().assign(group("after"))["after"]


def test_who_leaves_moves_only_what_it_had() -> None:
    rehearsal = Rehearsal("rendezvous", {"orders": 50})
    for member_id in "abcd":
        rehearsal.join(member_id)
    had = rehearsal.rebalance().assignment["b"]
    rehearsal.leave("b")
    outcome = rehearsal.rebalance()
    assert outcome.moved == len(had)
    assert not any(outcome.changes[member_id].lost for member_id in "acd")


def test_it_says_how_even_it_came_out() -> None:
    assignor = Rendezvous()
    some = {"a": [("t", number) for number in range(6)], "b": [("t", 6), ("t", 7)]}
    assert assignor.remark(some) == "members differ by up to 4; the fullest has 50% more than an even share"
    assert assignor.remark({"a": []}) == "members differ by up to 0; the fullest has 0% more than an even share"
