import pytest

from groupcoord.testing.trace.words import counted, duration, listed, moment, times


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0.0 s"),
        (16_200, "16.2 s"),
        (61_250, "61.25 s"),
        (5, "0.005 s"),
        (86_400_000, "86,400.0 s"),
        (1_010, "1.01 s"),
    ],
)
def test_a_moment_has_a_tenth_of_a_second_at_least(ms: int, text: str) -> None:
    assert moment(ms) == text


def test_a_duration_has_its_thousands_apart() -> None:
    assert duration(45_000) == "45,000 ms"


@pytest.mark.parametrize(
    ("names", "text"), [([], ""), (["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c")]
)
def test_a_list_ends_with_and(names: list[str], text: str) -> None:
    assert listed(names) == text


def test_counts() -> None:
    assert [counted(1, "step"), counted(2, "step")] == ["1 step", "2 steps"]
    assert [times(1), times(2), times(3)] == ["once", "twice", "3 times"]
