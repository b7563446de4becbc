"""The demo's output: chapters, lines, explanations of terms and tables, in colour where the terminal has colours."""

import os
import re
import sys
from collections.abc import Iterable, Sequence
from typing import IO

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.segment import Segment, SegmentLines
from rich.table import Table
from rich.text import Text

WIDTH = 100
"""Columns, if the terminal has as many or its width is not known."""

STYLES = {
    "kafka-python": "cyan",
    "confluent": "magenta",
    "aiokafka": "green",
    "coordinator": "bold",
    "producer": "yellow",
    "demo": "yellow",
    "groupcoord": "bold",
}


def style_of(actor: str) -> str:
    """The colour of an actor's name."""
    return STYLES.get(actor, "default")


class DemoConsole(Console):
    """Lets the command line handle a broken pipe."""

    def on_broken_pipe(self) -> None:
        """Called in the handler of that error, which rich would turn into an exit code of its own."""
        raise  # noqa: PLE0704


def console(stream: IO[str] | None = None) -> Console:
    """A console on ``stream`` (stdout): without any control codes if it is no terminal or ``NO_COLOR`` is set."""
    stream = stream or sys.stdout
    on_terminal = stream.isatty()
    plain = not on_terminal or bool(os.environ.get("NO_COLOR"))
    made = DemoConsole(
        file=stream,
        color_system=None if plain else "auto",
        force_terminal=on_terminal,
        highlight=False,
        emoji=False,
        markup=False,
        soft_wrap=False,
        legacy_windows=False,
    )
    made.width = min(made.width, WIDTH) if on_terminal else WIDTH
    return made


GLOSSARY = {
    "partition": "a part of a topic. Records with the same key go to the same one, and keep their order there; "
    "the place of a record in its partition is its offset.",
    "group": "consumers that share the work of a topic. Each partition is read by exactly one of them.",
    "JoinGroup": "the request to be a member of a group.",
    "coordinator": "the broker that keeps the group together: here groupcoord.",
    "member id": "what the coordinator knows members by. This is the whole id; from here on, names will do.",
    "protocol": "a way to share out partitions, also called an assignor. A group must agree on one.",
    "rebalance": "all members join again and the partitions are shared out anew. Until that is done the group is "
    "PreparingRebalance (who is there?), then CompletingRebalance (who gets what?).",
    "generation": "what comes of a rebalance. Requests of an older one are refused: whoever missed a rebalance can do no harm.",
    "vote": "each member votes for the first protocol on its list that all members know.",
    "leader": "the member that shares out the partitions. The coordinator just passes its decision on.",
    "SyncGroup": "the request that brings the leader's assignment. The others send it too, and are answered with their part.",
    "Stable": "everybody knows what to read, and reads.",
    "→": "in the table below, this marks a partition that has another owner than before.",
    "commit": "to store how far one has come: the offset of the next record to read. Whoever owns the partition later "
    "goes on there.",
    "heartbeat": "the request that says “I am alive”. The answer is how members learn of a rebalance.",
    "LeaveGroup": "the request of a client that is closed; nobody has to wait for its session to run out.",
    "session": "so long a member may be silent before it counts as dead. Each member chooses its own.",
    "at least once": "what was read but not committed is read again by the next owner. So no record is lost, and some come "
    "twice.",
    "__consumer_offsets": "the topic in which the coordinator stores every generation and every commit, to have them again "
    "after a restart. Clients can read it too.",
    "compaction": "throwing away each record that has a later one with the same key. The others keep their offsets.",
}


class Glossary:
    """Explains each word once."""

    def __init__(self) -> None:
        self._explained: set[str] = set()

    def explain(self, *words: str) -> list[tuple[str, str]]:
        """Those of ``words`` that are new, with what they mean."""
        new = [word for word in words if word not in self._explained]
        self._explained.update(new)
        return [(word, GLOSSARY[word]) for word in new]


_TIME_WIDTH, _ACTOR_WIDTH = 7, 14
_INDENT = _TIME_WIDTH + _ACTOR_WIDTH
_NAMES = re.compile("|".join(rf"(?<![\w-]){re.escape(name)}(?![\w-])" for name in STYLES))


class DemoOutput:
    """Writes to ``console``. Times are milliseconds on the clock of the events, and shown as seconds since ``start_ms``."""

    def __init__(self, console: Console, start_ms: int) -> None:
        self.console = console
        self.start_ms = start_ms
        self._glossary = Glossary()
        self._chapters = 0
        self._last_is_blank = False

    def title(self, text: str, *below: str) -> None:
        """Print the title of the demo, and what it shows."""
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
