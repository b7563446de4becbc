"""Groups over time: their members in each generation, and their commits; and the rows of tables that several parts show."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from groupcoord.pipeline.report.report_model import (
    CommitHistogram,
    GenerationShares,
    MemberShare,
    MembershipSpan,
    MemberTimeline,
    PartitionLag,
    RebalanceStorm,
    TimeBins,
    TimeSpan,
)
from groupcoord.pipeline.report.table_reader import Aggregate, Row, SortOrder, TableReader

COUNT = Aggregate("count", "count")
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
BY_STORM = (SortOrder("from"), SortOrder("group"))
LAG_COLUMNS = ("group", "topic", "partition", "committed_offset", "end_offset", "lag", "last_commit_ts", "status")
BY_LAG = (SortOrder("lag", is_descending=True), SortOrder("group"), SortOrder("topic"), SortOrder("partition"))


def storm_of(row: Row) -> RebalanceStorm:
    """A row of ``storms``."""
    return RebalanceStorm._make((*(row[name] for name in STORM_COLUMNS[:-1]), tuple(row["likely_causes"] or ())))


def lag_of(row: Row) -> PartitionLag:
    """A row of ``lag``."""
    return PartitionLag(*(row[name] for name in LAG_COLUMNS))


MEMBERS = 30
"""The most members that are drawn: the last ones of the group."""
COUNTED = 2_000
"""The most members of a group that are counted."""
NEWEST = SortOrder("log_offset", is_descending=True)


class MembershipRows(NamedTuple):
    """What is known of the members of each group."""

    rows: Mapping[str, list[Row]]
    """Rows of ``skew``, of the members that are drawn."""
    counts: Mapping[str, int]
    """How many members each group ever had, up to COUNTED."""
    shares: Mapping[str, GenerationShares]


def read_bands(reader: TableReader, groups: Collection[str], generations: int) -> MembershipRows:
    """The members of ``groups`` in the last ``generations``."""
    rows: dict[str, list[Row]] = defaultdict(list)
    counts: dict[str, int] = defaultdict(int)
    shares: dict[str, GenerationShares] = {}
    among = {"group": groups}
    for table in ("skew", "modern_skew"):
        measures = [Aggregate("log_offset", "max", "log_offset"), Aggregate("generations", "count")]
        order = [NEWEST, SortOrder("generations", is_descending=True), SortOrder("member")]
        known = reader.totals(table, ["group", "member"], measures, order, COUNTED, among=among, of_each_group=True)
        drawn: set[tuple[str, str]] = set()
        for row in known:
            counts[row["group"]] += 1
            if counts[row["group"]] <= MEMBERS:
                drawn.add((row["group"], row["member"]))
        columns = ["group", "log_offset", "generation", "member", "client_id", "partitions", "fair_share"]
        order = [NEWEST, SortOrder("partitions", is_descending=True), SortOrder("member")]
        newest = reader.rows(table, columns, order, MEMBERS, among=among, of_each_group=True)
        shares |= _shares(newest)
        among_drawn = {"group": {group for group, _ in drawn}, "member": {member for _, member in drawn}}
        found = reader.rows(table, columns, order, generations * MEMBERS, among=among_drawn, of_each_group=True)
        for row in found:
            if (row["group"], row["member"]) in drawn:
                rows[row["group"]].append(row)
    return MembershipRows(rows, counts, shares)


def members_of(rebalances: Sequence[Row], rows: Sequence[Row], end_ms: int) -> tuple[MemberTimeline, ...]:
    """When each member was there: from the rebalance that began a generation to the next one, the last to ``end_ms``. Who
    came first is first."""
    offsets = [row["log_offset"] for row in rebalances]
    times = [row["at"] for row in rebalances] + [end_ms]
    spans: dict[str, dict[int, int]] = defaultdict(dict)
    clients: dict[str, str] = {}
    for row in sorted(rows, key=lambda row: row["log_offset"]):
        # A static member that comes back is a further record of the same generation; numbers begin anew with a new group.
        place = bisect_right(offsets, row["log_offset"]) - 1
        if place >= 0:
            spans[row["member"]][place] = row["partitions"]
            clients[row["member"]] = row["client_id"] or ""
    members = [
        MemberTimeline(
            member,
            clients[member],
            _joined([MembershipSpan(times[place], times[place + 1], had) for place, had in there.items()]),
        )
        for member, there in spans.items()
    ]
    return tuple(sorted(members, key=lambda one: (one.spans[0].from_ms, one.member)))


def _joined(spans: list[MembershipSpan]) -> tuple[MembershipSpan, ...]:
    """``spans`` with generations in one piece that follow one another with as many partitions."""
    made = spans[:1]
    for before, one in pairwise(spans):
        if before.until_ms == one.from_ms and before.partitions == one.partitions:
            made[-1] = made[-1]._replace(until_ms=one.until_ms)
        else:
            made.append(one)
    return tuple(made)


def _shares(rows: Sequence[Row]) -> dict[str, GenerationShares]:
    of_group: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if not of_group[row["group"]] or of_group[row["group"]][0]["log_offset"] == row["log_offset"]:
            of_group[row["group"]].append(row)
    return {
        group: GenerationShares(
            found[0]["generation"],
            found[0]["fair_share"],
            tuple(MemberShare(row["member"], row["client_id"] or "", row["partitions"]) for row in found),
        )
        for group, found in of_group.items()
    }


COMMITS = ("commits", "append_ts", COUNT)
WINDOWS = ("commit_rates", "window_start", Aggregate("count", "sum", "commits"))


def commits_of_all(reader: TableReader, span: TimeSpan, pieces: int) -> CommitHistogram:
    """The commits of all groups in ``span``, cut into about so many pieces."""
    bins, is_fine = _cut(span, pieces, window_ms_of(reader))
    table, time, measure = COMMITS if is_fine else WINDOWS
    return CommitHistogram(bins, _counts(bins, reader.binned(table, time, bins, [measure])), table)


def commits_of_each(reader: TableReader, spans: Mapping[str, TimeSpan], pieces: int) -> dict[str, CommitHistogram]:
    """The commits of each group in its span."""
    window_ms = window_ms_of(reader)
    cuts = {group: _cut(span, pieces, window_ms) for group, span in spans.items()}
    histograms: dict[str, CommitHistogram] = {}
    for wants_fine, (table, time, measure) in ((True, COMMITS), (False, WINDOWS)):
        bins = {group: one for group, (one, is_fine) in cuts.items() if is_fine is wants_fine}
        rows = reader.binned(table, time, bins, [measure])
        for group, one in bins.items():
            histograms[group] = CommitHistogram(
                one, _counts(one, [row for row in rows if row["group"] == group]), table
            )
    return histograms


def _cut(span: TimeSpan, pieces: int, window_ms: int | None) -> tuple[TimeBins, bool]:
    """``span`` in pieces, and whether these are finer than windows; else each has just so many whole windows."""
    width_ms = (span.end_ms - span.start_ms) // pieces + 1
    if window_ms is None or width_ms < window_ms:
        return TimeBins(span.start_ms, width_ms, pieces), True
    start_ms = span.start_ms - span.start_ms % window_ms
    width_ms = -(-width_ms // window_ms) * window_ms
    return TimeBins(start_ms, width_ms, (span.end_ms - start_ms) // width_ms + 1), False


def window_ms_of(reader: TableReader) -> int | None:
    """How long the windows of ``commit_rates`` are; None: there are none."""
    rows = reader.rows("commit_rates", ["window_start", "window_end"], [], 1)
    return rows[0]["window_end"] - rows[0]["window_start"] if rows else None


def _counts(bins: TimeBins, rows: list[Row]) -> tuple[int, ...]:
    counts = [0] * bins.pieces
    for row in rows:
        counts[row["bin"]] = row["count"]
    return tuple(counts)
