"""Builds the report from the pipeline's tables. Each query has a row limit and runs once for all groups, not once per group."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from groupcoord.pipeline.errors import SourceWarning
from groupcoord.pipeline.health_symptoms import score_parts
from groupcoord.pipeline.open_and_hanging_transactions import by_producer, groups_of
from groupcoord.pipeline.report import report_model as model
from groupcoord.pipeline.report.arrow_table_reader import Aggregate, ArrowTableReader, Row
from groupcoord.pipeline.report.group_details import (
    BY_LAG,
    BY_STORM,
    COUNT,
    LAG_COLUMNS,
    STORM_COLUMNS,
    commits_of_all,
    details_of,
    lag_of,
    storm_of,
)
from groupcoord.pipeline.schemas import (
    CAUSE_KINDS,
    COMMIT_PAUSES,
    GROUP_COUNTS,
    OPEN_TRANSACTIONS,
    SOURCE_WARNINGS,
)

TABLE = "what_if_summary"
_WHAT_IF_SUMS = ("generations", "problems", "moved", "moved_needlessly", "pauses", "rebalances")
_MOST = 50
"""A row limit that is above the number of assignors."""


def what_if_of(reader: ArrowTableReader, groups: Sequence[str]) -> model.WhatIfResults | None:
    """The what-if results of all groups together and of each of ``groups``; None if the run had no ``--replay-with``."""
    measures = [*(Aggregate(name, "sum", name) for name in _WHAT_IF_SUMS), Aggregate("worst", "max", "imbalance_worst")]
    rows = reader.totals(TABLE, ["assignor"], measures, "assignor", _MOST)
    if not rows:
        return None
    of_group: dict[str, list[model.AssignorResult]] = defaultdict(list)
    among = {"group": groups}
    by = ["group", "assignor"]
    for row in reader.totals(TABLE, by, measures, "assignor", _MOST, among=among, of_each="group"):
        of_group[row["group"]].append(_alternative(row))
    return model.WhatIfResults(
        together=tuple(map(_alternative, rows)), groups={group: tuple(found) for group, found in of_group.items()}
    )


def _alternative(row: Row) -> model.AssignorResult:
    return model.AssignorResult(
        assignor=row["assignor"], **{name: row[name] or 0 for name in _WHAT_IF_SUMS}, imbalance_worst=row["worst"]
    )


RANKED = 5_000
"""The most groups that are listed: those with the highest scores."""
LISTED = 20
"""The most rows of every other list."""
ON_TOP = 5
"""The most incidents of each kind that the page tells on top."""
MOST_AFFECTED = 3
"""The most groups that are named with a kind of cause or an open transaction, and the most partitions of a transaction."""
MOST_HELD_UP = 10_000
"""The most partitions with an open transaction that are grouped by producer, the oldest transactions first."""
MOST_PARTITIONS = 10_000
"""A row limit that is above the number of partitions of ``__consumer_offsets``, 50 by default."""
SOON_MS = 86_400_000
"""Offsets that expire within this time, a day, are reported."""
PIECES = 120
"""The number of time bins of the whole log."""
_OF_LOG_PARTITION = tuple(map(model.column_name, model.LogPartition._fields))
_OF_GROUP = {field: model.column_name(field) for field in model.GroupSummary.__dataclass_fields__ if field != "points"}


def build_report(reader: ArrowTableReader, summary: Mapping[str, Any], detailed: int = model.DETAILED) -> model.Report:
    """Build the report from the tables of ``reader`` and the run's ``summary``. The ``detailed`` groups with the highest
    scores get a section of their own, and so do the groups of the incidents that are told on top of the page."""
    read = reader.rows("log_partitions", _OF_LOG_PARTITION, "-missing -records log_partition", MOST_PARTITIONS)
    counted = reader.rows("record_counts", ["what", "records"], "", LISTED)
    overview = _overview(reader, read, sum(row["records"] for row in counted if row["what"] == "in"))
    log = (
        None if overview.from_ms is None or overview.to_ms is None else model.TimeSpan(overview.from_ms, overview.to_ms)
    )
    groups = _groups(reader)
    storms = reader.rows("storms", STORM_COLUMNS, f"-rebalances {BY_STORM}", LISTED)
    open_rows = reader.rows("open_transactions", OPEN_TRANSACTIONS.names, "since topic partition", MOST_HELD_UP)
    open_transactions = _open_transactions(open_rows)
    pauses = reader.rows("commit_pauses", COMMIT_PAUSES.names, "-seconds from_ts group", LISTED)
    losses = _losses(reader)
    expiring = _expiring(reader, summary.get("now"))
    on_top = {row["group"] for rows in (storms, pauses) for row in rows[:ON_TOP]}
    on_top |= {one.group for one in losses[:ON_TOP]} | {one.group for one in expiring[:ON_TOP]}
    on_top |= {group for one in open_transactions[:ON_TOP] for group in one.waiting}
    chosen = [one for place, one in enumerate(groups) if place < detailed or one.group in on_top]
    details = details_of(reader, chosen, log)
    what_if = what_if_of(reader, [one.group for one in chosen])
    return model.Report(
        run=model.RunInfo(source=str(summary.get("source")), as_of=summary.get("as_of"), now=summary.get("now")),
        overview=overview,
        groups=groups,
        groups_left_out=overview.groups - len(groups),
        details=tuple(replace(one, awaited=_awaited(one.group.group, open_rows)) for one in details),
        causes=_causes(reader),
        storms=tuple(_with_what_if(reader, storm) if what_if else storm for storm in map(storm_of, storms)),
        storms_left_out=overview.storms - len(storms),
        pauses=tuple(model.CommitPause(*(row[name] for name in COMMIT_PAUSES.names)) for row in pauses),
        pauses_left_out=overview.commit_gaps - len(pauses),
        open_transactions=open_transactions[:LISTED],
        open_transactions_left_out=max(len(open_transactions) - LISTED, 0),
        losses=losses,
        losses_left_out=overview.lost_partitions - len(losses),
        expiring=expiring[:LISTED],
        expiring_left_out=max(len(expiring) - LISTED, 0),
        statuses=_statuses(reader),
        lags=_lags(reader),
        what_if=what_if,
        quality=_quality(reader, read, counted),
    )


def _with_what_if(reader: ArrowTableReader, storm: model.RebalanceStorm) -> model.RebalanceStorm:
    """``storm`` with the number of partitions that each assignor would have paused during it."""
    bins = {storm.group: model.TimeBins(storm.from_ms, storm.to_ms - storm.from_ms + 1, 1)}
    pauses = [Aggregate("pauses", "sum", "pauses")]
    rows = reader.binned("what_if", "at", bins, pauses, by=["assignor", "problem"])
    without_answer = {row["assignor"] for row in rows if row["problem"] is not None}
    return storm._replace(
        what_if=tuple(
            model.AssignorPauses(row["assignor"], row["pauses"])
            for row in rows
            if row["assignor"] not in without_answer
        )
    )


def _overview(reader: ArrowTableReader, read: Sequence[Row], records: int) -> model.Overview:
    """The figures of the whole log. ``read`` are the rows of ``log_partitions``, ``records`` the number of records that were
    read."""
    from_ms = min((row["first_ts"] for row in read if row["first_ts"] is not None), default=None)
    to_ms = max((row["last_ts"] for row in read if row["last_ts"] is not None), default=None)
    holes = [row["whole_from_ts"] for row in read if row["missing"] and row["whole_from_ts"] is not None]
    kinds = reader.totals(
        "group_health",
        ["state"],
        [COUNT, Aggregate("lag", "sum", "lag"), *(Aggregate(name, "sum", name) for name in GROUP_COUNTS)],
        "state",
        LISTED,
    )
    lags = [row["lag"] for row in kinds if row["lag"] is not None]
    return model.Overview(
        log_partitions=len(read),
        missing=sum(row["missing"] or 0 for row in read),
        from_ms=from_ms,
        to_ms=to_ms,
        whole_from_ms=max(holes, default=from_ms),
        groups_with_gaps=_groups_with_gaps(reader),
        records=records,
        groups=sum(row["count"] for row in kinds),
        groups_with_members=sum(row["count"] for row in kinds if row["state"] not in (None, "Empty")),
        groups_gone=sum(row["count"] for row in kinds if row["state"] is None),
        lag=sum(lags) if lags else None,
        **{name: sum(row[name] or 0 for row in kinds) for name in GROUP_COUNTS},
        activity=_activity(reader, from_ms, to_ms),
    )


def _groups_with_gaps(reader: ArrowTableReader) -> int:
    """The number of groups whose partition of the log has gaps. They have at most as many different ``whole_from_ts`` as the
    log has partitions."""
    read = reader.totals("group_health", ["whole_from_ts"], [COUNT], "whole_from_ts", MOST_PARTITIONS)
    return sum(row["count"] for row in read if row["whole_from_ts"] is not None)


def _activity(reader: ArrowTableReader, from_ms: int | None, to_ms: int | None) -> model.ActivityHistogram | None:
    if from_ms is None or to_ms is None:
        return None
    bins = model.TimeBins(from_ms, (to_ms - from_ms) // PIECES + 1, PIECES)
    rebalances = [0] * PIECES
    for row in reader.binned("rebalances", "at", bins, [COUNT]):
        rebalances[row["bin"]] = row["count"]
    return model.ActivityHistogram(
        bins=bins, rebalances=tuple(rebalances), commits=commits_of_all(reader, model.TimeSpan(from_ms, to_ms), PIECES)
    )


def _groups(reader: ArrowTableReader) -> tuple[model.GroupSummary, ...]:
    order = "-score -rebalances group"
    return tuple(_group(row) for row in reader.rows("group_health", [*_OF_GROUP.values()], order, RANKED))


def _group(row: Row) -> model.GroupSummary:
    points = {name: round(part, 2) for name, part in score_parts(row).items()}
    return model.GroupSummary(**{field: row[column] for field, column in _OF_GROUP.items()}, points=points)


def _causes(reader: ArrowTableReader) -> tuple[model.CauseCount, ...]:
    affected: dict[str, list[model.GroupCount]] = defaultdict(list)
    by = ["cause_kind", "group"]
    for row in reader.totals("rebalances", by, [COUNT], "-count group", MOST_AFFECTED, of_each="cause_kind"):
        affected[row["cause_kind"]].append(model.GroupCount(row["group"], row["count"]))
    order = "-count cause_kind"
    found = []
    for row in reader.totals("rebalances", ["cause_kind"], [COUNT], order, len(CAUSE_KINDS)):
        groups = tuple(affected[row["cause_kind"]])
        others = row["count"] - sum(one.count for one in groups)
        found.append(model.CauseCount(row["cause_kind"], row["count"], groups, others))
    return tuple(found)


def _open_transactions(rows: Sequence[Row]) -> tuple[model.OpenTransaction, ...]:
    """The open transactions in ``rows`` of ``open_transactions``. All partitions of one producer are one transaction."""
    return tuple(map(_open_transaction, by_producer(rows)))


def _awaited(group: str, rows: Sequence[Row]) -> tuple[model.OpenTransaction, ...]:
    return _open_transactions([row for row in rows if group in (row["waiting"] or ())])


def _open_transaction(rows: Sequence[Mapping[str, Any]]) -> model.OpenTransaction:
    places = sorted(model.HeldUpPartition(*(row[name] for name in model.HeldUpPartition._fields)) for row in rows)
    groups, waiting = groups_of(rows, "groups"), groups_of(rows, "waiting")
    return model.OpenTransaction(
        producer_id=rows[0]["producer_id"],
        transactional_id=rows[0]["transactional_id"],
        since_ms=rows[0]["since"],
        partitions=len(places),
        places=tuple(places[:MOST_AFFECTED]),
        held_up=max(one.end_offset - one.stable_offset for one in places),
        groups=tuple(groups[:MOST_AFFECTED]),
        groups_left_out=max(len(groups) - MOST_AFFECTED, 0),
        waiting=tuple(waiting[:MOST_AFFECTED]),
        waiting_left_out=max(len(waiting) - MOST_AFFECTED, 0),
    )


def _statuses(reader: ArrowTableReader) -> tuple[model.LagStatus, ...]:
    rows = reader.totals("lag", ["status"], [COUNT, Aggregate("lag", "sum", "lag")], "-count status", LISTED)
    return tuple(model.LagStatus(row["status"], row["count"], row["lag"]) for row in rows)


def _lags(reader: ArrowTableReader) -> tuple[model.PartitionLag, ...]:
    return tuple(lag_of(row) for row in reader.rows("lag", LAG_COLUMNS, BY_LAG, LISTED) if row["lag"])


def _losses(reader: ArrowTableReader) -> tuple[model.PartitionLag, ...]:
    order = "-records_lost group topic partition"
    return tuple(lag_of(row) for row in reader.rows("lag", LAG_COLUMNS, order, LISTED) if row["records_lost"])


def _expiring(reader: ArrowTableReader, now: str | None) -> tuple[model.ExpiringGroup, ...]:
    """The groups with lag whose offsets expire within a day of ``now``, the first to expire first."""
    if now is None:
        return ()
    until_ms = datetime.fromisoformat(now).timestamp() * 1000 + SOON_MS
    rows = reader.rows("group_health", ["group", "expire_ts", "lag"], "expire_ts group", RANKED)
    soon = [row for row in rows if row["expire_ts"] is not None and row["expire_ts"] <= until_ms]
    return tuple(model.ExpiringGroup(row["group"], row["expire_ts"], row["lag"]) for row in soon)


def _quality(reader: ArrowTableReader, read: Sequence[Row], counted: Sequence[Row]) -> model.DataQuality:
    """Whether all of the log was read and decoded. ``read`` are rows of ``log_partitions``, ``counted`` of
    ``record_counts``."""
    place = {
        what: index for index, what in enumerate(("in", "commits", "generations", "modern_records", "bad_records"))
    }
    counted = sorted(counted, key=lambda row: place.get(row["what"], len(place)))
    bad = reader.totals("bad_records", ["reason"], [COUNT], "-count reason", LISTED)
    problems = reader.totals("generations", ["problem"], [COUNT], "-count problem", LISTED)
    warnings = reader.rows("source_warnings", SOURCE_WARNINGS.names, "where what log_partition", LISTED)
    remarked = reader.totals("source_warnings", [], [COUNT], "", 1)[0]["count"]
    return model.DataQuality(
        counts=tuple(model.NamedCount(row["what"], row["records"]) for row in counted),
        bad=tuple(model.NamedCount(row["reason"], row["count"]) for row in bad),
        problems=tuple(
            model.NamedCount(row["problem"], row["count"]) for row in problems if row["problem"] is not None
        ),
        log_partitions=tuple(model.LogPartition(*(row[name] for name in _OF_LOG_PARTITION)) for row in read[:LISTED]),
        log_partitions_left_out=max(len(read) - LISTED, 0),
        warnings=tuple(SourceWarning(*(row[name] for name in SOURCE_WARNINGS.names)) for row in warnings),
        warnings_left_out=remarked - len(warnings),
    )
