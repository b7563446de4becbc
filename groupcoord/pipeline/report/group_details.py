"""The most troubled groups in detail: members, owners of partitions, rebalances and commits over time."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from groupcoord.pipeline.report import report_model as model
from groupcoord.pipeline.report.arrow_table_reader import Aggregate, ArrowTableReader, Row
from groupcoord.pipeline.schemas import END_EVENTS, LAG, STORMS

COUNT = Aggregate("count", "count")
STORM_COLUMNS = STORMS.names[1:]
BY_STORM = "from group"
LAG_COLUMNS = LAG.names
BY_LAG = "-lag group topic partition"


def storm_of(row: Row) -> model.RebalanceStorm:
    """Make a RebalanceStorm from a row of ``storms``."""
    causes = tuple(row["likely_causes"] or ())
    who = tuple(model.NamedMembers(**one) for one in row["came_and_went"] or ())
    return model.RebalanceStorm._make((*(row[name] for name in STORM_COLUMNS[:-2]), causes, who, ()))


def lag_of(row: Row) -> model.PartitionLag:
    """Make a PartitionLag from a row of ``lag``."""
    return model.PartitionLag(*(row[name] for name in LAG_COLUMNS))


MEMBERS = 30
"""The most members of a group that are drawn: those that were there last."""
CHANGES = 3_000
"""The most rows of ``members`` of a group that are drawn: the newest ones."""
_OF_SHARE = ("group", "log_offset", "generation", "member", "client_id", "partitions", "fair_share")
_OF_CHANGE = ("group", "log_offset", "is_settled", "append_ts", "until_ts", *model.MemberChange._fields[1:])
_OF_EPOCH = ("group_epoch", "append_ts", *map(model.column_name, model.GroupEpoch._fields[2:]))
_ENDS = frozenset(END_EVENTS)


class MembershipRows(NamedTuple):
    """The members of groups; each field is by group."""

    lives: Mapping[str, list[Row]]
    """The rows of ``members`` of the members that are drawn, newest first."""
    counts: Mapping[str, int]
    """How many members the group ever had, at most COUNTED."""
    shares: Mapping[str, model.GenerationShares]


def read_bands(reader: ArrowTableReader, groups: Collection[str]) -> MembershipRows:
    """Read the members of ``groups``."""
    among = {"group": groups}
    newest = reader.rows("skew", _OF_SHARE, "-log_offset -partitions member", MEMBERS, among=among, of_each="group")
    measures = [Aggregate("log_offset", "max", "log_offset"), Aggregate("generations", "count")]
    order = "-log_offset -generations member"
    counted: dict[str, int] = defaultdict(int)
    drawn: set[tuple[str, str]] = set()
    for row in reader.totals("skew", ["group", "member"], measures, order, COUNTED, among=among, of_each="group"):
        counted[row["group"]] += 1
        if counted[row["group"]] <= MEMBERS:
            drawn.add((row["group"], row["member"]))
    among_drawn = {"group": {group for group, _ in drawn}, "member": {member for _, member in drawn}}
    lives: dict[str, list[Row]] = defaultdict(list)
    for row in reader.rows("members", _OF_CHANGE, "-log_offset member", CHANGES, among=among_drawn, of_each="group"):
        if (row["group"], row["member"]) in drawn:
            lives[row["group"]].append(row)
    return MembershipRows(lives, counted, _shares(newest))


def lives_of(rows: Sequence[Row], span: model.TimeSpan) -> tuple[model.MemberTimeline, ...]:
    """When each member of a group was there within ``span``, from its ``rows`` of ``members``; ordered by when they joined."""
    spans: dict[str, list[model.MembershipSpan]] = defaultdict(list)
    clients: dict[str, str] = {}
    for row in sorted(rows, key=lambda row: row["log_offset"]):
        from_ms = max(row["append_ts"], span.start_ms)
        until_ms = span.end_ms if row["until_ts"] is None else min(row["until_ts"], span.end_ms)
        if row["event"] not in _ENDS and from_ms < until_ms:
            had = (row["partitions"] or 0) + row["revoking"]
            spans[row["member"]].append(model.MembershipSpan(from_ms, until_ms, had, row["is_settled"]))
            clients[row["member"]] = row["client_id"] or ""
    members = [model.MemberTimeline(member, clients[member], _joined(there)) for member, there in spans.items()]
    return tuple(sorted(members, key=lambda one: (one.spans[0].from_ms, one.member)))


def _joined(spans: list[model.MembershipSpan]) -> tuple[model.MembershipSpan, ...]:
    """``spans``, with adjacent ones merged that have the same number of partitions and the same ``is_settled``."""
    made = spans[:1]
    for before, one in pairwise(spans):
        if before.until_ms == one.from_ms and before[2:] == one[2:]:
            made[-1] = made[-1]._replace(until_ms=one.until_ms)
        else:
            made.append(one)
    return tuple(made)


def _shares(rows: Sequence[Row]) -> dict[str, model.GenerationShares]:
    of_group: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if not of_group[row["group"]] or of_group[row["group"]][0]["log_offset"] == row["log_offset"]:
            of_group[row["group"]].append(row)
    return {
        group: model.GenerationShares(
            found[0]["generation"],
            found[0]["fair_share"],
            tuple(model.MemberShare(row["member"], row["client_id"] or "", row["partitions"]) for row in found),
        )
        for group, found in of_group.items()
    }


COMMITS = ("commits", "append_ts", COUNT)
WINDOWS = ("commit_rates", "window_start", Aggregate("count", "sum", "commits"))


def commits_of_all(reader: ArrowTableReader, span: model.TimeSpan, pieces: int) -> model.CommitHistogram:
    """A histogram of the commits of all groups in ``span``, with about ``pieces`` bins."""
    bins, is_fine = _cut(span, pieces, window_ms_of(reader))
    table, time, measure = COMMITS if is_fine else WINDOWS
    return model.CommitHistogram(bins, _counts(bins, reader.binned(table, time, bins, [measure])), table)


def commits_of_each(
    reader: ArrowTableReader, spans: Mapping[str, model.TimeSpan], pieces: int
) -> dict[str, model.CommitHistogram]:
    """A histogram of the commits of each group in its span."""
    window_ms = window_ms_of(reader)
    cuts = {group: _cut(span, pieces, window_ms) for group, span in spans.items()}
    histograms: dict[str, model.CommitHistogram] = {}
    for wants_fine, (table, time, measure) in ((True, COMMITS), (False, WINDOWS)):
        bins = {group: one for group, (one, is_fine) in cuts.items() if is_fine is wants_fine}
        rows = reader.binned(table, time, bins, [measure])
        for group, one in bins.items():
            histograms[group] = model.CommitHistogram(
                one, _counts(one, [row for row in rows if row["group"] == group]), table
            )
    return histograms


def _cut(span: model.TimeSpan, pieces: int, window_ms: int | None) -> tuple[model.TimeBins, bool]:
    """Cut ``span`` into bins. Returns also whether they are narrower than the windows of ``commit_rates``; if not, each bin
    is a whole number of windows."""
    width_ms = (span.end_ms - span.start_ms) // pieces + 1
    if window_ms is None or width_ms < window_ms:
        return model.TimeBins(span.start_ms, width_ms, pieces), True
    start_ms = span.start_ms - span.start_ms % window_ms
    width_ms = -(-width_ms // window_ms) * window_ms
    return model.TimeBins(start_ms, width_ms, (span.end_ms - start_ms) // width_ms + 1), False


def window_ms_of(reader: ArrowTableReader) -> int | None:
    """The width of the windows of ``commit_rates``; None if the table is empty."""
    rows = reader.rows("commit_rates", ["window_start", "window_end"], "", 1)
    return rows[0]["window_end"] - rows[0]["window_start"] if rows else None


def _counts(bins: model.TimeBins, rows: list[Row]) -> tuple[int, ...]:
    counts = [0] * bins.pieces
    for row in rows:
        counts[row["bin"]] = row["count"]
    return tuple(counts)


REBALANCES = 120
"""The most rebalances of a group that are drawn: the newest ones. The time axis begins with the first of them."""
PARTITIONS = 30
"""The most partitions of a group that are drawn: those whose owner changed most often."""
COUNTED = 2_000
"""The most members and the most partitions of a group that are counted, and the most changes of owner that are read."""
LISTED = 10
LISTED_CHANGES = 120
"""The most rows of ``members`` of a group that are listed."""
PIECES = 160
"""The number of bins of a group's histogram of commits."""
SHORTEST_MS = 1_000
"""The shortest time axis of a group."""
_OF_REBALANCE = ("kind", "generation", "at", *model.RebalanceSummary._fields[3:])
_OF_GAP = tuple(map(model.column_name, model.CommitGap._fields))


