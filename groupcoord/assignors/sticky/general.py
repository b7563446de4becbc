"""The algorithm for members that want different topics. Source: ``AbstractStickyAssignor.GeneralAssignmentBuilder``.

Members keep their partitions, free partitions go to the subscriber that has least, and then partitions move until no
move makes the whole more even.
"""

from collections.abc import Iterable, Mapping
from itertools import accumulate, count

from groupcoord.assignors.interface import Assignment, Subscription, TopicPartition
from groupcoord.assignors.java_order import MemberHeap
from groupcoord.assignors.racks import RackInfo, Racks
from groupcoord.assignors.sticky.previous_assignment import (
    DEFAULT_GENERATION,
    Ownership,
    PreviousAssignment,
    unassigned_partitions,
)
from groupcoord.assignors.sticky.reassignment import Reassignment, WorkingAssignment


def assign_general(
    members: Mapping[str, Subscription],
    claims: Mapping[str, PreviousAssignment],
    table: Mapping[str, int],
    ownership: Ownership,
    racks: RackInfo,
    *,
    strict: bool,
) -> Assignment:
    """Assign; ``members`` are in ``HashMap`` order.

    Raises JavaFailure, if ``strict``, where Kafka fails: a partition's owner of an older generation can neither give nor take.
    """
    working = WorkingAssignment(members, table)
    revoked = _keep(working, members, ownership, racks)
    free = _free(working)
    begins = not any(working.sizes)
    _give_out(working, free, racks)

    in_play = [member for member in range(len(working.ids)) if _can_take_part(working, member)]
    everything = [(topic, working.ranges[topic]) for topic in range(len(working.topics)) if working.is_contested(topic)]
    previous = _previous_owners(working, members, claims, ownership.max_generation)
    reassignment = Reassignment(working, in_play, previous, strict)
    sizes = [working.sizes[member] for member in in_play]
    if not revoked:
        reassignment.run([(topic, part) for topic, part in working.by_topic(free) if working.is_contested(topic)])
    moved = reassignment.run(everything)
    if moved and not begins and balance_score([working.sizes[member] for member in in_play]) >= balance_score(sizes):
        working.restore(reassignment.before)
    return working.assignment()


def balance_score(sizes: Iterable[int]) -> int:
    """How far from even: the sum, over all pairs of members, of what one has more than the other; in Java's 32 bits."""
    ascending = sorted(sizes)
    score = sum(
        [
            place * size - before
            for place, size, before in zip(count(), ascending, accumulate(ascending, initial=0), strict=False)
        ]
    )
    return (score + 0x80000000 & 0xFFFFFFFF) - 0x80000000


def _keep(
    working: WorkingAssignment, members: Mapping[str, Subscription], ownership: Ownership, racks: RackInfo
) -> bool:
    """Put what members keep into the working assignment; returns whether any was lost: unsubscribed, or on other racks."""
    revoked = False
    for member_id, partitions in ownership.kept.items():
        wanted, member = frozenset(members[member_id].topics), working.rank[member_id]
        for partition in partitions:
            if partition[0] not in wanted or racks.mismatch(member_id, partition):
                revoked = True
            else:
                working.keep(member, partition)
    return revoked


def _free(working: WorkingAssignment) -> list[int]:
    if not working.has_phantoms:
        return [partition for partition, owner in enumerate(working.owner) if owner < 0]
    working.allow_twice()
    kept = [working.partitions[partition] for held in working.held for partition in held]
    everything = working.partitions[: working.total]
    place = {partition: number for number, partition in enumerate(everything)}
    return [place[partition] for partition in unassigned_partitions(everything, kept)]


def _give_out(working: WorkingAssignment, free: Iterable[int], racks: RackInfo) -> None:
    """Give each of ``free`` to the member that wants it and has least; if racks matter, first whatever has one nearby."""
    if racks.matter:
        nearby: dict[tuple[int, Racks], MemberHeap] = {}
        rest = []
        for partition in free:
            name = working.partitions[partition]
            key = working.topic_number[name[0]], racks.racks(name)
            if key not in nearby:
                nearby[key] = MemberHeap(_fitting(working, name, racks), working.sizes)
            if nearby[key]:
                working.give(partition, nearby[key].least())
            else:
                rest.append(partition)
        free = rest
    pools: dict[tuple[int, ...], MemberHeap] = {}
    for topic, partitions in working.by_topic(free):
        subscribers = tuple(working.subscribers[topic])
        if subscribers not in pools:
            pools[subscribers] = MemberHeap(subscribers, working.sizes)
        pool = pools[subscribers]
        for partition in partitions:
            working.give(partition, pool.least())


def _fitting(working: WorkingAssignment, partition: TopicPartition, racks: RackInfo) -> list[int]:
    """Those that want ``partition`` and do not have it in another rack."""
    subscribers = working.subscribers[working.topic_number[partition[0]]]
    return [member for member in subscribers if not racks.mismatch(working.ids[member], partition)]


def _can_take_part(working: WorkingAssignment, member: int) -> bool:
    """Could ``member`` have more than it has, or something that another wants?"""
    if working.sizes[member] < working.most_possible(member):
        return True
    topics = {working.partitions[partition][0] for partition in working.held[member]}
    return any(working.is_contested(working.topic_number[topic]) for topic in topics)


def _previous_owners(
    working: WorkingAssignment,
    members: Iterable[str],
    claims: Mapping[str, PreviousAssignment],
    max_generation: int,
) -> dict[int, int]:
    """Partition → who says to have had it before the latest generation; of several the one of the latest among those.

    Claims count as they were made, whether or not they stand and the topic is still wanted.
    """
    owners: dict[int, tuple[int, int]] = {}
    for member_id in members:
        previous = claims[member_id]
        generation = DEFAULT_GENERATION if previous.generation is None else previous.generation
        if generation >= max_generation:
            continue
        for claim in previous.partitions:
            partition = working.number(claim)
            if partition is not None and (partition not in owners or generation > owners[partition][0]):
                owners[partition] = generation, working.rank[member_id]
    return {partition: member for partition, (_, member) in owners.items()}
