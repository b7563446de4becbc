"""Parsing, validation and formatting of property values (``ConfigDef``), with Kafka's types and error messages.

Validators are written in the property tables as short words: ``-`` anything · ``1..`` and ``0..0.5`` a range · ``a|b`` one of
these · ``nocase:a|b`` the same in any case · ``nonempty`` and ``nonnull`` for strings · ``list`` or ``list:a|b`` a list without
empty elements, followed by ``+`` if it must have an element and ``?`` if it may be null · ``replicas`` a list of throttled
replicas · ``1..9or-1`` a gzip level.
Source: ``org.apache.kafka.common.config.ConfigDef``: ``parseType``, ``convertToString``, its validators, ``ConfigException``.
"""

import enum
import math
import re
from collections.abc import Callable
from typing import NamedTuple


class ConfigError(ValueError):
    """An invalid configuration.

    ``origin`` is where it was written (``server.properties:12``, or empty for an argument), ``key`` and ``value`` are the
    setting, and ``reason`` is the error, or what is expected.
    """

    def __init__(self, origin: str, key: str, value: str | None, reason: str) -> None:
        self.origin, self.key, self.value, self.reason = origin, key, value, reason
        what = key if value is None else f"{key}={value}"
        super().__init__(": ".join(part for part in (origin, what, reason) if part))


Value = bool | int | float | str | tuple[str, ...] | None

_BLANKS = "".join(map(chr, range(33)))  # the characters that Java's String.trim() removes
_INTEGER = re.compile(r"[+-]?\d+")  # digits of any script, as in Java
_DECIMAL = re.compile(r"[+-]?(NaN|Infinity|(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[fFdD]?)", re.ASCII)
_HEXADECIMAL = re.compile(r"([+-]?0[xX]([\da-fA-F]+\.?[\da-fA-F]*|\.[\da-fA-F]+)[pP][+-]?\d+)[fFdD]?", re.ASCII)


class ConfigType(enum.IntEnum):
    """The type of a property, with its number in DescribeConfigs."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


_BITS = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}


class InvalidValueError(ValueError):
    """An invalid value, with the message of Kafka's ``ConfigException``; ``reason`` is the end of the message."""

    def __init__(self, name: str, value: object, reason: str) -> None:
        shown = show_double(value) if isinstance(value, float) else value
        super().__init__(f"Invalid value {shown} for configuration {name}: {reason}")
        self.reason = reason

    @classmethod
    def worded(cls, text: str) -> "InvalidValueError":
        """An error with exactly the message ``text``."""
        problem = cls.__new__(cls)
        ValueError.__init__(problem, text)
        problem.reason = text
        return problem


def trim(text: str) -> str:
    """``text`` without spaces and control characters at its ends, as ``String.trim``."""
    return text.strip(_BLANKS)


def read(name: str, kind: ConfigType, text: str) -> Value:
    """Parses ``text``. Raises InvalidValueError."""
    trimmed = trim(text)
    match kind:
        case ConfigType.BOOLEAN:
            if trimmed.lower() not in {"true", "false"}:
                raise InvalidValueError(name, text, "Expected value to be either true or false")
            return trimmed.lower() == "true"
        case ConfigType.INT | ConfigType.LONG | ConfigType.SHORT:
            limit = 1 << (_BITS[kind] - 1)
            if not _INTEGER.fullmatch(trimmed) or not -limit <= int(trimmed) < limit:
                raise InvalidValueError(name, text, f"Not a number of type {kind.name}")
            return int(trimmed)
        case ConfigType.DOUBLE:
            number = _double(trimmed)
            if number is None:
                raise InvalidValueError(name, text, "Not a number of type DOUBLE")
            return number
        case ConfigType.LIST:
            return tuple(re.split(r"\s*,\s*", trimmed)) if trimmed else ()
        case ConfigType.PASSWORD:
            return text
        case _:
            return trimmed


def _double(text: str) -> float | None:
    """``Double.parseDouble``; None is not a number."""
    hexadecimal = _HEXADECIMAL.fullmatch(text)
    if hexadecimal:
        try:
            return float.fromhex(hexadecimal[1])
        except OverflowError:
            return -math.inf if text.startswith("-") else math.inf
    if _DECIMAL.fullmatch(text):
        return float(text if text[-1] in "Ny" else text.rstrip("fFdD"))
    return None


def show(value: Value) -> str | None:
    """The text of ``value`` in DescribeConfigs; None stays None."""
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case float():
            return show_double(value)
        case tuple():
            return ",".join(value)
        case _:
            return str(value)


