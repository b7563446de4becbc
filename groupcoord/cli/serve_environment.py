"""Environment variables for the options of ``groupcoord serve`` and for broker configs, as in containers.

``GROUPCOORD_DATA_DIR`` is the option ``--data-dir``. An option that may be repeated has one variable, in the plural, with its
values separated by commas: ``GROUPCOORD_TOPICS``. Other variables set Kafka properties; ``config.environment_variable_names``
maps their names.
"""

import argparse
from collections.abc import Mapping
from typing import Any, NamedTuple

from groupcoord.config.broker_config import ConfiguredProperty
from groupcoord.config.config_def import ConfigError
from groupcoord.config.environment_variable_names import PREFIX, property_variable
from groupcoord.config.property_definitions import BROKER
from groupcoord.did_you_mean import did_you_mean


class ServeVariables(NamedTuple):
    """The settings in the variables; ``problem`` is the error of the first invalid one."""

    options: Mapping[str, Any] = {}  # by the attribute of argparse's namespace
    properties: tuple[ConfiguredProperty, ...] = ()
    problem: ConfigError | None = None


def read_variables(actions: list[argparse.Action], environ: Mapping[str, str]) -> ServeVariables:
    """The settings in ``environ`` for the options ``actions`` and for broker configs. An option's empty variable is ignored."""
    given = {name: text for name, text in sorted(environ.items()) if name.startswith(PREFIX)}
    if not given:
        return ServeVariables()
    by_variable = option_variables(actions)
    property_names = {property_variable(name): name for name in BROKER}
    options: dict[str, Any] = {}
    properties = []
    try:
        for variable, text in given.items():
            if variable in property_names:
                properties.append(ConfiguredProperty(variable, property_names[variable], text))
            elif variable not in by_variable:
                raise ConfigError("", variable, None, _unknown(variable, [*by_variable, *property_names]))
            elif text:
                action = by_variable[variable]
                options[action.dest] = _value(action, variable, text)
    except ConfigError as problem:
        return ServeVariables(problem=problem)
    return ServeVariables(options, tuple(properties))


def option_variables(actions: list[argparse.Action]) -> dict[str, argparse.Action]:
    """Variable → the first option that sets the same."""
    return {PREFIX + action.dest.upper(): action for action in reversed(actions) if _has_variable(action)}


def _has_variable(action: argparse.Action) -> bool:
    """Does the option have a variable? Not --help, not -c, and not switches that set --log-level."""
    is_switch = action.nargs == 0
    return any(option.startswith("--") for option in action.option_strings) and (not is_switch or action.const is True)


def _unknown(variable: str, there_are: list[str]) -> str:
    names = [each.removeprefix(PREFIX) for each in there_are]
    otherwise = "groupcoord serve --help says which there are"
    hint = did_you_mean(variable.removeprefix(PREFIX), names, otherwise=otherwise, shown=PREFIX.__add__)
    return f"no option and no property has this variable; {hint}"


def _value(action: argparse.Action, variable: str, text: str) -> Any:
    """``text`` converted as argparse would convert it. Raises ConfigError."""
    if action.nargs == 0:
        return _one(variable, text, {"true": True, "false": False})
    if isinstance(action.default, list):
        return [_typed(action, variable, item.strip()) for item in text.split(",")]
    return _typed(action, variable, text)


def _typed(action: argparse.Action, variable: str, text: str) -> Any:
    if action.choices is not None:
        return _one(variable, text, {choice: choice for choice in action.choices})
    convert: Any = action.type or str
    try:
        return convert(text)
    except argparse.ArgumentTypeError as problem:
        raise ConfigError("", variable, None, str(problem)) from None


def _one(variable: str, text: str, meanings: Mapping[str, Any]) -> Any:
    if text not in meanings:
        raise ConfigError("", variable, text, f"expected one of {', '.join(meanings)}")
    return meanings[text]
