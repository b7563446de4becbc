"""The lines that ``pipeline run`` and ``pipeline report`` print when they end: a one-line summary, and warnings."""

from collections.abc import Iterator

from groupcoord.pipeline.errors import SourceWarning
from groupcoord.pipeline.report.report_model import DataQuality, Report

MOST_LINES = 10
"""The most warnings of each kind that are printed; the tables have all of them."""


def summary_line(report: Report) -> str:
    """The summary: how much was read, and how many rebalances, storms and pauses there were."""
    of = report.overview
    return (
        f"{amount(of.records, 'record')}: {amount(of.rebalances, 'rebalance')} of {amount(of.groups, 'group')}, "
        f"{amount(of.storms, 'storm')}, {amount(of.commit_gaps, 'pause')} in which commits stopped"
    )


def warning_lines(quality: DataQuality) -> Iterator[str]:
    """A line for each kind of record that could not be decoded, and for each warning of the source."""
    for one in quality.bad[:MOST_LINES]:
        yield f"not decoded: {amount(one.count, 'record')}: {one.what} (table bad_records)"
    if left := sum(one.count for one in quality.bad[MOST_LINES:]):
        yield f"not decoded: {amount(left, 'record')} for other reasons (table bad_records)"
    yield from (f"remark: {_warning(one)}" for one in quality.warnings[:MOST_LINES])
    if left := len(quality.warnings[MOST_LINES:]) + quality.warnings_left_out:
        yield f"remark: {left:,} more in the table source_warnings"


def _warning(one: SourceWarning) -> str:
    counted = ((one.records, "record"), (one.bytes, "byte"))
    amounts = ", ".join(amount(count, unit) for count, unit in counted if count is not None)
    return f"{one.where}: {one.what}" + (f" ({amounts})" if amounts else "")


def amount(count: int, unit: str) -> str:
    """``count`` of ``unit``, such as ``1,024 records``."""
    return f"{count:,} {unit}{'s' * (count != 1)}"
