"""A section for each of the most troubled groups."""

from collections.abc import Mapping

from groupcoord.pipeline.report.page.formatting import amount, duration, left_out, moment_tag, name, number
from groupcoord.pipeline.report.page.markup import Markup, join, tag
from groupcoord.pipeline.report.page.parts import Cell, Head, counted, figure, source, table, with_bar
from groupcoord.pipeline.report.page.ranking import lag_table, score_in_words
from groupcoord.pipeline.report.page.timeline import colours_of, ownership, timeline
from groupcoord.pipeline.report.page.what_if import of_group
from groupcoord.pipeline.report.report_model import GroupDetail, Report


def anchors_of(report: Report) -> Mapping[str, str]:
    """Where each group's section is: a name of our own, whatever the group's is."""
    return {detail.group.group: f"g{index}" for index, detail in enumerate(report.details, 1)}


def groups(report: Report) -> Markup:
    """The sections."""
    if not report.details:
        return join()
    rest = report.overview.groups - len(report.details)
    which = (
        f"The {len(report.details):,} most troubled groups; {rest:,} more have no section here, the tables have all of them."
        if rest > 0
        else "All groups."
    )
    anchors = anchors_of(report)
    return tag(
        "section",
        tag("h2", "Group by group"),
        tag("p", which, class_="lead"),
        *(_group(report, detail, anchors[detail.group.group]) for detail in report.details),
        id="details",
    )


def _group(report: Report, detail: GroupDetail, anchor: str) -> Markup:
    one = detail.group
    state = {"Stable": amount(one.members, "members"), "Empty": "without members"}.get(one.state or "", "gone by now")
    said = [join(f"{one.kind}, {state}")]
    if one.protocol:
        said.append(join("; assignor ", name(one.protocol)))
    if one.generation:
        said.append(join(f"; {'assignment epoch' if one.kind == 'consumer' else 'generation'} {one.generation:,}"))
    parts = [
        tag("h3", name(one.group, 120)),
        tag("p", *said, ". ", score_in_words(one), " ", source("group_health"), data_from="group_health"),
        timeline(f"{anchor}-time", detail),
        ownership(f"{anchor}-own", detail),
        _shares(detail),
        _lags(detail),
        _gaps(detail),
        of_group(report.what_if, one.group),
    ]
    return tag("article", *parts, id=anchor)


def _shares(detail: GroupDetail) -> Markup:
    if detail.shares is None:
        return join()
    shares = detail.shares
    colours = colours_of(detail.members)
    highest = max([*(one.partitions for one in shares.shares), shares.fair_share, 1])
    rows = [
        (
            Cell(name(one.client_id), one.client_id),
            Cell(name(one.member), one.member),
            with_bar(one.partitions, highest, mark=shares.fair_share / highest, kind=colours.get(one.member, "others")),
        )
        for one in shares.shares
    ]
    heads = (Head("Client"), Head("Member"), counted("Has", "partitions"))
    from_table = "modern_skew" if detail.group.kind == "consumer" else "skew"
    caption = (
        f"Who has how much in generation {number(shares.generation)}; "
        f"a fair share (the line) is {shares.fair_share:,.2f} partitions"
    )
    more = left_out(detail.shares_left_out, "members, that have no more", from_table)
    return join(table(caption, [from_table], heads, rows, is_sortable=True), more)


def _lags(detail: GroupDetail) -> Markup:
    if not detail.lags:
        return join()
    more = left_out(detail.lags_left_out, "partitions with shorter lags, or unknown ones", "lag")
    return join(lag_table("Its longest lags", detail.lags, None), more)


def _gaps(detail: GroupDetail) -> Markup:
    if not detail.gaps:
        return join()
    heads = (
        Head("Topic"),
        counted("Partition"),
        Head("From", "UTC"),
        Head("To", "UTC"),
        Head("For"),
        Head("Usual"),
    )
    rows = [
        (
            Cell(name(one.topic), one.topic),
            figure(one.partition),
            Cell(moment_tag(one.from_ms), one.from_ms),
            Cell(moment_tag(one.to_ms) if one.to_ms is not None else "end of the log", one.to_ms),
            Cell(duration(one.gap_seconds * 1000), one.gap_seconds),
            Cell(duration(one.usual_seconds * 1000), one.usual_seconds),
        )
        for one in detail.gaps
    ]
    shown = table("Where its commits stopped for longest", ["commit_gaps"], heads, rows, is_sortable=True)
    return join(shown, left_out(detail.gaps_left_out, "pauses that were shorter", "commit_gaps"))
