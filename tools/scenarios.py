"""Generates docs/scenarios.md, the list of the issue-tracker stories in ``tests/scenarios``, from their docstrings.

The docstring of a story begins with its threads, one in a line, as ``owner/repository#number "title"``; then it describes what
happened; its last paragraph describes the right behaviour and begins with ``Right:``.
"""

import ast
import inspect
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
STORIES = ROOT / "tests" / "scenarios"
ON_BOTH = "cluster"
"""The fixture of stories that also run against a real Kafka."""

_THREAD = re.compile(r'(?P<repository>[\w.-]+/[\w.-]+)#(?P<number>\d+) (?P<quote>["\'])(?P<title>.+)(?P=quote)')


class Thread(NamedTuple):
    """The thread in which somebody reported it."""

    repository: str
    number: int
    title: str

    def link(self) -> str:
        """In Markdown."""
        return f"[{self.repository}#{self.number}](https://github.com/{self.repository}/issues/{self.number})"


@dataclass(frozen=True, slots=True)
class Story:
    """One test."""

    name: str
    file: str
    threads: tuple[Thread, ...]
    right: str
    on_both: bool


@dataclass(frozen=True, slots=True)
class Part:
    """One file of stories."""

    title: str
    stories: tuple[Story, ...]


def of_sources() -> list[Part]:
    """All stories, in order of files. Raises ValueError for one whose docstring is not as it should be."""
    return [part(path.name, path.read_text(encoding="utf-8")) for path in sorted(STORIES.glob("test_*.py"))]


def part(file: str, source: str) -> Part:
    """The stories in ``source``. Raises ValueError."""
    tree = ast.parse(source)
    tests = (node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    stories = tuple(_story(file, test) for test in tests if test.name.startswith("test_"))
    return Part(_flat(ast.get_docstring(tree) or file).rstrip("."), stories)


def _story(file: str, test: ast.FunctionDef | ast.AsyncFunctionDef) -> Story:
    paragraphs = inspect.cleandoc(ast.get_docstring(test) or "").split("\n\n")
    right = _flat(paragraphs[-1])
    if not right.startswith("Right: "):
        raise ValueError(f"{file}: {test.name} ends without `Right: ...`")
    return Story(
        name=test.name.removeprefix("test_").replace("_", " "),
        file=file,
        threads=tuple(_threads(f"{file}: {test.name}", paragraphs[0])),
        right=right.removeprefix("Right: "),
        on_both=any(argument.arg == ON_BOTH for argument in test.args.args),
    )


def _threads(where: str, head: str) -> Iterator[Thread]:
    for line in re.split(r"\n(?=\S+#\d)", head):  # a long title goes on in the next line
        found = _THREAD.fullmatch(_flat(line))
        if found is None:
            raise ValueError(f'{where} does not begin with lines like `owner/repository#1 "title"`: {line}')
        yield Thread(found["repository"], int(found["number"]), found["title"])


def summary(parts: Iterable[Part]) -> str:
    """How many there are."""
    stories = [story for each in parts for story in each.stories]
    threads = {thread for story in stories for thread in story.threads}
    both = sum(story.on_both for story in stories)
    return (
        f"{len(stories)} stories from {len(threads)} threads of {len({each.repository for each in threads})} repositories; "
        f"{both} of them also run against a real Kafka.\n"
    )


def tables(parts: Iterable[Part]) -> str:
    """Every story, under the title of its file."""
    lines = []
    for each in parts:
        lines += [f"### {each.title}", "", "| story | correct behaviour | tracker | real Kafka |", "|---|---|---|---|"]
        lines += [_row(story) for story in each.stories]
        lines.append("")
    return "\n".join(lines)


def _row(story: Story) -> str:
    title = f"[{story.name}](../tests/scenarios/{story.file})"
    threads = "<br>".join(f"{thread.link()} {_cell(thread.title)}" for thread in story.threads)
    return f"| {title} | {_cell(story.right)} | {threads} | {'yes' if story.on_both else ''} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("[", "\\[")


def _flat(text: str) -> str:
    return " ".join(text.split())
