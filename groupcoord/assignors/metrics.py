"""How even an assignment is, and what changed from one to the next."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from groupcoord.assignors.interface import Assignment, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnershipChange:
    """What became of one member: partitions in the order of the assignment they are from."""

    kept: Sequence[TopicPartition]
    gained: Sequence[TopicPartition]
    lost: Sequence[TopicPartition]


def ownership_changes(before: Assignment, after: Assignment) -> dict[str, OwnershipChange]:
    """Member id → what became of it; first those of ``after``, then those that are gone."""
    return {
        member_id: _change(before.get(member_id, ()), after.get(member_id, ()))
        for member_id in [*after, *(member_id for member_id in before if member_id not in after)]
    }


def _change(before: Sequence[TopicPartition], after: Sequence[TopicPartition]) -> OwnershipChange:
    had, has = frozenset(before), frozenset(after)
    return OwnershipChange(
        kept=[partition for partition in after if partition in had],
        gained=[partition for partition in after if partition not in had],
        lost=[partition for partition in before if partition not in has],
    )


def spread(assignment: Assignment) -> int:
    """By how many partitions the fullest member exceeds the emptiest."""
    sizes = [len(partitions) for partitions in assignment.values()]
    return max(sizes, default=0) - min(sizes, default=0)


def owners(assignment: Assignment) -> dict[TopicPartition, str]:
    """Partition → who has it."""
    return {partition: member_id for member_id, partitions in assignment.items() for partition in partitions}


def count_moved(before: Assignment, after: Assignment) -> int:
    """How many partitions have another owner than before; those that had none, or have none now, do not count."""
    had: Mapping[TopicPartition, str] = owners(before)
    return sum(had.get(partition, member_id) != member_id for partition, member_id in owners(after).items())