def details_of(
    reader: ArrowTableReader, groups: Sequence[model.GroupSummary], log: model.TimeSpan | None
) -> tuple[model.GroupDetail, ...]:
    """Build a section for each of ``groups``. ``log`` is the time from the first to the last record of the log."""
    if not groups:
        return ()
    names = [one.group for one in groups]
    rebalances = _rebalances(reader, names)
    epochs = _each(reader, "epochs", ("group", "log_offset", *_OF_EPOCH), "-log_offset", REBALANCES, names)
    counted = {
        table: {
            row["group"]: row["count"]
            for row in reader.totals(table, ["group"], [COUNT], "", len(names), among={"group": names})
        }
        for table in ("epochs", "members")
    }
    window_ms = window_ms_of(reader) or 0
    bands = read_bands(reader, names)
    marks = {
        name: [row["at"] for row in rebalances[name]]
        + [row["append_ts"] for row in (*epochs[name], *bands.lives.get(name, ())[:1])]
        for name in names
    }
    spans = {
        one.group: _span(one, marks[one.group], one.rebalances <= len(rebalances[one.group]), log, window_ms)
        for one in groups
    }
    histograms = commits_of_each(reader, spans, PIECES)
    spans = {group: _trimmed(span, histograms[group], marks[group]) for group, span in spans.items()}
    owned, owned_from = _owned(reader, names)
    storms = _each(reader, "storms", STORM_COLUMNS, f"-from {BY_STORM}", REBALANCES, names)
    lags = _each(reader, "lag", LAG_COLUMNS, BY_LAG, LISTED, names)
    gaps = _each(reader, "commit_gaps", ("group", *_OF_GAP), "-gap_seconds from_ts topic partition", LISTED, names)
    details = []
    for one in groups:
        name, span, shown = one.group, spans[one.group], rebalances[one.group]
        members = lives_of(bands.lives[name], span)
        changes = bands.lives[name][:LISTED_CHANGES]
        partitions, changing = _partitions(owned[name], span)
        shares = bands.shares.get(name)
        details.append(
            model.GroupDetail(
                group=one,
                start_ms=span.start_ms,
                end_ms=span.end_ms,
                rebalances=tuple(
                    model.RebalanceSummary._make(row[column] for column in _OF_REBALANCE) for row in shown
                ),
                rebalances_left_out=max(one.rebalances - len(shown), 0),
                epochs=tuple(
                    model.GroupEpoch(*(row[column] for column in _OF_EPOCH)) for row in reversed(epochs[name])
                ),
                epochs_left_out=counted["epochs"].get(name, 0) - len(epochs[name]),
                members=members,
                members_left_out=max(bands.counts[name] - len(members), 0),
                changes=tuple(
                    model.MemberChange(row["append_ts"], *(row[column] for column in model.MemberChange._fields[1:]))
                    for row in reversed(changes)
                ),
                changes_left_out=counted["members"].get(name, 0) - len(changes),
                commits=histograms[name],
                storms=tuple(storm_of(row) for row in reversed(storms[name]) if row["to"] >= span.start_ms),
                partitions=partitions,
                partitions_left_out=changing - len(partitions),
                owned_from_ms=owned_from.get(name),
                shares=shares,
                shares_left_out=max((_size(shown, shares.generation) or 0) - len(shares.shares), 0) if shares else 0,
                lags=tuple(lag_of(row) for row in lags[name] if row["lag"] is not None),
                lags_left_out=max(one.partitions - len(lags[name]), 0),
                gaps=tuple(model.CommitGap(*(row[column] for column in _OF_GAP)) for row in gaps[name]),
                gaps_left_out=max(one.commit_gaps - len(gaps[name]), 0),
            )
        )
    return tuple(details)


