import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupcoord.assignors.java_order import MemberHeap


@pytest.mark.slow
@given(st.lists(st.integers(0, 5), min_size=1, max_size=8), st.lists(st.tuples(st.integers(0, 7), st.integers(-2, 3))))
def test_the_least_is_known_whatever_happens_to_sizes(sizes: list[int], happenings: list[tuple[int, int]]) -> None:
    members = [member for member in range(len(sizes)) if member % 3 != 1] or [0]
    pool = MemberHeap(members, sizes)
    for anybody, by in happenings:
        member = anybody % len(sizes)
        sizes[member] = max(0, sizes[member] + by)
        if by < 0 and member in members:
            pool.shrunk(member)
        assert pool.least() == min(members, key=lambda member: (sizes[member], member))


def test_an_empty_pool() -> None:
    pool = MemberHeap([], [1, 2])
    assert not pool
    with pytest.raises(IndexError):
        pool.least()
