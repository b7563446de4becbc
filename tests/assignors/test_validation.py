from collections.abc import Callable
from typing import Any

import pytest

from groupcoord.assignors import FunctionAssignor, GroupSubscription, RebalanceProtocol, Subscription
from groupcoord.assignors.sticky.sticky_assignors import StickyAssignor
from groupcoord.assignors.validation import FaultyAssignorError, check_assignment, run_assignor

GROUP = GroupSubscription(
    subscriptions={"a": Subscription(topics=["orders"]), "b": Subscription(topics=["orders", "payments", "gone"])},
    partitions={"orders": 3, "payments": 1, "unwanted": 2},
)
SOUND = {"a": [("orders", 0), ("orders", 1)], "b": [("orders", 2), ("payments", 0)]}


def fault(answer: Any, group: GroupSubscription = GROUP, protocol: RebalanceProtocol = RebalanceProtocol.EAGER) -> str:
    with pytest.raises(FaultyAssignorError) as raised:
        check_assignment("mine", group, answer, protocol)
    return str(raised.value).removeprefix("assignor mine: ")


def test_a_sound_answer_passes() -> None:
    check_assignment("mine", GROUP, SOUND, RebalanceProtocol.EAGER)
    assert run_assignor(FunctionAssignor("mine", lambda _: SOUND), GROUP) is SOUND


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"z": []}, "names 'z', who is not a member"),
        ({"a": None}, "gives a None, which is not a list of partitions"),
        ({"a": "orders"}, "gives a 'orders', which is not a list of partitions"),
        ({"a": [("orders", 0), "orders-1"]}, "gives a 'orders-1', which is no (topic, partition)"),
        ({"a": [("orders", 0), ("orders", True)]}, "gives a ('orders', True), which is no (topic, partition)"),
        ({"a": [*SOUND["a"], ("orders", 3)]}, "gives a orders-3, which does not exist"),
        ({"a": [*SOUND["a"], ("orders", -1)]}, "gives a orders--1, which does not exist"),
        ({"b": [*SOUND["b"], ("gone", 0)]}, "gives b gone-0, which does not exist"),
        ({"b": [*SOUND["b"], ("unwanted", 0)]}, "gives b unwanted-0, but b does not subscribe to unwanted"),
        ({"a": [*SOUND["a"], ("orders", 2)]}, "gives orders-2 to both a and b"),
        ({"a": [*SOUND["a"], ("orders", 0)]}, "gives orders-0 to a twice"),
        ({"a": [("orders", 0)]}, "gives orders-1 to nobody"),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, Any], text: str) -> None:
    assert fault({**SOUND, **change}) == text


def test_a_forgotten_member() -> None:
    assert fault({"a": SOUND["a"]}) == "forgets member b"


def test_no_answer_at_all() -> None:
    assert fault(None) == "answered None, which is not a mapping from member ids to partitions"
    assert fault(["x" * 100]).startswith("answered ['" + "x" * 55 + "..., which is not a mapping")


def test_many_faults_are_named_up_to_a_limit() -> None:
    assert fault({"a": [], "b": []}) == (
        "gives orders-0 to nobody; gives orders-1 to nobody; gives orders-2 to nobody; and so on"
    )


COOPERATIVE = GroupSubscription(
    subscriptions={
        "a": Subscription(topics=["orders"], owned_partitions=[("orders", 0), ("orders", 1)]),
        "b": Subscription(topics=["orders"]),
    },
    partitions={"orders": 2},
)
AT_ONCE = {"a": [("orders", 0)], "b": [("orders", 1)]}


def test_cooperative_assignors_may_not_give_away_what_is_still_owned() -> None:
    text = "gives b orders-1, which its owner has yet to give up"
    assert fault(AT_ONCE, COOPERATIVE, RebalanceProtocol.COOPERATIVE) == text


def test_cooperative_sticky_knows_what_it_does() -> None:
    check_assignment("cooperative-sticky", COOPERATIVE, AT_ONCE, RebalanceProtocol.COOPERATIVE)


def test_what_is_owned_may_belong_to_nobody_in_between() -> None:
    check_assignment("mine", COOPERATIVE, {"a": [("orders", 0)], "b": []}, RebalanceProtocol.COOPERATIVE)
    assert fault({"a": [("orders", 0)], "b": []}, COOPERATIVE) == "gives orders-1 to nobody"


def test_whatever_an_assignor_raises_is_named() -> None:
    def broken(group: GroupSubscription) -> dict[str, list[tuple[str, int]]]:
        raise KeyError(len(group.partitions))

    function: Callable[[GroupSubscription], dict[str, list[tuple[str, int]]]] = broken
    with pytest.raises(FaultyAssignorError, match="assignor mine: raised KeyError: 3") as raised:
        run_assignor(FunctionAssignor("mine", function), GROUP)
    assert isinstance(raised.value.__cause__, KeyError)
    assert raised.value.faults == ("raised KeyError: 3",)


def test_a_member_that_wants_nothing_shows_a_defect_of_kafkas() -> None:
    """If it comes first Kafka takes it to want what the others want. Kafka sends that out; here it is a fault."""
    group = GroupSubscription(
        subscriptions={"a": Subscription(), "b": Subscription(topics=["orders"])}, partitions={"orders": 1}
    )
    given = StickyAssignor().assign(group)
    assert given == {"a": [("orders", 0)], "b": []}
    assert fault(given, group) == "gives a orders-0, but a does not subscribe to orders"
