"""The demo's terminal output: chapters, lines, explanations of terms and tables, in colour if the terminal supports it."""

import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import IO, NamedTuple

from rich import box
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.segment import Segment, SegmentLines
from rich.table import Table
from rich.text import Text

from groupcoord.broker.cleaner import survivors
from groupcoord.offsets_log.compaction_preview import GONE, after_rows, before_rows
from groupcoord.offsets_log.compaction_preview import strips as strip_texts
from groupcoord.protocol.batches.records import Record

WIDTH = 100
"""The width of the output in columns, unless the terminal is narrower."""

STYLES = {
    "kafka-python": "cyan",
    "confluent": "magenta",
    "aiokafka": "green",
    "old-1": "cyan",
    "old-2": "blue",
    "new-1": "magenta",
    "new-2": "green",
    "new-3": "yellow",
    "worker-1": "cyan",
    "worker-2": "magenta",
    "coordinator": "bold",
    "producer": "yellow",
    "demo": "yellow",
    "groupcoord": "bold",
}


def style_of(actor: str) -> str:
    """The colour of an actor's name."""
    return STYLES.get(actor, "default")


class DemoConsole(Console):
    """A console that leaves the handling of a broken pipe to the command line."""

    def on_broken_pipe(self) -> None:
        """Called by rich while it handles BrokenPipeError: raise it again, instead of exiting with rich's code."""
        raise  # noqa: PLE0704


def console(stream: IO[str] | None = None) -> Console:
    """A console on ``stream`` (stdout), without control codes if it is not a terminal or ``NO_COLOR`` is set."""
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
    "consumer group": "a group in which the coordinator itself shares the partitions out, and each member gives back only what "
    "goes to another. Members of both protocols may be in it.",
    "session": "so long a member may be silent before it counts as dead. Each member chooses its own.",
    "at least once": "what was read but not committed is read again by the next owner. So no record is lost, and some come "
    "twice.",
    "transaction": "records in several partitions that count all at once, or never. The offsets of a group are records, too.",
    "transactional id": "the name of a producer that outlives its process: whoever has it is its successor.",
    "epoch": "counts who has had a transactional id. A request with an older epoch is refused.",
    "PrepareCommit": "the state in __transaction_state with no way back: after a crash the coordinator goes on here.",
    "marker": "a record that says how the transaction of a producer ended: its records before it count, or do not.",
    "last stable offset": "where the first open transaction of a partition begins. Who reads committed records waits there.",
    "fenced": "shut out, because somebody newer has the same transactional id.",
    "__consumer_offsets": "the topic in which the coordinator stores every generation and every commit, to have them again "
    "after a restart. Clients can read it too.",
    "compaction": "throwing away each record that has a later one with the same key. The others keep their offsets.",
}


class Glossary:
    """Explains each term once."""

    def __init__(self) -> None:
        self._explained: set[str] = set()

    def explain(self, *words: str) -> list[tuple[str, str]]:
        """(word, explanation) for those of ``words`` that were not explained before."""
        new = [word for word in words if word not in self._explained]
        self._explained.update(new)
        return [(word, GLOSSARY[word]) for word in new]


_TIME_WIDTH, _ACTOR_WIDTH = 7, 14
_INDENT = _TIME_WIDTH + _ACTOR_WIDTH
_NAMES = re.compile("|".join(rf"(?<![\w-]){re.escape(name)}(?![\w-])" for name in STYLES))


class DemoOutput:
    """Prints to ``console``. Times are milliseconds on the clock of the events, printed as seconds since ``start_ms``."""

    def __init__(self, console: Console, start_ms: int) -> None:
        self.console = console
        self.start_ms = start_ms
        self._glossary = Glossary()
        self._chapters = 0
        self._last_is_blank = False

    def title(self, text: str, *below: str) -> None:
        """Print a title, with text below it."""
        self._print("", Text(text, style="bold"), *below)

    def chapter(self, title: str, *paragraphs: str) -> None:
        """Print the heading of a new chapter, with an introduction."""
        self._chapters += 1
        head = f"━━ {self._chapters}  {title} "
        rule = Text(head + "━" * max(self.console.width - len(head), 0), style="bold bright_blue")
        self._print("", rule, *(Text(paragraph, style="italic") for paragraph in paragraphs), "")

    def line(self, at_ms: int, actor: str, text: str, *words: str) -> None:
        """Print an action of ``actor``. Those of ``words`` that were not explained before are explained below."""
        seconds = Text(f"{(at_ms - self.start_ms) / 1000:5.2f}".ljust(_TIME_WIDTH), style="dim")
        who = Text(actor.ljust(_ACTOR_WIDTH), style=style_of(actor))
        self._hanging(Text.assemble(seconds, who), Text(" " * _INDENT), _coloured(text))
        self.explain(*words)

    def under(self, *whats: str | RenderableType) -> None:
        """Print texts or small tables below the text of the line before."""
        for what in whats:
            self._print(Padding(_coloured(what) if isinstance(what, str) else what, (0, 0, 0, _INDENT)))

    def explain(self, *words: str) -> None:
        """Print explanations of those of ``words`` that were not explained before."""
        for word, meaning in self._glossary.explain(*words):
            bar = Text.assemble(" " * _INDENT, ("│ ", "bright_blue"))
            self._hanging(bar, bar, Text.assemble((word, "bold italic"), (f": {meaning}", "dim italic")))

    def show(self, what: RenderableType, indent: int = 2) -> None:
        """Print a table or the like, with empty lines around it."""
        self._print(Padding(what, (1, 0, 1, indent)))

    def say(self, *paragraphs: str, style: str = "") -> None:
        """Print plain paragraphs."""
        for paragraph in paragraphs:
            text = _coloured(paragraph)
            text.stylize_before(style)
            self._print(text)

    def _hanging(self, first: Text, others: Text, body: Text) -> None:
        """Print ``body`` with a hanging indent: ``first`` before its first line, ``others`` before the other lines."""
        for index, line in enumerate(body.wrap(self.console, max(self.console.width - len(first), 20))):
            self._print(Text.assemble(others if index else first, line))

    def _print(self, *whats: str | RenderableType) -> None:
        """Print without trailing spaces, which tables have, and without two empty lines in a row."""
        for what in whats:
            renderable = _coloured(what) if isinstance(what, str) else what
            for line in map(_trimmed, self.console.render_lines(renderable, pad=False)):
                if line or not self._last_is_blank:
                    self.console.print(SegmentLines([line], new_lines=True), end="")
                self._last_is_blank = not line


