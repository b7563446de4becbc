"""What happened to one group: who was in it, when it rebalanced and why, when it committed, whose the partitions were."""

from collections.abc import Mapping, Sequence

from groupcoord.pipeline.report.page.chart import ROW, Row, Scale, chart, heat_row, mark, path, stretch
from groupcoord.pipeline.report.page.formatting import amount, left_out, moment, moment_tag, name, number, shortened
from groupcoord.pipeline.report.page.markup import Markup, join, tag
from groupcoord.pipeline.report.page.parts import Cell, Head, counted, figure, table
from groupcoord.pipeline.report.report_model import GroupDetail, MemberTimeline, RebalanceSummary, TimeSpan

COLOURS = 10
COUNTED = 1_900
"""From here on the number of those that are left out is the least that there can be."""
KINDS = (
    ("lost", "left or timed out", "somebody left or timed out"),
    ("step", "second step of a cooperative", "second step of a cooperative rebalance"),
    ("came", "joined", "somebody joined"),
    ("gone", "nobody is in the group", "nobody is in the group"),
    ("vote", "the assignor changed", "the assignor changed"),
)
OTHER = ("else", "", "something else")


def kind_of(cause: str) -> str:
    """What kind of a line stands for ``cause``, which is in words."""
    return next((kind for kind, words, _ in (*KINDS, OTHER) if words in cause))


def timeline(identity: str, detail: GroupDetail) -> Markup:
    """Commits as heat, members as bands, rebalances as lines, storms as shade."""
    scale = Scale(detail.start_ms, detail.end_ms)
    rows = [heat_row(detail.heat, scale)] if detail.heat is not None else []
    colours = colours_of(detail.members)
    rows += [_member(one, scale, colours[one.member]) for one in detail.members]
    tall = ROW * len(rows)
    tables = [detail.heat.table] if detail.heat is not None else []
    modern = detail.group.kind == "consumer"
    tables += ["modern_skew", "modern_rebalances"] if modern else ["skew", "rebalances"]
    shades = [
        tag(
            "rect",
            tag("title", f"a storm: {number(one.rebalances)} rebalances in a row"),
            x=scale.x(one.from_ms),
            y=0,
            width=round(max(scale.x(one.to_ms) - scale.x(one.from_ms), 1.0), 1),
            height=tall,
            class_="storm",
        )
        for one in detail.storms
    ]
    lines = [mark(one.at_ms, scale, tall, f"r-{kind_of(one.likely_cause)}", _said(one)) for one in detail.rebalances]
    notes = [_legend(detail)]
    notes.append(
        left_out(
            detail.members_left_out,
            "members are not drawn, that were in it earlier",
            tables[-2],
            at_least=detail.members_left_out >= COUNTED,
        )
    )
    notes.append(left_out(detail.rebalances_left_out, "rebalances are not drawn, that were earlier", tables[-1]))
    if not detail.members:
        notes.append(tag("p", "No member is known, or what members were given cannot be read.", class_="more"))
    drawn = chart(
        identity,
        "Members, rebalances and commits",
        [*tables, *(["storms"] if shades else [])],
        TimeSpan(detail.start_ms, detail.end_ms),
        rows or [Row(join("rebalances"), join())],
        under=shades,
        over=lines,
        notes=notes,
    )
    return join(drawn, _in_words(detail, tables[-1]), _members_in_words(detail, tables[-2]))


def ownership(identity: str, detail: GroupDetail) -> Markup:
    """Each partition in the colour of who had it."""
    if not detail.partitions:
        return join()
    scale = Scale(detail.start_ms, detail.end_ms)
    colours = colours_of(detail.members)
    clients = {one.member: one.client_id for one in detail.members}
    rows = []
    for one in detail.partitions:
        pieces: dict[str | None, list[str]] = {}
        for tenure in one.tenures:
            tall = 2.0 if tenure.member is None else ROW - 4.0
            piece = stretch(tenure.from_ms, tenure.until_ms, scale, (ROW - tall) / 2, tall)
            pieces.setdefault(tenure.member, []).append(piece)
        place = f"{one.topic}-{one.partition}"
        drawn = [
            path(
                found,
                "nobody" if member is None else colours.get(member, "others"),
                f"{shortened(place)}: {'nobody' if member is None else shortened(clients.get(member) or member)}",
            )
            for member, found in pieces.items()
        ]
        label = join(_label(one.topic, title=place), tag("span", f"-{one.partition}"))
        rows.append(Row(label, join(*drawn)))
    lines = [mark(one.at_ms, scale, ROW * len(rows), "r-thin", _said(one)) for one in detail.rebalances]
    note = left_out(
        detail.partitions_left_out,
        "partitions, that changed hands less often",
        "ownership",
        at_least=detail.partitions_left_out >= COUNTED,
    )
    return chart(
        identity,
        "Whose each partition was",
        ["ownership", "rebalances"],
        TimeSpan(detail.start_ms, detail.end_ms),
        rows,
        over=lines,
        notes=[tag("p", "Colours are those of the members above.", class_="more"), note],
    )


