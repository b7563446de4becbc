import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupcoord.assignors import GroupSubscription, Subscription
from groupcoord.assignors.sticky import general_assignment_builder as general
from groupcoord.assignors.sticky.general_assignment_builder import PartitionMovements, balance_score
from groupcoord.assignors.sticky.previous_assignment import (
    PreviousAssignment,
    UnreadableUserData,
    collect_ownership,
    previous_of_cooperative,
    previous_of_sticky,
    read_cooperative,
    read_sticky,
    subscriptions_are_equal,
    unassigned_partitions,
    write_cooperative,
    write_sticky,
)
from groupcoord.assignors.sticky.sticky_assignors import assign_sticky

EVERYTHING = [("a", 0), ("a", 1), ("b", 0), ("b", 1)]


def test_what_nobody_has() -> None:
    assert unassigned_partitions(EVERYTHING, [("b", 0), ("a", 1)]) == [("a", 0), ("b", 1)]
    assert unassigned_partitions(EVERYTHING, []) == EVERYTHING


def test_a_claim_to_what_does_not_exist_frees_all_that_follows() -> None:
    """Kafka's walk waits for it and never finds it."""
    assert unassigned_partitions(EVERYTHING, [("a", 0), ("a", 7), ("b", 0)]) == [("a", 1), ("b", 0), ("b", 1)]
    assert unassigned_partitions(EVERYTHING, [("b", 1), ("b", 9)]) == [("a", 0), ("a", 1), ("b", 0)]


@pytest.mark.slow
@given(st.lists(st.integers(0, 1000), max_size=20))
def test_the_score_is_what_all_pairs_differ_by(sizes: list[int]) -> None:
    assert balance_score(sizes) == sum(abs(one - other) for place, one in enumerate(sizes) for other in sizes[:place])


@pytest.mark.parametrize(("members", "score"), [(1000, 1_000_000_000), (2000, -294_967_296)])
def test_the_score_of_large_groups_overflows_as_in_java(members: int, score: int) -> None:
    """Half of the members have 4,000 more than the others: of 2,000 that is 4,000 times a million pairs."""
    assert balance_score([4000 * (member % 2) for member in range(members)]) == score


def test_moves_that_make_nothing_more_even_are_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every single move makes it more even, but the score may overflow: then all stays as it was."""
    claims = [("orders", number) for number in range(6)]
    group = GroupSubscription(
        subscriptions={
            "a": Subscription(topics=["orders"], user_data=write_sticky(claims, 1)),
            "b": Subscription(topics=["orders", "payments"]),
        },
        partitions={"orders": 6, "payments": 1},
    )
    assert len(assign_sticky(group).assignment["a"]) == 4
    monkeypatch.setattr(general, "balance_score", lambda _: 0)
    assert assign_sticky(group).assignment == {"a": claims, "b": [("payments", 0)]}


def test_what_came_goes_back_rather_than_something_else() -> None:
    movements = PartitionMovements("orders")
    assert movements.instead_of(3, owner=1, receiver=2) == 3
    movements.record(3, owner=1, receiver=2)
    assert movements.instead_of(5, owner=2, receiver=1) == 3
    movements.record(3, owner=2, receiver=1)  # home again: as if nothing had been
    assert movements.instead_of(5, owner=2, receiver=1) == 5


def test_where_a_partition_was_at_first_is_what_counts() -> None:
    movements = PartitionMovements("orders")
    movements.record(3, owner=1, receiver=2)
    movements.record(3, owner=2, receiver=4)
    assert movements.instead_of(5, owner=4, receiver=1) == 3
    movements.record(7, owner=1, receiver=4)
    movements.record(7, owner=4, receiver=5)
    assert movements.instead_of(5, owner=4, receiver=1) == 3  # the other that went this way is still there
    assert movements.instead_of(3, owner=4, receiver=9) == 3


ORDERS = [("orders", 0)]


def kept(**pasts: tuple[int | None, int | None]) -> tuple[list[str], bool]:
    """Who keeps orders-0 if these claim it in turn, by (generation, generation stated); and is it contested?"""
    members = {name: Subscription(topics=["orders"], generation_id=stated) for name, (_, stated) in pasts.items()}
    claims = {name: PreviousAssignment(ORDERS, generation) for name, (generation, _) in pasts.items()}
    ownership = collect_ownership(members, claims, {"orders": 1})
    return [name for name, held in ownership.kept.items() if held], bool(ownership.double_claimed)


def test_an_uncontested_claim_stands_however_old() -> None:
    assert kept(a=(1, 1)) == (["a"], False)


def test_the_later_generation_wins() -> None:
    assert kept(a=(1, 1), b=(2, 2)) == (["b"], False)
    assert kept(a=(2, 2), b=(1, 1)) == (["a"], False)


def test_in_one_generation_neither_keeps_it() -> None:
    assert kept(a=(1, 1), b=(1, 1)) == ([], True)


def test_a_third_is_compared_with_the_second() -> None:
    assert kept(a=(1, 1), b=(1, 1), c=(2, 2)) == (["c"], True)
    assert kept(a=(1, 1), b=(1, 1), c=(1, 1)) == ([], True)


def test_the_earlier_claimant_is_judged_by_what_its_subscription_states() -> None:
    """User data says 5 of both; but a's subscription states nothing, and 5 is more than nothing."""
    assert kept(a=(5, None), b=(5, None)) == (["b"], False)


