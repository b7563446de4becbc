"""Text ↔ value of one configuration property, by Kafka's types, with Kafka's words for what is wrong.

Source: ``org.apache.kafka.common.config.ConfigDef``: ``parseType``, ``convertToString`` and ``ConfigException``.
"""

import enum
import math
import re

Value = bool | int | float | str | tuple[str, ...] | None

_BLANKS = "".join(map(chr, range(33)))  # what Java's String.trim() takes off
_INTEGER = re.compile(r"[+-]?\d+")  # digits of any script, as Java reads them
_DOUBLE = re.compile(r"[+-]?(NaN|Infinity|(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[fFdD]?)", re.ASCII)


class ConfigType(enum.IntEnum):
    """The type of a property, numbered as DescribeConfigs answers it."""

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
    """A value that a property cannot have, in the words of Kafka's ``ConfigException``; ``reason`` is the last of them."""

    def __init__(self, name: str, value: object, reason: str) -> None:
        super().__init__(f"Invalid value {value} for configuration {name}: {reason}")
        self.reason = reason

    @classmethod
    def worded(cls, text: str) -> "InvalidValueError":
        """One whose text is of another form."""
        problem = cls.__new__(cls)
        ValueError.__init__(problem, text)
        problem.reason = text
        return problem


def trim(text: str) -> str:
    """``text`` without blanks and control characters at its ends, as Java trims."""
    return text.strip(_BLANKS)


def read(name: str, kind: ConfigType, text: str) -> Value:
    """The value that ``text`` stands for. Raises InvalidValueError."""
    trimmed = trim(text)
    match kind:
        case ConfigType.BOOLEAN:
            if trimmed.lower() not in {"true", "false"}:
                raise InvalidValueError(name, text, "Expected value to be either true or false")
            return trimmed.lower() == "true"
        case ConfigType.INT | ConfigType.LONG | ConfigType.SHORT:
            return _read_integer(name, kind, trimmed)
        case ConfigType.DOUBLE:
            if not _DOUBLE.fullmatch(trimmed):
                raise InvalidValueError(name, trimmed, "Not a number of type DOUBLE")
            return float(trimmed if trimmed[-1] in "Ny" else trimmed.rstrip("fFdD"))
        case ConfigType.LIST:
            return tuple(re.split(r"\s*,\s*", trimmed)) if trimmed else ()
        case ConfigType.PASSWORD:
            return text
        case _:
            return trimmed


def _read_integer(name: str, kind: ConfigType, text: str) -> int:
    limit = 1 << (_BITS[kind] - 1)
    if not _INTEGER.fullmatch(text) or not -limit <= int(text) < limit:
        raise InvalidValueError(name, text, f"Not a number of type {kind.name}")
    return int(text)


def show(value: Value) -> str | None:
    """The text of ``value`` as DescribeConfigs answers it; None stays None."""
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
    """``Double.toString``: scientific below 0.001 and from ten million on, always with a digit behind the point."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        return repr(number)
    from decimal import Decimal  # noqa: PLC0415 - few ask for such numbers, and every start would pay

    sign, digits, exponent = Decimal(repr(number)).normalize().as_tuple()
    text = "".join(map(str, digits))
    return f"{'-' if sign else ''}{text[0]}.{text[1:] or '0'}E{int(exponent) + len(text) - 1}"
