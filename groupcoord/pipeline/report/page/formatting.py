"""Numbers with their units, moments and names, as people read them. What is not known is a dash."""

from datetime import UTC, datetime, timedelta

from groupcoord.pipeline.report.page.markup import Markup, join, tag, visible

NOTHING = "–"
LONGEST_NAME = 60
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def number(value: float | None) -> str:
    """``12,345``; of a fraction, one digit."""
    if value is None:
        return NOTHING
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def amount(value: int | None, unit: str) -> str:
    """``12,345 records``; ``unit`` is a plural with an s."""
    return f"{number(value)} {unit[:-1] if value == 1 else unit}"


def moment(ms: int | None, *, with_ms: bool = False) -> str:
    """``2026-11-21 13:26:51``, in UTC."""
    if ms is None:
        return NOTHING
    try:
        when = _EPOCH + timedelta(milliseconds=ms)
    except OverflowError:
        return f"{ms:,} ms since 1970"
    fraction = f".{ms % 1000:03}" if with_ms else ""
    return f"{when.year:04}-{when:%m-%d %H:%M:%S}{fraction}"


def moment_tag(ms: int | None, *, with_ms: bool = False) -> Markup:
    """The same as an element that machines read."""
    said = moment(ms, with_ms=with_ms)
    if ms is None or not said[:1].isdigit() or said.endswith("1970"):
        return join(said)
    return tag("time", said, datetime=f"{moment(ms, with_ms=True).replace(' ', 'T')}Z")


def duration(ms: float) -> str:
    """``1 h 38 min``: the two largest units."""
    if ms < 1000:
        return f"{ms:.0f} ms"
    if ms < 60_000:
        return f"{ms / 1000:.1f}".removesuffix(".0") + " s"
    seconds = round(ms / 1000)
    units = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
    index = next(index for index, (_, size) in enumerate(units) if seconds >= size)
    parts = []
    for name, size in units[index : index + 2]:
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count:,} {name}")
    return " ".join(parts)


def on_axis(ms: int, span_ms: int) -> str:
    """A moment on an axis that is ``span_ms`` long: no more of it than differs."""
    said = moment(ms, with_ms=True)
    if span_ms >= 2 * 86_400_000:
        return said[:16]
    return said[11:19] if span_ms >= 20_000 else said[11:23]


def name(said: str, longest: int = LONGEST_NAME) -> Markup:
    """A name that somebody chose: apart from the text around it whichever way it is written, and its middle left out where
    it is too long; all of it is its title."""
    whole = visible(said)
    if not whole:
        return tag("i", "(empty)")
    if len(whole) <= longest:
        return tag("bdi", said)
    return tag("bdi", shortened(said, longest), title=said)


def shortened(said: str, longest: int = LONGEST_NAME) -> str:
    """``said`` without its middle, where it is too long."""
    whole = visible(said)
    if len(whole) <= longest:
        return whole
    tail = longest // 3
    return f"{whole[: longest - tail - 1]}…{whole[-tail:]}"


def left_out(count: int, what: str, table: str, *, at_least: bool = False) -> Markup:
    """That there are more of them, and where; nothing if there are not."""
    if count <= 0:
        return join()
    lead = "at least " if at_least else ""
    return tag("p", f"{lead}{count:,} more {what}: table ", tag("code", table), class_="more")
