"""What all sections are made of: tables with a caption that says where their numbers are from, bars, figures."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from groupcoord.pipeline.report.page.formatting import number
from groupcoord.pipeline.report.page.markup import Markup, join, tag


class Head(NamedTuple):
    """The head of a column; numbers are set to the right."""

    title: str
    unit: str = ""
    is_number: bool = False


class Cell(NamedTuple):
    """What a cell shows, and what it is sorted by."""

    shown: str
    value: int | float | str | None = None


def counted(title: str, unit: str = "") -> Head:
    """The head of a column of numbers."""
    return Head(title, unit, is_number=True)


def figure(value: float | None) -> Cell:
    """A cell with a number."""
    return Cell(number(value), -1 if value is None else value)


def source(*tables: str) -> Markup:
    """Where numbers are from."""
    names = [tag("code", table) for table in tables]
    parts: list[str] = ["from table " if len(tables) == 1 else "from tables "]
    for index, one in enumerate(names):
        parts += [", " if index else "", one]
    return tag("span", *parts, class_="from")


def table(
    caption: str,
    tables: Sequence[str],
    heads: Sequence[Head],
    rows: Iterable[Sequence[Cell]],
    *,
    is_sortable: bool = False,
) -> Markup:
    """A table that scrolls by itself where it is too wide."""
    head = tag("tr", *(_head(one) for one in heads))
    body = [tag("tr", *(_cell(one, cell) for one, cell in zip(heads, row, strict=True))) for row in rows]
    made = tag(
        "table",
        tag("caption", caption, " ", source(*tables)),
        tag("thead", head),
        tag("tbody", *body),
        class_="sortable" if is_sortable else None,
        data_from=" ".join(tables),
    )
    return tag("div", made, class_="scroll", tabindex=0, role="region", aria_label=caption)


def bar(share: float, *, mark: float | None = None, kind: str = "bar") -> Markup:
    """A bar as long as ``share`` of its place, with a line at ``mark``. The number is beside it, so it is only to look at."""
    inside = [tag("rect", x=0, y=2, width=round(max(0.0, min(share, 1.0)) * 100, 2), height=8, class_=kind)]
    if mark is not None:
        inside.append(_line(round(min(mark, 1.0) * 100, 2), 0, 12, "fair"))
    return tag("svg", *inside, class_="inbar", viewBox="0 0 100 12", preserveAspectRatio="none", aria_hidden="true")


def with_bar(value: float | None, highest: float, *, mark: float | None = None, kind: str = "bar") -> Cell:
    """A cell with a number and a bar beside those of the other rows."""
    if value is None:
        return figure(value)
    share = value / highest if highest else 0.0
    return Cell(join(number(value), " ", bar(share, mark=mark, kind=kind)), value)


def svg_line(x: float, top: float, bottom: float, kind: str) -> Markup:
    """A line from top to bottom that is as thin however wide the drawing is."""
    return _line(x, top, bottom, kind)


def _line(x: float, top: float, bottom: float, kind: str) -> Markup:
    return tag("line", x1=x, x2=x, y1=top, y2=bottom, class_=kind, vector_effect="non-scaling-stroke")


def _head(head: Head) -> Markup:
    unit = tag("small", f" {head.unit}") if head.unit else ""
    return tag("th", head.title, unit, scope="col", class_="n" if head.is_number else None)


def _cell(head: Head, cell: Cell) -> Markup:
    return tag("td", cell.shown, class_="n" if head.is_number else None, data_v=cell.value)
