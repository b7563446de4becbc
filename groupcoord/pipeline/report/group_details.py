"""The most troubled groups in detail: members, owners of partitions, rebalances and commits over time."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from groupcoord.pipeline.report.group_timelines import (
    BY_LAG,
    BY_STORM,
    COUNT,
    LAG_COLUMNS,
    NEWEST,
    STORM_COLUMNS,
    commits_of_each,
    lag_of,
    members_of,
    read_bands,
    storm_of,
    window_ms_of,
)
from groupcoord.pipeline.report.report_model import (
    CommitGap,
    CommitHistogram,
    GroupDetail,
    GroupSummary,
    OwnershipSpan,
    PartitionTimeline,
    RebalanceSummary,
    TimeSpan,
)
from groupcoord.pipeline.report.table_reader import Row, SortOrder, TableReader

REBALANCES = 120
"""The most rebalances of a group that are drawn, the newest ones; the time axis begins with the first of them."""
PARTITIONS = 30
"""The most partitions that are drawn: those whose owner changed most often."""
COUNTED = 2_000
"""The most partitions of a group that are counted, and the most changes of owner that are read."""
LISTED = 10
PIECES = 160
"""Into so many pieces time is cut for the histogram of commits."""
SHORTEST_MS = 1_000
"""The shortest time axis."""
_OF_REBALANCE = (
    "generation",
    "at",
    "cause_kind",
    "likely_cause",
    "members_before",
    "members_after",
    "partitions_total",
    "moved",
    "moved_needlessly",
    "imbalance",
)
_OF_GAP = ("topic", "partition", "from_ts", "to_ts", "gap_seconds", "usual_seconds")


def details_of(reader: TableReader, groups: Sequence[GroupSummary], log: TimeSpan | None) -> tuple[GroupDetail, ...]:
    """A section for each of ``groups``. ``log`` is when the log began and ended."""
    if not groups:
        return ()
    names = [one.group for one in groups]
    rebalances = _rebalances(reader, names)
    window_ms = window_ms_of(reader) or 0
    spans = {one.group: _span(one, rebalances[one.group], log, window_ms) for one in groups}
    bands = read_bands(reader, names, REBALANCES)
    histograms = commits_of_each(reader, spans, PIECES)
    spans = {group: _trimmed(span, histograms[group], rebalances[group]) for group, span in spans.items()}
    owned = _owned(reader, names)
    latest = [SortOrder("from", is_descending=True), *BY_STORM]
    storms = _each(reader, "storms", STORM_COLUMNS, latest, REBALANCES, names)
    lags = _each(reader, "lag", LAG_COLUMNS, BY_LAG, LISTED, names)
    longest = [
        SortOrder("gap_seconds", is_descending=True),
        SortOrder("from_ts"),
        SortOrder("topic"),
        SortOrder("partition"),
    ]
    gaps = _each(reader, "commit_gaps", ("group", *_OF_GAP), longest, LISTED, names)
    details = []
    for one in groups:
        name, span, shown = one.group, spans[one.group], rebalances[one.group]
        members = members_of(shown, bands.rows[name], span.end_ms)
        partitions, changing = _partitions(owned[name], span)
        shares = bands.shares.get(name)
        details.append(
            GroupDetail(
                group=one,
                start_ms=span.start_ms,
                end_ms=span.end_ms,
                rebalances=tuple(RebalanceSummary(*(row[column] for column in _OF_REBALANCE)) for row in shown),
                rebalances_left_out=max(one.rebalances - len(shown), 0),
                members=members,
                members_left_out=bands.counts[name] - len(members),
                commits=histograms[name],
                storms=tuple(storm_of(row) for row in reversed(storms[name]) if row["to"] >= span.start_ms),
                partitions=partitions,
                partitions_left_out=changing - len(partitions),
                shares=shares,
                shares_left_out=max((_size(shown, shares.generation) or 0) - len(shares.shares), 0) if shares else 0,
                lags=tuple(lag_of(row) for row in lags[name] if row["lag"] is not None),
                lags_left_out=max(one.partitions - len(lags[name]), 0),
                gaps=tuple(CommitGap(*(row[column] for column in _OF_GAP)) for row in gaps[name]),
                gaps_left_out=max(one.commit_gaps - len(gaps[name]), 0),
            )
        )
    return tuple(details)


def _each(
    reader: TableReader,
    table: str,
    columns: Sequence[str],
    order: Sequence[SortOrder],
    limit: int,
    groups: Collection[str],
) -> Mapping[str, list[Row]]:
    """The first rows of each of ``groups``."""
    found: dict[str, list[Row]] = defaultdict(list)
    for row in reader.rows(table, columns, order, limit, among={"group": groups}, of_each_group=True):
        found[row["group"]].append(row)
    return found


def _rebalances(reader: TableReader, groups: Collection[str]) -> Mapping[str, list[Row]]:
    """The newest of each group, in order. A group that became one of KIP-848 has some in both tables."""
    columns = ["group", "log_offset", *_OF_REBALANCE]
    found: dict[str, list[Row]] = defaultdict(list)
    for table in ("rebalances", "modern_rebalances"):
        for group, rows in _each(reader, table, columns, [NEWEST], REBALANCES, groups).items():
            found[group] += [row for row in rows if row["at"] is not None]
    for rows in found.values():
        rows.sort(key=lambda row: row["log_offset"])
        del rows[:-REBALANCES]
    return found


def _span(group: GroupSummary, rebalances: Sequence[Row], log: TimeSpan | None, window_ms: int) -> TimeSpan:
    """When the group did something: from the first rebalance that is drawn, if others are left out, else from its begin."""
    times = [row["at"] for row in rebalances]
    if group.rebalances <= len(rebalances):
        times += [time for time in (group.first_ms,) if time is not None]
    times += [time + window_ms for time in (group.last_ms,) if time is not None]
    if not times:
        times = [log.start_ms if log else 0]
    # Of some commits only their window is known, which begins before the first and ends behind the last.
    start_ms = max(min(times), log.start_ms) if log else min(times)
    end_ms = min(max(times), log.end_ms) if log else max(times)
    return TimeSpan(start_ms, max(end_ms, start_ms + SHORTEST_MS))


def _trimmed(span: TimeSpan, histogram: CommitHistogram, rebalances: Sequence[Row]) -> TimeSpan:
    """``span`` without the time before anything happened and after all had: windows are longer than their commits."""
    busy = [index for index, count in enumerate(histogram.counts) if count]
    starts = [histogram.bins.start_ms + index * histogram.bins.width_ms for index in busy[:1]] + [
        row["at"] for row in rebalances
    ]
    ends = [histogram.bins.start_ms + (index + 1) * histogram.bins.width_ms for index in busy[-1:]]
    ends += [row["at"] for row in rebalances]
    if not starts:
        return span
    start_ms = max(min(starts), span.start_ms)
    end_ms = max(min(max(ends), span.end_ms), start_ms + SHORTEST_MS)
    return TimeSpan(start_ms, end_ms + (end_ms - start_ms) // 40)


def _owned(reader: TableReader, groups: Collection[str]) -> Mapping[str, dict[tuple[str, int], list[Row]]]:
    """The changes of owner of each partition; of those that are drawn. Others are named, without any."""
    order = [SortOrder("count", is_descending=True), SortOrder("topic"), SortOrder("partition")]
    among = {"group": groups}
    by = ["group", "topic", "partition"]
    found: dict[str, dict[tuple[str, int], list[Row]]] = defaultdict(dict)
    for row in reader.totals("ownership", by, [COUNT], order, COUNTED, among=among, of_each_group=True):
        found[row["group"]][row["topic"], row["partition"]] = []
    drawn = {group: set(list(partitions)[:PARTITIONS]) for group, partitions in found.items()}
    topics = {topic for partitions in drawn.values() for topic, _ in partitions}
    if topics:
        among = {"group": groups, "topic": topics}
    columns = [*by, "log_offset", "append_ts", "until_ts", "member"]
    newest = [NEWEST, SortOrder("topic"), SortOrder("partition")]
    for row in reader.rows("ownership", columns, newest, COUNTED, among=among, of_each_group=True):
        place = row["topic"], row["partition"]
        if place in drawn.get(row["group"], ()):
            found[row["group"]][place].append(row)
    return found


def _partitions(
    owned: Mapping[tuple[str, int], list[Row]], span: TimeSpan
) -> tuple[tuple[PartitionTimeline, ...], int]:
    """Whose the partitions were that are drawn, and how many there are."""
    made = []
    for topic, partition in sorted(list(owned)[:PARTITIONS]):
        spans = []
        for row in reversed(owned[topic, partition]):
            from_ms = max(row["append_ts"], span.start_ms)
            until_ms = span.end_ms if row["until_ts"] is None else min(row["until_ts"], span.end_ms)
            if from_ms < until_ms:
                spans.append(OwnershipSpan(from_ms, until_ms, row["member"]))
        made.append(PartitionTimeline(topic, partition, tuple(spans)))
    return tuple(made), len(owned)


def _size(rebalances: Sequence[Row], generation: int) -> int | None:
    """How many members ``generation`` had."""
    return next((row["members_after"] for row in rebalances if row["generation"] == generation), None)
