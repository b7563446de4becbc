"""Consoles and events for tests of the demo."""

import io
from collections.abc import Mapping

from rich.console import RenderableType

from groupcoord.cli.demo.output import DemoOutput, console
from groupcoord.core.events import Cause, Requested, TimerFired

GROUP, TOPIC = "billing", "orders"


class Screen:
    """A stage that writes into memory, as into a pipe."""

    def __init__(self) -> None:
        self._stream = io.StringIO()
        self.output = DemoOutput(console(self._stream), start_ms=0)

    @property
    def text(self) -> str:
        return self._stream.getvalue()


def shown(what: RenderableType) -> list[str]:
    """The lines of ``what`` on a stage, without the air around it."""
    screen = Screen()
    screen.output.show(what, indent=0)
    return screen.text.strip("\n").split("\n")


def asked(api: str, client: str) -> Cause:
    return Requested(api, 5, client, "/127.0.0.1", 1, 1)


def fired(kind: str, member: str, due_ms: int) -> Cause:
    return TimerFired(kind, GROUP, member, due_ms)


def owned(owners: Mapping[str, str]) -> dict[str, tuple[tuple[str, int], ...]]:
    """Member → "0 3" as the coordinator says it."""
    return {member: tuple((TOPIC, int(number)) for number in numbers.split()) for member, numbers in owners.items()}
