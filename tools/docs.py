"""Writes the parts of the documentation that say what the code says: ``python -m tools.docs`` (``--check`` only compares).

A part stands between ``<!-- generated: NAME -->`` and ``<!-- end -->`` in a Markdown file.
"""

import re
import sys
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path

from groupcoord.config.stand_in import DEFAULTS, DEV_DEFAULTS
from groupcoord.protocol.apis import APIS
from tools.story import tell

ROOT = Path(__file__).resolve().parent.parent
FILES = ("README.md", "docs/apis.md", "docs/deviations.md", "docs/configuration.md")
_PART = re.compile(r"(?<=<!-- generated: )(?P<name>[a-z-]+)( -->\n)(.*?)(?=<!-- end -->)", re.DOTALL)


def apis() -> str:
    """Which APIs are served, at which versions."""
    rows = [
        f"| {api.name} | {api.key:d} | {api.min_version}–{api.max_version} |"
        for api in sorted(APIS.values(), key=lambda api: api.key)
    ]
    return "\n".join(["| API | key | versions |", "|---|---|---|", *rows]) + "\n"


def deviations() -> str:
    """Every comment in the code that starts with ``Deviation:``."""
    rows = [f"| {text} | `{path}` |" for path, text in _deviations()]
    return "\n".join(["| where it differs from Kafka, and why | code |", "|---|---|", *rows]) + "\n"


def stand_in_defaults() -> str:
    """Where a stand-in has other defaults than Kafka."""
    rows = [f"| `{row.name}` | `{row.value}` | always | {row.reason} |" for row in DEFAULTS]
    rows += [f"| `{row.name}` | `{row.value}` | with `--dev` | {row.reason} |" for row in DEV_DEFAULTS]
    return "\n".join(["| property | default here | when | why |", "|---|---|---|---|", *rows]) + "\n"


def log_example() -> str:
    """What the log says of a small story, run through the coordinator."""
    return "```text\n" + "\n".join(tell()) + "\n```\n"


PARTS: dict[str, Callable[[], str]] = {
    "apis": apis,
    "deviations": deviations,
    "log-example": log_example,
    "stand-in-defaults": stand_in_defaults,
}


def _deviations() -> Iterator[tuple[str, str]]:
    """(file, text) of every comment or docstring paragraph that says ``Deviation:``."""
    for path in sorted((ROOT / "groupcoord").rglob("*.py")):
        for paragraph in _paragraphs(path):
            _, found, text = " ".join(paragraph.split()).partition("Deviation:")
            if found:
                text = text.strip()
                yield str(path.relative_to(ROOT)), text[0].upper() + text[1:].replace("|", "\\|").replace("``", "`")


def _paragraphs(path: Path) -> Iterator[str]:
    """Blocks of comment lines, and paragraphs of strings."""
    comment, last_line = "", -2
    with path.open("rb") as source:
        for token in tokenize.tokenize(source.readline):
            if token.type == tokenize.STRING:
                yield from re.split(r"\n\s*\n", token.string.strip("\"'"))
            elif token.type == tokenize.COMMENT:
                if token.start[0] != last_line + 1 or "Deviation:" in token.string:
                    yield comment
                    comment = ""
                comment += token.string.lstrip("#") + "\n"
                last_line = token.start[0]
    yield comment


def fresh(text: str) -> str:
    """``text`` with every generated part written anew."""
    return _PART.sub(lambda part: f"{part['name']}{part[2]}{PARTS[part['name']]()}", text)


def main(arguments: list[str]) -> int:
    """Write, or with ``--check`` compare; returns the exit code."""
    stale = []
    for name in FILES:
        path = ROOT / name
        before = path.read_text(encoding="utf-8")
        after = fresh(before)
        if before != after:
            stale.append(name)
            if "--check" not in arguments:
                path.write_text(after, encoding="utf-8")
    if stale and "--check" in arguments:
        sys.stderr.write(f"out of date: {', '.join(stale)}; run `make docs`\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
