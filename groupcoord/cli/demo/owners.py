"""Who owned which partition in which generation, and what changed hands."""

from collections.abc import Mapping
from typing import NamedTuple

from rich import box
from rich.table import Table
from rich.text import Text

from groupcoord.cli.demo.look import style_of

MOVED = "→"

_CELL_WIDTH, _MARGIN = 15, 6


class Generation(NamedTuple):
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
        self.generations: list[Generation] = []

    def add(self, number: int, protocol: str, owners: Mapping[int, str]) -> Generation:
        """Generation ``number`` shares the partitions out like this."""
        before = self.generations[-1].owners if self.generations else {}
        moved = frozenset(p for p, owner in owners.items() if p in before and before[p] != owner)
        generation = Generation(number, protocol, dict(owners), moved)
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

    def _style(self, generation: Generation) -> str:
        return "" if generation is self.generations[-1] else "dim"

    @staticmethod
    def _cell(generation: Generation, partition: int) -> Text:
        owner = generation.owners.get(partition)
        if owner is None:
            return Text("  nobody")
        moved = partition in generation.moved
        return Text(f" {MOVED if moved else ' '}{owner}", style=style_of(owner) + (" bold" if moved else ""))


def _empty_table() -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 0), pad_edge=False, show_edge=False)
    table.add_column("gen", justify="right", no_wrap=True)
    return table
