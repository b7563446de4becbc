"""Uniform for members that all want the same. Source: ``UniformHomogeneousAssignmentBuilder``."""

from collections.abc import Iterator
from itertools import islice
from uuid import UUID

from groupcoord.assignors.server.spec import Lists, PartitionAssignorError, Spec, Target, uuid_hash
from groupcoord.core.java import hash_set_order


def assign_homogeneous(spec: Spec) -> Target:
    """Give everybody the same number of partitions, and the first members of the map one more until none is left over.

    Members keep what fits, and are filled up in long runs. Raises PartitionAssignorError if a topic does not exist, or if a
    partition belongs to nobody and nobody has room for it: the caller counts what a member that left had as free.
    """
    member_ids = spec.member_ids()
    wanted = spec.members[member_ids[0]].topic_ids
    target: Lists = {member_id: {} for member_id in member_ids}
    if not wanted:
        return target
    taken = {
        (topic_id, partition)
        for member in spec.members.values()
        for topic_id, partitions in member.assigned.items()
        for partition in partitions
    }
    free: list[tuple[UUID, int]] = []
    total = 0
    for topic_id in hash_set_order(wanted, uuid_hash):
        count = spec.partition_count(topic_id)
        total += count
        free += [(topic_id, partition) for partition in range(count) if (topic_id, partition) not in taken]
    least, more = divmod(total, len(member_ids))
    lacking: dict[str, int] = {}
    for number, member_id in enumerate(member_ids):
        quota = least + (number < more)
        for topic_id, partitions in spec.assigned(member_id):
            if topic_id in wanted:
                if kept := partitions[:quota]:
                    target[member_id][topic_id] = kept
                free += [(topic_id, partition) for partition in partitions[quota:]]
                quota -= len(kept)
        if quota:
            lacking[member_id] = quota
    _fill(target, lacking, iter(free))
    return target


def _fill(target: Lists, lacking: dict[str, int], free: Iterator[tuple[UUID, int]]) -> None:
    for member_id, quota in lacking.items():
        for topic_id, partition in islice(free, quota):
            target[member_id].setdefault(topic_id, []).append(partition)
    if next(free, None) is not None:
        raise PartitionAssignorError("Partitions were left unassigned")
