"""Kafka's types, text to value and back. The texts of errors are those Kafka 4.3.1 printed for the same input."""

import math

import pytest

from groupcoord.config.values import ConfigType, InvalidValueError, Value, read, show, show_double


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
