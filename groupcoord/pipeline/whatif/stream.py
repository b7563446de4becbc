"""Between Arrow and the replay: a task plays one group with one assignor after the other, and holds a few rows at a time."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import Any

import pyarrow as pa

from groupcoord.pipeline.schemas import WHAT_IF
from groupcoord.pipeline.types import arrow_schema
from groupcoord.pipeline.whatif.choice import Choice
from groupcoord.pipeline.whatif.replay import rows

BATCH = 4096
"""So many rows are handed back at a time."""
SLICE = 64
"""So many generations become Python's objects at a time: of a large group they are large."""


def playing(chosen: Sequence[Choice]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Plays the record batches of ``tables.moments`` that it is given, in order, with ``chosen``."""
    by_name = {choice.said: choice for choice in chosen}

    def play(batches: Iterator[Any]) -> Iterator[Any]:
        schema = arrow_schema(WHAT_IF.columns)
        said = (batch.slice(start, SLICE).to_pylist() for batch in batches for start in range(0, batch.num_rows, SLICE))
        found = rows(chain.from_iterable(said), by_name)
        while some := list(islice(found, BATCH)):
            yield pa.RecordBatch.from_pylist(some, schema=schema)

    return play
