"""What may be a topic's name; the texts are those of a real broker."""

import pytest

from groupcoord.broker.topic_names import collision_key, fault_of, fault_text


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "...", "x" * 249, "__consumer_offsets"])
def test_a_legal_name(name: str) -> None:
    assert fault_of(name) is None
    assert fault_text(name) is None


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("", "Topic name is invalid: the empty string is not allowed"),
        (".", "Topic name is invalid: '.' is not allowed"),
        ("..", "Topic name is invalid: '..' is not allowed"),
        ("x" * 250, f"Topic name is invalid: the length of '{'x' * 250}' is longer than the max allowed length 249"),
        (
            "a b",
            "Topic name is invalid: 'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'",
        ),
        (
            "é",
            "Topic name is invalid: 'é' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'",
        ),
        (
            "a\n",
            "Topic name is invalid: 'a\n' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'",
        ),
    ],
)
def test_an_illegal_name(name: str, text: str) -> None:
    assert fault_text(name) == text


def test_names_that_metrics_cannot_tell_apart() -> None:
    assert collision_key("a.b_c") == collision_key("a_b.c") == "a_b_c"
    assert collision_key("a-b") is None
