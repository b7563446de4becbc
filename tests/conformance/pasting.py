"""Renders a random story as Python source, which can be pasted into a module of stories."""

import re
from collections.abc import Iterable

from tests.conformance.moves import CAST
from tests.conformance.random_stories import GLANCE_MS, Heard, Sent, Silent
from tests.conformance.story import Pending

_HEAD = '''@story()
def {name}(s: Story) -> None:
    """{text}"""
'''
_IMPORTS = {
    "Stagehand": "tests.conformance.actors",
    "Admin": "tests.conformance.admin",
    "subscription": "tests.conformance.embedded",
    "Member": "tests.conformance.members",
    "protocols_of": "tests.conformance.members",
    "Story": "tests.conformance.story",
    "story": "tests.conformance.story",
}


def pasted(
    course: Iterable[Sent | Heard | Silent], name: str = "found_by_chance", text: str = "Found by chance."
) -> str:
    """The source of a story that goes as ``course`` went, imports included."""
    lines = _lines(list(course))
    body = "".join(f"    {line}\n" for line in [*_cast(lines), *lines])
    source = _HEAD.format(name=name, text=text) + body
    return f"{_imports(source)}\n\n\n{source}"


def _lines(course: list[Sent | Heard | Silent]) -> list[str]:
    """One line per event; a request that is spoken of later, where that would not be clear, gets a name."""
    named: dict[int, str] = {}
    for event in course:
        if isinstance(event, Silent) or (isinstance(event, Heard) and not event.newest):
            named.setdefault(id(event.pending), f"request_{len(named) + 1}")
    return [_line(event, named) for event in course]


def _line(event: Sent | Heard | Silent, named: dict[int, str]) -> str:
    match event:
        case Sent(move, pending):
            line = move.line(waits=pending is not None)
            return f"{named[id(pending)]} = {line}" if pending is not None and id(pending) in named else line
        case Heard(actor, pending, newest):
            return f"{actor}.is_answered({'' if newest else _name(pending, named)})"
        case Silent(actor, pending):
            return f"{actor}.stays_unanswered({GLANCE_MS}, {_name(pending, named)})"


def _name(pending: Pending, named: dict[int, str]) -> str:
    return named[id(pending)]


def _cast(lines: list[str]) -> list[str]:
    """Who and what the lines speak of, and what those speak of."""
    needed: list[str] = []
    words = _words(lines)
    for name, line in reversed(CAST.items()):
        if name in words:
            needed.insert(0, line)
            words |= _words([line])
    return needed


def _imports(source: str) -> str:
    words = _words([source])
    modules: dict[str, list[str]] = {}
    for name, module in _IMPORTS.items():
        if name in words:
            modules.setdefault(module, []).append(name)
    return "\n".join(f"from {module} import {', '.join(names)}" for module, names in modules.items())


def _words(lines: list[str]) -> set[str]:
    """The names in ``lines``, without what stands in quotes or behind a dot."""
    found: set[str] = set()
    for line in lines:
        bare = re.sub(r'"""[^"]*"""|"[^"]*"', '""', line)
        found |= set(re.findall(r"(?<![\w.])[A-Za-z_]\w*\b(?!\")", bare))
    return found
