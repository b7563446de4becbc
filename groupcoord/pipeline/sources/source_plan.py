"""What a source announces before it is read."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from groupcoord.pipeline.errors import SourceWarning


def as_it_is(batches: Iterator[Any]) -> Iterator[Any]:
    """Nothing is left to be opened."""
    return batches


@dataclass(frozen=True, kw_only=True)
class SourcePlan:
    """One reading of a source.

    ``spec`` is the text after ``--source``. ``read`` gives the records as LOG, or the numbers of the tasks that will read them;
    ``open_batches`` turns its record batches into such of LOG, inside the task that decodes them. ``records`` is how many there
    must be; None if the source cannot know. ``ends``, of a live cluster, turns a frame with the columns ``topic`` and
    ``partition`` into END_OFFSETS.
    """

    spec: str
    read: Callable[[SparkSession], DataFrame]
    open_batches: Callable[[Iterator[Any]], Iterator[Any]] = as_it_is
    records: int | None = None
    warnings: list[SourceWarning] = field(default_factory=list)
    ends: Callable[[DataFrame], DataFrame] | None = None
