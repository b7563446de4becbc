"""The transactions that are open in the topics of groups: since when each is, and which of them hang.

A transaction that is in flight for a moment is no incident. One that hangs has outlived the time after which its coordinator
would have aborted it: consumers that read committed stop before it until somebody ends it (``kafka-transactions.sh abort``).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

HANGING_AFTER_S = 20 * 60
"""After so many seconds a transaction hangs, unless it is said otherwise.

It is what Kafka's brokers call late, in their metric PartitionsWithLateTransactionsCount (KIP-664): older than
``transaction.max.timeout.ms``, which is 15 minutes, and five minutes of patience (LATE_TRANSACTION_BUFFER_MS of
ProducerStateManager).
"""
_NEVER = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class OpenTransaction:
    """What one producer has open, in all the ``partitions`` (topic-partition) that are known. ``offsets_behind`` is how many
    offsets of them are behind its begin; ``since`` is None where the cluster does not tell."""

    producer_id: int | None
    since: datetime | None
    partitions: tuple[str, ...]
    groups: tuple[str, ...]
    offsets_behind: int

    def hangs(self, now: datetime, after_s: int) -> bool:
        """Is it older than ``after_s`` seconds? Of one whose begin is unknown nobody can say so."""
        return self.since is not None and now - self.since > timedelta(seconds=after_s)


def open_transactions(rows: Iterable[Mapping[str, Any]]) -> list[OpenTransaction]:
    """The transactions in ``rows`` of the view ``open_transactions``, the oldest first."""
    in_order = sorted(rows, key=lambda row: (row["topic"], row["partition"]))
    found = [
        OpenTransaction(
            producer_id=parts[0]["producer_id"],
            since=min((part["since"] for part in parts if part["since"] is not None), default=None),
            partitions=tuple(f"{part['topic']}-{part['partition']}" for part in parts),
            groups=tuple(sorted({group for part in parts for group in part["groups"] or ()})),
            offsets_behind=sum(part["end_offset"] - part["stable_offset"] for part in parts),
        )
        for parts in by_producer(in_order)
    ]
    return sorted(found, key=lambda one: (one.since or _NEVER, one.partitions))


def by_producer(rows: Iterable[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """The ``rows`` of each transaction, in their order: a producer has one at a time, in any number of partitions. Where the
    producer is unknown each partition counts as one."""
    found: dict[object, list[Mapping[str, Any]]] = {}
    for row in rows:
        place = row["topic"], row["partition"]
        found.setdefault(place if row["producer_id"] is None else row["producer_id"], []).append(row)
    return list(found.values())


def open_transactions_text(found: list[OpenTransaction], now: datetime, after_s: int) -> str:
    """What the line of a batch says of them, the oldest first; nothing if there are none."""
    if not found:
        return ""
    text = f"{len(found):,} open {'transaction' if len(found) == 1 else 'transactions'}"
    if (oldest := found[0].since) is not None:
        text += f"{'' if len(found) == 1 else ', the oldest'} since {utc_text(oldest)}"
    hanging = sum(one.hangs(now, after_s) for one in found)
    return text if hanging == 0 else f"{text}, {hanging:,} hanging"


def utc_text(moment: datetime) -> str:
    """``moment``, which is in UTC, to the second, and that it is in UTC."""
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
