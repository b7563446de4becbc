"""Everything at once, small: three seconds of it, and what growth in an hour is."""

import pytest

from tests.reliability.soak import Sample, growth, soak


@pytest.mark.slow
def test_nothing_breaks_in_three_seconds() -> None:
    outcome, moments, grown = soak(3, seed=1, sample_seconds=0.2)
    assert outcome.problems == ()
    assert moments[-1].answers > moments[0].answers
    assert len(grown) == len(Sample._fields)


def test_growth_is_told_from_the_second_third_to_the_last() -> None:
    samples = [Sample(*[value] * 5) for value in (0, 0, 0, 10, 90, 10, 20, 20, -70)]
    assert growth(samples, 3_600 * 3) == Sample(*[10] * 5)
    assert growth(samples, 3_600) == Sample(*[30] * 5)
    assert growth(samples[:2], 3_600) == Sample(*[0] * 5)
