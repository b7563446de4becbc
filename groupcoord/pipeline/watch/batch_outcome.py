"""How things are after a batch: what metrics and alerts are made from."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from groupcoord.pipeline.errors import SourceWarning
from groupcoord.pipeline.schemas import TableSchema
from groupcoord.pipeline.watch.output_directory import WatchManifest


@dataclass(frozen=True, kw_only=True)
class BatchOutcome:
    """After a batch, or after the ends of topics were asked for again because none came.

    ``now`` is the time that the views are as of, ``view`` reads columns of one as an Arrow table, ``behind`` is how many
    offsets of the log are still to be read (None: unknown), ``rebalances`` how many rebalances of each group the batch
    brought, ``lost`` what was deleted from the log before it was read. ``took_s`` is how long it took; None: it was no batch.
    """

    manifest: WatchManifest
    now: datetime
    view: Callable[[TableSchema, Sequence[str]], Any]
    behind: int | None = None
    took_s: float | None = None
    rebalances: Mapping[str, int] = field(default_factory=dict)
    lost: Sequence[SourceWarning] = ()

    @property
    def read_until(self) -> datetime:
        """What came into the log after this moment is not in the views: it came while the batch was written."""
        return self.now - timedelta(seconds=self.took_s or 0.0)