def colours_of(members: Sequence[MemberTimeline]) -> Mapping[str, str]:
    """A colour for each member, the same in all drawings of a group."""
    return {one.member: f"c{index % COLOURS}" for index, one in enumerate(members)}


def _member(one: MemberTimeline, scale: Scale, colour: str) -> Row:
    pieces = []
    for piece in one.presence:
        tall = 3.0 if piece.partitions == 0 else ROW - 5.0
        pieces.append(stretch(piece.from_ms, piece.until_ms, scale, (ROW - tall) / 2, tall))
    most = max(piece.partitions for piece in one.presence)
    least = min(piece.partitions for piece in one.presence)
    had = amount(most, "partitions") if least == most else f"{number(least)} to {amount(most, 'partitions')}"
    until_ms = one.presence[-1].until_ms
    until = "on, not seen leaving" if until_ms >= scale.end_ms else f"to {moment(until_ms)} UTC"
    said = f"{shortened(one.client_id or one.member)}: from {moment(one.presence[0].from_ms)} UTC {until}, {had}"
    return Row(_label(one.client_id or one.member, title=one.member), path(pieces, colour, said))


def _label(said: str, *, title: str | None = None) -> Markup:
    return tag("bdi", shortened(said), title=title or said)


def _said(one: RebalanceSummary) -> str:
    members = f"{number(one.members_before)} → {amount(one.members_after, 'members')}"
    moved = f"{number(one.moved)} of {amount(one.partitions_total, 'partitions')} moved"
    needless = f", {number(one.moved_needlessly)} needlessly" if one.moved_needlessly else ""
    at = moment(one.at_ms, with_ms=True)
    return f"generation {one.generation}, {at} UTC: {shortened(one.likely_cause, 300)}; {members}; {moved}{needless}"


def _legend(detail: GroupDetail) -> Markup:
    seen = {kind_of(one.likely_cause) for one in detail.rebalances}
    entries = [
        tag(
            "li",
            tag(
                "svg", tag("line", x1=0, x2=24, y1=7, y2=7, class_=f"r-{kind}"), width=24, height=14, aria_hidden="true"
            ),
            f" {meaning}",
        )
        for kind, _, meaning in (*KINDS, OTHER)
        if kind in seen
    ]
    if detail.storms:
        shade = tag("rect", x=0, y=0, width=24, height=14, class_="storm")
        entries.append(tag("li", tag("svg", shade, width=24, height=14, aria_hidden="true"), " storm"))
    return tag("ul", *entries, class_="legend") if entries else join()


def _in_words(detail: GroupDetail, from_table: str) -> Markup:
    if not detail.rebalances:
        return join()
    heads = (
        counted("Generation"),
        Head("At", "UTC"),
        Head("Likely cause"),
        counted("Members"),
        counted("Partitions"),
        counted("Moved"),
        counted("Needlessly"),
        counted("Imbalance"),
    )
    rows = [
        (
            figure(one.generation),
            Cell(moment_tag(one.at_ms, with_ms=True), one.at_ms),
            Cell(name(one.likely_cause, 200)),
            figure(one.members_after),
            figure(one.partitions_total),
            figure(one.moved),
            figure(one.moved_needlessly),
            figure(one.imbalance),
        )
        for one in detail.rebalances
    ]
    shown = table("The rebalances that are drawn", [from_table], heads, rows, is_sortable=True)
    return tag("details", tag("summary", f"{amount(len(rows), 'rebalances')} in words"), shown)


def _until(ms: int, end_ms: int) -> Cell:
    return Cell("not seen leaving" if ms >= end_ms else moment_tag(ms), ms)


def _members_in_words(detail: GroupDetail, from_table: str) -> Markup:
    if not detail.members:
        return join()
    heads = (
        Head("Client"),
        Head("Member"),
        Head("From", "UTC"),
        Head("Until", "UTC"),
        counted("Last", "partitions"),
    )
    rows = [
        (
            Cell(name(one.client_id)),
            Cell(name(one.member)),
            Cell(moment_tag(one.presence[0].from_ms), one.presence[0].from_ms),
            _until(one.presence[-1].until_ms, detail.end_ms),
            figure(one.presence[-1].partitions),
        )
        for one in detail.members
    ]
    shown = table("The members that are drawn", [from_table], heads, rows, is_sortable=True)
    return tag("details", tag("summary", f"{amount(len(rows), 'members')} in words"), shown)
