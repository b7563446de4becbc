"""The geometry of the drawings: rows over a horizontal time axis, as shapes that the templates write as SVG.

A drawing is stretched sideways and never up, so text, which is all outside of it, has the same size on every screen.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from groupcoord.pipeline.report import report_model as model
from groupcoord.pipeline.report.formatting import amount, axis_label, moment, number, shortened

WIDTH = 1000
ROW_HEIGHT = 18
BAR_ROW_HEIGHT = 48
MEMBER_COLOURS = 10
AT_LEAST_FROM = 1_900
"""A larger number of things left out is a lower bound, because no more are counted."""
_TICKS = 5
_FINE_SPAN_MS = 20_000
"""Times on shorter drawings have milliseconds."""

CAUSE_LINES = {
    "lost": "somebody left or timed out",
    "step": "second step of a cooperative rebalance",
    "came": "somebody joined",
    "gone": "nobody is in the group",
    "vote": "the assignor changed",
    "kind": "the group became one of the other protocol",
    "else": "something else",
}
"""The kinds of lines that mark rebalances, with their meaning, in the order of the legend."""
_LINE_OF_CAUSE = {
    "group_emptied": "lost",
    "members_left": "lost",
    "members_joined_and_left": "lost",
    "cooperative_second_step": "step",
    "group_started": "came",
    "group_refilled": "came",
    "members_joined": "came",
    "empty_join": "gone",
    "assignor_changed": "vote",
    "became_consumer": "kind",
    "became_classic": "kind",
    "group_ended": "gone",
}


class Shape(NamedTuple):
    """A rectangle, or a path if ``path`` is set; ``title`` says what it shows, ``kind`` is its CSS class."""

    kind: str
    title: str
    x: float = 0
    y: float = 0
    width: float = 0
    height: float = 0
    opacity: float | None = None
    path: str | None = None


class VerticalLine(NamedTuple):
    """A line across all rows."""

    x: float
    kind: str
    title: str


class ChartRow(NamedTuple):
    """One row and its label. A label with a ``title`` is a name that a user chose; ``suffix`` follows it."""

    label: str
    shapes: Sequence[Shape] = ()
    title: str | None = None
    suffix: str = ""


@dataclass(frozen=True, kw_only=True)
class Chart:
    """One drawing. ``identity`` is unique on the page, ``tables`` are where the numbers come from."""

    identity: str
    title: str
    tables: Sequence[str]
    start_ms: int
    end_ms: int
    rows: Sequence[ChartRow]
    row_height: int = ROW_HEIGHT
    shades: Sequence[Shape] = ()
    lines: Sequence[VerticalLine] = ()

    @property
    def height(self) -> int:
        """The height of all rows."""
        return self.row_height * len(self.rows)

    @property
    def interval(self) -> str:
        """From when to when, as text."""
        with_ms = self.end_ms - self.start_ms < _FINE_SPAN_MS
        return f"{moment(self.start_ms, with_ms=with_ms)} to {moment(self.end_ms, with_ms=with_ms)} UTC"

    @property
    def ticks(self) -> list[str]:
        """The labels of the axis."""
        span = self.end_ms - self.start_ms
        return [axis_label(self.start_ms + span * index // (_TICKS - 1), span) for index in range(_TICKS)]


class TimeScale(NamedTuple):
    """From times to places."""

    start_ms: int
    end_ms: int

    def x(self, ms: int) -> float:
        """The place of ``ms``, to a tenth."""
        place = (ms - self.start_ms) / max(self.end_ms - self.start_ms, 1) * WIDTH
        return round(max(0.0, min(place, float(WIDTH))), 1)

    def segment(self, from_ms: int, until_ms: int, height: float) -> str:
        """A span of time in the middle of a row, as part of a path."""
        left = self.x(from_ms)
        wide = max(round(self.x(until_ms) - left, 1), 0.4)
        return f"M{left:g},{(ROW_HEIGHT - height) / 2:g}h{wide:g}v{height:g}h-{wide:g}z"


def cause_line(cause_kind: str) -> str:
    """The kind of line (a key of CAUSE_LINES) for a rebalance with this ``cause_kind``."""
    return _LINE_OF_CAUSE.get(cause_kind, "else")


def member_colours(members: Sequence[model.MemberTimeline]) -> Mapping[str, str]:
    """Member id → CSS class of its colour, the same in all drawings of a group."""
    return {one.member: f"c{index % MEMBER_COLOURS}" for index, one in enumerate(members)}


def activity_chart(overview: model.Overview) -> Chart | None:
    """Rebalances and commits of all groups over time; None if no record has a time."""
    activity = overview.activity
    if activity is None:
        return None
    bins, commits = activity.bins, activity.commits
    scale = TimeScale(bins.start_ms, bins.end_ms)
    return Chart(
        identity="course",
        title="Rebalances and commits of all groups",
        tables=["rebalances", "modern_rebalances", commits.table],
        start_ms=bins.start_ms,
        end_ms=bins.end_ms,
        rows=[
            _bars_row(activity.rebalances, bins, scale, "rebalances", "bar-r"),
            _bars_row(commits.counts, commits.bins, scale, "commits", "bar"),
        ],
        row_height=BAR_ROW_HEIGHT,
    )


def timeline_chart(detail: model.GroupDetail, identity: str) -> Chart:
    """What happened to one group: commits by darkness, members as bars, rebalances as lines, storms as shades."""
    scale = TimeScale(detail.start_ms, detail.end_ms)
    rows = [_histogram_row(detail.commits, scale)] if detail.commits is not None else []
    colours = member_colours(detail.members)
    rows += [_reconciliation_row(detail.epochs, scale)] if detail.epochs else []
    rows += [_member_row(one, scale, colours[one.member]) for one in detail.members]
    rows = rows or [ChartRow("rebalances")]
    shades = [
        Shape(
            "storm",
            f"a storm: {number(one.rebalances)} rebalances in a row",
            x=scale.x(one.from_ms),
            width=round(max(scale.x(one.to_ms) - scale.x(one.from_ms), 1.0), 1),
            height=ROW_HEIGHT * len(rows),
        )
        for one in detail.storms
    ]
    tables = [detail.commits.table] if detail.commits is not None else []
    tables += [*detail.tables_of_members, *detail.tables_of_rebalances, *(["storms"] if shades else [])]
    return Chart(
        identity=identity,
        title="Members, epochs and commits" if detail.epochs else "Members, rebalances and commits",
        tables=tables,
        start_ms=detail.start_ms,
        end_ms=detail.end_ms,
        rows=rows,
        shades=shades,
        lines=_lines(detail, scale),
    )


def ownership_chart(detail: model.GroupDetail, identity: str) -> Chart | None:
    """Each partition in the colour of its owner; None if no partition has a known owner."""
    if not detail.partitions:
        return None
    scale = TimeScale(detail.start_ms, detail.end_ms)
    colours = member_colours(detail.members)
    clients = {one.member: one.client_id for one in detail.members}
    rows = []
    for one in detail.partitions:
        segments: dict[tuple[str | None, bool], list[str]] = {}
        for span in one.spans:
            height = 2.0 if span.member is None else 6.0 if span.is_revoking else ROW_HEIGHT - 4.0
            drawn = scale.segment(span.from_ms, span.until_ms, height)
            segments.setdefault((span.member, span.is_revoking), []).append(drawn)
        place = f"{one.topic}-{one.partition}"
        shapes = [
            Shape(
                "nobody" if member is None else colours.get(member, "others"),
                f"{shortened(place)}: {'nobody' if member is None else shortened(clients.get(member) or member)}"
                + (", which is to give it back" if is_revoking else ""),
                path="".join(found),
            )
            for (member, is_revoking), found in segments.items()
        ]
        rows.append(ChartRow(shortened(one.topic), shapes, title=place, suffix=f"-{one.partition}"))
    return Chart(
        identity=identity,
        title="Whose each partition was",
        tables=[*detail.tables_of_owners, *detail.tables_of_rebalances],
        start_ms=detail.start_ms,
        end_ms=detail.end_ms,
        rows=rows,
        lines=_lines(detail, scale, "thin"),
    )


def _lines(detail: model.GroupDetail, scale: TimeScale, kind: str | None = None) -> list[VerticalLine]:
    """A line for each rebalance; in a group of KIP-848 for each epoch, of which not each has a target assignment."""
    shown = [one for one in detail.rebalances if not (one.is_target and detail.epochs)]
    return _rebalance_lines(shown, scale, kind) + [
        VerticalLine(scale.x(one.at_ms), f"r-{kind or cause_line(one.cause_kind)}", _epoch_text(one))
        for one in detail.epochs
    ]


def _epoch_text(one: model.GroupEpoch) -> str:
    at = moment(one.at_ms, with_ms=True)
    if one.group_epoch is None:
        return f"{at} UTC: {one.cause}"
    text = f"epoch {one.group_epoch}, {at} UTC: {shortened(one.cause, 300)}; {amount(one.members, 'members')}"
    if one.assigned_ms is None:
        return f"{text}; no target assignment was made for it"
    return f"{text}; {number(one.to_revoke)} to give back, {amount(one.to_assign, 'partitions')} to get"


def _reconciliation_row(epochs: Sequence[model.GroupEpoch], scale: TimeScale) -> ChartRow:
    """How long each epoch took: thin until there was a target assignment, then thick until all members had theirs."""
    shapes = []
    ends = [one.at_ms for one in epochs[1:]] + [scale.end_ms]
    for one, next_ms in zip(epochs, ends, strict=True):
        if one.group_epoch is None or not one.members:
            continue
        assigned_ms = next_ms if one.assigned_ms is None else one.assigned_ms
        until_ms = next_ms if one.reconciled_ms is None else one.reconciled_ms
        said = f"epoch {one.group_epoch}: "
        if assigned_ms > one.at_ms:
            path = scale.segment(one.at_ms, assigned_ms, 3.0)
            shapes.append(Shape("heat", f"{said}waits for a target assignment", path=path))
        if until_ms > assigned_ms:
            last = "all have their target" if one.reconciled_ms is not None else "the next epoch came before all had it"
            took = f"members change over for {number(until_ms - assigned_ms)} ms, then {last}"
            path = scale.segment(assigned_ms, until_ms, ROW_HEIGHT - 5.0)
            shapes.append(Shape("heat", f"{said}{took}", path=path))
    return ChartRow("reconciling", shapes)


def _rebalance_lines(
    rebalances: Iterable[model.RebalanceSummary], scale: TimeScale, kind: str | None = None
) -> list[VerticalLine]:
    return [
        VerticalLine(scale.x(one.at_ms), f"r-{kind or cause_line(one.cause_kind)}", _rebalance_text(one))
        for one in rebalances
    ]


def _rebalance_text(one: model.RebalanceSummary) -> str:
    members = f"{number(one.members_before)} → {amount(one.members_after, 'members')}"
    moved = f"{number(one.moved)} of {amount(one.partitions_total, 'partitions')} moved"
    needless = f", {number(one.moved_needlessly)} needlessly" if one.moved_needlessly else ""
    at = moment(one.at_ms, with_ms=True)
    return f"generation {one.generation}, {at} UTC: {shortened(one.likely_cause, 300)}; {members}; {moved}{needless}"


def _histogram_row(histogram: model.CommitHistogram, scale: TimeScale) -> ChartRow:
    """Commits as rectangles that are darker the more commits there are."""
    highest = max(histogram.counts, default=0)
    shapes = []
    for from_ms, until_ms, count in _counted(histogram.counts, histogram.bins):
        left, right = scale.x(from_ms), scale.x(until_ms)
        if right > left:
            opacity = round(0.15 + 0.85 * (count / highest) ** 0.5, 2)
            title = _count_text(count, "commits", from_ms)
            shapes.append(Shape("heat", title, left, 2, round(right - left, 1), ROW_HEIGHT - 4, opacity))
    return ChartRow("commits", shapes)


def _bars_row(counts: Sequence[int], bins: model.TimeBins, scale: TimeScale, unit: str, kind: str) -> ChartRow:
    """Counts as bars."""
    highest = max(counts, default=0)
    shapes = []
    for from_ms, until_ms, count in _counted(counts, bins):
        left, right = scale.x(from_ms), scale.x(until_ms)
        tall = round(max(1.0, count / highest * (BAR_ROW_HEIGHT - 4)), 1)
        width = round(max(right - left, 0.5), 1)
        shapes.append(
            Shape(kind, _count_text(count, unit, from_ms), left, round(BAR_ROW_HEIGHT - tall, 1), width, tall)
        )
    return ChartRow(unit, shapes)


def _counted(counts: Sequence[int], bins: model.TimeBins) -> Iterable[tuple[int, int, int]]:
    """The bins that are not empty: from when, until when, and the count."""
    for index, count in enumerate(counts):
        if count:
            from_ms = bins.start_ms + index * bins.width_ms
            yield from_ms, from_ms + bins.width_ms, count


def _count_text(count: int, unit: str, from_ms: int) -> str:
    return f"{amount(count, unit)} from {moment(from_ms, with_ms=True)} UTC on"


def _member_row(one: model.MemberTimeline, scale: TimeScale, colour: str) -> ChartRow:
    segments: dict[bool, list[str]] = {}
    for span in one.spans:
        height = 3.0 if span.partitions == 0 else ROW_HEIGHT - 5.0
        segments.setdefault(span.is_settled, []).append(scale.segment(span.from_ms, span.until_ms, height))
    most, least = (pick(span.partitions for span in one.spans) for pick in (max, min))
    had = amount(most, "partitions") if least == most else f"{number(least)} to {amount(most, 'partitions')}"
    until_ms = one.spans[-1].until_ms
    until = "on, not seen leaving" if until_ms >= scale.end_ms else f"to {moment(until_ms)} UTC"
    name = shortened(one.client_id or one.member)
    title = f"{name}: from {moment(one.spans[0].from_ms)} UTC {until}, {had}"
    shapes = [
        Shape(colour, title, path="".join(found))
        if is_settled
        else Shape(colour, f"{title}; here away, or not yet with what it is to have", path="".join(found), opacity=0.4)
        for is_settled, found in segments.items()
    ]
    return ChartRow(name, shapes, title=one.member)
