"""Whether everything was read and understood: the counts add up, and what is missing is said."""

from groupcoord.pipeline.report.page.formatting import amount, left_out, moment_tag, name
from groupcoord.pipeline.report.page.markup import Markup, join, tag
from groupcoord.pipeline.report.page.parts import Cell, Head, counted, figure, source, table
from groupcoord.pipeline.report.report_model import DataQuality, NamedCount

_MEANINGS = {
    "in": "came in",
    "later": "are later than the moment that was asked for",
    "bad_records": "could not be decoded",
}


def quality(found: DataQuality) -> Markup:
    """Records in and out, bad ones, remarks of the source, and how much of each partition there is."""
    return tag(
        "section",
        tag("h2", "Data quality"),
        _counts(found),
        _bad(found),
        _remarks(found),
        _partitions(found),
        id="quality",
    )


def _counts(found: DataQuality) -> Markup:
    rows = [(Cell(_MEANINGS.get(one.what, f"are in {one.what}")), figure(one.count)) for one in found.counts]
    heads = (Head("Records that"), counted("How many", "records"))
    verdict = "Every record that came in is in one of the tables." if found.adds_up else "The counts do not add up."
    return join(
        tag("p", verdict, " ", source("record_counts"), class_="lead", data_from="record_counts"),
        table("What came in, and where it went", ["record_counts"], heads, rows),
    )


def _bad(found: DataQuality) -> Markup:
    return join(
        _reasons("Records that could not be decoded", "bad_records", found.bad),
        _reasons("Generations whose members could not be read in full", "generations", found.problems),
    )


def _reasons(caption: str, from_table: str, counts: tuple[NamedCount, ...]) -> Markup:
    if not counts:
        return tag("p", f"{caption}: none. ", source(from_table), data_from=from_table)
    rows = [(Cell(name(one.what, 200), one.what), figure(one.count)) for one in counts]
    return table(caption, [from_table], (Head("Why"), counted("How many", "records")), rows)


def _remarks(found: DataQuality) -> Markup:
    if not found.warnings:
        return tag("p", "Remarks of the source: none. ", source("source_warnings"), data_from="source_warnings")
    heads = (
        Head("Where"),
        Head("What"),
        counted("Log partition"),
        counted("Records"),
        counted("Bytes"),
    )
    rows = [
        (
            Cell(name(one.where, 120), one.where),
            Cell(name(one.what, 200), one.what),
            figure(one.log_partition),
            figure(one.records),
            figure(one.bytes),
        )
        for one in found.warnings
    ]
    return join(
        table("Remarks of the source", ["source_warnings"], heads, rows),
        left_out(found.warnings_left_out, "remarks", "source_warnings"),
    )


def _partitions(found: DataQuality) -> Markup:
    heads = (
        counted("Log partition"),
        counted("Records"),
        counted("Missing", "offsets"),
        counted("First", "offset"),
        counted("Last", "offset"),
        Head("From", "UTC"),
        Head("To", "UTC"),
        Head("Whole from", "UTC"),
    )
    rows = [
        (
            figure(one.log_partition),
            figure(one.records),
            figure(one.missing),
            figure(one.first_offset),
            figure(one.last_offset),
            Cell(moment_tag(one.first_ms), one.first_ms),
            Cell(moment_tag(one.last_ms), one.last_ms),
            Cell(moment_tag(one.whole_from_ms), one.whole_from_ms),
        )
        for one in found.log_partitions
    ]
    if not rows:
        return tag("p", "No partition was read. ", source("log_partitions"), data_from="log_partitions")
    shown = table("Partitions of __consumer_offsets that were read", ["log_partitions"], heads, rows, is_sortable=True)
    more = left_out(found.log_partitions_left_out, "partitions, with fewer missing offsets", "log_partitions")
    said = f"{amount(len(rows) + max(found.log_partitions_left_out, 0), 'partitions')} of the log, one by one"
    return tag("details", tag("summary", said), shown, more)
