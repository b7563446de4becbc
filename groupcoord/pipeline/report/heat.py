"""How many commits were made when. Windows of ``commit_rates`` say it, unless time is cut finer: then ``commits`` does."""

from collections.abc import Mapping

from groupcoord.pipeline.report.model import Heat, Span
from groupcoord.pipeline.report.reading import Bins, Measure, Reader, Row
from groupcoord.pipeline.report.rows import COUNT

COMMITS = ("commits", "append_ts", COUNT)
WINDOWS = ("commit_rates", "window_start", Measure("count", "sum", "commits"))


def heat_of_all(reader: Reader, span: Span, pieces: int) -> Heat:
    """The commits of all groups in ``span``, cut into about so many pieces."""
    bins, is_fine = _cut(span, pieces, window_ms_of(reader))
    table, time, measure = COMMITS if is_fine else WINDOWS
    return Heat(bins, _counts(bins, reader.binned(table, time, bins, [measure])), table)


def heat_of_each(reader: Reader, spans: Mapping[str, Span], pieces: int) -> dict[str, Heat]:
    """The commits of each group in its span."""
    window_ms = window_ms_of(reader)
    cuts = {group: _cut(span, pieces, window_ms) for group, span in spans.items()}
    heat: dict[str, Heat] = {}
    for wants_fine, (table, time, measure) in ((True, COMMITS), (False, WINDOWS)):
        bins = {group: one for group, (one, is_fine) in cuts.items() if is_fine is wants_fine}
        rows = reader.binned(table, time, bins, [measure])
        for group, one in bins.items():
            heat[group] = Heat(one, _counts(one, [row for row in rows if row["group"] == group]), table)
    return heat


def _cut(span: Span, pieces: int, window_ms: int | None) -> tuple[Bins, bool]:
    """``span`` in pieces, and whether these are finer than windows; else each has just so many whole windows."""
    width_ms = (span.end_ms - span.start_ms) // pieces + 1
    if window_ms is None or width_ms < window_ms:
        return Bins(span.start_ms, width_ms, pieces), True
    start_ms = span.start_ms - span.start_ms % window_ms
    width_ms = -(-width_ms // window_ms) * window_ms
    return Bins(start_ms, width_ms, (span.end_ms - start_ms) // width_ms + 1), False


def window_ms_of(reader: Reader) -> int | None:
    """How long the windows of ``commit_rates`` are; None: there are none."""
    rows = reader.rows("commit_rates", ["window_start", "window_end"], [], 1)
    return rows[0]["window_end"] - rows[0]["window_start"] if rows else None


def _counts(bins: Bins, rows: list[Row]) -> tuple[int, ...]:
    counts = [0] * bins.pieces
    for row in rows:
        counts[row["bin"]] = row["count"]
    return tuple(counts)