def _each(
    reader: ArrowTableReader,
    table: str,
    columns: Sequence[str],
    order: str,
    limit: int,
    groups: Collection[str],
) -> Mapping[str, list[Row]]:
    """The first ``limit`` rows of each of ``groups``."""
    found: dict[str, list[Row]] = defaultdict(list)
    for row in reader.rows(table, columns, order, limit, among={"group": groups}, of_each="group"):
        found[row["group"]].append(row)
    return found


def _rebalances(reader: ArrowTableReader, groups: Collection[str]) -> Mapping[str, list[Row]]:
    """The newest rebalances of each group, oldest first."""
    columns = ["group", "log_offset", *_OF_REBALANCE]
    found = _each(reader, "rebalances", columns, "-log_offset", REBALANCES, groups)
    return defaultdict(
        list, {group: [row for row in reversed(rows) if row["at"] is not None] for group, rows in found.items()}
    )


def _span(
    group: model.GroupSummary, marks: Sequence[int], is_whole: bool, log: model.TimeSpan | None, window_ms: int
) -> model.TimeSpan:
    """The time axis of a group: from its first activity, or from the first of the drawn ``marks`` unless ``is_whole`` (older
    ones are left out)."""
    times = list(marks)
    if is_whole:
        times += [time for time in (group.first_ms,) if time is not None]
    times += [time + window_ms for time in (group.last_ms,) if time is not None]
    if not times:
        times = [log.start_ms if log else 0]
    # The time of some commits is only known by their window, which may begin before and end after the log does.
    start_ms = max(min(times), log.start_ms) if log else min(times)
    end_ms = min(max(times), log.end_ms) if log else max(times)
    return model.TimeSpan(start_ms, max(end_ms, start_ms + SHORTEST_MS))


