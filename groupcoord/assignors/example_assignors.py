"""Two example assignors: rendezvous hashing, and capacities (weights) of members."""

import struct
from collections.abc import Sequence
from math import lcm

import mmh3

from groupcoord.assignors.cooperative_adjustment import in_two_steps
from groupcoord.assignors.interface import Assignment, Assignor, GroupSubscription, RebalanceProtocol
from groupcoord.assignors.java_order import (
    MemberHeap,
    java_sorted,
    members_in_hash_order,
    members_in_order,
    partitions_of,
    subscribers_of,
    topic_table,
)


class RendezvousAssignor(Assignor):
    """Rendezvous hashing: each partition goes to the subscriber with the highest hash for it.

    A static member is hashed by its instance id, so that it gets the same partitions after a restart; a dynamic one gets a new
    id each time, and so other partitions.
    """

    name = "rendezvous"
    protocols = (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)

    def assign(self, group: GroupSubscription) -> Assignment:
        """The assignment; a partition that another member still owns is withheld for one rebalance."""
        members = members_in_hash_order(group)
        table = topic_table(members, group.partitions)
        seeds = {
            member_id: mmh3.hash(subscription.instance_id or member_id, signed=False)
            for member_id, subscription in members.items()
        }
        assignment: Assignment = {member_id: [] for member_id in members}
        for topic, subscribers in subscribers_of(table, members).items():
            for partition in partitions_of(topic, table[topic]):
                draw = f"{topic}-{partition[1]}".encode()
                winner = max(
                    subscribers,
                    key=lambda member_id: (mmh3.hash64(draw, seeds[member_id], signed=False)[0], member_id),
                )
                assignment[winner].append(partition)
        return in_two_steps(members, assignment)

    def remark(self, assignment: Assignment) -> str:
        """How far ``assignment`` is from balanced."""
        sizes = [len(partitions) for partitions in assignment.values()]
        mean = sum(sizes) / max(1, len(sizes))
        spread = max(sizes, default=0) - min(sizes, default=0)
        over = max(sizes, default=0) / mean - 1 if mean else 0.0
        return f"members differ by up to {spread}; the fullest has {over:.0%} more than an even share"


_CAPACITY = struct.Struct(">i")


class WeightedAssignor(Assignor):
    """Each partition goes to the subscriber with the lowest load relative to its capacity, the partition included.

    ``capacity`` is this member's, an integer in any unit that the group agrees on: a member of capacity 2 gets twice as much as
    one of capacity 1. Raises ValueError if it is not between 1 and 2,147,483,647.
    """

    name = "weighted"
    protocols = (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)

    def __init__(self, capacity: int = 1) -> None:
        if not 1 <= capacity < 1 << 31:
            raise ValueError(f"a member cannot have a capacity of {capacity}")
        self._capacity = capacity

    def subscription_user_data(self, topics: Sequence[str]) -> bytes | None:  # noqa: ARG002 - whatever the topics
        """The capacity, as an int32."""
        return _CAPACITY.pack(self._capacity)

    def assign(self, group: GroupSubscription) -> Assignment:
        """Assigns topics and partitions in ascending order; a partition that another member still owns is withheld for one
        rebalance."""
        members = members_in_hash_order(group)
        table = topic_table(members, group.partitions)
        ids = members_in_order(members)
        number = {member_id: place for place, member_id in enumerate(ids)}
        capacities = [capacity_of(members[member_id].user_data) for member_id in ids]
        whole = lcm(*capacities)
        steps = [whole // capacity for capacity in capacities]
        loads = list(steps)  # the load of each member with one partition more
        pools: dict[tuple[int, ...], MemberHeap] = {}
        assignment: Assignment = {member_id: [] for member_id in members}
        subscribers = subscribers_of(table, members)
        for topic in java_sorted(table):
            wanting = tuple([number[member_id] for member_id in subscribers[topic]])
            if wanting not in pools:
                pools[wanting] = MemberHeap(wanting, loads)
            for partition in partitions_of(topic, table[topic]):
                lightest = pools[wanting].least()
                loads[lightest] += steps[lightest]
                assignment[ids[lightest]].append(partition)
        return in_two_steps(members, assignment)


def capacity_of(user_data: bytes | None) -> int:
    """The capacity in ``user_data``; 1 if it has none."""
    if user_data is None or len(user_data) != _CAPACITY.size:
        return 1
    capacity: int = _CAPACITY.unpack(user_data)[0]
    return max(1, capacity)
