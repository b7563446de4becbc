"""Who claims what, and who may keep it."""

from groupcoord.assignors.model import Subscription
from groupcoord.assignors.sticky.past import Past, collect_ownership, cooperative_past, sticky_past, wants_are_equal
from groupcoord.assignors.sticky.user_data import write_cooperative, write_sticky

ORDERS = [("orders", 0)]


def kept(**pasts: tuple[int | None, int | None]) -> tuple[list[str], bool]:
    """Who keeps orders-0 if these claim it in turn, by (generation, generation stated); and is it contested?"""
    members = {name: Subscription(topics=["orders"], generation_id=stated) for name, (_, stated) in pasts.items()}
    claims = {name: Past(ORDERS, generation) for name, (generation, _) in pasts.items()}
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
    claims = {"a": Past(ORDERS, 5), "b": Past([*ORDERS, *ORDERS], 5)}
    assert not any(collect_ownership(members, claims, {"orders": 1}).kept.values())


def test_claims_for_topics_that_take_no_part_vanish() -> None:
    ownership = collect_ownership({"a": Subscription()}, {"a": Past([("gone", 0)], 4)}, {"orders": 1})
    assert ownership.kept == {"a": []}
    assert ownership.max_generation == 4


def test_where_sticky_finds_the_past() -> None:
    assert sticky_past(Subscription(owned_partitions=ORDERS, generation_id=3)) == Past((), None)
    assert sticky_past(Subscription(user_data=b"")) == Past((), None)
    assert sticky_past(Subscription(user_data=write_sticky(ORDERS, 3))) == Past(ORDERS, 3)
    assert sticky_past(Subscription(user_data=write_sticky(ORDERS, None))) == Past(ORDERS, None)
    assert sticky_past(Subscription(user_data=b"?")) == Past((), -1)


def test_where_cooperative_sticky_finds_it() -> None:
    assert cooperative_past(Subscription(owned_partitions=ORDERS, generation_id=3)) == Past(ORDERS, 3)
    older = Subscription(owned_partitions=ORDERS, user_data=write_cooperative(2))
    assert cooperative_past(older) == Past(ORDERS, 2)
    assert cooperative_past(Subscription(owned_partitions=ORDERS, user_data=b"?")) == Past(ORDERS, -1)
    assert cooperative_past(Subscription(owned_partitions=ORDERS)) == Past(ORDERS, None)


def test_whether_all_want_the_same() -> None:
    def equal(*topics: str) -> bool:
        return wants_are_equal({str(number): Subscription(topics=list(wanted)) for number, wanted in enumerate(topics)})

    assert equal("xy", "yx")
    assert equal("", "x", "x")  # as in Kafka: nothing is not noticed if it comes first
    assert not equal("x", "")
    assert not equal("xy", "xz")
    assert not equal("xx", "xx")  # a list of two is not as long as a set of one
