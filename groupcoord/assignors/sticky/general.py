"""The algorithm for members that want different topics. Source: ``AbstractStickyAssignor.GeneralAssignmentBuilder``.

Members keep their partitions, free partitions go to the subscriber that has least, and then partitions move until no
move makes the whole more even.
"""

from collections.abc import Iterable, Mapping
from itertools import accumulate, count

from groupcoord.assignors.interface import Assignment, Subscription, TopicPartition
from groupcoord.assignors.member_heap import MemberHeap
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
    pasts: Mapping[str, PreviousAssignment],
    table: Mapping[str, int],
    ownership: Ownership,
    racks: RackInfo,
    *,
    strict: bool,
) -> Assignment:
    """Assign; ``members`` are in ``HashMap`` order.

    Raises JavaFailure, if ``strict``, where Kafka fails: a partition's owner of an older generation can neither give nor take.
    """
    board = WorkingAssignment(members, table)
    revoked = _keep(board, members, ownership, racks)
    free = _free(board)
    begins = not any(board.sizes)
    _give_out(board, free, racks)

    in_play = [member for member in range(len(board.ids)) if _can_take_part(board, member)]
    everything = [(topic, board.ranges[topic]) for topic in range(len(board.topics)) if board.is_contested(topic)]
    previous = _previous_owners(board, members, pasts, ownership.max_generation)
    reassignment = Reassignment(board, in_play, previous, strict)
    sizes = [board.sizes[member] for member in in_play]
    if not revoked:
        reassignment.run([(topic, part) for topic, part in board.by_topic(free) if board.is_contested(topic)])
    moved = reassignment.run(everything)
    if moved and not begins and balance_score([board.sizes[member] for member in in_play]) >= balance_score(sizes):
        board.restore(reassignment.before)
    return board.assignment()


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


def _keep(board: WorkingAssignment, members: Mapping[str, Subscription], ownership: Ownership, racks: RackInfo) -> bool:
    """Put what members keep on the board; returns whether any was lost: unsubscribed, or on other racks."""
    revoked = False
    for member_id, partitions in ownership.kept.items():
        wanted, member = frozenset(members[member_id].topics), board.rank[member_id]
        for partition in partitions:
            if partition[0] not in wanted or racks.mismatch(member_id, partition):
                revoked = True
            else:
                board.keep(member, partition)
    return revoked


def _free(board: WorkingAssignment) -> list[int]:
    if not board.has_phantoms:
        return [partition for partition, owner in enumerate(board.owner) if owner < 0]
    board.allow_twice()
    kept = [board.partitions[partition] for held in board.held for partition in held]
    everything = board.partitions[: board.total]
    place = {partition: number for number, partition in enumerate(everything)}
    return [place[partition] for partition in unassigned_partitions(everything, kept)]


def _give_out(board: WorkingAssignment, free: Iterable[int], racks: RackInfo) -> None:
    """Give each of ``free`` to the member that wants it and has least; if racks matter, first whatever has one nearby."""
    if racks.matter:
        nearby: dict[tuple[int, Racks], MemberHeap] = {}
        rest = []
        for partition in free:
            name = board.partitions[partition]
            key = board.topic_number[name[0]], racks.racks(name)
            if key not in nearby:
                nearby[key] = MemberHeap(_fitting(board, name, racks), board.sizes)
            if nearby[key]:
                board.give(partition, nearby[key].least())
            else:
                rest.append(partition)
        free = rest
    pools: dict[tuple[int, ...], MemberHeap] = {}
    for topic, partitions in board.by_topic(free):
        subscribers = tuple(board.subscribers[topic])
        if subscribers not in pools:
            pools[subscribers] = MemberHeap(subscribers, board.sizes)
        pool = pools[subscribers]
        for partition in partitions:
            board.give(partition, pool.least())


def _fitting(board: WorkingAssignment, partition: TopicPartition, racks: RackInfo) -> list[int]:
    """Those that want ``partition`` and do not have it in another rack."""
    subscribers = board.subscribers[board.topic_number[partition[0]]]
    return [member for member in subscribers if not racks.mismatch(board.ids[member], partition)]


def _can_take_part(board: WorkingAssignment, member: int) -> bool:
    """Could ``member`` have more than it has, or something that another wants?"""
    if board.sizes[member] < board.most_possible(member):
        return True
    topics = {board.partitions[partition][0] for partition in board.held[member]}
    return any(board.is_contested(board.topic_number[topic]) for topic in topics)


def _previous_owners(
    board: WorkingAssignment, members: Iterable[str], pasts: Mapping[str, PreviousAssignment], max_generation: int
) -> dict[int, int]:
    """Partition → who says to have had it before the latest generation; of several the one of the latest among those.

    Claims count as they were made, whether or not they stand and the topic is still wanted.
    """
    owners: dict[int, tuple[int, int]] = {}
    for member_id in members:
        past = pasts[member_id]
        generation = DEFAULT_GENERATION if past.generation is None else past.generation
        if generation >= max_generation:
            continue
        for claim in past.partitions:
            partition = board.number(claim)
            if partition is not None and (partition not in owners or generation > owners[partition][0]):
                owners[partition] = generation, board.rank[member_id]
    return {partition: member for partition, (_, member) in owners.items()}
