"""The final check of the demo: was every record read, and is every committed offset the end of its log?

Offsets are read with a real client (OffsetFetch and ListOffsets).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from rich.table import Table

from groupcoord.broker.topic_names import CONSUMER_OFFSETS
from groupcoord.cli.assignment_tables import consecutive_runs
from groupcoord.cli.demo.observed_group import ObservedRead, RecordPosition
from groupcoord.cli.demo.output import new_table
from groupcoord.core.grouping import grouped
from groupcoord.core.java_hash_order import partition_for
from groupcoord.protocol.batches.records import Record


class PartitionCheck(NamedTuple):
    """One partition: the numbers of records written, read, and read more than once; then offsets, None if unknown.

    ``log_end`` is from ListOffsets, ``told`` from OffsetFetch, ``held`` from the coordinator's memory.
    """

    partition: int
    written: int
    read: int
    twice: int
    log_end: int | None
    told: int | None
    held: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """``twice`` are the records that were read more than once, ``problems`` the errors found, one sentence each."""

    counts: tuple[PartitionCheck, ...]
    twice: frozenset[RecordPosition]
    problems: tuple[str, ...]

    @property
    def written(self) -> int:
        """Records written, in all partitions."""
        return sum(count.written for count in self.counts)


def check_results(
    topic: str,
    partitions: int,
    produced: Mapping[RecordPosition, str],
    sightings: Iterable[ObservedRead],
    *,
    log_ends: Mapping[int, int],
    told: Mapping[int, int],
    held: Mapping[int, int],
) -> CheckResult:
    """Compare the ``produced`` records (position → key) with those read, and the end of each partition with its committed
    offsets."""
    readers: dict[RecordPosition, list[str]] = {}
    problems = []
    for seen in sightings:
        readers.setdefault(seen.place, []).append(seen.reader)
        key = produced.get(seen.place)
        if key != seen.record.key:
            written = "nothing" if key is None else f"key {key}"
            where = f"{topic}-{seen.place.partition} offset {seen.place.offset}"
            problems.append(f"{seen.reader} read key {seen.record.key} at {where}, where {written} was written")
    counts = []
    for partition in range(partitions):
        name = f"{topic}-{partition}"
        offsets = sorted(place.offset for place in produced if place.partition == partition)
        unread = [offset for offset in offsets if RecordPosition(partition, offset) not in readers]
        count = PartitionCheck(
            partition,
            written=len(offsets),
            read=len(offsets) - len(unread),
            twice=sum(len(readers.get(RecordPosition(partition, offset), ())) > 1 for offset in offsets),
            log_end=log_ends.get(partition),
            told=told.get(partition),
            held=held.get(partition),
        )
        counts.append(count)
        if unread:
            problems.append(f"{name}: {len(unread)} of {len(offsets)} records were never read, {_ranges(unread)}")
        problems += _wrong_offsets(name, count, end=offsets[-1] + 1 if offsets else 0)
    twice = frozenset(place for place, names in readers.items() if len(names) > 1)
    return CheckResult(counts=tuple(counts), twice=twice, problems=tuple(problems))


def _wrong_offsets(name: str, count: PartitionCheck, end: int) -> list[str]:
    said = (
        ("the log ends at", count.log_end),
        ("a client is told the committed offset", count.told),
        ("the coordinator holds the committed offset", count.held),
    )
    return [
        f"{name}: {what} {'unknown' if offset is None else offset}, and should say {end}"
        for what, offset in said
        if (offset or 0) != end  # without records there may be no committed offset
    ]


def counts_table(topic: str, result: CheckResult) -> Table:
    """A table of the counts, with a row for each partition."""
    shown = new_table()
    shown.add_column("partition", no_wrap=True)
    heads = ("written", "read", "twice", "log end", "OffsetFetch", "coordinator")
    for head in heads:
        shown.add_column(head, justify="right")
    for count in result.counts:
        shown.add_row(
            f"{topic}-{count.partition}", *("unknown" if number is None else str(number) for number in count[1:])
        )
    return shown


def positions_text(topic: str, where: Iterable[RecordPosition]) -> str:
    """``orders-0 offsets 3–5; orders-2 offset 9``."""
    by_partition = grouped(sorted(where))
    return "; ".join(f"{topic}-{partition} {_ranges(offsets)}" for partition, offsets in by_partition.items())


def _ranges(offsets: Sequence[int]) -> str:
    runs = consecutive_runs(offsets)
    spelled = ", ".join(str(first) if first == last else f"{first}–{last}" for first, last in runs)
    return f"offset{'' if len(offsets) == 1 else 's'} {spelled}"


async def committed_and_ends(
    bootstrap: str, group: str, topic: str, partitions: int
) -> tuple[dict[int, int], dict[int, int]]:
    """Partition → the committed offset of ``group`` (OffsetFetch), and partition → the log end offset (ListOffsets)."""
    places = [TopicPartition(topic, number) for number in range(partitions)]
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap, client_id="auditor", group_id=group, enable_auto_commit=False
    )
    try:
        await consumer.start()
        consumer.assign(places)
        ends = await consumer.end_offsets(places)
        committed = {place: await consumer.committed(place) for place in places}
    finally:
        await consumer.stop()
    return (
        {place.partition: offset for place, offset in committed.items() if offset is not None},
        {place.partition: offset for place, offset in ends.items()},
    )


async def offsets_log(bootstrap: str, group: str, partitions: int) -> tuple[int, list[Record]]:
    """The partition of ``__consumer_offsets`` (which has ``partitions``) to which ``group`` belongs, and all its records."""
    place = TopicPartition(CONSUMER_OFFSETS, partition_for(group, partitions))
    found = await read_all(bootstrap, place)
    return place.partition, [Record(r.offset, r.timestamp, r.key, r.value) for r in found]


async def read_all(bootstrap: str, place: TopicPartition, isolation: str = "read_uncommitted") -> list[ConsumerRecord]:
    """All records of a partition that a consumer of that isolation level reads."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap, client_id="auditor", isolation_level=isolation, auto_offset_reset="earliest"
    )
    try:
        await consumer.start()
        consumer.assign([place])
        end = (await consumer.end_offsets([place]))[place]
        records: list[ConsumerRecord] = []
        while await consumer.position(place) < end:
            batches = await consumer.getmany(place, timeout_ms=1_000)
            records += batches.get(place, ())
    finally:
        await consumer.stop()
    return records