def _trimmed(span: model.TimeSpan, histogram: model.CommitHistogram, marks: Sequence[int]) -> model.TimeSpan:
    """``span`` without the empty time at both ends: windows begin before their first commit and end after their last one."""
    busy = [index for index, count in enumerate(histogram.counts) if count]
    starts = [histogram.bins.start_ms + index * histogram.bins.width_ms for index in busy[:1]] + [*marks]
    ends = [histogram.bins.start_ms + (index + 1) * histogram.bins.width_ms for index in busy[-1:]]
    ends += marks
    if not starts:
        return span
    start_ms = max(min(starts), span.start_ms)
    end_ms = max(min(max(ends), span.end_ms), start_ms + SHORTEST_MS)
    return model.TimeSpan(start_ms, end_ms + (end_ms - start_ms) // 40)


def _owned(
    reader: ArrowTableReader, groups: Collection[str]
) -> tuple[Mapping[str, dict[tuple[str, int], list[Row]]], dict[str, int]]:
    """The changes of owner of each partition, by group. Partitions that are not drawn have an empty list. Also the time of the
    oldest change that was read, for groups with more changes than COUNTED."""
    order = "-count topic partition"
    by = ["group", "topic", "partition"]
    found: dict[str, dict[tuple[str, int], list[Row]]] = defaultdict(dict)
    among = {"group": groups}
    drawn: dict[str, set[tuple[str, int]]] = defaultdict(set)
    read: dict[str, int] = defaultdict(int)
    begins: dict[str, int] = {}
    for row in reader.totals("ownership", by, [COUNT], order, COUNTED, among=among, of_each="group"):
        found[row["group"]][row["topic"], row["partition"]] = []
        if len(drawn[row["group"]]) < PARTITIONS:
            drawn[row["group"]].add((row["topic"], row["partition"]))
    topics = {topic for places in drawn.values() for topic, _ in places}
    if topics:
        among = {"group": groups, "topic": topics}
    columns = [*by, "log_offset", "append_ts", "until_ts", "member", "is_revoking"]
    for row in reader.rows("ownership", columns, "-log_offset topic partition", COUNTED, among=among, of_each="group"):
        group, place = row["group"], (row["topic"], row["partition"])
        read[group] += 1
        if read[group] == COUNTED:
            begins[group] = row["append_ts"]
        if place in drawn[group]:
            found[group][place].append(row)
    return found, begins


def _partitions(
    owned: Mapping[tuple[str, int], list[Row]], span: model.TimeSpan
) -> tuple[tuple[model.PartitionTimeline, ...], int]:
    """The owners over time of the partitions that are drawn, and the number of all partitions."""
    made = []
    for topic, partition in sorted(list(owned)[:PARTITIONS]):
        spans = []
        for row in reversed(owned[topic, partition]):
            from_ms = max(row["append_ts"], span.start_ms)
            until_ms = span.end_ms if row["until_ts"] is None else min(row["until_ts"], span.end_ms)
            if from_ms < until_ms:
                spans.append(model.OwnershipSpan(from_ms, until_ms, row["member"], row["is_revoking"]))
        made.append(model.PartitionTimeline(topic, partition, tuple(spans)))
    return tuple(made), len(owned)


def _size(rebalances: Sequence[Row], generation: int) -> int | None:
    """The number of members of ``generation``."""
    return next((row["members_after"] for row in rebalances if row["generation"] == generation), None)
