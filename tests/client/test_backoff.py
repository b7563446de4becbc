from hypothesis import given
from hypothesis import strategies as st

from groupcoord.client.backoff import Backoff


def test_it_doubles_up_to_the_limit() -> None:
    backoff = Backoff(100, 1_000, lambda: 0.5)
    assert [backoff.delay_ms(attempts) for attempts in (0, 1, 2, 3, 4, 5, 1_000_000)] == [100, 200, 400, 800] + [
        1_000
    ] * 3


@given(st.integers(0, 10_000), st.integers(0, 100_000), st.floats(0, 1, exclude_max=True), st.integers(0, 100))
def test_it_stays_within_a_fifth_of_what_it_should_be(first: int, more: int, chance: float, attempts: int) -> None:
    most = first + more
    delay_ms = Backoff(first, most, lambda: chance).delay_ms(attempts)
    should_be = min(first * 2**attempts, most)
    assert 0.8 * should_be - 1 <= delay_ms <= 1.2 * should_be + 1
