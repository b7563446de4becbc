"""The round-robin assignor: deals all partitions of all topics to the members in turn. Source: ``RoundRobinAssignor``."""

from bisect import bisect_left
from itertools import groupby

from groupcoord.assignors.interface import Assignment, Assignor, GroupSubscription, JavaFailure
from groupcoord.assignors.java_order import (
    java_sorted,
    members_in_hash_order,
    members_in_order,
    partitions_of,
    subscribers_of,
    topic_table,
)

NAME = "roundrobin"


def assign(group: GroupSubscription) -> Assignment:
    """Deal out the partitions, topics and partitions ascending, each to the next member that subscribes to the topic.

    The turn continues from topic to topic, which makes the result balanced when all subscribe to the same topics. Without
    members Kafka throws; here JavaFailure is raised.
    """
    members = members_in_hash_order(group)
    if not members:
        raise JavaFailure("IllegalArgumentException", "a ring cannot be made of no members")
    table = topic_table(members, group.partitions)
    assignment: Assignment = {member_id: [] for member_id in members}
    ring = members_in_order(members)
    place_of = {member_id: place for place, member_id in enumerate(ring)}
    wanted_by = subscribers_of(table, members)
    hand = 0
    for subscribers, topics in groupby(java_sorted(table), key=wanted_by.__getitem__):
        partitions = [partition for topic in topics for partition in partitions_of(topic, table[topic])]
        # Members that do not subscribe are skipped; each of the others gets every n-th partition.
        places = [place_of[member_id] for member_id in subscribers]
        ctx = bisect_left(places, hand)
        in_turn = places[ctx:] + places[:ctx]
        for start, place in enumerate(in_turn[: len(partitions)]):
            assignment[ring[place]] += partitions[start :: len(in_turn)]
        hand = (in_turn[(len(partitions) - 1) % len(in_turn)] + 1) % len(ring)
    return assignment


class RoundRobinAssignor(Assignor):
    """``RoundRobinAssignor``."""

    name = NAME

    def assign(self, group: GroupSubscription) -> Assignment:
        """See :func:`assign`."""
        return assign(group)
