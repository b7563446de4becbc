import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupcoord.assignors import Group, Subscription
from groupcoord.assignors.sticky import general
from groupcoord.assignors.sticky.assignor import assign_sticky
from groupcoord.assignors.sticky.general import balance_score
from groupcoord.assignors.sticky.user_data import write_sticky


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
    group = Group(
        subscriptions={
            "a": Subscription(topics=["orders"], user_data=write_sticky(claims, 1)),
            "b": Subscription(topics=["orders", "payments"]),
        },
        partitions={"orders": 6, "payments": 1},
    )
    assert len(assign_sticky(group).assignment["a"]) == 4
    monkeypatch.setattr(general, "balance_score", lambda _: 0)
    assert assign_sticky(group).assignment == {"a": claims, "b": [("payments", 0)]}
