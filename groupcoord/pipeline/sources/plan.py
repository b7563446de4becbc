"""What a source promises before it is read."""

from collections.abc import Callable
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession

from groupcoord.pipeline.sources.remark import Remark


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One reading of a source.

    ``read`` gives the records as LOG, or as SPLIT if the source decodes while it reads (``is_split``). ``records`` says how
    many there must be; None where the source cannot know. ``ends``, of a living cluster, makes of a frame with the columns
    ``topic`` and ``partition`` one of END_OFFSETS.
    """

    said: str
    read: Callable[[SparkSession], DataFrame]
    is_split: bool = False
    records: int | None = None
    remarks: list[Remark] = field(default_factory=list)
    ends: Callable[[DataFrame], DataFrame] | None = None
