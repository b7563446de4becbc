import re

import pytest

from groupcoord.assignors import FunctionAssignor, UnknownAssignorError
from groupcoord.client import option_value_parsing
from groupcoord.client.option_value_parsing import parse_addresses


@pytest.mark.parametrize(
    ("bootstrap", "expected"),
    [
        ("a:1", (("a", 1),)),
        ("a", (("a", 9092),)),
        ("a:1, b:2,", (("a", 1), ("b", 2))),
        (["a:1", "b:2"], (("a", 1), ("b", 2))),
        ("[::1]:5", (("::1", 5),)),
        ("[::1]", (("::1", 9092),)),
    ],
)
def test_addresses(bootstrap: str, expected: tuple[tuple[str, int], ...]) -> None:
    assert parse_addresses(bootstrap) == expected


@pytest.mark.parametrize(
    ("bootstrap", "problem"),
    [("", "no address"), ([], "no address"), ("a:b", "b is not a port"), ("a:0", "0 is not a port")],
)
def test_addresses_that_are_none(bootstrap: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_addresses(bootstrap)


def test_topics() -> None:
    assert option_value_parsing.topic_names("t") == {"t"}
    assert option_value_parsing.topic_names(["t", "u", "t"]) == {"t", "u"}
    with pytest.raises(ValueError, match="one topic at least"):
        option_value_parsing.topic_names([])


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "'' is not a name of a topic: 1 to 249 letters"),
        ("..", "'..' is not a name of a topic"),
        ("t" * 250, "is not a name of a topic"),
        ("a b", "'a b' is not a name of a topic"),
        (1, "1 is not a name of a topic"),
        ("127.0.0.1:9092", "an address goes into bootstrap_servers"),
    ],
)
def test_what_is_no_name_of_a_topic(name: str, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        option_value_parsing.topic_names(["t", name])


def test_patterns() -> None:
    assert option_value_parsing.topic_pattern("a|b").fullmatch("b")
    assert option_value_parsing.topic_pattern(re.compile("a")).pattern == "a"
    with pytest.raises(ValueError, match="a pattern is not empty"):
        option_value_parsing.topic_pattern("")
    with pytest.raises(ValueError, match=r"'\(' is not a regular expression: missing \)"):
        option_value_parsing.topic_pattern("(")


def test_assignors() -> None:
    mine = FunctionAssignor("mine", lambda _: {})
    assert [each.name for each in option_value_parsing.assignors_of(option_value_parsing.DEFAULT_ASSIGNORS)] == [
        "range",
        "cooperative-sticky",
    ]
    assert option_value_parsing.assignors_of([mine, "range"])[0] is mine
    assert option_value_parsing.assignors_of(mine) == [mine]
    assert [each.name for each in option_value_parsing.assignors_of("sticky")] == ["sticky"]
    with pytest.raises(UnknownAssignorError, match="no assignor 'stick'"):
        option_value_parsing.assignors_of("stick")


def test_isolation_levels() -> None:
    assert [option_value_parsing.isolation_level(name) for name in ("read_uncommitted", "read_committed")] == [0, 1]
    with pytest.raises(ValueError, match="not serializable"):
        option_value_parsing.isolation_level("serializable")
