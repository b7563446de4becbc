"""The reckoning: was every record read, and is every committed offset where it should be?"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rich import box
from rich.table import Table

from groupcoord.cli.demo.facts import Place, Sighting


class Count(NamedTuple):
    """One partition: records written, read, and read more than once; then offsets, None where nothing is known.

    ``log_end`` is what ListOffsets says, ``told`` what OffsetFetch says, ``held`` what the coordinator has in memory.
    """

    partition: int
    written: int
    read: int
    twice: int
    log_end: int | None
    told: int | None
    held: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """``twice`` are the records that were read more than once, ``problems`` what is wrong, one sentence each."""

    counts: tuple[Count, ...]
    twice: frozenset[Place]
    problems: tuple[str, ...]

    @property
    def written(self) -> int:
        """Records written, in all partitions."""
        return sum(count.written for count in self.counts)


def reckon(
    topic: str,
    partitions: int,
    produced: Mapping[Place, str],
    sightings: Iterable[Sighting],
    *,
    log_ends: Mapping[int, int],
    told: Mapping[int, int],
    held: Mapping[int, int],
) -> Verdict:
    """Compare what was ``produced`` (place → key) with what was seen, and the end of each partition with what is committed."""
    readers: dict[Place, list[str]] = {}
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
        unread = [offset for offset in offsets if Place(partition, offset) not in readers]
        count = Count(
            partition,
            written=len(offsets),
            read=len(offsets) - len(unread),
            twice=sum(len(readers.get(Place(partition, offset), ())) > 1 for offset in offsets),
            log_end=log_ends.get(partition),
            told=told.get(partition),
            held=held.get(partition),
        )
        counts.append(count)
        if unread:
            problems.append(f"{name}: {len(unread)} of {len(offsets)} records were never read, {_ranges(unread)}")
        problems += _wrong_offsets(name, count, end=offsets[-1] + 1 if offsets else 0)
    twice = frozenset(place for place, names in readers.items() if len(names) > 1)
    return Verdict(counts=tuple(counts), twice=twice, problems=tuple(problems))


def _wrong_offsets(name: str, count: Count, end: int) -> list[str]:
    said = (
        ("the log ends at", count.log_end),
        ("a client is told the committed offset", count.told),
        ("the coordinator holds the committed offset", count.held),
    )
    return [
        f"{name}: {what} {'unknown' if offset is None else offset}, and should say {end}"
        for what, offset in said
        if (offset or 0) != end  # nothing need be known where nothing was written
    ]


def table(topic: str, verdict: Verdict) -> Table:
    """The counts, a row for each partition."""
    shown = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False, show_edge=False)
    shown.add_column("partition", no_wrap=True)
    heads = ("written", "read", "twice", "log end", "OffsetFetch", "coordinator")
    for head in heads:
        shown.add_column(head, justify="right")
    for count in verdict.counts:
        shown.add_row(
            f"{topic}-{count.partition}", *("unknown" if number is None else str(number) for number in count[1:])
        )
    return shown


def places(topic: str, where: Iterable[Place]) -> str:
    """``orders-0 offsets 3–5; orders-2 offset 9``."""
    by_partition: dict[int, list[int]] = {}
    for partition, offset in sorted(where):
        by_partition.setdefault(partition, []).append(offset)
    return "; ".join(f"{topic}-{partition} {_ranges(offsets)}" for partition, offsets in by_partition.items())


def _ranges(offsets: Sequence[int]) -> str:
    runs: list[list[int]] = []
    for offset in offsets:
        if runs and offset == runs[-1][1] + 1:
            runs[-1][1] = offset
        else:
            runs.append([offset, offset])
    spelled = ", ".join(str(first) if first == last else f"{first}–{last}" for first, last in runs)
    return f"offset{'' if len(offsets) == 1 else 's'} {spelled}"
