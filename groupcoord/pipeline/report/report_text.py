"""What a run says on the screen at its end."""

from collections.abc import Iterator

from groupcoord.pipeline.errors import SourceWarning
from groupcoord.pipeline.report.report_model import DataQuality, Report

MOST_LINES = 10
"""The most remarks that are said one by one; tables have all of them."""


def outcome_line(report: Report) -> str:
    """What was read and found, in one line."""
    of = report.overview
    return (
        f"{amount(of.records, 'record')}: {amount(of.rebalances, 'rebalance')} of {amount(of.groups, 'group')}, "
        f"{amount(of.storms, 'storm')}, {amount(of.commit_gaps, 'pause')} in which commits stopped"
    )


def remark_lines(quality: DataQuality) -> Iterator[str]:
    """What could not be read or is not counted, a line each; nothing if all is well."""
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
