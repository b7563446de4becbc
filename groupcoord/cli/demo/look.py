"""How the demo looks: one colour for each consumer, columns, and plain text wherever colour is not wanted."""

import os
import sys
from typing import IO

from rich.console import Console

WIDTH = 100
"""Columns, where the terminal has them or nobody knows."""

STYLES = {
    "kafka-python": "cyan",
    "confluent": "magenta",
    "aiokafka": "green",
    "coordinator": "bold",
    "producer": "yellow",
    "demo": "yellow",
    "groupcoord": "bold",
}


def style_of(actor: str) -> str:
    """The colour of somebody's name."""
    return STYLES.get(actor, "default")


class DemoConsole(Console):
    """Lets the command line see that nobody reads any more."""

    def on_broken_pipe(self) -> None:
        """Called in the handler of that error, which rich would turn into an exit code of its own."""
        raise  # noqa: PLE0704


def console(stream: IO[str] | None = None) -> Console:
    """A console on ``stream`` (stdout): without any control codes if it is no terminal or ``NO_COLOR`` is set."""
    stream = stream or sys.stdout
    on_terminal = stream.isatty()
    plain = not on_terminal or bool(os.environ.get("NO_COLOR"))
    made = DemoConsole(
        file=stream,
        color_system=None if plain else "auto",
        force_terminal=on_terminal,
        highlight=False,
        emoji=False,
        markup=False,
        soft_wrap=False,
        legacy_windows=False,
    )
    made.width = min(made.width, WIDTH) if on_terminal else WIDTH
    return made
