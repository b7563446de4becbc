"""Who was in a group, generation after generation, and how many partitions each had: from ``skew`` and ``modern_skew``."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from groupcoord.pipeline.report.model import Member, Presence, Share, Shares
from groupcoord.pipeline.report.reading import Measure, Order, Reader, Row

MEMBERS = 30
"""So many members are drawn: those that were in it last."""
COUNTED = 2_000
"""Up to so many members of a group are counted."""
NEWEST = Order("log_offset", is_descending=True)


class Bands(NamedTuple):
    """What is known of the members of each group."""

    rows: Mapping[str, list[Row]]
    """Rows of ``skew``, of the members that are drawn."""
    counts: Mapping[str, int]
    """How many members each group ever had, up to COUNTED."""
    shares: Mapping[str, Shares]


def read_bands(reader: Reader, groups: Collection[str], generations: int) -> Bands:
    """The members of ``groups`` in the last ``generations``."""
    rows: dict[str, list[Row]] = defaultdict(list)
    counts: dict[str, int] = defaultdict(int)
    shares: dict[str, Shares] = {}
    among = {"group": groups}
    for table in ("skew", "modern_skew"):
        measures = [Measure("log_offset", "max", "log_offset"), Measure("generations", "count")]
        order = [NEWEST, Order("generations", is_descending=True), Order("member")]
        known = reader.totals(table, ["group", "member"], measures, order, COUNTED, among=among, of_each_group=True)
        drawn: set[tuple[str, str]] = set()
        for row in known:
            counts[row["group"]] += 1
            if counts[row["group"]] <= MEMBERS:
                drawn.add((row["group"], row["member"]))
        columns = ["group", "log_offset", "generation", "member", "client_id", "partitions", "fair_share"]
        order = [NEWEST, Order("partitions", is_descending=True), Order("member")]
        newest = reader.rows(table, columns, order, MEMBERS, among=among, of_each_group=True)
        shares |= _shares(newest)
        among_drawn = {"group": {group for group, _ in drawn}, "member": {member for _, member in drawn}}
        found = reader.rows(table, columns, order, generations * MEMBERS, among=among_drawn, of_each_group=True)
        for row in found:
            if (row["group"], row["member"]) in drawn:
                rows[row["group"]].append(row)
    return Bands(rows, counts, shares)


def members_of(rebalances: Sequence[Row], rows: Sequence[Row], end_ms: int) -> tuple[Member, ...]:
    """When each member was there: from the rebalance that began a generation to the next one, the last to ``end_ms``. Who
    came first is first."""
    offsets = [row["log_offset"] for row in rebalances]
    times = [row["at"] for row in rebalances] + [end_ms]
    presence: dict[str, dict[int, int]] = defaultdict(dict)
    clients: dict[str, str] = {}
    for row in sorted(rows, key=lambda row: row["log_offset"]):
        # A static member that comes back is a further record of the same generation; numbers begin anew with a new group.
        place = bisect_right(offsets, row["log_offset"]) - 1
        if place >= 0:
            presence[row["member"]][place] = row["partitions"]
            clients[row["member"]] = row["client_id"] or ""
    members = [
        Member(
            member,
            clients[member],
            _joined([Presence(times[place], times[place + 1], had) for place, had in there.items()]),
        )
        for member, there in presence.items()
    ]
    return tuple(sorted(members, key=lambda one: (one.presence[0].from_ms, one.member)))


def _joined(presence: list[Presence]) -> tuple[Presence, ...]:
    """``presence`` with generations in one piece that follow one another with as many partitions."""
    made = presence[:1]
    for before, one in pairwise(presence):
        if before.until_ms == one.from_ms and before.partitions == one.partitions:
            made[-1] = made[-1]._replace(until_ms=one.until_ms)
        else:
            made.append(one)
    return tuple(made)


def _shares(rows: Sequence[Row]) -> dict[str, Shares]:
    of_group: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if not of_group[row["group"]] or of_group[row["group"]][0]["log_offset"] == row["log_offset"]:
            of_group[row["group"]].append(row)
    return {
        group: Shares(
            found[0]["generation"],
            found[0]["fair_share"],
            tuple(Share(row["member"], row["client_id"] or "", row["partitions"]) for row in found),
        )
        for group, found in of_group.items()
    }