def test_who_claims_twice_does_not_win_against_itself() -> None:
    members = {"a": Subscription(generation_id=5), "b": Subscription()}
    claims = {"a": PreviousAssignment(ORDERS, 5), "b": PreviousAssignment([*ORDERS, *ORDERS], 5)}
    assert not any(collect_ownership(members, claims, {"orders": 1}).kept.values())


def test_claims_for_topics_that_take_no_part_vanish() -> None:
    ownership = collect_ownership({"a": Subscription()}, {"a": PreviousAssignment([("gone", 0)], 4)}, {"orders": 1})
    assert ownership.kept == {"a": []}
    assert ownership.max_generation == 4


def test_where_sticky_finds_the_past() -> None:
    assert previous_of_sticky(Subscription(owned_partitions=ORDERS, generation_id=3)) == PreviousAssignment((), None)
    assert previous_of_sticky(Subscription(user_data=b"")) == PreviousAssignment((), None)
    assert previous_of_sticky(Subscription(user_data=write_sticky(ORDERS, 3))) == PreviousAssignment(ORDERS, 3)
    assert previous_of_sticky(Subscription(user_data=write_sticky(ORDERS, None))) == PreviousAssignment(ORDERS, None)
    assert previous_of_sticky(Subscription(user_data=b"?")) == PreviousAssignment((), -1)


def test_where_cooperative_sticky_finds_it() -> None:
    assert previous_of_cooperative(Subscription(owned_partitions=ORDERS, generation_id=3)) == PreviousAssignment(
        ORDERS, 3
    )
    older = Subscription(owned_partitions=ORDERS, user_data=write_cooperative(2))
    assert previous_of_cooperative(older) == PreviousAssignment(ORDERS, 2)
    assert previous_of_cooperative(Subscription(owned_partitions=ORDERS, user_data=b"?")) == PreviousAssignment(
        ORDERS, -1
    )
    assert previous_of_cooperative(Subscription(owned_partitions=ORDERS)) == PreviousAssignment(ORDERS, None)


def test_whether_all_want_the_same() -> None:
    def equal(*topics: str) -> bool:
        return subscriptions_are_equal(
            {str(number): Subscription(topics=list(wanted)) for number, wanted in enumerate(topics)}
        )

    assert equal("xy", "yx")
    assert equal("", "x", "x")  # as in Kafka: nothing is not noticed if it comes first
    assert not equal("x", "")
    assert not equal("xy", "xz")
    assert not equal("xx", "xx")  # a list of two is not as long as a set of one


FILE = Path(__file__).parents[1] / "partitioners" / "partitioner-placement-vectors.json"
KNOWN = json.loads(FILE.read_text())["sticky_user_data"]


@pytest.mark.parametrize("case", KNOWN)
def test_it_is_written_as_by_kafka(case: dict[str, Any]) -> None:
    partitions = [(topic, partition) for topic, partition in case["partitions"]]
    data = write_sticky(partitions, case["generation"])
    assert data.hex() == case["hex"]
    read = read_sticky(data)
    assert read.generation == case["generation"]
    assert sorted(read.partitions) == sorted(partitions)


def test_a_map_is_asked_for_the_topic_of_every_partition_and_may_grow_for_one_that_is_there() -> None:
    """After 49 topics the next question, whatever for, doubles the table; as a Kafka 4.3.1 client writes it."""
    topics = [f"t{number:02}" for number in range(1, 50)]
    once = [topic for topic, _ in read_sticky(write_sticky([(topic, 0) for topic in topics], None)).partitions]
    again = write_sticky([*[(topic, 0) for topic in topics], ("t49", 1)], None)
    assert once[:3] == ["t30", "t32", "t10"]
    assert [topic for topic, _ in read_sticky(again).partitions[:3]] == ["t10", "t12", "t11"]


def test_what_follows_is_ignored() -> None:
    data = write_sticky([("orders", 1)], 3)
    assert read_sticky(data + b"more") == read_sticky(data)
    assert read_sticky(data[:-1]) == ([("orders", 1)], None)  # too short for a generation


@pytest.mark.parametrize(
    "data",
    [
        "",  # no count
        "ffffffff",  # a negative count
        "00000001",  # no topic
        "00000001ffff",  # a negative length
        "000000010005616263",  # a topic beyond the end
        "00000001000161",  # no partitions
        "0000000100016100000002000000010000",  # more partitions than bytes
        "00000001000161ffffffff",
    ],
)
def test_what_cannot_be_read(data: str) -> None:
    with pytest.raises(UnreadableUserData):
        read_sticky(bytes.fromhex(data))


@pytest.mark.slow
@given(st.binary(max_size=64))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        read_sticky(data)
    except UnreadableUserData:
        return
    assert len(data) >= 4


def test_the_cooperative_one_is_a_generation() -> None:
    assert write_cooperative(-1).hex() == "ffffffff"
    assert read_cooperative(write_cooperative(42) + b"more") == 42
    with pytest.raises(UnreadableUserData, match="3 bytes are not a generation"):
        read_cooperative(b"123")
