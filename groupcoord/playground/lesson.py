"""The lessons of the playground: step-by-step stories with actions on a playground, and expectations about their results.

They are TOML files in ``lessons/``, whose format docs/playground.md describes. A test plays each lesson to its end. A player
can go forwards and backwards: a step back replays all earlier steps.
"""

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from groupcoord.playground.playground import Playground, named_action

_STEP_FIELDS = {"title", "text", "actions", "expect", "why"}
_FIELDS = {"title", "summary", "chapter", "setup", "steps"}
_MISSING = object()


class LessonError(ValueError):
    """A lesson file is invalid; the text says which field of which step is wrong, and what would be right."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """An expected result of a step: a trace entry whose text contains ``trace`` (or none that contains ``untraced``), a
    ``value`` at ``place`` in the snapshot, or an ``answer`` of the last action that contains this text."""

    trace: str | None = None
    untraced: str | None = None
    place: str | None = None
    value: Any = None
    answer: str | None = None

    def text(self) -> str:
        """The expectation in words."""
        if self.trace is not None:
            return f"the trace says: {self.trace}"
        if self.untraced is not None:
            return f"the trace does not say: {self.untraced}"
        if self.answer is not None:
            return f"the answer is {self.answer}"
        value = self.value if isinstance(self.value, str) else json.dumps(self.value)
        return f"{self.place} is {value}"

    def holds(self, outcome: Mapping[str, Any]) -> bool:
        """Is it true of the ``outcome`` of a step?"""
        if self.trace is not None:
            return any(self.trace in line for line in outcome["lines"])
        if self.untraced is not None:
            return not any(self.untraced in line for line in outcome["lines"])
        if self.answer is not None:
            return self.answer in json.dumps(outcome["answer"])
        return bool(_at(outcome["snapshot"], self.place or "") == self.value)


@dataclass(frozen=True, slots=True)
class Step:
    """One step: its title and text for the reader, its actions, its expected results, and a question for ``why``."""

    title: str
    text: str
    actions: Sequence[Mapping[str, Any]]
    expect: Sequence[Expectation]
    why: Mapping[str, Any] | None
    """The arguments of ``Playground.why``; ``says`` is a text that its answer must contain."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """A lesson; ``setup`` are the arguments of ``Playground``, ``chapter`` is the page of the docs about its topic."""

    name: str
    title: str
    summary: str
    chapter: str
    setup: Mapping[str, Any]
    steps: Sequence[Step]

    def outline(self) -> dict[str, Any]:
        """The titles and texts of the lesson and its steps, as JSON."""
        steps = [{"title": step.title, "text": step.text, "actions": list(step.actions)} for step in self.steps]
        return {
            "name": self.name,
            "title": self.title,
            "summary": self.summary,
            "chapter": self.chapter,
            "steps": steps,
        }


class LessonRun:
    """A lesson that is being played, on a playground of its own; ``done`` is the number of steps done."""

    def __init__(self, lesson: Lesson) -> None:
        self.lesson = lesson
        self.playground = Playground(**lesson.setup)
        self.done = 0
        self.first_seq = 1
        """The number of the first trace entry of the last step."""
        self._last_seq = 0

    @property
    def is_disturbed(self) -> bool:
        """Was another action done on the playground after the last step?"""
        return self.playground.last_seq != self._last_seq

    def step(self) -> dict[str, Any]:
        """Do the next step; returns the new ``entries`` of the trace, the ``snapshot``, the ``answer`` of the last action, the
        ``expectations`` with whether they hold, and ``why``.

        Raises IndexError after the last step.
        """
        step, answer = self.lesson.steps[self.done], None
        before = self.playground.last_seq
        self.first_seq = before + 1
        for action in step.actions:
            answer = self.playground.act(*named_action(action))["answer"]
        self.done += 1
        self._last_seq = self.playground.last_seq
        found = {
            "answer": answer,
            "entries": self.playground.entries(after=before),
            "lines": self.playground.lines(after=before),
            "snapshot": self.playground.snapshot(),
        }
        expectations = [{"text": each.text(), "holds": each.holds(found)} for each in step.expect]
        why = "" if step.why is None else self._answer(step.why, expectations)
        del found["lines"]
        return {**found, "expectations": expectations, "why": why}

    def _answer(self, why: Mapping[str, Any], expectations: list[dict[str, Any]]) -> str:
        text = self.playground.why({name: value for name, value in why.items() if name != "says"})
        expectations.append({"text": f"why() says: {why['says']}", "holds": why["says"] in text})
        return text


@cache
def lessons() -> dict[str, Lesson]:
    """All lessons by name, in the order of their files. Raises LessonError."""
    files = sorted(resources.files(__package__).joinpath("lessons").iterdir(), key=lambda each: each.name)
    found = [parse(each.name.removesuffix(".toml").partition("-")[2], each.read_text("utf-8")) for each in files]
    return {lesson.name: lesson for lesson in found}


def parse(name: str, text: str) -> Lesson:
    """The lesson in the TOML ``text``. Raises LessonError."""
    try:
        said = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise LessonError(f"lesson {name}: this is not TOML: {problem}") from None
    _require(f"lesson {name}", said, _FIELDS, optional={"setup"})
    steps = [_step(f"lesson {name}, step {number}", each) for number, each in enumerate(said["steps"], 1)]
    return Lesson(name, said["title"], said["summary"].strip(), said["chapter"], said.get("setup", {}), steps)


def _step(where: str, said: Mapping[str, Any]) -> Step:
    _require(where, said, _STEP_FIELDS, optional={"actions", "expect", "why"})
    expect = [_expectation(where, each) for each in said.get("expect", ())]
    why = said.get("why")
    if why is not None and "says" not in why:
        raise LessonError(f"{where}: why needs says: a text that must be in the answer")
    return Step(said["title"], said["text"].strip(), said.get("actions", ()), expect, why)


def _expectation(where: str, said: Mapping[str, Any]) -> Expectation:
    match dict(said):
        case {"trace": str(), **rest} | {"untraced": str(), **rest} | {"answer": str(), **rest} if not rest:
            return Expectation(**said)
        case {"at": str(place), "is": value, **rest} if not rest:
            return Expectation(place=place, value=value)
        case _:
            raise LessonError(f"{where}: {dict(said)} is not an expectation: trace, untraced, answer, or at with is")


def _require(where: str, said: Mapping[str, Any], known: set[str], optional: set[str]) -> None:
    for name in said:
        if name not in known:
            raise LessonError(f"{where}: there is no field {name}; there is {', '.join(sorted(known))}")
    for name in sorted(known - optional - said.keys()):
        raise LessonError(f"{where}: {name} is missing")


def _at(value: Any, place: str) -> Any:
    """The value at ``place``, such as ``groups.app.state``; a value that equals nothing if there is none."""
    for name in place.split("."):
        if isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        elif isinstance(value, dict) and name in value:
            value = value[name]
        elif name == "count" and isinstance(value, list | dict):
            value = len(value)
        else:
            return _MISSING
    return value
