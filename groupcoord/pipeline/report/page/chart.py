"""Drawings whose horizontal axis is time: rows with labels beside them, as wide as the page lets them be.

The drawing is stretched sideways and never up, so that text, which is all outside of it, has one size on every screen.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from groupcoord.pipeline.report.page.formatting import amount, moment, on_axis
from groupcoord.pipeline.report.page.markup import Markup, join, tag
from groupcoord.pipeline.report.page.parts import source, svg_line
from groupcoord.pipeline.report.report_model import CommitHistogram, TimeSpan
from groupcoord.pipeline.report.table_reader import TimeBins

WIDTH = 1000
ROW = 18
"""So high is a row with its label."""
TALL = 48
"""So high is one with bars."""
_TICKS = 5


class Row(NamedTuple):
    """One row: its label, and what is drawn in it, from 0 to ROW."""

    label: Markup
    drawing: Markup


class Scale(NamedTuple):
    """From moments to places."""

    start_ms: int
    end_ms: int

    def x(self, ms: int) -> float:
        """Where ``ms`` is, to a tenth of a thousandth of the width."""
        place = (ms - self.start_ms) / max(self.end_ms - self.start_ms, 1) * WIDTH
        return round(max(0.0, min(place, float(WIDTH))), 1)


def chart(
    identity: str,
    title: str,
    tables: Sequence[str],
    span: TimeSpan,
    rows: Sequence[Row],
    *,
    over: Iterable[str] = (),
    under: Iterable[str] = (),
    notes: Sequence[str] = (),
    row: int = ROW,
) -> Markup:
    """A figure. ``over`` and ``under`` are drawn across all rows, each of which is ``row`` high; ``identity`` is of this figure
    alone."""
    height = row * len(rows)
    drawn = [
        tag("g", one.drawing, transform=f"translate(0 {index * row})" if index else None)
        for index, one in enumerate(rows)
    ]
    drawing = tag(
        "svg",
        tag("title", f"{title}, {_between(span)}", id=f"{identity}-t"),
        *under,
        *drawn,
        *over,
        viewBox=f"0 0 {WIDTH} {height}",
        height=height,
        preserveAspectRatio="none",
        role="img",
        aria_labelledby=f"{identity}-t",
        data_tips=f"{identity}-tip",
    )
    labels = tag("ul", *(tag("li", one.label) for one in rows), class_="labels" if row == ROW else "labels tall")
    ticks = [span.start_ms + (span.end_ms - span.start_ms) * index // (_TICKS - 1) for index in range(_TICKS)]
    axis = tag("div", *(tag("span", on_axis(ms, span.end_ms - span.start_ms)) for ms in ticks), class_="axis")
    return tag(
        "figure",
        tag("figcaption", tag("b", title), f" {_between(span)} ", source(*tables)),
        tag("div", labels, tag("div", drawing, axis, class_="drawing"), class_="chart"),
        tag("output", "", id=f"{identity}-tip", class_="tip"),
        *notes,
        data_from=" ".join(tables),
    )


def heat_row(heat: CommitHistogram, scale: Scale, label: str = "commits") -> Row:
    """Commits as pieces that are the darker the more there are."""
    highest = max(heat.commits, default=0)
    pieces = []
    for index, count in enumerate(heat.commits):
        if not count:
            continue
        from_ms = heat.bins.start_ms + index * heat.bins.width_ms
        left, right = scale.x(from_ms), scale.x(from_ms + heat.bins.width_ms)
        if right > left:
            said = f"{amount(count, label)} from {moment(from_ms, with_ms=True)} UTC on"
            opacity = round(0.15 + 0.85 * (count / highest) ** 0.5, 2)
            pieces.append(_piece(left, 2, right - left, ROW - 4, "heat", said, opacity))
    return Row(join(label), join(*pieces))


def bars_row(counts: Sequence[int], bins: TimeBins, scale: Scale, label: str, kind: str) -> Row:
    """How many there were in each piece, as bars in a row that is TALL."""
    highest = max(counts, default=0)
    pieces = []
    for index, count in enumerate(counts):
        if count:
            from_ms = bins.start_ms + index * bins.width_ms
            left, right = scale.x(from_ms), scale.x(from_ms + bins.width_ms)
            tall = round(max(1.0, count / highest * (TALL - 4)), 1)
            said = f"{amount(count, label)} from {moment(from_ms, with_ms=True)} UTC on"
            pieces.append(_piece(left, TALL - tall, max(right - left, 0.5), tall, kind, said, None))
    return Row(join(label), join(*pieces))


def stretch(from_ms: int, until_ms: int, scale: Scale, top: float, tall: float) -> str:
    """A piece of a row, as part of a path."""
    left = scale.x(from_ms)
    wide = max(round(scale.x(until_ms) - left, 1), 0.4)
    return f"M{left:g},{top:g}h{wide:g}v{tall:g}h-{wide:g}z"


def path(pieces: Iterable[str], kind: str, said: str) -> Markup:
    """All pieces of one thing, with what it is."""
    return tag("path", tag("title", said), d="".join(pieces), class_=kind)


def mark(ms: int, scale: Scale, height: float, kind: str, said: str) -> Markup:
    """A line across all rows at ``ms``."""
    x = scale.x(ms)
    return tag("g", tag("title", said), svg_line(x, 0, height, kind), data_x=x, class_="mark")


def _piece(left: float, top: float, wide: float, tall: float, kind: str, said: str, opacity: float | None) -> Markup:
    return tag(
        "rect",
        tag("title", said),
        x=round(left, 1),
        y=round(top, 1),
        width=round(wide, 1),
        height=tall,
        class_=kind,
        fill_opacity=opacity,
    )


def _between(span: TimeSpan) -> str:
    with_ms = span.end_ms - span.start_ms < 20_000
    return f"{moment(span.start_ms, with_ms=with_ms)} to {moment(span.end_ms, with_ms=with_ms)} UTC"
