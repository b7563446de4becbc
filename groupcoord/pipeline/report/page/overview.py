"""The first screen: what was read, what happened, and what the log does not know any more."""

from groupcoord.pipeline.report.page.chart import TALL, Scale, bars_row, chart
from groupcoord.pipeline.report.page.formatting import amount, duration, moment_tag, name, number
from groupcoord.pipeline.report.page.markup import Markup, join, tag
from groupcoord.pipeline.report.page.parts import Cell, Head, counted, source, table, with_bar
from groupcoord.pipeline.report.report_model import Overview, Report, TimeSpan


def overview(report: Report) -> Markup:
    """Figures, and when it was."""
    of = report.overview
    needless = f"{number(of.moved_needlessly)} of them needlessly"
    hidden = (
        f"{amount(of.hidden_generations, 'generations')} between them left no record" if of.hidden_generations else ""
    )
    read = f"of {amount(of.log_partitions, 'partitions')} of the log"
    facts = (
        _fact("Records read", number(of.records), read, "record_counts", "log_partitions"),
        _fact("Groups", number(of.groups), _states(of), "group_health"),
        _fact("Commits", number(of.commits), f"for {amount(of.partitions, 'partitions')}", "commit_rates", "lag"),
        _fact("Rebalances", number(of.rebalances), hidden, "rebalances", "modern_rebalances"),
        _fact("Partitions moved", number(of.moved), needless, "rebalances", "modern_rebalances"),
        _fact("Storms", number(of.storms), "of five rebalances or more in a row", "storms"),
        _fact("Commits stopped", number(of.commit_gaps), "times, far longer than usual", "commit_gaps"),
        _fact("Odd commits", number(of.zombies), "as if by who had lost the partition", "zombies"),
        _lag(of),
    )  # fmt: skip
    return tag(
        "section",
        tag("h2", "Overview"),
        _read(report),
        tag("dl", *facts, class_="facts"),
        _course(of),
        _causes(report),
        id="overview",
    )


def _read(report: Report) -> Markup:
    of, run = report.overview, report.run
    parts: list[str] = [tag("p", "Read from ", name(run.source, 120), "."), _times(of)]
    if run.as_of is not None:
        parts.append(tag("p", f"As of {run.as_of}: later records do not count."))
    return tag("div", *parts, class_="lead", data_from="log_partitions")


def _times(of: Overview) -> Markup:
    if of.from_ms is None or of.to_ms is None:
        return tag("p", "No record has a time.")
    lead = (
        "The log is from ",
        moment_tag(of.from_ms),
        " to ",
        moment_tag(of.to_ms),
        f" UTC: {duration(of.to_ms - of.from_ms)}. ",
    )
    if not of.missing:
        return tag("p", *lead, "History is whole: no offset is missing. ", source("log_partitions"))
    return tag(
        "p",
        *lead,
        tag("strong", "History is whole from ", moment_tag(of.whole_from_ms), " UTC on"),
        f"; before that, {amount(of.missing, 'offsets')} have no record: compacted away, or markers and aborted records of "
        "transactions. ",
        source("log_partitions"),
    )


def _states(of: Overview) -> str:
    empty = of.groups - of.groups_with_members - of.groups_gone
    gone = f", {number(of.groups_gone)} gone" if of.groups_gone else ""
    return f"{number(of.groups_with_members)} with members, {number(empty)} without{gone}"


def _lag(of: Overview) -> Markup:
    if of.lag is None:
        return _fact("Lag", number(None), "the ends of topics are not known", "lag")
    return _fact("Lag", number(of.lag), f"records; {amount(of.late_partitions, 'partitions')} not OK", "lag")


def _fact(title: str, value: str, more: str, *tables: str) -> Markup:
    return tag(
        "div",
        tag("dt", title),
        tag("dd", tag("b", value), tag("span", more, class_="more") if more else "", source(*tables)),
        data_from=" ".join(tables),
    )


def _course(of: Overview) -> Markup:
    if of.course is None or of.from_ms is None or of.to_ms is None:
        return join()
    bins, heat = of.course.bins, of.course.heat
    scale = Scale(bins.start_ms, bins.end_ms)
    rows = (
        bars_row(of.course.rebalances, bins, scale, "rebalances", "bar-r"),
        bars_row(heat.commits, heat.bins, scale, "commits", "bar"),
    )
    highest = (
        f"The highest bars are {amount(max(of.course.rebalances, default=0), 'rebalances')} in "
        f"{duration(bins.width_ms)} and {amount(max(heat.commits, default=0), 'commits')} in {duration(heat.bins.width_ms)}."
    )
    return chart(
        "course",
        "Rebalances and commits of all groups",
        ["rebalances", "modern_rebalances", heat.table],
        TimeSpan(bins.start_ms, bins.end_ms),
        rows,
        notes=[tag("p", highest, class_="more")],
        row=TALL,
    )


def _causes(report: Report) -> Markup:
    if not report.causes:
        return join()
    highest = max(one.count for one in report.causes)
    rows = [(Cell(name(one.what, 160), one.what), with_bar(one.count, highest)) for one in report.causes]
    heads = (Head("Likely cause"), counted("Rebalances"))
    return table("Why groups rebalanced: the most frequent causes", ["rebalances"], heads, rows, is_sortable=True)
