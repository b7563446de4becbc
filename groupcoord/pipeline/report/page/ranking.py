"""All groups, the troubled ones first, and how the score comes about; storms and lags of the whole cluster."""

from collections.abc import Mapping

from groupcoord.pipeline.health_symptoms import SYMPTOMS
from groupcoord.pipeline.report.page.formatting import left_out, moment_tag, name, number
from groupcoord.pipeline.report.page.markup import Markup, tag
from groupcoord.pipeline.report.page.parts import Cell, Head, counted, figure, source, table, with_bar
from groupcoord.pipeline.report.report_model import GroupSummary, PartitionLag, RebalanceStorm, Report


def ranking(report: Report, anchors: Mapping[str, str]) -> Markup:
    """The table of groups. ``anchors`` are the sections that some of them have."""
    heads = (
        Head("Group"),
        counted("Score", "points"),
        Head("Kind"),
        Head("State"),
        counted("Members"),
        counted("Rebalances"),
        counted("Storms"),
        counted("Moved", "partitions"),
        counted("Needlessly", "partitions"),
        counted("Stopped", "pauses"),
        counted("Odd", "commits"),
        counted("Lag", "records"),
        counted("Not OK", "partitions"),
        counted("Commits"),
        Head("Last seen", "UTC"),
    )
    highest = max((one.score for one in report.groups), default=0.0)
    rows = [_row(one, highest, anchors.get(one.group)) for one in report.groups]
    body = (
        table("Groups by trouble", ["group_health"], heads, rows, is_sortable=True)
        if rows
        else _none("groups", "group_health")
    )
    return tag(
        "section",
        tag("h2", "Groups by trouble"),
        tag("div", *_explained(), class_="lead"),
        body,
        left_out(report.groups_left_out, "groups with lower scores", "group_health"),
        id="groups",
    )


def storms(report: Report, anchors: Mapping[str, str]) -> Markup:
    """The largest storms."""
    heads = (
        Head("Group"),
        Head("From", "UTC"),
        Head("To", "UTC"),
        counted("Rebalances"),
        counted("Without a record", "generations"),
        Head("Members", "lowest to highest"),
        counted("Moved", "partitions"),
        Head("Likely causes"),
    )
    body = (
        table(
            "The largest storms",
            ["storms"],
            heads,
            [_storm(one, anchors.get(one.group)) for one in report.storms],
            is_sortable=True,
        )
        if report.storms
        else _none("storms", "storms")
    )
    return tag(
        "section",
        tag("h2", "Storms"),
        tag("p", "Five rebalances or more of one group, none more than a minute after the one before.", class_="lead"),
        body,
        left_out(report.storms_left_out, "storms with fewer rebalances", "storms"),
        id="storms",
    )


def lag(report: Report, anchors: Mapping[str, str]) -> Markup:
    """How far behind groups are: by status, and the worst partitions."""
    heads = (Head("Status"), counted("Partitions"), counted("Lag", "records"))
    statuses = [
        (Cell(one.status or "unknown: where the topic ends is not known"), figure(one.partitions), figure(one.lag))
        for one in report.statuses
    ]
    parts = (
        [table("Partitions by status", ["lag"], heads, statuses)] if statuses else [_none("committed offsets", "lag")]
    )
    if report.lags:
        parts.append(lag_table("The longest lags", report.lags, anchors))
    said = (
        "By Burrow's published rules, from the last ten commits: WARN: lag never fell; STOP: no commit for longer than these "
        "ten took; STALL: commits, but of the same offset; REWIND: an offset went back."
    )
    return tag("section", tag("h2", "PartitionLag"), tag("p", said, class_="lead"), *parts, id="lag")


def lag_table(caption: str, lags: tuple[PartitionLag, ...], anchors: Mapping[str, str] | None) -> Markup:
    """Partitions with their lags; without ``anchors``, of one group."""
    heads = (
        *([Head("Group")] if anchors is not None else []),
        Head("Topic"),
        counted("Partition"),
        counted("Lag", "records"),
        Head("Status"),
        counted("Committed", "offset"),
        counted("End", "offset"),
        Head("Last commit", "UTC"),
    )
    highest = max((one.lag or 0 for one in lags), default=0)
    rows = [
        (
            *([_linked(one.group, anchors.get(one.group))] if anchors is not None else []),
            Cell(name(one.topic), one.topic),
            figure(one.partition),
            with_bar(one.lag, highest),
            Cell(one.status or "unknown"),
            figure(one.committed_offset),
            figure(one.end_offset),
            Cell(moment_tag(one.last_commit_ms), one.last_commit_ms),
        )
        for one in lags
    ]
    return table(caption, ["lag"], heads, rows, is_sortable=True)


def score_in_words(group: GroupSummary) -> str:
    """Which symptom gives how much of the score."""
    parts = [
        f"{one.meaning} {group.points[one.column]:,.1f} ({_times(getattr(group, one.column))})"
        for one in SYMPTOMS
        if group.points[one.column]
    ]
    return (
        f"Score {group.score:,.1f}: {', '.join(parts)}."
        if parts
        else f"Score {group.score:,.1f}: nothing is wrong with it."
    )


def _times(count: int) -> str:
    return "seen once" if count == 1 else f"seen {count:,} times"


def _explained() -> tuple[Markup, ...]:
    heads = (
        Head("Symptom"),
        counted("Seen once", "points"),
        counted("Three times", "points"),
        Head("Counted in"),
    )
    rows = [
        (Cell(one.meaning), figure(one.points), figure(2 * one.points), Cell(tag("code", one.table)))
        for one in SYMPTOMS
    ]
    rule = tag(
        "p",
        "The score says what to look at first. Each symptom gives its points times log₂(1 + how often it was seen), so that "
        "one of many kinds of trouble cannot hide the others; the score is their sum. It is a rule of thumb. ",
        source("group_health"),
    )
    return rule, tag(
        "details", tag("summary", "What each symptom gives"), table("Points", ["group_health"], heads, rows)
    )


def _row(one: GroupSummary, highest: float, anchor: str | None) -> tuple[Cell, ...]:
    return (
        _linked(one.group, anchor),
        Cell(with_bar(one.score, highest).shown, one.score),
        Cell(one.kind),
        Cell(one.state or "gone"),
        figure(one.members),
        figure(one.rebalances),
        figure(one.storms),
        figure(one.moved),
        figure(one.moved_needlessly),
        figure(one.commit_gaps),
        figure(one.zombies),
        figure(one.lag),
        figure(one.late_partitions),
        figure(one.commits),
        Cell(moment_tag(one.last_ms), one.last_ms),
    )


def _storm(one: RebalanceStorm, anchor: str | None) -> tuple[Cell, ...]:
    causes = "; ".join(one.likely_causes[:3])
    more = f"; and {len(one.likely_causes) - 3:,} others" if len(one.likely_causes) > 3 else ""
    return (
        _linked(one.group, anchor),
        Cell(moment_tag(one.from_ms), one.from_ms),
        Cell(moment_tag(one.to_ms), one.to_ms),
        figure(one.rebalances),
        figure(one.hidden_generations),
        Cell(f"{number(one.members_lowest)} to {number(one.members_highest)}"),
        figure(one.moved),
        Cell(name(f"{causes}{more}", 240)),
    )


def _linked(group: str, anchor: str | None) -> Cell:
    said = name(group)
    return Cell(tag("a", said, href=f"#{anchor}") if anchor else said, group)


def _none(what: str, from_table: str) -> Markup:
    return tag("p", f"There are no {what}. ", source(from_table), class_="more", data_from=from_table)
