"""From the tables to the report: every question is bounded, and asked once for all groups that it is about."""

from collections.abc import Mapping
from typing import Any

from groupcoord.pipeline.errors import PipelineError
from groupcoord.pipeline.report.details import details_of
from groupcoord.pipeline.report.heat import heat_of_all
from groupcoord.pipeline.report.model import (
    Count,
    Course,
    Group,
    Lag,
    LogPartition,
    Overview,
    Quality,
    Remark,
    Report,
    Run,
    Span,
    Status,
)
from groupcoord.pipeline.report.reading import Bins, Measure, Order, Reader, Row
from groupcoord.pipeline.report.rows import BY_LAG, BY_STORM, COUNT, LAG_COLUMNS, STORM_COLUMNS, lag_of, storm_of
from groupcoord.pipeline.report.what_if import what_if_of
from groupcoord.pipeline.symptoms import parts_of

RANKED = 200
"""So many groups are listed, the most troubled ones."""
DETAILED = 12
"""So many of these have a section of their own."""
LISTED = 20
"""So many rows other lists have."""
CAUSES = 10
MOST_PARTITIONS = 10_000
"""A log has no more partitions: Kafka's default is 50."""
PIECES = 120
"""Into so many pieces the time of the whole log is cut."""
_SUMS = (
    "commits",
    "rebalances",
    "hidden_generations",
    "moved",
    "moved_needlessly",
    "storms",
    "commit_gaps",
    "zombies",
    "partitions",
    "late_partitions",
)
_OF_GROUP = (*Group.__dataclass_fields__.keys() - {"first_ms", "last_ms", "points"}, "first_ts", "last_ts")


def build_report(reader: Reader, summary: Mapping[str, Any]) -> Report:
    """The report of the tables that ``reader`` has, and of what the run's ``summary`` says of itself. Raises PipelineError."""
    if not reader.has("trouble"):
        raise PipelineError("there is no table trouble: the tables are not whole, or of an older version; run again")
    overview = _overview(reader)
    log = None if overview.from_ms is None or overview.to_ms is None else Span(overview.from_ms, overview.to_ms)
    groups = _groups(reader)
    storms = reader.rows("storms", STORM_COLUMNS, [Order("rebalances", is_descending=True), *BY_STORM], LISTED)
    return Report(
        run=Run(source=str(summary.get("source")), as_of=summary.get("as_of"), now=summary.get("now")),
        overview=overview,
        groups=groups,
        groups_left_out=overview.groups - len(groups),
        details=details_of(reader, groups[:DETAILED], log),
        causes=_causes(reader),
        storms=tuple(storm_of(row) for row in storms),
        storms_left_out=overview.storms - len(storms),
        statuses=_statuses(reader),
        lags=_lags(reader),
        what_if=what_if_of(reader, [one.group for one in groups[:DETAILED]]),
        quality=_quality(reader, overview.log_partitions),
    )


def _overview(reader: Reader) -> Overview:
    log = reader.totals(
        "log_partitions",
        [],
        [
            Measure("log_partitions", "count"),
            Measure("missing", "sum", "missing"),
            Measure("from_ms", "min", "first_ts"),
            Measure("to_ms", "max", "last_ts"),
        ],
        [],
        1,
    )[0]
    kinds = reader.totals(
        "trouble",
        ["state"],
        [COUNT, Measure("lag", "sum", "lag"), *(Measure(name, "sum", name) for name in _SUMS)],
        [Order("state")],
        LISTED,
    )
    counts = {row["what"]: row["records"] for row in reader.rows("record_counts", ["what", "records"], [], LISTED)}
    lags = [row["lag"] for row in kinds if row["lag"] is not None]
    return Overview(
        **{**log, "missing": log["missing"] or 0},
        whole_from_ms=_whole_from(reader, log["from_ms"]),
        records=counts.get("in", 0),
        groups=sum(row["count"] for row in kinds),
        groups_with_members=sum(row["count"] for row in kinds if row["state"] == "Stable"),
        groups_gone=sum(row["count"] for row in kinds if row["state"] is None),
        lag=sum(lags) if lags else None,
        **{name: sum(row[name] or 0 for row in kinds) for name in _SUMS},
        course=_course(reader, log["from_ms"], log["to_ms"]),
    )


