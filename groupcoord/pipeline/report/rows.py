"""Rows of tables that several parts of the report show."""

from groupcoord.pipeline.report.model import Lag, Storm
from groupcoord.pipeline.report.reading import Measure, Order, Row

COUNT = Measure("count", "count")
STORM_COLUMNS = (
    "group",
    "from",
    "to",
    "rebalances",
    "hidden_generations",
    "members_lowest",
    "members_highest",
    "moved",
    "likely_causes",
)
BY_STORM = (Order("from"), Order("group"))
LAG_COLUMNS = ("group", "topic", "partition", "committed_offset", "end_offset", "lag", "last_commit_ts", "status")
BY_LAG = (Order("lag", is_descending=True), Order("group"), Order("topic"), Order("partition"))


def storm_of(row: Row) -> Storm:
    """A row of ``storms``."""
    return Storm._make((*(row[name] for name in STORM_COLUMNS[:-1]), tuple(row["likely_causes"] or ())))


def lag_of(row: Row) -> Lag:
    """A row of ``lag``."""
    return Lag(*(row[name] for name in LAG_COLUMNS))
