"""Large groups, up to a million partitions: the whole answer by its digest."""

from functools import lru_cache
from typing import Any

import pytest

from groupcoord.assignors import ASSIGNORS
from groupcoord.assignors.interface import Assignment
from groupcoord.assignors.server_side import SERVER_ASSIGNORS
from tests.assignors import shapes
from tests.assignors.known import DIGESTS

pytestmark = [pytest.mark.slow, pytest.mark.minutes(2)]

MILLIONS = {
    ("A", "range", "fresh"),
    ("A", "roundrobin", "fresh"),
    ("A", "sticky", "fresh"),
    ("A", "cooperative-sticky", "join"),
    ("S2", "server-uniform", "fresh"),
}
"""Of the groups of a million partitions these are asked here; `python -m bench assignors` asks most."""

QUESTIONS = [
    pytest.param(question, id=f"{question['shape']}-{question['assignor']}-{question['op']}")
    for question in DIGESTS
    if question["shape"] not in {"A", "B", "S1", "S2"}
    or (question["shape"], question["assignor"], question["op"]) in MILLIONS
]


@lru_cache(maxsize=2)
def fresh(shape: str, assignor: str) -> Assignment:
    return ASSIGNORS.create(assignor).assign(shapes.group(shape, assignor, "fresh"))


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_whole_answer(question: dict[str, Any]) -> None:
    shape, assignor, op = question["shape"], question["assignor"], question["op"]
    if assignor.startswith("server-"):
        assign = SERVER_ASSIGNORS[assignor.removeprefix("server-")]
        spec, names = shapes.spec(shape, "fresh")
        target = assign(spec)
        if op != "fresh":
            spec, names = shapes.spec(shape, op, target)
            target = assign(spec)
        assert shapes.digest(shapes.named_target(target, names)) == question["sha256"]
        return
    before = None if op == "fresh" else fresh(shape, assignor)
    given = ASSIGNORS.create(assignor).assign(shapes.group(shape, assignor, op, before))
    assert sum(map(len, given.values())) == question["assigned"]
    assert shapes.digest(given) == question["sha256"]
