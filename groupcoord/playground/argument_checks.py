"""Describes the parameters of each action, by their type hints, and validates JSON arguments against them."""

import inspect
import types
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

_UNIONS = (Union, types.UnionType)
_EXAMPLES: Mapping[Any, str] = {
    str: 'a text, such as "orders"',
    int: "a whole number, such as 6",
    float: "a number, such as 46 or 0.5",
    bool: "true or false",
    list[str]: 'a list of texts, such as ["orders"]',
    dict[str, int]: 'whole numbers by name, such as {"orders-0": 5}',
    dict[str, Any]: 'an object, such as {"when": "Heartbeat", "do": "drop"}',
}


def described(action: Callable[..., Any]) -> dict[str, Any]:
    """The text of ``action``, and its arguments by name: ``type`` in words, ``choices``, ``default``, ``required``."""
    return {
        "text": " ".join(inspect.cleandoc(action.__doc__ or "").split()),
        "arguments": {
            name: {
                "type": _words(hint),
                "choices": list(_choices(hint)),
                "required": default is inspect.Parameter.empty,
                "default": None if default is inspect.Parameter.empty else default,
            }
            for name, (hint, default) in _signature(action).items()
        },
    }


def check(action: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    """Raise ValueError, which says what would be right, unless ``action`` can be called with ``arguments``."""
    known = _signature(action)
    for name, value in arguments.items():
        if name not in known:
            raise ValueError(f"{name}={value!r}: there is no such argument; there is {', '.join(known) or 'none'}")
        hint, _ = known[name]
        if not _fits(value, hint):
            raise ValueError(f"{name}={value!r}: {_words(hint)}")
    for name, (hint, default) in known.items():
        if default is inspect.Parameter.empty and name not in arguments:
            raise ValueError(f"{name} is missing: {_words(hint)}")


@lru_cache
def _signature(action: Callable[..., Any]) -> dict[str, tuple[Any, Any]]:
    hints = get_type_hints(action)
    parameters = inspect.signature(action).parameters
    return {name: (hints[name], each.default) for name, each in parameters.items() if name != "self"}


def _fits(value: Any, hint: Any) -> bool:
    origin, args = get_origin(hint), get_args(hint)
    if origin in _UNIONS:
        return any(_fits(value, each) for each in args)
    if hint is types.NoneType:
        return value is None
    if origin is Literal:
        return value in args
    if origin is list:
        return isinstance(value, list) and all(_fits(each, args[0]) for each in value)
    if origin is dict:
        return isinstance(value, dict) and (args[1] is Any or all(_fits(each, args[1]) for each in value.values()))
    if hint in (int, float):
        return isinstance(value, int | hint) and not isinstance(value, bool)
    return isinstance(value, hint)


def _choices(hint: Any) -> tuple[Any, ...]:
    if get_origin(hint) is Literal:
        return get_args(hint)
    return next(filter(None, map(_choices, get_args(hint))), ())


def _words(hint: Any) -> str:
    if get_origin(hint) in _UNIONS:
        (needed,) = (each for each in get_args(hint) if each is not types.NoneType)
        return f"{_words(needed)}, or null"
    if choices := _choices(hint):
        one_of = "a list of" if get_origin(hint) is list else "one of"
        return f"{one_of} {', '.join(map(str, choices))}"
    return _EXAMPLES[hint]
