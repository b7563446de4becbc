"""Texts become values, values become texts, and what is not allowed is refused in Kafka's words."""

import math

import pytest

from groupcoord.config.config_def import ConfigType, InvalidValueError, Value, read, show, show_double, validator


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (ConfigType.INT, "7", 7),
        (ConfigType.INT, " +7\t", 7),
        (ConfigType.INT, "-2147483648", -2147483648),
        (ConfigType.INT, "٣", 3),
        (ConfigType.SHORT, "32767", 32767),
        (ConfigType.LONG, "9223372036854775807", 9223372036854775807),
        (ConfigType.BOOLEAN, " TRUE ", True),
        (ConfigType.BOOLEAN, "false", False),
        (ConfigType.DOUBLE, "0.5f", 0.5),
        (ConfigType.DOUBLE, " .25d ", 0.25),
        (ConfigType.DOUBLE, "5.", 5.0),
        (ConfigType.DOUBLE, "1e-1", 0.1),
        (ConfigType.DOUBLE, "-Infinity", -math.inf),
        (ConfigType.DOUBLE, " 0x1P3 ", 8.0),
        (ConfigType.DOUBLE, "-0X.8p0f", -0.5),
        (ConfigType.DOUBLE, "0x1p99999999999", math.inf),
        (ConfigType.DOUBLE, "-0x1p99999999999D", -math.inf),
        (ConfigType.LIST, " compact , delete ", ("compact", "delete")),
        (ConfigType.LIST, "a,,b,", ("a", "", "b", "")),
        (ConfigType.LIST, "  ", ()),
        (ConfigType.STRING, " gzip ", "gzip"),
        (ConfigType.CLASS, " a.B ", "a.B"),
        (ConfigType.PASSWORD, " secret ", " secret "),
    ],
)
def test_a_text_is_read_as_java_reads_it(kind: ConfigType, text: str, value: Value) -> None:
    assert read("some.name", kind, text) == value


def test_not_a_number_is_a_double() -> None:
    assert math.isnan(float(str(read("some.name", ConfigType.DOUBLE, "NaN"))))


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        (ConfigType.INT, "abc", "Invalid value abc for configuration num.partitions: Not a number of type INT"),
        (
            ConfigType.INT,
            "99999999999",
            "Invalid value 99999999999 for configuration num.partitions: Not a number of type INT",
        ),
        (ConfigType.INT, "1_000", "Invalid value 1_000 for configuration num.partitions: Not a number of type INT"),
        (ConfigType.INT, "1.5", "Invalid value 1.5 for configuration num.partitions: Not a number of type INT"),
        (ConfigType.LONG, "", "Invalid value  for configuration num.partitions: Not a number of type LONG"),
        (ConfigType.SHORT, "32768", "Invalid value 32768 for configuration num.partitions: Not a number of type SHORT"),
        (ConfigType.DOUBLE, "half", "Invalid value half for configuration num.partitions: Not a number of type DOUBLE"),
        (ConfigType.DOUBLE, "0x1", "Invalid value 0x1 for configuration num.partitions: Not a number of type DOUBLE"),
        (
            ConfigType.BOOLEAN,
            "yes",
            "Invalid value yes for configuration num.partitions: Expected value to be either true or false",
        ),
    ],
)
def test_what_is_no_value_is_refused_in_kafkas_words(kind: ConfigType, text: str, message: str) -> None:
    with pytest.raises(InvalidValueError) as refusal:
        read("num.partitions", kind, text)
    assert str(refusal.value) == message
    assert message.endswith(refusal.value.reason)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        (True, "true"),
        (False, "false"),
        (7, "7"),
        (("a", "b"), "a,b"),
        ((), ""),
        ("CreateTime", "CreateTime"),
        (0.5, "0.5"),
    ],
)
def test_a_value_is_shown_as_kafka_shows_it(value: Value, text: str | None) -> None:
    assert show(value) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0.0"),
        (1.0, "1.0"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (-0.00025, "-2.5E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (123456789.125, "1.23456789125E8"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (5e-324, "4.9E-324"),
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
    ],
)
def test_a_double_is_shown_as_java_shows_it(number: float, text: str) -> None:
    assert show_double(number) == text


def test_an_error_may_be_worded_otherwise() -> None:
    problem = InvalidValueError.worded("it is wrong")
    assert (str(problem), problem.reason) == ("it is wrong", "it is wrong")


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
    assert validator(word).check(NAME, value) == value


def test_a_list_says_nothing_twice() -> None:
    assert validator("list").check(NAME, ("a", "b", "a")) == ("a", "b")


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
        validator(word).check(NAME, value)
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
    assert validator(word).expects == expects
