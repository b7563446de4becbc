"""Where the story is told: chapters, lines of somebody doing something at some time, explanations, tables."""

import re
from collections.abc import Iterable, Sequence

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.segment import Segment, SegmentLines
from rich.table import Table
from rich.text import Text

from groupcoord.cli.demo.look import STYLES, style_of
from groupcoord.cli.demo.words import Glossary

_TIME_WIDTH, _ACTOR_WIDTH = 7, 14
_INDENT = _TIME_WIDTH + _ACTOR_WIDTH
_NAMES = re.compile("|".join(rf"(?<![\w-]){re.escape(name)}(?![\w-])" for name in STYLES))


class Stage:
    """Writes to ``console``. Times are milliseconds on the clock of the events, and shown as seconds since ``start_ms``."""

    def __init__(self, console: Console, start_ms: int) -> None:
        self.console = console
        self.start_ms = start_ms
        self._glossary = Glossary()
        self._chapters = 0
        self._last_is_blank = False

    def title(self, text: str, *below: str) -> None:
        """What this is."""
        self._print("", Text(text, style="bold"), *below)

    def chapter(self, title: str, *paragraphs: str) -> None:
        """A new part of the story, and what to look out for in it."""
        self._chapters += 1
        head = f"━━ {self._chapters}  {title} "
        rule = Text(head + "━" * max(self.console.width - len(head), 0), style="bold bright_blue")
        self._print("", rule, *(Text(paragraph, style="italic") for paragraph in paragraphs), "")

    def line(self, at_ms: int, actor: str, text: str, *words: str) -> None:
        """``actor`` does something. ``words`` in it are explained below, those that were not before."""
        seconds = Text(f"{(at_ms - self.start_ms) / 1000:5.2f}".ljust(_TIME_WIDTH), style="dim")
        who = Text(actor.ljust(_ACTOR_WIDTH), style=style_of(actor))
        self._hanging(Text.assemble(seconds, who), Text(" " * _INDENT), _coloured(text))
        self.explain(*words)

    def under(self, *whats: str | RenderableType) -> None:
        """More of the line before: texts or small tables below its text."""
        for what in whats:
            self._print(Padding(_coloured(what) if isinstance(what, str) else what, (0, 0, 0, _INDENT)))

    def explain(self, *words: str) -> None:
        """Explain ``words`` that were not before, below the line before."""
        for word, meaning in self._glossary.explain(*words):
            bar = Text.assemble(" " * _INDENT, ("│ ", "bright_blue"))
            self._hanging(bar, bar, Text.assemble((word, "bold italic"), (f": {meaning}", "dim italic")))

    def show(self, what: RenderableType, indent: int = 2) -> None:
        """A table or the like, with air around it."""
        self._print(Padding(what, (1, 0, 1, indent)))

    def say(self, *paragraphs: str, style: str = "") -> None:
        """Plain text."""
        for paragraph in paragraphs:
            text = _coloured(paragraph)
            text.stylize_before(style)
            self._print(text)

    def _hanging(self, first: Text, others: Text, body: Text) -> None:
        """``body`` beside ``first``, and where it needs more lines, those beside ``others``."""
        for index, line in enumerate(body.wrap(self.console, max(self.console.width - len(first), 20))):
            self._print(Text.assemble(others if index else first, line))

    def _print(self, *whats: str | RenderableType) -> None:
        """Print without spaces at the ends of lines, which tables are full of, and without two empty lines in a row."""
        for what in whats:
            renderable = _coloured(what) if isinstance(what, str) else what
            for line in map(_trimmed, self.console.render_lines(renderable, pad=False)):
                if line or not self._last_is_blank:
                    self.console.print(SegmentLines([line], new_lines=True), end="")
                self._last_is_blank = not line


def rows(cells: Iterable[Sequence[str]]) -> Table:
    """A small table without a frame, with names in their colours."""
    table = Table.grid(padding=(0, 2))
    for row in cells:
        table.add_row(*map(_coloured, row))
    return table


def _coloured(text: str) -> Text:
    coloured = Text(text)
    for found in _NAMES.finditer(text):
        coloured.stylize(style_of(found[0]), *found.span())
    return coloured


def _trimmed(line: list[Segment]) -> list[Segment]:
    while line and not line[-1].text.strip():
        line.pop()
    if line:
        last = line[-1]
        line[-1] = Segment(last.text.rstrip(), last.style, last.control)
    return line
