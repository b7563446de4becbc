"""What a source promises before it is read."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from groupcoord.pipeline.sources.remark import Remark


def as_it_is(batches: Iterator[Any]) -> Iterator[Any]:
    """Nothing is left to be opened."""
    return batches


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One reading of a source.

    ``read`` gives the records as LOG, or numbers of what is still to be opened: of its record batches ``opened`` makes such of
    LOG, in the task that decodes them. ``records`` says how many there must be; None where the source cannot know. ``ends``,
    of a living cluster, makes of a frame with the columns ``topic`` and ``partition`` one of END_OFFSETS.
    """

    said: str
    read: Callable[[SparkSession], DataFrame]
    opened: Callable[[Iterator[Any]], Iterator[Any]] = as_it_is
    records: int | None = None
    remarks: list[Remark] = field(default_factory=list)
    ends: Callable[[DataFrame], DataFrame] | None = None
