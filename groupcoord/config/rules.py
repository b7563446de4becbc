"""What values a property may have: Kafka's validators, written in the tables as short words.

``-`` anything · ``1..`` and ``0..0.5`` a range · ``a|b`` one of these · ``nocase:a|b`` the same in any case · ``nonempty``
and ``nonnull`` for strings · ``list`` or ``list:a|b`` a list, never with an empty element, with ``+`` behind it when it must
have an element and ``?`` when it may be null · ``replicas`` a list of throttled replicas · ``1..9or-1`` a level of gzip.
Source: the nested validators of ``ConfigDef``.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from groupcoord.config.values import InvalidValueError, Value

Check = Callable[[str, Value], Value]
_REPLICAS = re.compile(r"\*|(\d+:\d+)?", re.ASCII)


class Rule(NamedTuple):
    """``check(name, value)`` returns the value to keep or raises InvalidValueError; ``expects`` says it to people."""

    check: Check
    expects: str


def rule(word: str) -> Rule:
    """The rule that ``word`` of the tables stands for."""
    if word == "-":
        return Rule(_anything, "")
    if word in _NAMED:
        return _NAMED[word]
    if word.startswith("list"):
        return _list_rule(word)
    if ".." in word:
        return _range_rule(word)
    return _choice_rule(word)


def _anything(_name: str, value: Value) -> Value:
    return value


def _range_rule(word: str) -> Rule:
    lowest, highest = ((float(end) if "." in end else int(end)) if end else None for end in word.split(".."))

    def check(name: str, value: Value) -> Value:
        if not isinstance(value, int | float):
            raise InvalidValueError(name, "null", "Value must be non-null")
        if lowest is not None and value < lowest:
            raise InvalidValueError(name, value, f"Value must be at least {lowest}")
        if highest is not None and value > highest:
            raise InvalidValueError(name, value, f"Value must be no more than {highest}")
        return value

    return Rule(check, f"at least {lowest}" if highest is None else f"from {lowest} to {highest}")


def _choice_rule(word: str) -> Rule:
    any_case = word.startswith("nocase:")
    choices = word.removeprefix("nocase:").split("|")
    allowed = {choice.upper() if any_case else choice for choice in choices}
    how = "String must be one of (case insensitive): " if any_case else "String must be one of: "

    def check(name: str, value: Value) -> Value:
        if not isinstance(value, str) or (value.upper() if any_case else value) not in allowed:
            raise InvalidValueError(name, "null" if value is None else value, how + ", ".join(choices))
        return value

    return Rule(check, "one of " + ", ".join(choices))


def _list_rule(word: str) -> Rule:
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

    return Rule(check, "a list of " + ", ".join(choices) if choices else "a list without empty elements")


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
    "nonempty": Rule(_check_nonempty, "a text that is not empty"),
    "nonnull": Rule(_check_nonnull, "a text"),
    "1..9or-1": Rule(_check_gzip_level, "from 1 to 9, or -1"),
    "replicas": Rule(_check_replicas, "* or a list of partition:broker"),
}
