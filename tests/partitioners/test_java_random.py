from typing import Any

import pytest

from groupcoord.partitioners.java_random import JavaRandom, bounded, shuffle
from tests.partitioners.known import KNOWN, MockRandom


@pytest.mark.parametrize("case", KNOWN["java_random"])
def test_chance_falls_as_in_java(case: dict[str, Any]) -> None:
    random = JavaRandom(case["seed"]) if "seed" in case else MockRandom()
    drawn = [random.next_int(bound) for _ in range(3) for bound in (3, 4, 7, 100)]
    assert drawn == case["nextInt_bounds_3_4_7_100_in_turn"]
    if "seed" in case:
        items = list(range(10))
        shuffle(items, JavaRandom(case["seed"]))
        assert items == case["shuffle_0_to_9"]


def test_numbers_that_would_make_some_likelier_are_drawn_again() -> None:
    drawn = iter([(1 << 31) - 1, 5])
    assert bounded(lambda _: next(drawn), (1 << 30) + 1) == 5
