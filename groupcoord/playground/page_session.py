"""Serves the JSON requests of the playground's page: one playground at a time, in which the user acts freely or follows a
lesson."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from groupcoord.playground import argument_checks
from groupcoord.playground.lesson import LessonRun, lessons
from groupcoord.playground.playground import ACTIONS, Playground, named_action


class PageSession:
    """Answers requests, one after the other. A request for a lesson or a new playground discards the one before."""

    def __init__(self) -> None:
        self._playground = Playground()
        self._run: LessonRun | None = None
        self._requests: Mapping[str, Callable[..., Any]] = {
            "contents": self._contents,
            "begin": self._begin,
            "act": self._act,
            "lesson": self._lesson,
            "why": self._why,
            "bytes": self._bytes,
        }

    def answer(self, request: str) -> str:
        """The answer to ``{"ask": NAME, …}``: a JSON object, with an ``error`` in words if the request is not possible."""
        asked = json.loads(request)
        try:
            told = self._requests[asked.pop("ask")](**asked)
        except ValueError as problem:
            told = {"error": str(problem)}
        return json.dumps(told, ensure_ascii=False)

    def _contents(self) -> dict[str, Any]:
        """The outlines of all lessons, and all actions with their arguments."""
        return {
            "lessons": [lesson.outline() for lesson in lessons().values()],
            "actions": {name: argument_checks.described(method) for name, method in ACTIONS.items()},
        }

    def _begin(self, setup: Mapping[str, Any], actions: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
        """Start a new playground, and do ``actions`` on it: each is its arguments, with its name as ``do``."""
        self._use(Playground(**setup), None)
        for action in actions:
            self._playground.act(*named_action(action))
        return self._whole()

    def _act(self, action: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Do one action on the present playground."""
        return self._playground.act(action, arguments)

    def _lesson(self, name: str, steps: int) -> dict[str, Any]:
        """Bring a lesson to so many ``steps`` done: by doing the next one if possible, otherwise by replaying all of them."""
        lesson = lessons().get(name)
        if lesson is None:
            raise ValueError(f"there is no lesson {name!r}")
        if not 0 <= steps <= len(lesson.steps):
            raise ValueError(f"lesson {name} has {len(lesson.steps)} steps, and not {steps}")
        run = self._run
        if run is None or run.lesson.name != name or run.done + 1 != steps or run.is_disturbed:
            run = LessonRun(lesson)
            self._use(run.playground, run)
            told: dict[str, Any] = {}
            for _ in range(steps):
                told = run.step()
            return {**told, **self._whole()}
        return run.step()

    def _why(self, question: Mapping[str, Any]) -> dict[str, Any]:
        return {"text": self._playground.why(question)}

    def _bytes(self, seq: int) -> dict[str, Any]:
        return {"dissection": self._playground.dissection(seq)}

    def _use(self, playground: Playground, run: LessonRun | None) -> None:
        self._playground.close()
        self._playground, self._run = playground, run

    def _whole(self) -> dict[str, Any]:
        playground = self._playground
        return {"header": playground.header(), "entries": playground.entries(), "snapshot": playground.snapshot()}
