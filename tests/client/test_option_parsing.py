import pytest

from groupcoord.assignors import FunctionAssignor, UnknownAssignorError
from groupcoord.client import option_parsing
from groupcoord.client.option_parsing import parse_addresses


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
    assert option_parsing.topic_names("t") == {"t"}
    assert option_parsing.topic_names(["t", "u", "t"]) == {"t", "u"}
    for nothing in ("", [], ["t", ""]):
        with pytest.raises(ValueError, match="one topic at least"):
            option_parsing.topic_names(nothing)


def test_assignors() -> None:
    mine = FunctionAssignor("mine", lambda _: {})
    assert [each.name for each in option_parsing.assignors_of(option_parsing.DEFAULT_ASSIGNORS)] == [
        "range",
        "cooperative-sticky",
    ]
    assert option_parsing.assignors_of([mine, "range"])[0] is mine
    assert option_parsing.assignors_of(mine) == [mine]
    assert [each.name for each in option_parsing.assignors_of("sticky")] == ["sticky"]
    with pytest.raises(UnknownAssignorError, match="no assignor 'stick'"):
        option_parsing.assignors_of("stick")


def test_isolation_levels() -> None:
    assert [option_parsing.isolation_level(name) for name in ("read_uncommitted", "read_committed")] == [0, 1]
    with pytest.raises(ValueError, match="not serializable"):
        option_parsing.isolation_level("serializable")
