"""BatchOutcome, the state after a micro-batch of the watch, from which metrics and alerts are made."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from groupcoord.pipeline.errors import SourceWarning
from groupcoord.pipeline.schemas import TableSchema
from groupcoord.pipeline.watch.output_directory import WatchManifest


@dataclass(frozen=True, kw_only=True)
class BatchOutcome:
    """The state after a batch, or after a refresh of end offsets while no batch came.

    ``now`` is the time of the views, and ``view`` reads columns of a view as an Arrow table. They contain the log up to that
    time, when the batch began: later records came while it was being written. ``behind`` is how many offsets of the log are
    still to be read. ``knows_transactions``: does the source say which transactions are open? ``rebalances`` counts the
    rebalances in the batch by group. ``lost`` warns of records that were deleted from the log before they were read. ``took_s``
    is the duration of the batch; None: it was a refresh.
    """

    manifest: WatchManifest
    now: datetime
    view: Callable[[TableSchema, Sequence[str]], Any]
    behind: int = 0
    knows_transactions: bool = True
    took_s: float | None = None
    rebalances: Mapping[str, int] = field(default_factory=dict)
    lost: Sequence[SourceWarning] = ()
