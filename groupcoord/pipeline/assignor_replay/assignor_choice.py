"""Parses ``--replay-with``, the assignors to replay with: ``sticky,range,weighted:capacity=2``."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from groupcoord.assignors import ASSIGNORS, Assignor, FunctionAssignor, Registry, UnknownAssignorError
from groupcoord.pipeline.errors import PipelineError

RECORDED_HISTORY = "as it was"
"""The name in the tables for the real history, which has rows beside those of assignors."""
_TRUE, _FALSE = ("true", "yes", "1"), ("false", "no", "0")


class AssignorChoice(NamedTuple):
    """An assignor to replay with. ``make`` creates the assignor of one member; it is pickled and sent to Spark's tasks."""

    spec: str
    name: str
    make: Callable[[], Assignor]


def choices(spec: str, registry: Registry = ASSIGNORS) -> tuple[AssignorChoice, ...]:
    """Parse ``spec``: names separated by commas, each optionally followed by ``:PARAMETER=VALUE``, also several. Each
    assignor is returned once.

    Raises PipelineError for an unknown name or parameter; it lists the known ones.
    """
    return tuple([_choice(part, registry) for part in dict.fromkeys(part.strip() for part in spec.split(","))])


def _choice(spec: str, registry: Registry) -> AssignorChoice:
    name, *settings = spec.split(":")
    try:
        assignor = registry.create(name)
    except UnknownAssignorError as problem:
        raise PipelineError(str(problem)) from None
    except Exception as problem:  # an installed package may raise anything when it is imported
        raise PipelineError(f"assignor {name!r} cannot be had: {type(problem).__name__}: {problem}") from problem
    if isinstance(assignor, FunctionAssignor):
        if settings:
            raise PipelineError(f"assignor {name!r} is a function and has no parameters, not even {settings[0]!r}")
        return AssignorChoice(spec, name, partial(_same, assignor))
    kind: type[Assignor] = type(assignor)
    make = partial(kind, **dict(_setting(kind, name, setting) for setting in settings))
    try:
        make()
    except ValueError as problem:
        raise PipelineError(f"{spec!r}: {problem}") from None
    return AssignorChoice(spec, name, make)


def _same(assignor: Assignor) -> Assignor:
    """Return ``assignor``, a function without state, for every member."""
    return assignor


def _setting(kind: type[Assignor], name: str, setting: str) -> tuple[str, Any]:
    """Parse ``PARAMETER=VALUE``; the value has the type of the parameter's default."""
    parameter, _, value = setting.partition("=")
    known = {
        found.name: found.default
        for found in inspect.signature(kind).parameters.values()
        if found.kind in (found.POSITIONAL_OR_KEYWORD, found.KEYWORD_ONLY)
    }
    if parameter not in known:
        there_are = f"it has {', '.join(known)}" if known else "it has none"
        raise PipelineError(f"assignor {name!r} has no parameter {parameter!r}; {there_are}")
    default = known[parameter]
    if isinstance(default, bool):
        if value.lower() not in _TRUE + _FALSE:
            raise PipelineError(f"{parameter} of assignor {name!r} is true or false, and not {value!r}")
        return parameter, value.lower() in _TRUE
    if isinstance(default, int | float):
        try:
            return parameter, type(default)(value)
        except ValueError:
            raise PipelineError(f"{parameter} of assignor {name!r} is a number, and not {value!r}") from None
    return parameter, value
