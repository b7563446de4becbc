"""The known answers; see ORIGIN.md."""

import json
from pathlib import Path
from typing import Any

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
