"""What values are allowed, with the words Kafka 4.3.1 has for those that are not."""

import pytest

from groupcoord.config.rules import rule
from groupcoord.config.values import InvalidValueError, Value

NAME = "some.name"
REPLICA_FORM = (
    f"Invalid value [x] for configuration {NAME}: {NAME} must be the literal '*' or a list of replicas in the following "
    "format: [partitionId]:[brokerId],[partitionId]:[brokerId],..."
)


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("-", None),
        ("1..", 1),
        ("0..0.5", 0.5),
        ("-1..", -1),
        ("-131072..22", -131072),
        ("zstd|gzip", "gzip"),
        ("nocase:UPGRADE|DOWNGRADE", "upgrade"),
        ("list?", None),
        ("list", ()),
        ("list+", ("a",)),
        ("list:compact|delete", ("delete", "compact")),
        ("nonempty", "x"),
        ("nonempty", None),
        ("nonnull", ""),
        ("1..9or-1", -1),
        ("1..9or-1", 9),
        ("replicas", ("*",)),
        ("replicas", ("0:1", "1:2")),
        ("replicas", ()),
    ],
)
def test_what_is_allowed_is_kept(word: str, value: Value) -> None:
    assert rule(word).check(NAME, value) == value


def test_a_list_says_nothing_twice() -> None:
    assert rule("list").check(NAME, ("a", "b", "a")) == ("a", "b")


@pytest.mark.parametrize(
    ("word", "value", "message"),
    [
        ("1..", 0, f"Invalid value 0 for configuration {NAME}: Value must be at least 1"),
        ("1..", None, f"Invalid value null for configuration {NAME}: Value must be non-null"),
        ("0..1", 2.0, f"Invalid value 2.0 for configuration {NAME}: Value must be no more than 1"),
        ("0..0.5", 0.75, f"Invalid value 0.75 for configuration {NAME}: Value must be no more than 0.5"),
        ("a|b", "c", f"Invalid value c for configuration {NAME}: String must be one of: a, b"),
        ("a|b", None, f"Invalid value null for configuration {NAME}: String must be one of: a, b"),
        (
            "nocase:A|B",
            "c",
            f"Invalid value c for configuration {NAME}: String must be one of (case insensitive): A, B",
        ),
        ("list", None, f"Configuration '{NAME}' values must not be null."),
        ("list", ("a", ""), f"Configuration '{NAME}' values must not be empty."),
        ("list+", (), f"Configuration '{NAME}' must not be empty. Valid values include: any non-empty value"),
        ("list:a|b+", (), f"Configuration '{NAME}' must not be empty. Valid values include: [a, b]"),
        ("list:a|b", ("c", ""), f"Invalid value c for configuration {NAME}: String must be one of: a, b"),
        ("nonempty", "", f"Invalid value  for configuration {NAME}: String must be non-empty"),
        ("nonnull", None, f"Invalid value null for configuration {NAME}: entry must be non null"),
        (
            "1..9or-1",
            0,
            f"Invalid value 0 for configuration {NAME}: Value must be between 1 and 9 or equal to -1",
        ),
        ("replicas", ("x",), REPLICA_FORM),
        ("replicas", ("*", "0:1"), REPLICA_FORM.replace("[x]", "[*, 0:1]")),
    ],
)
def test_what_is_not_allowed_is_refused_in_kafkas_words(word: str, value: Value, message: str) -> None:
    with pytest.raises(InvalidValueError) as refusal:
        rule(word).check(NAME, value)
    assert str(refusal.value) == message


@pytest.mark.parametrize(
    ("word", "expects"),
    [
        ("-", ""),
        ("1..", "at least 1"),
        ("0..1", "from 0 to 1"),
        ("a|b", "one of a, b"),
        ("list", "a list without empty elements"),
        ("list:a|b", "a list of a, b"),
        ("1..9or-1", "from 1 to 9, or -1"),
    ],
)
def test_a_rule_says_what_it_expects(word: str, expects: str) -> None:
    assert rule(word).expects == expects
