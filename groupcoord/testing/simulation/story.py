"""A run told in words: what was done, what members did, and what the coordinator did about it."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from groupcoord.testing.simulation.plan import Plan, duration

_ID = re.compile(
    r"\b((?:instance-)?[a-z][a-z0-9]*(?:-twin)?)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"
)


class Line(NamedTuple):
    """One line: when (ms), who, and what."""

    at_ms: int
    who: str
    what: str


class Story:
    """Collects lines; ``tell`` is what a world wants to be given."""

    def __init__(self) -> None:
        self.lines: list[Line] = []

    def tell(self, at_ms: int, who: str, what: str) -> None:
        """One more."""
        self.lines.append(Line(at_ms, who, what))


def text_of(lines: Sequence[Line]) -> str:
    """The lines as text. Member ids become short, counted in the order in which they were given: ``a#1``, ``a#2``."""
    names: dict[str, str] = {}
    lives: dict[str, int] = {}

    def short(found: "re.Match[str]") -> str:
        whole, name = found.group(0), found.group(1)
        if whole not in names:
            lives[name] = lives.get(name, 0) + 1
            names[whole] = f"{name}#{lives[name]}"
        return names[whole]

    width = max((len(line.who) for line in lines), default=0)
    return "\n".join(f"{line.at_ms / 1_000:10.3f}  {line.who:{width}}  {_ID.sub(short, line.what)}" for line in lines)


def cast_of(plan: Plan) -> str:
    """Who is there, and what is going to be done, as text."""
    brokers = "1 broker" if plan.brokers == 1 else f"{plan.brokers} brokers"
    topics = ", ".join(f"{name} ({count})" for name, count in plan.topics.items())
    lines = [f"{brokers}; topics with their partitions: {topics}; healed at {duration(plan.heal_ms)}"]
    lines += [member.text() for member in plan.members]
    lines += [
        f"{action.at_ms / 1_000:10.3f}  ({number}) {action.text(plan.members)}" for number, action in plan.numbered()
    ]
    return "\n".join(lines)
