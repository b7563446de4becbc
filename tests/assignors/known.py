"""Loads the known assignments of Kafka's assignors, against which ours are tested; see ORIGIN.md."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from groupcoord.assignors.interface import Assignment

FOLDER = Path(__file__).parent
VECTORS: list[dict[str, Any]] = json.loads((FOLDER / "assignor-vectors.json").read_text())
JAVA_ANSWERS: list[dict[str, Any]] = json.loads((FOLDER / "java_answers.json").read_text())
DIGESTS: list[dict[str, Any]] = json.loads((FOLDER / "assignor-large-digests.json").read_text())["digests"]


def named(case: dict[str, Any]) -> str:
    name: str = case["id"]
    return name


def expected(case: dict[str, Any]) -> Assignment:
    return {
        member_id: [(topic, partition) for topic, partition in given] for member_id, given in case["expected"].items()
    }


def check_each(cases: Iterable[dict[str, Any]], check: Callable[[dict[str, Any]], None]) -> None:
    """Check every case, also after one has failed. What fails is raised in one group, each with the name of its case."""
    failures: list[BaseException] = []
    for case in cases:
        try:
            check(case)
        except (Exception, pytest.fail.Exception) as failure:
            failure.add_note(f"case {named(case)}")
            failures.append(failure)
    if failures:
        raise BaseExceptionGroup(f"{len(failures)} cases", failures)
