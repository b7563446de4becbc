from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from groupcoord.testing.simulation.shrink import shrink


@given(st.integers(1, 25), st.data())
def test_what_is_left_is_what_is_needed(count: int, data: st.DataObject) -> None:
    needed = data.draw(st.sets(st.integers(0, count - 1), max_size=4))
    assert shrink(range(count), lambda some: needed <= set(some), runs=10_000) == sorted(needed)


@given(st.integers(1, 40), st.integers(0, 12))
def test_no_more_runs_than_allowed_and_what_is_left_fails(count: int, runs: int) -> None:
    tried = 0

    def fails(some: Sequence[int]) -> bool:
        nonlocal tried
        tried += 1
        return {0, count - 1} <= set(some)

    assert {0, count - 1} <= set(shrink(range(count), fails, runs=runs))
    assert tried <= runs


def test_nothing_is_left_of_nothing() -> None:
    assert shrink([], lambda _: True, runs=5) == []
