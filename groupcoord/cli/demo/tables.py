"""Tables of the demo: owners of partitions by generation, and ``__consumer_offsets`` before and after compaction."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from groupcoord.broker.compaction import survivors
from groupcoord.cli.demo.output import style_of
from groupcoord.offsets_log.compaction_preview import GONE, after_rows, before_rows
from groupcoord.offsets_log.compaction_preview import strips as strip_texts
from groupcoord.protocol.batches.records import Record

MOVED = "→"

_CELL_WIDTH, _MARGIN = 15, 6


class GenerationOwners(NamedTuple):
    """One generation's owners by partition; ``moved`` are the partitions that had another owner before."""

    number: int
    protocol: str
    owners: Mapping[int, str]
    moved: frozenset[int]


class OwnersHistory:
    """The generations that got as far as an assignment, oldest first."""

    def __init__(self, topic: str, partitions: int) -> None:
        self.topic = topic
        self.partitions = partitions
        self.generations: list[GenerationOwners] = []

    def add(self, number: int, protocol: str, owners: Mapping[int, str]) -> GenerationOwners:
        """Generation ``number`` shares the partitions out like this."""
        before = self.generations[-1].owners if self.generations else {}
        moved = frozenset(p for p, owner in owners.items() if p in before and before[p] != owner)
        generation = GenerationOwners(number, protocol, dict(owners), moved)
        self.generations.append(generation)
        return generation

    def table(self, width: int) -> Table:
        """Generations down, partitions across; what changed hands has an arrow. Narrower where ``width`` is not enough."""
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
        """Generations down; beside each, its owners with their partitions."""
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


def _empty_table() -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 0), pad_edge=False, show_edge=False)
    table.add_column("gen", justify="right", no_wrap=True)
    return table


def before_compaction(records: Sequence[Record]) -> RenderableType:
    """The whole log: each key with all its values, oldest first."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False, show_edge=False)
    table.add_column("key", no_wrap=True)
    table.add_column("records", justify="right")
    table.add_column("values, oldest first", overflow="fold")
    for key, count, values in before_rows(records):
        table.add_row(key, count, "\n".join(values))
    return table


def after_compaction(records: Sequence[Record]) -> RenderableType:
    """What compaction leaves of the log, with the offsets of ``__consumer_offsets``."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False, show_edge=False)
    table.add_column("at offset", justify="right")
    table.add_column("key", no_wrap=True)
    table.add_column("value", overflow="fold")
    for row in after_rows(survivors(records)):
        table.add_row(*row)
    return table


def compaction_strips(records: Sequence[Record]) -> RenderableType:
    """The log before and after compaction, record below record, each one character.

    That is G for the group, the partition's number for a commit, and a dot for what is gone.
    """
    table = Table.grid(padding=(0, 2))
    for whole, left in strip_texts(records, {record.offset for record in survivors(records)}):
        table.add_row("before", Text(whole))
        table.add_row("after", Text().join(Text(letter, "dim" if letter == GONE else "bold") for letter in left))
    return table
