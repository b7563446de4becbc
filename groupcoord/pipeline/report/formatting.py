"""Numbers with their units, times and names as text for people. What is unknown is a dash."""

import unicodedata
from datetime import UTC, datetime, timedelta

UNKNOWN = "–"
LONGEST_NAME = 60
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def number(value: float | None) -> str:
    """``12,345``; a fraction has one digit."""
    if value is None:
        return UNKNOWN
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def amount(value: int | None, unit: str) -> str:
    """``12,345 records``; ``unit`` is a plural that ends in s."""
    return f"{number(value)} {unit[:-1] if value == 1 else unit}"


def iso_time(ms: int | None) -> str | None:
    """``2026-11-21T13:26:51.007Z``; None if the time is unknown, or if no calendar has it."""
    if ms is None:
        return None
    try:
        return (_EPOCH + timedelta(milliseconds=ms)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except OverflowError:
        return None


def moment(ms: int | None, *, with_ms: bool = False) -> str:
    """``2026-11-21 13:26:51``, in UTC; with milliseconds if ``with_ms``."""
    if ms is None:
        return UNKNOWN
    iso = iso_time(ms)
    if iso is None:
        return f"{ms:,} ms since 1970"
    return iso.replace("T", " ")[: 23 if with_ms else 19]


def axis_label(ms: int, span_ms: int) -> str:
    """A time on an axis that is ``span_ms`` long: only the part that differs along it."""
    text = moment(ms, with_ms=True)
    if span_ms >= 2 * 86_400_000:
        return text[:16]
    return text[11:19] if span_ms >= 20_000 else text[11:23]


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
    for unit, size in units[index : index + 2]:
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count:,} {unit}")
    return " ".join(parts)


def visible(text: str) -> str:
    """``text`` with every invisible character as its number (backslash, u, four digits), because names may be hostile:
    control characters, marks of direction, lone surrogates. Every kind of space becomes a space."""
    return text if text.isascii() and text.isprintable() else "".join(map(_visible, text))


def shortened(text: str, longest: int = LONGEST_NAME) -> str:
    """``text`` without its middle if it is longer than ``longest``."""
    whole = visible(text)
    if len(whole) <= longest:
        return whole
    tail = longest // 3
    return f"{whole[: longest - tail - 1]}…{whole[-tail:]}"


def _visible(character: str) -> str:
    category = unicodedata.category(character)
    if category == "Zs":
        return " "
    if category[0] == "C" or category in {"Zl", "Zp"}:
        return f"\\u{ord(character):04x}"
    return character
