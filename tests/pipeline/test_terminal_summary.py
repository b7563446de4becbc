"""What could not be read is said at the end of a run."""

from groupcoord.pipeline.errors import SourceWarning
from groupcoord.pipeline.report.report_model import DataQuality, NamedCount
from groupcoord.pipeline.report.terminal_summary import MOST_LINES, warning_lines


def test_bad_records_and_remarks_are_told() -> None:
    quality = DataQuality(
        bad=(NamedCount("a record batch whose checksum does not fit", 1200), NamedCount("no key", 1)),
        warnings=(
            SourceWarning("logs/0.log", "torn tail: no whole batch", 3, None, 1),
            SourceWarning("__consumer_offsets-3", "records of aborted transactions", 3, 7, None),
            SourceWarning("here", "odd", None, None, None),
        ),
    )
    assert list(warning_lines(quality)) == [
        "not decoded: 1,200 records: a record batch whose checksum does not fit (table bad_records)",
        "not decoded: 1 record: no key (table bad_records)",
        "remark: logs/0.log: torn tail: no whole batch (1 byte)",
        "remark: __consumer_offsets-3: records of aborted transactions (7 records)",
        "remark: here: odd",
    ]


def test_of_many_the_first_are_told_and_the_others_counted() -> None:
    bad = tuple(NamedCount(f"reason {number}", 2) for number in range(MOST_LINES + 3))
    warnings = tuple(SourceWarning("here", f"odd {number}", None, None, None) for number in range(MOST_LINES + 1))
    said = list(warning_lines(DataQuality(bad=bad, warnings=warnings, warnings_left_out=5)))
    assert len(said) == 2 * (MOST_LINES + 1)
    assert said[MOST_LINES] == "not decoded: 6 records for other reasons (table bad_records)"
    assert said[-1] == "remark: 6 more in the table source_warnings"


def test_where_all_is_well_nothing_is_said() -> None:
    assert list(warning_lines(DataQuality())) == []
