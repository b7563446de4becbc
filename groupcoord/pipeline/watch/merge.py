"""Small files become larger ones: a hundred batches become one directory, a hundred of those one, and so on.

So a table that grows never has more than some hundred directories, and each row is written anew once for each factor of a
hundred. The merged directory comes into its place like a batch (journal.py), and those that it is made of go out just before.
"""

import dataclasses
from collections.abc import Iterable

from groupcoord.pipeline.schemas import Table
from groupcoord.pipeline.watch.journal import Journal, Span
from groupcoord.pipeline.watch.place import TABLES, Place

ROWS_A_FILE = 2_000_000


def merged(place: Place, journal: Journal, tables: Iterable[Table], every: int) -> Journal:
    """Merge what there is to merge, ``every`` so many directories; 0: never."""
    for table in tables:
        while every and (chosen := to_merge(journal.spans.get(table.name, []), every)):
            journal = _merge(place, journal, table, chosen)
    return journal


def to_merge(spans: list[Span], every: int) -> list[Span]:
    """The first ``every`` of the highest level of which there are so many; none if there are not."""
    for level in sorted({span.level for span in spans}, reverse=True):
        of_level = [span for span in spans if span.level == level]
        if len(of_level) >= every:
            return of_level[:every]
    return []


def _merge(place: Place, journal: Journal, table: Table, chosen: list[Span]) -> Journal:
    whole = Span(chosen[0].first, chosen[-1].last, sum(span.rows for span in chosen), chosen[0].level + 1)
    folder = f"{TABLES}/{table.name}"
    frame = place.read(table, *(f"{folder}/{span.folder}" for span in chosen))
    staged = place.stage(frame.coalesce(max(1, whole.rows // ROWS_A_FILE)), table)
    out = place.out()
    moves = [(f"{folder}/{span.folder}", f"{out}/{span.folder}") for span in chosen]
    spans = [whole, *(span for span in journal.spans[table.name] if span not in chosen)]
    spans.sort(key=lambda span: span.first)
    return place.commit(
        dataclasses.replace(
            journal,
            spans={**journal.spans, table.name: spans},
            moves=[*moves, (staged, f"{folder}/{whole.folder}")],
        )
    )
