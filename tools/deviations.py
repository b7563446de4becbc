"""Collects the known deviations from Kafka, for docs/deviations.md, from marks in the code and in the tests that show them.

A mark is ``Deviation (its-name): what and why`` in a comment or a docstring. It is written in full once; elsewhere in the code
it is ``Deviation (its-name): see FILE``, and in a test the name alone is enough.
"""

import re
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tools import markdown

ROOT = Path(__file__).resolve().parent.parent
MOST = 5
"""There shall be no more of them."""

_CLIENT = "client"  # not the broker: it differs from another program

_MARK = re.compile(r"Deviation \((?P<name>[a-z]+(-[a-z]+)*)\)(: (?P<text>.*))?")
_LOOSE = re.compile(r"Deviation:|Deviations? \((?![a-z]+(-[a-z]+)*\))")


class Mark(NamedTuple):
    """One place that speaks of a deviation; ``text`` is empty where the name alone stands."""

    path: str
    name: str
    text: str

    @property
    def refers(self) -> bool:
        """Does it only say where to read on?"""
        return self.text.startswith("see ")


@dataclass
class Deviation:
    """One row of the table."""

    name: str
    texts: list[str] = field(default_factory=list)
    code: set[str] = field(default_factory=set)
    tests: set[str] = field(default_factory=set)


def of_sources() -> list[Deviation]:
    """The deviations of the broker in this repository. Raises ValueError if they are not in order."""
    return collected(marks(ROOT / "groupcoord", but_not=_CLIENT), marks(ROOT / "tests", but_not=_CLIENT))


def collected(code: Iterable[Mark], tests: Iterable[Mark]) -> list[Deviation]:
    """One entry for each name, in order of names.

    Raises ValueError for one that is not explained exactly once in the code or is shown by no test, and if they are too many.
    """
    found: dict[str, Deviation] = {}
    for mark in code:
        entry = found.setdefault(mark.name, Deviation(mark.name))
        entry.code.add(mark.path)
        if mark.text and not mark.refers:
            entry.texts.append(mark.text)
    for mark in tests:
        if mark.name not in found:
            raise ValueError(f"{mark.path} shows the deviation {mark.name}, which is none")
        found[mark.name].tests.add(mark.path)
    for entry in found.values():
        if len(entry.texts) != 1:
            raise ValueError(
                f"the deviation {entry.name} is explained {len(entry.texts)} times: {', '.join(sorted(entry.code))}"
            )
        if not entry.tests:
            raise ValueError(f"no test shows the deviation {entry.name}")
    if len(found) > MOST:
        raise ValueError(f"{len(found)} deviations, and {MOST} are the most: {', '.join(sorted(found))}")
    return [found[name] for name in sorted(found)]


def table(entries: Iterable[Deviation]) -> str:
    """The entries as a table in Markdown."""
    rows = [f"| {one.name} | {_cell(one.texts[0])} | {_paths(one.code)} | {_paths(one.tests)} |" for one in entries]
    return markdown.table("| deviation | what differs, and why | code | tests |", rows)


def marks(folder: Path, but_not: str = "") -> Iterator[Mark]:
    """Every mark in the Python files below ``folder``. Raises ValueError for one without a name.

    A folder directly below it that is called ``but_not`` is left out.
    """
    for path in sorted(folder.rglob("*.py")):
        if path.is_relative_to(folder / but_not) and but_not:
            continue
        if "Deviation" not in path.read_text(encoding="utf-8"):
            continue  # nearly all; looking closer takes a hundred times as long
        name = path.relative_to(folder.parent).as_posix()
        for paragraph in _paragraphs(path):
            text = " ".join(paragraph.split())
            if _LOOSE.search(text):
                raise ValueError(f"{name} has a deviation without a name: {text}")
            found = _MARK.search(text)
            if found:
                yield Mark(name, found["name"], (found["text"] or "").strip())


def _cell(text: str) -> str:
    return text[0].upper() + text[1:].replace("|", "\\|").replace("``", "`")


def _paths(paths: Iterable[str]) -> str:
    return "<br>".join(f"`{path}`" for path in sorted(paths))


def _paragraphs(path: Path) -> Iterator[str]:
    """Blocks of comment lines, and paragraphs of docstrings."""
    comment, last_line = "", -2
    with path.open("rb") as source:
        for token in tokenize.tokenize(source.readline):
            if token.type == tokenize.STRING and token.string.lstrip("rR").startswith('"""'):
                yield from re.split(r"\n\s*\n", token.string.strip("\"'"))
            elif token.type == tokenize.COMMENT:
                if token.start[0] != last_line + 1 or "Deviation" in token.string:
                    yield comment
                    comment = ""
                comment += token.string.lstrip("#") + "\n"
                last_line = token.start[0]
    yield comment