def rows(cells: Iterable[Sequence[str]]) -> Table:
    """A small table without borders, with names in their colours."""
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


MOVED = "→"

_CELL_WIDTH, _MARGIN = 15, 6


class GenerationOwners(NamedTuple):
    """The owners of partitions in one generation; ``moved`` are the partitions that had another owner before."""

    number: int
    protocol: str
    owners: Mapping[int, str]
    moved: frozenset[int]


class OwnersHistory:
    """The generations with an assignment, oldest first."""

    def __init__(self, topic: str, partitions: int) -> None:
        self.topic = topic
        self.partitions = partitions
        self.generations: list[GenerationOwners] = []

    def add(self, number: int, protocol: str, owners: Mapping[int, str]) -> GenerationOwners:
        """Add the assignment of generation ``number``."""
        before = self.generations[-1].owners if self.generations else {}
        moved = frozenset(p for p, owner in owners.items() if p in before and before[p] != owner)
        generation = GenerationOwners(number, protocol, dict(owners), moved)
        self.generations.append(generation)
        return generation

    def table(self, width: int) -> Table:
        """A row for each generation, a column for each partition; moved partitions have an arrow. Compact if ``width`` is too
        small."""
        if width < self.partitions * _CELL_WIDTH + _MARGIN:
            return self._narrow_table()
        table = _empty_table()
        for partition in range(self.partitions):
            table.add_column(f"  {self.topic}-{partition}", no_wrap=True, min_width=_CELL_WIDTH - 1)
        for generation in self.generations:
            cells = [self._cell(generation, partition) for partition in range(self.partitions)]
            table.add_row(str(generation.number), *cells, style=self._style(generation))
        return table

    def _narrow_table(self) -> Table:
        """A row for each generation, with its owners and their partitions in one column."""
        table = _empty_table()
        table.add_column(f"  partitions of {self.topic}")
        for generation in self.generations:
            owned: dict[str, list[str]] = {}
            for partition, owner in sorted(generation.owners.items()):
                arrow = MOVED if partition in generation.moved else ""
                owned.setdefault(owner, []).append(f"{arrow}{partition}")
            texts = (Text(f"{owner}: {' '.join(numbers)}", style_of(owner)) for owner, numbers in owned.items())
            table.add_row(str(generation.number), Text("  ") + Text("   ").join(texts), style=self._style(generation))
        return table

    def _style(self, generation: GenerationOwners) -> str:
        return "" if generation is self.generations[-1] else "dim"

    @staticmethod
    def _cell(generation: GenerationOwners, partition: int) -> Text:
        owner = generation.owners.get(partition)
        if owner is None:
            return Text("  nobody")
        moved = partition in generation.moved
        return Text(f" {MOVED if moved else ' '}{owner}", style=style_of(owner) + (" bold" if moved else ""))


def new_table(padding: int = 1) -> Table:
    """An empty table with ``padding`` spaces around each column."""
    return Table(box=box.SIMPLE_HEAD, padding=(0, padding), pad_edge=False, show_edge=False)


def _empty_table() -> Table:
    table = new_table(padding=0)
    table.add_column("gen", justify="right", no_wrap=True)
    return table


def before_compaction(records: Sequence[Record]) -> RenderableType:
    """A table of the log: each key with all its values, oldest first."""
    table = new_table()
    table.add_column("key", no_wrap=True)
    table.add_column("records", justify="right")
    table.add_column("values, oldest first", overflow="fold")
    for key, count, values in before_rows(records):
        table.add_row(key, count, "\n".join(values))
    return table


def after_compaction(records: Sequence[Record]) -> RenderableType:
    """A table of the records that compaction keeps, with their offsets in ``__consumer_offsets``."""
    table = new_table()
    table.add_column("at offset", justify="right")
    table.add_column("key", no_wrap=True)
    table.add_column("value", overflow="fold")
    for row in after_rows(survivors(records)):
        table.add_row(*row)
    return table


def compaction_strips(records: Sequence[Record]) -> RenderableType:
    """The log before and after compaction, one character for each record.

    G is a group record, a digit a commit of that partition, a dot a removed record.
    """
    table = Table.grid(padding=(0, 2))
    for whole, left in strip_texts(records, {record.offset for record in survivors(records)}):
        table.add_row("before", Text(whole))
        table.add_row("after", Text().join(Text(letter, "dim" if letter == GONE else "bold") for letter in left))
    return table