def show_double(number: float) -> str:
    """``Double.toString``: scientific below 0.001 and from ten million on, always with a digit after the point."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        return repr(number)
    from decimal import Decimal  # noqa: PLC0415 - rarely needed, and would slow down every start

    two_digits = f"{number:.1e}"  # preferred to one digit, such as 4.9E-324 to 5.0E-324
    shortest = two_digits if float(two_digits) == number else repr(number)
    sign, digits, exponent = Decimal(shortest).normalize().as_tuple()
    text = "".join(map(str, digits))
    return f"{'-' if sign else ''}{text[0]}.{text[1:] or '0'}E{int(exponent) + len(text) - 1}"


Check = Callable[[str, Value], Value]
_REPLICAS = re.compile(r"\*|(\d+:\d+)?", re.ASCII)


class Validator(NamedTuple):
    """``check(name, value)`` returns the value to keep or raises InvalidValueError; ``expects`` describes it for people."""

    check: Check
    expects: str


def validator(word: str) -> Validator:
    """The validator for ``word`` in the property tables."""
    if word == "-":
        return Validator(_anything, "")
    if word in _NAMED:
        return _NAMED[word]
    if word.startswith("list"):
        return _list_rule(word)
    if ".." in word:
        return _range_rule(word)
    return _choice_rule(word)


def _anything(_name: str, value: Value) -> Value:
    return value


def _range_rule(word: str) -> Validator:
    lowest, highest = ((float(end) if "." in end else int(end)) if end else None for end in word.split(".."))

    def check(name: str, value: Value) -> Value:
        if not isinstance(value, int | float):
            raise InvalidValueError(name, "null", "Value must be non-null")
        if lowest is not None and value < lowest:
            raise InvalidValueError(name, value, f"Value must be at least {lowest}")
        if highest is not None and value > highest:
            raise InvalidValueError(name, value, f"Value must be no more than {highest}")
        return value

    return Validator(check, f"at least {lowest}" if highest is None else f"from {lowest} to {highest}")


def _choice_rule(word: str) -> Validator:
    any_case = word.startswith("nocase:")
    choices = word.removeprefix("nocase:").split("|")
    allowed = {choice.upper() if any_case else choice for choice in choices}
    how = "String must be one of (case insensitive): " if any_case else "String must be one of: "

    def check(name: str, value: Value) -> Value:
        if not isinstance(value, str) or (value.upper() if any_case else value) not in allowed:
            raise InvalidValueError(name, "null" if value is None else value, how + ", ".join(choices))
        return value

    return Validator(check, "one of " + ", ".join(choices))


def _list_rule(word: str) -> Validator:
    nullable, filled = word.endswith("?"), "+" in word
    _, _, joined = word.rstrip("+?").partition(":")
    choices = joined.split("|") if joined else []

    def check(name: str, value: Value) -> Value:
        if value is None and nullable:
            return None
        if not isinstance(value, tuple):
            raise InvalidValueError.worded(f"Configuration '{name}' values must not be null.")
        if filled and not value:
            valid = f"[{', '.join(choices)}]" if choices else "any non-empty value"
            raise InvalidValueError.worded(f"Configuration '{name}' must not be empty. Valid values include: {valid}")
        for item in value:
            if not item:
                raise InvalidValueError.worded(f"Configuration '{name}' values must not be empty.")
            if choices and item not in choices:
                raise InvalidValueError(name, item, "String must be one of: " + ", ".join(choices))
        return tuple(dict.fromkeys(value))

    return Validator(check, "a list of " + ", ".join(choices) if choices else "a list without empty elements")


def _check_nonempty(name: str, value: Value) -> Value:
    if value == "":
        raise InvalidValueError(name, "", "String must be non-empty")
    return value


def _check_nonnull(name: str, value: Value) -> Value:
    if value is None:
        raise InvalidValueError(name, "null", "entry must be non null")
    return value


def _check_gzip_level(name: str, value: Value) -> Value:
    if not isinstance(value, int) or not (1 <= value <= 9 or value == -1):
        raise InvalidValueError(name, value, "Value must be between 1 and 9 or equal to -1")
    return value


def _check_replicas(name: str, value: Value) -> Value:
    """``*`` alone, or ``partition:broker`` any number of times (``ThrottledReplicaListValidator``)."""
    items = value if isinstance(value, tuple) else ()
    if not all(map(_REPLICAS.fullmatch, items)) or ("*" in items and len(items) > 1):
        form = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
        reason = f"{name} must be the literal '*' or a list of replicas in the following format: {form}"
        raise InvalidValueError(name, f"[{', '.join(items)}]", reason)
    return value


_NAMED = {
    "nonempty": Validator(_check_nonempty, "a text that is not empty"),
    "nonnull": Validator(_check_nonnull, "a text"),
    "1..9or-1": Validator(_check_gzip_level, "from 1 to 9, or -1"),
    "replicas": Validator(_check_replicas, "* or a list of partition:broker"),
}
