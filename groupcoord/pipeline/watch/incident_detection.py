"""Finds the current incidents in the watch's views after each micro-batch: storms, lag, lost records, hanging transactions.

``alerts.py`` reports when one begins and ends.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

import pyarrow.compute as pc

from groupcoord.pipeline import schemas
from groupcoord.pipeline.errors import SourceWarning
from groupcoord.pipeline.open_and_hanging_transactions import (
    LONG_OPEN_AFTER_S,
    OpenTransaction,
    open_transactions,
    utc_text,
)
from groupcoord.pipeline.tables.rebalances import APART_S
from groupcoord.pipeline.watch.batch_outcome import BatchOutcome

LATE = ("STOP", "STALL", "WARN")
"""The statuses of a partition that make an incident of its group, the worst first."""
_NAMED = 3
"""The most partitions or groups that a sentence names."""


@dataclass(frozen=True, kw_only=True)
class Incident:
    """One thing that is wrong. ``id`` is the same whenever the same thing goes wrong again; ``since`` is an ISO 8601 time.
    ``text`` describes it in a sentence, and ``over`` is the sentence for its end. ``group`` is None if it is not about a
    group."""

    id: str
    kind: str
    group: str | None
    since: str
    text: str
    over: str


def incidents(outcome: BatchOutcome, hanging_after_s: int) -> tuple[list[Incident], set[str]]:
    """The current incidents; and the ids of those that cannot be judged now, because the watch is behind the end of the
    log."""
    table = schemas.OPEN_TRANSACTIONS
    transactions = open_transactions(outcome.view(table, table.names).to_pylist())
    late, unknown_late = _late(outcome, transactions)
    behind_start, unknown_start = _lost(outcome)
    lost = [lost_log(warning, outcome.now.isoformat()) for warning in outcome.lost]
    found = [*_storms(outcome), *late, *behind_start, *_hanging(transactions, outcome.now, hanging_after_s), *lost]
    return found, unknown_late | unknown_start


def lost_log(warning: SourceWarning, since: str) -> Incident:
    """The incident that records were deleted from the log before they were read. It ends with the next batch without a loss."""
    place = f"partition {warning.log_partition} of the log"
    return Incident(
        id=f"log_lost:{warning.log_partition}",
        kind="log_lost",
        group=None,
        since=since,
        text=f"in {place} {warning.what}: the tables lack what they said",
        over=f"{place} is read on behind what was deleted",
    )


def _storms(outcome: BatchOutcome) -> Iterable[Incident]:
    last = outcome.now - timedelta(seconds=APART_S)
    columns = ["group", "from", "to", "rebalances", "likely_causes"]
    for storm in outcome.view(schemas.STORMS, columns).to_pylist():
        if storm["to"] < last:
            continue
        group, since = storm["group"], storm["from"]
        causes = storm["likely_causes"] or []
        why = f", most often because: {causes[0]}" if causes else ""
        yield Incident(
            id=f"storm:{group}",
            kind="storm",
            group=group,
            since=since.isoformat(),
            text=f"group {group} has had {storm['rebalances']} rebalances in a row since {utc_text(since)}{why}",
            over=f"the storm of rebalances of group {group} that began at {utc_text(since)} is over",
        )


def _late(outcome: BatchOutcome, transactions: Iterable[OpenTransaction]) -> tuple[list[Incident], set[str]]:
    awaited: dict[str, str] = {}
    for one in transactions:
        if one.since is not None and one.hangs(outcome.now, LONG_OPEN_AFTER_S):
            text = f"; it waits for the transaction of {one.owner} in {_some(one.partitions)}, open since {utc_text(one.since)}"
            awaited |= {group: awaited.get(group, "") + text for group in one.waiting}
    statuses: dict[str, Counter[str | None]] = {}
    view = outcome.view(schemas.LAG, ["group", "status"]).group_by(["group", "status"]).aggregate([([], "count_all")])
    for row in view.to_pylist():
        statuses.setdefault(row["group"], Counter())[row["status"]] = row["count_all"]
    found = []
    for group, count in sorted(statuses.items()):
        if not any(count[status] for status in LATE):
            continue
        parts = ", ".join(f"{count[status]} {status}" for status in LATE if count[status])
        found.append(
            Incident(
                id=f"late_partitions:{group}",
                kind="late_partitions",
                group=group,
                since=outcome.now.isoformat(),
                text=f"of {count.total()} partitions of group {group} are {parts}{awaited.get(group, '')}",
                over=f"no partition of group {group} is {', '.join(LATE[:-1])} or {LATE[-1]} any more",
            )
        )
    return found, {f"late_partitions:{group}" for group, count in statuses.items() if count[None]}


def _lost(outcome: BatchOutcome) -> tuple[list[Incident], set[str]]:
    view = outcome.view(schemas.LAG, ["group", "topic", "partition", "records_lost"])
    unknown = {
        f"records_lost:{group}" for group in view.filter(view["records_lost"].is_null())["group"].unique().to_pylist()
    }
    partitions: dict[str, list[str]] = {}
    offsets = Counter[str]()
    for row in view.filter(pc.greater(view["records_lost"], 0)).to_pylist():
        partitions.setdefault(row["group"], []).append(f"{row['topic']}-{row['partition']}")
        offsets[row["group"]] += row["records_lost"]
    found = [
        Incident(
            id=f"records_lost:{group}",
            kind="records_lost",
            group=group,
            since=outcome.now.isoformat(),
            text=f"group {group} has lost what was deleted before it was read: {offsets[group]:,} offsets of "
            f"{_some(tuple(sorted(names)))}",
            over=f"group {group} is behind the beginning of no partition any more",
        )
        for group, names in sorted(partitions.items())
    ]
    return found, unknown


def _hanging(transactions: Iterable[OpenTransaction], now: datetime, hanging_after_s: int) -> Iterable[Incident]:
    for one in transactions:
        if one.since is None or not one.hangs(now, hanging_after_s):
            continue
        groups = one.waiting or one.groups
        behind = f"{one.offsets_behind:,} {'offset is' if one.offsets_behind == 1 else 'offsets are'}"
        yield Incident(
            id=f"hanging_transaction:{one.partitions[0] if one.producer_id is None else one.producer_id}",
            kind="hanging_transaction",
            group=groups[0] if len(groups) == 1 else None,
            since=one.since.isoformat(),
            text=(
                f"a transaction of {one.owner} is open since {utc_text(one.since)}: {behind} behind its begin in "
                f"{_some(one.partitions)}, which consumers that read committed do not get; "
                f"groups {'that wait' if one.waiting else 'there'}: {_some(groups)}"
            ),
            over=f"the transaction of {one.owner} that was open since {utc_text(one.since)} has ended",
        )


def _some(names: tuple[str, ...]) -> str:
    """``names`` as a list in words; of many only the first, and how many more there are."""
    if not names:
        return "none"
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")