def _whole_from(reader: Reader, from_ms: int | None) -> int | None:
    """From when on no partition of the log misses anything."""
    order = [Order("missing", is_descending=True), Order("log_partition")]
    read = reader.rows("log_partitions", ["log_partition", "missing", "whole_from_ts"], order, MOST_PARTITIONS)
    holes = [row["whole_from_ts"] for row in read if row["missing"] and row["whole_from_ts"] is not None]
    return max(holes, default=from_ms)


def _course(reader: Reader, from_ms: int | None, to_ms: int | None) -> Course | None:
    if from_ms is None or to_ms is None:
        return None
    bins = Bins(from_ms, (to_ms - from_ms) // PIECES + 1, PIECES)
    rebalances = [0] * PIECES
    for table in ("rebalances", "modern_rebalances"):
        for row in reader.binned(table, "at", bins, [COUNT]):
            rebalances[row["bin"]] += row["count"]
    return Course(bins=bins, rebalances=tuple(rebalances), heat=heat_of_all(reader, Span(from_ms, to_ms), PIECES))


def _groups(reader: Reader) -> tuple[Group, ...]:
    order = [Order("score", is_descending=True), Order("rebalances", is_descending=True), Order("group")]
    return tuple(_group(row) for row in reader.rows("trouble", sorted(_OF_GROUP), order, RANKED))


def _group(row: Row) -> Group:
    points = {name: round(part, 2) for name, part in parts_of(row).items()}
    first_ms, last_ms = row.pop("first_ts"), row.pop("last_ts")
    return Group(**row, first_ms=first_ms, last_ms=last_ms, points=points)


def _causes(reader: Reader) -> tuple[Count, ...]:
    order = [Order("count", is_descending=True), Order("likely_cause")]
    rows = reader.totals("rebalances", ["likely_cause"], [COUNT], order, CAUSES)
    return tuple(Count(row["likely_cause"], row["count"]) for row in rows)


def _statuses(reader: Reader) -> tuple[Status, ...]:
    order = [Order("count", is_descending=True), Order("status")]
    rows = reader.totals("lag", ["status"], [COUNT, Measure("lag", "sum", "lag")], order, LISTED)
    return tuple(Status(row["status"], row["count"], row["lag"]) for row in rows)


def _lags(reader: Reader) -> tuple[Lag, ...]:
    return tuple(lag_of(row) for row in reader.rows("lag", LAG_COLUMNS, BY_LAG, LISTED) if row["lag"])


def _quality(reader: Reader, log_partitions: int) -> Quality:
    counted = reader.rows("record_counts", ["what", "records"], [], LISTED)
    place = {
        what: index for index, what in enumerate(("in", "commits", "generations", "modern_records", "bad_records"))
    }
    counted.sort(key=lambda row: place.get(row["what"], len(place)))
    many_first = [Order("count", is_descending=True)]
    bad = reader.totals("bad_records", ["reason"], [COUNT], [*many_first, Order("reason")], LISTED)
    problems = reader.totals("generations", ["problem"], [COUNT], [*many_first, Order("problem")], LISTED)
    columns = (
        "log_partition",
        "first_offset",
        "last_offset",
        "records",
        "missing",
        "first_ts",
        "last_ts",
        "whole_from_ts",
    )
    order = [Order("missing", is_descending=True), Order("records", is_descending=True), Order("log_partition")]
    read = reader.rows("log_partitions", columns, order, LISTED)
    said = ("where", "what", "log_partition", "records", "bytes")
    remarks = reader.rows("source_remarks", said, [Order("where"), Order("what"), Order("log_partition")], LISTED)
    remarked = reader.totals("source_remarks", [], [COUNT], [], 1)[0]["count"]
    return Quality(
        counts=tuple(Count(row["what"], row["records"]) for row in counted),
        bad=tuple(Count(row["reason"], row["count"]) for row in bad),
        problems=tuple(Count(row["problem"], row["count"]) for row in problems if row["problem"] is not None),
        log_partitions=tuple(LogPartition(*(row[name] for name in columns)) for row in read),
        log_partitions_left_out=log_partitions - len(read),
        remarks=tuple(Remark(*(row[name] for name in said)) for row in remarks),
        remarks_left_out=remarked - len(remarks),
    )
