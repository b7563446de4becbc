"""The open transactions in the partitions that groups consume, by producer: since when each is open, and whether it is hanging
(KIP-664).

An open transaction is normal as long as it is young. A hanging one has outlived the timeout after which its coordinator would
have aborted it: it blocks the last stable offset, so read_committed consumers stop there until somebody aborts it
(``kafka-transactions.sh abort``).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

HANGING_AFTER_S = 20 * 60
"""The default age in seconds from which a transaction counts as hanging.

It is the limit of the broker metric PartitionsWithLateTransactionsCount (KIP-664): ``transaction.max.timeout.ms``, 15 minutes
by default, plus five minutes (LATE_TRANSACTION_BUFFER_MS of ProducerStateManager).
"""
LONG_OPEN_AFTER_S = 60
"""The age in seconds from which an open transaction is a symptom of the groups that wait for it.

It is the default of ``transaction.timeout.ms``, the time that producers give a transaction.
"""
_NEVER = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class OpenTransaction:
    """The open transaction of one producer in all known ``partitions`` (``TOPIC-PARTITION``). Of the ``groups`` with offsets
    there, those in ``waiting`` have read up to it. ``offsets_behind`` is the number of offsets in the partitions from the last
    stable offset to the end; ``since`` is None where the cluster does not report it."""

    producer_id: int | None
    transactional_id: str | None
    since: datetime | None
    partitions: tuple[str, ...]
    groups: tuple[str, ...]
    waiting: tuple[str, ...]
    offsets_behind: int

    @property
    def owner(self) -> str:
        """Whose it is, in words: the producer or, where that is unknown, the partition."""
        return (
            self.partitions[0] if self.producer_id is None else producer_text(self.producer_id, self.transactional_id)
        )

    def hangs(self, now: datetime, after_s: int) -> bool:
        """Is it older than ``after_s`` seconds? False if its begin is unknown."""
        return self.since is not None and now - self.since > timedelta(seconds=after_s)


def open_transactions(rows: Iterable[Mapping[str, Any]]) -> list[OpenTransaction]:
    """The transactions in ``rows`` of the view ``open_transactions``, the oldest first."""
    in_order = sorted(rows, key=lambda row: (row["topic"], row["partition"]))
    found = [
        OpenTransaction(
            producer_id=parts[0]["producer_id"],
            transactional_id=parts[0]["transactional_id"],
            since=min((part["since"] for part in parts if part["since"] is not None), default=None),
            partitions=tuple(f"{part['topic']}-{part['partition']}" for part in parts),
            groups=tuple(groups_of(parts, "groups")),
            waiting=tuple(groups_of(parts, "waiting")),
            offsets_behind=sum(part["end_offset"] - part["stable_offset"] for part in parts),
        )
        for parts in by_producer(in_order)
    ]
    return sorted(found, key=lambda one: (one.since or _NEVER, one.partitions))


def groups_of(rows: Iterable[Mapping[str, Any]], column: str) -> list[str]:
    """All groups in ``column`` (``groups`` or ``waiting``) of ``rows``, sorted."""
    return sorted({group for row in rows for group in row[column] or ()})


def by_producer(rows: Iterable[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """Group ``rows`` by transaction, in their order: a producer has one transaction at a time, in any number of partitions.
    Where the producer is unknown, each partition counts as a transaction."""
    found: dict[object, list[Mapping[str, Any]]] = {}
    for row in rows:
        place = row["topic"], row["partition"]
        found.setdefault(place if row["producer_id"] is None else row["producer_id"], []).append(row)
    return list(found.values())


def open_transactions_text(found: list[OpenTransaction], now: datetime, after_s: int) -> str:
    """The text about ``found``, the oldest first, for the line that a watch prints for a batch; empty if there are none."""
    if not found:
        return ""
    text = f"{len(found):,} open {'transaction' if len(found) == 1 else 'transactions'}"
    if (oldest := found[0].since) is not None:
        text += f"{'' if len(found) == 1 else ', the oldest'} since {utc_text(oldest)}"
    hanging = sum(one.hangs(now, after_s) for one in found)
    return text if hanging == 0 else f"{text}, {hanging:,} hanging"


def producer_text(producer_id: int, transactional_id: str | None) -> str:
    """A producer in words, with its transactional id if that is known."""
    name = f"producer {producer_id}"
    return name if transactional_id is None else f"{name} with transactional id {transactional_id}"


def utc_text(moment: datetime) -> str:
    """``moment``, a time in UTC, as text to the second, followed by UTC."""
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
