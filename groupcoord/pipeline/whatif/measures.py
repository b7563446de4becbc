"""What a rebalance cost: what moved, what need not have, what stopped, and how even it came out."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from groupcoord.assignors import Assignment, TopicPartition

Owners = dict[TopicPartition, str]
"""Partition → who has it; who that is stays the same over restarts of a static member."""


class Costs(NamedTuple):
    """The numbers of one row; as the columns of ``what_if``."""

    partitions_total: int
    moved: int
    kept: int
    moved_needlessly: int
    imbalance: int
    pauses: int


def owners(assignment: Mapping[str, Iterable[TopicPartition]], whos: Mapping[str, str]) -> Owners:
    """Whose each partition of ``assignment`` is, by ``whos``: member id → who that is."""
    return {partition: whos[member_id] for member_id, had in assignment.items() for partition in had}


def costs(
    rounds: list[Assignment],
    whos: Mapping[str, str],
    *,
    claimed: Owners,
    reading: Owners,
    last: Owners,
    partitions: Mapping[str, int],
) -> Costs:
    """What the ``rounds`` of one rebalance cost.

    ``claimed`` is what members still owned when they joined, ``reading`` who had what just before, ``last`` whose each
    partition was last, and ``partitions`` are the topics that somebody wants now.
    """
    each = [owners(assignment, whos) for assignment in rounds]
    now = each[-1]
    sizes = {member_id: len(had) for member_id, had in rounds[-1].items()}
    before = {partition: last[partition] for partition in now if partition in last}
    kept = sum(now[partition] == who for partition, who in before.items())
    steady = {
        partition
        for partition, who in claimed.items()
        if reading.get(partition) == who and all(then.get(partition) == who for then in each)
    }
    had, has = Counter(before.values()), Counter(now.values())
    return Costs(
        partitions_total=sum(sizes.values()),
        moved=len(before) - kept,
        kept=kept,
        moved_needlessly=max(0, _kept_at_most(has.values(), [had[who] for who in set(whos.values())]) - kept),
        imbalance=max(sizes.values(), default=0) - min(sizes.values(), default=0),
        pauses=sum(number < partitions.get(topic, 0) for topic, number in reading if (topic, number) not in steady),
    )


def _kept_at_most(now: Iterable[int], before: Iterable[int]) -> int:
    """How many partitions can stay, whoever of those who stay gets which share: as ``rebalances`` counts it."""
    pairs = zip(sorted(now, reverse=True), sorted(before, reverse=True), strict=False)
    return sum(min(share, had) for share, had in pairs)
