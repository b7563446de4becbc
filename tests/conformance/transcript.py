"""The file format of transcripts: JSON with one request or response per line, so that diffs are readable."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

Step = dict[str, Any]


def to_text(title: Mapping[str, Any], steps: list[Step]) -> str:
    """The file's text: the story's title first, then its steps."""
    lines = ["{"]
    lines += [f" {_json(key)}: {_json(value)}," for key, value in title.items()]
    lines.append(' "steps": [')
    for number, step in enumerate(steps, 1):
        items = [f"   {_json(key)}: {_json(value)}" for key, value in step.items() if key not in {"actor", "does"}]
        head = f'  {{"step": {number}, "actor": {_json(step["actor"])}, "does": {_json(step["does"])}'
        lines.append(head + ("," if items else ""))
        lines.append(",\n".join(items) + "}" + ("," if number < len(steps) else ""))
    lines += [" ]", "}"]
    return "\n".join(lines) + "\n"


def from_text(text: str) -> list[Step]:
    """The steps in a file's text."""
    steps: list[Step] = json.loads(text)["steps"]
    for step in steps:
        del step["step"]
    return steps


def path_of(folder: Path, story_name: str) -> Path:
    """Where the transcript of a story lies."""
    return folder / f"{story_name}.json"


def as_recorded(steps: list[Step]) -> list[Step]:
    """``steps`` as they come back from a file: tuples are lists, keys are strings."""
    read: list[Step] = json.loads(json.dumps(steps))
    return read


def differences(expected: Any, got: Any, path: str = "") -> Iterator[str]:
    """Each place where two values differ, as ``path: expected …, got …``."""
    if isinstance(expected, dict) and isinstance(got, dict):
        for key in [*expected, *(key for key in got if key not in expected)]:
            where = f"{path}.{key}" if path else str(key)
            if key not in got:
                yield f"{where}: expected {_short(expected[key])}, got no such field"
            elif key not in expected:
                yield f"{where}: expected no such field, got {_short(got[key])}"
            else:
                yield from differences(expected[key], got[key], where)
    elif isinstance(expected, list) and isinstance(got, list):
        for index in range(max(len(expected), len(got))):
            where = f"{path}[{index}]"
            if index >= len(got):
                yield f"{where}: expected {_short(expected[index])}, got nothing"
            elif index >= len(expected):
                yield f"{where}: expected nothing, got {_short(got[index])}"
            else:
                yield from differences(expected[index], got[index], where)
    elif expected != got or type(expected) is not type(got):
        yield f"{path}: expected {_short(expected)}, got {_short(got)}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _short(value: Any) -> str:
    text = _json(value)
    return text if len(text) <= 400 else f"{text[:400]}…"
