import pytest

from groupcoord.testing.faults.spans import Span


@pytest.mark.parametrize(
    ("value", "text", "inside", "outside", "plain", "size"),
    [
        (3, "3", [3], [2, 4], 3, 1),
        ("3", "3", [3], [2, 4], 3, 1),
        (range(2, 5), "2-4", [2, 3, 4], [1, 5], "2-4", 3),
        ("2-4", "2-4", [2, 4], [1, 5], "2-4", 3),
        ("3-", "3-", [3, 1_000], [2, "3"], "3-", None),
        (Span(1, 2), "1-2", [1, 2], [3], "1-2", 2),
        (0, "0", [0], [1], 0, 1),
    ],
)
def test_numbers_in_a_row(
    value: object, text: str, inside: list[int], outside: list[object], plain: object, size: int | None
) -> None:
    span = Span.of(value)
    assert (str(span), span.plain, span.size) == (text, plain, size)
    assert all(number in span for number in inside)
    assert not any(number in span for number in outside)
    assert Span.of(span.plain) == span


@pytest.mark.parametrize(
    "value", [-1, True, range(-1, 4), range(5, 2), range(1, 9, 2), "4-2", "", "a", "-4", 1.5, None]
)
def test_what_is_no_number_or_span(value: object) -> None:
    with pytest.raises(ValueError, match="neither a number nor a span of numbers such as '2-4' or '3-'"):
        Span.of(value)
