"""History with other assignors, where the run was asked for it: from ``what_if_summary``."""

from collections import defaultdict
from collections.abc import Sequence

from groupcoord.pipeline.report.model import Alternative, WhatIf
from groupcoord.pipeline.report.reading import Measure, Order, Reader, Row

TABLE = "what_if_summary"
_SUMS = ("generations", "problems", "moved", "moved_needlessly", "pauses", "rebalances")
_MOST = 50
"""So many assignors at most: there are not as many."""


def what_if_of(reader: Reader, groups: Sequence[str]) -> WhatIf | None:
    """All groups together, and each of ``groups``; None: the run was not asked for it."""
    if not reader.has(TABLE):
        return None
    measures = [*(Measure(name, "sum", name) for name in _SUMS), Measure("worst", "max", "imbalance_worst")]
    rows = reader.totals(TABLE, ["assignor"], measures, [Order("assignor")], _MOST)
    if not rows:
        return None
    of_group: dict[str, list[Alternative]] = defaultdict(list)
    among = {"group": groups}
    by = ["group", "assignor"]
    for row in reader.totals(TABLE, by, measures, [Order("assignor")], _MOST, among=among, of_each_group=True):
        of_group[row["group"]].append(_alternative(row))
    return WhatIf(
        together=tuple(map(_alternative, rows)), groups={group: tuple(found) for group, found in of_group.items()}
    )


def _alternative(row: Row) -> Alternative:
    return Alternative(
        assignor=row["assignor"], **{name: row[name] or 0 for name in _SUMS}, imbalance_worst=row["worst"]
    )
